"""Base class of pages with a list of rows."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar, Generic

from dld_tui.core.tables.table import Row, Table
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.table_view import ListTable
from dld_tui.widgets.shell.page import Page


class RowsPage(Page, Generic[Row]):
    """Base of these pages; override :meth:`table`, and what else applies."""

    LIST_EMPTY: ClassVar[str] = ""
    """What is shown without rows."""
    ROW_FACT: ClassVar[str] = ""
    """The fact that holds while a row is under the cursor."""

    def table(self) -> Table[Row]:
        """Return the rows."""
        raise NotImplementedError

    @property
    def view(self) -> ListTable:
        """The list."""
        return self.query_one(ListTable)

    @property
    def row(self) -> Row | None:
        """The row under the cursor."""
        views = self.query(ListTable) if self.is_mounted else None
        row: Row | None = views.first().item_at_cursor() if views else None
        return row

    def show_rows(self, select: Hashable | None = None) -> None:
        """List the rows as they are now, the cursor on one of them or where it was."""
        self.view.set_table(self.table())
        if select is not None:
            self.view.go_to_key(select)
        self.row_changed()

    def row_changed(self) -> None:
        """Show the commands that fit."""
        self.refresh_bindings()

    def activate(self) -> None:
        """Do what Enter and a double click on a row are for."""

    def facts(self) -> set[str]:
        """Return what holds now."""
        has_row = bool(self.ROW_FACT) and self.row is not None
        return super().facts() | ({self.ROW_FACT} if has_row else set())

    def on_line_view_cursor_moved(self, event: LineView.CursorMoved) -> None:
        """Show what belongs to the row."""
        if isinstance(event.view, ListTable):
            self.row_changed()

    def on_line_view_activated(self, event: LineView.Activated) -> None:
        """Do what the row is for."""
        if isinstance(event.view, ListTable):
            event.stop()
            self.activate()
