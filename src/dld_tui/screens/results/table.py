"""Results of activities: a page of sentences over a table, and what opens after a job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Generic

from textual.binding import Binding, BindingType
from textual.widget import Widget

from dld_tui.core import fmt
from dld_tui.core.cost.critical_path import CriticalPath, path_lines, path_table
from dld_tui.core.cost.memory import MemoryPlan, memory_lines, memory_table
from dld_tui.core.machine.health import SelfTest, selftest_lines, step_table
from dld_tui.core.report.start_up import StartUp, node_table, start_up_lines
from dld_tui.core.tables.rendering import csv_of
from dld_tui.core.tables.table import Row, Table
from dld_tui.core.tensorrt.build_routes import RouteSearch, knob_table, search_lines, trial_table
from dld_tui.core.text import visible
from dld_tui.core.types import JSON
from dld_tui.screens.base_pages import ListPage, ListTable
from dld_tui.screens.results.results_page import ALWAYS, Pane, R, ResultsPage
from dld_tui.widgets.charts.plots import Axis, ChartView, Marks, Plot, Spot, draw
from dld_tui.widgets.dialogs.dialogs import Dialog
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.styled import ListSource, Piece, Rows, wrap
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.command_dispatch import bindings_for, hint

_LEAST_TABLE = 10
"""Rows of the screen that the table keeps."""
_MOST = 11
"""Rows of the head, at most."""
_LOW, _LOW_PLOT = 36, 8
"""A screen of fewer rows is low; rows of a chart there."""


@dataclass(frozen=True)
class Paragraph:
    """Some text, which may be foreign."""

    text: str
    style: str = ""
    label: Piece = (" ", "")
    """The label before it; later rows begin below its end."""


class ResultHead(Rows):
    """Paragraphs; the last ones give way to a row that names the key to see them."""

    def __init__(
        self, paragraphs: Sequence[Paragraph] = (), *, keys: str = "", below: int = 0
    ) -> None:
        """Make it.

        Args:
            paragraphs: What is shown.
            keys: How to see what there is no room for.
            below: Rows that something between it and the table takes.
        """
        super().__init__(id="head")
        self._paragraphs = list(paragraphs)
        self._keys, self._below = keys, below
        self._rendered: tuple[tuple[int, int], list[list[Piece]]] | None = None

    def set_paragraphs(self, paragraphs: Sequence[Paragraph]) -> None:
        """Show other text."""
        if list(paragraphs) != self._paragraphs:
            self._paragraphs, self._rendered = list(paragraphs), None
            self.refresh(layout=True)

    def content(self, width: int) -> Sequence[Sequence[Piece]]:
        room = max(4, min(_MOST, self.app.size.height - _LEAST_TABLE - self._below))
        if self._rendered is None or self._rendered[0] != (width, room):
            rows = paragraph_rows(self._paragraphs, width)
            if len(rows) > room:
                rows[room - 1 :] = [[(f" {glyphs.current().ellipsis} {hint(self._keys)}", "dim")]]
            self._rendered = ((width, room), rows)
        return self._rendered[1]


def paragraph_rows(paragraphs: Iterable[Paragraph], width: int) -> list[list[Piece]]:
    """Return paragraphs as rows of a width in cells."""
    rows: list[list[Piece]] = []
    for paragraph in paragraphs:
        label, style = paragraph.label
        for at, text in enumerate(wrap(paragraph.text, max(10, width - len(label) - 1))):
            before = (label, style) if at == 0 else (" " * len(label), "")
            rows.append([before, (text, paragraph.style)])
    return rows


class ParagraphsDialog(Dialog[None]):
    """Shows all paragraphs.

    Args:
        title: What they are about.
        paragraphs: All of them.
    """

    KEYS = "Esc close"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "close", show=False, priority=True)]

    def __init__(self, title: str, paragraphs: Sequence[Paragraph]) -> None:
        super().__init__()
        self.TITLE_TEXT = title
        self._paragraphs = paragraphs

    def body(self) -> Iterable[Widget]:
        rows = paragraph_rows(self._paragraphs, self.text_width - 1)
        view = LineView(ListSource(rows), gutter=False)
        view.styles.height = max(1, min(len(rows), self.app.size.height - 8))
        yield view


class ListResult(ResultsPage[R], ListPage[Row], Generic[Row, R]):
    """A page of results that is a list of rows with some text.

    Args:
        title: Of the tab.
        result: What is shown.
    """

    FIRST: ClassVar[tuple[str, str]] = ("rows", "rows")
    MORE: ClassVar[str] = ""
    """The keys that show the whole text."""

    def __init__(self, title: str, result: R) -> None:
        super().__init__(None, title)
        self.loaded = self.result = result
        self.panes = (
            Pane("head", self.make_head, stays=ALWAYS),
            Pane("rows", partial(self.make_list, "rows"), "main", ALWAYS),
        )

    def make_list(self, id: str) -> ListTable:
        """Return the list."""
        return ListTable(empty=hint(self.LIST_EMPTY), id=id)

    def make_head(self) -> ResultHead:
        """Return the text."""
        return ResultHead(self.head(), keys=self.MORE)

    def head(self) -> Sequence[Paragraph]:
        """Return the paragraphs above the list."""
        return ()

    def fill(self, loaded: R) -> None:
        """Show the rows."""
        self.show_rows()

    def show_whole(self, title: str) -> None:
        """Show the whole text."""
        self.app.push_screen(ParagraphsDialog(title, self.head()))


@dataclass(frozen=True)
class TableData:
    """Sentences about a result and its table."""

    summary: Sequence[str]
    """Fit for a terminal."""
    rows: Table[Any]
    plot: Plot | None = None
    """What is drawn between them."""


class TableResult(ListResult[Any, TableData]):
    """Shows such a result.

    Args:
        title: Of the tab.
        summary: The sentences, fit for a terminal.
        rows: The table.
        plot: What is drawn between them.
    """

    SCOPE = "result"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("result")
    HELP = "{result.copy} copies the text, {result.csv} writes the table."
    LIST_EMPTY = "There are no rows"
    MORE = "{result.about} whole summary"

    def __init__(
        self, title: str, summary: Sequence[str], rows: Table[Any], plot: Plot | None = None
    ) -> None:
        super().__init__(title, TableData(tuple(summary), rows, plot))
        if plot is not None:
            head, listed = self.panes
            self.panes = (head, Pane("plot", partial(ChartView, id="plot"), stays=ALWAYS), listed)

    @property
    def _below(self) -> int:
        """Rows of the plot on a low screen; 0 where it has its usual height, or there is none."""
        return _LOW_PLOT if self.result.plot is not None and self.app.size.height < _LOW else 0

    def head(self) -> Sequence[Paragraph]:
        """Return the sentences."""
        styles = ["strong", *[""] * len(self.result.summary)]
        return [Paragraph(*pair) for pair in zip(self.result.summary, styles, strict=False)]

    def make_head(self) -> ResultHead:
        """Return the sentences, fewer where a plot needs the room."""
        return ResultHead(self.head(), keys=self.MORE, below=self._below)

    def table(self) -> Table[Any]:
        """Return the rows."""
        rows = self.result.rows
        self.view.frame.show(rows.title, "{result.csv} save csv  {table.sort} sort")
        return rows

    def fill(self, loaded: TableData) -> None:
        """Show the rows and the plot."""
        super().fill(loaded)
        if loaded.plot is not None:
            plot = self.query_one("#plot", ChartView)
            if self._below:
                plot.styles.height = self._below
            plot.show_chart("plot", partial(draw, loaded.plot))

    def action_about(self) -> None:
        """Show the whole summary above the table."""
        self.show_whole(self.tab_title)

    def action_copy(self) -> None:
        self.app.copy_to_clipboard("\n".join(self.result.summary))

    @property
    def stem(self) -> str:
        """The name of the table."""
        return self.result.rows.name

    def shown_csv(self) -> tuple[str, int, str]:
        """Return the table."""
        return "", len(self.result.rows), csv_of(self.result.rows)


def of_start_up(result: StartUp, values: Mapping[str, JSON]) -> TableResult:
    """Return the page of the start of a session."""
    stages = [f"{stage.name}: {stage.ms:.3f} ms" for stage in result.stages]
    summary = [*start_up_lines(result), "; ".join(stages)]
    return TableResult(f"start of {Path(result.model).name}", summary, node_table(result))


def of_memory(plan: MemoryPlan, values: Mapping[str, JSON]) -> TableResult:
    """Return the page of what a run of a model needs."""
    name = Path(str(values.get("model", ""))).name
    sizes = [float(step.bytes) for step in plan.steps]
    spots = [
        Spot(at, step.bytes, f"{fmt.size(step.bytes)}  while {visible(step.node)} runs")
        for at, step in enumerate(plan.steps)
    ]
    at_peak = [float(at) for at, step in enumerate(plan.steps) if step.bytes == plan.peak]
    plot = Plot(
        [Marks(range(len(sizes)), sizes, "bars")],
        Axis("nodes, in the order in which they run", lambda at: f"{at + 1:,.0f}"),
        Axis(text=lambda size: fmt.size(round(size)), least=0.0), spots,
        [(at, "warn") for at in at_peak[:1]],
    )  # fmt: skip
    return TableResult(f"memory of {name}", memory_lines(plan), memory_table(plan), plot)


def of_critical_path(result: CriticalPath, values: Mapping[str, JSON]) -> TableResult:
    """Return the page of a critical path."""
    title = f"path of {Path(result.model).name}"
    return TableResult(title, path_lines(result), path_table(result))


def of_selftest(result: SelfTest, values: Mapping[str, JSON]) -> TableResult:
    """Return the page of a self-test."""
    return TableResult("self-test", selftest_lines(result), step_table(result))


def of_routes(result: RouteSearch, values: Mapping[str, JSON]) -> TableResult:
    """Return the page of a search of build routes."""
    table: Table[Any] = trial_table(result) if result.trials else knob_table(result.knobs)
    return TableResult("routes", search_lines(result), table)
