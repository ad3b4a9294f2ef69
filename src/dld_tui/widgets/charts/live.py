"""The live view of a running job: its stages, and a chart of a figure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic

from dld_tui.core import fmt
from dld_tui.core.text import cell_width, clip, visible
from dld_tui.widgets.charts.bars import ASCII_LEVELS, LEVELS, Line, columns
from dld_tui.widgets.shell import glyphs

_MOST = 256
"""Values that are kept of a figure."""
_LABEL = 9
_LEAST_WIDTH = 24
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
            self.values = [(one + other) / 2 for one, other in pairs]
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
