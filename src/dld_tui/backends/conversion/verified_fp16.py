"""A conversion to float16 or bfloat16 by our own converter, verified, and repaired on request."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import monotonic

from dld_tui.backends.conversion.verification import VerificationOutcome, Verifier
from dld_tui.backends.onnxruntime.types import contrib_types
from dld_tui.core.accuracy.search import minimal_set
from dld_tui.core.conversion.accuracy_criteria import AccuracyCriteria, NarrowType
from dld_tui.core.conversion.error_attribution import FailingNode
from dld_tui.core.conversion.fp16 import Fp16Model, Fp16Options, fp16_steps
from dld_tui.core.conversion.request import HalfRequest
from dld_tui.core.conversion.result import OwnHalfModel, write_result
from dld_tui.core.document.document import Document
from dld_tui.core.document.node import Node
from dld_tui.core.errors import ActivityError
from dld_tui.core.events import Event, Log, Progress
from dld_tui.core.text import clip, visible

_ROUNDS = 12
_TRIALS, _TRIAL_SECONDS = 16, 20.0
"""So many trials for the fewest nodes are made, and more for as long as this takes."""
HINT = "Keep the node in float32: --node-block NAME or --op-block TYPE"


@dataclass(frozen=True)
class _Float32Parts:
    """What stays as it was, with the reasons."""

    nodes: Mapping[Node, str] = field(default_factory=dict)
    borders: Mapping[str, str] = field(default_factory=dict)
    """Inputs and outputs of the model."""


@dataclass(frozen=True)
class _Attempt:
    """What came of one choice. Close the document of the model."""

    kept: _Float32Parts
    model: Fp16Model
    checked: VerificationOutcome


def convert(
    request: HalfRequest,
    document: Document,
    criteria: AccuracyCriteria,
) -> Iterator[Event]:
    """Convert, verify, repair and write; yields the events that end the job."""
    narrow = criteria.narrow
    assert narrow is not None
    with (
        contextlib.ExitStack() as stack,
        Verifier(request, document, request.output, criteria, hint=HINT) as verifier,
    ):
        repair = _Repair(request, document, narrow, verifier, stack)
        best = yield from repair.attempt(_Float32Parts())
        if request.repair and best.checked.is_wrong:
            best = yield from repair.until_good(best)
            if not best.checked.is_wrong:
                best = yield from repair.with_fewest(best)
        half, kept, checked = best.model, best.kept, best.checked
        if not half.nodes and not kept.nodes:
            checked.verdict, checked.skipped = None, f"nothing was converted to {narrow.dtype}"
        verified = yield from verifier.figures(
            half.document, checked, kept.nodes, own_advice(narrow)
        )
        ends = [f"{visible(name)} stays float32: {why}" for name, why in kept.borders.items()]
        result = partial(
            OwnHalfModel, values=verified.values, latency_ms=verified.latency_ms,
            nodes=half.nodes, casts=half.casts, weights=half.weights,
            kept=dict(half.kept.most_common()), inlined=half.inlined, losses=half.losses,
            to=narrow.dtype, library="own", range_check=request.range_check,
        )  # fmt: skip
        notes = [*half.notes, *ends, *repair.notes, *checked.notes]
        yield from write_result(document, half.document, request.output, result, notes)


class _Repair:
    """Looks for what has to stay as it was, by trials."""

    def __init__(
        self,
        request: HalfRequest,
        document: Document,
        narrow: NarrowType,
        verifier: Verifier,
        stack: contextlib.ExitStack,
    ) -> None:
        self._request, self._document, self._narrow = request, document, narrow
        self._verifier, self._stack = verifier, stack
        self.notes: list[str] = []

    def attempt(self, kept: _Float32Parts) -> Generator[Event, None, _Attempt]:
        """Convert, and compare with the original."""
        model = yield from self._converted(kept)
        self._stack.callback(model.document.close)
        return _Attempt(kept, model, (yield from self._verifier.check(model.document)))

    def _converted(self, kept: _Float32Parts) -> Generator[Event, None, Fp16Model]:
        return (yield from converted(
            self._request, self._document, self._narrow, [*kept.nodes], [*kept.borders]
        ))  # fmt: skip

    def until_good(self, best: _Attempt) -> Generator[Event, None, _Attempt]:
        """Keep more and more until values are near enough; the last attempt if they never are."""
        verifier, borders = self._verifier, dict[str, str]()
        if not self._request.keep_io_types:
            borders = verifier.unfit_borders
        for count in range(_ROUNDS):
            more = verifier.to_keep(best.checked, best.kept.nodes, 1 << count)
            if not more and best.kept.borders.keys() >= borders.keys():
                break
            kept = _Float32Parts({**best.kept.nodes, **more}, borders)
            yield Log(f"outputs are not close enough: {len(kept.nodes):,} nodes in float32 now")
            best = yield from self.attempt(kept)
            if not best.checked.is_wrong:
                break
        return best

    def with_fewest(self, good: _Attempt) -> Generator[Event, None, _Attempt]:
        """Give back what need not stay: trials for as long as there are few, or time."""
        choices: list[Node | str] = [*good.kept.borders, *good.kept.nodes]
        everything = frozenset(map(str, range(len(choices))))
        known: dict[frozenset[str], bool] = {frozenset(): False, everything: True}
        search, best, begin = (
            minimal_set(sorted(everything, key=int), known),
            good.kept,
            monotonic(),
        )
        is_proven, answer = False, None
        for count in itertools.count(1):
            try:
                trial = next(search) if answer is None else search.send(answer)
            except StopIteration:
                is_proven = True
                break
            if count > _TRIALS and monotonic() - begin > _TRIAL_SECONDS:
                break
            places = [choices[int(place)] for place in sorted(trial, key=int)]
            kept = _Float32Parts(
                {choice: good.kept.nodes[choice] for choice in places if isinstance(choice, Node)},
                {choice: good.kept.borders[choice] for choice in places if isinstance(choice, str)},
            )
            yield Log(f"trying with {len(trial):,} of {len(choices):,} in float32")
            model = yield from self._converted(kept)
            with contextlib.closing(model.document):
                answer = not self._verifier.problem(model.document)
            if answer and len(trial) < len(best.nodes) + len(best.borders):
                best = kept
        if not is_proven:
            self.notes.append("fewer nodes may be enough: the search for the fewest was stopped")
        if best is good.kept:
            return good
        try:
            repaired = yield from self.attempt(best)
        except ActivityError:
            return good
        return good if repaired.checked.is_wrong else repaired


def converted(
    request: HalfRequest,
    document: Document,
    narrow: NarrowType,
    kept: Sequence[Node] = (),
    borders: Sequence[str] = (),
) -> Generator[Event, None, Fp16Model]:
    """Return a copy of a model in a narrow type; the copy is to be closed."""
    yield Progress(0, None, stage="Inferring types")
    places = frozenset((tuple(node.scope.path), node.ref) for node in kept)
    options = Fp16Options(
        request.keep_io_types, frozenset(borders), blocked(request), request.node_block, places,
        narrow, contrib_types,
    )  # fmt: skip
    steps = fp16_steps(document, options)
    while True:
        try:
            done, total = next(steps)
        except StopIteration as end:
            model: Fp16Model = end.value
            return model
        yield Progress(done, total, "B", "Converting weights")


def blocked(request: HalfRequest) -> tuple[str, ...]:
    """Return the operators that stay in float32."""
    return tuple(op.strip() for text in request.op_block for op in text.split(",") if op.strip())


def own_advice(narrow: NarrowType) -> Callable[[FailingNode], str]:
    """Return what can be done where the own converter gives wrong values."""
    return lambda first: f"{_block(first)}; {_searches(narrow)}"


def library_advice(library: str, narrow: NarrowType) -> Callable[[FailingNode], str]:
    """Return what can be done where the converter of a library gives wrong values."""
    if library == "polygraphy":  # it has no block lists
        return lambda first: f"with --library own, {_block(first)}; there, {_searches(narrow)}"
    return lambda first: f"{_block(first)}; with --library own, {_searches(narrow)}"


def _searches(narrow: NarrowType) -> str:
    return (
        "--repair keeps all such nodes in float32, and dld accuracy MODEL --search"
        f" {narrow.precision} finds the fewest"
    )


def _block(first: FailingNode) -> str:
    node, op_type = (clip(visible(text), 80, keep="middle") for text in (first.node, first.op_type))
    return f"--node-block {node} or --op-block {op_type} keeps it in float32"
