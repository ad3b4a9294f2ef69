"""The panes of a report that are lines of text: summary, charts, environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message

from dld_tui.core.report.gpu_summary import GpuSummary
from dld_tui.core.report.model import Report
from dld_tui.core.report.records import Group, Layer
from dld_tui.core.text import fit
from dld_tui.widgets import glyphs
from dld_tui.widgets.bars import ASCII_LEVELS, LEVELS, columns, spread
from dld_tui.widgets.blocks import Line
from dld_tui.widgets.environment_lines import environment_lines
from dld_tui.widgets.frame import Frame
from dld_tui.widgets.line_source import ListSource, Piece
from dld_tui.widgets.line_view import LineView
from dld_tui.widgets.report_charts import (
    CHARTS,
    TITLES,
    BarRows,
    ChartRow,
    chart_rows,
    distribution_lines,
    memory_lines,
    precision_rows,
)
from dld_tui.widgets.report_summary import Advice, digits, summary_lines
from dld_tui.widgets.styled import Rows

if TYPE_CHECKING:
    from dld_tui.core.report.pass_times import CostTimes, PassTimes

_LEAST_FOR_BOTH = 10
"""Rows from which two charts are shown."""


class SummaryView(Frame, LineView):
    """What was measured, the median, the costliest layers, what to look at first."""

    HELP = (
        "The latency loop's figures (profiling off), the costliest layers, and what to look at "
        "first. Profiling slows a run down: layers are measured in passes of their own."
    )

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, gutter=False, classes="frame")
        self.report: Report | None = None
        self.advice: Sequence[Advice] = ()
        self.gpu: GpuSummary | None = None

    def set_report(
        self, report: Report, advice: Sequence[Advice], gpu: GpuSummary | None = None
    ) -> None:
        """Show a report's summary; `gpu` is of its median pass."""
        self.report, self.advice, self.gpu = report, advice, gpu
        self.frame("Summary")
        self._draw()

    def on_resize(self) -> None:
        """Lay the blocks out for the new width."""
        self._draw_frame()
        self._draw()
        super().on_resize()

    def notify_style_update(self) -> None:
        """Draw again when the glyph set changes with the theme."""
        super().notify_style_update()
        if self.is_mounted:
            self._draw()

    def _draw(self) -> None:
        if self.report is not None and self.size.width > 4:
            lines = summary_lines(self.report, self.advice, self.size.width - 2, self.gpu)
            self.set_lines(ListSource([[(" ", ""), *line] for line in lines]), keep=False)


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


class BarChart(LineView):
    """Bars that can be walked through, or a chart drawn as lines."""

    HELP = (
        "`c` shows the next chart: what each layer type costs, its precisions, the distribution of "
        "the latencies, time against the size of outputs. `%` switches between milliseconds and "
        "percent; Enter shows the layers of the type."
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


class ChartPane(Frame, Vertical):
    """The charts of a report, one at a time, and latency over the passes."""

    @dataclass
    class TypeChosen(Message):
        """Enter on the bar of a layer type."""

        type: str

    CHARTS: ClassVar[tuple[str, ...]] = CHARTS
    TITLES: ClassVar[Mapping[str, str]] = TITLES

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, classes="frame")
        self.percent = False
        self.chart = self.CHARTS[0]
        self._groups: Sequence[Group] = ()
        self._layers: Sequence[Layer] = ()
        self._latencies: Sequence[float] = ()
        self._rows: Sequence[ChartRow] = ()
        self._by_pass: PassTimes | CostTimes | None = None

    def compose(self) -> ComposeResult:
        """Lay out the two charts."""
        yield BarChart(empty="No layer was measured in this report.", id="type-chart")
        yield PassesChart()

    def set_report(self, report: Report, types: Sequence[Group]) -> None:
        """Show the charts of a report; `types` are its layers grouped by type."""
        values = report.latencies
        title = "latency over the inferences, ms"
        if not values:
            values = tuple(one.duration_us / 1000 for one in report.passes)
            title = "latency over the profiled passes, ms"
        self._by_pass = report.cost_by_pass
        self.set_layers(report.layers, types, values, title)

    def set_layers(
        self, layers: Sequence[Layer], types: Sequence[Group], latencies: Sequence[float],
        title: str,
    ) -> None:  # fmt: skip
        """Show the charts of layers, and latencies of whole runs in milliseconds, in order.

        Args:
            layers: The layers.
            types: The layers grouped by type.
            latencies: Of the runs; empty when they are not known.
            title: What the latencies are.
        """
        self._groups, self._layers = types, layers
        self._latencies = latencies
        self.query_one(PassesChart).set_values(latencies, title)
        self.on_resize()

    def toggle_unit(self) -> None:
        """Switch between milliseconds and percent."""
        self.percent = not self.percent
        self._draw()

    def next_chart(self) -> None:
        """Show the next chart."""
        order = self.CHARTS
        self.chart = order[(order.index(self.chart) + 1) % len(order)]
        self._draw()
        self.query_one(BarChart).cursor = 0

    def on_resize(self) -> None:
        """Draw for the new size; latency over the passes only where there is room for both."""
        self._draw_frame()
        room = self.size.height >= _LEAST_FOR_BOTH
        self.query_one(PassesChart).display = room and len(self._latencies) > 1
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        view = self.query_one(BarChart)
        width, height = max(view.size.width - 2, 20), view.size.height
        self._rows = ()
        if self.chart in ("type", "precision"):
            self._rows = (
                chart_rows(self._groups, self.percent)
                if self.chart == "type"
                else precision_rows(self._layers, self.percent, self._by_pass)
            )
            view.set_lines(BarRows(self._rows))
        else:
            view.set_lines(ListSource(self.chart_lines(width, height)))
        keys = "c next chart  % ms or percent" if self._rows else "c next chart"
        self.frame(self.TITLES[self.chart], keys)

    def chart_lines(self, width: int, height: int) -> list[Line]:
        """Return a chart that has no bars to walk through."""
        if self.chart == "distribution":
            return distribution_lines(self._latencies, width, height)
        return memory_lines(self._layers, width, height)

    def on_line_view_activated(self, event: LineView.Activated) -> None:
        """Say which type was chosen."""
        event.stop()
        if event.index < len(self._rows):
            self.post_message(self.TypeChosen(self._rows[event.index].key))

    def on_line_view_cursor_moved(self, event: events.Event) -> None:
        """Keep the bars' cursor to this pane."""
        event.stop()


class EnvironmentView(Frame, LineView):
    """Settings, environment, model and remarks of a run."""

    HELP = "What was asked for, and what the machine was like: versions, clocks, power mode."

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(
            id=id,
            empty="The file says nothing of its settings and environment.",
            classes="frame",
        )

    def set_report(self, report: Report, model_problem: str | None) -> None:
        """Show what a report says about its run."""
        self.frame("Environment and settings")
        self.set_lines(ListSource(environment_lines(report, model_problem)), keep=False)
