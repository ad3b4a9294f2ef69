"""The screen that compares profile reports and engines: what differs, and where the time went."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.binding import BindingType
from textual.containers import Container
from textual.widget import Widget
from textual.worker import Worker, get_current_worker

from dld_tui.core.collector import collector_paused
from dld_tui.core.compare.comparison import GROUPINGS, VIEWS, Comparison
from dld_tui.core.compare.subject import Subject, open_subject
from dld_tui.core.document import Document
from dld_tui.core.errors import CancelledError, DldError
from dld_tui.core.paths import apart
from dld_tui.core.text import visible
from dld_tui.screens.compare.actions import CompareActions
from dld_tui.styles import STYLES
from dld_tui.widgets.hints import hint
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.styled import Rows
from dld_tui.widgets.report.compare import CompareAbout, ComparePane, CompareTable
from dld_tui.widgets.shell.commands import bindings_for
from dld_tui.widgets.shell.host import host
from dld_tui.widgets.shell.page import Page

_TELL_S = 0.2


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

    def on_unmount(self) -> None:
        """Let the collector see the reports again."""
        gc.unfreeze()

    # Reading

    def read(self) -> None:
        """Read the reports and compare them, in a thread."""
        self.run_worker(self._read, thread=True, exclusive=True, group="load", name="compare")

    def _read(self) -> None:
        worker = get_current_worker()
        try:
            with collector_paused():
                document = None if self.model is None else Document.open(self.model)
                subjects = [
                    open_subject(path, self._throttled(path), lambda: worker.is_cancelled, document)
                    for path in self.paths
                ]
                before = 0 if self.comparison is None else self.comparison.base
                comparison = _compared(subjects, before if before < len(subjects) else 0)
                # A walk over all layers would hold the screen for 100 ms, and find nothing.
                gc.freeze()
        except CancelledError:
            return
        except DldError as error:
            if not worker.is_cancelled:
                self.app.call_later(self._failed, error)
            return
        if not worker.is_cancelled:
            self.app.call_later(self._show, subjects, comparison)

    def _throttled(self, path: Path) -> Callable[[int, int], None]:
        last = 0.0

        def progress(done: int, total: int) -> None:
            nonlocal last
            now = time.monotonic()
            if total and now - last > _TELL_S:
                last = now
                self.app.call_later(self._tell, path, 100 * done / total)

        return progress

    def _tell(self, path: Path, percent: float) -> None:
        if self.is_mounted and self.comparison is None:
            text = (
                f" reading {visible(path.name)}: {percent:.0f} %   {hint('{compare.clear} stops')}"
            )
            self.query_one("#loading", Rows).set_rows([[(text, "dim")]])

    def _failed(self, error: DldError) -> None:
        # In this order: a dialog over the tab would go with it.
        owner = host(self)
        if self.comparison is None:
            owner.close_page(self)
        else:
            self.paths, self.model = list(self._shown[0]), self._shown[1]
        owner.show_error(error)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Close the tab when reading was stopped or failed."""
        is_load = event.worker.group == "load" and event.state.name in ("ERROR", "CANCELLED")
        if is_load and self.comparison is None:
            host(self).close_page(self)

    def _show(self, subjects: list[Subject], comparison: Comparison) -> None:
        if not self.is_mounted:
            return
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

    def action_base(self) -> None:
        """Compare with the next report."""
        comparison = self.comparison
        if comparison is None:
            return
        base = (comparison.base + 1) % len(self.subjects)
        subjects = self.subjects

        def work() -> None:
            with collector_paused():
                found = _compared(subjects, base)
            self.app.call_later(self._show, subjects, found)

        self.run_worker(work, thread=True, exclusive=True, group="rows", name="compare")

    def action_group(self) -> None:
        """Compare by the next thing."""
        pane = self.query_one(ComparePane)
        pane.group = None
        comparison = self.comparison
        views = VIEWS if comparison is not None and comparison.of_engines else GROUPINGS
        self.group_by(views[(views.index(pane.by) + 1) % len(views)])

    def group_by(self, by: str) -> None:
        """Show the rows by something."""
        comparison = self.comparison
        if comparison is None:
            return

        def work() -> None:
            with collector_paused():
                comparison.rows(by)
                gc.freeze()
            self.app.call_later(self._grouped, comparison, by)

        self.run_worker(work, thread=True, exclusive=True, group="rows", name=f"by {by}")

    def _grouped(self, comparison: Comparison, by: str) -> None:
        if self.is_mounted and comparison is self.comparison:
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


def _compared(subjects: Sequence[Subject], base: int) -> Comparison:
    """Compare, and find out everything that is shown first."""
    comparison = Comparison(subjects, base)
    comparison.explanation()
    return comparison
