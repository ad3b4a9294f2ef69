"""``dld convert``: one command a modification of a whole model."""

from __future__ import annotations

from dld_tui.cli.lazy import LazyGroup
from dld_tui.cli.table import CommandInfo

command = LazyGroup(
    (
        CommandInfo(
            "opset", "Convert to another version of the operators.", "dld_tui.cli.convert_opset"
        ),
    ),
    name="convert",
    help="Modify a whole model.",
    no_args_is_help=False,
)
