"""Whether the outputs of a converted model are those of the original."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from dld_tui.backends.accuracy.runs import Comparison, ModelSide, State, types_with
from dld_tui.backends.conversion.routing import (
    Routes,
    comparable_routes,
    routers_of,
    token_shape,
)
from dld_tui.backends.onnxruntime.limits import naming
from dld_tui.backends.onnxruntime.session import Session
from dld_tui.backends.onnxruntime.session_options import SessionSettings
from dld_tui.backends.onnxruntime.tensors import (
    TensorRunner,
    groups,
    settings_for_copies,
)
from dld_tui.backends.onnxruntime.types import contrib_types
from dld_tui.core import fmt
from dld_tui.core.accuracy.result import AccuracyRow, merged
from dld_tui.core.accuracy.tensor_errors import (
    Tolerances,
    compare,
    compare_element,
    elements_of,
    parse_tolerances,
)
from dld_tui.core.conversion.accuracy_criteria import (
    OPTIMIZED,
    AccuracyCriteria,
    NarrowType,
)
from dld_tui.core.conversion.copies import copy_of, inline_calls
from dld_tui.core.conversion.dequantize import avoid_wrong_kernels, compute_in_floats
from dld_tui.core.conversion.error_attribution import (
    FailingNode,
    MeasuredErrors,
    first_failing_node,
    nodes_to_keep,
    rounded_copy,
)
from dld_tui.core.conversion.fp16 import largest
from dld_tui.core.conversion.tensor_casting import CastSelection, candidates
from dld_tui.core.conversion.widening import widen
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import (
    DldError,
)
from dld_tui.core.files.model_set import discard_view, external_view
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.serialise import skeleton_bytes
from dld_tui.core.model.inputs.feeds import Feeds, load_input_sets, set_folders
from dld_tui.core.model.inputs.guess import (
    candidate_guesses,
    first_that_runs,
    guess_inputs,
    specs_for,
)
from dld_tui.core.model.inputs.shapes import AnyArray, numpy_dtype, parse_shapes
from dld_tui.core.model.operators.categories import RANDOM_OPERATORS
from dld_tui.core.types import FLOATS

UNOPTIMIZED = SessionSettings(
    optimization_level="disabled", quiet=True, config={"session.disable_prepacking": "1"}
)

_REFERENCE_SETTINGS = SessionSettings(optimization_level="disabled", quiet=True)
_TWO_NOISES_DB = 6.0
"""Original and result have the noise of such kernels each, together twice the power, and the noise
of a small tensor varies as much again."""
_MOVED = "that goes to other experts, whose scores are nearly equal"
_WRONG_KERNEL = "as ONNX Runtime's CPU kernel is wrong with packed ones"
_BUDGET = 100 << 20
"""Bytes of values that are held at a time."""


@dataclass(frozen=True)
class Question:
    """On what a result is tried, and how good it has to be."""

    shapes: Sequence[str] = ()
    """Of random inputs, ``NAME:1x3x224x224``."""
    folder: Path | None = None
    """Of inputs; None for random ones."""
    most_sets: int | None = None
    """How many sets of inputs of the folder are compared; None for all."""
    tolerances: Sequence[str] = ()
    """As :func:`~dld_tui.core.accuracy.tensor_errors.parse_tolerances` takes them; those of the
    criteria by default."""


@dataclass(frozen=True)
class Verdict:
    """What came of one result."""

    outputs: Sequence[AccuracyRow]
    first: FailingNode | None = None
    """The first node whose values are wrong; None when those of the outputs are right."""
    errors: MeasuredErrors | None = None
    as_written: Verdict | None = None
    """That on the result as it is written, where `outputs` are of it as ONNX Runtime optimizes it
    for this processor, which is farther off."""

    @property
    def is_good(self) -> bool:
        """Whether all outputs are near enough."""
        return not any(row.problem for row in self.outputs)

    @property
    def noise(self) -> float:
        """The relative error of the worst output."""
        return max((row.error.noise for row in self.outputs), default=0.0)


@dataclass(frozen=True)
class Terms:
    """How results are judged."""

    sets: Sequence[Mapping[str, Any]]
    """Inputs."""
    tolerances: Tolerances
    criteria: AccuracyCriteria | None
    """None where somebody gave tolerances, which are all that counts then."""


class ValueCheck:
    """Compares results with the model that they were made of. Close it.

    Args:
        original: That model; it stays as it is, and open until this is closed.
        asked: On what, and how good it has to be.
        criteria: What is near enough by default, and how a result is run.

    Raises:
        UsageError: A shape or a tolerance makes no sense.
        InputError: The inputs cannot be read, or do not fit.
        ActivityError: The model cannot be run.
    """

    def __init__(self, original: Document, asked: Question, criteria: AccuracyCriteria) -> None:
        self._strict = bool(asked.tolerances)
        self._criteria = criteria = criteria.of_model(original)
        self._tolerances = (
            parse_tolerances(asked.tolerances) if self._strict else criteria.tolerances
        )
        self._folder = original.path.parent if original.path is not None else None
        self._closing = contextlib.ExitStack()
        self._moved = 0
        self.document = copy_of(original)
        """The original, its calls of local functions replaced as a conversion does it."""
        try:
            inline_calls(self.document)
            if self._criteria.narrow is not None and self._criteria.narrow.dtype == "bfloat16":
                widen(self.document)  # what overflows float16 is no fault of bfloat16
            self._avoided = avoid_wrong_kernels(self.document)
            self.feeds = self._inputs(asked)
            """Sets of inputs that the original takes."""
        except BaseException:
            self.document.close()
            raise
        self._ranges: dict[str, float] = {}

    @property
    def terms(self) -> Terms:
        """How results are judged."""
        criteria = None if self._strict else self._criteria
        return Terms(self.feeds.sets, self._tolerances, criteria)

    @property
    def remarks(self) -> list[str]:
        """What was guessed of the inputs."""
        remarks = self.feeds.remarks
        if self._avoided:
            nodes = fmt.plural(self._avoided, "MatMulNBits node")
            remarks = [*remarks, f"float zero points for {nodes} with g_idx, {_WRONG_KERNEL}"]
        if self._moved:
            sequences = fmt.plural(self._moved, "sequence")
            remarks = [*remarks, f"only the tokens of {sequences} before the first one {_MOVED}"]
        return remarks

    def close(self) -> None:
        """Give back what it holds."""
        self._closing.close()
        self.document.close()

    def _runner(self, document: Document | None = None) -> TensorRunner:
        return TensorRunner(document or self.document, _REFERENCE_SETTINGS, folder=self._folder)

    def _side(self, document: Document) -> ModelSide:
        return ModelSide(document, _REFERENCE_SETTINGS, self._folder)

    def _inputs(self, asked: Question) -> Feeds:
        with naming(self.document), self._runner() as runner:
            specs, outputs = specs_for(runner.inputs, self.document), runner.outputs
            if asked.folder is not None:
                folders = set_folders(asked.folder)[: asked.most_sets]
                return Feeds([load_input_sets(folder, specs)[0].values for folder in folders])
            user_shapes = parse_shapes(asked.shapes, [spec.name for spec in specs])
            run = partial(runner.values, outputs)
            guess, _ = first_that_runs(candidate_guesses(specs, self.document, user_shapes), 0, run)
            draws = range(self._criteria.draws)
            sets: list[Mapping[str, Any]] = [guess.values(seed) for seed in draws]
            if self._criteria.is_rewrite and not user_shapes:
                with contextlib.suppress(DldError):  # it takes one only
                    two = guess_inputs(specs, self.document, None, batch=2).values(1)
                    if any(np.shape(two[name]) != np.shape(sets[0][name]) for name in two):
                        run(two)
                        sets.append(two)
            return Feeds(sets, guess)

    def run(self, result: Document) -> Verdict:
        """Compare a result; all of its tensors when its outputs are wrong.

        Raises:
            ActivityError: It cannot be run.
        """
        with self._runnable(result) as runnable:
            verdict = self._verdict(runnable)
            if verdict.is_good:
                return self._as_run(runnable, verdict)
            rows = self._compared(runnable, tensors=True)
        self._ranges = self._ranges or dict(self._measured())
        findings = MeasuredErrors(
            self.document, rows, self._ranges, self._clipped, self._criteria.narrow
        )
        return Verdict(verdict.outputs, first_failing_node(findings), findings)

    def outputs(self, result: Document) -> Verdict:
        """Compare the outputs of a result; which nodes are to blame is not looked for.

        Raises:
            ActivityError: It cannot be run.
        """
        with self._runnable(result) as runnable:
            verdict = self._verdict(runnable)
            return self._as_run(runnable, verdict)

    def _verdict(
        self, runnable: Document, settings: SessionSettings = _REFERENCE_SETTINGS
    ) -> Verdict:
        rows = self._compared(runnable, tensors=False, settings=settings)
        rows += self._of_containers(runnable, settings)
        if any(row.problem for row in rows) and not self._strict:
            rows = self._without_kernel_noise(runnable, rows)
        if any(row.problem for row in rows) and not self._strict:
            rows = self._without_other_routes(runnable, rows)
        return Verdict([row for row in rows if row.name not in self._random])

    def _without_kernel_noise(
        self, runnable: Document, rows: list[AccuracyRow]
    ) -> list[AccuracyRow]:
        """Return rows without problems that come from kernels that round activations to 8 bits.

        A tiny change of an activation may move it to another of 256 levels. A result is then not
        wrong if it is right with kernels that do not round, and not further off than the original
        is with the kernels that do.
        """
        own = self._kernel_noise
        if not own:
            return rows
        with contextlib.closing(copy_of(runnable)) as exact:
            compute_in_floats(exact)
            exact_rows = self._compared(exact, tensors=False, is_exact=True)
            if any(row.problem for row in exact_rows):
                exact_rows = self._without_other_routes(exact, exact_rows, self._exact)
        right = {row.name for row in exact_rows if not row.problem}
        return [
            replace(row, problem="")
            if row.name in right
            and row.error.snr_db is not None
            and row.error.snr_db >= own.get(row.name, math.inf) - _TWO_NOISES_DB
            else row
            for row in rows
        ]  # fmt: skip

    def _without_other_routes(
        self, runnable: Document, rows: list[AccuracyRow], reference: Document | None = None
    ) -> list[AccuracyRow]:
        """Return rows without problems of tokens that nearly equal scores send to other experts."""
        routers = routers_of(self.document)
        shapes = [token_shape(self.document, feed) for feed in self.feeds.sets]
        if not routers or None in shapes:
            return rows
        wrong = [row.name for row in rows if row.problem]
        names = [*dict.fromkeys([*wrong, *(router.scores for router in routers)])]
        moved, kept = 0, list[AccuracyRow]()
        with self._runner(reference) as mine, self._runner(runnable) as theirs:
            for feed, tokens in zip(self.feeds.sets, shapes, strict=True):
                assert tokens is not None
                try:
                    original = mine.values(names, feed)
                    result = theirs.values(names, typed_feed(theirs, feed))
                except DldError:  # it has no such tensors
                    return rows
                routes = comparable_routes(
                    self.document, routers, tokens, original, result, self._criteria.quiet_db
                )
                if routes is None:
                    return rows
                moved += sum(first < routes.length for first in routes.first)
                kept = merged(kept, [*self._kept_rows(routes, wrong, original, result)])
        good = {row.name for row in kept if not row.problem}
        if not good.issuperset(wrong):
            return rows
        self._moved = moved
        return [replace(row, problem="") for row in rows]

    def _kept_rows(
        self,
        routes: Routes,
        names: Sequence[str],
        original: Mapping[str, AnyArray | None],
        result: Mapping[str, AnyArray | None],
    ) -> Iterator[AccuracyRow]:
        for name in names:
            values = [
                None if value is None else routes.kept(name, value)
                for value in (original.get(name), result.get(name))
            ]
            if values[0] is None or values[1] is None:
                continue
            tolerance = self._tolerances.of(name)
            error = compare(values[0], values[1], tolerance)
            problem = tolerance.problem(error) or ""
            row = AccuracyRow(name, name, "", "", -1, True, tolerance.text, problem, error)
            yield self._criteria.judged(row)

    @cached_property
    def _exact(self) -> Document | None:
        """The original with kernels that compute in floats; None if all of them do anyway."""
        exact = self._closing.enter_context(contextlib.closing(copy_of(self.document)))
        return exact if compute_in_floats(exact) else None

    @cached_property
    def _kernel_noise(self) -> dict[str, float]:
        """The signal to noise ratio in dB of kernels that round activations, by output."""
        if self._exact is None:
            return {}
        rows = self._compared(self.document, tensors=False, is_exact=True)
        return {row.name: row.error.snr_db for row in rows if row.error.snr_db is not None}

    def _as_run(self, runnable: Document, written: Verdict) -> Verdict:
        """Return the verdict on a result as ONNX Runtime runs it, where that is farther off."""
        if not self._criteria.is_fused or not written.is_good:
            return written
        wrong = f"{OPTIMIZED}, "
        rows = [
            replace(row, problem=wrong + row.problem) if row.problem else row
            for row in self._verdict(runnable, QUIET).outputs
        ]
        verdict = Verdict(rows, as_written=written)
        is_farther = not verdict.is_good or verdict.noise > written.noise
        return verdict if is_farther else written

    @cached_property
    def _random(self) -> frozenset[str]:
        """Outputs that differ from run to run: nothing can be said of them."""
        every = (node for scope in self.document.scopes() for node in scope.nodes)
        if not any(node.op_type in RANDOM_OPERATORS for node in every):
            return frozenset()
        with self._runner() as runner:
            names, feed = runner.outputs, self.feeds.sets[0]
            first, second = runner.each(
                names, [feed, feed]
            )  # in one session: a new one begins again
        pairs = {name: (first[name], second[name]) for name in names}
        return frozenset(
            name
            for name, (mine, theirs) in pairs.items()
            if mine is not None and theirs is not None and not compare(mine, theirs).is_equal
        )

    def _of_containers(self, runnable: Document, settings: SessionSettings) -> list[AccuracyRow]:
        """Return the errors of the elements of outputs that are no tensors."""
        rows: list[AccuracyRow] = []
        if not self._containers:
            return rows
        for mine, theirs in zip(self._containers, self._elements(runnable, settings), strict=True):
            rows = merged(rows, [*self._element_rows(mine, theirs)])
        return rows

    def _element_rows(
        self, mine: Mapping[str, Any], theirs: Mapping[str, Any]
    ) -> Iterator[AccuracyRow]:
        for name in {**mine, **theirs}:
            tolerance = self._tolerances.of(name)
            error = compare_element(mine.get(name), theirs.get(name), tolerance)
            problem = tolerance.problem(error) or ""
            row = AccuracyRow(name, name, "", "", -1, True, tolerance.text, problem, error)
            yield row if self._strict else self._criteria.judged(row)

    @cached_property
    def _containers(self) -> list[dict[str, Any]]:
        """What outputs of the original hold that are no tensors, of each set of inputs."""
        types = (self.document.main.value_type(name) for name in self.document.main.outputs)
        if not any(known is not None and known.container for known in types):
            return []
        return [*self._elements(self.document, _REFERENCE_SETTINGS)]

    def _elements(self, document: Document, settings: SessionSettings) -> Iterator[dict[str, Any]]:
        session = session_of(document, document.path or Path("model"), settings)
        for feed in self.feeds.sets:
            given = typed_feed(session, feed)
            values = session.run(session.feed(given)) if session.is_readable else []
            yield {
                name: element
                for output, value in zip(session.outputs, values, strict=False)
                if not isinstance(value, np.ndarray)
                for name, element in elements_of(output, value)
            }

    @contextlib.contextmanager
    def _runnable(self, result: Document) -> Iterator[Document]:
        narrow, runnable = self._criteria.narrow, result
        with contextlib.ExitStack() as stack:
            if self._avoided:
                runnable = stack.enter_context(contextlib.closing(copy_of(runnable)))
                avoid_wrong_kernels(runnable)
            if narrow is not None:
                rounded = rounded_copy(runnable, narrow.dtype, contrib_types)
                runnable = stack.enter_context(contextlib.closing(rounded))
            yield runnable

    @cached_property
    def unfit_io(self) -> dict[str, str]:
        """The inputs and outputs that the narrow type would make wrong by itself, with reasons."""
        narrow = self._criteria.narrow
        reasons: dict[str, str] = {}
        if narrow is None:
            return reasons
        with self._runner() as runner:
            for feed in self.feeds.sets:
                outputs = runner.values(runner.outputs, feed)
                for name, value in (*feed.items(), *outputs.items()):
                    is_float = isinstance(value, np.ndarray) and value.dtype == np.float32
                    if is_float and (why := self._unfit(name, value, narrow)):
                        reasons.setdefault(name, why)
        return reasons

    def _unfit(self, name: str, value: np.ndarray[Any, Any], narrow: NarrowType) -> str:
        tolerance = self._tolerances.of(name)
        with np.errstate(all="ignore"):
            rounded = value.astype(numpy_dtype(narrow.dtype)).astype(np.float32)
        error = compare(value, rounded, tolerance)
        if tolerance.problem(error) is None:
            return ""
        if not self._strict and self._criteria.is_harmless(error):
            return ""
        peak = float(np.abs(value[np.isfinite(value)]).max(initial=0))
        return f"its values, up to {peak:,.4g}, do not fit {narrow.dtype}"

    def _compared(
        self,
        result: Document,
        *,
        tensors: bool,
        settings: SessionSettings = _REFERENCE_SETTINGS,
        is_exact: bool = False,
    ) -> list[AccuracyRow]:
        reference = self._exact if is_exact and self._exact is not None else self.document
        sides = self._side(reference), ModelSide(result, settings, self._folder)
        rows: list[AccuracyRow] = []
        with Comparison(*sides, self._tolerances, tensors, channels=tensors) as comparison:
            for state in comparison.run(self.feeds.sets, budget=_BUDGET):
                rows = state.rows if isinstance(state, State) else rows
        rows = rows if self._strict else [self._criteria.judged(row) for row in rows]
        if not self._criteria.is_rewrite:
            return rows
        retyped = {
            name: f"it is {theirs} and not {mine}"
            for name, (mine, theirs) in comparison.retyped.items()
        }
        return [replace(row, problem=retyped.get(row.name, row.problem)) for row in rows]

    def _measured(self) -> Iterator[tuple[str, float]]:
        """Yield the largest finite magnitude of each tensor of the main graph, for one input."""
        feed = self.feeds.sets[0]
        names = [name for node in self.document.main.nodes for name in node.outputs if name]
        with self._runner() as runner:
            for group in groups(types_with(self.document, feed), names, _BUDGET):
                for name, value in runner.values(group, feed).items():
                    if value is None or value.dtype.kind not in "fiu" or not value.size:
                        continue
                    finite = value[np.isfinite(value)]
                    if finite.size:
                        yield name, float(np.abs(finite).max())

    @cached_property
    def _clipped(self) -> dict[str, float]:
        """The largest magnitudes of weights out of the range of the narrow type."""
        narrow = self._criteria.narrow
        if narrow is None:
            return {}
        every = CastSelection(kinds=("initializer", "constant"))
        peaks = {
            candidate.name: largest(candidate.tensor)
            for candidate in candidates(self.document, narrow.dtype, every)
        }
        return {name: peak for name, peak in peaks.items() if peak > narrow.largest}

    def to_keep(self, verdict: Verdict, kept: Collection[Node], most: int) -> dict[Node, str]:
        """Return nodes of :attr:`document` that should stay as they were, too, and the reasons."""
        return {} if verdict.errors is None else nodes_to_keep(verdict.errors, kept, most)

    def of_same_operators(self, verdict: Verdict, kept: Collection[Node]) -> dict[Node, str]:
        """Return the nodes of the operators that were wrong, where single nodes were not enough.

        What else is off cannot be told from errors of tensors then, as inside of a body; to name
        the operator for all of the model is what a person would do next.
        """
        types = {node.op_type for node in kept}
        if verdict.first is not None:
            types.add(verdict.first.op_type)
        return {
            node: f"other {node.op_type} nodes were wrong"
            for scope in self.document.main.walk()
            for node in scope.nodes
            if node.op_type in types and node not in kept
        }

    def others(self, kept: Collection[Node]) -> dict[Node, str]:
        """Return all nodes that are left: with them the result is the original."""
        return {
            node: "no fewer nodes were enough"
            for scope in self.document.main.walk()
            for node in scope.nodes
            if node not in kept
        }


QUIET = SessionSettings(quiet=True)


def typed_feed(session: Session | TensorRunner, feed: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a session takes of a set of inputs, in its types."""
    dtypes = {spec.name: spec.dtype for spec in session.inputs}
    return {name: _as_type(value, dtypes[name]) for name, value in feed.items() if name in dtypes}


def _as_type(value: Any, dtype: str) -> Any:
    """Return a floating point array in the type that a converted model takes."""
    is_floating = dtype in FLOATS
    if isinstance(value, np.ndarray) and value.dtype.kind == "f" and is_floating:
        return value.astype(numpy_dtype(dtype))
    return value


def session_of(document: Document, title: Path, settings: SessionSettings = UNOPTIMIZED) -> Session:
    """Load a document, by default as it is written, without optimization; errors name `title`."""
    folder = document.path.parent if document.path is not None else None
    view = external_view(
        skeleton_bytes(document), document.blobs, folder, external=document.external, values=True
    )
    try:
        return Session(view, settings_for_copies(settings, document), title)
    finally:
        discard_view(view)
