"""The form of one connection."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.binding import BindingType
from textual.containers import Vertical
from textual.widget import Widget

from dld_tui.core.connections import store
from dld_tui.core.connections.form import ConnectionForm, connection_of, form_values
from dld_tui.core.connections.model import Connection
from dld_tui.core.errors import DldError, UsageError
from dld_tui.core.params import from_json
from dld_tui.widgets.commands import bindings_for
from dld_tui.widgets.frame import Frame
from dld_tui.widgets.host import host
from dld_tui.widgets.page import SubPage
from dld_tui.widgets.param_form import ParamForm


class TargetBox(Frame, Vertical):
    """The frame of the form."""


class TargetFormScreen(SubPage):
    """Adds a connection, or changes one.

    Args:
        connection: What to change; None adds one.
    """

    SCOPE = "target_form"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("target_form")
    CSS_PATH = "../styles/form.tcss"
    tab_title = "target"
    HELP = (
        "A name and a host are enough when ssh HOST works in a shell: the rest is what"
        " ~/.ssh/config says. No password is saved here; it is asked for when it is needed."
        " F5 saves, Esc closes."
    )

    def __init__(self, connection: Connection | None = None) -> None:
        super().__init__()
        self.connection = connection
        self.saved = ""
        """The name under which it was saved; empty when it was not."""

    def body(self) -> Iterable[Widget]:
        """Return the form."""
        values = form_values(self.connection) if self.connection else {}
        box = TargetBox(ParamForm(ConnectionForm, values))
        title = f"Target {self.connection.name}" if self.connection else "New target"
        box.frame(title, "F5 save  ^PgDn page  Esc close")
        yield box

    def on_mount(self) -> None:
        """Go to the first field."""
        self.query_one(ParamForm).focus_first()

    def facts(self) -> set[str]:
        """Return whether the form may be saved."""
        forms = self.query(ParamForm)
        return super().facts() | ({"valid"} if forms and forms.first().valid else set())

    def on_param_form_edited(self, event: ParamForm.Edited) -> None:
        """Grey saving while something is wrong."""
        self.refresh_bindings()

    def action_save(self) -> None:
        """Save the connection; says what is wrong with it."""
        try:
            self.saved = self._save()
        except DldError as error:
            host(self).show_error(error)
            return
        self.dismiss(None)

    def _save(self) -> str:
        values = self.query_one(ParamForm).values()
        connection = connection_of(from_json(ConnectionForm, values))
        before = self.connection.name if self.connection else ""
        if connection.name != before and connection.name in store.load():
            raise UsageError(f"there is a target {connection.name!r} already")
        store.save(connection)
        if before and connection.name != before:
            store.remove(before)
        return connection.name

    def action_next_page(self) -> None:
        """Show the next page of settings."""
        self.query_one(ParamForm).step_page(1)

    def action_previous_page(self) -> None:
        """Show the previous page of settings."""
        self.query_one(ParamForm).step_page(-1)
