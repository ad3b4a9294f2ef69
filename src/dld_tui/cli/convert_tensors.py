"""``dld convert tensors``: weights and constants in another element type."""

from __future__ import annotations

from typing import cast

from dld_tui.cli.activity import Result, activity_command
from dld_tui.cli.convert_result import show_result
from dld_tui.cli.output import Column, write, write_json, write_table
from dld_tui.core import fmt
from dld_tui.core.text import visible
from dld_tui.core.types import JSON

_COLUMNS = (
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


def _show(result: Result, as_json: bool) -> int:
    tensors = result.get("tensors")
    if not isinstance(tensors, list):
        return show_result(result, as_json)
    if as_json:
        write_json(result)
    elif tensors:
        write_table(_COLUMNS, [_row(cast("dict[str, JSON]", one)) for one in tensors])
    else:
        write("no tensor fits")
    return 0


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


command = activity_command("tensors", "convert_tensors", _show)
"""The command."""
