"""``dld mcp``: serve an agent."""

from __future__ import annotations

import os
from pathlib import Path

import click

from dld_tui.cli.command import Command
from dld_tui.cli.options import Measure
from dld_tui.core.errors import UnavailableError, UsageError
from dld_tui.core.process.installation import install_hint

_LIMIT_S = 600.0


@click.command("mcp", cls=Command)
@click.option(
    "--allow",
    multiple=True,
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Let the agent write below this folder; repeatable. By default it only reads.",
)
@click.option(
    "--time-limit",
    type=Measure("s", 1),
    default=_LIMIT_S,
    metavar="S",
    show_default=True,
    help="Time limit of each call.",
)
def command(allow: tuple[Path, ...], time_limit: float) -> None:
    """Serve an agent or an editor by the Model Context Protocol, on standard input and output.

    The agent gets commands of dld as tools. It reads models, reports and engine plans anywhere,
    writes below the allowed folders only, and runs no code of others.
    """
    for folder in allow:
        if not folder.is_dir():
            raise UsageError("it is not a folder", where=str(folder))
    try:
        from dld_tui.cli.agents.server import serve
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("anyio", "jsonschema", "mcp", "mcp_types"):
            raise
        raise UnavailableError(
            "the Model Context Protocol SDK is not installed", hint=install_hint("agents")
        ) from None
    serve([Path(os.path.realpath(folder)) for folder in allow], time_limit)
