"""The timeline of one pass: overview, axis, lanes, counters, and what the cursor is on.

Only visible cells are computed, once for each position and zoom; a cursor move repaints the lanes
that it touches and the lines below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from dld_tui.commands.command import table
from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.report.layer_table import all_nodes
from dld_tui.core.report.records import Bucket, GpuEvent, Layer
from dld_tui.core.statistics import share_percent
from dld_tui.core.text import cell_width, clip, fit, visible
from dld_tui.core.text.names import cut_names
from dld_tui.core.types import JSON
from dld_tui.widgets.charts.bars import ASCII_LEVELS, LEVELS, Line, columns
from dld_tui.widgets.lists.styled import Piece, operator_style
from dld_tui.widgets.results.report_views import layer_lines
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.command_dispatch import Commands
from dld_tui.widgets.shell.frame import Framed
from dld_tui.widgets.timeline.cells import (
    COMPONENTS,
    Cell,
    Label,
    TimelineStyles,
    TimeScale,
    axis,
    labels,
    lane_cells,
    paint,
    time_text,
    with_cursor,
)
from dld_tui.widgets.timeline.lanes import CounterRow, Lane, Measure, Timeline, kernel_name, measure

TITLE_CELLS = 10
"""The names of the lanes, at the left."""


def overview_line(
    longest: Sequence[float | None], scale: TimeScale, title: int = TITLE_CELLS
) -> list[Piece]:
    """Return the whole pass as a sparkline with the window marked in it."""
    ramp = ASCII_LEVELS if glyphs.current().name == "ascii" else LEVELS
    levels = columns(longest, 1, ramp=ramp)[0]
    per_cell = scale.total_us / max(len(levels), 1)
    first = round(scale.offset_us / per_cell)
    last = max(round(scale.end_us / per_cell), first + 1)
    window = "bar window" if scale.zoom > 1.001 else "bar"
    return [
        (fit("longest", title), "dim"),
        (levels[:first], "bar"),
        (levels[first:last], window),
        (levels[last:], "bar"),
    ]


def axis_line(scale: TimeScale, title: int = TITLE_CELLS) -> list[Piece]:
    """Return the zoom, the unit of the ticks, and the ticks."""
    ticks = axis(scale)
    line = [" "] * scale.cells
    for cell, label in ticks.ticks:
        line[cell : cell + len(label)] = label
    text = "".join(line).rstrip()
    zoom = scale.zoom
    times = "" if zoom < 1.005 else f"{zoom:.1f}x" if zoom < 10 else f"{zoom:,.0f}x"
    unit = f" {ticks.unit} "
    return [(fit(times, title - len(unit)), "dim"), (unit, "faint"), (text, "axis")]


def measure_text(measured: Measure) -> str:
    """Return how long a measure is and what was busy in it."""
    plural = "layer" if measured.layers == 1 else "layers"
    busy = [] if measured.on_gpu else [f"{time_text(measured.self_us)} busy"]
    if measured.gpu_us is not None:
        share = share_percent(measured.gpu_us, measured.length_us) or 0.0
        busy.append(f"GPU {time_text(measured.gpu_us)} busy ({fmt.whole_percent(share)} %)")
    return f" {time_text(measured.length_us)}: {measured.layers} {plural}, {', '.join(busy)} "


def measure_line(measured: Measure, scale: TimeScale, title: int = TITLE_CELLS) -> list[Piece]:
    """Return a bracket between two marks, with the time and the layers between them."""
    text = measure_text(measured)
    left = max(round(scale.cell_of(measured.start_us)), 0)
    right = min(round(scale.cell_of(measured.end_us)), scale.cells)
    width = max(right - left, 0)
    begin, line, end = "|-|" if glyphs.current().name == "ascii" else "├─┤"
    if width >= len(text) + 4:
        side = width - len(text) - 2
        bracket = begin + line * (side // 2) + text + line * (side - side // 2) + end
    else:
        bracket = (begin + line * (width - 2) + end if width >= 2 else begin) + text
        left = max(min(left, scale.cells - len(bracket)), 0)
    return [(fit("measure", title) + " " * left, "dim"), (bracket, "measure")]


def longest_lines(
    longest: Sequence[tuple[float, int]],
    names: Mapping[int, tuple[str, ...]],
    width: int,
    title: int = TITLE_CELLS,
) -> list[list[Piece]]:
    """Return a title and a line for each (self time in microseconds, key of its name)."""
    blank: Piece = (" " * title, "")
    lines: list[list[Piece]] = [[blank, ("longest in view", "dim")]]
    called = [names.get(key) or ("", "") for _, key in longest]
    shown = cut_names([name for name, *_ in called], max(width - 32 - title, 8))
    for (length, _), name, (*_, kind) in zip(longest, shown, called, strict=True):
        lines.append(
            [
                blank,
                (f"{time_text(length):>9}  ", "number"),
                (fit(kind, 18, keep="middle") + "  ", operator_style(kind)),
                (name, ""),
            ]
        )
    return lines


COUNTER_TITLE_CELLS = 20
"""The names of lanes and counters, with a value beside them, when there are counters."""
_PARTS = 16
"""A mean is taken over so many parts of a time: blocks at its ends count less."""
_ROWS_BELOW, _LOW = 2, 10
"""Lines that are left for what the cursor is on, when not all fits; none in a view of few lines."""


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


_ZOOM = 1.6


_TALLEST = 3
"""Rows that a lane takes when there is room."""

_LEAST_LONGEST = 3
"""Rows that must be left for the list of what took longest."""

_ROWS_OF_TEXT = 6
"""Rows for the cursor's layer that tall lanes leave when there are counters, too."""

Describe = Callable[[int], "Sequence[Sequence[Piece]]"]
"""Returns so many lines about the item under the cursor."""


class TimelineView(
    Framed,
    Commands,
    Widget,
    can_focus=True,
    inherit_bindings=False,
):
    """What ran when, with zoom, pan and measuring."""

    SCOPE = "timeline"
    COMMAND_TABLE = table(
        "timeline",
        ("timeline.left", "previous_span", "left,h", "", "previous layer",
         "Go to the previous span."),
        ("timeline.right", "next_span", "right,l", "", "next layer", "Go to the next span."),
        ("timeline.up", "lane_up", "up,k", "", "lane above", "Go to the parent or another thread."),
        ("timeline.down", "lane_down", "down,j", "", "lane below",
         "Go to the child or another thread."),
        ("timeline.first", "first_span", "home,g", "", "first layer", "Go to the first span."),
        ("timeline.last", "last_span", "end,G", "", "last layer", "Go to the last span."),
        ("timeline.pan_left", "pan left", "shift+left", "", "pan left", "Pan left."),
        ("timeline.pan_right", "pan right", "shift+right", "", "pan right", "Pan right."),
        ("timeline.page_left", "pan page_left", "pageup,ctrl+b", "", "page left",
         "Pan left by almost one screen."),
        ("timeline.page_right", "pan page_right", "pagedown,ctrl+f", "", "page right",
         "Pan right by almost one screen."),
        ("timeline.measure", "measure", "space", "", "measure",
         "Set the first mark, then the second, then clear both."),
        ("timeline.cross", "cross", "X", "kernels", "kernel or layer",
         "Go from a layer to its GPU kernel, or back."),
        ("timeline.open", "activate", "enter", "", "show layer", "Show the layer in the table."),
        palette=False, footer="timeline.measure timeline.cross timeline.open",
    )  # fmt: skip
    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = COMPONENTS
    HELP = (
        "The timeline of one pass. Arrows go from span to span and lane to lane; {report.zoom_in} "
        "{report.zoom_out} {report.zoom_reset} zoom, Shift with arrows pans, {timeline.measure} "
        "sets a mark and measures from there. {timeline.cross} goes from a layer to its GPU kernel "
        "and back. Counters show their value at the cursor, or their mean between the marks."
    )

    @dataclass
    class CursorMoved(Message):
        """The cursor is on a span of another layer."""

        timeline: TimelineView
        key: int

    @dataclass
    class Activated(Message):
        """Enter or a double click on a span."""

        timeline: TimelineView
        key: int

    def __init__(self, *, empty: str = "", id: str | None = None) -> None:
        super().__init__(id=id, classes="frame")
        self.piece_styles = TimelineStyles(self)
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

    def conditions(self) -> set[str]:
        return super().conditions() | ({"kernels"} if self.timeline.has_gpu else set())

    # Content

    def set_timeline(self, timeline: Timeline) -> None:
        """Show another pass from its beginning."""
        key = self.key_at_cursor()
        self.timeline = timeline
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
        self.frame.draw()
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

    def notify_style_update(self) -> None:
        """Forget the styles of pieces."""
        super().notify_style_update()
        self.piece_styles.forget()

    def render_line(self, y: int) -> Strip:
        """Draw one line."""
        width = self.size.width
        if not self.timeline.lanes:
            text = self.empty if y == 0 else ""
            return self.piece_styles.strip([(visible(text), "dim")], width)
        below = y - 2 - self.lane_rows
        if y == 0:
            line = overview_line(self._overview, self.scale, self.title_cells)
            return self.piece_styles.strip(line, width)
        if y == 1:
            return self.piece_styles.strip(axis_line(self.scale, self.title_cells), width)
        if below < 0:
            return self._lane_strip(y - 2)
        if below < self.counter_count:
            return self.piece_styles.strip(self.counter_pieces(below), width)
        below -= self.counter_count
        measured = self.measure_now()
        if measured is None:
            return self.piece_styles.strip(self._description(below, 0), width)
        if below == 0:
            return self.piece_styles.strip(
                measure_line(measured, self.scale, self.title_cells), width
            )
        return self.piece_styles.strip(self._description(below - 1, 1), width)

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
        descriptions = longest_lines(
            self._longest[: room - 1], self.timeline.names, self.size.width, self.title_cells
        )
        return descriptions[row] if row < len(descriptions) else ()

    def _lane_strip(self, row: int) -> Strip:
        height = self.lane_height
        number, part = self.top_lane + row // height, row % height
        if number >= len(self.timeline.lanes):
            return Strip.blank(self.size.width, self.piece_styles.style(""))
        lane = self.timeline.lanes[number]
        cells, texts = self.cells_of(number)
        if number == self.lane and len(lane):
            cells = with_cursor(cells, lane, self.index, self.scale)
        middle = part == (height - 1) // 2
        title = lane.title if middle else ""
        style = "accent" if number == self.lane and self.has_focus else "dim"
        name = fit(visible(title), self.title_cells - 1) + " "
        segments = [Segment(name, self.piece_styles.style(style))]
        segments += self.piece_styles.bar_segments(
            paint(cells, texts if middle else (), self.piece_styles.shades())
        )
        return Strip(segments).adjust_cell_length(self.size.width, self.piece_styles.style(""))

    def cells_of(self, number: int) -> tuple[list[Cell], list[Label]]:
        """Return the cells and labels of a lane at the present scale."""
        cells = self._cells.get(number)
        if cells is None:
            lane = self.timeline.lanes[number]
            texts = labels(lane, self.scale, self.timeline.names)
            cells = self._cells[number] = (lane_cells(lane, self.scale), texts)
        return cells

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
        span = self.timeline.lanes[number].nearest(self.scale.time_of(max(cell, 0) + 0.5))
        if span is not None:
            self.move_to(number, span)
            if event.chain == 2:
                self.action_activate()

    def move_to(self, lane: int, index: int) -> None:
        """Put the cursor on a span and bring it into view."""
        if not (0 <= lane < len(self.timeline.lanes) and self.timeline.lanes[lane].starts):
            return
        before, old = self.key_at_cursor(), (self.lane, self.index)
        spans = self.timeline.lanes[lane]
        self.lane, self.index = lane, min(max(index, 0), len(spans) - 1)
        shown = self.scale.showing(spans.starts[self.index], spans.ends[self.index])
        if shown != self.scale:
            self.scale = shown
            self.rescaled()
        self.show_lane()
        self.moved(old)
        key = self.key_at_cursor()
        if key is not None and key != before:
            self.post_message(self.CursorMoved(self, key))

    def show_lane(self) -> None:
        """Scroll the lanes so that the cursor's one is seen."""
        seen = self.lanes_seen
        last = max(len(self.timeline.lanes) - seen, 0)
        top = min(max(self.top_lane, self.lane - seen + 1), self.lane, last)
        if top != self.top_lane:
            self.top_lane = top
            self.refresh()

    def action_previous_span(self) -> None:
        self.move_to(self.lane, self.index - 1)

    def action_next_span(self) -> None:
        self.move_to(self.lane, self.index + 1)

    def action_lane_up(self) -> None:
        self._change_lane(-1)

    def action_lane_down(self) -> None:
        self._change_lane(1)

    def _change_lane(self, step: int) -> None:
        lanes = self.timeline.lanes
        target = self.lane + step
        if not 0 <= target < len(lanes) or not lanes[self.lane].starts:
            return
        here = lanes[self.lane]
        start, end = here.starts[self.index], here.ends[self.index]
        inside = lanes[target].between(start, end) if step > 0 else range(0)
        span = inside[0] if inside else lanes[target].nearest((start + end) / 2)
        if span is not None:
            self.move_to(target, span)

    def action_cross(self) -> None:
        """Go from a layer to its kernel on the GPU, or from a kernel to the layer's launch."""
        key = self.key_at_cursor()
        if key is None:
            return
        on_gpu = self.timeline.lanes[self.lane].gpu
        place = self.timeline.find_launch(key) if on_gpu else self.timeline.find_kernel(key)
        if place is not None:
            self.move_to(*place)
        else:
            meaning = "The layer's launch" if on_gpu else "A kernel of this layer"
            self.notify(f"{meaning} is not in this pass", timeout=3)

    def action_first_span(self) -> None:
        self.move_to(self.lane, 0)

    def action_last_span(self) -> None:
        if self.timeline.lanes:
            self.move_to(self.lane, len(self.timeline.lanes[self.lane]) - 1)

    def action_zoom_in(self) -> None:
        self._zoom(_ZOOM)

    def action_zoom_out(self) -> None:
        self._zoom(1 / _ZOOM)

    def action_zoom_reset(self) -> None:
        self._rescale(TimeScale.fit(self.timeline.total_us, self.scale.cells))

    def _zoom(self, factor: float) -> None:
        lanes = self.timeline.lanes
        about = None
        if lanes and lanes[self.lane].starts:
            lane = lanes[self.lane]
            middle = (lane.starts[self.index] + lane.ends[self.index]) / 2
            if self.scale.offset_us <= middle <= self.scale.end_us:
                about = middle
        self._rescale(self.scale.zoomed(factor, about))

    def action_pan(self, direction: str) -> None:
        """Move the window: ``left`` and ``right`` by a fifth, ``page_…`` by four fifths."""
        part = 0.8 if direction.startswith("page") else 0.2
        step = self.scale.cells * part
        self._rescale(self.scale.panned(-step if direction.endswith("left") else step))

    def _rescale(self, scale: TimeScale) -> None:
        if scale != self.scale:
            self.scale = scale
            self.rescaled()

    def action_measure(self) -> None:
        lanes = self.timeline.lanes
        if not lanes or not lanes[self.lane].starts:
            return
        if self.measured is not None:
            self.anchor_us = self.measured = None
        elif self.anchor_us is None:
            self.anchor_us = lanes[self.lane].starts[self.index]
        else:
            self.measured = self.measure_to_cursor(self.anchor_us)
        self.refresh()

    def clear_measure(self) -> bool:
        """Forget the marks; False when there were none."""
        had = self.anchor_us is not None
        self.anchor_us = self.measured = None
        if had:
            self.refresh()
        return had

    def action_activate(self) -> None:
        key = self.key_at_cursor()
        if key is not None:
            self.post_message(self.Activated(self, key))

    _series: dict[int, Sequence[Bucket | None]]

    @property
    def title_cells(self) -> int:
        """The width of the names at the left."""
        return COUNTER_TITLE_CELLS if self.timeline.counters else 10

    @property
    def counter_count(self) -> int:
        """How many counters are seen: some rows are left for lanes and text."""
        lanes = min(max(len(self.timeline.lanes), 1), 4)
        height = self.size.height
        room = height - 2 - lanes - (_ROWS_BELOW if height >= _LOW else 0)
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


def span_lines(view: TimelineView, layers: Sequence[Layer], room: int) -> list[Line]:
    """Return at most `room` lines about the span under the cursor, the most telling first."""
    lane = view.timeline.lanes[view.lane]
    if view.index >= len(lane):
        return []
    key, width = lane.keys[view.index], view.size.width
    layer = layers[key] if 0 <= key < len(layers) else None
    event = view.event_at_cursor()
    if event is not None:
        return event_lines(event, layer, width)[:room]
    if layer is None:
        return []
    start, took = lane.starts[view.index], lane.self_times[view.index]
    lines = layer_lines(layer, start, took, width)
    kernels = view.timeline.kernels_of(key)
    if kernels:
        lines[2:2] = [kernels_line(kernels, width)]
    return lines[:room]


def kernels_line(kernels: Sequence[GpuEvent], width: int) -> Line:
    """Return a layer's kernels in this pass on one line, the longest first."""
    total = sum(kernel.duration_us for kernel in kernels)
    times: dict[str, list[float]] = {}
    for kernel in kernels:
        times.setdefault(kernel.name, []).append(kernel.duration_us)
    ordered = sorted(times.items(), key=lambda item: -sum(item[1]))
    parts = [
        f"{time_text(sum(took))} {visible(kernel_name(name))}{_times(len(took))}"
        for name, took in ordered
    ]
    head = f"{time_text(total)} in {fmt.plural(len(kernels), 'kernel')}"
    dot = f" {glyphs.current().dot} "
    text = clip(dot.join(parts), max(width - len(head) - 12, 8))
    return [("   GPU  ", "dim"), (head, "number"), ("  ", ""), (text, "")]


def _times(count: int) -> str:
    return f"×{count:,}" if count > 1 else ""


def event_lines(event: GpuEvent, layer: Layer | None, width: int) -> list[Line]:
    """Return lines about a kernel, a copy or other work of a GPU.

    Args:
        event: The work.
        layer: Whose it is, when that is known.
        width: Cells.
    """
    name = visible(event.name) or event.kind
    first: Line = [
        (f" {glyphs.current().cursor} ", "accent"),
        (f"{event.kind}  ", "dim"),
        (clip(name, max(width - 14, 8)), "strong"),
    ]
    second: Line = [
        ("   at ", "dim"),
        (time_text(event.start_us), ""),
        (" for ", "dim"),
        (time_text(event.duration_us), "number"),
        ("  on ", "dim"),
        (visible(event.stream), ""),
    ]
    if event.bytes is not None:
        rate = event.bytes / event.duration_us / 1000 if event.duration_us > 0 else None
        second += [("  ", ""), (fmt.size(event.bytes), "number")]
        second += [] if rate is None else [(f" at {rate:,.1f} GB/s", "dim")]
    details = "  ".join(f"{visible(str(k))} {_detail(v)}" for k, v in event.details.items())
    lines = [first, second]
    if layer is not None:
        lines.append(_layer_line(layer, width))
        nodes = clip(visible(all_nodes(layer)), max(width - 8, 8))
        lines.append([("   ONNX ", "dim"), (nodes, "link")])
    elif event.kind == "kernel":
        lines.append([("   not attributed to a layer", "dim")])
    if details:
        lines.append([("   ", ""), (clip(details, max(width - 4, 8)), "dim")])
    return lines


def _layer_line(layer: Layer, width: int) -> Line:
    gpu = fmt.milliseconds(layer.gpu_time_ms)
    name = clip(visible(layer.name), max(width - 56, 12), keep="end")
    return [
        ("   of   ", "dim"),
        (name, ""),
        ("  ", ""),
        (clip(visible(layer.type), 20, keep="middle"), operator_style(layer.type)),
        ("  GPU ", "dim"),
        (f"{gpu} ms", "number"),
        (" a pass", "dim"),
    ]


def _detail(value: JSON) -> str:
    if isinstance(value, list):
        return "x".join(visible(str(part)) for part in value)
    return visible(str(value))
