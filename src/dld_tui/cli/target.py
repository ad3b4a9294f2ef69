"""``dld target``: one command for each thing that is done with saved connections."""

from __future__ import annotations

from dld_tui.cli.lazy import LazyGroup
from dld_tui.cli.table import CommandInfo

_MODULE = "dld_tui.cli.target_"

command = LazyGroup(
    (
        CommandInfo("list", "List the targets.", f"{_MODULE}list"),
        CommandInfo("show", "Print the settings of a target.", f"{_MODULE}show"),
        CommandInfo("add", "Save a connection.", f"{_MODULE}add"),
        CommandInfo("edit", "Change a connection.", f"{_MODULE}edit"),
        CommandInfo("remove", "Forget a connection.", f"{_MODULE}remove"),
        CommandInfo("test", "Connect, and say what works.", f"{_MODULE}probe"),
        CommandInfo("jobs", "List the jobs on targets.", f"{_MODULE}jobs"),
        CommandInfo("attach", "Go on with a job, and fetch its result.", f"{_MODULE}attach"),
        CommandInfo("clean", "Remove what was sent to a target.", f"{_MODULE}clean"),
    ),
    name="target",
    help="Machines that are reached over SSH: where activities run with --target NAME.",
    no_args_is_help=False,
)
