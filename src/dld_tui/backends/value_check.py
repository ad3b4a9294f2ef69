"""Whether a converted model gives the values of the original, and if not, because of which nodes.

ONNX Runtime runs both on a CPU, one with float16 or bfloat16 rounded between its nodes
(:mod:`dld_tui.core.conversion.rounded`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from dld_tui.backends.accuracy_runs import Comparison, State, types_with
from dld_tui.backends.accuracy_sides import ModelSide
from dld_tui.backends.onnxruntime_options import SessionSettings
from dld_tui.backends.onnxruntime_tensors import TensorRunner, groups
from dld_tui.core.accuracy.result import Row
from dld_tui.core.accuracy.tolerance import Tolerances, parse_tolerances
from dld_tui.core.conversion.agreement import Agreement
from dld_tui.core.conversion.copies import copy_of, inline_calls
from dld_tui.core.conversion.culprits import Culprit, Findings, first_culprit, nodes_to_keep
from dld_tui.core.conversion.fp16_weights import largest
from dld_tui.core.conversion.rounded import rounded_copy
from dld_tui.core.conversion.tensors import Selection, candidates
from dld_tui.core.document.document import Document
from dld_tui.core.document.node import Node
from dld_tui.core.inputs.feeds import Feeds
from dld_tui.core.inputs.folder import load_input_sets, set_folders
from dld_tui.core.inputs.guess import specs_for
from dld_tui.core.inputs.search import candidate_guesses
from dld_tui.core.inputs.shapes import parse_shapes
from dld_tui.core.inputs.trials import first_that_runs
from dld_tui.core.types import JSON

_SETTINGS = SessionSettings(optimization_level="disabled", quiet=True)
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
    """As :func:`~dld_tui.core.accuracy.tolerance.parse_tolerances` takes them; those of the
    agreement by default."""


@dataclass(frozen=True)
class Verdict:
    """What came of one result."""

    outputs: Sequence[Row]
    first: Culprit | None = None
    """The first node whose values are wrong; None when those of the outputs are right."""
    found: Findings | None = None

    def to_json(self) -> dict[str, JSON]:
        """Return the figures of the outputs, and the node, as JSON data."""
        return {
            "outputs": {
                row.name: {"problem": row.problem, **row.error.to_json()} for row in self.outputs
            },
            "is_good": self.is_good,
            "first": None if self.first is None else self.first.to_json(),
        }

    @property
    def is_good(self) -> bool:
        """Whether all outputs are near enough."""
        return not any(row.problem for row in self.outputs)


class ValueCheck:
    """Compares results with the model that they were made of. Close it.

    Args:
        original: That model; it stays as it is, and open until this is closed.
        asked: On what, and how good it has to be.
        agreement: What is near enough by default, and how a result is run.

    Raises:
        UsageError: A shape or a tolerance makes no sense.
        InputError: The inputs cannot be read, or do not fit.
        ActivityError: The model cannot be run.
    """

    def __init__(self, original: Document, asked: Question, agreement: Agreement) -> None:
        self._strict = bool(asked.tolerances)
        self._agreement = agreement
        near = Tolerances(agreement.tolerance)
        self._tolerances = parse_tolerances(asked.tolerances) if self._strict else near
        self._folder = original.path.parent if original.path is not None else None
        self.document = copy_of(original)
        """The original, its calls of local functions replaced as a conversion does it."""
        try:
            inline_calls(self.document)
            self.feeds = self._inputs(asked)
            """Sets of inputs that the original takes."""
        except BaseException:
            self.document.close()
            raise
        self._ranges: dict[str, float] = {}

    @property
    def remarks(self) -> list[str]:
        """What was guessed of the inputs."""
        return self.feeds.remarks

    def close(self) -> None:
        """Give back what it holds."""
        self.document.close()

    def _runner(self) -> TensorRunner:
        return TensorRunner(self.document, _SETTINGS, folder=self._folder)

    def _side(self, document: Document) -> ModelSide:
        return ModelSide(document, _SETTINGS, self._folder)

    def _inputs(self, asked: Question) -> Feeds:
        with self._runner() as runner:
            specs, outputs = specs_for(runner.inputs, self.document), runner.outputs
            if asked.folder is not None:
                folders = set_folders(asked.folder)[: asked.most_sets]
                return Feeds([load_input_sets(one, specs)[0].values for one in folders])
            given = parse_shapes(asked.shapes, [spec.name for spec in specs])
            guess, _ = first_that_runs(
                candidate_guesses(specs, self.document, given), 0, partial(runner.values, outputs)
            )
            return Feeds([guess.values(0)], guess)

    def run(self, result: Document) -> Verdict:
        """Compare a result; all of its tensors when its outputs are wrong.

        Raises:
            ActivityError: It cannot be run.
        """
        with contextlib.ExitStack() as stack:
            runnable = result
            if self._agreement.narrow:
                runnable = rounded_copy(result, self._agreement.narrow.dtype)
                stack.callback(runnable.close)
            verdict = Verdict(self._compared(runnable, tensors=False))
            if verdict.is_good:
                return verdict
            rows = self._compared(runnable, tensors=True)
        self._ranges = self._ranges or dict(self._measured())
        found = Findings(self.document, rows, self._ranges, self._clipped, self._agreement.narrow)
        outputs = [row for row in rows if row.is_output]
        return Verdict(outputs, first_culprit(found), found)

    def _compared(self, result: Document, *, tensors: bool) -> list[Row]:
        sides = self._side(self.document), self._side(result)
        rows: list[Row] = []
        with Comparison(*sides, self._tolerances, tensors, channels=tensors) as comparison:
            for state in comparison.run(self.feeds.sets, budget=_BUDGET):
                rows = state.rows if isinstance(state, State) else rows
        return rows if self._strict else [self._agreement.judged(row) for row in rows]

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
        narrow = self._agreement.narrow
        if narrow is None:
            return {}
        every = Selection(kinds=("initializer", "constant"))
        peaks = {
            one.name: largest(one.tensor) for one in candidates(self.document, narrow.dtype, every)
        }
        return {name: peak for name, peak in peaks.items() if peak > narrow.largest}

    def to_keep(self, verdict: Verdict, kept: Collection[Node], most: int) -> dict[Node, str]:
        """Return nodes of :attr:`document` that should stay as they were, too, and the reasons."""
        return {} if verdict.found is None else nodes_to_keep(verdict.found, kept, most)

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
