"""``dld tool remove``."""

from __future__ import annotations

import click

from dld_tui.cli.names import TOOL
from dld_tui.cli.output import narrate
from dld_tui.core.custom_tools import store


@click.command("remove")
@click.argument("names", type=TOOL, nargs=-1, required=True, metavar="NAME...")
def command(names: tuple[str, ...]) -> None:
    """Forget tools. The programs stay where they are."""
    for name in names:
        store.find(name)  # nothing is removed when one of the names is wrong
    for name in dict.fromkeys(names):
        store.remove(name)
        narrate(f"{name}: removed")
