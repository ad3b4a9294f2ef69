"""The table of ``dld compare`` that only engines have: other precisions and tactics."""

from __future__ import annotations

from collections.abc import Sequence

from dld_tui.cli.output import Column, write, write_table
from dld_tui.core import fmt
from dld_tui.core.compare.comparison import Comparison
from dld_tui.core.compare.model import Row, label
from dld_tui.core.compare.precision import WORK, counts_text
from dld_tui.core.compare.text import signed
from dld_tui.core.text import clip, visible

_TOP = 10
_TACTIC_CELLS = 48


def write_precisions(comparison: Comparison) -> None:
    """Write what each engine computes in, side by side."""
    figures = comparison.precisions
    columns = [
        Column("engine"), Column("mainly"), Column("layers by precision", flexible=True),
        *(Column(f"{title}, ms", right=True) for title in WORK.values()),
    ]  # fmt: skip
    rows = [
        [
            label(index), visible(one.main) or fmt.UNKNOWN, visible(counts_text(one)),
            *(
                fmt.milliseconds(one.work_ms.get(work, 0.0) if one.timed else None)
                for work in WORK
            ),
        ]
        for index, one in enumerate(figures)
    ]  # fmt: skip
    write_table(columns, rows)
    write()


def write_mismatches(comparison: Comparison, rows: Sequence[Row] | None) -> None:
    """Write the layers with another precision or tactic.

    Args:
        comparison: The reports.
        rows: The rows to write, in their order; None for the first ones.
    """
    found = {id(one.row): one for one in comparison.mismatches}
    chosen = list(found.values())[:_TOP] if rows is None else [found[id(row)] for row in rows]
    if not chosen:
        write("All layers have the same precision and tactic.")
        return
    letters = [label(index) for index in range(len(comparison.subjects))]
    pair = f" {label(comparison.base)}>{label(comparison.target)}" if len(letters) > 2 else ""
    columns = [
        Column("other precision or tactic", flexible=True),
        *(Column(letter) for letter in letters),
        Column(f"delta{pair}", right=True),
        *(Column(f"tactic {letter}", flexible=True) for letter in letters),
    ]
    lines = [
        [
            visible(one.node),
            *(visible(text) or fmt.UNKNOWN for text in one.precision),
            signed(one.row.cells[comparison.target].delta_ms),
            *(clip(visible(text), _TACTIC_CELLS) or fmt.UNKNOWN for text in one.tactic),
        ]
        for one in chosen
    ]
    write_table(columns, lines)
    rest = len(found) - len(chosen)
    if rows is None and rest:
        write(f"{fmt.plural(rest, 'more row')}: --by mismatch shows them")
