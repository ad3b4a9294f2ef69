"""Charts as inline SVG: bars and a histogram. Colours come from the page's classes."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from dld_tui.core.report.html.page import number, short, text
from dld_tui.core.report.statistics import percentile

WIDTH = 1180
"""Of the drawing; the page scales it."""
_SERIES = 8
"""Classes for series: s0 to s7. More series have colours between them."""
_GOLDEN_ANGLE = 137.508
_LEGEND_ROW, _LETTER = 18, 7


@dataclass(frozen=True)
class Bar:
    """A row of bars, one a series."""

    label: str
    """Foreign text."""
    values: tuple[float | None, ...]
    shown: tuple[str, ...]
    """The values as people read them."""


def bars(rows: Sequence[Bar], series: Sequence[str] = ()) -> str:
    """Return horizontal bars on one scale from 0, with a legend when there are several series."""
    rows = [row for row in rows if any(value is not None for value in row.values)]
    if not rows:
        return ""
    most = max((value or 0.0 for row in rows for value in row.values), default=0.0) or 1.0
    left, right, thick = 330, 130, 15
    room = WIDTH - left - right
    parts, top = [], 2
    if len(series) > 1:
        names, top = legend(series, left)
        parts.append(names)
    for row in rows:
        middle = top + thick * len(row.values) / 2 + 4
        parts.append(
            f'<text x="{left - 8}" y="{number(middle)}" text-anchor="end">'
            f"<title>{text(row.label)}</title>{text(short(row.label, 50))}</text>"
        )
        for place, (value, shown) in enumerate(zip(row.values, row.shown, strict=True)):
            length = room * (value or 0.0) / most
            parts.append(
                f'<rect {fill(place)} x="{left}" y="{number(top)}"'
                f' width="{number(max(length, 0.5 if value else 0.0))}" height="{thick - 3}">'
                f"<title>{text(row.label)}: {text(shown)}</title></rect>"
                f'<text class="soft" x="{number(left + length + 6)}" y="{number(top + 10)}">'
                f"{text(shown)}</text>"
            )
            top += thick
        top += 4
    return svg(top, parts, "bars")


def histogram(values: Sequence[float], unit: str = "ms") -> str:
    """Return the distribution of measured values, with their median and 99th percentile."""
    ordered = sorted(value for value in values if math.isfinite(value))
    if len(ordered) < 2:
        return ""
    low, high = ordered[0], ordered[-1]
    end = percentile(ordered, 99.5) if len(ordered) >= 200 else high
    if high <= low + 3 * (end - low):
        end = high
    if end <= low:
        low, end = low - (abs(low) or 1.0) / 2, low + (abs(low) or 1.0) / 2
    counts, step = _binned(ordered, low, end)
    beyond = len(ordered) - bisect_right(ordered, end)
    axis = _Scale(low, end, 50, WIDTH - 30)
    height, base = 220, 180
    parts = [axis_marks(axis, base, unit)]
    most = max(counts)
    for place, found in enumerate(counts):
        begin, until = low + place * step, low + (place + 1) * step
        tall = 150 * found / most
        parts.append(
            f'<rect class="s0" x="{number(axis.at(begin))}" y="{number(base - tall)}"'
            f' width="{number(max(0.5, axis.at(until) - axis.at(begin) - 1))}"'
            f' height="{number(tall)}"><title>{begin:.4g} to {until:.4g} {text(unit)}:'
            f" {found:,}</title></rect>"
        )
    parts.append(f'<text class="tick" x="44" y="38" text-anchor="end">{most:,}</text>')
    for title, share, y in (("median", 50, 12), ("p99", 99, 26)):
        value = percentile(ordered, share)
        x = number(min(axis.at(value), WIDTH - 30))
        anchor = "end" if axis.at(value) > WIDTH / 2 else "start"
        parts.append(
            f'<line class="mark" x1="{x}" x2="{x}" y1="{y}" y2="{base}"/>'
            f'<text x="{x}" y="{y}" dx="{-4 if anchor == "end" else 4}" text-anchor="{anchor}">'
            f"{title} {value:.4g} {text(unit)}</text>"
        )
    note = f"{beyond:,} more above {end:.4g} {unit}, up to {high:.4g}" if beyond else ""
    if note:
        parts.append(f'<text class="soft" x="50" y="{height - 4}">{text(note)}</text>')
    return svg(height, parts, "distribution")


def svg(height: float, parts: Sequence[str], label: str) -> str:
    """Return a drawing of the page's width."""
    return (
        f'<svg viewBox="0 0 {WIDTH} {number(height)}" role="img" aria-label="{text(label)}">'
        + "\n".join(parts)
        + "</svg>"
    )


def axis_marks(axis: _Scale, y: float, unit: str) -> str:
    """Return a horizontal axis with ticks below it."""
    parts = [f'<line class="axis" x1="{axis.left}" x2="{axis.right}" y1="{y}" y2="{y}"/>']
    for value in ticks(axis.low, axis.high):
        x = number(axis.at(value))
        parts.append(
            f'<line class="axis" x1="{x}" x2="{x}" y1="{y}" y2="{y + 4}"/>'
            f'<text class="tick" x="{x}" y="{y + 16}" text-anchor="middle">{value:.6g}</text>'
        )
    parts.append(
        f'<text class="tick" x="{axis.right}" y="{y + 30}" text-anchor="end">{text(unit)}</text>'
    )
    return "".join(parts)


def ticks(low: float, high: float, most: int = 10) -> list[float]:
    """Return round values within a range: steps of 1, 2 or 5 times a power of ten."""
    span = high - low
    if not (span > 0 and math.isfinite(span)):
        return []
    power = 10.0 ** math.floor(math.log10(span / most))
    step = next(power * n for n in (1, 2, 5, 10, 20) if span / (power * n) <= most)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(place * step, 12) for place in range(first, last + 1)]


def scale(low: float, high: float, left: float, right: float) -> _Scale:
    """Return a scale from values to places in the drawing."""
    return _Scale(low, high if high > low else low + 1.0, left, right)


@dataclass(frozen=True)
class _Scale:
    low: float
    high: float
    left: float
    right: float

    def at(self, value: float) -> float:
        """Return the place of a value, within the drawing."""
        share = (value - self.low) / (self.high - self.low)
        return self.left + (self.right - self.left) * min(1.0, max(0.0, share))


def _binned(ordered: Sequence[float], low: float, end: float) -> tuple[list[int], float]:
    """Count values in bins of equal width: Freedman and Diaconis' rule, within bounds."""
    spread = percentile(ordered, 75) - percentile(ordered, 25)
    width = 2 * spread / len(ordered) ** (1 / 3)
    wanted = math.ceil((end - low) / width) if width > 0 else 1
    bins = max(10, min(80, wanted))
    step = (end - low) / bins
    counts = [0] * bins
    for value in ordered:
        if value <= end:
            counts[min(bins - 1, int((value - low) / step))] += 1
    return counts, step


def legend(series: Sequence[str], left: float) -> tuple[str, int]:
    """Return the legend, broken into rows where it is long, and where the drawing below begins."""
    parts: list[str] = []
    x, y = left, 4
    for place, title in enumerate(series):
        shown = short(title, int((WIDTH - left - 20) / _LETTER))
        width = 30 + _LETTER * len(shown)
        if x > left and x + width > WIDTH:
            x, y = left, y + _LEGEND_ROW
        parts += [
            f'<rect {fill(place)} x="{number(x)}" y="{y}" width="10" height="10"/>',
            f'<text x="{number(x + 14)}" y="{y + 9}"><title>{text(title)}</title>',
            f"{text(shown)}</text>",
        ]
        x += width
    return "".join(parts), y + 20


def fill(place: int) -> str:
    """Return the attribute that gives a series its colour; no two have the same."""
    if place < _SERIES:
        return f'class="s{place}"'
    # An attribute: the page's policy allows no style beside its own.
    return f'fill="hsl({place * _GOLDEN_ANGLE % 360:.1f}, 60%, {45 + place % 3 * 10}%)"'
