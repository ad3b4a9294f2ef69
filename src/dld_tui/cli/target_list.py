"""``dld target list``."""

from __future__ import annotations

import click

from dld_tui.cli.output import narrate, write_json, write_table
from dld_tui.core.connections import store
from dld_tui.core.connections.form import form_values, target_table


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(as_json: bool) -> None:
    """List the targets, without connecting to them."""
    connections = list(store.load().values())
    if as_json:
        write_json({"targets": [{**form_values(connection)} for connection in connections]})
    elif connections:
        write_table(target_table(connections))
    else:
        narrate("There is no target yet. Add one with dld target add NAME --host HOST")
