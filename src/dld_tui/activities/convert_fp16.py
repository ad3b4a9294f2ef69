"""A model in float16, verified with ONNX Runtime before it is written.

Result: that of :func:`dld_tui.core.conversion.result.written` with ``"nodes", "casts", "weights",
"kept": {REASON: NODES}, "inlined", "losses": [{"name", "count", "overflow", "underflow",
"largest"}], "library"``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dld_tui.core.conversion.request import ConversionRequest
from dld_tui.core.events import Event, Progress
from dld_tui.core.params import param
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.conversion.fp16 import Fp16Model
    from dld_tui.core.document.document import Document

_HINT = "Keep the node in float32: --node-block NAME or --op-block TYPE"


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
    verify: bool = param(
        True,
        label="Verify",
        help="Load and run the result with ONNX Runtime before it is written.",
        spellings=("--verify",),
    )


def run(request: Request) -> Iterator[Event]:
    """Convert.

    Raises:
        InputError: The model cannot be opened, or a weight not be read.
        UsageError: A blocked node is not there.
        UnavailableError: The library is not installed.
        ActivityError: ONNX Runtime cannot use the result; names the node where it does.
        SaveError: The result cannot be written.
    """
    from dld_tui.core.conversion.copies import open_model

    yield Progress(0, None, stage="Opening the model")
    with contextlib.closing(open_model(request.model)) as document, contextlib.ExitStack() as stack:
        if request.library == "own":
            yield from _own(request, document, stack)
        else:
            yield from _library(request, document, stack)


def _own(request: Request, document: Document, stack: contextlib.ExitStack) -> Iterator[Event]:
    from dld_tui.core.conversion.fp16 import Fp16Options, fp16_steps

    yield Progress(0, None, stage="Inferring types")
    ops = tuple(op.strip() for text in request.op_block for op in text.split(",") if op.strip())
    options = Fp16Options(request.keep_io_types, ops, request.node_block)
    steps = fp16_steps(document, options)
    while True:
        try:
            done, total = next(steps)
        except StopIteration as end:
            made: Fp16Model = end.value
            break
        yield Progress(done, total, "B", "Converting weights")
    stack.callback(made.document.close)
    losses: list[JSON] = [loss.to_json() for loss in made.losses]
    yield from _finish(
        request, document, made.document, made.notes,
        {"nodes": made.nodes, "casts": made.casts, "weights": made.weights,
         "kept": dict(made.kept.most_common()), "inlined": made.inlined, "losses": losses},
    )  # fmt: skip


def _library(request: Request, document: Document, stack: contextlib.ExitStack) -> Iterator[Event]:
    from dld_tui.backends.library_fp16 import convert

    ops = [op.strip() for text in request.op_block for op in text.split(",") if op.strip()]
    converted = yield from convert(
        document, request.library, stack,
        {"keep_io_types": request.keep_io_types, "op_block": [*ops],
         "node_block": [*request.node_block]},
    )  # fmt: skip
    yield from _finish(request, document, converted, [], {"losses": []})


def _finish(
    request: Request,
    before: Document,
    after: Document,
    notes: list[str],
    more: dict[str, JSON],
) -> Iterator[Event]:
    from dld_tui.core.conversion.result import written

    if request.verify:
        from dld_tui.backends.converted import verify

        yield Progress(0, None, stage="Trying the result with ONNX Runtime")
        notes = [*notes, *verify(before, after, request.output, request.shape, _HINT)]
    more |= {"library": request.library, "range_check": request.range_check}
    yield from written(before, after, request.output, notes=notes, more=more)
