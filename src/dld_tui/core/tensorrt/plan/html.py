"""An engine as one HTML page that can be mailed, with the charts of the Plan screen."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from heapq import nlargest
from pathlib import Path
from typing import Any

from dld_tui.core import fmt
from dld_tui.core.files.writer import write_text
from dld_tui.core.fmt import number
from dld_tui.core.machine.peaks import Peaks
from dld_tui.core.model.graph.pictures import style
from dld_tui.core.model.graph.pictures.drawing import svg_of
from dld_tui.core.model.graph.pictures.scene import make_scene
from dld_tui.core.report.layer_table import layer_table
from dld_tui.core.statistics import trtexec_summary
from dld_tui.core.tables.html_page import (
    WIDTH,
    Bar,
    Section,
    Tile,
    bars,
    definitions,
    fill,
    histogram,
    legend,
    page,
    paragraphs,
    svg,
    text,
    tiles,
    time_bars,
)
from dld_tui.core.tables.rendering import html_of
from dld_tui.core.tables.table import Table
from dld_tui.core.tensorrt.plan.engine_plan import EngineLayer, EnginePlan, missing
from dld_tui.core.tensorrt.plan.file_set import device_name
from dld_tui.core.tensorrt.plan.graph import plan_content
from dld_tui.core.tensorrt.plan.layer_records import layer_records, shown_names
from dld_tui.core.tensorrt.plan.layer_work import (
    is_convolution,
    peaks_of,
    placement,
    points_under_roofs,
    unknown_device,
)
from dld_tui.core.tensorrt.plan.lint import PlanFinding
from dld_tui.core.tensorrt.plan.mapping import LayerNodes
from dld_tui.core.tensorrt.plan.summary import (
    NAMES,
    UNKNOWN,
    PlanGroup,
    activations_text,
    groups,
    summary_lines,
    summary_of,
    weights_text,
)
from dld_tui.core.tensorrt.plan.tables import VIEWS, finding_table, make_table

_TOP = 20
_HEIGHT = 420
_LEFT, _RIGHT, _BASE = 90, WIDTH - 40, 360
_TYPES = 8
"""Types of layers whose precisions are shown."""


def roofline_chart(plan: EnginePlan) -> str:
    """Return the layers under the rooflines of their types; empty without peaks, times or shapes.

    Both axes are logarithmic: operations per byte moved (a multiply-accumulate is two), and
    10^12 operations per second.
    """
    peaks = peaks_of(plan.device)
    if peaks is None:
        return ""
    known, tops_of = points_under_roofs(plan.layers, peaks)
    points = [(layer, x, y / 1e12) for layer, x, y in known]
    if not points:
        return ""
    kinds = sorted({layer.precision for layer, _, _ in points if layer.precision})
    roofs = [(name, top / 1e12) for name, top in tops_of.items()]
    bandwidth = peaks.bandwidth / 1e12
    xs = [x for _, x, _ in points]
    tops = [top for _, top in roofs] or [max(y for _, _, y in points)]
    across = _LogAxis(min(xs), max(*xs, 2 * max(tops) / bandwidth), _LEFT, _RIGHT)
    up = _LogAxis(min(y for _, _, y in points), max(*tops, *(y for _, _, y in points)), _BASE, 30)
    parts = [*_axes(across, up, "operations a byte", "10^12 operations a second")]
    for kind, top in roofs:
        ridge = top / bandwidth
        start = max(across.low, up.low / bandwidth)
        shape = [
            (start, start * bandwidth), (ridge, top), (across.high, top)
        ]  # fmt: skip
        line = " ".join(f"{number(across.at(x))},{number(up.at(y))}" for x, y in shape)
        parts.append(f'<polyline class="axis" fill="none" points="{line}"/>')
        parts.append(
            f'<text class="tick" x="{_RIGHT}" y="{number(up.at(top) - 4)}"'
            f' text-anchor="end">{text(kind)} {top:g}</text>'
        )
    for layer, x, y in points:
        placed = placement(layer, peaks)
        share = placed.efficiency if placed is not None else None
        of_roof = "" if share is None else f", {fmt.whole_percent(100 * share)} % of its limit"
        parts.append(
            _point(kinds, layer, across.at(x), up.at(y), f"{x:.3g} a byte, {y:.3g}{of_roof}")
        )
    return _drawing(parts, kinds, "roofline")


def scatter_chart(plan: EnginePlan) -> str:
    """Return the time of each layer over the bytes that it moves; empty without times."""
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
    least = [] if peaks is None else [1e3 * across.high / peaks.bandwidth / 2]
    up = _LogAxis(min(*times, *least), max(times), _BASE, 30)
    parts = [*_axes(across, up, "bytes moved", "ms", lambda value: fmt.size(int(value)))]
    if peaks is not None:
        parts += _bandwidth(peaks, across, up)
    for layer, x, y in points:
        figures = f"{fmt.size(int(x))}, {fmt.milliseconds(y, digits=4)} ms"
        parts.append(_point(kinds, layer, across.at(x), up.at(y), figures))
    return _drawing(parts, kinds, "time against bytes")


def _bandwidth(peaks: Peaks, across: _LogAxis, up: _LogAxis) -> list[str]:
    """Return the least time that memory allows, as a line."""
    ends = [
        (x, 1e3 * x / peaks.bandwidth)
        for x in (max(across.low, up.low * peaks.bandwidth / 1e3),
                  min(across.high, up.high * peaks.bandwidth / 1e3))
    ]  # fmt: skip
    if ends[0][0] >= ends[1][0]:
        return []
    line = " ".join(f"{number(across.at(x))},{number(up.at(y))}" for x, y in ends)
    x, y = ends[1]
    return [
        f'<polyline class="axis" fill="none" points="{line}"/>',
        f'<text class="tick" x="{number(across.at(x))}" y="{number(up.at(y) + 14)}"'
        f' text-anchor="end">{peaks.bandwidth / 1e9:,.0f} GB/s</text>',
    ]


def memory_chart(plan: EnginePlan, names: Mapping[int, str]) -> str:
    """Return the bytes of the layers that move most: weights, what is read of inputs, outputs."""
    known = (layer for layer in plan.layers if layer.footprint)
    rows = []
    for layer in nlargest(_TOP, known, key=lambda layer: layer.footprint or 0):
        inputs = sum(tensor.bytes or 0 for tensor in layer.inputs) - layer.unread_bytes
        outputs = sum(tensor.bytes or 0 for tensor in layer.outputs)
        sizes = (layer.known_weights, inputs, outputs)
        rows.append(Bar(names[layer.index], sizes, tuple(fmt.size(size) for size in sizes)))
    return bars(rows, ("weights", "read of inputs", "outputs"))


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


def convolution_chart(plan: EnginePlan, names: Mapping[int, str]) -> str:
    """Return the slowest convolutions, and how close to their limit they come."""
    peaks = peaks_of(plan.device)
    convolutions = (layer for layer in plan.layers if is_convolution(layer) and layer.time_ms)
    rows = []
    for layer in nlargest(_TOP, convolutions, key=lambda layer: layer.time_ms or 0.0):
        place = placement(layer, peaks) if peaks is not None else None
        share = place.efficiency if place is not None else None
        of_roof = "" if share is None else f", {fmt.whole_percent(100 * share)} %"
        figure = f"{fmt.milliseconds(layer.time_ms)} ms{of_roof}"
        rows.append(Bar(names[layer.index], (layer.time_ms,), (figure,)))
    return bars(rows)


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
        """Return 1, 2 and 5 times the powers of ten in the range; fewer if there are many."""
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        steps = (1, 2, 5) if last - first <= _FEW_DECADES else (1,)
        values = (step * 10.0**power for power in range(first, last + 1) for step in steps)
        return [value for value in values if self.low <= value <= self.high]


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


def _point(kinds: Sequence[str], layer: EngineLayer, x: float, y: float, figures: str) -> str:
    kind = layer.precision or UNKNOWN
    place = kinds.index(kind) if kind in kinds else len(kinds)
    return (
        f'<circle {fill(place)} cx="{number(x)}" cy="{number(y)}" r="4" fill-opacity="0.75">'
        f"<title>{text(layer.name)}: {text(kind)}, {text(figures)}</title></circle>"
    )


def _drawing(parts: Sequence[str], kinds: Sequence[str], label: str) -> str:
    shown, top = legend(kinds, _LEFT)
    moved = f'<g transform="translate(0 {top})">{"".join(parts)}</g>'
    return svg(_HEIGHT + top - 20, [shown, moved], label)


_MOST_BOXES = 600
"""Layers of the largest engine whose graph is drawn in the page."""
_GRAPH = "engine-graph"
_RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")


def write_page(
    plan: EnginePlan,
    findings: Sequence[PlanFinding],
    mapping: Mapping[int, LayerNodes],
    path: Path,
    *,
    overwrite: bool = False,
) -> list[str]:
    """Write the page of an engine in one step and return remarks on the writing.

    Raises:
        InputError: The file cannot be written, or is there and `overwrite` is False.
    """
    return list(write_text(path, plan_page(plan, findings, mapping), overwrite=overwrite))


def plan_page(
    plan: EnginePlan, findings: Sequence[PlanFinding], mapping: Mapping[int, LayerNodes]
) -> str:
    """Return the page of an engine. The same engine gives the same bytes."""
    about = [(text, "warning") for text in plan.notes] + [(text, "info") for text in missing(plan)]
    if peaks_of(plan.device) is None and plan.device:
        about.append((unknown_device(plan), "info"))
    drawing, rules = _graph(plan)
    compute = plan.timing.series.get("compute", ()) if plan.timing is not None else ()
    times = trtexec_summary(compute)
    names = shown_names(plan, layer_records(plan, mapping))
    wrong = finding_table(plan, findings, names)
    sections = [
        Section("summary", "In short", definitions(map(_fact, [*summary_lines(plan)][1:]))),
        Section("about", "Notes", paragraphs(about)),
        Section("types", "By type", _bars(groups(plan, "type"))),
        Section("precisions", "By precision", _bars(groups(plan, "precision"))),
        Section("precision-types", "Precision by type", precision_chart(plan)),
        Section("top", f"The {_TOP} costliest layers", _top(plan, names)),
        Section("inferences", "Times of the inferences, GPU compute",
                histogram(compute, [] if times is None else times.supported_percentiles)),
        Section("roofline", "Roofline", roofline_chart(plan)),
        Section("scatter", "Time against bytes moved", scatter_chart(plan)),
        Section("memory-chart", "The largest layers in memory", memory_chart(plan, names)),
        Section("convolution-chart", _convolution_title(plan), convolution_chart(plan, names)),
        Section("findings", f"Findings ({len(wrong):,})", html_of("finding-table", wrong)),
        Section("layers", f"Layers ({len(plan.layers):,})", _layers(plan, mapping)),
        *(_special(make_table(plan, view)) for view in VIEWS if view != "layers"),
        Section("graph", "Graph", drawing),
    ]  # fmt: skip
    subtitle = [device_name(plan.device), Path(plan.path).name]
    return page(plan.title or "Engine", subtitle, _tiles(plan), sections, rules)


def _fact(line: str) -> tuple[str, str]:
    return line[:NAMES].strip(), line[NAMES:]


def _convolution_title(plan: EnginePlan) -> str:
    roof = "" if peaks_of(plan.device) is None else ", and how close to their limit they come"
    return f"The slowest convolutions{roof}"


def _tiles(plan: EnginePlan) -> str:
    summary = summary_of(plan)
    figures = []
    if plan.timing is not None and plan.timing.compute is not None:
        figures.append(
            Tile("GPU compute, median, ms", fmt.milliseconds(plan.timing.compute.median))
        )
    if plan.timing is not None and plan.timing.throughput:
        figures.append(Tile("inferences/s", f"{plan.timing.throughput:,.1f}"))
    if plan.total_ms is not None:
        figures.append(Tile("sum of layers, ms", fmt.milliseconds(plan.total_ms)))
    figures.append(Tile("layers", fmt.count(summary.layers)))
    if not plan.names_only:
        figures.append(Tile("weights", weights_text(summary)))
        figures.append(Tile("activations", activations_text(summary)))
    return tiles(figures)


def _bars(plan_groups: Iterable[PlanGroup]) -> str:
    return time_bars(
        (f"{group.key} ({group.count:,})", group.time_ms, group.percent)
        for group in list(plan_groups)[:_TOP]
    )


def _top(plan: EnginePlan, names: Mapping[int, str]) -> str:
    timed = nlargest(_TOP, plan.layers, key=lambda layer: layer.time_ms or 0.0)
    return time_bars((names[layer.index], layer.time_ms, layer.percent) for layer in timed)


def _layers(plan: EnginePlan, mapping: Mapping[int, LayerNodes]) -> str:
    return html_of("layer-table", layer_table(layer_records(plan, mapping), "engine html"))


def _special(table: Table[Any]) -> Section:
    shown = table.telling()
    columns = tuple(column for column in shown.columns if column.key != "tactic")
    body = html_of(f"{table.name}-table", replace(shown, columns=columns))
    return Section(table.name, f"{table.title} ({len(table):,})", body)


def _graph(plan: EnginePlan) -> tuple[str, str]:
    """Return the drawing, and style rules for it only."""
    if plan.names_only or not plan.layers or len(plan.layers) > _MOST_BOXES:
        return "", ""
    content = plan_content(plan, "precision")
    content.title = ""
    drawn = svg_of(make_scene(content), style.Look(style.SCHEMES["light"]))
    before, _, rest = drawn.partition("<style>")
    own, _, after = rest.partition("</style>")
    rules = [
        ",".join(f"#{_GRAPH} {part.strip()}" for part in selectors.split(",")) + f"{{{body}}}"
        for selectors, body in _RULE.findall(own)
    ]
    rules.append(f"#{_GRAPH} svg{{width:auto;max-width:none}}")
    return f'<div class="wide" id="{_GRAPH}">{before}{after}</div>', "".join(rules)
