"""A model in float16, verified with ONNX Runtime before it is written.

Result: that of :func:`dld_tui.core.conversion.result.written` with ``"nodes", "casts", "weights",
"kept": {REASON: NODES}, "inlined", "losses": [{"name", "count", "overflow", "underflow",
"largest"}], "library", "values"``. `values` says how near the results are to those in float32:
``{"skipped": WHY}`` or ``{"is_good", "outputs": {NAME: {"problem", ...}}, "first": CULPRIT or null,
"repaired": [CULPRIT, ...]}`` with culprits as :mod:`dld_tui.core.conversion.culprits` has them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from dld_tui.core.conversion.request import ConversionRequest
from dld_tui.core.errors import ActivityError, DldError, UnavailableError, UsageError
from dld_tui.core.events import Event, Log, Progress
from dld_tui.core.params import param
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.backends.fp16_values import ValueCheck
    from dld_tui.core.conversion.fp16 import Fp16Model
    from dld_tui.core.document.document import Document
    from dld_tui.core.document.node import Node

_HINT = "Keep the node in float32: --node-block NAME or --op-block TYPE"
_MANY = 64 << 20
"""Bytes of weights from which values are not compared unasked: two models would be in memory."""
_ROUNDS = 12


@dataclass(frozen=True)
class Request(ConversionRequest):
    """Which model, where to, and what stays in float32."""

    keep_io_types: bool = param(
        False,
        label="Keep I/O types",
        help="Inputs and outputs of the model stay float32.",
        spellings=("--keep-io-types",),
    )
    op_block: tuple[str, ...] = param(
        (),
        label="Blocked operators",
        help="Operators that stay in float32, separated by commas.",
        spellings=("--op-block",),
        metavar="OP,OP",
    )
    node_block: tuple[str, ...] = param(
        (),
        label="Blocked nodes",
        help="Name of a node that stays in float32; * stands for any characters.",
        spellings=("--node-block",),
        metavar="NAME",
    )
    range_check: bool = param(
        False,
        label="Range check",
        help="List all weights with values that float16 cannot hold.",
        spellings=("--range-check",),
    )
    library: str = param(
        "own",
        label="Converter",
        help="own keeps all of the model and takes little memory; the others load the whole model.",
        choices=("own", "onnxruntime", "polygraphy"),
        spellings=("--library",),
    )
    shape: tuple[str, ...] = param(
        (),
        label="Input shapes",
        help="Shape of an input when the result is tried, as NAME:1x3x224x224.",
        kind="shapes",
        spellings=("--shape",),
        metavar="NAME:DIMS",
    )
    values: str = param(
        "auto",
        label="Values",
        help="Whether to compare the results with those in float32; auto: with up to 67 MB of"
        " weights.",
        choices=("auto", "always", "never"),
        spellings=("--values",),
    )
    inputs: Path | None = param(
        None,
        label="Input data",
        help="Inputs for that: folder with input_0.pb, … or NAME.npy, or with folders"
        " test_data_set_0, … of these. By default they are random.",
        spellings=("--inputs",),
        kind="folder",
        metavar="DIR",
    )
    tolerance: tuple[str, ...] = param(
        (),
        label="Tolerances",
        help="What outputs may be off: atol=1e-3,rtol=1e-2 or cosine=0.999 or snr=30 for all,"
        " NAME:atol=… for one. By default that is atol=1e-3,rtol=1e-2 or snr=30.",
        spellings=("--tolerance",),
        metavar="SPEC",
    )
    repair: bool = param(
        False,
        label="Repair",
        help="Where outputs are not near enough, keep the nodes that cause it in float32.",
        spellings=("--repair",),
    )
    verify: bool = param(
        True,
        label="Verify",
        help="Load and run the result with ONNX Runtime before it is written.",
        spellings=("--verify",),
    )


def run(request: Request) -> Iterator[Event]:
    """Convert.

    Raises:
        InputError: The model cannot be opened, or a weight or an input not be read.
        UsageError: A blocked node is not there, or settings do not go together.
        UnavailableError: The library is not installed.
        ActivityError: ONNX Runtime cannot use the result; names the node where it does.
        SaveError: The result cannot be written.
    """
    from dld_tui.core.conversion.copies import open_model

    if request.repair and request.library != "own":
        raise UsageError("--repair needs --library own")
    if request.repair and (request.values == "never" or not request.verify):
        raise UsageError("--repair needs the values to be compared")
    yield Progress(0, None, stage="Opening the model")
    with contextlib.closing(open_model(request.model)) as document, contextlib.ExitStack() as stack:
        if request.library == "own":
            yield from _own(request, document, stack)
        else:
            yield from _library(request, document, stack)


def _own(request: Request, document: Document, stack: contextlib.ExitStack) -> Iterator[Event]:
    from dld_tui.backends.fp16_values import culprits
    from dld_tui.core.conversion.result import written

    checked = yield from _value_check(request, document, stack)
    kept: dict[Node, str] = {}
    for attempt in range(_ROUNDS):
        made = yield from _converted(request, document, kept)
        with contextlib.ExitStack() as closing:
            closing.callback(made.document.close)
            notes = [*made.notes, *(yield from _tried(request, document, made.document))]
            values: dict[str, JSON] = {"skipped": checked if isinstance(checked, str) else ""}
            if not isinstance(checked, str) and not made.nodes and not kept:
                values["skipped"] = "nothing is in float16"
            elif not isinstance(checked, str):
                yield Progress(0, None, stage="Comparing the values with float32")
                verdict = checked.run(made.document)
                values |= verdict.to_json()
                more = checked.to_keep(verdict, kept, 1 << attempt) if request.repair else {}
                if more and attempt < _ROUNDS - 1:
                    kept |= more
                    yield Log(f"outputs are not near enough: {len(kept):,} nodes in float32 now")
                    continue
                values["repaired"] = [one.to_json() for one in culprits(kept)]
            losses: list[JSON] = [loss.to_json() for loss in made.losses]
            yield from written(
                document, made.document, request.output, notes=notes,
                more={"nodes": made.nodes, "casts": made.casts, "weights": made.weights,
                      "kept": dict(made.kept.most_common()), "inlined": made.inlined,
                      "losses": losses, "values": values, **_settings(request)},
            )  # fmt: skip
            return


def _converted(
    request: Request, document: Document, kept: dict[Node, str]
) -> Generator[Event, None, Fp16Model]:
    from dld_tui.core.conversion.fp16 import Fp16Options, fp16_steps

    yield Progress(0, None, stage="Inferring types")
    places = frozenset((tuple(node.scope.path), node.ref) for node in kept)
    options = Fp16Options(request.keep_io_types, _blocked(request), request.node_block, places)
    steps = fp16_steps(document, options)
    while True:
        try:
            done, total = next(steps)
        except StopIteration as end:
            made: Fp16Model = end.value
            return made
        yield Progress(done, total, "B", "Converting weights")


def _library(request: Request, document: Document, stack: contextlib.ExitStack) -> Iterator[Event]:
    from dld_tui.backends.library_fp16 import convert
    from dld_tui.core.conversion.result import written

    try:
        result = yield from convert(
            document, request.library, stack,
            {"keep_io_types": request.keep_io_types, "op_block": [*_blocked(request)],
             "node_block": [*request.node_block]},
        )  # fmt: skip
        notes = yield from _tried(request, document, result)
    except ActivityError as error:
        way_out = yield from _way_out(request, document)
        raise ActivityError(
            error.message, where=error.where, hint=way_out, details=error.details
        ) from error
    checked = yield from _value_check(request, document, stack)
    values: dict[str, JSON] = {"skipped": checked if isinstance(checked, str) else ""}
    if not isinstance(checked, str):
        yield Progress(0, None, stage="Comparing the values with float32")
        values |= {**checked.run(result).to_json(), "repaired": []}
    yield from written(
        document, result, request.output, notes=notes,
        more={"losses": [], "values": values, **_settings(request)},
    )  # fmt: skip


def _way_out(request: Request, document: Document) -> Generator[Event, None, str]:
    """Return what can be done where a library has failed, when that has been tried."""
    yield Log("it failed; trying the own converter, to say whether that can do it")
    try:
        made = yield from _converted(request, document, {})
        with contextlib.closing(made.document):
            yield from _tried(request, document, made.document)
    except DldError:
        return _HINT
    return f"--library own converts it to a model that ONNX Runtime takes. {_HINT}"


def _blocked(request: Request) -> tuple[str, ...]:
    return tuple(op.strip() for text in request.op_block for op in text.split(",") if op.strip())


def _settings(request: Request) -> dict[str, JSON]:
    return {"library": request.library, "range_check": request.range_check}


def _tried(
    request: Request, before: Document, after: Document
) -> Generator[Event, None, list[str]]:
    """Load and run a result; return what could not be found out."""
    if not request.verify:
        return []
    from dld_tui.backends.converted import verify

    return (yield from verify(before, after, request.output, request.shape, _HINT))


def _value_check(
    request: Request, document: Document, stack: contextlib.ExitStack
) -> Generator[Event, None, ValueCheck | str]:
    """Return what compares values, or why they are not compared."""
    if not request.verify or request.values == "never":
        return "it is switched off"
    from dld_tui.backends.fp16_values import Question, ValueCheck
    from dld_tui.core import fmt
    from dld_tui.core.conversion.summary import figures

    if request.values == "auto" and cast("int", figures(document)["weight_bytes"]) > _MANY:
        return f"it has more than {fmt.size(_MANY)} of weights (--values always)"
    yield Progress(0, None, stage="Running the model in float32")
    question = Question(request.shape, request.inputs, request.tolerance)
    try:
        check = ValueCheck(document, question)
    except (ActivityError, UnavailableError) as error:
        return f"the model cannot be run in float32: {error.message}"
    stack.callback(check.close)
    return check
