"""``dld completion``: scripts that make a shell complete commands, options and files."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from dld_tui.cli.output import write

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print a completion script; docs/command-line.md says where each shell wants it."""
    from dld_tui.cli.group import dld
    from dld_tui.cli.main import COMPLETE

    script = get_completion_class(shell)
    assert script is not None
    write(script(dld, {}, "dld", COMPLETE).source())
