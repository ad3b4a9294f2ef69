"""The rows of a comparison: times of each report, differences with intervals, and their text."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from dld_tui.core import fmt
from dld_tui.core.compare.matching import (
    LEVEL_PERCENT,
    Match,
    NodeKey,
    Statistic,
    discoveries,
    intervals,
    median_of,
    p_value,
    resolution_of,
    statistic_of,
)
from dld_tui.core.compare.records import Cell, ComparisonRow, Interval, Subject
from dld_tui.core.dataclass import dataclass
from dld_tui.core.report.groups import is_launched, launches, parts
from dld_tui.core.report.layer_table import layer_names
from dld_tui.core.report.records import Layer
from dld_tui.core.statistics import share_percent
from dld_tui.core.tables.table import Estimate

if TYPE_CHECKING:
    from dld_tui.core.compare.records import FloatArray


@dataclass
class LayerShares:
    """Some layers of a report, and how much of each."""

    layers: list[int] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class MeasuredLayers:
    """The layers of one report with the times that are compared."""

    layers: Sequence[Layer]
    times: FloatArray | None
    """Milliseconds ``float64[layers, passes]``, NaN where a layer did not run; None when only
    `layer_ms` is known."""
    layer_ms: Sequence[float | None]
    """What each layer takes, as its report has it."""
    on_gpu: bool = False
    """Whether the times include kernels on a GPU."""
    resolution_ms: float = 0.0

    @cached_property
    def timed(self) -> bool:
        """Whether there are times: an engine plan may come without a profile."""
        return any(time is not None for time in self.layer_ms)

    @classmethod
    def of(cls, subject: Subject, *, gpu: bool) -> MeasuredLayers:
        """Return the times of a report.

        Args:
            subject: The report.
            gpu: Take the kernels' time on the GPU where a layer has some, and nothing for a layer
                on a GPU that has none; layers on the CPU keep their own. Otherwise all are taken as
                the CPU sees them, which for a GPU is the time to launch the work.
        """
        own = subject.times
        resolution = 0.0 if own is None else resolution_of(own)
        layer_ms = [layer.time_ms for layer in subject.layers]
        if not gpu or subject.gpu_times is None:
            return cls(subject.layers, own, layer_ms, False, resolution)
        kernels = subject.gpu_times
        # The GPU and the processor may have been measured in passes of their own: as many of each.
        passes = kernels.shape[1] if own is None else min(kernels.shape[1], own.shape[1])
        times = np.full((len(kernels), passes), np.nan) if own is None else own[:, :passes].copy()
        for layer in subject.layers:
            if is_launched(layer):
                times[layer.index] = kernels[layer.index, :passes]
                layer_ms[layer.index] = layer.gpu_time_ms
        return cls(subject.layers, times, layer_ms, True, resolution)

    def ran(self, index: int) -> bool:
        """Return whether a layer has a time."""
        return self.layer_ms[index] is not None

    def series(self, part: LayerShares) -> FloatArray | None:
        """Return the sorted times of some layers in the passes in which one of them ran.

        None when they are not known by pass.
        """
        if self.times is None:
            return None
        if len(part.layers) == 1:
            alone = self.times[part.layers[0]]
            ran = ~np.isnan(alone)
            times = np.sort(alone if ran.all() else alone[ran]) * part.shares[0]
            return np.asarray(times) if times.size else None
        chosen = self.times[part.layers]
        ran = ~np.isnan(chosen)
        if not ran.any(axis=1).all():
            return None
        weighted = np.where(ran, chosen, 0.0) * np.array(part.shares)[:, None]
        return np.sort(weighted.sum(axis=0)[ran.any(axis=0)])

    def figure(self, part: LayerShares) -> float:
        """Return the sum of what layers take."""
        return math.fsum(
            (self.layer_ms[index] or 0.0) * share
            for index, share in zip(part.layers, part.shares, strict=True)
        )


def measure(subjects: Sequence[Subject]) -> list[MeasuredLayers]:
    """Return the times of reports, like with like.

    Kernel times are taken when every report that uses a GPU has them: otherwise launching in one
    would be compared with working in another.
    """
    gpu = not any(lacks_kernels(subject) for subject in subjects)
    return [MeasuredLayers.of(subject, gpu=gpu) for subject in subjects]


def lacks_kernels(subject: Subject) -> bool:
    """Return whether layers ran on a GPU whose kernels were not recorded."""
    return subject.gpu_times is None and any(launches(layer.provider) for layer in subject.layers)


GROUPINGS = ("layer", "node", "type", "op", "scope", "provider", "precision")


@dataclass(frozen=True)
class ReportCell:
    """What one report has of a row."""

    time_ms: float | None = None
    series: FloatArray | None = None
    """Of each pass, sorted; None when only the figure is known."""
    layers: tuple[int, ...] = ()
    untimed: bool = False
    """The report has no times at all."""
    statistic: Statistic = Statistic.UNDISTURBED
    """What `time_ms` is of `series`, for a single layer."""

    @classmethod
    def of(cls, measured: MeasuredLayers, part: LayerShares) -> ReportCell:
        """Return the time of some layers together, of those that ran."""
        known = [place for place, index in enumerate(part.layers) if measured.ran(index)]
        if not known:
            return cls(layers=tuple(part.layers), untimed=not measured.timed)
        timed = LayerShares([part.layers[i] for i in known], [part.shares[i] for i in known])
        return cls(measured.figure(timed), measured.series(timed), tuple(part.layers))


def rows_of_matches(
    sides: Sequence[MeasuredLayers], matches: Sequence[Match], base: int
) -> list[ComparisonRow]:
    """Return one row a match, largest difference first."""
    layers = [_most_telling(sides, match, base) for match in matches]
    drafts = [
        _Draft(
            layer.name,
            [LayerShares(list(indices), [1.0] * len(indices)) for indices in match.members],
            match.how,
            name=name,
        )
        for match, layer, name in zip(matches, layers, layer_names(layers), strict=True)
    ]
    return _rows(sides, drafts, base)


def _most_telling(sides: Sequence[MeasuredLayers], match: Match, base: int) -> Layer:
    """Return the longest layer of the base, else of the first report that has one."""
    order = [base, *(index for index in range(len(sides)) if index != base)]
    report = next(index for index in order if match.members[index])
    side = sides[report]
    longest = max(match.members[report], key=lambda index: side.layer_ms[index] or 0.0)
    return side.layers[longest]


def rows_by(
    sides: Sequence[MeasuredLayers],
    by: str,
    base: int,
    nodes: Sequence[Mapping[str, NodeKey]] = (),
) -> list[ComparisonRow]:
    """Return one row a group of layers, largest difference first.

    Args:
        sides: The reports.
        by: ``node``, ``type``, ``op``, ``scope``, ``provider`` or ``precision``.
        base: The report that the others are compared with.
        nodes: What identifies the nodes of each report, for rows by ``node``.
    """
    by_key: dict[NodeKey, list[LayerShares]] = {}
    estimates: set[NodeKey] = set()
    for report, side in enumerate(sides):
        for layer in side.layers:
            if side.timed and not side.ran(layer.index):
                continue
            for name, share, estimated in parts(layer, by):
                key = nodes[report].get(name, (name, None)) if nodes else (name, None)
                part = by_key.setdefault(key, [LayerShares() for _ in sides])[report]
                part.layers.append(layer.index)
                part.shares.append(share)
                if estimated:
                    estimates.add(key)
    drafts = [_Draft(key[0], part, estimate=key in estimates) for key, part in by_key.items()]
    return _rows(sides, drafts, base)


@dataclass(frozen=True)
class _Draft:
    """A row before its times are compared, with the fields of :class:`.records.ComparisonRow`."""

    key: str
    parts: list[LayerShares]
    """One a report."""
    match: str = ""
    estimate: bool = False
    name: str = ""


def _rows(
    sides: Sequence[MeasuredLayers], drafts: Sequence[_Draft], base: int
) -> list[ComparisonRow]:
    columns = [
        [ReportCell.of(side, draft.parts[index]) for draft in drafts]
        for index, side in enumerate(sides)
    ]
    cells = [
        column_cells(columns[index], columns[base], index == base, step_of(sides, index, base))
        for index in range(len(sides))
    ]
    names: dict[str, int] = {}
    rows = []
    for at, draft in enumerate(drafts):
        names[draft.key] = names.get(draft.key, 0) + 1
        again = "" if names[draft.key] == 1 else f" #{names[draft.key]}"
        row_cells = [column[at] for column in cells]
        if draft.estimate:
            row_cells = _judged(row_cells, draft.parts, base)
        name = draft.name and f"{draft.name}{again}"
        rows.append(
            ComparisonRow(draft.key + again, tuple(row_cells), draft.match, draft.estimate, name)
        )
    return sort_rows(rows, "delta", base)


def _judged(cells: Sequence[Cell], part: Sequence[LayerShares], base: int) -> list[Cell]:
    """Take the interval from cells whose time was shared out otherwise than that of the base.

    A node of three that were fused gets a third of their time: that is no slower Relu.
    """
    shares = sorted(part[base].shares)
    return [
        cell if sorted(part[index].shares) == shares else replace(cell, interval=None)
        for index, cell in enumerate(cells)
    ]


def step_of(sides: Sequence[MeasuredLayers], index: int, base: int) -> float:
    """Return the resolution of the clocks of two reports, in milliseconds."""
    return max(sides[index].resolution_ms, sides[base].resolution_ms)


def side_of(values: Sequence[float]) -> ReportCell:
    """Return the measured times of a plain list, such as the latency loop's."""
    series = np.sort(np.array([value for value in values if np.isfinite(value)], dtype=np.float64))
    if not series.size:
        return ReportCell(untimed=True)
    return ReportCell(median_of(series), series, statistic=Statistic.MEDIAN)


def column_cells(
    here: Sequence[ReportCell], there: Sequence[ReportCell], is_base: bool, step_ms: float = 0.0
) -> list[Cell]:
    """Return the cells of one report.

    Args:
        here: Its times, one per row.
        there: The times of the base.
        is_base: Whether they are the same.
        step_ms: The resolution of the clocks.
    """
    if is_base:
        return [Cell(side.time_ms, side.layers, untimed=side.untimed) for side in here]
    both = [
        (row, side.series, other.series)
        for row, (side, other) in enumerate(zip(here, there, strict=True))
        if side.series is not None and other.series is not None
    ]
    statistic = here[0].statistic if here else Statistic.UNDISTURBED
    sure = intervals(
        [other for _, _, other in both], [side for _, side, _ in both], step_ms, statistic
    )
    bounds = {row: interval for (row, _, _), interval in zip(both, sure, strict=True)}
    chances = {row: p_value(other, side) for row, side, other in both if bounds[row] is not None}
    holds = dict(zip(chances, discoveries(list(chances.values())), strict=True))
    cells = []
    for row, (side, other) in enumerate(zip(here, there, strict=True)):
        delta = ratio = None
        known = side.time_ms is not None or other.time_ms is not None
        if known and not (side.untimed or other.untimed):
            delta = (side.time_ms or 0.0) - (other.time_ms or 0.0)
        if side.time_ms is not None and other.time_ms:
            ratio = side.time_ms / other.time_ms
        cells.append(
            Cell(
                side.time_ms,
                side.layers,
                delta,
                ratio,
                _about(delta, bounds.get(row), side, other),
                untimed=side.untimed,
                p_value=chances.get(row),
                is_discovery=bool(holds.get(row, True)),
            )
        )
    return _with_shares(cells)


def _about(
    delta: float | None, interval: Interval | None, side: ReportCell, other: ReportCell
) -> Interval | None:
    """Return an interval of the samples about the difference of the figures.

    The figure of several layers is the sum of theirs, and not that of the sums by pass.
    """
    if delta is None or interval is None or side.series is None or other.series is None:
        return interval
    shown = statistic_of(side.series, side.statistic) - statistic_of(other.series, side.statistic)
    return Interval(interval.low_ms + delta - shown, interval.high_ms + delta - shown)


def _with_shares(cells: Sequence[Cell]) -> list[Cell]:
    moved = sum(abs(cell.delta_ms or 0.0) for cell in cells)
    return [
        cell
        if cell.delta_ms is None or moved <= 0
        else replace(cell, share_percent=share_percent(abs(cell.delta_ms), moved))
        for cell in cells
    ]


SORTS = ("delta", "ratio", "time", "name")


def sort_rows(rows: Iterable[ComparisonRow], sort: str, base: int) -> list[ComparisonRow]:
    """Return rows in another order: ``delta``, ``ratio``, ``time`` (largest first) or ``name``.

    Differences count by magnitude, and ratios the same in both directions; rows of only one report
    have no ratio and come last.
    """
    if sort == "name":
        return sorted(rows, key=lambda row: row.key)
    size: Callable[[Cell], float] = {
        "delta": lambda cell: abs(cell.delta_ms or 0.0),
        "ratio": lambda cell: abs(math.log(cell.ratio)) if cell.ratio else -1.0,
        "time": lambda cell: cell.time_ms or 0.0,
    }[sort]
    return sorted(rows, key=lambda row: (-max(map(size, row.cells), default=0.0), row.key))


def signed(value: float | None) -> str:
    """Return a difference in milliseconds with its sign, without the unit."""
    return fmt.UNKNOWN if value is None else f"{value:+,.3f}"


def ratio_text(cell: Cell) -> str:
    """Return a ratio, e.g. ``0.54×``; a dash without one."""
    return fmt.UNKNOWN if cell.ratio is None else f"{cell.ratio:,.2f}×"


def half_width(cell: Cell) -> float | None:
    """Return half the width of the interval of a difference, in milliseconds; None without."""
    bounds = cell.interval
    return None if bounds is None else (bounds.high_ms - bounds.low_ms) / 2


def margin(cell: Cell) -> str:
    """Return what :func:`half_width` does as text; empty without."""
    half = half_width(cell)
    return "" if half is None else fmt.milliseconds(half)


def difference_of(cell: Cell) -> Estimate | None:
    """Return a difference in milliseconds with its interval; None where there is none."""
    if cell.delta_ms is None:
        return None
    bounds = cell.interval or Interval(cell.delta_ms, cell.delta_ms)
    return Estimate(cell.delta_ms, bounds.low_ms, bounds.high_ms)


def time_of(cell: Cell) -> Estimate | None:
    """Return a time in milliseconds with the interval of its difference from the base."""
    if cell.time_ms is None:
        return None
    delta = difference_of(cell) or Estimate(0.0, 0.0, 0.0)
    return Estimate(cell.time_ms, *(cell.time_ms - delta.value + end for end in delta[1:]))


def certainty(cell: Cell) -> str:
    """Return what to add to a difference that may be noise; empty where it is more."""
    if cell.noise is None:
        return ", not certain"
    return ", within noise" if cell.noise else ""


def verdict(cell: Cell) -> str:
    """Return a difference with its ratio, and whether it can be noise."""
    ratio = "" if cell.ratio is None else f" ({ratio_text(cell)})"
    text = f"{signed(cell.delta_ms)} ms{ratio}"
    bounds = cell.interval
    if bounds is None:
        return f"{text}, too few passes to tell whether that is noise"
    judged = "within noise" if cell.noise else "more than the noise within the runs"
    if cell.noise and not bounds.low_ms <= 0 <= bounds.high_ms:
        judged = "within noise by the rank test, though not by its interval"
    span = f"{signed(bounds.low_ms)} to {signed(bounds.high_ms)} ms"
    return f"{text}, {judged} ({LEVEL_PERCENT:.0f} % interval {span})"
