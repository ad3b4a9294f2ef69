"""The critical path of a profile: what parallelism could save, and where to cut a model in two."""

from __future__ import annotations

from dld_tui.core.command_line import CommandInfo

COMMAND = CommandInfo(
    "path",
    "Find the critical path of a profile.",
    activity="path",
    example="run.dldprof",
    group="Measure",
)
