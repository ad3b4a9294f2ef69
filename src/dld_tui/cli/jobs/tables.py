"""What commands print of results that are some sentences and a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dld_tui.cli.output import write, write_json, write_table
from dld_tui.core.codec import encode
from dld_tui.core.cost.critical_path import CriticalPath, path_lines, path_table
from dld_tui.core.start_up import StartUp, node_table, stage_table, start_up_lines
from dld_tui.core.tables.table import Table


def show_start_up(result: StartUp, as_json: bool) -> None:
    """Print the stages, and the nodes that are not on the first provider."""
    _show(result, start_up_lines(result), [stage_table(result)], as_json=as_json)
    if result.elsewhere and not as_json:
        write()
        write_table(node_table(result))


def show_critical_path(result: CriticalPath, as_json: bool) -> None:
    """Print what parallelism could save, and the path."""
    _show(result, path_lines(result), [path_table(result)], as_json=as_json)


def _show(
    result: Any, lines: Sequence[str], tables: Sequence[Table[Any]], *, as_json: bool
) -> None:
    if as_json:
        write_json(encode(result))
        return
    for line in lines:
        write(line)
    for table in tables:
        write()
        write_table(table)
