"""The counters under the lanes of a timeline: one row each, with the real value at the cursor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.report.gpu_records import Bucket
from dld_tui.core.text import cell_width, clip, fit
from dld_tui.widgets import glyphs
from dld_tui.widgets.bars import ASCII_LEVELS, LEVELS, columns
from dld_tui.widgets.line_source import Piece
from dld_tui.widgets.timeline_model import CounterRow, Measure, Timeline
from dld_tui.widgets.timescale import TimeScale

if TYPE_CHECKING:
    from textual.widget import Widget

    class _Base(Widget):
        timeline: Timeline
        scale: TimeScale
        lane: int
        index: int

        def measure_now(self) -> Measure | None: ...
else:
    _Base = object

COUNTER_TITLE_CELLS = 20
"""The names of lanes and counters, with a value beside them, when there are counters."""
_PARTS = 16
"""A mean is taken over so many parts of a time: blocks at its ends count less."""
_ROWS_BELOW = 2
"""Lines that are left for what the cursor is on, when not all fits."""


def value_text(value: float | None, unit: str) -> str:
    """Return a value with its unit in three digits, e.g. ``97.3 %``, ``1.2k MHz``."""
    if value is None:
        return fmt.UNKNOWN
    number = f"{value:.0f}" if abs(value) >= 99.95 else f"{value:.1f}"
    if abs(value) >= 100_000:
        number = fmt.short_count(value)
    return f"{number} {unit}".rstrip()


def mean_of(row: CounterRow, start_us: float, end_us: float) -> float | None:
    """Return the mean of a counter over a time; None where nothing was measured."""
    known = [bucket for bucket in row.series(start_us, end_us, _PARTS) if bucket is not None]
    counted = [bucket for bucket in known if bucket.samples]
    if counted:
        total = sum(bucket.mean * bucket.samples for bucket in counted)
        return total / sum(bucket.samples for bucket in counted)
    # Between two samples: the nearest one.
    return sum(bucket.mean for bucket in known) / len(known) if known else None


def counter_line(
    row: CounterRow,
    series: Sequence[Bucket | None],
    value: float | None,
    width: int,
    *,
    ranged: bool = False,
) -> list[Piece]:
    """Return the row of a counter: title, value, and the values over time.

    Args:
        row: The counter.
        series: One value a cell.
        value: At the cursor, or the mean of what is measured.
        width: Cells for all.
        ranged: Whether `value` is a mean.
    """
    room = max(width - COUNTER_TITLE_CELLS, 1)
    if row.absent is not None:
        title: list[Piece] = [(fit(row.title, COUNTER_TITLE_CELLS), "dim")]
        return [*title, (clip(f"not measured: {row.absent}", room), "warn")]
    text = value_text(value, row.unit)
    name = max(COUNTER_TITLE_CELLS - cell_width(text) - 2, 4)
    mark = ("~" if glyphs.current().name == "ascii" else "⌀") if ranged else " "
    head: list[Piece] = [
        (fit(row.title, name), "dim"),
        (mark, "faint"),
        (text + " ", "measure" if ranged else "number"),
    ]
    if not any(series):
        return [*head, (clip("no sample in this part of the run", room), "faint")]
    ramp = ASCII_LEVELS if glyphs.current().name == "ascii" else LEVELS
    values = [None if bucket is None else bucket.mean for bucket in series]
    return [*head, (columns(values, 1, high=row.top, ramp=ramp)[0], "bar")]


class TimelineCounters(_Base):
    """A mixin: which counters are seen, and their values at the present scale."""

    _series: dict[int, Sequence[Bucket | None]]

    @property
    def title_cells(self) -> int:
        """The width of the names at the left."""
        return COUNTER_TITLE_CELLS if self.timeline.counters else 10

    @property
    def counter_count(self) -> int:
        """How many counters are seen: some rows are left for lanes and text."""
        lanes = min(max(len(self.timeline.lanes), 1), 4)
        room = self.size.height - 2 - lanes - _ROWS_BELOW
        return min(len(self.timeline.counters), max(room, 0))

    def counter_pieces(self, number: int) -> list[Piece]:
        """Return the row of a counter."""
        row = self.timeline.counters[number]
        series = self._series.get(number)
        if series is None:
            scale = self.scale
            series = row.series(scale.offset_us, scale.end_us, scale.cells)
            self._series[number] = series
        measured = self.measure_now()
        value = None
        if row.absent is None and self.timeline.lanes:
            value = mean_of(row, *self._asked(measured))
        ranged = measured is not None and measured.length_us > 0
        return counter_line(row, series, value, self.size.width, ranged=ranged)

    def _asked(self, measured: Measure | None) -> tuple[float, float]:
        """Return the time whose mean is shown: what is measured, or else the cursor's span."""
        if measured is not None and measured.length_us > 0:
            return measured.start_us, measured.end_us
        lane = self.timeline.lanes[self.lane]
        if not len(lane):
            return self.scale.offset_us, self.scale.end_us
        start, end = lane.starts[self.index], lane.ends[self.index]
        return start, max(end, start + 0.001)
