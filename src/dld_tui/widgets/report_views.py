"""The panes of a report that are lines of text: summary, charts, environment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message

from dld_tui.core import fmt
from dld_tui.core.report.model import Report
from dld_tui.core.report.records import Group
from dld_tui.core.text import fit, visible
from dld_tui.core.types import JSON
from dld_tui.widgets import glyphs
from dld_tui.widgets.bars import ASCII_LEVELS, LEVELS, bar, columns, spread
from dld_tui.widgets.blocks import Line
from dld_tui.widgets.frame import Frame
from dld_tui.widgets.heat import HEATS, heat, hottest
from dld_tui.widgets.layer_sources import bar_ramp
from dld_tui.widgets.line_source import ListSource, Piece
from dld_tui.widgets.line_view import LineView
from dld_tui.widgets.report_summary import Advice, digits, summary_lines
from dld_tui.widgets.styled import Rows


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

    def set_report(self, report: Report, advice: Sequence[Advice]) -> None:
        """Show a report's summary."""
        self.report, self.advice = report, advice
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
            lines = summary_lines(self.report, self.advice, self.size.width - 2)
            self.set_lines(ListSource([[(" ", ""), *line] for line in lines]), keep=False)


@dataclass(frozen=True)
class ChartRow:
    """One bar."""

    label: str
    value: str
    share: float
    """Of the longest bar, 0 to 1."""
    style: str
    note: str = ""


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
        return self.rows[index].label

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
            f"{group.percent:.1f} %" if percent else f"{group.time_ms:,.3f} ms",
            group.time_ms / longest if longest > 0 else 0.0,
            HEATS[heat(group.time_ms, hot)],
            f"×{group.count}" if glyphs.current().name == "unicode" else f"x{group.count}",
        )
        for group in groups
    ]


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
    """Bars that can be walked through."""

    HELP = (
        "Average latency of each layer type: the sum of its layers' times in a pass. `%` switches "
        "between milliseconds and percent; Enter shows the layers of the type."
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
        self.display = len(values) > 1
        self.refresh(layout=True)

    def content(self, width: int) -> Sequence[Sequence[Piece]]:
        """Return the chart for a width in cells."""
        lines = passes_lines(self.values, width - 2, self.ROWS - 1)
        return [[(" " + self.title, "dim")], *([(" ", ""), *line] for line in lines)]


class ChartPane(Frame, Vertical):
    """Average latency per layer type, and latency over the passes."""

    @dataclass
    class TypeChosen(Message):
        """Enter on the bar of a layer type."""

        type: str

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, classes="frame")
        self.percent = False
        self._groups: Sequence[Group] = ()

    def compose(self) -> ComposeResult:
        """Lay out the two charts."""
        yield BarChart(empty="No layer was measured in this report.", id="type-chart")
        yield PassesChart()

    def set_report(self, report: Report, types: Sequence[Group]) -> None:
        """Show the charts of a report; `types` are its layers grouped by type."""
        self._groups = types
        values = report.latencies
        title = "latency over the inferences, ms"
        if not values:
            values = tuple(one.duration_us / 1000 for one in report.passes)
            title = "latency over the profiled passes, ms"
        self.query_one(PassesChart).set_values(values, title)
        self._draw()

    def toggle_unit(self) -> None:
        """Switch between milliseconds and percent."""
        self.percent = not self.percent
        self._draw()

    def _draw(self) -> None:
        rows = chart_rows(self._groups, self.percent)
        self.query_one(BarChart).set_lines(BarRows(rows))
        self.frame("Latency per type", "% ms or percent")

    def on_line_view_activated(self, event: LineView.Activated) -> None:
        """Say which type was chosen."""
        event.stop()
        if event.index < len(self._groups):
            self.post_message(self.TypeChosen(self._groups[event.index].key))

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


def environment_lines(report: Report, model_problem: str | None) -> list[Line]:
    """Return settings, environment, model and notes as lines of name and value."""
    lines: list[Line] = []
    shown = glyphs.current()
    if report.notes:
        lines.append([("Notes", "strong")])
        for note in report.notes:
            warning = note.level == "warning"
            mark = shown.warning if warning else shown.info
            lines.append([(f" {mark} ", "warn" if warning else "info"), (visible(note.text), "")])
        lines.append([])
    if model_problem is not None:
        text = f" {shown.warning} {model_problem}; the figures are kept, links may not fit"
        lines += [[(text, "warn")], []]
    for title, facts in (
        ("Environment", report.environment),
        ("Settings", report.settings),
        ("Model", report.model),
    ):
        rows = list(flat(facts))
        if not rows:
            continue
        width = min(max(len(name) for name, _ in rows), 28)
        lines.append([(title, "strong")])
        for name, value in rows:
            lines.append([(" " + fit(name, width, keep="end") + "  ", "dim"), (value, "")])
        lines.append([])
    return lines[:-1]


def flat(facts: dict[str, JSON], prefix: str = "") -> list[tuple[str, str]]:
    """Return nested facts as (name, text) with visible text; lists on one line."""
    rows: list[tuple[str, str]] = []
    for name, value in facts.items():
        label = f"{prefix}{visible(str(name))}"
        if isinstance(value, dict) and value:
            rows += flat(value, f"{label}.")
        else:
            rows.append((label, _text(value)))
    return rows


def _text(value: JSON) -> str:
    if value is None or value == {}:
        return fmt.UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(_text(one) for one in value) or fmt.UNKNOWN
    return visible(str(value))
