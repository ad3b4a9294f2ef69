"""``dld convert fp16``: a model in float16."""

from __future__ import annotations

from typing import cast

from dld_tui.cli.activity import Result, activity_command
from dld_tui.cli.convert_result import show_result
from dld_tui.cli.output import write
from dld_tui.core.conversion.fp16_text import fp16_lines
from dld_tui.core.conversion.values_text import is_wrong
from dld_tui.core.errors import ExitStatus
from dld_tui.core.types import JSON


def _show(result: Result, as_json: bool) -> int:
    status = show_result(result, as_json)
    for line in () if as_json else fp16_lines(result, all_losses=_all_asked(result)):
        write(line)
    values = cast("dict[str, JSON]", result["values"])
    return ExitStatus.FOUND if is_wrong(values) else status


def _all_asked(result: Result) -> bool:
    return cast("bool", result.get("range_check", False))


command = activity_command("fp16", "convert_fp16", _show)
"""The command."""
