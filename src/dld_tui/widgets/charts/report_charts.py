"""The charts of a report: bars a layer type, and what is drawn between axes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.machine.peaks import rate_text
from dld_tui.core.process.plugins import plugins
from dld_tui.core.report.groups import are_launches, group_layers, output_bytes
from dld_tui.core.report.layer_table import layer_names, short_precision
from dld_tui.core.report.measured_figures import bandwidths_text
from dld_tui.core.report.records import NOTHING_KNOWN, Group, Layer
from dld_tui.core.report.roofline import is_above_roof, per_second
from dld_tui.core.statistics import LatencySummary, median, summarise
from dld_tui.core.text import fit, visible
from dld_tui.core.text.names import cut_names
from dld_tui.core.types import precision_style
from dld_tui.widgets.charts.bars import (
    HEATS,
    Line,
    bar,
    bar_ramp,
    digits,
    heat,
    histogram,
    hottest,
)
from dld_tui.widgets.charts.plots import (
    Axis,
    Marks,
    Picture,
    Plot,
    Spot,
    draw,
    histogram_marks,
    legend,
    sentence,
)
from dld_tui.widgets.lists.styled import layer_style
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.timeline.cells import time_text

if TYPE_CHECKING:
    from dld_tui.core.machine.peaks import Peaks
    from dld_tui.core.report.generation import GenerationFigures

_LABELS = 8
"""About the cells of the labels of an axis."""
_RUNS = ("bar", "warn", "good", "info")
"""The styles of runs that are drawn over each other."""


@dataclass(frozen=True)
class Run:
    """What a spot of a run is: a pass of the report."""

    index: int


@dataclass(frozen=True)
class ChartRow:
    """One bar."""

    label: str
    value: str
    share: float
    """Of the longest bar, 0 to 1."""
    style: str
    note: str = ""
    key: str = ""
    """The layer type that it opens; the label when empty."""


class BarRows:
    """Bars as the lines of a view: label, bar, value."""

    def __init__(self, rows: Sequence[ChartRow]) -> None:
        self.rows = rows
        self._values = max((len(row.value) for row in rows), default=0)
        self._notes = max((len(row.note) for row in rows), default=0)
        self._labels = max((len(row.label) for row in rows), default=0)
        self._cut: tuple[int, Sequence[str]] = (-1, ())

    def __len__(self) -> int:
        return len(self.rows)

    def key(self, index: int) -> str:
        """Return the label."""
        return self.rows[index].key + "\t" + self.rows[index].label

    def text(self, index: int) -> str:
        """Return label, value and note."""
        row = self.rows[index]
        return f"{row.label}\t{row.value}\t{row.note}"

    def line(self, index: int, width: int) -> Line:
        """Return one bar for `width` cells."""
        row = self.rows[index]
        label = min(self._labels, max(width // 3, 8))
        if self._cut[0] != label:
            self._cut = label, cut_names([row.label for row in self.rows], label)
        room = max(width - label - self._values - self._notes - 4, 3)
        return [
            (fit(self._cut[1][index], label) + " ", ""),
            (bar(row.share, room, bar_ramp()), row.style),
            (" " + row.value.rjust(self._values), row.style),
            (" " + row.note.rjust(self._notes), "dim"),
        ]


def chart_rows(groups: Sequence[Group], percent: bool) -> list[ChartRow]:
    """Return the bars of groups, in milliseconds or in percent."""

    def shown(group: Group) -> float:
        return group.percent if percent else group.cost_ms

    longest = max(map(shown, groups), default=0.0)
    hot = hottest(map(shown, groups))
    return [
        ChartRow(
            visible(group.key),
            _value(group, percent),
            shown(group) / longest if longest > 0 else 0.0,
            HEATS[heat(shown(group), hot)],
            _times(group.count),
            group.key,
        )
        for group in sorted(groups, key=shown, reverse=True)
    ]


def precision_rows(layers: Sequence[Layer], percent: bool) -> list[ChartRow]:
    """Return a bar for each layer type and, below it, one for each of its precisions.

    Args:
        layers: The layers.
        percent: Percentages instead of milliseconds.
    """
    types = group_layers(layers, "type")
    longest = max((group.cost_ms for group in types), default=0.0)
    rows = []
    for kind, bars in zip(types, chart_rows(types, percent), strict=True):
        rows.append(bars)
        inside = [layer for layer in layers if layer.type == kind.key]
        for group in group_layers(inside, "precision", whole=layers):
            rows.append(
                ChartRow(
                    f"  {short_precision(group.key)}",
                    _value(group, percent),
                    group.cost_ms / longest if longest > 0 else 0.0,
                    precision_style(group.key),
                    _times(group.count),
                    kind.key,
                )
            )
    return rows


def distribution_plot(
    values: Sequence[float], width: int, latency: LatencySummary | None = None
) -> Plot | str:
    """Return how often each time occurred, in milliseconds, with the percentiles.

    Args:
        values: The times.
        width: The cells that there are.
        latency: Their summary, where a report has its own; else by linear interpolation.
    """
    shape = histogram(values, _bins(len(values), width))
    if shape is None or shape.high <= shape.low:
        return "Too few different latencies for a distribution."
    above = f"  {shape.above:,} above" if shape.above else ""
    summary = latency or summarise(values)
    percentiles = [] if summary is None else summary.supported_percentiles
    rules = [(at, "accent") for _, at in percentiles if at <= shape.high]
    figures = "  ".join(f"{name} {at:,.{digits(at)}f}" for name, at in percentiles)
    caption: Line = [(f" {glyphs.current().separator} ", "accent"), (f"{figures} ms{above}", "")]
    axis = Axis("ms", lambda ms: f"{ms:,.{digits(shape.high)}f}")
    counts = Axis(least=0.0, whole=True)
    return Plot([histogram_marks(shape)], axis, counts, rules=rules, below=[caption])


def distributions_plot(runs: Sequence[tuple[str, Sequence[float]]], width: int) -> Plot | str:
    """Return the distributions of several runs over each other, each as a share of its run.

    Args:
        runs: The name of each, untrusted text, and its latencies in milliseconds.
        width: The cells that there are.
    """
    known = [(name, values) for name, values in runs if values]
    most = max((len(values) for _, values in known), default=0)
    whole = histogram([ms for _, values in known for ms in values], _bins(most, width))
    if len(known) < 2 or whole is None or whole.high <= whole.low:
        return "Too few runs have known latencies."
    marks, rules = [], []
    for number, (_, values) in enumerate(known):
        counts = [0] * len(whole.counts)
        for ms in values:
            if ms <= whole.high:
                counts[whole.bin_of(ms)] += 1
        of_run = histogram_marks(
            replace(whole, counts=tuple(counts)), "steps" if number else "bars", _of_run(number)
        )
        marks.append(replace(of_run, ys=[100 * count / len(values) for count in of_run.ys]))
        rules.append((median(values), _of_run(number)))
    above = f"  {whole.above:,} above" if whole.above else ""
    named = [
        (f"{name}  median {fmt.milliseconds(median(values))} ms", _of_run(number))
        for number, (name, values) in enumerate(known)
    ]
    axis = Axis(f"ms{above}", lambda ms: f"{ms:,.{digits(whole.high)}f}")
    share = Axis(text=lambda percent: f"{percent:g} %", least=0.0)
    return Plot(marks, axis, share, rules=rules, below=[legend(named, width)])


def runs_picture(runs: Sequence[tuple[str, Sequence[float]]], width: int, height: int) -> Picture:
    """Return the distributions of several runs, drawn: see :func:`distributions_plot`."""
    plot = distributions_plot(runs, width)
    return sentence(plot) if isinstance(plot, str) else draw(plot, width, height)


def _of_run(number: int) -> str:
    return _RUNS[number % len(_RUNS)]


def _bins(count: int, width: int) -> int:
    return max(min(width - _LABELS, 4 * math.isqrt(count)), 8)


def passes_plot(values: Sequence[float], passes: Sequence[int] = ()) -> Plot | str:
    """Return the latency of each run in the order of the runs.

    Args:
        values: Of whole runs, in milliseconds.
        passes: Of each run its pass in the report; empty where they are others.
    """
    if len(values) < 2:
        return "There are too few runs for a chart."
    began = [0.0, *itertools.accumulate(values)]
    spots = [
        Spot(
            at,
            ms,
            f"run {at + 1:,}   {fmt.milliseconds(ms)} ms   after {began[at] / 1000:,.2f} s",
            Run(passes[at]) if passes else None,
        )
        for at, ms in enumerate(values)
    ]
    return Plot(
        [Marks(range(len(values)), values, "line")],
        Axis("runs, in their order", lambda at: f"{at + 1:,.0f}", whole=True),
        Axis(text=_ms_text), spots,
    )  # fmt: skip


def memory_plot(layers: Sequence[Layer]) -> Plot | str:
    """Return a dot a layer, size of its outputs against what it costs, both logarithmic."""
    if are_launches(layers):
        return "Only launches of layers were timed, which do not depend on the size."
    points = [
        (float(size), layer) for layer in layers
        if (size := output_bytes(layer)) and layer.cost_ms
    ]  # fmt: skip
    unknown = len(layers) - len(points)
    if len(points) < 2:
        return "Too few layers have outputs of known size."
    rest = f"; of {unknown:,} the size or time is not known" if unknown else ""
    caption = f" {fmt.plural(len(points), 'layer')} by size of their outputs{rest}"
    placed = [(size, layer.cost_ms or 0.0, layer) for size, layer in points]
    return Plot(
        _marks_by_type(placed),
        Axis(text=lambda size: fmt.size(round(size)), log=True), Axis(text=_ms_text, log=True),
        _spots(placed, lambda size, ms: f"{fmt.milliseconds(ms)} ms  {fmt.size(round(size))}"),
        below=[[(caption, "dim")]],
    )  # fmt: skip


_NO_ROOFLINE = "Too few layers have known operations, bytes and times for a roofline."


def roofline_plot(
    points: Sequence[tuple[float, float, Layer]], peaks: Peaks, tops: Mapping[str, float]
) -> Plot | str:
    """Return layers under a roof, both axes logarithmic.

    Args:
        points: Of each layer its operations a byte, what it reached a second, and itself.
        peaks: Of the device.
        tops: Its operations a second by those types that the layers compute in.
    """
    if len(points) < 2 or not tops:
        return _NO_ROOFLINE
    bandwidth = peaks.fastest_bandwidth
    places = [*(x for x, _, _ in points), *(top / bandwidth for top in tops.values())]
    low, high = min(places) / 2, 2 * max(places)
    roofs = [
        Marks([low, top / bandwidth, high], [low * bandwidth, top, top], "line", "warn")
        for top in tops.values()
    ]
    flops = "  ".join(rate_text(kind, top) for kind, top in tops.items())
    operations = "OP/s" if any(kind.startswith("int") for kind in tops) else "FLOP/s"
    caption = f" {flops}   {bandwidths_text(peaks)}   {fmt.plural(len(points), 'layer')}"
    return Plot(
        [*roofs, *_marks_by_type(points)],
        Axis("operations a byte", log=True),
        Axis(text=lambda rate: f"{fmt.short_count(rate)}", log=True),
        _spots(points, lambda x, rate: f"{fmt.short_count(rate)}{operations}  {x:,.3g} a byte"),
        below=[[(caption, "dim")]],
    )


def report_roofline(layers: Sequence[Layer], roofs: Mapping[str, Peaks]) -> Plot | str:
    """Return the roofline of layers that know their work, on the device that they ran on."""
    if not roofs and any(layer.cost is not None and layer.cost.roof_ms for layer in layers):
        return "The report does not say what its device can do at most."
    device = max(roofs, key=lambda one: sum(_cost_on(layer, one) for layer in layers), default="")
    points: list[tuple[float, float, Layer]] = []
    kinds: dict[str, float] = {}
    for layer in layers:
        cost = layer.cost or NOTHING_KNOWN
        rate = per_second(layer, cost.flops)
        if layer.provider != device or not rate or not cost.flops or not cost.moved_bytes:
            continue
        if not cost.roof_ms or is_above_roof(layer):
            continue
        points.append((cost.flops / cost.moved_bytes, rate, layer))
        kinds[cost.peak] = roofs[device].flops.get(cost.peak, 0.0)
    if not points:
        return _NO_ROOFLINE
    return roofline_plot(points, roofs[device], {kind: top for kind, top in kinds.items() if top})


def _cost_on(layer: Layer, provider: str) -> float:
    return (layer.cost_ms or 0.0) if layer.provider == provider else 0.0


def context_plot(figures: Sequence[GenerationFigures]) -> Plot | str:
    """Return what a token takes over the length of the context, of the smallest batch."""
    batch = min((figure.batch for figure in figures), default=0)
    steps: dict[int, list[float]] = {}
    for one in figures:
        for at, ms in enumerate(one.step_ms if one.batch == batch else ()):
            steps.setdefault(one.prompt + at + 1, []).append(ms)
    if len(steps) < 2:
        return "Too few tokens for a chart."
    tokens = sorted(steps)
    return Plot(
        [Marks(tokens, [median(steps[at]) for at in tokens], "line")],
        Axis("tokens seen", lambda at: f"{at:,.0f}"), Axis(text=_ms_text, least=0.0),
        [Spot(at, median(steps[at]), f"{at:,} tokens   {fmt.milliseconds(median(steps[at]))} ms")
         for at in tokens],
        below=[[(f" time a token by tokens seen, batch {batch}", "dim")]],
    )  # fmt: skip


def _ms_text(ms: float) -> str:
    return time_text(1000 * ms)


def _marks_by_type(points: Sequence[tuple[float, float, Layer]]) -> list[Marks]:
    """Return dots in the colours of the layers' types, those of the costliest on top."""
    by: dict[str, tuple[list[float], list[float]]] = {}
    for x, y, layer in sorted(points, key=lambda point: point[2].cost_ms or 0.0):
        style = layer_style(layer.type)
        xs, ys = by.pop(style, ([], []))
        by[style] = [*xs, x], [*ys, y]
    return [Marks(xs, ys, style=style) for style, (xs, ys) in by.items()]


def _spots(
    points: Sequence[tuple[float, float, Layer]], text: Callable[[float, float], str]
) -> list[Spot]:
    """Return the layers from the costliest on."""
    ordered = sorted(points, key=lambda point: -(point[2].cost_ms or 0.0))
    names = layer_names([layer for _, _, layer in ordered])
    return [
        Spot(x, y, f"{text(x, y)}  {visible(layer.type)}  {name}", layer.index)
        for (x, y, layer), name in zip(ordered, names, strict=True)
    ]


def _value(group: Group, percent: bool) -> str:
    if not group.is_timed:
        return fmt.UNKNOWN
    return f"{fmt.percent(group.percent)} %" if percent else f"{group.cost_ms:,.3f} ms"


def _times(count: int) -> str:
    return f"×{count:,}" if glyphs.current().name == "unicode" else f"x{count:,}"


@dataclass(frozen=True)
class ChartData:
    """What a chart is drawn of, and how large."""

    layers: Sequence[Layer]
    latencies: Sequence[float]
    """Of whole runs in milliseconds, in order; empty when they are not known."""
    width: int
    height: int
    """In cells."""
    passes: Sequence[int] = ()
    """Of each latency the pass in the report; empty where whole runs were measured apart."""
    generation: Sequence[GenerationFigures] = ()
    """Of prefill and decode; empty where the report is of no decoder."""
    latency: LatencySummary | None = None
    """Of `latencies`."""
    roofs: Mapping[str, Peaks] = field(default_factory=dict)
    """What the devices can do at most, by execution provider."""


@dataclass(frozen=True)
class Chart:
    """A chart that is drawn as lines; other packages add some as ``dld_tui.charts``."""

    id: str
    title: str
    lines: Callable[[ChartData], Sequence[Line]] | None = None
    """A line is a list of pieces, ``(text, style)``; styles are those of the theme, such as
    ``good``, ``dim`` and ``bar``."""
    plot: Callable[[ChartData], Plot | str] | None = None
    """Instead of lines: what is drawn between axes, or why nothing is."""


LAUNCHES = {"type": "Launch time per type", "precision": "Launch time by precision"}
"""Those of `BAR_CHARTS` where only launches were timed."""
BAR_CHARTS = {"type": "Time per type", "precision": "Precision per type"}
"""Titles of the charts whose bars open a layer type."""
LINE_CHARTS = (
    Chart(
        "passes",
        "Latency over the runs",
        plot=lambda data: passes_plot(data.latencies, data.passes),
    ),
    Chart(
        "distribution",
        "Latency distribution",
        plot=lambda data: distribution_plot(data.latencies, data.width, data.latency),
    ),
    Chart("memory", "Time against output size", plot=lambda data: memory_plot(data.layers)),
    Chart("roofline", "Roofline", plot=lambda data: report_roofline(data.layers, data.roofs)),
)

CONTEXT_CHART = Chart(
    "context", "Time a token over context", plot=lambda data: context_plot(data.generation)
)
"""Of reports on decoders alone."""


def line_charts() -> dict[str, Chart]:
    """Return the charts that are drawn as lines by id, those of other packages last."""
    charts = {chart.id: chart for chart in LINE_CHARTS}
    for plugin in plugins("charts", Chart):
        charts.setdefault(f"{plugin.package}:{plugin.name}", plugin.value)
    return charts


def drawn(chart: Chart, data: ChartData) -> Picture:
    """Return a chart, or why it cannot be drawn. It may take a second: not on the event loop."""
    try:
        if chart.plot is not None:
            plot = chart.plot(data)
            return sentence(plot) if isinstance(plot, str) else draw(plot, data.width, data.height)
        return Picture([*map(list, chart.lines(data))] if chart.lines is not None else [])
    # The seam to code of others, which may raise anything.
    except Exception as error:  # noqa: BLE001
        return Picture([[(visible(f"the chart failed: {type(error).__name__}: {error}"), "warn")]])
