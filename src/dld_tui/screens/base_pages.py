"""Base classes of pages: a list with the details of its row, and a form."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import ClassVar, Generic

from textual.containers import Vertical
from textual.widget import Widget

from dld_tui.core.errors import DldError
from dld_tui.core.tables.table import Row, Table
from dld_tui.core.text import fit, visible
from dld_tui.styles import STYLES
from dld_tui.widgets.charts.bars import Line
from dld_tui.widgets.forms.param_form import ParamForm
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.styled import ListSource
from dld_tui.widgets.lists.table_view import ListTable
from dld_tui.widgets.shell.command_dispatch import hint
from dld_tui.widgets.shell.frame import Framed
from dld_tui.widgets.shell.page import Page, host

LABEL = 18
"""Cells of the names in the pane below a list."""


class AboutRow(LineView):
    """The details of the row under the cursor."""


class ListPage(Page, Generic[Row]):
    """Base of these pages; override :meth:`table`, and what else applies."""

    AUTO_FOCUS: ClassVar[str | None] = "ListTable"
    LIST_TITLE: ClassVar[str] = ""
    LIST_KEYS: ClassVar[str] = ""
    LIST_EMPTY: ClassVar[str] = ""
    ROW_CONDITION: ClassVar[str] = ""
    """The condition that holds while a row is under the cursor."""
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

    def conditions(self) -> set[str]:
        has_row = bool(self.ROW_CONDITION) and self.row is not None
        return super().conditions() | ({self.ROW_CONDITION} if has_row else set())

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
    """Return names and untrusted texts as the lines of the pane below a list."""
    return [[(fit(label, LABEL), "dim"), (visible(text), "")] for label, text in pairs]


class FormBox(Framed, Vertical):
    """The frame of a form."""


class FormPage(Page):
    """Base of the pages with a form; the condition ``valid`` means that no field has an error."""

    MORE_SCOPES: ClassVar[tuple[str, ...]] = ("page",)
    CSS_PATH = STYLES / "form.tcss"

    def boxed(self, title: str, keys: str, form: ParamForm, *below: Widget) -> FormBox:
        """Return the frame with the form, and what is below it."""
        box = FormBox(form, *below)
        box.frame.show(title, keys)
        return box

    @property
    def form(self) -> ParamForm:
        """The form."""
        return self.query_one(ParamForm)

    def on_mount(self) -> None:
        """Go to the first field."""
        self.form.focus_first()

    def conditions(self) -> set[str]:
        forms = self.query(ParamForm)
        return super().conditions() | ({"valid"} if forms and forms.first().valid else set())

    def on_param_form_edited(self, event: ParamForm.Edited) -> None:
        """Grey what cannot be done while something is wrong."""
        self.refresh_bindings()

    def action_next_page(self) -> None:
        self.form.step_page(1)

    def action_previous_page(self) -> None:
        self.form.step_page(-1)

    saved = ""
    """The name under which it was saved; empty when it was not."""

    def save(self) -> str:
        """Save what the form says, and return its name; empty where it is not saved yet.

        Raises:
            DldError: It cannot be saved: the form stays.
        """
        raise NotImplementedError

    def action_save(self) -> None:
        try:
            self.saved = self.save()
        except DldError as error:
            host(self).show_error(error)
        else:
            if self.saved:
                self.dismiss(None)
