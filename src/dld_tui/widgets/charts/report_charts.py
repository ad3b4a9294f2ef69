"""The charts of a report as lines of text: per type, precision per type, distribution, memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.plugins import plugins
from dld_tui.core.report.groups import group_layers, output_bytes, priced, whole_ms
from dld_tui.core.report.layer_table import precision_style, short_precision
from dld_tui.core.report.records import Group, Layer
from dld_tui.core.report.statistics import median, percentile
from dld_tui.core.text import fit, visible
from dld_tui.widgets.charts.bars import (
    ASCII_LEVELS,
    HEATS,
    LEVELS,
    Line,
    bar,
    columns,
    heat,
    histogram,
    hottest,
)
from dld_tui.widgets.lists.table_view import bar_ramp
from dld_tui.widgets.operators.styles import layer_style
from dld_tui.widgets.report.summary import digits
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.timeline.timescale import time_text

if TYPE_CHECKING:
    from dld_tui.core.llm.figures import GenerationFigures
    from dld_tui.core.report.pass_times import CostTimes, PassTimes

_LEAST_ROWS = 5
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Bits of a Braille cell by row and column."""


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
        room = max(width - label - self._values - self._notes - 4, 3)
        return [
            (fit(row.label, label, keep="middle") + " ", ""),
            (bar(row.share, room, bar_ramp()), row.style),
            (" " + row.value.rjust(self._values), row.style),
            (" " + row.note.rjust(self._notes), "dim"),
        ]


def chart_rows(groups: Sequence[Group], percent: bool) -> list[ChartRow]:
    """Return the bars of groups, in milliseconds or in percent."""
    longest = max((group.time_ms for group in groups), default=0.0)
    hot = hottest(group.time_ms for group in groups)
    return [
        ChartRow(
            visible(group.key),
            _value(group, percent),
            group.time_ms / longest if longest > 0 else 0.0,
            HEATS[heat(group.time_ms, hot)],
            _times(group.count),
            group.key,
        )
        for group in groups
    ]


def precision_rows(
    layers: Sequence[Layer], percent: bool, by_pass: PassTimes | CostTimes | None = None
) -> list[ChartRow]:
    """Return a bar for each layer type and, below it, one for each of its precisions.

    Args:
        layers: The layers.
        percent: Percentages instead of milliseconds.
        by_pass: What they cost by pass; None when only their medians are known.
    """
    costs = priced(layers)
    types = group_layers(costs, "type", by_pass)
    longest = max((group.time_ms for group in types), default=0.0)
    total = whole_ms(costs, "type", by_pass)
    rows = []
    for kind, bars in zip(types, chart_rows(types, percent), strict=True):
        rows.append(bars)
        inside = [layer for layer in costs if layer.type == kind.key]
        for group in group_layers(inside, "precision", by_pass):
            share = 100 * group.time_ms / total if total > 0 else 0.0
            rows.append(
                ChartRow(
                    f"  {short_precision(group.key)}",
                    f"{share:.1f} %" if percent else f"{group.time_ms:,.3f} ms",
                    group.time_ms / longest if longest > 0 else 0.0,
                    precision_style(group.key),
                    _times(group.count),
                    kind.key,
                )
            )
    return rows


def distribution_lines(values: Sequence[float], width: int, rows: int) -> list[Line]:
    """Return how often each latency occurred, in milliseconds, with marks at the percentiles."""
    shape = histogram(values, max(width - 8, 1)) if width >= 24 else None
    if shape is None or shape.high <= shape.low:
        return [[("Too few different latencies for a distribution.", "dim")]]
    plain = glyphs.current().name == "ascii"
    counts = [float(count) if count else None for count in shape.counts]
    most = max(shape.counts)
    height = max(rows - 4, _LEAST_ROWS)
    chart = columns(counts, height, ramp=ASCII_LEVELS if plain else LEVELS)
    lines: list[Line] = []
    for number, text in enumerate(chart):
        label = f"{most:,}" if number == 0 else "1" if number == height - 1 else ""
        lines.append([(f"{label:>6} ", "dim"), (text, "bar")])
    ordered = sorted(values)
    marks = [" "] * len(shape.counts)
    figures = []
    for name, percent in (("median", 50), ("p90", 90), ("p99", 99)):
        at = percentile(ordered, percent)
        figures.append(f"{name} {at:,.{digits(at)}f}")
        if at <= shape.high:
            marks[shape.bin_of(at)] = name[0] if percent == 50 else "9"
    up = glyphs.current().up
    places = digits(shape.high)
    low, high = f"{shape.low:,.{places}f}", f"{shape.high:,.{places}f}"
    ends = low + " " * max(len(shape.counts) - len(low) - len(high), 1) + high
    pointers = "".join(up if mark != " " else " " for mark in marks)
    lines.append([(" " * 7, ""), (pointers, "accent")])
    lines.append([(" " * 7 + ends, "dim")])
    above = f"  {shape.above:,} above" if shape.above else ""
    lines.append([(f" {up} ", "accent"), ("  ".join(figures) + f" ms{above}", "")])
    return lines


def memory_lines(layers: Sequence[Layer], width: int, rows: int) -> list[Line]:
    """Return a dot a layer, size of its outputs against what it costs, both logarithmic."""
    points = [
        (math.log10(size), math.log10(layer.time_ms), layer)
        for layer in priced(layers)
        if (size := output_bytes(layer)) and layer.time_ms
    ]
    unknown = len(layers) - len(points)
    if len(points) < 2 or width < 30:
        return [[("The sizes of too few layers' outputs are known.", "dim")]]
    cells, height = width - 10, max(rows - 3, _LEAST_ROWS)
    x_low, x_high = _range([x for x, _, _ in points])
    y_low, y_high = _range([y for _, y, _ in points])
    grid: dict[tuple[int, int], _Cell] = {}
    for x, y, layer in points:
        across = round((x - x_low) / (x_high - x_low) * (2 * cells - 1))
        up = round((y - y_low) / (y_high - y_low) * (4 * height - 1))
        down = 4 * height - 1 - up
        cell = grid.setdefault((down // 4, across // 2), _Cell())
        cell.add(_DOTS[down % 4][across % 2], layer)
    lines: list[Line] = []
    for row in range(height):
        label = {0: y_high, height - 1: y_low}.get(row)
        text = "" if label is None else time_text(1000 * 10**label)
        line: Line = [(f"{text:>9} ", "dim")]
        lines.append(line + [_dot(grid.get((row, column))) for column in range(cells)])
    low, high = fmt.size(round(10**x_low)), fmt.size(round(10**x_high))
    gap = " " * max(cells - len(low) - len(high), 1)
    lines.append([(" " * 10 + low + gap + high, "dim")])
    rest = f"; of {unknown:,} the size or time is not known" if unknown else ""
    lines.append([(f" {fmt.plural(len(points), 'layer')} by size of their outputs{rest}", "dim")])
    return lines


def context_lines(figures: Sequence[GenerationFigures], width: int, rows: int) -> list[Line]:
    """Return what a token takes over the length of the context, of the smallest batch."""
    batch = min((one.batch for one in figures), default=0)
    steps = [
        (one.prompt + at + 1, ms)
        for one in figures if one.batch == batch
        for at, ms in enumerate(one.step_ms)
    ]  # fmt: skip
    cells, height = width - 10, max(rows - 3, _LEAST_ROWS)
    if len(steps) < 2 or cells < 10:
        return [[("Too few tokens for a chart.", "dim")]]
    first, last = min(steps)[0], max(steps)[0]
    columns_of: dict[int, list[float]] = {}
    for context, ms in steps:
        at = (context - first) * (cells - 1) // max(1, last - first)
        columns_of.setdefault(at, []).append(ms)
    shown = [median(columns_of[at]) if at in columns_of else None for at in range(cells)]
    most = max(ms for ms in shown if ms is not None)
    plain = glyphs.current().name == "ascii"
    lines: list[Line] = []
    for row, text in enumerate(columns(shown, height, ramp=ASCII_LEVELS if plain else LEVELS)):
        label = time_text(1000 * most) if row == 0 else "0" if row == height - 1 else ""
        lines.append([(f"{label:>9} ", "dim"), (text, "bar")])
    low, high = f"{first:,}", f"{last:,}"
    gap = " " * max(cells - len(low) - len(high), 1)
    lines.append([(" " * 10 + low + gap + high, "dim")])
    lines.append([(f" time a token by tokens seen, batch {batch}", "dim")])
    return lines


class _Cell:
    def __init__(self) -> None:
        self.bits = 0
        self.layer: Layer | None = None
        """The costliest one in the cell gives its colour."""

    def add(self, bit: int, layer: Layer) -> None:
        self.bits |= bit
        if self.layer is None or (layer.time_ms or 0.0) > (self.layer.time_ms or 0.0):
            self.layer = layer


def _dot(cell: _Cell | None) -> tuple[str, str]:
    if cell is None or cell.layer is None:
        return " ", ""
    char = "*" if glyphs.current().name == "ascii" else chr(0x2800 + cell.bits)
    return char, layer_style(cell.layer.type)


def _range(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _value(group: Group, percent: bool) -> str:
    return f"{group.percent:.1f} %" if percent else f"{group.time_ms:,.3f} ms"


def _times(count: int) -> str:
    return f"×{count}" if glyphs.current().name == "unicode" else f"x{count}"


@dataclass(frozen=True)
class ChartData:
    """What a chart is drawn of, and how large."""

    layers: Sequence[Layer]
    latencies: Sequence[float]
    """Of whole runs in milliseconds, in order; empty when they are not known."""
    width: int
    height: int
    """In cells."""
    generation: Sequence[GenerationFigures] = ()
    """Of prefill and decode; empty where the report is of no decoder."""


@dataclass(frozen=True)
class Chart:
    """A chart that is drawn as lines; other packages add some as ``dld_tui.charts``."""

    id: str
    title: str
    lines: Callable[[ChartData], Sequence[Line]]
    """A line is a list of pieces, ``(text, style)``; styles are those of the theme, such as
    ``good``, ``dim`` and ``bar``."""


BAR_CHARTS = {"type": "Latency per type", "precision": "Precision per type"}
"""Titles of the charts whose bars open a layer type."""
LINE_CHARTS = (
    Chart(
        "distribution",
        "Latency distribution",
        lambda data: distribution_lines(data.latencies, data.width, data.height),
    ),
    Chart(
        "memory",
        "Time against output size",
        lambda data: memory_lines(data.layers, data.width, data.height),
    ),
)

CONTEXT_CHART = Chart(
    "context",
    "Time a token over context",
    lambda data: context_lines(data.generation, data.width, data.height),
)
"""Of reports on decoders alone."""


def line_charts() -> dict[str, Chart]:
    """Return the charts that are drawn as lines by id, those of other packages last."""
    found = {chart.id: chart for chart in LINE_CHARTS}
    for one in plugins("charts", Chart):
        chart = one.value or _unavailable(one.name, one.problem)
        found.setdefault(f"{one.package}:{one.name}", chart)
    return found


def _unavailable(name: str, problem: str) -> Chart:
    return Chart(name, visible(name), lambda _: [[(visible(f"unavailable: {problem}"), "warn")]])


def drawn(chart: Chart, data: ChartData) -> Sequence[Line]:
    """Return the lines of a chart, or why it cannot be drawn."""
    try:
        return chart.lines(data)
    # The seam to code of others, which may raise anything.
    except Exception as error:  # noqa: BLE001
        return [[(visible(f"the chart failed: {type(error).__name__}: {error}"), "warn")]]
