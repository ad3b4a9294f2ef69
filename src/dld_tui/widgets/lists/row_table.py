"""A table source over a list of objects, one function a column."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from dld_tui.widgets.lists.table_view import Cell

R = TypeVar("R")


class RowTable(Generic[R]):
    """Rows that are objects; `cells` and `sort_values` are functions by column key."""

    def __init__(
        self,
        rows: Sequence[R],
        cells: Mapping[str, Callable[[R], Cell]],
        *,
        key: Callable[[R], Hashable] | None = None,
        sort_values: Mapping[str, Callable[[R], Any]] | None = None,
    ) -> None:
        self.rows = rows
        self.cells = cells
        self.key_of = key
        self.sort_values = sort_values or {}

    def __len__(self) -> int:
        return len(self.rows)

    def key(self, row: int) -> Hashable:
        """Return the row's key, its index when there is no key function."""
        return row if self.key_of is None else self.key_of(self.rows[row])

    def cell(self, row: int, column: str, width: int) -> Cell:
        """Return one cell."""
        return self.cells[column](self.rows[row])

    def sort_value(self, row: int, column: str) -> Any:
        """Return the value to sort by; the cell's text when the column has no function."""
        value = self.sort_values.get(column)
        if value is not None:
            return value(self.rows[row])
        return plain(self.cells[column](self.rows[row])).lower()

    def text(self, row: int) -> str:
        """Return the texts of all cells."""
        return "  ".join(plain(cell(self.rows[row])) for cell in self.cells.values())


def plain(cell: Cell) -> str:
    """Return a cell's text without its style."""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, tuple):
        return cell[0]
    return "".join(text for text, _ in cell)
