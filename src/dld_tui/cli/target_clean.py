"""``dld target clean``."""

from __future__ import annotations

import click

from dld_tui.cli.asking import ask_on_terminal
from dld_tui.cli.output import narrate
from dld_tui.core import fmt
from dld_tui.core.connections import store


@click.command("clean")
@click.argument("name")
@click.option(
    "--days", metavar="N", type=click.FloatRange(min=0), default=14.0, show_default=True,
    help="Only what was not used for so long.",
)  # fmt: skip
@click.option(
    "--all", "everything", is_flag=True, help="Remove all that was put there, environments too."
)
def command(name: str, days: float, everything: bool) -> None:
    """Remove ended jobs and the files that were sent to a target.

    Jobs that run are left alone. What is removed is sent again when it is needed.
    """
    from dld_tui.targets.ssh.target import SshTarget

    ask_on_terminal()
    target = SshTarget(store.find(name))
    if everything:
        target.wipe()
        narrate(f"nothing of ours is left on {name}")
        return
    jobs, freed = target.clean(days)
    narrate(f"{fmt.plural(jobs, 'job')} and {fmt.size(freed)} of files are removed")
