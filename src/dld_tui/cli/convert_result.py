"""What the commands of ``dld convert`` print."""

from __future__ import annotations

from typing import cast

from dld_tui.cli.activity import Result
from dld_tui.cli.output import narrate, write, write_json
from dld_tui.core.conversion.summary import summary_lines
from dld_tui.core.errors import ExitStatus
from dld_tui.core.text import visible
from dld_tui.core.types import JSON


def show_result(result: Result, as_json: bool) -> int:
    """Print the summary of a conversion; exit status 1 when something was left undone."""
    for remark in cast("list[JSON]", result["remarks"]):
        narrate(str(remark))
    notes = cast("list[str]", result["notes"])
    if as_json:
        write_json(result)
    else:
        before, after = (cast("dict[str, JSON]", result[side]) for side in ("before", "after"))
        for line in summary_lines(before, after):
            write(line)
        for note in notes:
            write(f"note: {visible(note)}")
        write(f"written to {visible(str(result['path']))}")
    return ExitStatus.DONE
