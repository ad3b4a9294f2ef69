"""``dld target clean``."""

from __future__ import annotations

import click

from dld_tui.cli.asking import ask_on_terminal
from dld_tui.cli.names import TARGET
from dld_tui.cli.output import narrate
from dld_tui.core import fmt
from dld_tui.core.connections import store


@click.command("clean")
@click.argument("name", type=TARGET)
@click.option(
    "--days", metavar="N", type=click.FloatRange(min=0), default=14.0, show_default=True,
    help="Only what was not used for so long.",
)  # fmt: skip
@click.option(
    "--all", "everything", is_flag=True, help="Remove all that was put there, environments too."
)
@click.option("--unfetched", is_flag=True, help="Results that were never fetched, too.")
def command(name: str, days: float, everything: bool, unfetched: bool) -> None:
    """Remove ended jobs and the files that were sent to a target.

    Jobs that run are left alone, and so are results that were not fetched. What is removed is sent
    again when it is needed.
    """
    from dld_tui.targets.ssh.target import SshTarget

    ask_on_terminal()
    target = SshTarget(store.find(name))
    if everything:
        target.wipe(results=unfetched)
        narrate(f"nothing of ours is left on {name}")
        return
    cleaned = target.clean(days, results=unfetched)
    removed = f"{fmt.plural(cleaned.jobs, 'job')} and {fmt.size(cleaned.bytes)} of files"
    narrate(f"{removed} are removed")
    for job in cleaned.unfetched:
        narrate(f"job {job} stays, its result was not fetched: dld target attach {job}")
