"""The screen that compares profile reports and engines: what differs, and where the time went."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.binding import BindingType
from textual.containers import Container
from textual.widget import Widget

from dld_tui.core.collector import collector_paused, freeze
from dld_tui.core.compare.comparison import GROUPINGS, VIEWS, Comparison
from dld_tui.core.compare.subject import Subject, open_subject
from dld_tui.core.document import Document
from dld_tui.core.errors import DldError
from dld_tui.core.paths import apart
from dld_tui.core.text import visible
from dld_tui.core.types import CancelCheck, ProgressCallback
from dld_tui.screens.compare.actions import CompareActions
from dld_tui.styles import STYLES
from dld_tui.widgets.hints import hint
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.styled import Rows
from dld_tui.widgets.report.compare import CompareAbout, ComparePane, CompareTable
from dld_tui.widgets.shell.commands import bindings_for
from dld_tui.widgets.shell.host import host
from dld_tui.widgets.shell.page import Page
from dld_tui.widgets.tasks import on_thread, task, with_progress


class CompareScreen(CompareActions, Page):
    """Some reports side by side."""

    SCOPE = "compare"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("compare")
    CSS_PATH = STYLES / "compare.tcss"
    AUTO_FOCUS = "CompareTable"
    HELP = CompareTable.HELP

    def __init__(self, paths: Sequence[Path]) -> None:
        super().__init__()
        self.paths = list(paths)
        self.model: Path | None = None
        """Where the nodes of engines are found."""
        self._shown: tuple[tuple[Path, ...], Path | None] = ((), None)
        """What could be read last: the paths, and the model."""
        self.tab_title = _tab_title(self.paths)
        self.subjects: list[Subject] = []
        self.comparison: Comparison | None = None

    def body(self) -> Iterable[Widget]:
        """Return what is said about the whole, and the rows."""
        return (
            Rows([[(" reading …", "dim")]], id="loading"),
            Container(CompareAbout(gutter=False, id="about"), ComparePane(id="rows"), id="compare"),
        )

    def on_mount(self) -> None:
        """Read the reports."""
        self.query_one("#compare").display = False
        self.read()

    # Reading

    @task("load", replace=True)
    async def read(self) -> None:
        """Read the reports and compare them."""
        paths, model = list(self.paths), self.model
        before = 0 if self.comparison is None else self.comparison.base
        base = before if before < len(paths) else 0
        try:
            document = None if model is None else await on_thread(Document.open, model)
            subjects = []
            for path in paths:
                subject = await with_progress(
                    partial(_subject, path, document), partial(self._tell, path)
                )
                subjects.append(subject)
            comparison = await on_thread(_compared, subjects, base)
        except (Exception, asyncio.CancelledError) as error:
            if self.comparison is None:
                host(self).close_page(self)
            elif isinstance(error, DldError):
                self.paths, self.model = list(self._shown[0]), self._shown[1]
            raise
        self._show(subjects, comparison)

    def _tell(self, path: Path, done: int, total: int) -> None:
        if total and self.is_mounted and self.comparison is None:
            percent = f"{100 * done / total:.0f} %"
            text = f" reading {visible(path.name)}: {percent}   {hint('{compare.clear} stops')}"
            self.query_one("#loading", Rows).set_rows([[(text, "dim")]])

    def _show(self, subjects: list[Subject], comparison: Comparison) -> None:
        first = self.comparison is None
        self.subjects = subjects
        self.comparison = comparison
        self.tab_title = _tab_title(self.paths)
        if len(subjects) == len(self.paths):
            self._shown = (tuple(self.paths), self.model)
        self.query_one("#loading").display = False
        self.query_one("#compare").display = True
        self.query_one(CompareAbout).show(comparison)
        pane = self.query_one(ComparePane)
        pane.show(comparison, "layer" if first else pane.by)
        if first:
            pane.table.focus()
        self._moved()
        self.tab_changed()

    # Base and grouping: both may take a second with many layers, so a thread does it.

    @task("rows", replace=True)
    async def action_base(self) -> None:
        """Compare with the next report."""
        comparison = self.comparison
        if comparison is not None:
            base = (comparison.base + 1) % len(self.subjects)
            self._show(self.subjects, await on_thread(_compared, self.subjects, base))

    def action_group(self) -> None:
        """Compare by the next thing."""
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
        self.crumb("" if row is None else visible(row.key))
        self.refresh_bindings()

    @on(CompareTable.Activated)
    def _activated(self, event: CompareTable.Activated) -> None:
        if isinstance(event.view, CompareTable):
            self.activate()

    def facts(self) -> set[str]:
        """Return what holds now."""
        found = {
            "comparison": self.comparison is not None,
            "compared_layer": self.layer_place() is not None,
            "compared_node": self.node_place() is not None,
            "compared_engine": self.comparison is not None and self.comparison.of_engines,
        }
        return super().facts() | {name for name, holds in found.items() if holds}


def _tab_title(paths: Sequence[Path]) -> str:
    return " : ".join(apart([path.name for path in paths], paths))


def _subject(
    path: Path, document: Document | None, progress: ProgressCallback, cancelled: CancelCheck
) -> Subject:
    with collector_paused():
        return open_subject(path, progress, cancelled, document)


def _compared(subjects: Sequence[Subject], base: int) -> Comparison:
    """Compare, and find out everything that is shown first."""
    with collector_paused():
        comparison = Comparison(subjects, base)
        comparison.explanation()
        freeze()  # a walk over all layers would hold the screen for 100 ms, and find nothing
    return comparison


def _grouped(comparison: Comparison, by: str) -> None:
    with collector_paused():
        comparison.rows(by)
        freeze()
