"""The screen that compares profile reports and engines: what differs, and where the time went."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import ClassVar, TypeAlias

from textual import on

from dld_tui.commands.command import table
from dld_tui.core.compare.comparison import GROUPINGS, MISMATCH, VIEWS, Comparison, open_subject
from dld_tui.core.compare.export import comparison_csv
from dld_tui.core.compare.records import ComparisonRow, Subject
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import DldError
from dld_tui.core.files.recognise import is_sweep
from dld_tui.core.files.writer import write_text
from dld_tui.core.llm.folder import open_document
from dld_tui.core.model.document import Document
from dld_tui.core.process.interpreter import collector_paused, freeze
from dld_tui.core.process.paths import distinct_names
from dld_tui.core.report.records import Layer, NodeLink
from dld_tui.core.report.reports_of_model import model_of, reports_of
from dld_tui.core.text import visible
from dld_tui.core.types import CancelCheck, ProgressCallback
from dld_tui.screens.home.nearby import COMPARED, REPORTS, SWEEPS, ask_nearby
from dld_tui.screens.home.tabs import make_sweep_comparison
from dld_tui.screens.results.results_page import ALWAYS, Pane, ResultsPage
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.results.report_compare import CompareAbout, ComparePane, CompareTable
from dld_tui.widgets.shell.command_dispatch import holding
from dld_tui.widgets.shell.page import AppServices, host
from dld_tui.widgets.tasks import on_thread, task


async def ask_reports(services: AppServices, first: Path | None) -> None:
    """Ask for two reports or sweeps, or for one to compare `first` with, and compare them."""
    report = first or await ask_nearby(services, "Compare: the first report", COMPARED)
    if report is None:
        return
    if is_sweep(report):
        title = f"Compare {visible(report.name)} with"
        swept = await ask_nearby(services, title, SWEEPS, [report])
        if swept is not None:
            services.add_page(await on_thread(make_sweep_comparison, [report, swept]))
        return
    other = await _ask_other(services, f"Compare {visible(report.name)} with", [report])
    if other is not None:
        services.add_page(CompareScreen([report, other]))


async def _ask_other(services: AppServices, title: str, reports: Sequence[Path]) -> Path | None:
    """Ask for another report; those of the same model come first."""

    def same_model(paths: Sequence[str]) -> Iterable[str]:
        with suppress(DldError, OSError):
            if model := model_of(str(reports[0])):
                return reports_of(model, paths)
        return ()

    return await ask_nearby(services, title, REPORTS, reports, top=same_model, why="same model")


_Place: TypeAlias = "tuple[int, Layer]"
"""(report, layer)."""


@dataclass(frozen=True)
class Compared:
    """What was read, and how it compares."""

    subjects: Sequence[Subject]
    comparison: Comparison


class CompareScreen(ResultsPage[Compared]):
    """Some reports side by side."""

    SCOPE = "compare"
    COMMAND_TABLE = (
        *table(
            "compare",
            ("compare.filter", "filter", "slash", "comparison", "filter",
             "Filter the rows as you type."),
            ("compare.group", "group", "b", "comparison", "group",
             "Compare by layer, node, type, operator, scope, provider, precision, or changed "
             "tactic."),
            ("compare.chart", "chart", "v", "comparison", "chart",
             "Show the latency distributions of the runs, or the text again."),
            ("compare.sure", "sure", "f", "comparison", "hide noise",
             "Show only significant changes, or all again."),
            ("compare.base", "base", "equals_sign", "comparison", "next base",
             "Use the next report as the baseline."),
            ("compare.layer", "show_layer", "t", "compared_layer", "show layer",
             "Show the layer in its report."),
            ("compare.node", "go_to_node", "s", "compared_node", "go to node",
             "Show the ONNX node in the model."),
            ("compare.csv", "save_csv", "w", "comparison", "save csv",
             "Write the shown rows as a CSV file."),
            ("compare.export", "export", "W", "comparison", "export",
             "Write the comparison as one HTML page."),
            ("compare.add", "add_report", "c", "comparison", "add report",
             "Add a report to the comparison."),
            ("compare.model", "choose_model", "a", "compared_engine", "add model",
             "Choose the model that the engines were built from, to find its ONNX nodes."),
            ("compare.again", "again", "f5", "comparison", "read again", "Read the reports again."),
            footer="compare.filter compare.group compare.sure compare.layer compare.node "
            "compare.csv",
        ),
        *table(
            "compare",
            ("compare.clear", "clear", "escape", "", "clear",
             "Clear the filter, the group or the noise filter; stop reading."),
            palette=False,
        ),
    )  # fmt: skip
    HELP = CompareTable.HELP
    EXPORT: ClassVar[tuple[str, str]] = ("Export the comparison", "One self-contained HTML page.")
    panes: Sequence[Pane] = (
        Pane("about", partial(CompareAbout, gutter=False, id="about"), stays=ALWAYS),
        Pane("rows", partial(ComparePane, id="rows"), "main", ALWAYS, "#compare-table"),
    )
    stem = "compare"

    def __init__(self, paths: Sequence[Path]) -> None:
        super().__init__(None, _tab_title(paths))
        self.paths = list(paths)
        self.model: Path | None = None
        """Where the nodes of engines are found."""
        self._shown: tuple[tuple[Path, ...], Path | None] = ((), None)
        """The last successful read: the paths, and the model."""

    @property
    def comparison(self) -> Comparison | None:
        """The comparison; None while the reports are being read."""
        return None if self.loaded is None else self.loaded.comparison

    @property
    def subjects(self) -> Sequence[Subject]:
        """What is compared."""
        return () if self.loaded is None else self.loaded.subjects

    def load(self, progress: ProgressCallback, cancelled: CancelCheck) -> Compared:
        """Read the reports and compare them; on an error, those that are shown stay."""
        before = 0 if self.comparison is None else self.comparison.base
        base = before if before < len(self.paths) else 0
        try:
            document = None if self.model is None else open_document(self.model)
            subjects = [_subject(path, document, progress, cancelled) for path in self.paths]
            return _compared(subjects, base, self._groupings())
        except DldError:
            if self.loaded is not None:
                self.paths, self.model = list(self._shown[0]), self._shown[1]
            raise

    def fill(self, loaded: Compared) -> None:
        """Show the comparison."""
        comparison, subjects = loaded.comparison, loaded.subjects
        self.tab_title = _tab_title(self.paths)
        if len(subjects) == len(self.paths):
            self._shown = (tuple(self.paths), self.model)
        about = self.query_one(CompareAbout)
        about.runs = [
            (title, subject.latencies_ms or subject.profiled_ms)
            for title, subject in zip(comparison.titles, subjects, strict=True)
        ]
        about.show(comparison)
        pane = self.query_one(ComparePane)
        pane.show(comparison, pane.by)
        self._moved()

    # Base and grouping: both may take a second with many layers, so a thread does it.

    @task("rows", replace=True)
    async def action_base(self) -> None:
        comparison = self.comparison
        if comparison is not None:
            base = (comparison.base + 1) % len(self.subjects)
            self.loaded = await on_thread(_compared, self.subjects, base, self._groupings())
            self.fill(self.loaded)
            self.tab_changed()

    def _groupings(self) -> set[str]:
        return self.query_one(ComparePane).groupings()

    def action_group(self) -> None:
        pane = self.query_one(ComparePane)
        pane.group = None
        comparison = self.comparison
        views = VIEWS if comparison is not None and comparison.of_engines else GROUPINGS
        self.group_by(views[(views.index(pane.by) + 1) % len(views)])

    @task("rows", replace=True)
    async def group_by(self, by: str) -> None:
        """Show the rows by something."""
        comparison = self.comparison
        if comparison is None:
            return
        await on_thread(_grouped, comparison, by)
        if comparison is self.comparison:
            self.query_one(ComparePane).show(comparison, by)
            self._moved()

    # The cursor

    @on(LineView.CursorMoved)
    def _moved(self) -> None:
        row = self.row()
        self.crumb("" if row is None else row.title)
        self.refresh_bindings()

    @on(CompareTable.Activated)
    def _activated(self, event: CompareTable.Activated) -> None:
        if isinstance(event.view, CompareTable):
            self.activate()

    def conditions(self) -> set[str]:
        return super().conditions() | holding(
            comparison=self.comparison is not None,
            compared_layer=self.layer_place() is not None,
            compared_node=self.node_place() is not None,
            compared_engine=self.comparison is not None and self.comparison.of_engines,
        )

    def row(self) -> ComparisonRow | None:
        """Return the row under the cursor."""
        if not self.is_mounted or self.comparison is None:
            return None
        return self.query_one(ComparePane).row_at_cursor()

    # To a layer and to a node

    def _places(self) -> Iterator[_Place]:
        """Yield the layers of the row at the cursor, those of the compared report first."""
        row, comparison = self.row(), self.comparison
        if row is None or comparison is None:
            return
        order = [comparison.target, comparison.base, *range(len(self.subjects))]
        for report in dict.fromkeys(order):
            layers = [self.subjects[report].layers[index] for index in row.cells[report].layers]
            for layer in sorted(layers, key=lambda layer: -(layer.time_ms or 0.0)):
                yield report, layer

    def layer_place(self) -> _Place | None:
        """Return the layer to show for the row at the cursor: the longest, or None."""
        return next(self._places(), None)

    def node_place(self) -> tuple[Path, NodeLink] | None:
        """Return the model and the node to show for the row at the cursor, or None."""
        by = self.query_one(ComparePane).by if self.is_mounted else ""
        row = self.row()
        if row is None or by not in ("layer", "node", MISMATCH):
            return None
        for report, layer in self._places():
            path = self.subjects[report].model.get("path")
            links = [link for link in layer.nodes if by != "node" or link.label == row.key]
            if isinstance(path, str) and path and links:
                return Path(path), links[0]
        return None

    def activate(self) -> None:
        """Go to the node or the layer of a row, or show the layers of a group."""
        pane, row = self.query_one(ComparePane), self.row()
        if row is None:
            return
        if pane.by not in ("layer", "node", MISMATCH):
            pane.open_group(row)
        elif self.node_place() is not None:
            self.action_go_to_node()
        else:
            self.action_show_layer()

    def action_show_layer(self) -> None:
        """Show the layer in the compared report, or in the base when only that has it."""
        place = self.layer_place()
        if place is not None:
            report, layer = place
            in_engine = layer.engine and layer.engine.engine_layer
            index = layer.index if in_engine is None else in_engine
            host(self).reveal_layer(self.paths[report], index)

    def action_go_to_node(self) -> None:
        place = self.node_place()
        if place is None:
            return
        path, link = place
        if os.path.lexists(path):
            host(self).reveal(path, link.scope, link.node)
        else:
            self.notify("The model is no longer where the report says", severity="warning")

    # Rows

    def action_filter(self) -> None:
        self.query_one(ComparePane).open_filter()

    def action_chart(self) -> None:
        """Show the latencies of the runs over each other, or the text again."""
        self.query_one(CompareAbout).toggle_chart()

    def action_sure(self) -> None:
        pane = self.query_one(ComparePane)
        pane.sure_only = not pane.sure_only
        pane.fill()

    def action_clear(self) -> None:
        """Take back the filter, the noise, the group; stop reading."""
        if self.stop_reading():
            return
        pane = self.query_one(ComparePane)
        by = pane.take_back()
        if by == pane.by:
            pane.fill()
        elif by is not None:
            self.group_by(by)

    def shown_csv(self) -> tuple[str, int, str]:
        """Return the shown rows, filtered and sorted as they are."""
        pane = self.query_one(ComparePane)
        rows = pane.shown_rows()
        assert self.comparison is not None  # the caller has it
        return f"-by-{pane.by}", len(rows), comparison_csv(self.comparison, rows, pane.by)

    def export(self, path: Path, overwrite: bool) -> Sequence[str]:
        """Write the whole comparison as one HTML page."""
        from dld_tui.core.compare.export import comparison_page

        assert self.comparison is not None  # the caller has it
        return write_text(path, comparison_page(self.comparison), overwrite=overwrite)

    # Reports

    @task()
    async def action_add_report(self) -> None:
        path = await _ask_other(host(self), "Compare with", self.paths)
        if path is not None:
            self.paths.append(path)
            self.read()

    @task()
    async def action_choose_model(self) -> None:
        """Ask for the model that the engines were built from, and find their nodes in it."""
        from dld_tui.widgets.dialogs.dialogs import MODELS, OpenPathDialog

        dialog = OpenPathDialog(
            "The model of the engines", placeholder="path of an ONNX model", endings=MODELS
        )
        path = await self.tasks.ask(dialog)
        if path is not None:
            self.model = path
            self.read()

    def action_again(self) -> None:
        self.read()


def _tab_title(paths: Sequence[Path]) -> str:
    return "compare " + " : ".join(distinct_names([path.name for path in paths], paths))


def _subject(
    path: Path, document: Document | None, progress: ProgressCallback, cancelled: CancelCheck
) -> Subject:
    with collector_paused():
        return open_subject(path, progress, cancelled, document)


def _compared(subjects: Sequence[Subject], base: int, groupings: Iterable[str]) -> Compared:
    """Compare, and find out everything that is shown first."""
    with collector_paused():
        comparison = Comparison(subjects, base)
        comparison.explanation()
        for by in groupings:
            comparison.rows(by)
        freeze()  # a walk over all layers would hold the screen for 100 ms, and find nothing
    return Compared(subjects, comparison)


def _grouped(comparison: Comparison, by: str) -> None:
    with collector_paused():
        comparison.rows(by)
        freeze()
