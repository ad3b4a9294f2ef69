"""The panes of a report besides the summary: charts, environment, one layer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.notes import Note, NoteKind
from dld_tui.core.reading.first_lines import doubts, latency_title
from dld_tui.core.report.generation import GenerationFigures, generation_of
from dld_tui.core.report.groups import are_launches, is_launched
from dld_tui.core.report.layer_table import (
    all_nodes,
    shapes_text,
    short_precision,
    short_provider,
)
from dld_tui.core.report.measured_figures import measured_figures, used_roofs
from dld_tui.core.report.records import Group, Layer
from dld_tui.core.report.report import Report
from dld_tui.core.statistics import LatencySummary
from dld_tui.core.tables.table import MEAN
from dld_tui.core.text import cell_width, clip, fit, visible
from dld_tui.core.text.names import cut_names
from dld_tui.core.types import JSON, precision_style
from dld_tui.widgets.charts.bars import (
    ASCII_LEVELS,
    LEVELS,
    Block,
    Line,
    block,
    columns,
    digits,
    histogram,
    spread,
)
from dld_tui.widgets.charts.plots import ChartView
from dld_tui.widgets.charts.report_charts import (
    BAR_CHARTS,
    CONTEXT_CHART,
    LAUNCHES,
    BarRows,
    Chart,
    ChartData,
    ChartRow,
    Run,
    chart_rows,
    drawn,
    line_charts,
    precision_rows,
)
from dld_tui.widgets.lists.line_view import LaidOutView, LineView
from dld_tui.widgets.lists.styled import Piece, Rows, layer_style, wrap
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.frame import Framed
from dld_tui.widgets.shell.progress import big_digits
from dld_tui.widgets.timeline.cells import time_text

if TYPE_CHECKING:
    from dld_tui.core.machine.peaks import Peaks

_HISTOGRAM_CELLS = 30


def when(created: str) -> str:
    """Return an ISO time as people write it, in the zone that it was taken in."""
    try:
        return datetime.fromisoformat(created.replace("Z", "+00:00")).strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return visible(created)


def decoder_blocks(figures: GenerationFigures) -> list[Block]:
    """Return the two figures of a decoder, each three lines high."""
    of = f"prompt {figures.prompt:,}, batch {figures.batch:,}"
    each = f"{fmt.three_digits(figures.token_ms)} ms each"
    return [
        figure_block(figures.first_token_ms, "to the first token", of),
        _big_block(figures.rate_text, "tokens/s", "after it", each),
    ]


def figure_block(value: float, title: str, note: str) -> Block:
    """Return the figure people came for, in milliseconds, with what it is at its right."""
    return _big_block(fmt.three_digits(value), "ms", title, note)


def _big_block(text: str, unit: str, title: str, note: str) -> Block:
    big = big_digits(text.replace(",", "")) if glyphs.current().name == "unicode" else None
    side: list[Line] = [[(unit, "accent strong")], [(title, "strong")], [(note, "dim")]]
    if big is None:
        return block([[(f"{text} {unit}", "accent strong"), (f" {title}", "strong")], side[2]])
    return block([[(row + "  ", "accent strong"), *side[at]] for at, row in enumerate(big)])


def distribution_block(
    values: Sequence[float], median: float | None, cells: int = _HISTOGRAM_CELLS, rows: int = 3
) -> Block:
    """Return the distribution of latencies as a small histogram, their median marked."""
    if len(values) < 2:
        return block([])
    shape = histogram(values, cells)
    if shape is None or shape.high <= shape.low:
        return block([])
    plain = glyphs.current().name == "ascii"
    counts = [float(count) if count else None for count in shape.counts]
    drawn_rows = columns(counts, rows, ramp=ASCII_LEVELS if plain else LEVELS)
    above = f" +{shape.above:,} above" if shape.above else ""
    low, high = fmt.three_digits(shape.low), f"{fmt.three_digits(shape.high)}{above}"
    scale = low + " " * max(cells - len(low) - len(high), 1) + high
    lines: list[Line] = [
        _marked(row, shape.bin_of(median) if median else None) for row in drawn_rows
    ]
    return block([*lines, [(scale, "dim")]])


def _marked(row: str, at: int | None) -> Line:
    """Return a row of the histogram with the median's column in the colour of the median."""
    if at is None:
        return [(row, "bar")]
    return [(row[:at], "bar"), (row[at : at + 1], "accent"), (row[at + 1 :], "bar")]


def advice_lines(advice: Sequence[Note], width: int) -> list[Line]:
    """Return what to look at first, wrapped to `width` cells."""
    if not advice:
        return []
    shown = glyphs.current()
    lines: list[Line] = []
    for item in advice:
        warning = item.kind is NoteKind.WARNING
        mark, style = (shown.warning, "warn") if warning else (shown.info, "info")
        first = True
        for part in wrap(item.text, max(width - 3, 10)):
            lines.append([(f" {mark} " if first else "   ", style), (part, "")])
            first = False
    return lines


_DEVICE = ("gpu", "jetson")
"""What the names of values of a GPU and its clocks begin with."""
_AFTER = "_after"
"""The end of the name of a state that was taken again after the run."""
_BESIDE = (_AFTER, "_lowest", "_highest")
"""What is shown beside the value that it belongs to."""
_UNITS = (("_mhz", "MHz"), ("_w", "W"), ("_c", "°C"))
_NAME_CELLS = 28


def environment_lines(
    report: Report,
    model_problem: str | None,
    notes: Sequence[Note] = (),
    width: int = 200,
) -> list[Line]:
    """Return notes, how it was measured, settings, environment and model.

    Args:
        report: The report.
        model_problem: What is wrong with its model; None when nothing is.
        notes: What speaks against the figures, or explains them.
        width: Cells, for notes.
    """
    problem = f"{model_problem}; figures are kept, links may be wrong"
    changed = [problem] if model_problem is not None else []
    spoken = [*changed, *(text for sentences in doubts(report) for text in sentences)]
    advice = advice_lines([*(Note(NoteKind.WARNING, text) for text in spoken), *notes], width)
    lines: list[Line] = [[("Notes", "strong")], *advice, []] if advice else []
    rest = {key: value for key, value in report.environment.items() if not _is_device(key)}
    figures = (
        (figure.name, figure.text, figure.is_doubtful) for figure in measured_figures(report)
    )
    sections: tuple[tuple[str, Iterable[tuple[str, str, str]]], ...] = (
        ("Run", _run_rows(report)),
        ("GPU, clocks and power", device_rows(report.environment)),
        ("Also measured", ((name, text, "warn" if bad else "") for name, text, bad in figures)),
        ("Environment", ((_plain(name), text, "") for name, text in flat(rest))),
        ("Settings", ((name, text, "") for name, text in flat(report.settings))),
        ("Model", ((name, text, "") for name, text in flat(report.model))),
    )
    for title, section in sections:
        rows = [row for row in section if row[1]]
        cells = min(max((len(name) for name, *_ in rows), default=0), _NAME_CELLS)
        lines += [[(title, "strong")]] if rows else []
        names = cut_names([name for name, *_ in rows], cells)
        for name, (_, text, style) in zip(names, rows, strict=True):
            lines.append([(f" {fit(name, cells)}  ", "dim"), (text, style)])
        lines += [[]] if rows else []
    return lines[:-1]


def _run_rows(report: Report) -> Iterator[tuple[str, str, str]]:
    """Yield what was measured with what."""
    yield "model", visible(report.network), ""
    yield "measured by", visible(report.backend), ""
    yield "on", when(report.created), ""


def device_rows(values: Mapping[str, JSON]) -> list[tuple[str, str, str]]:
    """Return (name, value with its unit, style) of the values of a GPU and its clocks.

    The range of a clock that moved is shown beside its median; and what was taken again after the
    run beside the first value when it differs, in older reports.
    """
    rows = []
    for key, value in values.items():
        beside = next((key[: -len(end)] for end in _BESIDE if key.endswith(end)), None)
        if not _is_device(key) or beside in values:
            continue
        text = _measured(key, value)
        lowest, highest = values.get(f"{key}_lowest"), values.get(f"{key}_highest")
        if lowest is not None and highest is not None:
            text += f" ({_measured(key, lowest)} to {_measured(key, highest)})"
        after = values.get(f"{key}{_AFTER}")
        later = text if after is None else _measured(key, after)
        if later != text:
            text = f"{text}, after the run {later}"
        warning = _is_warning(key, value) or (after is not None and _is_warning(key, after))
        rows.append((_device_name(key), text, "warn" if warning else ""))
    return rows


def _is_device(key: str) -> bool:
    return key in _DEVICE or key.startswith(tuple(f"{word}_" for word in _DEVICE))


def _device_name(key: str) -> str:
    name = key.removeprefix("gpu_")
    for ending, _ in (*_UNITS, ("_bytes", "")):
        name = name.removesuffix(ending)
    return visible(name.replace("_", " "))


def _plain(name: str) -> str:
    return name.removesuffix("_bytes").replace("_", " ").replace("mhz", "MHz")


def _measured(key: str, value: JSON) -> str:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if key.endswith("_bytes"):
            return fmt.size(int(value))
        unit = next((unit for ending, unit in _UNITS if key.endswith(ending)), "")
        return f"{value:,.4g} {unit}".rstrip() if value < 1e4 else f"{value:,.0f} {unit}".rstrip()
    return _text(value)


def _is_warning(key: str, value: JSON) -> bool:
    """Return whether a value makes figures hard to compare: throttling, clocks that float."""
    if "throttling" in key:
        return value not in (None, "none", "", False, [])
    return key.endswith("clocks_locked") and value is False


def flat(values: Mapping[str, JSON], prefix: str = "") -> list[tuple[str, str]]:
    """Return nested values as (name, text) with visible text; lists on one line."""
    rows: list[tuple[str, str]] = []
    for name, value in values.items():
        label = f"{prefix}{visible(str(name))}"
        if isinstance(value, dict) and value:
            rows += flat(value, f"{label}.")
        else:
            is_size = str(name).endswith("_bytes") and isinstance(value, int)
            rows.append((label, _measured(name, value) if is_size else _text(value)))
    return rows


def _text(value: JSON) -> str:
    if value is None or value == {}:
        return fmt.UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(_text(item) for item in value) or fmt.UNKNOWN
    return visible(str(value))


_LEAST_FOR_BOTH = 10
"""Rows from which two charts are shown."""


def passes_lines(values: Sequence[float], width: int, rows: int) -> list[Line]:
    """Return latencies in order of the passes as a column chart, with its scale at the right."""
    if not values or width < 16:
        return []
    plain = glyphs.current().name == "ascii"
    low, high = min(values), max(values)
    places = digits(high)
    scale = [f"{high:,.{places}f}", *[""] * (rows - 2), f"{low:,.{places}f}"][:rows]
    room = width - max(len(text) for text in scale) - 2
    chart = columns(spread(values, room), rows, low=low, ramp=ASCII_LEVELS if plain else LEVELS)
    lines: list[Line] = []
    for text, label in zip(chart, scale, strict=True):
        lines.append([(fit(text, room), "bar"), (" " + label, "dim")])
    return lines


class BarChart(ChartView):
    """Bars that can be walked through, or a chart between axes with a cursor on what it shows."""

    HELP = (
        "{report.chart} shows the next chart: time by layer type, precisions, latency over the "
        "passes and its distribution, time against output size, roofline. {report.unit} switches "
        "between milliseconds and percent; {list.activate} shows the layers of the type. In a "
        "scatter chart, {list.right} and {list.left} go to the next and previous dot, and "
        "{list.activate} shows its layer or pass."
    )


class PassesChart(Rows):
    """Latency over the passes, with the least and the largest value at the right."""

    ROWS: ClassVar[int] = 4

    def __init__(self) -> None:
        super().__init__()
        self.values: Sequence[float] = ()
        self.title = ""

    def set_values(self, values: Sequence[float], title: str) -> None:
        """Show latencies in milliseconds, in order."""
        self.values, self.title = values, title
        self.refresh(layout=True)

    def content(self, width: int) -> Sequence[Sequence[Piece]]:
        """Return the chart for a width in cells."""
        lines = passes_lines(self.values, width - 2, self.ROWS - 1)
        return [[(" " + self.title, "dim")], *([(" ", ""), *line] for line in lines)]


class ChartPane(Framed, Vertical):
    """The charts of a report, one at a time, and latency over the passes."""

    @dataclass
    class TypeChosen(Message):
        """Enter on the bar of a layer type."""

        type: str

    @dataclass
    class LayerChosen(Message):
        """Enter on the dot of a layer."""

        index: int

    @dataclass
    class PassChosen(Message):
        """Enter on a run that is a pass of the report."""

        index: int

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, classes="frame")
        self.percent = False
        self.charts = self.line_charts()
        self.titles = BAR_CHARTS | {name: chart.title for name, chart in self.charts.items()}
        """Of the charts by id, in their order."""
        self.chart = next(iter(self.titles))
        self._groups: Sequence[Group] = ()
        self._layers: Sequence[Layer] = ()
        self._latencies: Sequence[float] = ()
        self._latency: LatencySummary | None = None
        self._roofs: Mapping[str, Peaks] = {}
        self._rows: Sequence[ChartRow] = ()
        self._passes: Sequence[int] = ()
        self._generation: Sequence[GenerationFigures] = ()

    def line_charts(self) -> dict[str, Chart]:
        """Return the charts without bars by id."""
        return line_charts()

    def compose(self) -> ComposeResult:
        """Lay out the two charts."""
        yield BarChart(empty="No layer was measured in this report.", id="type-chart")
        yield PassesChart()

    def set_report(self, report: Report, types: Sequence[Group]) -> None:
        """Show the charts of a report; `types` are its layers grouped by type."""
        self._passes = tuple(run.index for run in report.latency_passes)
        self._generation, self._roofs = generation_of(report), used_roofs(report)
        title = f"{latency_title(report)}, ms"
        self.titles |= LAUNCHES if are_launches(report.layers) else BAR_CHARTS
        if self._generation:
            self.charts[CONTEXT_CHART.id] = CONTEXT_CHART
            self.titles[CONTEXT_CHART.id] = CONTEXT_CHART.title
        self.set_layers(report.layers, types, report.latency_samples, title, report.latency)

    def set_layers(
        self, layers: Sequence[Layer], types: Sequence[Group], latencies: Sequence[float],
        title: str, latency: LatencySummary | None = None,
    ) -> None:  # fmt: skip
        """Show the charts of layers, and latencies of whole runs in milliseconds, in order.

        Args:
            layers: The layers.
            types: The layers grouped by type.
            latencies: Of the runs; empty when they are not known.
            title: What the latencies are.
            latency: Their summary.
        """
        self._latency = latency
        self._groups, self._layers = types, layers
        self._latencies = latencies
        self.query_one(PassesChart).set_values(latencies, title)
        self.on_resize()
        self._draw()

    def toggle_unit(self) -> None:
        """Switch between milliseconds and percent."""
        self.percent = not self.percent
        self._draw()

    def next_chart(self) -> None:
        """Show the next chart."""
        order = [*self.titles]
        self.chart = order[(order.index(self.chart) + 1) % len(order)]
        self._draw()
        self.query_one(BarChart).cursor = 0

    def on_resize(self) -> None:
        """Draw for the new size; latency over the passes only where there is room for both."""
        room = self.size.height >= _LEAST_FOR_BOTH
        self.query_one(PassesChart).display = room and len(self._latencies) > 1

    def _draw(self) -> None:
        view = self.query_one(BarChart)
        self._rows = ()
        if self.chart in ("type", "precision"):
            self._rows = (
                chart_rows(self._groups, self.percent)
                if self.chart == "type"
                else precision_rows(self._layers, self.percent)
            )
            view.show_bars(BarRows(self._rows))
        else:
            chart = self.charts[self.chart]
            view.show_chart(chart.id, lambda width, height: drawn(chart, self.data(width, height)))
        keys = "{report.chart} next chart"
        if self._rows:
            keys += f"  {{report.unit}} {'ms' if self.percent else 'percent'}"
        self.frame.show(self.titles[self.chart], keys)

    def data(self, width: int, height: int) -> ChartData:
        """Return what the charts are drawn of."""
        return ChartData(
            self._layers,
            self._latencies,
            width,
            height,
            self._passes,
            self._generation,
            self._latency,
            self._roofs,
        )

    def on_line_view_activated(self, event: LineView.Activated) -> None:
        """Say which type, layer or pass was chosen."""
        event.stop()
        if isinstance(event.key, Run):
            self.post_message(self.PassChosen(event.key.index))
        elif isinstance(event.key, int):
            self.post_message(self.LayerChosen(event.key))
        elif event.index < len(self._rows):
            self.post_message(self.TypeChosen(self._rows[event.index].key))

    def on_line_view_cursor_moved(self, event: events.Event) -> None:
        """Keep the bars' cursor to this pane."""
        event.stop()


class EnvironmentView(LaidOutView):
    """Notes, how it was measured, settings, environment and model."""

    HELP = (
        "Notes on the figures, settings of the run and the state of the machine: versions, clocks, "
        "power mode."
    )
    _about: tuple[Report, str | None, Sequence[Note]] | None = None

    def set_report(
        self,
        report: Report,
        model_problem: str | None,
        notes: Sequence[Note],
    ) -> None:
        """Show what a report says about its run: see :func:`environment_lines`."""
        self._about = (report, model_problem, notes)
        self.frame.show("Notes, environment and settings")
        self.draw()

    def laid_out(self, width: int) -> Sequence[Line] | None:
        return None if self._about is None else environment_lines(*self._about, width)


def layer_lines(layer: Layer, start_us: float, self_us: float, width: int) -> list[Line]:
    """Return lines about a layer, the most telling first.

    Args:
        layer: The layer.
        start_us: When the span under the cursor began, since the start of the pass.
        self_us: What it took itself.
        width: Cells.
    """
    # Its part is of what layers cost: on a GPU of the kernels, and not of what launches them.
    on_gpu = layer.gpu_time_ms is not None
    time = fmt.milliseconds(layer.gpu_time_ms if on_gpu else layer.time_ms)
    kind_of_time = " GPU" if on_gpu else " launch" if is_launched(layer) else ""
    figures = f"{time} ms{kind_of_time}  {fmt.percent(layer.percent)} %"
    kind = clip(visible(layer.type), 24, keep="middle")
    room = max(width - cell_width(figures) - cell_width(kind) - 8, 8)
    name = clip(visible(layer.name), room, keep="end")
    first: Line = [
        (f" {glyphs.current().cursor} ", "accent"),
        (name, "strong"),
        ("  ", ""),
        (kind, layer_style(layer.type)),
        ("  ", ""),
        (figures, "number"),
    ]
    second: Line = [
        ("   at ", "dim"),
        (time_text(start_us), ""),
        (" for ", "dim"),
        (time_text(self_us), "number"),
        (f"  {'CPU ' if on_gpu else ''}min ", "dim"),
        (fmt.milliseconds(layer.min_ms), ""),
        ("  max ", "dim"),
        (fmt.milliseconds(layer.max_ms), ""),
        ("  runs ", "dim"),
        (MEAN.shown(layer.count), ""),
        ("  ", ""),
        (short_provider(layer.provider), "dim"),
        ("  ", ""),
        (short_precision(layer.precision), precision_style(layer.precision)),
    ]
    nodes = clip(visible(all_nodes(layer)), max(width - 8, 8))
    third: Line = [("   ONNX ", "dim"), (nodes, "link")]
    fourth: Line = [("   in  ", "dim"), (visible(shapes_text(layer.input_dims)) or fmt.UNKNOWN, "")]
    fifth: Line = [("   out ", "dim"), (visible(shapes_text(layer.output_dims)) or fmt.UNKNOWN, "")]
    return [first, second, third, fourth, fifth]
