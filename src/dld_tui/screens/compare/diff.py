"""The screen of a comparison: two models side by side, one row a difference."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual import events, on
from textual.binding import BindingType
from textual.containers import Container
from textual.widget import Widget

from dld_tui.core.collector import collector_paused, freeze
from dld_tui.core.diff import ModelDiff, diff_documents
from dld_tui.core.diff.model import STATUSES
from dld_tui.core.diff.text import summary
from dld_tui.core.document.document import Document
from dld_tui.core.text import visible
from dld_tui.core.types import CancelCheck, ProgressCallback
from dld_tui.styles import STYLES
from dld_tui.widgets.diff.view import DiffDetail, DiffLines, DiffRow, DiffView, diff_rows
from dld_tui.widgets.hints import hint
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.styled import Rows
from dld_tui.widgets.shell.commands import bindings_for
from dld_tui.widgets.shell.host import host
from dld_tui.widgets.shell.page import Page
from dld_tui.widgets.tasks import Tasks, on_thread, task, with_progress

_LOW = 30
"""Rows of a terminal below which the detail is lower."""


class DiffScreen(Page):
    """What differs between two models."""

    SCOPE = "diff"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("diff")
    CSS_PATH = STYLES / "lists.tcss"
    AUTO_FOCUS = "DiffView"
    HELP = DiffView.HELP

    def __init__(self, old: Path, new: Path, *, weights: bool = True) -> None:
        super().__init__()
        self.old = old
        self.new = new
        self.weights = weights
        self.tab_title = f"{old.name} -> {new.name}"
        self.found: ModelDiff | None = None
        self.status = ""
        """The status that is shown; all when empty."""
        self.with_same = False
        self._documents: list[Document] = []

    def body(self) -> Iterable[Widget]:
        return (
            Rows([[(" comparing …", "dim")]], id="loading"),
            Container(
                DiffView(
                    str(self.old),
                    str(self.new),
                    empty=" The models are the same in all that was compared.",
                ),
                DiffDetail(gutter=False),
                id="diff",
            ),
        )

    def on_mount(self) -> None:
        """Compare the models."""
        self.query_one("#diff").display = False
        self._arrange()
        self._start()

    def on_unmount(self) -> None:
        """Close the models."""
        self._close(self._documents)

    # Comparing

    @task("load", replace=True)
    async def _start(self) -> None:
        documents: list[Document] = []
        try:
            for path in (self.old, self.new):
                self._show_progress(f"reading {visible(path.name)}")
                documents.append(await with_progress(partial(_read, path)))
            read = partial(_compared, documents, self.weights)
            found = await with_progress(read, self._show_percent)
        except (Exception, asyncio.CancelledError):
            self._close(documents)
            host(self).close_page(self)
            raise
        self._compared(found, documents)

    def _show_percent(self, done: int, total: int) -> None:
        if total:
            self._show_progress(f"comparing weights: {100 * done / total:.0f} %")

    def _show_progress(self, text: str) -> None:
        if self.is_mounted and self.found is None:
            self.query_one("#loading", Rows).set_rows(
                [[(f" {text}   {hint('{diff.clear} stops')}", "dim")]]
            )

    @staticmethod
    def _close(documents: list[Document]) -> None:
        for document in documents:
            document.close()

    def _compared(self, found: ModelDiff, documents: list[Document]) -> None:
        self._close(self._documents)
        self._documents = documents
        self.found = found
        self.query_one("#loading").display = False
        self.query_one("#diff").display = True
        self._show_rows()
        self.query_one(DiffView).focus()
        self.tab_changed()
        if found.notes:
            more = f" (and {len(found.notes) - 1} more)" if len(found.notes) > 1 else ""
            self.notify(f"{visible(found.notes[0])}{more}", severity="warning", markup=False)

    # Rows

    @task("rows", replace=True)
    async def _show_rows(self) -> None:
        """Make the rows, on a thread: there may be 100,000 of them."""
        if self.found is None:
            return
        lines, title = await on_thread(_lines, self.found, self.status, self.with_same)
        view = self.query_one(DiffView)
        view.set_lines(lines)
        view.frame.show(
            title,
            self.status
            or ("all nodes" if self.with_same else "{diff.filter} filter  {diff.all} all"),
        )
        self._moved()

    def row(self) -> DiffRow | None:
        """Return the row under the cursor."""
        return self.query_one(DiffView).row_at_cursor() if self.is_mounted else None

    @on(LineView.CursorMoved)
    def _moved(self) -> None:
        row = self.row()
        self.query_one(DiffDetail).show(row)
        scope = row.scope if row is not None else None
        path = scope.new_path if scope is not None else ()
        self.crumb(visible(" › ".join(path)) or "main")
        self.refresh_bindings()

    @on(DiffView.Activated)
    def _activated(self) -> None:
        row = self.row()
        if row is not None and row.new_node is not None:
            self.action_show_new()
        elif row is not None and row.old_node is not None:
            self.action_show_old()

    def facts(self) -> set[str]:
        row = self.row()
        found = {
            "compared": self.found is not None,
            "old_node": row is not None and row.old_node is not None,
            "new_node": row is not None and row.new_node is not None,
        }
        return super().facts() | {name for name, holds in found.items() if holds}

    def on_resize(self, event: events.Resize) -> None:
        """Give the detail less room on a small terminal."""
        self._arrange()

    def _arrange(self) -> None:
        self.set_class(self.app.size.height < _LOW, "-low")

    # Commands

    def action_filter_status(self) -> None:
        if self.found is None:
            return
        present = {status for found in self.found.counts().values() for status in found}
        choices = ["", *(status for status in STATUSES if status in present)]
        at = choices.index(self.status) if self.status in choices else 0
        self.status = choices[(at + 1) % len(choices)]
        self._show_rows()

    def action_toggle_same(self) -> None:
        self.with_same = not self.with_same
        self.status = ""
        self._show_rows()

    def action_next_change(self) -> None:
        self._step(1)

    def action_previous_change(self) -> None:
        self._step(-1)

    def _step(self, step: int) -> None:
        if not self.query_one(DiffView).go_to_change(step):
            self.notify("No further change", timeout=2)

    def action_show_new(self) -> None:
        row = self.row()
        if row is not None and row.new_node is not None:
            self._reveal(self.new, row, is_old=False)

    def action_show_old(self) -> None:
        row = self.row()
        if row is not None and row.old_node is not None:
            self._reveal(self.old, row, is_old=True)

    def _reveal(self, path: Path, row: DiffRow, *, is_old: bool) -> None:
        node = row.old_node if is_old else row.new_node
        if node is not None:
            host(self).reveal(path, node.scope.path, node.ref)

    def action_again(self) -> None:
        self.found = None
        self.query_one("#diff").display = False
        self.query_one("#loading").display = True
        self._start()

    def action_clear(self) -> None:
        if self.found is None:
            self.tasks.cancel("load")
        elif self.status or self.with_same:
            self.status, self.with_same = "", False
            self._show_rows()


def _read(path: Path, progress: ProgressCallback, cancelled: CancelCheck) -> Document:
    with collector_paused():
        return Document.open(path, cancelled=cancelled)


def _compared(
    documents: Sequence[Document], weights: bool, progress: ProgressCallback, cancelled: CancelCheck
) -> ModelDiff:
    with collector_paused():
        found = diff_documents(*documents, weights=weights, progress=progress, cancelled=cancelled)
        freeze()  # a walk over two models would hold the screen for 100 ms, and find nothing
    return found


def _lines(found: ModelDiff, status: str, with_same: bool) -> tuple[DiffLines, str]:
    with collector_paused():
        lines = DiffLines(diff_rows(found, status=status, with_same=with_same))
        lines.index_of(None)  # makes the index
        freeze()
    return lines, summary(found)


async def ask_models(tasks: Tasks, new: Path | None) -> tuple[Path, Path] | None:
    """Ask for the models to compare; None when the user changes their mind.

    Args:
        tasks: Asks.
        new: The model that is shown, which is taken as the new one; None asks for it, too.
    """
    from dld_tui.widgets.dialogs.open_path import OpenPathDialog

    old = await tasks.ask(OpenPathDialog("Compare: the old model"))
    if old is not None and new is None:
        new = await tasks.ask(OpenPathDialog("Compare: the new model"))
    return None if old is None or new is None else (old, new)
