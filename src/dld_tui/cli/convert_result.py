"""What the commands of ``dld convert`` print."""

from __future__ import annotations

from typing import cast

from dld_tui.cli.activity import Result
from dld_tui.cli.output import narrate, write, write_json
from dld_tui.core.conversion.report_text import report_lines
from dld_tui.core.conversion.values_text import is_wrong
from dld_tui.core.errors import ExitStatus
from dld_tui.core.text import visible
from dld_tui.core.types import JSON


def show_result(result: Result, as_json: bool) -> int:
    """Print the summary of a conversion; exit status 1 when its values are wrong."""
    for remark in cast("list[JSON]", result["remarks"]):
        narrate(str(remark))
    if as_json:
        write_json(result)
    else:
        for line in report_lines(result):
            write(line)
        write(f"written to {visible(str(result['path']))}")
    return ExitStatus.FOUND if is_wrong(result.get("values")) else ExitStatus.DONE
