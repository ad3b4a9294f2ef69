"""Time against cells: zoom and pan, the ticks of the axis, and the spans drawn in cells."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

from rich.color import Color
from rich.segment import Segment
from rich.style import Style

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.text import cell_width
from dld_tui.widgets.charts.bars import EIGHTHS
from dld_tui.widgets.lists.styled import PieceStyles
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.timeline.lanes import GPU_TONES, TONES, Lane

_FINEST_US = 0.001
"""The smallest time that a cell may stand for, in microseconds: clocks are no finer."""


@dataclass(frozen=True)
class TimeScale:
    """Which part of `total_us` microseconds is seen in `cells` cells."""

    total_us: float
    cells: int
    us_per_cell: float
    offset_us: float = 0.0

    @classmethod
    def fit(cls, total_us: float, cells: int) -> TimeScale:
        """Return the scale that shows everything."""
        cells = max(cells, 1)
        total = total_us if math.isfinite(total_us) and total_us > 0 else 1.0
        return cls(total, cells, total / cells)

    @property
    def end_us(self) -> float:
        """The time at the right edge."""
        return self.offset_us + self.cells * self.us_per_cell

    @property
    def zoom(self) -> float:
        """How many times longer than the window the whole is; 1.0 shows everything."""
        return self.total_us / (self.cells * self.us_per_cell)

    def cell_of(self, time_us: float) -> float:
        """Return where a time falls, in cells from the left edge; may lie outside."""
        return (time_us - self.offset_us) / self.us_per_cell

    def time_of(self, cell: float) -> float:
        """Return the time at a distance from the left edge in cells."""
        return self.offset_us + cell * self.us_per_cell

    def zoomed(self, factor: float, about_us: float | None = None) -> TimeScale:
        """Return the scale `factor` times nearer, keeping `about_us` where it is on the screen."""
        about = self.time_of(self.cells / 2) if about_us is None else about_us
        widest = self.total_us / self.cells
        nearest = min(widest, max(_FINEST_US, self.total_us / self.cells / 1e6))
        per_cell = min(max(self.us_per_cell / factor, nearest), widest)
        offset = about - (about - self.offset_us) * per_cell / self.us_per_cell
        return replace(self, us_per_cell=per_cell)._at(offset)

    def panned(self, cells: float) -> TimeScale:
        """Return the scale moved to the right by a number of cells."""
        return self._at(self.offset_us + cells * self.us_per_cell)

    def resized(self, cells: int) -> TimeScale:
        """Return the scale for another width; what was shown whole is shown whole again."""
        cells = max(cells, 1)
        if self.zoom <= 1.0 + 1e-9:
            return TimeScale.fit(self.total_us, cells)
        per_cell = min(self.us_per_cell, self.total_us / cells)
        return replace(self, cells=cells, us_per_cell=per_cell)._at(self.offset_us)

    def showing(self, start_us: float, end_us: float) -> TimeScale:
        """Return the scale moved just so far that the interval is seen, or else its start."""
        margin = min(2.0, self.cells / 4) * self.us_per_cell
        if end_us + margin > self.end_us:
            moved = self._at(end_us + margin - self.cells * self.us_per_cell)
        else:
            moved = self
        if start_us - margin < moved.offset_us:
            moved = moved._at(start_us - margin)
        return moved

    def framing(self, start_us: float, end_us: float) -> TimeScale:
        """Return the scale at which the interval takes about a third of the window."""
        length = max(end_us - start_us, _FINEST_US)
        nearer = self.zoomed(self.us_per_cell * self.cells / (3 * length))
        middle = (start_us + end_us) / 2
        return nearer._at(middle - nearer.cells * nearer.us_per_cell / 2)

    def _at(self, offset_us: float) -> TimeScale:
        latest = max(self.total_us - self.cells * self.us_per_cell, 0.0)
        return replace(self, offset_us=min(max(offset_us, 0.0), latest))


_UNITS = ((1e6, "s"), (1e3, "ms"), (1.0, "µs"), (1e-3, "ns"))


def time_text(time_us: float) -> str:
    """Return a length of time with its unit in three significant digits, e.g. ``0.21 ms``.

    Milliseconds down to 0.1 ms, because reports count in them; microseconds below.
    """
    size = abs(time_us)
    if size >= 1e6:
        return f"{fmt.three_digits(time_us / 1e6)} s"
    if size >= 100:
        return f"{fmt.three_digits(time_us / 1e3)} ms"
    if size >= 1 or size == 0:
        return f"{fmt.three_digits(time_us)} µs"
    return f"{fmt.three_digits(time_us * 1e3)} ns"


_TICK_GAP = 3
"""Cells between the labels of ticks."""


@dataclass(frozen=True)
class Axis:
    """The ticks to draw: (cell, label) from left to right, and the unit of the labels."""

    unit: str
    ticks: tuple[tuple[int, str], ...]


def axis(scale: TimeScale) -> Axis:
    """Return ticks at steps of 1, 2 or 5 whose labels do not touch."""
    reach = max(scale.end_us, scale.us_per_cell)
    divisor, unit = next((u for u in _UNITS if reach >= u[0]), _UNITS[-1])
    step = _nice(scale.us_per_cell * 4)
    while True:
        digits = max(0, -math.floor(math.log10(step / divisor) + 1e-9))
        widest = len(f"{reach / divisor:.{digits}f}")
        if (widest + _TICK_GAP) * scale.us_per_cell <= step:
            break
        step = _nice(step * 1.01)
    ticks = []
    index = math.ceil(scale.offset_us / step - 1e-9)
    while True:
        cell = round(scale.cell_of(index * step))
        label = f"{index * step / divisor:.{digits}f}"
        if cell + len(label) > scale.cells:
            break
        if cell >= 0:
            ticks.append((cell, label))
        index += 1
    return Axis(unit, tuple(ticks))


def _nice(least: float) -> float:
    """Return the smallest of 1, 2, 5 times a power of ten that is at least `least`."""
    power = 10.0 ** math.floor(math.log10(least))
    for factor in (1, 2, 5, 10):
        if factor * power >= least * (1 - 1e-9):
            return factor * power
    return 10 * power


CURSOR = len(TONES)
"""The span under the cursor."""
GAP = -1
"""Nothing runs."""
_EXACT = 12
"""Up to so many spans in one cell are placed one by one; above, their sums are used."""


class Cell(NamedTuple):
    """One cell: `eighths` of it, from the left, are `left`, the rest is `right` (tones or GAP)."""

    eighths: int
    left: int
    right: int

    @property
    def whole(self) -> bool:
        """True when it is all one tone."""
        return self.eighths == 0


EMPTY = Cell(0, GAP, GAP)


def lane_cell(lane: Lane, start_us: float, end_us: float) -> Cell:
    """Return what one cell shows that stands for the time from `start_us` to `end_us`."""
    first = bisect_left(lane.ends, start_us)
    last = bisect_left(lane.starts, end_us)
    if first < last and lane.ends[first] == start_us and lane.starts[first] < start_us:
        first += 1
    if first >= last:
        return EMPTY
    if last - first <= _EXACT:
        return _exact(lane, first, last, start_us, end_us)
    return _summed(lane, first, last, start_us, end_us)


def _exact(lane: Lane, first: int, last: int, start_us: float, end_us: float) -> Cell:
    regions: list[tuple[int, float]] = []
    at = start_us
    for index in range(first, last):
        begin, end = max(lane.starts[index], start_us), min(lane.ends[index], end_us)
        if begin > at:
            _extend(regions, GAP, begin - at)
        _extend(regions, lane.tones[index], end - begin)
        at = max(at, end)
    if at < end_us:
        _extend(regions, GAP, end_us - at)
    if len(regions) > 2:
        regions = _two_largest(regions)
    return _split(regions)


def _summed(lane: Lane, first: int, last: int, start_us: float, end_us: float) -> Cell:
    regions: list[tuple[int, float]] = []
    for tone, sums in lane.sums.items():
        within = sums[last] - sums[first]
        if tone == lane.tones[first]:
            within -= max(start_us - lane.starts[first], 0.0)
        if tone == lane.tones[last - 1]:
            within -= max(lane.ends[last - 1] - end_us, 0.0)
        if within > 0:
            regions.append((tone, within))
    idle = (end_us - start_us) - sum(length for _, length in regions)
    regions.append((GAP, max(idle, 0.0)))
    return _split(_two_largest(regions))


def _extend(regions: list[tuple[int, float]], tone: int, length: float) -> None:
    if regions and regions[-1][0] == tone:
        regions[-1] = (tone, regions[-1][1] + length)
    else:
        regions.append((tone, length))


def _two_largest(regions: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """Return the two tones with the most time, what runs before what does not."""
    totals: dict[int, float] = {}
    for tone, length in regions:
        totals[tone] = totals.get(tone, 0.0) + length
    most = sorted(totals.items(), key=lambda item: -item[1])[:2]
    order = list(totals)
    return sorted(most, key=lambda item: (item[0] == GAP, order.index(item[0])))


def _split(regions: list[tuple[int, float]]) -> Cell:
    """Return the cell of one or two regions; what runs keeps at least an eighth."""
    if len(regions) == 1:
        tone = regions[0][0]
        return Cell(0, tone, tone)
    (left, left_length), (right, right_length) = regions
    whole = left_length + right_length
    eighths = round(8 * left_length / whole) if whole > 0 else 0
    if left != GAP and eighths == 0:
        eighths = 1
    if right != GAP and eighths == 8:
        eighths = 7
    if eighths in (0, 8):
        tone = right if eighths == 0 else left
        return Cell(0, tone, tone)
    return Cell(eighths, left, right)


def with_cursor(cells: list[Cell], lane: Lane, index: int, scale: TimeScale) -> list[Cell]:
    """Return the cells with one span in the cursor's tone; it takes at least one cell."""
    left = max(scale.cell_of(lane.starts[index]), 0.0)
    right = min(scale.cell_of(lane.ends[index]), float(scale.cells))
    if scale.cell_of(lane.ends[index]) < 0 or left >= scale.cells:
        return cells
    shown = list(cells)
    if right - left < 1:
        shown[min(int((left + right) / 2), len(cells) - 1)] = Cell(0, CURSOR, CURSOR)
        return shown
    for cell in range(int(left), min(math.ceil(right), len(cells))):
        before, after = round(8 * max(left - cell, 0.0)), round(8 * min(right - cell, 1.0))
        if 0 < before < 8:
            shown[cell] = Cell(before, cells[cell].left, CURSOR)
        elif 0 < after < 8:
            shown[cell] = Cell(after, CURSOR, cells[cell].right)
        elif before == 0 and after == 8:
            shown[cell] = Cell(0, CURSOR, CURSOR)
    return shown


@dataclass(frozen=True)
class Label:
    """Text that fits inside a bar."""

    cell: int
    width: int
    text: str


def lane_cells(lane: Lane, scale: TimeScale) -> list[Cell]:
    """Return the cells of a lane, with a thin gap between neighbours that look alike."""
    edges = [scale.time_of(cell) for cell in range(scale.cells + 1)]
    cells = [lane_cell(lane, start, end) for start, end in pairwise(edges)]
    # Spans of one cell or more are few (one a cell), so this loop is bounded by the width.
    for index in wide_spans(lane, scale, 1.0):
        cell = round(scale.cell_of(lane.starts[index]))
        if 0 < cell < len(cells):
            tone = lane.tones[index]
            if cells[cell] == Cell(0, tone, tone) and cells[cell - 1].right == tone:
                cells[cell] = Cell(1, GAP, tone)
    return cells


def wide_spans(lane: Lane, scale: TimeScale, least: float) -> list[int]:
    """Return the visible spans that take at least `least` cells; at most one a cell."""
    spans = []
    step = scale.us_per_cell
    index = bisect_left(lane.ends, scale.offset_us)
    while index < len(lane) and lane.starts[index] < scale.end_us:
        if lane.ends[index] - lane.starts[index] >= least * step:
            spans.append(index)
            index += 1
        else:
            # Everything that begins in the same cell and is short is skipped in one bisection.
            index = _next_long(lane, index, scale)
    return spans


def _next_long(lane: Lane, index: int, scale: TimeScale) -> int:
    limit = scale.time_of(int(scale.cell_of(lane.starts[index])) + 1)
    stop = bisect_left(lane.starts, limit, index)
    # Of the spans that begin in one cell only the last can reach out of it.
    return max(stop - 1, index + 1)


def labels(lane: Lane, scale: TimeScale, names: Mapping[int, tuple[str, ...]]) -> list[Label]:
    """Return the texts that fit into the bars of a lane.

    Args:
        lane: The lane.
        scale: What is visible.
        names: Texts of a layer, the most telling first; visible text.
    """
    placed = []
    for index in wide_spans(lane, scale, 3.0):
        left = max(scale.cell_of(lane.starts[index]), 0.0)
        right = min(scale.cell_of(lane.ends[index]), float(scale.cells))
        first = int(left + 0.5) + 1 if left > 0 else 0  # after the gap to the one before
        room = int(right) - first
        known = names.get(lane.name_key(index), ())
        fitting = (name for name in known if 0 < cell_width(name) <= room)
        text = next(fitting, "")
        if text:
            width = cell_width(text)
            placed.append(Label(first + (room - width) // 2, width, text))
    return placed


TEXT = -2
"""The ink of a label: text on a bar."""


class Run(NamedTuple):
    """Characters of one look. `ink` and `paper` are tones, GAP is the background."""

    text: str
    ink: int
    paper: int


@dataclass(frozen=True)
class Shades:
    """Glyphs that tell tones apart where colours do not."""

    tones: str
    """One a tone, in the order of ``TONES``."""
    cursor: str
    begin: str
    """Nothing at the left, something at the right."""
    end: str
    """Something at the left, nothing at the right."""


UNICODE_SHADES = Shades("░░▒▒▓█≡=~:", "▚", "▐", "▌")
ASCII_SHADES = Shades(".-=+*#cm~:", "@", "|", "'")
TEXTURES = MappingProxyType(
    {
        TONES.index("gpu-copy"): "▒",
        TONES.index("gpu-memset"): "░",
        TONES.index("gpu-overhead"): "┈",
        TONES.index("gpu-sync"): "·",
    }
)
"""What no kernel is fills its cells with a glyph of its own, so that colour is not all there is."""


def paint(cells: Sequence[Cell], texts: Iterable[Label], shades: Shades | None = None) -> list[Run]:
    """Return a lane as runs of characters, with its labels in it.

    Args:
        cells: From the left edge of the window.
        texts: Labels that fit into the bars.
        shades: For terminals without colours; None when the ink and the paper tell tones apart.
    """
    drawn = [_coloured(cell) if shades is None else _shaded(cell, shades) for cell in cells]
    for label in texts:
        at = label.cell
        for char in label.text:
            drawn[at] = Run(char, TEXT, cells[at].right)
            for extra in range(1, cell_width(char)):
                drawn[at + extra] = Run("", TEXT, cells[at].right)
            at += cell_width(char)
    return merge(drawn)


def merge(runs: Iterable[Run]) -> list[Run]:
    """Return runs with neighbours of one look joined."""
    merged: list[Run] = []
    for run in runs:
        if merged and merged[-1][1:] == run[1:]:
            merged[-1] = Run(merged[-1].text + run.text, run.ink, run.paper)
        else:
            merged.append(run)
    return merged


def _coloured(cell: Cell) -> Run:
    if cell.whole:
        texture = TEXTURES.get(cell.left)
        return Run(" ", TEXT, cell.left) if texture is None else Run(texture, cell.left, GAP)
    return Run(EIGHTHS[cell.eighths], cell.left, cell.right)


def _shaded(cell: Cell, shades: Shades) -> Run:
    if cell.whole:
        return Run(_shade(cell.left, shades), cell.left, GAP)
    if cell.left == GAP:
        return Run(shades.begin, cell.right, GAP)
    if cell.right == GAP:
        # A short rest of a bar, or a bar with a short gap behind it.
        return Run(shades.end if cell.eighths < 6 else _shade(cell.left, shades), cell.left, GAP)
    tone = cell.left if cell.eighths >= 4 else cell.right
    return Run(_shade(tone, shades), tone, GAP)


def _shade(tone: int, shades: Shades) -> str:
    if tone == GAP:
        return " "
    return shades.cursor if tone == CURSOR else shades.tones[tone]


_OWN = ("span", "label", "window", "measure", "axis", *GPU_TONES)


COMPONENTS = {f"line--{name}" for name in _OWN}
"""The component classes of a widget with such pieces."""


class TimelineStyles(PieceStyles):
    """Pieces as everywhere, and bars whose colour is the foreground of their tone."""

    def bar_segments(self, runs: Iterable[Run]) -> list[Segment]:
        """Return the segments of a painted lane."""
        return [Segment(run.text, self._bar_style(run.ink, run.paper)) for run in runs]

    def shades(self) -> Shades | None:
        """Return the glyphs to use instead of colours, or None where there are colours."""
        if glyphs.current().name == "ascii":
            return ASCII_SHADES
        hot, cold = (self.style(name).color for name in (TONES[0], TONES[5]))
        return UNICODE_SHADES if hot == cold else None

    def _bar_style(self, ink: int, paper: int) -> Style:
        cache = self.known
        key = ("bar", str(ink), str(paper))
        style = cache.get(key)
        if style is None:
            style = cache[key] = self._mixed(ink, paper)
        return style

    def _mixed(self, ink: int, paper: int) -> Style:
        base = self.style("")
        if ink == TEXT:
            if paper == GAP:
                return base
            return base + self.style("label") + Style(bgcolor=self._colour(paper))
        front = base.bgcolor if ink == GAP else self._colour(ink)
        back = base.bgcolor if paper == GAP else self._colour(paper)
        # Where colours are missing the cursor's style is a text style, such as reverse.
        reverse = self.style("span").reverse if ink == CURSOR else None
        return base + Style(color=front, bgcolor=back, reverse=reverse)

    def _colour(self, tone: int) -> Color | None:
        return self.style("span" if tone == CURSOR else TONES[tone]).color
