"""``dld target edit``."""

from __future__ import annotations

from typing import Any

import click

from dld_tui.cli.names import TARGET
from dld_tui.cli.options import parameters_of
from dld_tui.cli.output import narrate
from dld_tui.core.connections import store
from dld_tui.core.connections.form import ConnectionForm, changed_by
from dld_tui.core.connections.store import changed
from dld_tui.core.errors import UsageError


def _edit(rename: str | None, clear_env: bool, **values: Any) -> None:
    name = str(values.pop("name"))
    connection = store.find(name)
    if clear_env:
        connection = changed(connection, environment={})
    connection = changed_by(connection, values)
    if rename is not None and rename != name:
        if rename in store.load():
            raise UsageError(f"there is a target {rename!r} already")
        connection = changed(connection, name=rename)
    store.save(connection)
    if connection.name != name:
        store.remove(name)
    narrate(f"{connection.name}: saved")


def _parameters() -> list[click.Parameter]:
    found = parameters_of(ConnectionForm)
    for parameter in found:
        if isinstance(parameter, click.Option):
            parameter.required = False
        else:
            parameter.type = TARGET
    return found


command = click.Command(
    "edit",
    callback=_edit,
    params=[
        *_parameters(),
        click.Option(["--rename"], metavar="NAME", help="Call it so from now on."),
        click.Option(["--clear-env"], is_flag=True, help="Forget the variables it has."),
    ],
    help="Change some settings of a target; the others stay. An empty text takes a setting back.",
)
