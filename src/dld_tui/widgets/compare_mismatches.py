"""Layers with another precision or tactic, as the rows of a table."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from dld_tui.core import fmt
from dld_tui.core.compare.comparison import Comparison
from dld_tui.core.compare.model import Row, label
from dld_tui.core.compare.text import ratio_text, signed
from dld_tui.core.text import visible
from dld_tui.widgets.compare_rows import delta_style
from dld_tui.widgets.explorer_rows import PRECISION_STYLES
from dld_tui.widgets.layer_columns import SortValue
from dld_tui.widgets.table_view import Cell, Column

_LEAST_NAME = 16
_TACTIC_CELLS = 24
_FIRST_OUT = 5
"""Priority of the engines between the base and the one whose difference is shown."""


def mismatch_columns(comparison: Comparison) -> list[Column]:
    """Return the columns: the node, a precision and a tactic an engine, the difference."""
    shown = (comparison.base, comparison.target)
    indices = range(len(comparison.subjects))
    pair = f"{label(comparison.base)}>{label(comparison.target)}"
    return [
        Column("key", "node", min_width=_LEAST_NAME, keep="end"),
        *(
            Column(f"precision{i}", label(i), 6, priority=0 if i in shown else _FIRST_OUT)
            for i in indices
        ),
        Column("delta", f"{pair} ms", 9, "right", descending=True),
        Column("ratio", "ratio", 7, "right", priority=1, descending=True),
        *(
            Column(
                f"tactic{i}", f"{label(i)} tactic", _TACTIC_CELLS, keep="middle",
                priority=2 if i in shown else _FIRST_OUT,
            )
            for i in indices
        ),
    ]  # fmt: skip


class MismatchSource:
    """Rows of a comparison whose precision or tactic is not the same everywhere."""

    def __init__(self, comparison: Comparison, rows: Sequence[Row]) -> None:
        self.rows = rows
        self._found = comparison.mismatches
        self._target = comparison.target

    def __len__(self) -> int:
        return len(self.rows)

    def key(self, row: int) -> Hashable:
        """Return the row's key."""
        return self.rows[row].key

    def cell(self, row: int, column: str, width: int) -> Cell:
        """Return one cell; a difference is coloured by its direction."""
        text = self._text(row, column)
        if column.startswith("precision"):
            return text, PRECISION_STYLES.get(text, "prec-other") if text != fmt.UNKNOWN else "dim"
        if column == "delta":
            return text, delta_style(self.rows[row].cells[self._target])
        return text, "dim" if column.startswith("tactic") else ""

    def _text(self, row: int, column: str) -> str:
        found, cell = self._found[row], self.rows[row].cells[self._target]
        if column.startswith("precision"):
            return visible(found.precision[int(column[9:])]) or fmt.UNKNOWN
        if column.startswith("tactic"):
            return visible(found.tactic[int(column[6:])]) or fmt.UNKNOWN
        if column == "delta":
            return signed(cell.delta_ms)
        return ratio_text(cell) if column == "ratio" else visible(found.node)

    def sort_value(self, row: int, column: str) -> SortValue:
        """Return what to sort by: differences with their sign."""
        cell = self.rows[row].cells[self._target]
        if column == "delta":
            return cell.delta_ms
        return cell.ratio if column == "ratio" else self._text(row, column).lower()

    def text(self, row: int) -> str:
        """Return the row, separated by tabs."""
        found = self._found[row]
        parts = (found.node, *found.precision, *found.tactic)
        delta = signed(self.rows[row].cells[self._target].delta_ms)
        return "\t".join((*map(visible, parts), delta))
