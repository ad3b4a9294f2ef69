"""Charts with axes, drawn by plotext, with a cursor; and the live chart of a job.

A `Plot` is data; :func:`draw` makes a `Picture` of it, which takes up to a second: on a thread.
The cursor is put over a picture that is there. A :class:`ChartView` shows that, or bars.
"""

from __future__ import annotations

import math
import threading
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import field, replace
from itertools import groupby, zip_longest
from time import monotonic
from typing import TYPE_CHECKING, Literal, TypeAlias

from textual import events
from textual.strip import Strip

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.text import cell_width, clip, visible
from dld_tui.core.text.names import cut_names
from dld_tui.widgets.charts.bars import ASCII_LEVELS, LEVELS, Histogram, Line, columns, fitted
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.styled import LineSource, ListSource
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.tasks import Tasks, on_thread, task

if TYPE_CHECKING:
    from textual_plotext import Plot as Plotext


Kind: TypeAlias = Literal["dots", "line", "bars", "steps"]
"""A ``line`` of more points than fit is drawn as dots; ``bars`` and ``steps`` hold their value
from one x to the next, the last one to its end."""

_LEAST_WIDTH, _LEAST_ROWS = 24, 5
_BESIDE = 110
"""Cells from which two charts are drawn side by side."""
_FIRST_COLOUR = 16
"""Of the 256 of a terminal, the first that stands for a style while plotext draws."""
_TICK_CELLS = 14
_TICK_ROWS = 4
_DRAWING = threading.Lock()
"""plotext keeps some of its state in modules."""


@dataclass(frozen=True)
class Marks:
    """What is drawn in one style."""

    xs: Sequence[float]
    ys: Sequence[float]
    kind: Kind = "dots"
    style: str = "bar"


@dataclass(frozen=True)
class Axis:
    """What an axis says."""

    title: str = ""
    text: Callable[[float], str] = "{:,.6g}".format
    """Returns what stands at a value."""
    log: bool = False
    """Values are drawn by their logarithm; those that are not positive are left out."""
    least: float | None = None
    """Where it begins; at the smallest value when None."""
    marked: Sequence[float] = ()
    """The values that get a text, rising, as far as there is room; round ones without any."""
    whole: bool = False
    """Only whole values get a text, as of runs, which are counted."""


@dataclass(frozen=True)
class Spot:
    """What the cursor can be on."""

    x: float
    y: float
    text: str
    """The text about it, fit for a terminal."""
    key: Hashable = None


@dataclass(frozen=True)
class Plot:
    """A chart: the marks, the axes, and the text below."""

    marks: Sequence[Marks]
    x: Axis = Axis()
    y: Axis = Axis()
    spots: Sequence[Spot] = ()
    """In the order in which the cursor goes through them."""
    rules: Sequence[tuple[float, str]] = ()
    """Upright lines, each with its style."""
    below: Sequence[Line] = ()
    beside: Plot | None = None
    """Another chart at its right, where there is room for both; the cursor is in this one."""


@dataclass(frozen=True)
class Picture:
    """A chart as lines, and where its spots are."""

    lines: Sequence[Line]
    canvas: tuple[int, int, int] = (0, 0, 0)
    """The first and last column, and the last row, that are drawn in."""
    places: Sequence[tuple[int, int]] = ()
    """Column and row of each spot."""
    spots: Sequence[Spot] = ()

    def with_cursor(self, at: int) -> list[Line]:
        """Return the lines with a cross at a spot, and its text as the last line."""
        if not self.spots:
            return [*self.lines]
        column, row = self.places[at]
        left, right, bottom = self.canvas
        lines = [*self.lines]
        for y in range(bottom + 1):
            lines[y] = _over(lines[y], {column: "│"}, "dim")
        lines[row] = _over(lines[row], dict.fromkeys(range(left, right + 1), "─"), "dim")
        lines[row] = _over(lines[row], {column: "◆"}, "strong accent", blank=False)
        where = f" {at + 1:,} of {len(self.spots):,}  "
        return [*lines, fitted([(where, "dim"), (self.spots[at].text, "strong")], right + 1)]

    def nearest(self, column: int, row: int) -> int | None:
        """Return the spot that is nearest to a cell; None where there is none."""
        distances = [
            (abs(x - column) + 2 * abs(y - row), at) for at, (x, y) in enumerate(self.places)
        ]
        return min(distances)[1] if distances else None


def _over(line: Line, cells: dict[int, str], style: str, *, blank: bool = True) -> Line:
    """Return a line with some cells replaced; with `blank` only those where nothing is drawn."""
    pieces: Line = []
    at = 0
    for text, old in line:
        for char in text:
            new = cells.get(at)
            is_replaced = new is not None and (not blank or char == " ")
            piece = (new or char, style) if is_replaced else (char, old)
            if pieces and pieces[-1][1] == piece[1]:
                pieces[-1] = pieces[-1][0] + piece[0], piece[1]
            else:
                pieces.append(piece)
            at += 1
    return pieces


def sentence(text: str) -> Picture:
    """Return a sentence in place of a chart."""
    return Picture([[(text, "dim")]])


def _draw_beside(plot: Plot, other: Plot, width: int, height: int) -> Picture:
    """Return two charts side by side, with the text below them."""
    half = width // 2
    rows = height - len(plot.below)
    left = draw(replace(plot, below=(), beside=None), half - 1, rows)
    # The line of the cursor is below the left one alone.
    right = draw(replace(other, below=(), spots=()), width - half, rows - bool(plot.spots))
    empty: Line = []
    lines: list[Line] = [
        [*one, (" " * (half - cell_width(_text(one))), ""), *another]
        for one, another in zip_longest(left.lines, right.lines, fillvalue=empty)
    ]
    return replace(left, lines=[*lines, *plot.below])


def draw(plot: Plot, width: int, height: int) -> Picture:
    """Return a chart of at most `width` cells and `height` lines, its cursor's line included."""
    if plot.beside is not None and width >= _BESIDE:
        return _draw_beside(plot, plot.beside, width, height)
    rows = height - len(plot.below) - bool(plot.spots)
    points = [
        (x, y) for marks in plot.marks for x, y in zip(marks.xs, marks.ys, strict=False)
        if _is_shown(plot.x, x) and _is_shown(plot.y, y)
    ]  # fmt: skip
    if width < _LEAST_WIDTH or rows < _LEAST_ROWS or len(points) < 2:
        return sentence("Not enough room for the chart." if len(points) > 1 else
                    "Not enough data for the chart.")  # fmt: skip
    x_range = _range(plot.x, [x for x, _ in points])
    y_range = _range(plot.y, [y for _, y in points])
    y_ticks = _ticks(plot.y, y_range, max(rows // _TICK_ROWS, 2))
    y_texts = [plot.y.text(_value(plot.y, at)) for at in y_ticks]
    left = max(map(len, y_texts)) + 1
    columns, lines = width - left, rows - 2 - bool(plot.x.title)
    x_ticks = _ticks(plot.x, x_range, max(columns // _TICK_CELLS, 2))
    tokens: list[str] = []

    def colour(style: str) -> int:
        if style not in tokens:
            tokens.append(style)
        return _FIRST_COLOUR + tokens.index(style)

    from textual_plotext import Plot as Plotext

    with _DRAWING:
        plotted = Plotext()
        plotted.theme("clear")
        plotted.plotsize(width, rows)
        plotted._set_size(
            width, rows
        )  # textual-plotext itself does so: plotsize alone is not enough
        plotted.xaxes(True, False)
        plotted.yaxes(True, False)
        plotted.xlim(*x_range)
        plotted.ylim(*y_range)
        plotted.xticks(x_ticks, [plot.x.text(_value(plot.x, at)) for at in x_ticks])
        plotted.yticks(y_ticks, y_texts)
        plotted.xlabel(plot.x.title)
        for at, style in plot.rules:
            if _is_shown(plot.x, at) and x_range[0] <= _placed(plot.x, at) <= x_range[1]:
                plotted.vline(_placed(plot.x, at), color=colour(style))
        for marks in plot.marks:
            _add(plotted, marks, plot, x_range, y_range, (columns, lines), colour(marks.style))
        text = plotted.build()
    drawn = _pieces(text, tokens, width)
    # The canvas is what is right of the axis and above it.
    bottom = next((row for row, line in enumerate(drawn) if "└" in _text(line)), len(drawn) - 1)
    first = _text(drawn[bottom]).find("└") + 1
    last = width - 1

    across, up = (1, 1) if glyphs.current().name == "ascii" else (2, 4)  # dots of a cell

    def cell(at: float, low: float, high: float, cells: int, dots: int) -> int:
        return min(max(round((at - low) / (high - low) * (cells * dots - 1)) // dots, 0), cells - 1)

    spots = [s for s in plot.spots if _is_shown(plot.x, s.x) and _is_shown(plot.y, s.y)]
    places = [
        (
            first + cell(_placed(plot.x, spot.x), *x_range, last - first + 1, across),
            bottom - 1 - cell(_placed(plot.y, spot.y), *y_range, bottom, up),
        )
        for spot in spots
    ]
    return Picture([*drawn, *plot.below], (first, last, bottom - 1), places, spots)


_WHOLE = 1e-6


def _ticks(axis: Axis, ends: tuple[float, float], most: int) -> list[float]:
    """Return the places on an axis that get a text: so few that no text stands twice."""
    if not axis.marked:
        for count in range(most, 1, -1):
            places = [
                at
                for at in ticks(*ends, count, log=axis.log)
                if not axis.whole or abs(at - round(at)) < _WHOLE
            ]
            if axis.whole and len(places) < 2:
                whole = {float(math.ceil(ends[0])), float(math.floor(ends[1]))}
                places = sorted(at for at in whole if ends[0] <= at <= ends[1])
            texts = {axis.text(_value(axis, at)) for at in places}
            if len(texts) == len(places):
                return places
        return places[:1]
    step = -(-len(axis.marked) // most)
    return [_placed(axis, at) for at in axis.marked[::step] if _is_shown(axis, at)]


def _add(
    plotted: Plotext, marks: Marks, plot: Plot, x_range: tuple[float, float],
    y_range: tuple[float, float], cells: tuple[int, int], colour: int,
) -> None:  # fmt: skip
    columns, rows = cells
    plain = glyphs.current().name == "ascii"
    points = [
        (_placed(plot.x, x), _placed(plot.y, y))
        for x, y in zip(marks.xs, marks.ys, strict=False)
        if _is_shown(plot.x, x) and _is_shown(plot.y, y)
    ]
    if not points:
        return
    if marks.kind == "line" and len(points) <= 2 * columns:
        plotted.plot(*map(list, zip(*points, strict=True)), marker="." if plain else "braille",
                  color=colour)  # fmt: skip
    elif marks.kind in ("dots", "line"):
        # A line through more points than columns is a wall: dots show where they gather.
        dots = thinned(points, x_range, y_range, (2 * columns, 4 * rows))
        plotted.scatter(*map(list, zip(*dots, strict=True)), marker="*" if plain else "braille",
                     color=colour)  # fmt: skip
    else:
        xs = [x for x, _ in points]
        halves = [
            x_range[0] + (at + 0.5) / (2 * columns) * (x_range[1] - x_range[0])
            for at in range(2 * columns)
        ]
        heights = [points[max(bisect_right(xs, at) - 1, 0)][1] for at in halves]
        if marks.kind == "bars":
            # What is drawn at once is joined over the gaps.
            places = zip(halves, heights, strict=True)
            for is_bar, bars in groupby(places, lambda place: place[1] > y_range[0]):
                if is_bar:
                    plotted.plot(*map(list, zip(*bars, strict=True)), color=colour, fillx=True,
                              marker="#" if plain else "hd")  # fmt: skip
        else:
            plotted.plot(halves, heights, marker="." if plain else "braille", color=colour)


def _text(line: Line) -> str:
    return "".join(text for text, _ in line)


def _pieces(text: str, tokens: Sequence[str], width: int) -> list[Line]:
    """Return what plotext drew as pieces; its colours stand for styles."""
    from rich.ansi import AnsiDecoder

    lines: list[Line] = []
    for part in AnsiDecoder().decode(text.rstrip("\n")):
        line: Line = []
        for segment in part.divide(sorted({at for s in part.spans for at in (s.start, s.end)})):
            style = segment.spans[0].style if segment.spans else None
            colour = getattr(getattr(style, "color", None), "number", None)
            place = -1 if colour is None else colour - _FIRST_COLOUR
            plain = segment.plain
            name = tokens[place] if 0 <= place < len(tokens) else "dim"
            line.append((plain, name))
        lines.append(fitted(line, width))
    return lines


def _is_shown(axis: Axis, value: float) -> bool:
    return math.isfinite(value) and (value > 0 or not axis.log)


def _placed(axis: Axis, value: float) -> float:
    return math.log10(value) if axis.log else value


def _value(axis: Axis, placed: float) -> float:
    return 10.0**placed if axis.log else placed


def _range(axis: Axis, values: Sequence[float]) -> tuple[float, float]:
    low, high = _placed(axis, min(values)), _placed(axis, max(values))
    if axis.least is not None:
        low = min(low, _placed(axis, axis.least))
    if high > low:
        return low, high
    return low - (abs(low) / 2 or 0.5), high + (abs(high) / 2 or 0.5)


def ticks(low: float, high: float, most: int, *, log: bool = False) -> list[float]:
    """Return where an axis is labelled: round values between its ends, at most `most` of them.

    Args:
        low: Its beginning; of a logarithmic one the logarithm to the base 10.
        high: Its end, above `low`.
        most: How many there may be, at least 2.
        log: It is logarithmic: powers of ten, with 2 and 5 times these where there are few.
    """
    if log:
        for parts in ((1, 2, 5), (1, 3), (1,)):
            decades = range(math.floor(low), math.ceil(high) + 1)
            all_of = (decade + math.log10(part) for decade in decades for part in parts)
            shown = [at for at in all_of if low <= at <= high]
            if 2 <= len(shown) <= most:
                return shown
        return shown[:: -(-len(shown) // most)] if len(shown) > most else [low, high]
    step = (high - low) / most
    power = 10.0 ** math.floor(math.log10(step))
    step = power * next(n for n in (1, 2, 5, 10, 20) if n * power >= step * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    shown = [n * step for n in range(first, math.floor(high / step + 1e-9) + 1)]
    return shown[:most] if len(shown) > 1 else [low, high]


def thinned(
    points: Iterable[tuple[float, float]], x_range: tuple[float, float],
    y_range: tuple[float, float], dots: tuple[int, int],
) -> list[tuple[float, float]]:  # fmt: skip
    """Return one point for each dot that can be told apart."""
    by_cell: dict[tuple[int, int], tuple[float, float]] = {}
    for x, y in points:
        across = round((x - x_range[0]) / (x_range[1] - x_range[0]) * (dots[0] - 1))
        up = round((y - y_range[0]) / (y_range[1] - y_range[0]) * (dots[1] - 1))
        by_cell.setdefault((across, up), (x, y))
    return [*by_cell.values()]


def histogram_marks(shape: Histogram, kind: Kind = "bars", style: str = "bar") -> Marks:
    """Return the counts of a histogram, each over its bin."""
    width = (shape.high - shape.low) / len(shape.counts)
    xs = [shape.low + at * width for at in range(len(shape.counts))]
    return Marks([*xs, shape.high], [*map(float, shape.counts), float(shape.counts[-1])], kind,
                 style)  # fmt: skip


def legend(named: Sequence[tuple[str, str]], width: int) -> Line:
    """Return names, untrusted text, each after a swatch in its style."""
    line: Line = []
    room = max(width // max(len(named), 1) - 4, 8)
    names = cut_names([visible(name) for name, _ in named], room)
    for name, (_, style) in zip(names, named, strict=True):
        line += [(" ■ ", style), (name, "")]
    return line if sum(cell_width(text) for text, _ in line) <= width else fitted(line, width)


class ChartView(LineView):
    """Lines that a cursor goes through, or a chart with a cursor of its own."""

    picture: Picture | None = None
    """The chart between axes that is shown."""
    spot = 0
    """Where its cursor is."""

    _chart: tuple[str, Callable[[int, int], Picture]] | None = None
    _room = (0, 0)

    def __init__(self, *, empty: str = "", gutter: bool = True, id: str | None = None) -> None:
        super().__init__(empty=empty, gutter=gutter, id=id)
        self.tasks = Tasks(self)

    def show_chart(self, name: str, draw: Callable[[int, int], Picture]) -> None:
        """Draw a chart for the room that there is, and again whenever that is another.

        Args:
            name: Of the chart: with the same one the cursor stays.
            draw: Makes it for a width and a height in cells; runs on a thread.
        """
        if self._chart is None or self._chart[0] != name:
            self.spot, self.picture = 0, None
            self.set_lines(ListSource([[("Drawing …", "dim")]]))
        self._chart, self._room = (name, draw), (0, 0)
        self._draw_again()

    def show_bars(self, source: LineSource) -> None:
        """Show lines that a cursor goes through."""
        self._chart = self.picture = None
        self.set_lines(source)

    def on_resize(self) -> None:
        """Draw for the new size."""
        super().on_resize()
        self.call_after_refresh(self._draw_again)

    def _draw_again(self) -> None:
        room = self.size.width - self._gutter_cells, self.size.height
        if self._chart is not None and room != self._room and min(room) > 0:
            self._room = room
            self._draw(*room)

    @task("chart", replace=True)
    async def _draw(self, width: int, height: int) -> None:
        wanted = self._chart
        assert wanted is not None
        picture = await on_thread(wanted[1], width, height)
        if self._chart == wanted:
            self.picture = picture
            self.go_to_spot(self.spot)

    def go_to_spot(self, at: int) -> None:
        """Put the cursor of a chart on one of its spots, or the nearest that there is."""
        if self.picture is None:
            return
        self.spot = max(0, min(at, len(self.picture.spots) - 1))
        self.set_lines(ListSource(self.picture.with_cursor(self.spot)))

    def step(self, rows: int) -> None:
        """Move by some rows, or spots."""
        if self.picture is None:
            super().step(rows)
        else:
            # Home and End go by the number of lines, which may be less than that of the spots.
            is_end = abs(rows) >= len(self.lines)
            self.go_to_spot(self.spot + rows * (len(self.picture.spots) if is_end else 1))

    def step_page(self, way: int) -> None:
        """Move by a page, or by a tenth of the spots."""
        if self.picture is None:
            super().step_page(way)
        else:
            self.go_to_spot(self.spot + way * max(len(self.picture.spots) // 10, 1))

    def go_left(self) -> None:
        """Go to the spot before."""
        self.go_to_spot(self.spot - 1)

    def go_right(self) -> None:
        """Go to the next spot."""
        self.go_to_spot(self.spot + 1)

    def activate(self) -> None:
        """Say which row or spot was chosen."""
        if self.picture is None:
            super().activate()
        elif self.picture.spots:
            key = self.picture.spots[self.spot].key
            self.post_message(self.Activated(self, self.spot, key))

    def on_click(self, event: events.Click) -> None:
        """Move to the row or the nearest spot; twice opens it."""
        offset = event.get_content_offset(self)
        if self.picture is None or offset is None:
            return super().on_click(event)
        row = offset.y + self.scroll_offset.y
        at = self.picture.nearest(offset.x - self._gutter_cells, row)
        if at is not None:
            self.go_to_spot(at)
        if event.chain == 2:
            self.activate()
        event.stop()
        return None

    def _row(self, index: int, width: int) -> Strip:
        if self.picture is None or index >= len(self.lines):
            return super()._row(index, width)
        # The cursor of a chart is in the chart, not on a row.
        return self._strip(self.lines.line(index, width - self._gutter_cells), width, ())


_MOST = 256
"""Values that are kept of a figure."""
_LABEL = 9
_STEPS = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0)
"""Where a scale may end, so that it seldom changes: what is drawn anew is sent anew."""


@dataclass
class Series:
    """A figure over time; where there are too many values, two neighbours become one."""

    name: str
    unit: str = ""
    values: list[float] = field(default_factory=list)
    each: int = 1
    """How many values one of them is the mean of."""
    count: int = 0
    _sum: float = 0.0
    _summed: int = 0

    def add(self, value: float) -> None:
        """Take the next value; what is no number is left out."""
        if not math.isfinite(value):
            return
        self.count += 1
        self._sum += value
        self._summed += 1
        if self._summed == self.each:
            self.values.append(self._sum / self.each)
            self._sum, self._summed = 0.0, 0
        if len(self.values) >= _MOST:
            pairs = zip(self.values[::2], self.values[1::2], strict=True)
            self.values = [(first + second) / 2 for first, second in pairs]
            self.each *= 2

    def lines(self, width: int, rows: int) -> list[Line]:
        """Return a chart of the values, `rows` lines high; nothing while there are too few."""
        if len(self.values) < 2 or width < _LEAST_WIDTH or rows < 2:
            return []
        low, high = scale(min(self.values), max(self.values))
        # A column stands for as many values as make all of them fit, so that it stays in place.
        cells = width - _LABEL - 1
        step = -(-len(self.values) // cells)
        shown: list[float | None] = [
            max(self.values[at : at + step]) for at in range(0, len(self.values), step)
        ]
        ramp = ASCII_LEVELS if glyphs.current().name == "ascii" else LEVELS
        chart = columns(shown, rows, low=low, high=high, ramp=ramp)
        ends = {0: f"{high:,.4g} {self.unit}", rows - 1: f"{low:,.4g} {self.unit}"}
        return [
            [(f"{clip(visible(ends.get(row, '')), _LABEL):>{_LABEL}} ", "dim"), (text, "bar")]
            for row, text in enumerate(chart)
        ]


def scale(low: float, high: float) -> tuple[float, float]:
    """Return the ends of a scale for values from `low` to `high`: round figures around them."""
    if low <= 0:
        return low, (high if high > low else low + 1)
    bottom = _rounded(low, up=False)
    if bottom < 0.5 * high:
        bottom = 0.0
    top = bottom + _rounded(high - bottom, up=True)
    return bottom, top if top > bottom else bottom + 1


def _rounded(value: float, *, up: bool) -> float:
    if value <= 0:
        return 0.0
    power: float = 10.0 ** math.floor(math.log10(value))
    if power > value:  # the logarithm was rounded up
        power /= 10
    steps = [step * power for step in _STEPS]
    if up:
        return next((step for step in steps if step >= value), steps[-1])
    return next((step for step in reversed(steps) if step <= value), steps[0])


@dataclass
class Stages:
    """What a job has done, one stage after the other, and how long each took."""

    now: Callable[[], float] = monotonic
    _begun: list[tuple[str, float]] = field(default_factory=list)
    _ended: float | None = None

    def reach(self, name: str) -> None:
        """Take note of the stage that the job is in."""
        if name and (not self._begun or self._begun[-1][0] != name):
            self._begun.append((name, self.now()))

    def end(self) -> None:
        """Take note that the job has done its last stage, too."""
        self._ended = self.now()

    def line(self, width: int) -> Line:
        """Return the stages that are over with their times, the last ones where room is scarce."""
        times = [began for _, began in self._begun]
        ends = [*times[1:], *([] if self._ended is None else [self._ended])]
        pieces = [
            f"{glyphs.current().good} {visible(name)} {fmt.duration(end - began)}"
            for (name, began), end in zip(self._begun, ends, strict=False)
        ]
        shown: list[str] = []
        room = width
        for text in reversed(pieces):
            room -= cell_width(text) + 2
            if room < 0:
                break
            shown.insert(0, text)
        return [(clip("  ".join(shown), width), "dim")]


def best_figure(series: Sequence[Series]) -> Series | None:
    """Return the figure that is drawn: the first that has changed, as the latency of a run does."""
    return next((figure for figure in series if len(figure.values) > 1), None)


def rate_text(series: Series) -> str:
    """Return how many runs a second a latency in milliseconds is; empty for other figures."""
    last = series.values[-1] if series.values else 0.0
    if series.name != "latency" or series.unit != "ms" or last <= 0:
        return ""
    rate = 1000 / last
    return f"{rate:,.0f} a second" if rate >= 10 else f"{rate:,.1f} a second"
