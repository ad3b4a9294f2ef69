"""``dld tool add``."""

from __future__ import annotations

from typing import Any

import click

from dld_tui.cli.options import parameters_of, request_from
from dld_tui.cli.output import narrate
from dld_tui.core.config import config_path
from dld_tui.core.custom_tools import store
from dld_tui.core.custom_tools.form import ToolForm, line_of, tool_of
from dld_tui.core.errors import UsageError
from dld_tui.core.paths import short

_HELP = """Save a tool under a name; nothing is run.

In ARGUMENTS, $Model is the model's file, $Output the file to write, $Folder the model's folder, and
$$ a dollar: quote them for your shell. Without ARGUMENTS it gets $Model."""


def _callback(arguments: tuple[str, ...], force: bool, **values: Any) -> None:
    line = line_of(arguments) if arguments else None  # as a person types it into the form
    tool = tool_of(request_from(ToolForm, {**values, "arguments": line}))
    if not force and tool.name in store.load():
        raise UsageError(f"there is a tool {tool.name!r} already", hint="Add --force to replace it")
    store.save(tool)
    narrate(f"{tool.name}: saved in {short(config_path())}")


def _parameters() -> list[click.Parameter]:
    declared = [one for one in parameters_of(ToolForm) if one.name != "arguments"]
    arguments = click.Argument(
        ["arguments"], nargs=-1, metavar="[-- ARGUMENTS...]", type=click.UNPROCESSED
    )
    return [
        *(one for one in declared if isinstance(one, click.Argument)),
        arguments,
        *(one for one in declared if isinstance(one, click.Option)),
        click.Option(["--force"], is_flag=True, help="Replace a tool of the same name."),
    ]


command = click.Command("add", params=_parameters(), callback=_callback, help=_HELP)
