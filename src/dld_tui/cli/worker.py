"""``dld worker``: read one request, run it, and print events."""

from __future__ import annotations

import click


@click.command("worker", hidden=True)
def command() -> None:
    """Serve one job: a request as JSON on standard input, events as JSON lines on output."""
    from dld_tui.activities.worker import main

    main()
