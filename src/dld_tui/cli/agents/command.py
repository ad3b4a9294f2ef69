"""``dld mcp``: serve an agent."""

from __future__ import annotations

import os
from pathlib import Path

from dld_tui.cli.command import command_for
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UnavailableError, UsageError
from dld_tui.core.params import param
from dld_tui.core.process.installation import install_hint

_LIMIT_S = 600.0


@dataclass(frozen=True)
class Request:
    """The arguments and options of ``dld mcp``."""

    allow: tuple[Path, ...] = param(
        (), label="Allow", metavar="FOLDER",
        help="Let the agent write below this folder; repeatable. By default it only reads.",
    )  # fmt: skip
    time_limit: float = param(
        _LIMIT_S, label="Time limit", metavar="S", unit="s", minimum=1,
        help="Time limit of each call.",
    )  # fmt: skip


@command_for("mcp", Request)
def command(asked: Request) -> None:
    """Serve an agent or an editor by the Model Context Protocol, on standard input and output.

    The agent gets commands of dld as tools. It reads models, reports and engine plans anywhere,
    writes below the allowed folders only, and runs no code of others.
    """
    for folder in asked.allow:
        if not folder.is_dir():
            wrong = "it is not a folder" if folder.exists() else "the folder does not exist"
            raise UsageError(wrong, where=str(folder), hint="Name folders that exist")
    try:
        from dld_tui.cli.agents.server import serve
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("anyio", "jsonschema", "mcp", "mcp_types"):
            raise
        raise UnavailableError(
            "the Model Context Protocol SDK is not installed", hint=install_hint("agents")
        ) from None
    serve([Path(os.path.realpath(folder)) for folder in asked.allow], asked.time_limit)
