"""``dld completion``: scripts that make a shell complete commands, options and files."""

from __future__ import annotations

import click
from click.shell_completion import add_completion_class, get_completion_class

from dld_tui.cli.output import write
from dld_tui.cli.tcsh import TcshComplete

SHELLS = ("bash", "zsh", "fish", "tcsh")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print a completion script; docs/command-line.md says where each shell wants it."""
    from dld_tui.cli.group import dld
    from dld_tui.cli.main import COMPLETE

    add_completion_class(TcshComplete)
    script = get_completion_class(shell)
    assert script is not None
    write(script(dld, {}, "dld", COMPLETE).source())
