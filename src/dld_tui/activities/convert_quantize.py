"""Quantization by ONNX Runtime: static with QuantizeLinear and DequantizeLinear, or dynamic.

Result: that of :func:`dld_tui.core.conversion.request.written` with ``"sets"``, the calibration
inputs used, ``"method"``, ``"ops"``, and what :mod:`dld_tui.backends.conversion.verification` says.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

from dld_tui.core.conversion.request import ConversionRequest, Repair, Verification
from dld_tui.core.errors import ActivityError, InputError, UnavailableError, UsageError
from dld_tui.core.events import Event, Log, Progress
from dld_tui.core.params import param
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.backends.conversion.verification import Checked, Verifier
    from dld_tui.core.conversion.error_attribution import Culprit
    from dld_tui.core.document.document import Document
    from dld_tui.core.document.node import Node
    from dld_tui.core.inputs.feeds import InputSet
    from dld_tui.core.inputs.shapes import InputSpec

_Shapes: TypeAlias = "tuple[tuple[int, ...], ...]"
_AXES_SINCE = 13
"""The version of the operators from which DequantizeLinear can have a scale for each channel."""
_MATRICES = ("MatMul", "Gemm", "Gather", "Attention", "LSTM", "EmbedLayerNormalization")
"""Operators that dynamic quantization takes, but for convolutions."""
_WEIGHTED = ("Conv", "ConvTranspose", "Gemm", "LSTM")
"""Operators whose second input has to be an initializer."""
_ROUNDS = 12
_WAY_OUT = "Sanitize the model first, or leave nodes as they are: --exclude NAME"
_HINT = "Leave the nodes around it as they are: --exclude NAME"


@dataclass(frozen=True)
class Request(Repair, Verification, ConversionRequest):
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
    weights_only: bool = param(
        False,
        label="Weights only",
        help="Store the weights of matrix products in blocks of 4 or 8 bits and compute in floating"
        " point; needs no calibration.",
        spellings=("--weights-only",),
    )
    runtime: str = param(
        "onnxruntime",
        label="For",
        help="What is to run the result; tensorrt takes symmetric types and no quantized biases.",
        choices=("onnxruntime", "tensorrt"),
        spellings=("--for",),
    )
    weights: str = param(
        "int8",
        label="Weights",
        help="Element type of weights.",
        choices=("int8", "uint8", "int4", "uint4", "int16", "uint16", "fp8"),
        spellings=("--weights",),
    )
    activations: str = param(
        "int8",
        label="Activations",
        help="Element type of activations.",
        choices=("int8", "uint8", "int16", "uint16", "fp8"),
        spellings=("--activations",),
    )
    block: int = param(
        128,
        label="Block size",
        help="How many weights have a scale in common, with weights only.",
        minimum=16,
        maximum=256,
        spellings=("--block",),
        metavar="N",
    )
    method: str = param(
        "auto",
        label="Method",
        help="How ranges are found; auto: minmax, and the best of all where values come out wrong.",
        choices=("auto", "minmax", "entropy", "percentile"),
        spellings=("--method",),
    )
    ops: tuple[str, ...] = param(
        (),
        label="Operators",
        help="Quantize only these operators, separated by commas. By default all that can be, and"
        " of dynamic quantization those that make the model faster here.",
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
        True,
        label="Per channel",
        help="A scale for each channel of a weight, where the model's opset has that.",
        spellings=("--per-channel",),
    )
    reduce_range: bool = param(
        False,
        label="Reduced range",
        help="7 bits for weights, for processors without VNNI.",
        spellings=("--reduce-range",),
    )


def run(request: Request) -> Iterator[Event]:
    """Quantize.

    Raises:
        UsageError: There is no calibration data, or an excluded node is not there.
        InputError: The model or an input cannot be read, or does not fit; names the file.
        UnavailableError: ONNX Runtime is not installed.
        ActivityError: It failed, or ONNX Runtime cannot use the result.
        SaveError: The result cannot be written.
    """
    from dld_tui.backends.conversion import quantization
    from dld_tui.core.conversion.copies import open_model

    _require_settings(request)
    if absent := quantization.missing():
        raise UnavailableError(
            f"{absent[0]} is not installed", hint=f"Install it with: {quantization.INSTALL}"
        )
    yield Progress(0, None, stage="Opening the model")
    with contextlib.closing(open_model(request.model)) as document:
        _require_nodes(document, request.exclude)
        yield from _quantized(request, document)


def _require_settings(request: Request) -> None:
    """Refuse settings that do not go together.

    Raises:
        UsageError: Says which.
    """
    if request.weights_only and request.dynamic:
        raise UsageError("--weights-only computes in floating point: leave out --dynamic")
    if request.weights_only and request.weights not in ("int4", "uint4", "int8", "uint8"):
        raise UsageError(f"--weights-only stores int4, uint4, int8 or uint8, not {request.weights}")
    if not (request.dynamic or request.weights_only) and request.calibration is None:
        raise UsageError(
            "static quantization needs --calibration DIR", hint="Or add --dynamic or --weights-only"
        )
    if request.runtime == "tensorrt":
        if request.dynamic:
            raise UsageError("TensorRT has no dynamic quantization", hint="Give --calibration DIR")
        types = (request.weights, request.activations)
        if not request.weights_only and types not in (("int8", "int8"), ("fp8", "fp8")):
            raise UsageError(f"TensorRT takes int8 or fp8 for both, not {' and '.join(types)}")
        if request.weights_only and request.weights not in ("int4", "int8"):
            raise UsageError(f"TensorRT takes symmetric weights, not {request.weights}")
    if "fp8" in (request.weights, request.activations) and request.method != "auto":
        raise UsageError("fp8 has one method to find ranges: leave out --method")
    if request.repair and (request.values == "never" or not request.verify):
        raise UsageError("--repair needs the values to be compared")


@dataclass
class _Variant:
    """One way to quantize: what differs from the others that are tried."""

    method: str
    ops: tuple[str, ...]
    kept: dict[Node, str] = field(default_factory=dict)
    """Nodes that a repair leaves as they are, with the reasons."""


@dataclass
class _Quantized:
    """What one way has made."""

    variant: _Variant
    document: Document
    checked: Checked
    figures: dict[str, JSON]

    @property
    def noise(self) -> float:
        """The relative error of the worst output; 0 where values were not compared."""
        verdict = self.checked.verdict
        return 0.0 if verdict is None else max(row.error.noise for row in verdict.outputs)

    @property
    def milliseconds(self) -> float | None:
        """The median latency, where it was measured."""
        latency = cast("dict[str, float] | None", self.figures["latency_ms"])
        return None if latency is None else latency["after"]


def _quantized(request: Request, document: Document) -> Iterator[Event]:
    from dld_tui.backends.conversion.verification import Verifier
    from dld_tui.core import fmt
    from dld_tui.core.conversion.agreement import QUANTIZED
    from dld_tui.core.conversion.request import written

    with contextlib.ExitStack() as stack:
        specs, sets, shapes = _inputs(document), 0, set[_Shapes]()
        if request.calibration is not None and not (request.dynamic or request.weights_only):
            for sets, shape in enumerate(_checked(request.calibration, specs), start=1):
                shapes.add(shape)
                yield Progress(sets, None, "sets", "Reading the calibration inputs")
        prepared, names, notes = _prepared(document)
        stack.callback(prepared.close)
        base = _options(request, specs, is_uniform=len(shapes) == 1)
        computed = [] if request.weights_only else _with_computed_weights(prepared)
        if computed:
            names_of = fmt.plural(len(computed), "node")
            notes.append(f"{names_of} not quantized, as the weights are computed by other nodes")
        if request.per_channel and not _has_axes(document) and not request.dynamic:
            base["per_channel"] = False
            notes.append(
                "a scale for each tensor, as DequantizeLinear has one for each channel from opset"
                f" {_AXES_SINCE}: dld convert opset --to {_AXES_SINCE}"
            )
        verifier = stack.enter_context(
            Verifier(request, document, request.output, QUANTIZED, hint=_HINT,
                     calibration=None if request.inputs else request.calibration)
        )  # fmt: skip

        def attempt(variant: _Variant) -> Generator[Event, None, _Quantized]:
            kept = [names[_place(node)] for node in variant.kept]
            excluded: list[JSON] = [*request.exclude, *computed, *kept]
            options = base | {
                "method": variant.method, "ops": [*variant.ops], "exclude": excluded
            }  # fmt: skip
            result = yield from _by_library(prepared, options, stack, sets)
            checked = yield from verifier.check(result)
            verified = yield from verifier.figures(result, checked, variant.kept, _advice)
            return _Quantized(variant, result, checked, verified)

        best = yield from _best(request, document, verifier, attempt, notes)
        if _quantized_nodes(best.document) <= _quantized_nodes(document):
            notes.append("nothing was quantized: no operator that can be has a weight or is chosen")
        yield from written(
            document, best.document, request.output, notes=[*notes, *best.checked.notes],
            more={"sets": sets, "method": best.variant.method, "ops": [*best.variant.ops],
                  **best.figures},
        )  # fmt: skip


def _best(
    request: Request,
    document: Document,
    verifier: Verifier,
    attempt: Callable[[_Variant], Generator[Event, None, _Quantized]],
    notes: list[str],
) -> Generator[Event, None, _Quantized]:
    """Quantize in several ways where nobody has chosen one, and return the best."""
    ops = _chosen_ops(request)
    methods = [request.method]
    if request.method == "auto":
        methods = ["minmax", "percentile", "entropy"]
    if "fp8" in (request.weights, request.activations):
        methods = ["distribution"]
    best = yield from attempt(_Variant(methods[0], ops))
    if request.dynamic and not ops and _has(document, "Conv"):
        best = yield from _faster(best, attempt, notes)
    if not (request.dynamic or request.weights_only):
        for method in methods[1:] if best.checked.is_wrong else ():
            yield Log(f"values are wrong with {best.variant.method}; trying {method}")
            other = yield from attempt(_Variant(method, ops))
            if (other.checked.is_wrong, other.noise) < (best.checked.is_wrong, best.noise):
                best = other
        if best.variant.method != methods[0]:
            notes.append(f"ranges found by {best.variant.method}, which gives better values here")
    if request.repair:
        best = yield from _repaired(best, verifier, attempt)
    return best


def _faster(
    every: _Quantized,
    attempt: Callable[[_Variant], Generator[Event, None, _Quantized]],
    notes: list[str],
) -> Generator[Event, None, _Quantized]:
    """Leave convolutions in floating point where that is faster: ConvInteger mostly is slow."""
    yield Log("measuring the model with convolutions in floating point, too")
    matrices = yield from attempt(_Variant(every.variant.method, _MATRICES))
    times = every.milliseconds, matrices.milliseconds
    slower = times[0] is None or times[1] is None or times[1] <= times[0]
    if not slower and not every.checked.is_wrong:
        return every
    why = "wrong values with them"
    if times[0] is not None and times[1] is not None:
        why = f"{times[0]:.3g} ms with them, {times[1]:.3g} ms without"
    notes.append(f"convolutions stay in floating point, which is better here: {why} (--ops)")
    return matrices


def _repaired(
    first: _Quantized,
    verifier: Verifier,
    attempt: Callable[[_Variant], Generator[Event, None, _Quantized]],
) -> Generator[Event, None, _Quantized]:
    """Leave nodes as they were until values are near enough; the last result if they never are."""
    best, kept = first, dict(first.variant.kept)
    for count in range(_ROUNDS):
        if not best.checked.is_wrong:
            break
        more = verifier.to_keep(best.checked, kept, 1 << count)
        if not more:
            break
        kept = kept | more
        yield Log(f"outputs are not near enough: {len(kept):,} nodes left as they were now")
        best = yield from attempt(_Variant(first.variant.method, first.variant.ops, kept))
    return best


def _by_library(
    prepared: Document, options: dict[str, JSON], stack: contextlib.ExitStack, sets: int
) -> Generator[Event, None, Document]:
    from dld_tui.backends.conversion import quantization
    from dld_tui.backends.conversion.library_file import by_library

    try:
        return (
            yield from by_library(
                prepared, quantization.__name__, options, "Quantizing", stack, sets
            )
        )
    except ActivityError as error:
        raise ActivityError(error.message, hint=_WAY_OUT, details=error.details) from error


def _advice(first: Culprit) -> str:
    from dld_tui.core.text import clip, visible

    node = clip(visible(first.node), 80, keep="middle")
    return f"--exclude {node} leaves it as it was; --repair leaves all such nodes"


def _with_computed_weights(prepared: Document) -> list[str]:
    """Return the names of nodes whose weights are no initializers, which the library refuses."""
    main = prepared.main
    stored = main.named("initializer")
    return [
        node.name
        for node in main.nodes
        if node.op_type in _WEIGHTED and len(node.inputs) > 1 and node.inputs[1] not in stored
    ]


def _has(document: Document, op_type: str) -> bool:
    """Return whether a node of an operator is anywhere in a model."""
    return any(scope.nodes_of_type(op_type) for scope in document.scopes())


def _place(node: Node) -> tuple[tuple[str, ...], str]:
    return tuple(node.scope.path), node.ref


def _prepared(
    document: Document,
) -> tuple[Document, dict[tuple[tuple[str, ...], str], str], list[str]]:
    """Return a copy in which ONNX Runtime finds what can be quantized.

    Returns:
        The copy, the names of its nodes by scope and ref as they were before it was changed
        further, and notes on what was done.
    """
    from dld_tui.core import fmt
    from dld_tui.core.conversion.copies import copy_of, inline_calls, lift_constants

    prepared = copy_of(document)
    _import_once(prepared)
    inlined = inline_calls(prepared)
    names = _named(prepared)
    lifted = lift_constants(prepared)
    notes = []
    if inlined:
        calls = fmt.plural(inlined, "call")
        notes.append(f"{calls} of local functions replaced by the nodes of the function")
    if lifted:
        notes.append(f"{fmt.plural(lifted, 'Constant node')} made initializers")
    return prepared, names, notes


def _named(prepared: Document) -> dict[tuple[tuple[str, ...], str], str]:
    """Give names to the nodes that have none, as ONNX Runtime excludes nodes by name only."""
    from dld_tui.core.document.edits.nodes import free_node_name
    from dld_tui.core.document.history import Transaction
    from dld_tui.core.document.primitives import SetText

    transaction, names = Transaction("name_nodes", {}), {}
    for scope in prepared.main.walk():
        for node, place in [(node, _place(node)) for node in scope.nodes]:
            if not node.name:
                name = free_node_name(scope, f"node_of_{next(filter(None, node.outputs), '')}")
                transaction.do(SetText(scope, "node", node, node.proto, "name", None, name))
            names[place] = node.name
    return names


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
    inputs: list[JSON] = [
        {"name": spec.name, "dtype": spec.dtype,
         "dims": None if spec.dims is None else [*spec.dims]}
        for spec in specs
    ]  # fmt: skip
    return {
        "dynamic": request.dynamic, "weights_only": request.weights_only,
        "runtime": request.runtime, "weights": request.weights, "block": request.block,
        "activations": request.activations, "per_channel": request.per_channel,
        "reduce_range": request.reduce_range, "inputs": inputs, "is_uniform": is_uniform,
        "calibration": "" if request.calibration is None else str(request.calibration.absolute()),
    }  # fmt: skip


def _require_nodes(document: Document, names: Sequence[str]) -> None:
    for name in names:
        if not any(scope.nodes_named(name) for scope in document.scopes()):
            raise UsageError(f"no node is named {name!r}", hint="See dld inspect --nodes")


def _chosen_ops(request: Request) -> tuple[str, ...]:
    return tuple(op.strip() for text in request.ops for op in text.split(",") if op.strip())


def _has_axes(document: Document) -> bool:
    return document.opset_imports.get("", _AXES_SINCE) >= _AXES_SINCE


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
    from dld_tui.core.inputs.feeds import load_input_sets, set_folders

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
