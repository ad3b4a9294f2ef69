"""``dld target list``."""

from __future__ import annotations

import click

from dld_tui.cli.output import Column, narrate, write_json, write_table
from dld_tui.core.connections import store
from dld_tui.core.connections.form import form_values
from dld_tui.core.connections.model import Connection
from dld_tui.core.text import visible

_COLUMNS = (
    Column("name"),
    Column("address", flexible=True),
    Column("auth"),
    Column("way", flexible=True),
    Column("launcher", flexible=True),
)


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(as_json: bool) -> None:
    """List the targets, without connecting to them."""
    connections = list(store.load().values())
    if as_json:
        write_json({"targets": [{**form_values(connection)} for connection in connections]})
    elif connections:
        write_table(_COLUMNS, [[visible(cell) for cell in _row(each)] for each in connections])
    else:
        narrate("There is no target yet. Add one with dld target add NAME --host HOST")


def _row(connection: Connection) -> list[str]:
    way = connection.jump or connection.proxy_command
    return [
        connection.name,
        connection.address,
        connection.auth,
        way or "–",
        " ".join(connection.launcher) or "–",
    ]
