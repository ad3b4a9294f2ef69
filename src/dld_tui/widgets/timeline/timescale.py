"""Time against cells: zoom, pan, and the ticks of an axis."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

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
        return f"{_three(time_us / 1e6)} s"
    if size >= 100:
        return f"{_three(time_us / 1e3)} ms"
    if size >= 1 or size == 0:
        return f"{_three(time_us)} µs"
    return f"{_three(time_us * 1e3)} ns"


def _three(value: float) -> str:
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f}"


@dataclass(frozen=True)
class Axis:
    """The ticks to draw: (cell, label) from left to right, and the unit of the labels."""

    unit: str
    ticks: tuple[tuple[int, str], ...]


def axis(scale: TimeScale, room: int = 3) -> Axis:
    """Return ticks at steps of 1, 2 or 5 whose labels keep `room` cells between them."""
    reach = max(scale.end_us, scale.us_per_cell)
    divisor, unit = next((u for u in _UNITS if reach >= u[0]), _UNITS[-1])
    step = _nice(scale.us_per_cell * 4)
    while True:
        digits = max(0, -math.floor(math.log10(step / divisor) + 1e-9))
        widest = len(f"{reach / divisor:.{digits}f}")
        if (widest + room) * scale.us_per_cell <= step:
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
