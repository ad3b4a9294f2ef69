"""The timeline of one pass: overview, axis, lanes, and what the cursor is on.

Only visible cells are computed, once for each position and zoom; a cursor move repaints the lanes
that it touches and the lines below.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from dld_tui.core.report.gpu_records import Bucket, GpuEvent
from dld_tui.core.text import fit, visible
from dld_tui.widgets.commands import Commands, bindings_for
from dld_tui.widgets.frame import Frame
from dld_tui.widgets.line_source import Piece
from dld_tui.widgets.timeline_cells import (
    Cell,
    Label,
    labels,
    lane_cells,
    with_cursor,
)
from dld_tui.widgets.timeline_counters import TimelineCounters
from dld_tui.widgets.timeline_lines import (
    axis_line,
    longest_lines,
    measure_line,
    overview_line,
)
from dld_tui.widgets.timeline_model import Lane, Measure, Timeline, measure
from dld_tui.widgets.timeline_moves import TimelineMoves
from dld_tui.widgets.timeline_paint import paint
from dld_tui.widgets.timeline_styles import TimelineStyles
from dld_tui.widgets.timescale import TimeScale

_TALLEST = 3
"""Rows that a lane takes when there is room."""

_LEAST_LONGEST = 3
"""Rows that must be left for the list of what took longest."""

_ROWS_OF_TEXT = 6
"""Rows for the cursor's layer that tall lanes leave when there are counters, too."""

Describe = Callable[[int], "Sequence[Sequence[Piece]]"]
"""Given a number of lines, says what to write about what is under the cursor."""


class TimelineView(
    Frame,
    TimelineMoves,
    TimelineCounters,
    TimelineStyles,
    Commands,
    Widget,
    can_focus=True,
    inherit_bindings=False,
):
    """What ran when, with zoom, pan and measuring."""

    SCOPE = "timeline"
    BINDINGS = bindings_for("timeline")
    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = TimelineStyles.COMPONENT_CLASSES
    HELP = (
        "What ran when in one pass. Arrows go from layer to layer and lane to lane; + - 0 zoom, "
        "Shift with arrows pans, Space sets a mark and measures from there. x goes from a layer to "
        "its kernel on the GPU and back. Counters show their value at the cursor, or their mean "
        "between the marks."
    )

    @dataclass
    class CursorMoved(Message):
        """The cursor is on a span of another layer."""

        timeline: TimelineView
        key: int

        @property
        def control(self) -> TimelineView:
            """Return the timeline, for ``@on`` selectors."""
            return self.timeline

    @dataclass
    class Activated(Message):
        """Enter or a double click on a span."""

        timeline: TimelineView
        key: int

        @property
        def control(self) -> TimelineView:
            """Return the timeline, for ``@on`` selectors."""
            return self.timeline

    def __init__(self, *, empty: str = "", id: str | None = None) -> None:
        super().__init__(id=id, classes="frame")
        self.empty = empty
        self.timeline = Timeline([], 0.0)
        self.scale = TimeScale.fit(1.0, 1)
        self.lane = 0
        self.index = 0
        self.top_lane = 0
        self.anchor_us: float | None = None
        """The first mark of a measure."""
        self.measured: Measure | None = None
        self.describe: Describe = lambda room: ()
        self._series: dict[int, Sequence[Bucket | None]] = {}
        self._last_measure: tuple[tuple[float, int, int], Measure] | None = None
        self._cells: dict[int, tuple[list[Cell], list[Label]]] = {}
        self._overview: list[float | None] = []
        self._longest: list[tuple[float, int]] | None = None

    def facts(self) -> set[str]:
        """Return what holds now."""
        return super().facts() | ({"kernels"} if self.timeline.has_gpu else set())

    # Content

    def set_timeline(self, timeline: Timeline, empty: str | None = None) -> None:
        """Show another pass from its beginning."""
        key = self.key_at_cursor()
        self.timeline = timeline
        self.empty = self.empty if empty is None else empty
        self.lane, self.index = (timeline.find(key) if key is not None else None) or (0, 0)
        self.top_lane = 0
        self.anchor_us = self.measured = self._last_measure = None
        self.scale = TimeScale.fit(timeline.total_us, self.window_cells)
        self.rescaled()
        self.refresh_bindings()

    def key_at_cursor(self) -> int | None:
        """Return the layer under the cursor, or None when there is nothing or none is known."""
        lane = self._lane_at_cursor()
        return None if lane is None or lane.keys[self.index] < 0 else lane.keys[self.index]

    def event_at_cursor(self) -> GpuEvent | None:
        """Return the GPU's work under the cursor, or None on a processor's."""
        lane = self._lane_at_cursor()
        if lane is None or lane.events[self.index] < 0:
            return None
        return self.timeline.events[lane.events[self.index]]

    def _lane_at_cursor(self) -> Lane | None:
        if self.lane >= len(self.timeline.lanes):
            return None
        lane = self.timeline.lanes[self.lane]
        return lane if self.index < len(lane) else None

    def go_to(self, key: int, frame: bool = False) -> bool:
        """Move the cursor to a layer's longest span; False when it did not run in this pass.

        Args:
            key: The layer.
            frame: Also zoom so that the span can be told from its neighbours.
        """
        place = self.timeline.find(key)
        if place is None:
            return False
        lane = self.timeline.lanes[place[0]]
        if frame:
            start, end = lane.starts[place[1]], lane.ends[place[1]]
            if end - start < 3 * self.scale.us_per_cell:
                self.scale = self.scale.framing(start, end)
                self.rescaled()
        self.move_to(*place)
        return True

    # Geometry

    @property
    def window_cells(self) -> int:
        """The width of the part that shows time."""
        return max(self.size.width - self.title_cells, 1)

    @property
    def lane_height(self) -> int:
        """Rows a lane takes: more than one when all lanes have room."""
        count = len(self.timeline.lanes)
        room = self.size.height - 4 - self.counter_count
        if self.timeline.counters:
            room -= _ROWS_OF_TEXT - 2
        return max(1, min(_TALLEST, room // count)) if count else 1

    @property
    def lane_rows(self) -> int:
        """Rows that the lanes take in all; the rest is for the description."""
        room = max(self.size.height - 3 - self.counter_count, 1)
        return min(len(self.timeline.lanes) * self.lane_height, room)

    @property
    def lanes_seen(self) -> int:
        """How many lanes are seen at once."""
        return max(self.lane_rows // self.lane_height, 1)

    def on_resize(self) -> None:
        """Take the new width, and keep the cursor's lane in view."""
        self._draw_frame()
        self.scale = self.scale.resized(self.window_cells)
        self.rescaled()
        self.show_lane()

    def rescaled(self) -> None:
        """Draw everything again after the scale or the content changed."""
        self._cells.clear()
        self._series.clear()
        self._longest = None
        self._overview = self.timeline.overview(self.window_cells)
        self.refresh()

    def moved(self, old: tuple[int, int]) -> None:
        """Repaint the cells of the span that was left and of the one reached, and the text below.

        Args:
            old: Lane and index of the span that was left.
        """
        touched: dict[int, tuple[int, int]] = {}
        for lane, index in (old, (self.lane, self.index)):
            row = 2 + (lane - self.top_lane) * self.lane_height
            if not 2 <= row < 2 + self.lane_rows or index >= len(self.timeline.lanes[lane]):
                continue
            spans = self.timeline.lanes[lane]
            left = max(int(self.scale.cell_of(spans.starts[index])) - 1, 0) + self.title_cells
            right = int(self.scale.cell_of(spans.ends[index])) + 2 + self.title_cells
            if old[0] != self.lane:
                left = 0  # the names of the lanes change, too
            # Everything to the left of a region is sent again, so one a row is better than two.
            known = touched.get(row, (left, right))
            touched[row] = (min(left, known[0]), max(right, known[1]))
        for row, (left, right) in touched.items():
            width = min(right, self.size.width) - left
            if width > 0:
                self.refresh(Region(left, row, width, self.lane_height))
        below = 2 + self.lane_rows
        self.refresh(Region(0, below, self.size.width, max(self.size.height - below, 0)))

    # Drawing

    def render_line(self, y: int) -> Strip:
        """Draw one line."""
        width = self.size.width
        if not self.timeline.lanes:
            text = self.empty if y == 0 else ""
            return self.strip_of([(visible(text), "dim")], width)
        below = y - 2 - self.lane_rows
        if y == 0:
            line = overview_line(self._overview, self.scale, self.title_cells)
            return self.strip_of(line, width)
        if y == 1:
            return self.strip_of(axis_line(self.scale, self.title_cells), width)
        if below < 0:
            return self._lane_strip(y - 2)
        if below < self.counter_count:
            return self.strip_of(self.counter_pieces(below), width)
        below -= self.counter_count
        measured = self.measure_now()
        if measured is None:
            return self.strip_of(self._description(below, 0), width)
        if below == 0:
            return self.strip_of(measure_line(measured, self.scale, self.title_cells), width)
        return self.strip_of(self._description(below - 1, 1), width)

    def _description(self, row: int, rows_above: int) -> Sequence[Piece]:
        """Return a line about the cursor's layer, or below it what took longest in the window."""
        room = self.size.height - 2 - self.lane_rows - self.counter_count - rows_above
        lines = self.describe(room)
        if row < len(lines):
            return lines[row]
        row -= len(lines) + 1  # one blank line between the two
        room -= len(lines) + 1
        if row < 0 or room < _LEAST_LONGEST:
            return ()
        if self._longest is None:
            start, end = self.scale.offset_us, self.scale.end_us
            self._longest = self.timeline.longest(start, end, self.size.height)
        found = longest_lines(
            self._longest[: room - 1], self.timeline.names, self.size.width, self.title_cells
        )
        return found[row] if row < len(found) else ()

    def _lane_strip(self, row: int) -> Strip:
        height = self.lane_height
        number, part = self.top_lane + row // height, row % height
        if number >= len(self.timeline.lanes):
            return Strip.blank(self.size.width, self.piece_style(""))
        lane = self.timeline.lanes[number]
        cells, texts = self.cells_of(number)
        if number == self.lane and len(lane):
            cells = with_cursor(cells, lane, self.index, self.scale)
        middle = part == (height - 1) // 2
        title = lane.title if middle else ""
        style = "accent" if number == self.lane and self.has_focus else "dim"
        name = fit(visible(title), self.title_cells - 1) + " "
        segments = [Segment(name, self.piece_style(style))]
        segments += self.bar_segments(paint(cells, texts if middle else (), self.shades()))
        return Strip(segments).adjust_cell_length(self.size.width, self.piece_style(""))

    def cells_of(self, number: int) -> tuple[list[Cell], list[Label]]:
        """Return the cells and labels of a lane at the present scale."""
        found = self._cells.get(number)
        if found is None:
            lane = self.timeline.lanes[number]
            texts = labels(lane, self.scale, self.timeline.names)
            found = self._cells[number] = (lane_cells(lane, self.scale), texts)
        return found

    # Measuring

    def measure_now(self) -> Measure | None:
        """Return what is measured: between two marks, or from the mark to the cursor."""
        if self.measured is not None or self.anchor_us is None:
            return self.measured
        return self.measure_to_cursor(self.anchor_us)

    def measure_to_cursor(self, anchor_us: float) -> Measure:
        """Return what lies between a time and the cursor's span, that span included."""
        lane = self.timeline.lanes[self.lane]
        start, end = lane.starts[self.index], lane.ends[self.index]
        key = (anchor_us, self.lane, self.index)
        known = self._last_measure
        if known is None or known[0] != key:  # several lines are drawn from one measure
            other = end if end > anchor_us else start
            known = (key, measure(self.timeline, anchor_us, other, lane.gpu))
            self._last_measure = known
        return known[1]

    # Mouse

    def on_click(self, event: events.Click) -> None:
        """Move to what was clicked; on the overview go there; twice opens."""
        offset = event.get_content_offset(self)
        if offset is None or not self.timeline.lanes:
            return
        cell = offset.x - self.title_cells
        event.stop()
        if offset.y == 0:
            at = self.timeline.total_us * cell / self.window_cells
            self.scale = self.scale.panned(self.scale.cell_of(at) - self.scale.cells / 2)
            self.rescaled()
            return
        row = offset.y - 2
        number = self.top_lane + row // self.lane_height
        if self.lane_rows <= row < self.lane_rows + self.counter_count:
            number = self.lane  # a counter is read at what ran then
        elif not (0 <= row < self.lane_rows and number < len(self.timeline.lanes)):
            return
        found = self.timeline.lanes[number].nearest(self.scale.time_of(max(cell, 0) + 0.5))
        if found is not None:
            self.move_to(number, found)
            if event.chain == 2:
                self.action_activate()
