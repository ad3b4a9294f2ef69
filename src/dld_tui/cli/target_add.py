"""``dld target add``."""

from __future__ import annotations

from typing import Any

import click

from dld_tui.cli.options import parameters_of, request_from
from dld_tui.cli.output import narrate
from dld_tui.core.connections import store
from dld_tui.core.connections.form import ConnectionForm, connection_of
from dld_tui.core.errors import UsageError
from dld_tui.core.params import validate
from dld_tui.core.paths import short


def _add(force: bool, **values: Any) -> None:
    form = request_from(ConnectionForm, values)
    validate(form)
    connection = connection_of(form)
    if not force and connection.name in store.load():
        hint = f"Change it with dld target edit {connection.name}, or add --force"
        raise UsageError(f"there is a target {connection.name!r} already", hint=hint)
    store.save(connection)
    narrate(f"{connection.name}: saved in {short(store.store_path())}")
    narrate(f"Try it with dld target test {connection.name}")


command = click.Command(
    "add",
    callback=_add,
    params=[
        *parameters_of(ConnectionForm),
        click.Option(["--force"], is_flag=True, help="Replace a target of the same name."),
    ],
    help="Save a connection under a name. Nothing is connected to, and no secret is saved.",
)
