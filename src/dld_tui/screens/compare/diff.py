"""The screen of a comparison: two models side by side, one row a difference."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.binding import BindingType
from textual.containers import Container
from textual.widget import Widget
from textual.worker import Worker, get_current_worker

from dld_tui.core.collector import collector_paused
from dld_tui.core.diff import ModelDiff, diff_documents
from dld_tui.core.diff.model import STATUSES
from dld_tui.core.diff.text import summary
from dld_tui.core.document.document import Document
from dld_tui.core.errors import CancelledError, DldError
from dld_tui.core.text import visible
from dld_tui.styles import STYLES
from dld_tui.widgets.diff.view import DiffDetail, DiffLines, DiffRow, DiffView, diff_rows
from dld_tui.widgets.hints import hint
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.styled import Rows
from dld_tui.widgets.shell.commands import bindings_for
from dld_tui.widgets.shell.host import host
from dld_tui.widgets.shell.page import Page

if TYPE_CHECKING:
    from textual.app import App

_TELL_S = 0.2
_LOW = 30
"""Rows of a terminal below which the detail is lower."""


class DiffScreen(Page):
    """What differs between two models."""

    SCOPE = "diff"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("diff")
    CSS_PATH = STYLES / "diff.tcss"
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
        """Return the columns and the detail below them."""
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
        gc.unfreeze()
        self._close(self._documents)

    # Comparing

    def _start(self) -> None:
        self.run_worker(
            self._compare, thread=True, exclusive=True, group="load", name=f"diff {self.tab_title}"
        )

    def _compare(self) -> None:
        worker = get_current_worker()
        documents: list[Document] = []
        try:
            with collector_paused():
                for path in (self.old, self.new):
                    self._tell(f"reading {visible(path.name)}")
                    documents.append(Document.open(path, cancelled=lambda: worker.is_cancelled))
                found = diff_documents(
                    documents[0],
                    documents[1],
                    weights=self.weights,
                    progress=self._throttled(),
                    cancelled=lambda: worker.is_cancelled,
                )
                # A walk over two models would hold the screen for 100 ms, and find nothing.
                gc.freeze()
        except CancelledError:
            return self._close(documents)
        except DldError as error:
            self._close(documents)
            self.app.call_later(self._failed, error)
            return None
        except BaseException:
            self._close(documents)
            raise
        if worker.is_cancelled:
            return self._close(documents)
        self.app.call_later(self._compared, found, documents)
        return None

    def _throttled(self) -> Callable[[int, int], None]:
        last = 0.0

        def progress(done: int, total: int) -> None:
            nonlocal last
            now = time.monotonic()
            if total and now - last > _TELL_S:
                last = now
                self._tell(f"comparing weights: {100 * done / total:.0f} %")

        return progress

    def _tell(self, text: str) -> None:
        self.app.call_later(self._show_progress, text)

    def _show_progress(self, text: str) -> None:
        if self.is_mounted and self.found is None:
            self.query_one("#loading", Rows).set_rows(
                [[(f" {text}   {hint('{diff.clear} stops')}", "dim")]]
            )

    @staticmethod
    def _close(documents: list[Document]) -> None:
        for document in documents:
            document.close()

    def _failed(self, error: DldError) -> None:
        # In this order: a dialog over the tab would go with it.
        owner = host(self)
        owner.close_page(self)
        owner.show_error(error)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Close the tab when comparing was stopped or failed."""
        is_load = event.worker.group == "load" and event.state.name in ("ERROR", "CANCELLED")
        if is_load and self.found is None:
            host(self).close_page(self)

    def _compared(self, found: ModelDiff, documents: list[Document]) -> None:
        if not self.is_mounted:
            self._close(documents)
            return
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

    def _show_rows(self) -> None:
        """Make the rows, in a thread: there may be 100,000 of them."""
        found, status, with_same = self.found, self.status, self.with_same
        if found is None:
            return

        def work() -> None:
            worker = get_current_worker()
            with collector_paused():
                lines = DiffLines(diff_rows(found, status=status, with_same=with_same))
                lines.index_of(None)  # makes the index
                gc.freeze()
            if not worker.is_cancelled:
                self.app.call_later(self._set_rows, lines, summary(found))

        self.run_worker(work, thread=True, exclusive=True, group="rows", name="rows of a diff")

    def _set_rows(self, lines: DiffLines, title: str) -> None:
        if not self.is_mounted:
            return
        view = self.query_one(DiffView)
        view.set_lines(lines)
        view.frame(
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
        """Return what holds now."""
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
        """Show the changes of the next status, all after the last."""
        if self.found is None:
            return
        present = {status for found in self.found.counts().values() for status in found}
        choices = ["", *(status for status in STATUSES if status in present)]
        at = choices.index(self.status) if self.status in choices else 0
        self.status = choices[(at + 1) % len(choices)]
        self._show_rows()

    def action_toggle_same(self) -> None:
        """Show the nodes that are the same, too, or leave them out."""
        self.with_same = not self.with_same
        self.status = ""
        self._show_rows()

    def action_next_change(self) -> None:
        """Go to the next change."""
        self._step(1)

    def action_previous_change(self) -> None:
        """Go to the change before."""
        self._step(-1)

    def _step(self, step: int) -> None:
        if not self.query_one(DiffView).go_to_change(step):
            self.notify("No further change", timeout=2)

    def action_show_new(self) -> None:
        """Show the node in the new model."""
        row = self.row()
        if row is not None and row.new_node is not None:
            self._reveal(self.new, row, is_old=False)

    def action_show_old(self) -> None:
        """Show the node in the old model."""
        row = self.row()
        if row is not None and row.old_node is not None:
            self._reveal(self.old, row, is_old=True)

    def _reveal(self, path: Path, row: DiffRow, *, is_old: bool) -> None:
        node = row.old_node if is_old else row.new_node
        if node is not None:
            host(self).reveal(path, node.scope.path, node.ref)

    def action_again(self) -> None:
        """Compare the files again, as they are now."""
        self.found = None
        self.query_one("#diff").display = False
        self.query_one("#loading").display = True
        self._start()

    def action_clear(self) -> None:
        """Stop comparing, or show all changes again."""
        if self.found is None:
            self.workers.cancel_group(self, "load")
        elif self.status or self.with_same:
            self.status, self.with_same = "", False
            self._show_rows()


def ask_and_compare(app: App[int], new: Path | None, compare: Callable[[Path, Path], None]) -> None:
    """Ask for the models and compare them.

    Args:
        app: The app.
        new: The model that is shown, which is taken as the new one; None asks for it, too.
        compare: Called with the old and the new path.
    """
    from dld_tui.screens.home.welcome import OpenPathDialog

    def chosen_old(old: Path | None) -> None:
        if old is None:
            return
        if new is not None:
            compare(old, new)
            return

        def chosen_new(other: Path | None) -> None:
            if other is not None:
                compare(old, other)

        app.push_screen(OpenPathDialog("Compare: the new model"), chosen_new)

    app.push_screen(OpenPathDialog("Compare: the old model"), chosen_old)
