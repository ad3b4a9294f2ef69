"""Bars, sparklines, histograms, heat and blocks of text, at the resolution of an eighth of a cell.

Pure functions: they return characters, the widgets add the colours. A ramp is the list of
glyphs from empty to full, so that an ASCII terminal draws the same chart with coarser steps.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from dld_tui.core.dataclass import dataclass
from dld_tui.core.tables.table import Estimate
from dld_tui.core.text import cell_width, clip, visible
from dld_tui.widgets.lists.styled import Piece
from dld_tui.widgets.shell import glyphs

HEATS = ("heat-0", "heat-1", "heat-2", "heat-3", "heat-4", "heat-5")
"""From cold to hot: style classes of line views, component classes of the timeline."""
_LIMITS = (0.04, 0.12, 0.3, 0.5, 0.75)


def hottest(times: Iterable[float]) -> float:
    """Return the time that counts as fully hot.

    It is the longest, but at least four times the mean: where all take the same time none is hot.
    """
    known = list(times)
    return max(*known, 4 * sum(known) / len(known)) if known else 0.0


def heat(time: float | None, hot: float) -> int:
    """Return a time's step, 0 to 5, where `hot` is what :func:`hottest` found."""
    if time is None or hot <= 0:
        return 0
    return sum(time >= limit * hot for limit in _LIMITS)


EIGHTHS = " ▏▎▍▌▋▊▉█"
"""A cell filled from the left, from empty to full."""
LEVELS = " ▁▂▃▄▅▆▇█"
"""A cell filled from below, from empty to full."""
ASCII_EIGHTHS = " -="
ASCII_LEVELS = " .:#"


def bar_ramp() -> str:
    """Return the glyphs of a horizontal bar in the glyph set in use."""
    return ASCII_EIGHTHS if glyphs.current().name == "ascii" else EIGHTHS


def bar(fraction: float | None, cells: int, ramp: str = EIGHTHS) -> str:
    """Return a horizontal bar of exactly `cells` cells, padded with spaces.

    Args:
        fraction: The filled share, 0 to 1; outside values are cut. None, NaN and 0 draw nothing;
            anything above 0 draws at least the smallest step, so that it is not taken for nothing.
        cells: The room there is.
        ramp: Glyphs from empty to full.
    """
    if cells <= 0:
        return ""
    if fraction is None or math.isnan(fraction) or fraction <= 0:
        return " " * cells
    steps = len(ramp) - 1
    filled = max(1, round(min(fraction, 1.0) * cells * steps))
    full, rest = divmod(filled, steps)
    return (ramp[-1] * full + (ramp[rest] if rest else "")).ljust(cells)


def resample(values: Sequence[float | None], cells: int) -> list[float | None]:
    """Return one value a cell: the largest of those that fall into it, None where there is none.

    The largest, because a spike is what people look for. With fewer values than cells each value
    takes one cell and the list is shorter than `cells`.
    """
    if cells <= 0:
        return []
    if len(values) <= cells:
        return list(values)
    edges = [round(index * len(values) / cells) for index in range(cells + 1)]
    resampled: list[float | None] = []
    for first, last in itertools.pairwise(edges):
        known = [value for value in values[first:last] if value is not None]
        resampled.append(max(known, default=None))
    return resampled


_WIDEST = 6
"""Cells of one value, at most."""


def spread(values: Sequence[float | None], cells: int) -> list[float | None]:
    """Return values repeated so that few of them use the room, with gaps when there is room.

    More values than cells are brought together by :func:`resample`.
    """
    if not values or len(values) * 2 > cells:
        return resample(values, cells)
    cells_each = min(cells // len(values), _WIDEST)
    shown: list[float | None] = []
    for value in values:
        shown += [value] * (cells_each - 1 if cells_each > 2 else cells_each)
        shown += [None] if cells_each > 2 else []
    return shown


def columns(
    values: Sequence[float | None],
    rows: int,
    *,
    low: float = 0.0,
    high: float | None = None,
    ramp: str = LEVELS,
) -> list[str]:
    """Return a column chart as `rows` lines, top first, one cell a value.

    Args:
        values: One value a column; None leaves it empty.
        rows: Height in lines.
        low: The value at the bottom; it is drawn as the smallest step, not as nothing.
        high: The value at the top; the largest value when None.
        ramp: Glyphs from empty to full.
    """
    known = [value for value in values if value is not None]
    top = max(known, default=low) if high is None else high
    span = top - low
    steps = (len(ramp) - 1) * rows
    heights = []
    for value in values:
        if value is None:
            heights.append(0)
        elif span <= 0:
            heights.append((steps + 1) // 2)
        else:
            share = min(max((value - low) / span, 0.0), 1.0)
            heights.append(max(1, round(share * steps)))
    lines = []
    for row in range(rows - 1, -1, -1):
        base = row * (len(ramp) - 1)
        lines.append("".join(ramp[min(max(h - base, 0), len(ramp) - 1)] for h in heights))
    return lines


@dataclass(frozen=True)
class Axis:
    """The part of an axis that is drawn in some cells."""

    low: float
    high: float
    reference: float
    """Marked in each row."""

    @classmethod
    def of(cls, estimates: Iterable[Estimate | None], reference: float) -> Axis:
        """Return an axis that shows all figures, and intervals as far as they tell them apart."""
        known = [one for one in estimates if one is not None]
        first, last = (end((reference, *(one.value for one in known))) for end in (min, max))
        room = (last - first) or abs(reference) / 10 or 1.0
        low = max(first - room, min((first, *(one.low for one in known))))
        high = min(last + room, max((last, *(one.high for one in known))))
        edge = ((high - low) or room) / 20
        return cls(low - edge, high + edge, reference)

    def cell_of(self, value: float, cells: int) -> int:
        """Return the cell of a figure; the first or the last one where it is outside."""
        share = min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)
        return round(share * (cells - 1))

    def bar(self, estimate: Estimate | None, cells: int, *, plain: bool = False) -> str:
        """Return a figure with its error bar, and the mark of the reference."""
        begin, line, end, dot, mark = "|-|o:" if plain else "├─┤●│"
        shown = [" "] * cells
        shown[self.cell_of(self.reference, cells)] = mark
        if estimate is not None:
            low, at, high = (
                self.cell_of(value, cells)
                for value in (estimate.low, estimate.value, estimate.high)
            )
            shown[low : high + 1] = line * (high + 1 - low)
            shown[low] = begin if estimate.low >= self.low else line
            shown[high] = end if estimate.high <= self.high else line
            shown[at] = dot
        return "".join(shown)

    def labels(self, cells: int, label: Callable[[float], str], origin: float | None = None) -> str:
        """Return the labels of the axis, at equal steps from `origin`: by default the reference."""
        origin = self.reference if origin is None else origin
        scale = (self.high - self.low) * 12 / cells  # one label in 12 cells
        unit = 10.0 ** math.floor(math.log10(scale))
        step = next(unit * part for part in (1, 2, 2.5, 5, 10) if unit * part >= scale)
        shown = [" "] * cells
        first = math.ceil((self.low - origin) / step)
        last = math.floor((self.high - origin) / step)
        for number in sorted(range(first, last + 1), key=abs):
            value = origin + number * step
            text = label(round(value, 9))
            at = self.cell_of(value, cells) - len(text) // 2
            at = min(max(at, 0), max(cells - len(text), 0))
            around = shown[max(at - 1, 0) : at + len(text) + 1]
            if all(char == " " for char in around) and len(text) <= cells:
                shown[at : at + len(text)] = text
        return "".join(shown)


@dataclass(frozen=True)
class Histogram:
    """Counts of values in bins of one width."""

    low: float
    high: float
    counts: tuple[int, ...]
    above: int
    """How many values lie above `high`: a long tail that would squeeze the rest into one bin."""

    def bin_of(self, value: float) -> int:
        """Return the bin of a value, the first or last one when it lies outside."""
        span = self.high - self.low
        if span <= 0:
            return 0
        index = int((value - self.low) / span * len(self.counts))
        return min(max(index, 0), len(self.counts) - 1)


def histogram(values: Sequence[float], bins: int) -> Histogram | None:
    """Return the distribution of `values`, or None without any.

    A few values far above the rest would squeeze it into one bin. The axis ends, if that cuts it to
    less than half, five interquartile ranges above the third quartile, but never below the 90th
    percentile; what lies above is counted in `above`.
    """
    ordered = sorted(value for value in values if math.isfinite(value))
    if not ordered or bins <= 0:
        return None
    low, high = ordered[0], ordered[-1]
    q1, q3, p90 = (ordered[int((len(ordered) - 1) * share)] for share in (0.25, 0.75, 0.9))
    fence = max(q3 + 5 * (q3 - q1), p90)
    if fence > low and high - low > 2 * (fence - low):
        high = ordered[bisect_right(ordered, fence) - 1]
    above = len(ordered) - bisect_right(ordered, high)
    shape = Histogram(low, high, (0,) * bins, above)
    counts = [0] * bins
    for value in ordered[: len(ordered) - above]:
        counts[shape.bin_of(value)] += 1
    return Histogram(low, high, tuple(counts), above)


Line: TypeAlias = "list[Piece]"


@dataclass(frozen=True)
class Block:
    """Lines that take `width` cells."""

    width: int
    lines: Sequence[Sequence[Piece]]


def width_of(line: Iterable[Piece]) -> int:
    """Return how many cells a line takes."""
    return sum(cell_width(text) for text, _ in line)


def block(lines: Sequence[Sequence[Piece]], width: int | None = None) -> Block:
    """Return a block as wide as its widest line, or of a given width."""
    if width is None:
        width = max((width_of(line) for line in lines), default=0)
    return Block(width, lines)


def fitted(line: Iterable[Piece], width: int) -> Line:
    """Return a line of exactly `width` cells, cut or padded."""
    pieces: Line = []
    room = width
    for text, style in line:
        part = clip(visible(text), room)
        room -= cell_width(part)
        if part:
            pieces.append((part, style))
    if room > 0:
        pieces.append((" " * room, ""))
    return pieces


def beside(blocks: Sequence[Block], gap: int = 3) -> list[Line]:
    """Return the lines of blocks put side by side, shorter ones padded below."""
    height = max((len(block.lines) for block in blocks), default=0)
    lines: list[Line] = []
    for row in range(height):
        line: Line = []
        for number, one in enumerate(blocks):
            if number:
                line.append((" " * gap, ""))
            line += fitted(one.lines[row] if row < len(one.lines) else (), one.width)
        lines.append(line)
    return lines


def flow(blocks: Sequence[Block], width: int, gap: int = 3) -> list[Line]:
    """Return blocks side by side as far as `width` allows, the others in rows below."""
    lines: list[Line] = []
    row: list[Block] = []
    used = 0
    for block in blocks:
        needed = block.width + (gap if row else 0)
        if row and used + needed > width:
            lines += [*beside(row, gap), []]
            row, used = [], 0
            needed = block.width
        row.append(block)
        used += needed
    return [*lines, *beside(row, gap)]


def digits(value: float | None) -> int:
    """Return how many decimals show three significant digits of milliseconds."""
    if not value or value >= 100:
        return 1 if value else 2
    return 2 if value >= 1 else 3 if value >= 0.1 else 4
