"""The form of one connection."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.binding import BindingType
from textual.widget import Widget

from dld_tui.core.connections import store
from dld_tui.core.connections.form import ConnectionForm, connection_of, form_values
from dld_tui.core.connections.model import Connection
from dld_tui.core.errors import UsageError
from dld_tui.core.params import from_json
from dld_tui.screens.form_page import SavingForm
from dld_tui.widgets.commands import bindings_for
from dld_tui.widgets.param_form import ParamForm

_KEYS = "{target_form.save} save  {target_form.next_page} page  {page.close} close"


class TargetFormScreen(SavingForm):
    """Adds a connection, or changes one.

    Args:
        connection: What to change; None adds one.
    """

    SCOPE = "target_form"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("target_form")
    tab_title = "target"
    HELP = (
        "A name and a host are enough when ssh HOST works in a shell: the rest is what"
        " ~/.ssh/config says. No password is saved here; it is asked for when it is needed."
        " {target_form.save} saves, {page.close} closes."
    )

    def __init__(self, connection: Connection | None = None) -> None:
        super().__init__()
        self.connection = connection

    def body(self) -> Iterable[Widget]:
        """Return the form."""
        values = form_values(self.connection) if self.connection else {}
        title = f"Target {self.connection.name}" if self.connection else "New target"
        form = ParamForm(ConnectionForm, values)
        yield self.boxed(title, _KEYS, form)

    def save(self) -> str:
        """Save the connection and return its name."""
        values = self.form.values()
        connection = connection_of(from_json(ConnectionForm, values))
        before = self.connection.name if self.connection else ""
        if connection.name != before and connection.name in store.load():
            raise UsageError(f"there is a target {connection.name!r} already")
        store.save(connection)
        if before and connection.name != before:
            store.remove(before)
        return connection.name
