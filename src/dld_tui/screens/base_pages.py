"""Base classes of pages: a list with the details of its row, and a form."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import ClassVar

from textual.containers import Vertical
from textual.widget import Widget

from dld_tui.core.errors import DldError
from dld_tui.core.tables.table import Row
from dld_tui.core.text import fit, visible
from dld_tui.screens.rows_page import RowsPage
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


class ListPage(RowsPage[Row]):
    """A list, and a pane about the row at its cursor."""

    AUTO_FOCUS: ClassVar[str | None] = "ListTable"
    LIST_TITLE: ClassVar[str] = ""
    LIST_KEYS: ClassVar[str] = ""
    ABOUT_TITLE: ClassVar[str] = ""
    """The title of a pane about the row, below the list; empty for none."""

    _about: Hashable | None = None
    """The row that the pane below is of."""

    def body(self) -> Iterable[Widget]:
        view = ListTable(empty=hint(self.LIST_EMPTY))
        view.frame.show(self.LIST_TITLE, self.LIST_KEYS)
        yield view
        if self.ABOUT_TITLE:
            about = AboutRow(ListSource([]), gutter=False)
            about.frame.show(self.ABOUT_TITLE)
            yield about

    def row_changed(self) -> None:
        """Show the details of the row, and the commands that fit."""
        if self.ABOUT_TITLE:
            before, self._about = self._about, self.view.key_at_cursor()
            lines = ListSource(self.about())
            self.query_one(AboutRow).set_lines(lines, keep=before == self._about)
        super().row_changed()

    def about(self) -> Sequence[Line]:
        """Return the details of the row under the cursor."""
        return ()


def labelled(pairs: Iterable[tuple[str, str]]) -> list[Line]:
    """Return names and untrusted texts as the lines of the pane below a list."""
    return [[(fit(label, LABEL), "dim"), (visible(text), "")] for label, text in pairs]


# --- pages with a form ---------------------------------------------------------------------------


class FormBox(Framed, Vertical):
    """The frame of a form."""


class FormPage(Page):
    """Base of the pages with a form; the fact ``valid`` means that no field has an error."""

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

    def facts(self) -> set[str]:
        forms = self.query(ParamForm)
        return super().facts() | ({"valid"} if forms and forms.first().valid else set())

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
