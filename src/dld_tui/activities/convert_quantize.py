"""Quantization by ONNX Runtime: static with QuantizeLinear and DequantizeLinear, or dynamic.

Result: that of :func:`dld_tui.core.conversion.result.written` with ``"sets"``, the calibration
inputs used.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from dld_tui.core.conversion.request import ConversionRequest
from dld_tui.core.errors import ActivityError, InputError, UnavailableError, UsageError
from dld_tui.core.events import Event, Progress
from dld_tui.core.inputs.params import VERIFIED_HELP, about_shape
from dld_tui.core.params import param
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document
    from dld_tui.core.inputs.folder import InputSet
    from dld_tui.core.inputs.shapes import InputSpec

_Shapes: TypeAlias = "tuple[tuple[int, ...], ...]"
_AXES_SINCE = 13
"""The version of the operators from which DequantizeLinear can have a scale for each channel."""
_WAY_OUT = "Sanitize the model first, or leave nodes as they are: --exclude NAME"
_HINT = "Leave the nodes around it as they are: --exclude NAME"


@dataclass(frozen=True)
class Request(ConversionRequest):
    """What is quantized, and how."""

    calibration: Path | None = param(
        None,
        label="Calibration",
        help="Folder with input_0.pb, … or NAME.npy, or with folders test_data_set_0, … of these.",
        kind="folder",
        spellings=("--calibration",),
        metavar="DIR",
    )
    dynamic: bool = param(
        False,
        label="Dynamic",
        help="Compute the scales of activations while the model runs; needs no calibration.",
        spellings=("--dynamic",),
    )
    weights: str = param(
        "int8",
        label="Weights",
        help="Element type of weights.",
        choices=("int8", "uint8", "int4", "uint4", "int16", "uint16"),
        spellings=("--weights",),
    )
    activations: str = param(
        "int8",
        label="Activations",
        help="Element type of activations.",
        choices=("int8", "uint8", "int16", "uint16"),
        spellings=("--activations",),
    )
    method: str = param(
        "minmax",
        label="Method",
        help="How ranges are found.",
        choices=("minmax", "entropy", "percentile"),
        spellings=("--method",),
    )
    ops: tuple[str, ...] = param(
        (),
        label="Operators",
        help="Quantize only these operators, separated by commas.",
        spellings=("--ops",),
        metavar="OP,OP",
    )
    exclude: tuple[str, ...] = param(
        (),
        label="Exclude",
        help="Name of a node that is not quantized.",
        spellings=("--exclude",),
        metavar="NAME",
    )
    per_channel: bool = param(
        False,
        label="Per channel",
        help="A scale for each channel of a weight.",
        spellings=("--per-channel",),
    )
    reduce_range: bool = param(
        False,
        label="Reduced range",
        help="7 bits for weights, for processors without VNNI.",
        spellings=("--reduce-range",),
    )
    verify: bool = param(
        True,
        label="Verify",
        help="Load and run the result with ONNX Runtime before it is written.",
        spellings=("--verify",),
    )
    shape: tuple[str, ...] = param((), **about_shape(help=VERIFIED_HELP))


def run(request: Request) -> Iterator[Event]:
    """Quantize.

    Raises:
        UsageError: There is no calibration data, or an excluded node is not there.
        InputError: The model or an input cannot be read, or does not fit; names the file.
        UnavailableError: ONNX Runtime is not installed.
        ActivityError: It failed, or cannot use the result.
        SaveError: The result cannot be written.
    """
    from dld_tui.backends import quantization
    from dld_tui.backends.library_file import by_library
    from dld_tui.core.conversion.copies import open_model
    from dld_tui.core.conversion.result import written

    if not request.dynamic and request.calibration is None:
        raise UsageError("static quantization needs --calibration DIR", hint="Or add --dynamic")
    if absent := quantization.missing():
        raise UnavailableError(
            f"{absent[0]} is not installed", hint=f"Install it with: {quantization.INSTALL}"
        )
    yield Progress(0, None, stage="Opening the model")
    with contextlib.closing(open_model(request.model)) as document, contextlib.ExitStack() as stack:
        _require_nodes(document, request.exclude)
        _require_axes(document, request)
        specs, sets, shapes = _inputs(document), 0, set[_Shapes]()
        if not request.dynamic and request.calibration is not None:
            for sets, one in enumerate(_checked(request.calibration, specs), start=1):
                shapes.add(one)
                yield Progress(sets, None, "sets", "Reading the calibration inputs")
        prepared, notes = _prepared(document)
        stack.callback(prepared.close)
        options = _options(request, specs, is_uniform=len(shapes) == 1)
        try:
            result = yield from by_library(
                prepared, quantization.__name__, options, "Quantizing", stack, sets
            )
        except ActivityError as error:
            raise ActivityError(error.message, hint=_WAY_OUT, details=error.details) from error
        if _quantized_nodes(result) <= _quantized_nodes(document):
            notes.append("nothing was quantized: no operator that can be has a weight or is chosen")
        if request.verify:
            from dld_tui.backends.converted import verify

            notes += yield from verify(document, result, request.output, request.shape, _HINT)
        yield from written(document, result, request.output, notes=notes, more={"sets": sets})


def _prepared(document: Document) -> tuple[Document, list[str]]:
    """Return a copy in which ONNX Runtime finds what can be quantized, and notes on that."""
    from dld_tui.core import fmt
    from dld_tui.core.conversion.copies import copy_of, inline_calls
    from dld_tui.core.conversion.lifting import lift_constants

    prepared = copy_of(document)
    _import_once(prepared)
    inlined, lifted = inline_calls(prepared), lift_constants(prepared)
    notes = []
    if inlined:
        calls = fmt.plural(inlined, "call")
        notes.append(f"{calls} of local functions replaced by the nodes of the function")
    if lifted:
        notes.append(f"{fmt.plural(lifted, 'Constant node')} made initializers")
    return prepared, notes


def _import_once(prepared: Document) -> None:
    """Remove repeated imports of operators, which ONNX Runtime cannot quantize with."""
    import onnx

    entries = {
        (entry.domain, entry.version): entry for entry in prepared.model.opset_import
    }.values()
    if len(entries) < len(prepared.model.opset_import):
        kept = [onnx.OperatorSetIdProto.FromString(one.SerializeToString()) for one in entries]
        del prepared.model.opset_import[:]
        prepared.model.opset_import.extend(kept)


def _quantized_nodes(document: Document) -> int:
    """Return how many nodes quantize, or compute with what is."""
    return sum(
        "Quantize" in node.op_type or node.op_type.endswith(("Integer", "NBits"))
        for scope in document.scopes()
        for node in scope.nodes
    )


def _options(request: Request, specs: Sequence[InputSpec], *, is_uniform: bool) -> dict[str, JSON]:
    ops = [op.strip() for text in request.ops for op in text.split(",") if op.strip()]
    inputs: list[JSON] = [
        {"name": spec.name, "dtype": spec.dtype,
         "dims": None if spec.dims is None else [*spec.dims]}
        for spec in specs
    ]  # fmt: skip
    return {
        "dynamic": request.dynamic, "weights": request.weights,
        "activations": request.activations, "method": request.method, "ops": [*ops],
        "exclude": [*request.exclude], "per_channel": request.per_channel,
        "reduce_range": request.reduce_range, "inputs": inputs, "is_uniform": is_uniform,
        "calibration": "" if request.calibration is None else str(request.calibration.absolute()),
    }  # fmt: skip


def _require_nodes(document: Document, names: Sequence[str]) -> None:
    for name in names:
        if not any(scope.nodes_named(name) for scope in document.scopes()):
            raise UsageError(f"no node is named {name!r}", hint="See dld inspect --nodes")


def _require_axes(document: Document, request: Request) -> None:
    opset = document.opset_imports.get("", _AXES_SINCE)
    if request.per_channel and not request.dynamic and opset < _AXES_SINCE:
        raise UsageError(
            f"--per-channel needs opset {_AXES_SINCE}, and the model has {opset}",
            hint=f"Convert it first: dld convert opset --to {_AXES_SINCE}",
        )


def _inputs(document: Document) -> list[InputSpec]:
    """Return the inputs that have to be fed."""
    from dld_tui.core.inputs.shapes import InputSpec

    main, specs = document.main, []
    for name in main.inputs:
        if name in main.named("initializer"):
            continue
        known = main.value_type(name)
        if known is None or known.dtype is None:
            raise InputError(f"the type of input {name!r} is not known")
        specs.append(InputSpec(name, known.dtype, known.dims))
    return specs


def _checked(folder: Path, specs: Sequence[InputSpec]) -> Iterator[_Shapes]:
    """Read every set once, so that what does not fit is named before anything is done."""
    from dld_tui.core.inputs.folder import load_input_sets, set_folders

    for path in set_folders(folder):
        (one,) = load_input_sets(path, specs)
        yield tuple(shape for spec in specs for shape in _shapes(one, spec))


def _shapes(one: InputSet, spec: InputSpec) -> Iterator[tuple[int, ...]]:
    """Yield the shapes of an input.

    Raises:
        InputError: There is no number in it, or one that no range can hold.
    """
    import numpy as np

    value = one.values[spec.name]
    for array in value if isinstance(value, list) else (value,):
        if not array.size:
            raise InputError(f"input {spec.text} has no elements", where=str(one.folder))
        if array.dtype.kind not in "biuSUO" and not np.isfinite(array).all():
            raise InputError(
                f"input {spec.text} holds values that are infinite or not a number",
                where=str(one.folder),
            )
        yield array.shape
