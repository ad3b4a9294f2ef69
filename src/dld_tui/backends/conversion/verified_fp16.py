"""A conversion to float16 or bfloat16 by our own converter, verified, and repaired on request."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property, partial
from time import monotonic
from typing import TypeAlias

from dld_tui.backends.conversion.soundness import write_sound
from dld_tui.backends.conversion.verification import VerificationOutcome, Verifier
from dld_tui.backends.onnxruntime.types import contrib_types
from dld_tui.core.conversion.accuracy_criteria import AccuracyCriteria, NarrowType
from dld_tui.core.conversion.error_attribution import FailingNode
from dld_tui.core.conversion.fp16 import Fp16Model, Fp16Options, fp16_steps
from dld_tui.core.conversion.request import HalfRequest
from dld_tui.core.conversion.result import OwnHalfModel
from dld_tui.core.conversion.search_key import search_conditions
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError
from dld_tui.core.events import Event, Progress
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.node import Node
from dld_tui.core.notes import texts
from dld_tui.core.params import deciding
from dld_tui.core.text import clip, comma_separated, visible
from dld_tui.core.trials import (
    Answer,
    KnownOutcomes,
    Limits,
    Outcome,
    RepairOutcome,
    Subset,
    Trials,
    Words,
    subset_key,
)

_ROUNDS = 12
_FEWEST = Limits(20.0, least=16)
"""Of the trials for the fewest nodes, unless the user limits them."""
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
        if request.repair:
            best = yield from repair.repaired()
        else:
            best = yield from repair.attempt(_Float32Parts())
        half, kept, checked = best.model, best.kept, best.checked
        unchanged = not half.nodes and not kept.nodes
        if unchanged:
            checked.verdict, checked.skipped = None, f"nothing was converted to {narrow.dtype}"
        verified = yield from verifier.figures(
            half.document, checked, kept.nodes, own_advice(narrow)
        )
        ends = [f"{visible(name)} stays float32: {why}" for name, why in kept.borders.items()]
        result = partial(
            OwnHalfModel, values=verified.values, latency_ms=verified.latency_ms,
            unchanged=unchanged, nodes=half.nodes, casts=half.casts, weights=half.weights,
            kept=dict(half.kept.most_common()), inlined=half.inlined, losses=half.losses,
            to=narrow.dtype, library="dld", range_check=request.range_check,
        )  # fmt: skip
        notes = [*half.notes, *ends, *repair.notes, *texts(checked.notes)]
        yield from write_sound(request, document, half.document, request.output, result, notes)


_Question: TypeAlias = "tuple[Subset, int]"
"""The parts that stay; and how many nodes to blame at most, 0 to blame none."""
_NODE, _BORDER = "node ", "border "


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
        self._attempts: dict[Subset, _Attempt] = {}
        self._reasons: dict[str, str] = {}
        """Why parts stay, in the order in which they were blamed."""
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

    def repaired(self) -> Generator[Event, None, _Attempt]:
        """Keep more and more until values are near enough, and give back what need not stay.

        Returns:
            The last attempt if values never are.
        """
        yield from self._verifier.prepare()
        conditions = search_conditions(
            deciding(self._request), self._document, [self._request.inputs]
        )
        began = monotonic()
        journal = KnownOutcomes.of(RepairOutcome, f"repair-{self._narrow.dtype}", conditions)
        self._stack.callback(journal.close)
        limit = self._request.limit
        trials = self._trials(journal, Limits(limit))
        found = yield from trials.grown(lambda kept, most: (kept, most), self._blamed, _ROUNDS)
        (last,) = found.tried or (frozenset[str](),)
        best = yield from self._attempt(last)
        if not found.is_whole:
            self.notes.append("the limit ended the repair; the same command resumes it")
            return best
        is_whole = True
        if found.things and best.checked.is_wrong:  # an earlier process found it to be good
            self.notes.append("values were right in one run and wrong in another")
        elif last and not best.checked.is_wrong:
            rest = _FEWEST if limit is None else Limits(max(0.0, limit - monotonic() + began))
            best, is_whole = yield from self._with_fewest(self._trials(journal, rest), last, best)
        if is_whole:
            journal.forget()
        return best

    def _trials(
        self, journal: KnownOutcomes[RepairOutcome], limits: Limits
    ) -> Trials[_Question, RepairOutcome]:
        return Trials(
            self._try,
            lambda question: f"{subset_key(question[0])} {question[1]}",
            journal,
            limits,
            lambda question: f"{len(question[0]):,} parts in float32",
            Words("good", "outputs are not close enough", "cannot be run"),
        )

    def _try(self, question: _Question) -> Generator[Event, None, RepairOutcome]:
        kept, most = question
        if most:
            checked = (yield from self._attempt(kept)).checked
            answer = Answer.INSUFFICIENT if checked.is_wrong else Answer.SUFFICIENT
            return RepairOutcome(answer, blamed=self._to_keep(checked, kept, most))
        model = yield from self._converted(self._parts(kept))
        with contextlib.closing(model.document):
            outcome = self._verifier.outcome(model.document)
        return RepairOutcome(outcome.answer, outcome.problem, seconds=outcome.seconds)

    def _attempt(self, kept: Subset) -> Generator[Event, None, _Attempt]:
        """Return the attempt that keeps some parts, which an earlier process may have made."""
        if kept not in self._attempts:
            self._attempts[kept] = yield from self.attempt(self._parts(kept))
        return self._attempts[kept]

    @cached_property
    def _nodes(self) -> dict[str, Node]:
        return {f"{_NODE}{name}": node for name, node in self._verifier.nodes.items()}

    def _to_keep(self, checked: VerificationOutcome, kept: Subset, most: int) -> dict[str, str]:
        names = {node: name for name, node in self._nodes.items()}
        nodes = self._verifier.to_keep(checked, self._parts(kept).nodes, most)
        blamed = {names[node]: why for node, why in nodes.items()}
        if checked.is_wrong and not self._request.keep_io_types:
            borders = self._verifier.unfit_io
            blamed |= {f"{_BORDER}{name}": why for name, why in borders.items()}
        return blamed

    def _blamed(self, outcome: RepairOutcome) -> list[str]:
        for name, why in outcome.blamed.items():
            self._reasons.setdefault(name, why)
        return [*outcome.blamed]

    def _parts(self, kept: Subset) -> _Float32Parts:
        reasons = {name: why for name, why in self._reasons.items() if name in kept}
        return _Float32Parts(
            {self._nodes[name]: why for name, why in reasons.items() if name.startswith(_NODE)},
            {name.removeprefix(_BORDER): why
             for name, why in reasons.items() if name.startswith(_BORDER)},
        )  # fmt: skip

    def _with_fewest(
        self, trials: Trials[_Question, RepairOutcome], kept: Subset, good: _Attempt
    ) -> Generator[Event, None, tuple[_Attempt, bool]]:
        """Give back what need not stay; return whether the search for that came to its end."""
        names = [name for name in self._reasons if name in kept]
        names.sort(key=lambda name: name.startswith(_NODE))
        known = {
            frozenset[str](): Outcome(Answer.INSUFFICIENT), kept: Outcome(Answer.SUFFICIENT)
        }  # fmt: skip
        found = yield from trials.smallest(names, lambda some: (some, 0), known=known)
        if not found.is_whole:
            self.notes.append("fewer nodes may be enough: the search for the fewest was stopped")
        fewest = frozenset(found.things or names)
        if fewest == kept:
            return good, found.is_whole
        try:
            repaired = yield from self._attempt(fewest)
        except ActivityError:
            return good, found.is_whole
        if not repaired.checked.is_wrong:
            return repaired, found.is_whole
        self.notes.append(
            f"{len(kept):,} parts stay in float32: with {len(fewest):,} of them, values were right"
            " in one run and wrong in another"
        )
        return good, found.is_whole


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
        request.keep_io_types, frozenset(borders), tuple(comma_separated(*request.op_block)),
        request.node_block, places, narrow, contrib_types,
    )  # fmt: skip
    steps = fp16_steps(document, options)
    while True:
        try:
            done, total = next(steps)
        except StopIteration as end:
            model: Fp16Model = end.value
            return model
        yield Progress(done, total, "B", "Converting weights")


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
