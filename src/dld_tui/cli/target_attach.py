"""``dld target attach``."""

from __future__ import annotations

import click

from dld_tui.cli.asking import ask_on_terminal
from dld_tui.cli.names import JOB
from dld_tui.cli.narrator import Narrator
from dld_tui.cli.output import narrate, write, write_json
from dld_tui.core.connections import store
from dld_tui.core.text import visible


@click.command("attach")
@click.argument("job", type=JOB)
@click.option("--cancel", is_flag=True, help="Stop the job instead; nothing of it is left.")
@click.option("--json", "as_json", is_flag=True, help="Print its result as one JSON document.")
def command(job: str, cancel: bool, as_json: bool) -> None:
    """Go on with a job on a target whose connection was lost, and fetch its result.

    JOB is the name that `dld target jobs` lists, or the end of it. The result goes to the path
    that was asked for when the job was started; a file that is there by now is replaced.
    """
    from dld_tui.targets.ssh.results import JobsStore
    from dld_tui.targets.ssh.target import SshTarget

    stored = JobsStore().find(job)
    ask_on_terminal()
    target = SshTarget(store.find(stored.target))
    with Narrator() as narrator, target.attach(stored) as running:
        if cancel:
            running.cancel()
            running.wait()
            narrate(f"job {stored.id} is stopped")
            return
        result = running.result(narrator.event)
    if as_json:
        write_json(result)
        return
    for output in stored.outputs:
        if output.needed:
            write(visible(output.path))
