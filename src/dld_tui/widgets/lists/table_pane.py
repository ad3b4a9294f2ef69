"""A table in a frame, with a filter above it and what is marked below it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input

from dld_tui.widgets.lists.line_view import MarksChanged
from dld_tui.widgets.lists.search import FilterBar
from dld_tui.widgets.lists.styled import Rows, wrap
from dld_tui.widgets.lists.table_view import TableView
from dld_tui.widgets.shell.frame import Framed


class TablePane(Framed, Vertical):
    """Override :meth:`fill`, which shows the rows that pass :attr:`filter`."""

    VIEW: ClassVar[type[TableView]] = TableView
    VIEW_ID: ClassVar[str | None] = None
    FILTER_HELP: ClassVar[str] = ""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, classes="frame")
        self.filter = ""

    def compose(self) -> ComposeResult:
        """Lay out the filter, the table and the lines of what is marked."""
        yield FilterBar(self.FILTER_HELP, "table-filter")
        view = self.VIEW(id=self.VIEW_ID)
        view.finder.open_filter = self.open_filter
        yield view
        yield Rows([[]], id="sums")

    @property
    def table(self) -> TableView:
        """The table view."""
        return self.query_one(TableView)

    def on_mount(self) -> None:
        """Start without a filter, and with nothing marked."""
        self.query_one(FilterBar).display = False
        self.query_one("#sums").display = False

    def fill(self) -> None:
        """Show the rows that pass the filter."""
        raise NotImplementedError

    def clear(self) -> bool:
        """Take back one thing: the marks or the filter; False when there is none."""
        if self.table.marks:
            self.table.set_marks(set())
        elif self.filter:
            self.change_filter("")
        else:
            return False
        return True

    # The filter

    def open_filter(self) -> None:
        """Ask for the filter; rows follow while one types."""
        self.query_one(FilterBar).display = True
        self.query_one(Input).focus()

    def change_filter(self, text: str) -> None:
        """Show only the rows that pass a filter."""
        self.filter = text
        field = self.query_one(Input)
        if field.value != text:
            field.value = text
        self.query_one(FilterBar).display = bool(text) or field.has_focus
        self.fill()

    @on(FilterBar.Changed)
    def _filter_typed(self, event: FilterBar.Changed) -> None:
        event.stop()
        if event.text != self.filter:
            self.change_filter(event.text)

    @on(FilterBar.Left)
    def _filter_left(self, event: FilterBar.Left) -> None:
        event.stop()
        if event.clear:
            self.change_filter("")
        self.table.focus()
        self.query_one(FilterBar).display = bool(self.filter)

    # What is marked

    def sums(self, marks: set[Hashable]) -> Sequence[str]:
        """Return what the marked rows add up to, in lines; nothing without any."""
        return ()

    @on(MarksChanged)
    def _marked(self, event: MarksChanged) -> None:
        event.stop()
        texts = self.sums(event.marks) if event.marks else ()
        line = self.query_one("#sums", Rows)
        line.display = bool(texts)
        room = max(self.size.width - 2, 20)
        line.set_rows(
            [
                [(f" {part}", "dim" if number else "accent")]
                for number, text in enumerate(texts)
                for part in wrap(text, room)
            ]
        )
