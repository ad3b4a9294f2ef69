"""``dld tool``: the programs of the user that are run on models."""

from __future__ import annotations

from dld_tui.cli.lazy import LazyGroup
from dld_tui.cli.table import CommandInfo

_MODULE = "dld_tui.cli.tool_"

command = LazyGroup(
    (
        CommandInfo("list", "List the tools.", f"{_MODULE}list"),
        CommandInfo("add", "Save a tool.", f"{_MODULE}add"),
        CommandInfo("remove", "Forget tools.", f"{_MODULE}remove"),
        CommandInfo("run", "Run a tool on a model.", f"{_MODULE}run"),
    ),
    name="tool",
    help="Programs of yours that are run on models.",
    no_args_is_help=False,
)
