"""The list of initializers: what there is, how large, where it is, who uses it."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable
from time import monotonic
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import BindingType
from textual.widget import Widget

from dld_tui.core import fmt
from dld_tui.core.collector import collector_paused
from dld_tui.core.document import Change, Scope
from dld_tui.core.text import visible
from dld_tui.screens.tensors.conversion import TensorPlace
from dld_tui.screens.tensors.initializer_changes import InitializerChanges
from dld_tui.screens.tensors.initializer_links import InitializerLinks
from dld_tui.screens.workspace.model import is_alive
from dld_tui.styles import STYLES
from dld_tui.widgets.lists.line_view import LineView, MarksChanged
from dld_tui.widgets.shell.commands import bindings_for
from dld_tui.widgets.tasks import task
from dld_tui.widgets.tensors.initializers import (
    DENSE,
    SPARSE,
    InitializerRow,
    InitializersPane,
    InitializersView,
    initializer_rows,
)

if TYPE_CHECKING:
    from dld_tui.screens.workspace.history import History

_SLICE_S = 0.015
"""How long listing may keep the event loop before it lets others run."""


class InitializersScreen(InitializerLinks, InitializerChanges):
    """The page.

    Args:
        workspace: The workspace of the document.
        scope: The scope whose initializers are listed first; None lists those of all.
    """

    SCOPE = "initializers"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("initializers")
    CSS_PATH = STYLES / "tensor.tcss"
    AUTO_FOCUS = "InitializersView"
    tab_title = "initializers"
    HELP = InitializersView.HELP

    def __init__(self, workspace: History, scope: Scope | None) -> None:
        super().__init__()
        self.workspace = workspace
        self.scope = scope
        self.all_scopes = scope is None
        self.constants = False
        self._go_to: Hashable | None = None
        """The key of the row that the cursor goes to once it is listed."""

    def body(self) -> Iterable[Widget]:
        """Return the list."""
        yield InitializersPane(id="initializers")

    def on_mount(self) -> None:
        """List what there is."""
        self.document.on_change.append(self._document_changed)
        self.list_again()

    def on_unmount(self) -> None:
        """Stop what runs for this page."""
        if self._document_changed in self.document.on_change:
            self.document.on_change.remove(self._document_changed)
        self.cancel_work()

    # --- the rows -------------------------------------------------------------------------------

    @property
    def pane(self) -> InitializersPane:
        """The pane of the list."""
        return self.query_one(InitializersPane)

    @property
    def row(self) -> InitializerRow | None:
        """The row under the cursor."""
        return self.pane.row_at_cursor() if self.is_mounted else None

    @property
    def chosen(self) -> list[InitializerRow]:
        """The marked rows that are listed, or the one under the cursor."""
        return self.pane.chosen() if self.is_mounted else []

    def go_to(self, key: Hashable) -> None:
        """Put the cursor on a row, or remember it until it is listed."""
        self._go_to = None if self.pane.table.go_to_key(key) else key

    @task("list", replace=True)
    async def list_again(self) -> None:
        """Make the rows, in slices: there may be many, and finding their users takes time."""
        if self.scope is not None and not is_alive(self.scope):
            self.scope, self.all_scopes = None, True
        scopes = [self.scope] if self.scope is not None else []
        if self.all_scopes:
            scopes = list(self.document.scopes())
        rows: list[InitializerRow] = []
        deadline = monotonic() + _SLICE_S
        with collector_paused():
            for row in initializer_rows(scopes, constants=self.constants):
                rows.append(row)
                if monotonic() > deadline:
                    await asyncio.sleep(0)
                    deadline = monotonic() + _SLICE_S
        self.pane.show(rows, with_scope=self.all_scopes)
        self._say()
        if self._go_to is not None and self.pane.table.go_to_key(self._go_to):
            self._go_to = None
        self.refresh_bindings()
        await self._find_problems(rows)

    async def _find_problems(self, rows: list[InitializerRow]) -> None:
        """Look into each tensor in slices, so that the rows with a problem can be counted."""
        deadline = monotonic() + _SLICE_S
        pane = self.pane
        for row in rows:
            pane.problem_of(row)
            if monotonic() > deadline:
                await asyncio.sleep(0)
                deadline = monotonic() + _SLICE_S
        self._say()

    def _say(self) -> None:
        scope = self.scope
        where = "all scopes" if self.all_scopes or scope is None else visible(scope.title)
        self.pane.say_title(where)
        path = () if scope is None else scope.path
        self.crumb("all scopes" if self.all_scopes else visible(" › ".join(path)) or "main")

    def _document_changed(self, change: Change) -> None:
        if self.is_attached:
            self.list_again()

    def facts(self) -> set[str]:
        """Return what holds for its commands."""
        found = super().facts()
        row = self.row
        known = {
            "initializer": row is not None,
            "initializers": bool(self.chosen),
            "used_initializer": row is not None and row.uses > 0,
            "external_initializer": row is not None
            and row.kind == DENSE
            and row.tensor.is_external,
            "can_undo": bool(self.document.history.done),
            "can_redo": bool(self.document.history.undone),
        }
        return found | {name for name, holds in known.items() if holds}

    @on(LineView.CursorMoved)
    @on(MarksChanged)
    def moved(self) -> None:
        """Show which commands fit."""
        self.refresh_bindings()

    # --- commands -------------------------------------------------------------------------------

    @on(LineView.Activated)
    def activated(self) -> None:
        """Open the tensor."""
        self.action_edit()

    def action_edit(self) -> None:
        """Open the editor of the tensor."""
        row = self.row
        if row is None:
            return
        if row.kind == SPARSE:
            self.edit_sparse(row)
            return
        from dld_tui.screens.tensors.tensor_editor import TensorScreen

        place = TensorPlace(row.scope, row.name)
        if row.node is not None:
            place = TensorPlace(row.scope, node=row.node, attribute=row.attribute)
        self.app.push_screen(TensorScreen(self.workspace, place))

    def action_filter(self) -> None:
        """Filter the list while one types."""
        self.pane.open_filter()

    def action_toggle_scopes(self) -> None:
        """List the initializers of this scope, or those of all."""
        if self.scope is None:
            self.scope, self.all_scopes = self.document.main, False
        else:
            self.all_scopes = not self.all_scopes
        self.list_again()

    def action_toggle_constants(self) -> None:
        """List the tensors of Constant nodes, too."""
        self.constants = not self.constants
        said = "are listed, too" if self.constants else "are not listed"
        self.notify(f"Tensors of Constant nodes {said}", timeout=2)
        self.list_again()

    def go_back(self) -> None:
        """Stop what runs, take back marks or the filter, or go back."""
        if not self.cancel_work() and not self.pane.clear():
            self.dismiss(None)

    def total(self, rows: Iterable[InitializerRow]) -> str:
        """Return what some rows hold in all."""
        return fmt.size(sum(row.nbytes or 0 for row in rows))
