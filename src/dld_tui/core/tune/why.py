"""Where a gain comes from, by ONNX node and operator, in sentences."""

from __future__ import annotations

from dld_tui.core import fmt
from dld_tui.core.compare.comparison import Comparison
from dld_tui.core.compare.model import Row
from dld_tui.core.text import clip, visible

_NAMED = 3
_BETWEEN_PERCENT = 10
"""A share of named nodes below which the gain is not theirs."""
_NAME = 40


def gain_lines(comparison: Comparison) -> tuple[list[str], float | None]:
    """Return sentences, and how much of the gain is that of named nodes, in percent.

    Args:
        comparison: Of two profiles, that of the model as it is first.
    """
    whole = comparison.end_to_end.cells[1].delta_ms
    rows = [row for row in comparison.rows("layer") if row.cells[1].delta_ms]
    named = [row for row in rows if _is_named(comparison, row)]
    gained = sum(row.cells[1].delta_ms or 0.0 for row in named)
    if not whole or not named:
        return ["No layer was measured in both profiles."], None
    share = max(0.0, min(100.0, 100 * gained / whole))
    if share < _BETWEEN_PERCENT:
        between = "The nodes take as long as before: what is saved is between them, in launches and"
        return [f"{between} copies."], share
    top = sorted(named, key=lambda row: row.cells[1].delta_ms or 0.0)[:_NAMED]
    names = ", ".join(
        f"{clip(visible(row.key), _NAME, keep='end')} ({_signed(row)} ms)" for row in top
    )
    lines = [
        f"{share:.0f} % of {_ms(whole)} ms is in {fmt.plural(len(named), 'named node')}, most in"
        f" {names}."
    ]
    types = [row for row in comparison.rows("type") if row.cells[1].delta_ms]
    types.sort(key=lambda row: -abs(row.cells[1].delta_ms or 0.0))
    told = "; ".join(map(_told, types[:_NAMED]))
    return [*lines, *([f"By operator: {told}."] if told else [])], share


def _is_named(comparison: Comparison, row: Row) -> bool:
    """Return whether layers of a row are of nodes that the model names."""
    return any(
        comparison.subjects[side].layers[index].nodes
        or comparison.subjects[side].layers[index].name
        for side, cell in enumerate(row.cells)
        for index in cell.layers
    )


def _told(row: Row) -> str:
    before, after = (cell.time_ms for cell in row.cells)
    name = visible(row.key)
    if before is None:
        return f"{name} is new with {fmt.milliseconds(after)} ms"
    if after is None:
        return f"{name} with {fmt.milliseconds(before)} ms is gone"
    return f"{name} takes {fmt.milliseconds(after)} ms where it took {fmt.milliseconds(before)}"


def _signed(row: Row) -> str:
    return _ms(row.cells[1].delta_ms or 0.0)


def _ms(value: float) -> str:
    return f"{value:+.3f}"
