"""``dld tool add``."""

from __future__ import annotations

import click

from dld_tui.cli.output import narrate
from dld_tui.core.config import config_path
from dld_tui.core.custom_tools import store
from dld_tui.core.custom_tools.model import DEFAULT_LIMIT_S, Tool, validate
from dld_tui.core.errors import UsageError
from dld_tui.core.paths import short


@click.command("add")
@click.argument("name")
@click.argument("application")
@click.argument("arguments", nargs=-1, metavar="[-- ARGUMENTS...]", type=click.UNPROCESSED)
@click.option(
    "--output",
    default="",
    metavar="SUFFIX",
    help="It writes a file with this suffix, such as .onnx, to $Output.",
)
@click.option("--open", "opens", is_flag=True, help="The user interface opens what it wrote.")
@click.option("--folder", default="", metavar="DIR", help="Where it runs, not the model's folder.")
@click.option(
    "--limit",
    default=DEFAULT_LIMIT_S,
    show_default=True,
    metavar="SECONDS",
    help="Stop it after so long; 0 lets it run.",
)
@click.option("--force", is_flag=True, help="Replace a tool of the same name.")
def command(
    name: str,
    application: str,
    arguments: tuple[str, ...],
    output: str,
    opens: bool,
    folder: str,
    limit: int,
    force: bool,
) -> None:
    """Save a tool under a name; nothing is run.

    In ARGUMENTS, $Model is the model's file, $Output the file to write, $Folder the model's
    folder, and $$ a dollar: quote them for your shell. Without ARGUMENTS it gets $Model.
    """
    tool = validate(
        Tool(name, application, arguments or Tool.arguments, output, opens, folder, limit)
    )
    if not force and name in store.load():
        raise UsageError(f"there is a tool {name!r} already", hint="Add --force to replace it")
    store.save(tool)
    narrate(f"{name}: saved in {short(config_path())}")
