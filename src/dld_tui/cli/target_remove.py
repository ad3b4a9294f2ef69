"""``dld target remove``."""

from __future__ import annotations

import click

from dld_tui.cli.names import TARGET
from dld_tui.cli.output import narrate
from dld_tui.core.connections import store
from dld_tui.core.errors import UsageError


@click.command("remove")
@click.argument("names", type=TARGET, nargs=-1, required=True, metavar="NAME...")
def command(names: tuple[str, ...]) -> None:
    """Forget targets and their secrets. What lies on the machines stays there."""
    from dld_tui.targets.ssh.clear_secrets import forget_secrets

    known = store.load()
    for name in names:
        if name not in known:
            hint = f"Known targets: {', '.join(known)}" if known else "There is none"
            raise UsageError(f"there is no target {name!r}", hint=hint)
    for name in dict.fromkeys(names):
        store.remove(name)
        if known[name].remember == "keyring":
            forget_secrets(known[name])
        narrate(f"{name}: removed; {known[name].directory} on {known[name].address} stays")
