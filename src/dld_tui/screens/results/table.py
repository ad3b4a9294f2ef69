"""Results of activities: a page of sentences over a table, and what opens after a job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from textual.binding import Binding, BindingType
from textual.widget import Widget

from dld_tui.activities import registry
from dld_tui.activities.build_tensorrt import Result as Built
from dld_tui.activities.refit_engine import Result as Refitted
from dld_tui.core import fmt
from dld_tui.core.conversion.reduction import Reduction
from dld_tui.core.cost.critical_path import CriticalPath, path_lines, path_table
from dld_tui.core.cost.memory import MemoryPlan, memory_lines, memory_table
from dld_tui.core.files.writer import write_text
from dld_tui.core.machine.health import SelfTest, selftest_lines, step_table
from dld_tui.core.report.start_up import StartUp, node_table, start_up_lines
from dld_tui.core.settings.plugins import resolve
from dld_tui.core.tables.rendering import csv_of
from dld_tui.core.tables.table import Table
from dld_tui.core.tensorrt.build_routes import RouteSearch, knob_table, search_lines, trial_table
from dld_tui.core.text import visible
from dld_tui.core.types import JSON
from dld_tui.screens.base_pages import ListPage
from dld_tui.screens.results.pages import ask_where
from dld_tui.styles import STYLES
from dld_tui.widgets.charts.plots import Axis, ChartView, Marks, Plot, Spot, draw
from dld_tui.widgets.dialogs.dialogs import Dialog
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.styled import ListSource, Piece, Rows, wrap
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.command_dispatch import bindings_for, hint
from dld_tui.widgets.shell.page import Host, Page

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


# --- what opens when a job that was started from a form has ended --------------------------------


@dataclass(frozen=True)
class BesideView:
    """A model to open beside the one that it was made of."""

    path: Path
    original: Path


View: TypeAlias = "Page | Path | BesideView | str | None"
"""A page, a file to open, one beside another, a text to show, or nothing."""

_FILES = ("report", "output", "path")


def opened_file(result: Any, values: Mapping[str, JSON]) -> View:
    """Return the file that an activity wrote."""
    fields = result if isinstance(result, Mapping) else vars(result)
    return next((Path(fields[key]) for key in _FILES if fields.get(key)), None)


def built_engine(result: Built, values: Mapping[str, JSON]) -> View:
    """Return the layers of an engine where that was asked for, else that it is built."""
    if values.get("open_metadata") and result.layer_info is not None:
        return result.layer_info
    problem = result.layer_info_problem
    more = f"; its layers are not written: {problem}" if problem else ""
    return visible(f"{result.engine} is built{more}")


def refitted_engine(result: Refitted, values: Mapping[str, JSON]) -> View:
    """Return that an engine has its new weights."""
    return visible(f"{result.engine} is built")


def of_reduction(result: Reduction, values: Mapping[str, JSON]) -> View:
    """Return the smallest model that still fails, beside the one that it is part of."""
    return BesideView(result.path, Path(str(values["model"])))


def show_view(owner: Host, view: View) -> None:
    """Show what came of a job: a page, a file or a text."""
    if isinstance(view, Page):
        owner.add_page(view)
    elif isinstance(view, Path):
        owner.open_path(view)
    elif isinstance(view, BesideView):
        original = view.original

        def opened(result_page: Page) -> None:  # a model is read when its tab is seen
            result_page.when_open(
                lambda: owner.open_path(original, lambda page: show(page, result_page))
            )

        def show(page: Page, result_page: Page) -> None:
            page.when_open(lambda: page.show_beside(result_page))

        owner.open_path(view.path, opened)
    elif view is not None:
        owner.page.app.notify(view, timeout=8, markup=False)


def run_activity(owner: Host, activity: str, values: Mapping[str, JSON]) -> None:
    """Run an activity here, and show what comes of it."""
    about = registry.find(activity)

    def done(result: Any) -> None:
        show_view(owner, resolve(about.result_view)(result, values))

    owner.run_job(about.id, values, done, title=about.title)


class TableResult(ListPage[Any]):
    """Shows such a result.

    Args:
        title: Of the tab.
        said: The sentences, fit for a terminal.
        rows: The table.
        plot: What is drawn between them.
    """

    SCOPE = "result"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("result")
    CSS_PATH = STYLES / "lists.tcss"
    LIST_KEYS = "{result.csv} save csv  {table.sort} sort"
    LIST_EMPTY = "There are no rows"
    HELP = "{result.copy} copies the text, {result.csv} writes the table."

    def __init__(
        self, title: str, summary: Sequence[str], rows: Table[Any], plot: Plot | None = None
    ) -> None:
        super().__init__()
        self._plot = plot
        self.tab_title = title
        self.summary = tuple(summary)
        self._rows = rows
        self.LIST_TITLE = rows.title  # type: ignore[misc]

    def body(self) -> Iterable[Widget]:
        styles = ["strong", *[""] * len(self.summary)]
        paragraphs = [Paragraph(*pair) for pair in zip(self.summary, styles, strict=False)]
        below = _LOW_PLOT if self._plot is not None and self.app.size.height < _LOW else 0
        yield ResultHead(paragraphs, keys="{result.about} whole summary", below=below)
        if self._plot is not None:
            plot = ChartView(id="plot")
            if below:
                plot.styles.height = below
            yield plot
        yield from super().body()

    def on_mount(self) -> None:
        """Show the rows."""
        self.show_rows()
        plot = self._plot
        if plot is not None:
            self.query_one("#plot", ChartView).show_chart("plot", partial(draw, plot))

    def table(self) -> Table[Any]:
        """Return the rows."""
        return self._rows

    def action_about(self) -> None:
        """Show the whole summary above the table."""
        paragraphs = [Paragraph(text) for text in self.summary]
        self.app.push_screen(ParagraphsDialog(self.tab_title, paragraphs))

    def action_copy(self) -> None:
        self.app.copy_to_clipboard("\n".join(self.summary))

    def action_save_csv(self) -> None:
        def write(path: Path, overwrite: bool) -> Sequence[str]:
            return write_text(path, csv_of(self._rows), overwrite=overwrite)

        ask_where(self, "Save CSV", "Write the table to", f"{self._rows.name}.csv", write)


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
