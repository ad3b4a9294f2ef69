"""``dld target show``."""

from __future__ import annotations

import click

from dld_tui.cli.names import TARGET
from dld_tui.cli.output import write, write_json
from dld_tui.core.connections import store
from dld_tui.core.connections.form import form_values, settings_shown
from dld_tui.core.connections.store import Connection
from dld_tui.core.text import visible

_LABEL = 18


@click.command("show")
@click.argument("name", type=TARGET)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(name: str, as_json: bool) -> None:
    """Print the settings of a target."""
    connection = store.find(name)
    if as_json:
        write_json(form_values(connection))
    else:
        print_connection(connection)


def print_connection(connection: Connection) -> None:
    """Print what is set, one setting a line."""
    for label, text in settings_shown(connection):
        write(f"{label:<{_LABEL}}{visible(text)}")
