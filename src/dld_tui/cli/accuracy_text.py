"""The result of ``dld accuracy`` as text."""

from __future__ import annotations

from collections.abc import Sequence

from dld_tui.cli.output import narrate, write, write_table
from dld_tui.core import fmt
from dld_tui.core.accuracy.result import (
    AccuracyReport,
    Result,
    Row,
    accuracy_table,
    listed,
    side_text,
)
from dld_tui.core.text import visible


def show_result(result: AccuracyReport, *, worst: bool, most: int) -> None:
    """Print a comparison for people."""
    found = result.found
    for remark in found.remarks:
        narrate(remark)
    write(f"Reference  {side_text(result.reference)}")
    write(f"Other      {side_text(result.other)}")
    sets = fmt.plural(result.sets, "set")
    write(f"Inputs     {sets}: {', '.join(visible(text) for text in result.inputs)}")
    write()
    _table(found.outputs)
    inner = [row for row in (found.worst() if worst else found.rows) if not row.is_output]
    if inner:
        shown = listed(inner, most)
        write()
        order = "largest errors first" if worst else "in order"
        more = f", {len(shown):,} shown" if len(shown) < len(inner) else ""
        write(f"{fmt.plural(len(inner), 'inner tensor')}, {order}{more}")
        _table(shown)
        _first(found)
    write()
    bad = [row for row in found.outputs if row.problem]
    for row in bad:
        write(f"{visible(row.name)}: {visible(row.problem)}")
    if not bad:
        write(f"All outputs are within the tolerance ({result.tolerance})")


def _first(found: Result) -> None:
    first = found.first
    if first is None:
        return
    write()
    where = f" of {visible(first.op_type)} {visible(first.node)}" if first.node else ""
    write(f"First divergence: {visible(first.name)}{where}: {visible(first.problem)}")


def _table(rows: Sequence[Row]) -> None:
    write_table(accuracy_table(rows, "text"))
