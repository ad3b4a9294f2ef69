"""The charts of an engine's page, drawn from the figures that the Plan screen's charts show."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from dld_tui.core import fmt
from dld_tui.core.plan.groups import UNKNOWN
from dld_tui.core.plan.macs import is_convolution, macs
from dld_tui.core.plan.model import EngineLayer, EnginePlan
from dld_tui.core.plan.roofline import Peaks, peaks_of, placement
from dld_tui.core.report.html.charts import WIDTH, Bar, bars, fill, legend, svg
from dld_tui.core.report.html.markup import number, text

_TOP = 20
_HEIGHT = 420
_LEFT, _RIGHT, _BASE = 90, WIDTH - 40, 360
_TYPES = 8
"""Types of layers whose precisions are shown."""


def roofline_chart(plan: EnginePlan) -> str:
    """Return the layers under the roofs of their types; empty without peaks, times or shapes.

    Both axes are logarithmic: operations for each byte moved (a multiply-accumulate is two), and
    10^12 operations a second.
    """
    peaks = peaks_of(plan.device)
    if peaks is None:
        return ""
    points: list[tuple[EngineLayer, float, float]] = []
    for layer in plan.layers:
        count, size = macs(layer), layer.footprint
        if count and size and layer.time_ms:
            points.append((layer, 2 * count / size, 2 * count / layer.time_ms / 1e9))
    if not points:
        return ""
    kinds = sorted({layer.precision for layer, _, _ in points if layer.precision})
    roofs = [(kind, peaks.tflops[kind]) for kind in kinds if kind in peaks.tflops]
    xs = [x for _, x, _ in points]
    tops = [top for _, top in roofs] or [max(y for _, _, y in points)]
    across = _LogAxis(min(xs), max(*xs, max(tops) / peaks.bandwidth_gbs * 1e3 * 2), _LEFT, _RIGHT)
    up = _LogAxis(min(y for _, _, y in points), max(*tops, *(y for _, _, y in points)), _BASE, 30)
    parts = [*_axes(across, up, "operations a byte", "10^12 operations a second")]
    for kind, top in roofs:
        ridge = top * 1e3 / peaks.bandwidth_gbs
        start = max(across.low, up.low * 1e3 / peaks.bandwidth_gbs)
        shape = [
            (start, start * peaks.bandwidth_gbs / 1e3), (ridge, top), (across.high, top)
        ]  # fmt: skip
        line = " ".join(f"{number(across.at(x))},{number(up.at(y))}" for x, y in shape)
        parts.append(f'<polyline class="axis" fill="none" points="{line}"/>')
        parts.append(
            f'<text class="tick" x="{_RIGHT}" y="{number(up.at(top) - 4)}"'
            f' text-anchor="end">{text(kind)} {top:g}</text>'
        )
    for layer, x, y in points:
        found = placement(layer, peaks)
        share = found.efficiency if found is not None else None
        of_roof = "" if share is None else f", {100 * share:.0f} % of its roof"
        parts.append(
            _point(kinds, layer, across.at(x), up.at(y), f"{x:.3g} a byte, {y:.3g}{of_roof}")
        )
    return _drawing(parts, kinds, "roofline")


def scatter_chart(plan: EnginePlan) -> str:
    """Return the time of each layer against the bytes that it moves; empty without times."""
    points = [
        (layer, float(layer.footprint), layer.time_ms)
        for layer in plan.layers
        if layer.footprint and layer.time_ms
    ]
    if len(points) < 2:
        return ""
    kinds = sorted({layer.precision or UNKNOWN for layer, _, _ in points})
    across = _LogAxis(min(x for _, x, _ in points), max(x for _, x, _ in points), _LEFT, _RIGHT)
    peaks = peaks_of(plan.device)
    times = [y for _, _, y in points]
    least = [] if peaks is None else [across.high / peaks.bandwidth_gbs / 1e6 / 2]
    up = _LogAxis(min(*times, *least), max(times), _BASE, 30)
    parts = [*_axes(across, up, "bytes moved", "ms", lambda value: fmt.size(int(value)))]
    if peaks is not None:
        parts += _bandwidth(peaks, across, up)
    for layer, x, y in points:
        told = f"{fmt.size(int(x))}, {fmt.milliseconds(y, digits=4)} ms"
        parts.append(_point(kinds, layer, across.at(x), up.at(y), told))
    return _drawing(parts, kinds, "time against bytes")


def _bandwidth(peaks: Peaks, across: _LogAxis, up: _LogAxis) -> list[str]:
    """Return the least time that memory allows, as a line."""
    ends = [
        (x, x / peaks.bandwidth_gbs / 1e6)
        for x in (max(across.low, up.low * peaks.bandwidth_gbs * 1e6),
                  min(across.high, up.high * peaks.bandwidth_gbs * 1e6))
    ]  # fmt: skip
    if ends[0][0] >= ends[1][0]:
        return []
    line = " ".join(f"{number(across.at(x))},{number(up.at(y))}" for x, y in ends)
    x, y = ends[1]
    return [
        f'<polyline class="axis" fill="none" points="{line}"/>',
        f'<text class="tick" x="{number(across.at(x))}" y="{number(up.at(y) + 14)}"'
        f' text-anchor="end">{peaks.bandwidth_gbs:,.0f} GB/s</text>',
    ]


def memory_chart(plan: EnginePlan) -> str:
    """Return the bytes of the layers that move most: weights, inputs, outputs."""
    known = [layer for layer in plan.layers if layer.footprint]
    known.sort(key=lambda layer: -(layer.footprint or 0))
    rows = []
    for layer in known[:_TOP]:
        sizes = (
            layer.weights_bytes,
            sum(tensor.bytes or 0 for tensor in layer.inputs),
            sum(tensor.bytes or 0 for tensor in layer.outputs),
        )
        rows.append(Bar(layer.name, sizes, tuple(fmt.size(size) for size in sizes)))
    return bars(rows, ("weights", "inputs", "outputs"))


def precision_chart(plan: EnginePlan) -> str:
    """Return how long each type of layer works in each precision; how many without times."""
    kinds = sorted({layer.precision or UNKNOWN for layer in plan.layers})
    timed = plan.total_ms is not None
    sums: dict[str, dict[str, float]] = {}
    for layer in plan.layers:
        value = (layer.time_ms or 0.0) if timed else 1.0
        own = sums.setdefault(layer.kind or UNKNOWN, {})
        own[layer.precision or UNKNOWN] = own.get(layer.precision or UNKNOWN, 0.0) + value
    ordered = sorted(sums.items(), key=lambda item: -sum(item[1].values()))[:_TYPES]

    def shown(value: float | None) -> str:
        if value is None:
            return ""
        return f"{fmt.milliseconds(value)} ms" if timed else fmt.plural(int(value), "layer")

    return bars(
        [
            Bar(name, tuple(map(own.get, kinds)), tuple(shown(own.get(kind)) for kind in kinds))
            for name, own in ordered
        ],
        kinds,
    )


def convolution_chart(plan: EnginePlan) -> str:
    """Return the slowest convolutions, and how near to their roof they come."""
    peaks = peaks_of(plan.device)
    found = [layer for layer in plan.layers if is_convolution(layer) and layer.time_ms]
    found.sort(key=lambda layer: -(layer.time_ms or 0.0))
    rows = []
    for layer in found[:_TOP]:
        place = placement(layer, peaks) if peaks is not None else None
        share = place.efficiency if place is not None else None
        of_roof = "" if share is None else f", {100 * share:.0f} %"
        rows.append(
            Bar(layer.name, (layer.time_ms,), (f"{fmt.milliseconds(layer.time_ms)} ms{of_roof}",))
        )
    return bars(rows)


# --- drawing --------------------------------------------------------------------------------------


class _LogAxis:
    """A logarithmic scale over whole decades where they are few, else a little around the data."""

    def __init__(self, low: float, high: float, begin: float, end: float) -> None:
        self.low, self.high = low / 1.3, max(high, low * 1.01) * 1.3
        self._begin, self._end = begin, end

    def at(self, value: float) -> float:
        """Return the place of a value, within the drawing."""
        share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        return self._begin + (self._end - self._begin) * min(1.0, share)

    def ticks(self) -> list[float]:
        """Return 1, 2 and 5 times the powers of ten within it; fewer where there are many."""
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        steps = (1, 2, 5) if last - first <= _FEW_DECADES else (1,)
        found = (step * 10.0**power for power in range(first, last + 1) for step in steps)
        return [value for value in found if self.low <= value <= self.high]


_FEW_DECADES = 4


def _axes(
    across: _LogAxis,
    up: _LogAxis,
    below: str,
    beside: str,
    shown: Callable[[float], str] = lambda value: f"{value:g}",
) -> list[str]:
    parts = [
        f'<line class="axis" x1="{_LEFT}" x2="{_RIGHT}" y1="{_BASE}" y2="{_BASE}"/>',
        f'<line class="axis" x1="{_LEFT}" x2="{_LEFT}" y1="30" y2="{_BASE}"/>',
        f'<text class="tick" x="{_RIGHT}" y="{_BASE + 34}" text-anchor="end">{text(below)}</text>',
        f'<text class="tick" x="{_LEFT}" y="20" text-anchor="start">{text(beside)}</text>',
    ]
    for value in across.ticks():
        x = number(across.at(value))
        parts.append(
            f'<line class="axis" x1="{x}" x2="{x}" y1="{_BASE}" y2="{_BASE + 4}"/>'
            f'<text class="tick" x="{x}" y="{_BASE + 17}" text-anchor="middle">'
            f"{text(shown(value))}</text>"
        )
    for value in up.ticks():
        y = up.at(value)
        parts.append(
            f'<line class="axis" x1="{_LEFT - 4}" x2="{_LEFT}" y1="{number(y)}" y2="{number(y)}"/>'
            f'<text class="tick" x="{_LEFT - 8}" y="{number(y + 4)}" text-anchor="end">{value:g}'
            "</text>"
        )
    return parts


def _point(kinds: Sequence[str], layer: EngineLayer, x: float, y: float, told: str) -> str:
    kind = layer.precision or UNKNOWN
    place = kinds.index(kind) if kind in kinds else len(kinds)
    return (
        f'<circle {fill(place)} cx="{number(x)}" cy="{number(y)}" r="4" fill-opacity="0.75">'
        f"<title>{text(layer.name)}: {text(kind)}, {text(told)}</title></circle>"
    )


def _drawing(parts: Sequence[str], kinds: Sequence[str], label: str) -> str:
    shown, top = legend(kinds, _LEFT)
    moved = f'<g transform="translate(0 {top})">{"".join(parts)}</g>'
    return svg(_HEIGHT + top - 20, [shown, moved], label)
