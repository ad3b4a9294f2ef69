"""A conversion to float16 or bfloat16 by the own converter, verified, and repaired when asked for.

Result: that of :func:`dld_tui.core.conversion.request.written` with ``"nodes", "casts", "weights",
"kept": {REASON: NODES}, "inlined", "losses": [{"name", "count", "overflow", "underflow",
"largest"}], "to"`` and what :mod:`dld_tui.backends.conversion.verification` says.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence

from dld_tui.backends.conversion.verification import Verifier
from dld_tui.core.conversion.agreement import Agreement, NarrowType
from dld_tui.core.conversion.error_attribution import Culprit
from dld_tui.core.conversion.fp16 import Fp16Model, Fp16Options, fp16_steps
from dld_tui.core.conversion.request import HalfRequest, written
from dld_tui.core.document.document import Document
from dld_tui.core.document.node import Node
from dld_tui.core.errors import UsageError
from dld_tui.core.events import Event, Log, Progress
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON

_ROUNDS = 12
HINT = "Keep the node in float32: --node-block NAME or --op-block TYPE"


def require_repairable(request: HalfRequest) -> None:
    """Refuse a repair without a comparison.

    Raises:
        UsageError: Values are not to be compared.
    """
    if request.repair and (request.values == "never" or not request.verify):
        raise UsageError("--repair needs the values to be compared")


def convert(
    request: HalfRequest,
    document: Document,
    agreement: Agreement,
    settings: Mapping[str, JSON],
) -> Iterator[Event]:
    """Convert, verify, repair and write; yields the events that end the job."""
    narrow = agreement.narrow
    assert narrow is not None
    kept: dict[Node, str] = {}
    with Verifier(request, document, request.output, agreement, hint=HINT) as verifier:
        for attempt in range(_ROUNDS):
            with contextlib.ExitStack() as closing:
                made = yield from converted(request, document, narrow, list(kept))
                closing.callback(made.document.close)
                checked = yield from verifier.check(made.document)
                more = verifier.to_keep(checked, kept, 1 << attempt) if request.repair else {}
                if more and attempt < _ROUNDS - 1:
                    kept |= more
                    yield Log(f"outputs are not near enough: {len(kept):,} nodes in float32 now")
                    continue
                if not made.nodes and not kept:
                    checked.verdict, checked.skipped = None, f"nothing is in {narrow.dtype}"
                verified = yield from verifier.figures(
                    made.document, checked, kept, own_advice(narrow)
                )
                losses: list[JSON] = [loss.to_json() for loss in made.losses]
                yield from written(
                    document, made.document, request.output, notes=[*made.notes, *checked.notes],
                    more={"nodes": made.nodes, "casts": made.casts, "weights": made.weights,
                          "kept": dict(made.kept.most_common()), "inlined": made.inlined,
                          "losses": losses, "to": narrow.dtype, **verified, **settings},
                )  # fmt: skip
                return


def converted(
    request: HalfRequest, document: Document, narrow: NarrowType, kept: Sequence[Node] = ()
) -> Generator[Event, None, Fp16Model]:
    """Return a copy of a model in a narrow type; the copy is to be closed."""
    yield Progress(0, None, stage="Inferring types")
    places = frozenset((tuple(node.scope.path), node.ref) for node in kept)
    options = Fp16Options(
        request.keep_io_types, blocked(request), request.node_block, places, narrow
    )
    steps = fp16_steps(document, options)
    while True:
        try:
            done, total = next(steps)
        except StopIteration as end:
            made: Fp16Model = end.value
            return made
        yield Progress(done, total, "B", "Converting weights")


def blocked(request: HalfRequest) -> tuple[str, ...]:
    """Return the operators that stay in float32."""
    return tuple(op.strip() for text in request.op_block for op in text.split(",") if op.strip())


def own_advice(narrow: NarrowType) -> Callable[[Culprit], str]:
    """Return what can be done where the own converter gives wrong values."""
    return lambda first: f"{_block(first)}; {_searches(narrow)}"


def library_advice(library: str, narrow: NarrowType) -> Callable[[Culprit], str]:
    """Return what can be done where the converter of a library gives wrong values."""
    if library == "polygraphy":  # it has no block lists
        return lambda first: f"with --library own, {_block(first)}; there, {_searches(narrow)}"
    return lambda first: f"{_block(first)}; with --library own, {_searches(narrow)}"


def _searches(narrow: NarrowType) -> str:
    return (
        "--repair keeps all such nodes in float32, and dld accuracy MODEL --search"
        f" {narrow.precision} finds the fewest"
    )


def _block(first: Culprit) -> str:
    node, op_type = (clip(visible(text), 80, keep="middle") for text in (first.node, first.op_type))
    return f"--node-block {node} or --op-block {op_type} keeps it in float32"
