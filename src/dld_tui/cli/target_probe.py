"""``dld target test``."""

from __future__ import annotations

import click

from dld_tui.cli.asking import ask_on_terminal
from dld_tui.cli.names import TARGET
from dld_tui.cli.output import write, write_json
from dld_tui.core.codec import encode
from dld_tui.core.connections import prompts, store
from dld_tui.core.connections.prompts import BAD, GOOD, WEAK, Step
from dld_tui.core.errors import UnavailableError
from dld_tui.core.text import visible

_MARKS = {GOOD: "✓", WEAK: "!", BAD: "✗"}
_NAME = 15


@click.command("test")
@click.argument("name", type=TARGET)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(name: str, as_json: bool) -> None:
    """Connect to a target and say each step, with the remedy for what fails.

    A new host is asked about with its fingerprint, and passwords on the terminal. The exit status
    is 4 when the target cannot be used.
    """
    connection = store.find(name)
    from dld_tui.targets.ssh.probe import examine

    ask_on_terminal()

    def show(step: Step) -> None:
        if as_json:
            return
        write(f"{_MARKS[step.state]} {step.name:<{_NAME}} {visible(step.found)}")
        if step.fix:
            write(f"  {'':<{_NAME}} → {visible(step.fix)}")

    steps = examine(connection, prompts.current(), show)
    bad = [step for step in steps if step.state == BAD]
    if as_json:
        found = encode(steps)
        write_json({"target": name, "usable": not bad, "steps": [*found]})
    for step in bad:
        where = f"target {name}"
        raise UnavailableError(f"{step.name}: {step.found}", where=where, hint=step.fix or None)
