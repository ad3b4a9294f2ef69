"""A comparison of reports or engine plans: what a screen, a command or a script asks of it.

::

    comparison = Comparison([open_subject(first), open_subject(second)])
    comparison.differences      # settings and environment that differ: read these first
    comparison.unfair           # why it is no comparison of like with like
    comparison.doubts           # why figures are not to be trusted
    comparison.end_to_end       # a Row
    comparison.rows("layer")    # list[Row], largest difference first
    comparison.explanation()    # where the time went, as text
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from dld_tui.core.compare.conditions import differences, doubts, same_model, unfair
from dld_tui.core.compare.engines import (
    Inserted,
    Mismatch,
    PrecisionFigures,
    any_engine,
    find_mismatches,
    inserted_layers,
    precision_figures,
)
from dld_tui.core.compare.explain import explain
from dld_tui.core.compare.matching import Match, match_layers
from dld_tui.core.compare.model import Comparable, Difference, Row
from dld_tui.core.compare.rows import (
    GROUPINGS,
    Measured,
    Part,
    Side,
    column_cells,
    measure,
    rows_by,
    rows_of_matches,
    side_of,
)
from dld_tui.core.compare.subject import made_alike
from dld_tui.core.errors import UsageError
from dld_tui.core.paths import apart

__all__ = ["GROUPINGS", "MISMATCH", "VIEWS", "Comparison"]

MISMATCH = "mismatch"
"""The rows by layer whose precision or tactic is not the same everywhere."""
VIEWS = (*GROUPINGS, MISMATCH)


class Comparison:
    """Reports side by side.

    Attributes:
        subjects: The reports, in order.
        base: The index of the one that the others are compared with.
        made_alike: What was done to make them comparable, as visible text.
    """

    def __init__(self, subjects: Sequence[Comparable], base: int = 0) -> None:
        """Compare reports.

        Raises:
            UsageError: There are fewer than two, or there is no report number `base`.
        """
        if len(subjects) < 2:
            raise UsageError("give two or more reports to compare")
        if not 0 <= base < len(subjects):
            raise UsageError(f"there is no report {base + 1} among {len(subjects)}")
        self.subjects, self.made_alike = made_alike(subjects)
        self.base = base
        self._rows: dict[str, list[Row]] = {}
        self._explanation: list[str] | None = None

    @property
    def target(self) -> int:
        """The report that a single difference is of: the last one that is not the base."""
        last = len(self.subjects) - 1
        return last if self.base != last else last - 1

    @cached_property
    def titles(self) -> list[str]:
        """What the reports are called, so that each is told from the others: foreign text."""
        return apart(
            [subject.title for subject in self.subjects],
            [subject.path for subject in self.subjects],
        )

    @cached_property
    def measured(self) -> list[Measured]:
        """The layers' times of each report."""
        return measure(self.subjects)

    @cached_property
    def matches(self) -> list[Match]:
        """Which layers are which."""
        return match_layers(self.subjects, same_model(self.subjects) is not False)

    @cached_property
    def differences(self) -> list[Difference]:
        """Settings and facts of the environment that are not the same, most telling first."""
        return differences(self.subjects)

    @cached_property
    def unfair(self) -> list[str]:
        """Why the reports did not do the same work, as visible text."""
        return [*self.made_alike, *unfair(self.subjects, self.base)]

    @cached_property
    def doubts(self) -> list[str]:
        """Why the figures of a report are not to be trusted, as visible text."""
        return doubts(self.subjects)

    @property
    def warnings(self) -> list[str]:
        """Everything that speaks against the comparison, the worst first, as visible text."""
        return [*self.unfair, *self.doubts]

    def rows(self, by: str = "layer") -> list[Row]:
        """Return the rows, the largest difference first.

        Args:
            by: One of `VIEWS`.

        Raises:
            UsageError: Another word.
        """
        if by not in VIEWS:
            raise UsageError(f"cannot compare by {by!r}; choose one of {', '.join(VIEWS)}")
        if by not in self._rows:
            self._rows[by] = self._rows_by(by)
        return self._rows[by]

    def _rows_by(self, by: str) -> list[Row]:
        if by == "layer":
            return rows_of_matches(self.measured, self.matches, self.base)
        if by == MISMATCH:
            return [found.row for found in self.mismatches]
        return rows_by(self.measured, by, self.base)

    # Engines

    @cached_property
    def of_engines(self) -> bool:
        """Whether one of the reports is of an engine, so that there are tactics to compare."""
        return any_engine(self.subjects)

    @cached_property
    def mismatches(self) -> list[Mismatch]:
        """Layers of the same work with another precision or tactic, largest difference first."""
        return find_mismatches(self.subjects, self.measured, self.rows("layer"))

    @cached_property
    def precisions(self) -> list[PrecisionFigures]:
        """What each engine computes in, and how long what kind of work takes."""
        return [
            precision_figures(subject, side)
            for subject, side in zip(self.subjects, self.measured, strict=True)
        ]

    @cached_property
    def inserted(self) -> list[Inserted]:
        """The layers of each report that only convert a tensor."""
        return [
            inserted_layers(subject, side)
            for subject, side in zip(self.subjects, self.measured, strict=True)
        ]

    @cached_property
    def speed_up_source(self) -> str:
        """What :meth:`speed_up` is of: ``end to end``, else ``all layers``; empty without times."""
        for row in (self.end_to_end, self.layer_sum):
            if all(cell.time_ms for cell in row.cells):
                return row.key
        return ""

    def speed_up(self, index: int) -> float | None:
        """Return how many times as fast as the base a report is."""
        source = self.speed_up_source
        if not source:
            return None
        row = self.end_to_end if source == self.end_to_end.key else self.layer_sum
        here, there = row.cells[index].time_ms, row.cells[self.base].time_ms
        return there / here if here and there else None

    @cached_property
    def latency_source(self) -> str:
        """What `end_to_end` is of: ``latency loop``, or ``profiled passes`` when one lacks it."""
        has_loops = all(subject.latencies_ms for subject in self.subjects)
        return "latency loop" if has_loops else "profiled passes"

    @cached_property
    def end_to_end(self) -> Row:
        """Median latency, of the same source in all reports."""
        loop = self.latency_source == "latency loop"
        sides = [side_of(s.latencies_ms if loop else s.profiled_ms) for s in self.subjects]
        return self._single("end to end", sides)

    @cached_property
    def layer_sum(self) -> Row:
        """The time of all layers together, a pass."""
        sides = []
        for measured in self.measured:
            chosen = [
                layer.index
                for layer in measured.layers
                if measured.ran(layer.index) or not measured.timed
            ]
            part = Part(chosen, [1.0] * len(chosen))
            sides.append(Side.of(measured, part))
        return self._single("all layers", sides)

    def _single(self, key: str, sides: Sequence[Side]) -> Row:
        base = sides[self.base]
        cells = [
            column_cells([side], [base], index == self.base)[0] for index, side in enumerate(sides)
        ]
        return Row(key, tuple(cells))

    def explanation(self) -> list[str]:
        """Return where the time went, in lines without colour; foreign text in them is visible."""
        if self._explanation is None:
            self._explanation = explain(self)
        return self._explanation
