"""What the commands of ``dld convert`` print."""

from __future__ import annotations

from typing import cast

from dld_tui.cli.activity import Result
from dld_tui.cli.output import Column, narrate, write, write_json, write_table
from dld_tui.core import fmt
from dld_tui.core.conversion.loss_text import loss_lines
from dld_tui.core.conversion.report_text import report_lines
from dld_tui.core.conversion.values_text import is_wrong
from dld_tui.core.document.conversion_text import conversion_lines
from dld_tui.core.errors import ExitStatus
from dld_tui.core.text import visible
from dld_tui.core.types import JSON

_TENSORS = (
    Column("tensor", flexible=True),
    Column("kind"),
    Column("type"),
    Column("shape"),
    Column("size", right=True),
    Column("too large", right=True),
    Column("to zero", right=True),
    Column("rounded", right=True),
    Column("largest error", right=True),
)


def show_conversion(result: Result, as_json: bool) -> int:
    """Print the summary of a conversion; exit status 1 when its values are wrong."""
    _narrate(result)
    if as_json:
        write_json(result)
    else:
        for line in report_lines(result):
            write(line)
        write(f"written to {visible(str(result['path']))}")
    return ExitStatus.FOUND if is_wrong(result.get("values")) else ExitStatus.DONE


def show_opset(result: Result, as_json: bool) -> int:
    """Print what changed; exit status 1 when a part could not be converted."""
    _narrate(result)
    if as_json:
        write_json(result)
    for line in () if as_json else conversion_lines(result):
        write(line)
    return ExitStatus.FOUND if result["notes"] else ExitStatus.DONE


def show_precisions(result: Result, as_json: bool) -> int:
    """Print the casts that layers need; exit status 1 when a precision was refused."""
    refused = cast("dict[str, JSON]", result["figures"])["refused"]
    status: int = ExitStatus.FOUND if refused else ExitStatus.DONE
    for line in () if as_json else cast("list[str]", result["lines"]):
        write(line)
    if "path" in result:
        return max(status, show_conversion(result, as_json))
    if as_json:
        write_json(result)
    for line in () if as_json else loss_lines(cast("list[dict[str, JSON]]", result["losses"])):
        write(line)
    return status


def show_tensors(result: Result, as_json: bool) -> int:
    """Print the tensors that fit where they are only listed, else the conversion."""
    tensors = result.get("tensors")
    if not isinstance(tensors, list):
        return show_conversion(result, as_json)
    if as_json:
        write_json(result)
    elif tensors:
        write_table(_TENSORS, [_row(cast("dict[str, JSON]", one)) for one in tensors])
    else:
        write("no tensor fits")
    return ExitStatus.DONE


def _narrate(result: Result) -> None:
    for remark in cast("list[JSON]", result["remarks"]):
        narrate(str(remark))


def _row(one: dict[str, JSON]) -> list[str]:
    counts = (one["overflow"], one["underflow"], one["rounded"])
    return [
        visible(str(one["name"])),
        str(one["kind"]),
        str(one["dtype"]),
        fmt.shape(cast("list[int]", one["shape"])),
        fmt.size(cast("int", one["bytes"] or 0)),
        *(fmt.count(cast("int", count)) for count in counts),
        f"{cast('float', one['max_error']):.3g}",
    ]
