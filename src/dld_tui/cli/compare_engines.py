"""The table of ``dld compare`` that only engines have: other precisions and tactics."""

from __future__ import annotations

from collections.abc import Sequence

from dld_tui.cli.output import write, write_table
from dld_tui.core import fmt
from dld_tui.core.compare.comparison import Comparison
from dld_tui.core.compare.model import Row
from dld_tui.core.compare.tables import mismatch_table, mismatches_of, precision_table

_TOP = 10


def write_precisions(comparison: Comparison) -> None:
    """Write what each engine computes in, side by side."""
    write_table(precision_table(comparison))
    write()


def write_mismatches(comparison: Comparison, rows: Sequence[Row] | None) -> None:
    """Write the layers with another precision or tactic.

    Args:
        comparison: The reports.
        rows: The rows to write, in their order; None for the first ones.
    """
    found = comparison.mismatches
    chosen = found[:_TOP] if rows is None else mismatches_of(comparison, rows)
    if not chosen:
        write("All layers have the same precision and tactic.")
        return
    write_table(mismatch_table(comparison, chosen, "text"))
    rest = len(found) - len(chosen)
    if rows is None and rest:
        write(f"{fmt.plural(rest, 'more row')}: --by mismatch shows them")
