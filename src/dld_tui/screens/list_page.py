"""A page that is a list: a table, the row under its cursor, and the details of that row."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import ClassVar, Generic

from textual.widget import Widget

from dld_tui.core.tables.table import Row, Table
from dld_tui.core.text import fit, visible
from dld_tui.widgets.charts.bars import Line
from dld_tui.widgets.lists.line_source import ListSource
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.table_view import TableView
from dld_tui.widgets.shell.command_dispatch import hint
from dld_tui.widgets.shell.page import Page

LABEL = 18
"""Cells of the names in the pane below a list."""


class ListTable(TableView):
    """The rows of a list page."""


class AboutRow(LineView):
    """The details of the row under the cursor."""


class ListPage(Page, Generic[Row]):
    """Base of these pages; override :meth:`table`, and what else applies."""

    AUTO_FOCUS: ClassVar[str | None] = "ListTable"
    LIST_TITLE: ClassVar[str] = ""
    LIST_KEYS: ClassVar[str] = ""
    LIST_EMPTY: ClassVar[str] = ""
    ROW_FACT: ClassVar[str] = ""
    """The fact that holds while a row is under the cursor."""
    ABOUT_TITLE: ClassVar[str] = ""
    """The title of a pane about the row, below the list; empty for none."""

    _about: Hashable | None = None
    """The row that the pane below is of."""

    def table(self) -> Table[Row]:
        """Return the rows."""
        raise NotImplementedError

    def body(self) -> Iterable[Widget]:
        view = ListTable(empty=hint(self.LIST_EMPTY))
        view.frame.show(self.LIST_TITLE, self.LIST_KEYS)
        yield view
        if self.ABOUT_TITLE:
            about = AboutRow(ListSource([]), gutter=False)
            about.frame.show(self.ABOUT_TITLE)
            yield about

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
        """Show the details of the row, and the commands that fit."""
        if self.ABOUT_TITLE:
            before, self._about = self._about, self.view.key_at_cursor()
            lines = ListSource(self.about())
            self.query_one(AboutRow).set_lines(lines, keep=before == self._about)
        self.refresh_bindings()

    def about(self) -> Sequence[Line]:
        """Return the details of the row under the cursor."""
        return ()

    def activate(self) -> None:
        """Do what Enter and a double click on a row are for."""

    def facts(self) -> set[str]:
        has_row = bool(self.ROW_FACT) and self.row is not None
        return super().facts() | ({self.ROW_FACT} if has_row else set())

    def on_line_view_cursor_moved(self, event: LineView.CursorMoved) -> None:
        """Show the details of the row."""
        if isinstance(event.view, ListTable):
            self.row_changed()

    def on_line_view_activated(self, event: LineView.Activated) -> None:
        """Do what the row is for."""
        if isinstance(event.view, ListTable):
            event.stop()
            self.activate()


def labelled(pairs: Iterable[tuple[str, str]]) -> list[Line]:
    """Return names and foreign texts as the lines of the pane below a list."""
    return [[(fit(label, LABEL), "dim"), (visible(text), "")] for label, text in pairs]
