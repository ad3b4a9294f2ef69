"""``dld convert precisions``: casts that give layers their precisions."""

from __future__ import annotations

from typing import cast

from dld_tui.cli.activity import Result, activity_command
from dld_tui.cli.convert_result import show_result
from dld_tui.cli.output import write, write_json
from dld_tui.core.conversion.loss_text import loss_lines
from dld_tui.core.errors import ExitStatus
from dld_tui.core.types import JSON


def _show(result: Result, as_json: bool) -> int:
    refused = cast("dict[str, JSON]", result["figures"])["refused"]
    status: int = ExitStatus.FOUND if refused else ExitStatus.DONE
    for line in () if as_json else cast("list[str]", result["lines"]):
        write(line)
    if "path" in result:
        return max(status, show_result(result, as_json))
    if as_json:
        write_json(result)
    for line in () if as_json else loss_lines(cast("list[dict[str, JSON]]", result["losses"])):
        write(line)
    return status


command = activity_command("precisions", "convert_precisions", _show)
"""The command."""
