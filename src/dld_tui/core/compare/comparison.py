"""A comparison of reports or engine plans, for screens, commands and scripts.

::

    comparison = Comparison([open_subject(first), open_subject(second)])
    comparison.differences      # settings and environment that differ: read these first
    comparison.unfair           # why the reports are not comparable
    comparison.doubts           # why the figures are doubtful
    comparison.end_to_end       # a Row
    comparison.rows("layer")    # list[Row], largest difference first
    comparison.explanation()    # where the time went, as text
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core.compare.common_factor import CommonFactor, common_factor
from dld_tui.core.compare.conditions import (
    batch_sizes,
    differences,
    doubts,
    fairness_warnings,
    same_model,
)
from dld_tui.core.compare.engine_subject import open_plan_subject
from dld_tui.core.compare.engines import (
    Mismatch,
    PrecisionFigures,
    any_engine,
    find_mismatches,
    precision_figures,
)
from dld_tui.core.compare.explanation import explain
from dld_tui.core.compare.matching import Match, match_layers, node_keys, numbers_agree
from dld_tui.core.compare.records import (
    PER_ITEM,
    Cell,
    ComparisonRow,
    Difference,
    Subject,
    label,
)
from dld_tui.core.compare.rows import (
    GROUPINGS,
    LayerShares,
    MeasuredLayers,
    ReportCell,
    column_cells,
    measure,
    rows_by,
    rows_of_matches,
    side_of,
    step_of,
)
from dld_tui.core.errors import UsageError
from dld_tui.core.process.paths import distinct_names
from dld_tui.core.report.generation import generation_of
from dld_tui.core.report.measured_figures import busy_text
from dld_tui.core.report.records import Dims, Layer
from dld_tui.core.report.report import open_report
from dld_tui.core.statistics import LatencySource
from dld_tui.core.tensorrt.plan.reader import is_plan
from dld_tui.core.types import CancelCheck, ProgressCallback

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.report.report import Report


def subject_of(report: Report) -> Subject:
    """Return the comparable content of an open report, which may be closed afterwards.

    Raises:
        CorruptFileError: The file is damaged.
    """
    measurement, decoder = report.measurement, next(iter(generation_of(report)), None)
    return Subject(
        title=report.path.name,
        path=str(report.path),
        layers=report.layers,
        times=None if measurement.own is None else measurement.own.times_ms,
        gpu_times=None if measurement.gpu is None else measurement.gpu.times_ms,
        latencies_ms=report.latencies,
        first_tokens_ms=() if decoder is None else decoder.first_tokens_ms,
        prompt=None if decoder is None else decoder.prompt,
        profiled_ms=(
            []  # passes that are but sums of layers, of a file without end-to-end times
            if report.profiled_latency is None
            else [pass_.duration_us / 1000 for pass_ in report.counted_passes]
        ),
        properties={
            "status": report.status,
            "network": report.network,
            "backend": report.backend,
            "execution_provider": report.execution_provider,
            "device": report.device,
            "created": report.created,
        },
        model=report.model,
        settings=report.settings,
        environment=report.environment,
    )


def open_subject(
    path: Path,
    progress: ProgressCallback | None = None,
    cancelled: CancelCheck | None = None,
    document: Document | None = None,
) -> Subject:
    """Read a report file, another program's profile as one, or an engine plan.

    Args:
        progress: Called with (bytes read, bytes in all).
        cancelled: Asked while reading.
        document: The model, for matching the layers of an engine plan with its nodes.

    Raises:
        InputError: The file cannot be read, or is of another kind.
        CancelledError: `cancelled` returned True.
    """
    if is_plan(path):
        return open_plan_subject(path, document)
    with open_report(path, progress, cancelled) as report:
        return subject_of(report)


def with_equal_batches(subjects: Sequence[Subject]) -> tuple[tuple[Subject, ...], list[str]]:
    """Return comparable subjects, and the changes made to them as visible text.

    If the inputs differ in their batch size only, all times are divided by it.
    """
    alike, lines = tuple(subjects), list[str]()
    batches = batch_sizes([subject.settings.get("input_shapes") for subject in alike])
    if batches is not None and len(set(batches)) > 1:
        alike = tuple(
            _per_item(subject, batch) for subject, batch in zip(alike, batches, strict=True)
        )
        sizes = " / ".join(map(str, batches))
        lines.append(f"Different batch sizes ({sizes}): all times are for one item of the batch.")
    return alike, lines


def _per_item(subject: Subject, batch: int) -> Subject:
    return replace(
        subject,
        properties={**subject.properties, PER_ITEM: batch},
        layers=[_layer_per_item(layer, batch) for layer in subject.layers],
        times=None if subject.times is None else subject.times / batch,
        gpu_times=None if subject.gpu_times is None else subject.gpu_times / batch,
        latencies_ms=[time / batch for time in subject.latencies_ms],
        first_tokens_ms=[time / batch for time in subject.first_tokens_ms],
        profiled_ms=[time / batch for time in subject.profiled_ms],
    )


def _layer_per_item(layer: Layer, batch: int) -> Layer:
    def part(time_ms: float | None) -> float | None:
        return None if time_ms is None else time_ms / batch

    return replace(
        layer,
        time_ms=part(layer.time_ms),
        mean_ms=part(layer.mean_ms),
        min_ms=part(layer.min_ms),
        max_ms=part(layer.max_ms),
        gpu_time_ms=part(layer.gpu_time_ms),
        input_dims=_of_one_item(layer.input_dims, batch),
        output_dims=_of_one_item(layer.output_dims, batch),
    )


def _of_one_item(dims: tuple[Dims, ...], batch: int) -> tuple[Dims, ...]:
    """Return shapes as they would be with a batch of one, so that layers are matched by them."""
    return tuple((1, *shape[1:]) if shape and shape[0] == batch else shape for shape in dims)


__all__ = ["GROUPINGS", "MISMATCH", "VIEWS", "Comparison"]

MISMATCH = "mismatch"
"""The rows by layer whose precision or tactic is not the same everywhere."""
VIEWS = (*GROUPINGS, MISMATCH)


class Comparison:
    """Reports side by side.

    Attributes:
        subjects: The reports, in order.
        base: The index of the one that the others are compared with.
        normalizations: How they were made comparable, as visible text.
    """

    def __init__(self, subjects: Sequence[Subject], base: int = 0) -> None:
        """Compare reports.

        Raises:
            UsageError: There are fewer than two, or there is no report number `base`.
        """
        if len(subjects) < 2:
            raise UsageError("give two or more reports to compare")
        if not 0 <= base < len(subjects):
            raise UsageError(f"there is no report {base + 1} among {len(subjects)}")
        self.subjects, self.normalizations = with_equal_batches(subjects)
        self.base = base
        self._rows: dict[str, list[ComparisonRow]] = {}
        self._factors: dict[int, CommonFactor | None] = {}
        self._explanation: list[str] | None = None

    def __repr__(self) -> str:
        return f"Comparison: {self.headline}"

    @property
    def target(self) -> int:
        """The report that a single difference is of: the last one that is not the base."""
        last = len(self.subjects) - 1
        return last if self.base != last else last - 1

    @cached_property
    def titles(self) -> list[str]:
        """Distinct display names of the reports: untrusted text."""
        return distinct_names(
            [subject.title for subject in self.subjects],
            [subject.path for subject in self.subjects],
        )

    @cached_property
    def measured(self) -> list[MeasuredLayers]:
        """The layers' times of each report."""
        return measure(self.subjects)

    @cached_property
    def matches(self) -> list[Match]:
        """Which layers are which."""
        return match_layers(self.subjects, self._has_same_nodes)

    @cached_property
    def _has_same_nodes(self) -> bool:
        """Whether the names of nodes mean the same nodes, numbered ones as well."""
        same = same_model(self.subjects)
        return numbers_agree(self.subjects, self.base) if same is None else same

    @cached_property
    def differences(self) -> list[Difference]:
        """Settings and properties of the environment that are not the same, most telling first."""
        return differences(self.subjects)

    @cached_property
    def unfair(self) -> list[str]:
        """Why the reports did not do the same work, as visible text."""
        return [*self.normalizations, *fairness_warnings(self.subjects, self.base)]

    @cached_property
    def doubts(self) -> list[str]:
        """Why the figures of a report are not to be trusted, as visible text."""
        return doubts(self.subjects)

    @property
    def warnings(self) -> list[str]:
        """Everything that speaks against the comparison, the worst first, as visible text."""
        return [*self.unfair, *self.doubts]

    def rows(self, by: str = "layer") -> list[ComparisonRow]:
        """Return the rows, the largest difference first.

        Args:
            by: One of `VIEWS`.

        Raises:
            UsageError: An unknown view.
        """
        if by not in VIEWS:
            raise UsageError(f"cannot compare by {by!r}; choose one of {', '.join(VIEWS)}")
        if by not in self._rows:
            self._rows[by] = self._rows_by(by)
        return self._rows[by]

    def _rows_by(self, by: str) -> list[ComparisonRow]:
        if by == "layer":
            return rows_of_matches(self.measured, self.matches, self.base)
        if by == MISMATCH:
            return [mismatch.row for mismatch in self.mismatches]
        nodes = (
            node_keys(self.subjects, self.matches, self.base, self._has_same_nodes)
            if by == "node"
            else ()
        )
        return rows_by(self.measured, by, self.base, nodes)

    # Engines

    @cached_property
    def of_engines(self) -> bool:
        """Whether one of the reports is of an engine, which has tactics to compare."""
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
    def speed_up_row(self) -> ComparisonRow | None:
        """What :meth:`speed_up` is of: ``end to end``, else ``all layers``; None without times."""
        rows = (self.end_to_end, self.layer_sum)
        return next((row for row in rows if all(cell.time_ms for cell in row.cells)), None)

    def speed_up(self, index: int) -> float | None:
        """Return how many times as fast as the base a report is."""
        if self.speed_up_row is None:
            return None
        here, there = (self.speed_up_row.cells[at].time_ms for at in (index, self.base))
        return there / here if here and there else None

    def speed_up_cell(self, index: int) -> Cell:
        """Return the cell that :meth:`speed_up` is of, with the interval of the difference."""
        return (self.speed_up_row or self.layer_sum).cells[index]

    def speed_up_bounds(self, index: int) -> tuple[float, float] | None:
        """Return the least and the highest speedup by the interval; None where there is none."""
        cell = self.speed_up_cell(index)
        if cell.interval is None or cell.time_ms is None or cell.delta_ms is None:
            return None
        there = cell.time_ms - cell.delta_ms
        least, most = (there + end for end in (cell.interval.low_ms, cell.interval.high_ms))
        if there <= 0 or most <= 0:
            return None
        return there / most, there / least if least > 0 else math.inf

    def together(self, index: int, layers: Sequence[Sequence[int]]) -> Cell:
        """Return the time of some layers together against that of layers of the base.

        Args:
            index: The report.
            layers: Those of the base, and those of the report.
        """
        sides = [
            ReportCell.of(self.measured[at], LayerShares(list(chosen), [1.0] * len(chosen)))
            for at, chosen in zip((self.base, index), layers, strict=True)
        ]
        return column_cells(
            [sides[1]], [sides[0]], False, step_of(self.measured, index, self.base)
        )[0]

    # What all rows have in common

    def common_factor(self, index: int) -> CommonFactor | None:
        """Return the factor by which all layers of a report differ from the base, if there is one.

        Layers of another precision have reasons of their own.
        """
        if index not in self._factors:
            is_other = any(
                len({mismatch.precision[at] for at in (self.base, index)} - {""}) > 1
                for mismatch in self.mismatches
            )
            self._factors[index] = (
                None if is_other else common_factor(self.rows("layer"), index, self.base)
            )
        return self._factors[index]

    def follows(self, row: ComparisonRow, index: int) -> bool | None:
        """Return whether a row changed by the common factor, its noise included.

        None where there is no factor, or the row is in one of the reports only.
        """
        factor, cell = self.common_factor(index), row.cells[index]
        before = row.cells[self.base].time_ms
        if factor is None or not cell.ratio or not before:
            return None
        if factor.holds(cell.ratio):
            return True
        if cell.interval is None:
            return False
        least, most = (1 + end / before for end in (cell.interval.low_ms, cell.interval.high_ms))
        return factor.holds(min(max(factor.ratio, least, 1e-9), max(most, 1e-9)))

    def is_change(self, row: ComparisonRow, index: int) -> bool:
        """Return whether a row itself changed for certain: not by noise, nor as all others."""
        if row.state(index, self.base):
            return True
        return row.cells[index].noise is False and self.follows(row, index) is not True

    @property
    def headline(self) -> str:
        """Which is faster, the base or the report that it is compared with, in a few words."""
        here, there = label(self.target), label(self.base)
        cell = self.end_to_end.cells[self.target]
        if cell.delta_ms is None:
            return f"{here} against {there}: no latency was measured in both"
        if cell.noise is not False:
            return f"{here} against {there}: no certain difference"
        pair = (self.subjects[at] for at in (self.base, self.target))
        is_busy = any(busy_text(one.environment) for one in pair)
        busy = ", if not by other programs" if is_busy else ""
        return f"{here} is {'faster' if cell.delta_ms < 0 else 'slower'} than {there}{busy}"

    @cached_property
    def latency_source(self) -> LatencySource:
        """What `end_to_end` is of: of profiled passes when one lacks a loop."""
        has_loops = all(subject.latencies_ms for subject in self.subjects)
        return LatencySource.LOOP if has_loops else LatencySource.PROFILED

    @cached_property
    def end_to_end(self) -> ComparisonRow:
        """Median latency, of the same source in all reports."""
        loop = self.latency_source is LatencySource.LOOP
        sides = [side_of(s.latencies_ms if loop else s.profiled_ms) for s in self.subjects]
        return self._single("end to end", sides)

    @cached_property
    def first_token(self) -> ComparisonRow | None:
        """Median time to the first token; None where it is not known of all reports."""
        if not all(subject.first_tokens_ms for subject in self.subjects):
            return None
        return self._single("first token", [side_of(s.first_tokens_ms) for s in self.subjects])

    @property
    def whole(self) -> list[ComparisonRow]:
        """The rows of all layers together, each of another measurement; `end_to_end` first."""
        return [row for row in (self.end_to_end, self.first_token, self.layer_sum) if row]

    @cached_property
    def layer_sum(self) -> ComparisonRow:
        """The time of all layers together, per pass."""
        sides = []
        for measured in self.measured:
            chosen = [
                layer.index
                for layer in measured.layers
                if measured.ran(layer.index) or not measured.timed
            ]
            part = LayerShares(chosen, [1.0] * len(chosen))
            sides.append(ReportCell.of(measured, part))
        return self._single("all layers", sides)

    def _single(self, key: str, sides: Sequence[ReportCell]) -> ComparisonRow:
        base = sides[self.base]
        cells = [
            column_cells([side], [base], index == self.base)[0] for index, side in enumerate(sides)
        ]
        return ComparisonRow(key, tuple(cells))

    def explanation(self) -> list[str]:
        """Return where the time went, in lines without colour; untrusted text is visible."""
        if self._explanation is None:
            others = (index for index in range(len(self.subjects)) if index != self.base)
            self._explanation = [line for index in others for line in explain(self, index)]
        return self._explanation
