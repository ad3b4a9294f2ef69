"""The special tables of an engine, one at a time: convolutions, products, reformats and so on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical

from dld_tui.core import fmt
from dld_tui.core.plan.model import EnginePlan
from dld_tui.core.plan.table_values import TEXT, Table, Value
from dld_tui.core.plan.tables import VIEWS, cell_text, make_table, sorted_table
from dld_tui.core.text import cell_width, visible
from dld_tui.widgets.blocks import Line
from dld_tui.widgets.frame import Frame
from dld_tui.widgets.heat import HEATS, heat, hottest
from dld_tui.widgets.layer_columns import precision_style
from dld_tui.widgets.line_marks import MarksChanged
from dld_tui.widgets.styled import Rows
from dld_tui.widgets.table_view import Cell, Column, TableView

_SHOWN = tuple(view for view in VIEWS if view != "layers")
_TIME = "time_ms"
_PRECISIONS = ("precision", "dtype")
_FIRST = ("name", "what")
_ALWAYS = (*_FIRST, _TIME, "percent")
_WIDEST = 30
_LATE = {"tactic": 60, "stride": 58, "kernel": 56, "groups": 54, "in": 52, "out": 50, "type": 48}
"""Columns that give way first, though they stand before others."""


class SpecialSource:
    """A table of a plan as the rows of a table view; columns are known by their keys."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._places = {column.key: at for at, column in enumerate(table.columns)}
        times = [self.value(row, _TIME) for row in range(len(table.rows))]
        self._hot = hottest(time for time in times if isinstance(time, (int, float)))

    def __len__(self) -> int:
        return len(self.table.rows)

    def key(self, row: int) -> Hashable:
        """Return the place of the row."""
        return row

    def value(self, row: int, column: str) -> Value:
        """Return a value; None where there is no such column."""
        at = self._places.get(column)
        return None if at is None else self.table.rows[row][at]

    def cell(self, row: int, column: str, width: int) -> Cell:
        """Return one cell; times carry their heat."""
        value = self.value(row, column)
        kind = self.table.columns[self._places[column]].kind
        text = visible(cell_text(value, kind))
        if column == _TIME:
            known = value if isinstance(value, (int, float)) else None
            return text, HEATS[heat(known, self._hot)]
        if column in _PRECISIONS and isinstance(value, str):
            return text, precision_style(value)
        return text, "" if column in _FIRST or kind != TEXT else "dim"

    def sort_value(self, row: int, column: str) -> Any:
        """Return what to sort by."""
        value = self.value(row, column)
        return value.lower() or None if isinstance(value, str) else value

    def text(self, row: int) -> str:
        """Return the cells, separated by tabs."""
        cells = zip(self.table.rows[row], self.table.columns, strict=True)
        return "\t".join(visible(cell_text(value, column.kind)) for value, column in cells)


def view_columns(table: Table) -> list[Column]:
    """Return the columns as a table view wants them: later ones give way where room is scarce."""
    return [
        Column(
            column.key,
            column.title.replace("time ms", "ms"),
            None if column.key in _FIRST else _width(table, at),
            "left" if column.kind == TEXT else "right",
            min_width=28,
            priority=0 if column.key in _ALWAYS else _LATE.get(column.key, at),
            keep="end" if column.flexible else "start",
            descending=column.kind != TEXT,
        )
        for at, column in enumerate(table.columns)
    ]


def _width(table: Table, at: int) -> int:
    """Return the cells of the longest value of a column, or of its title."""
    column = table.columns[at]
    texts = (visible(cell_text(row[at], column.kind)) for row in table.rows)
    longest = max((cell_width(text[:_WIDEST]) for text in texts), default=0)
    return min(max(longest, len(column.title.replace("time ms", "ms")) + 1), _WIDEST)


def _telling(table: Table) -> Table:
    """Return a table without the columns that are empty in every row."""
    kept = [
        at
        for at, column in enumerate(table.columns)
        if column.key in _FIRST or any(row[at] not in (None, "") for row in table.rows)
    ]
    return replace(
        table,
        columns=tuple(table.columns[at] for at in kept),
        rows=[tuple(row[at] for at in kept) for row in table.rows],
    )


def special_tables(plan: EnginePlan) -> list[Table]:
    """Return the tables of a plan that have rows, what takes longest first."""
    found = []
    for view in _SHOWN:
        table = make_table(plan, view)
        if view == "memory":
            table = sorted_table(table, "footprint")
        elif any(column.key == _TIME for column in table.columns):
            table = sorted_table(table, _TIME)
        if table.rows:
            found.append(_telling(table))
    return found


class SpecialView(TableView):
    """The rows of the table that is chosen."""

    HELP = (
        "Layers of one kind with what is worth knowing of it. `c` shows the next kind, `o` sorts "
        "by the next column, Enter shows the layer in the layer table."
    )


class SpecialNames(Rows):
    """The names of the tables, the chosen one marked."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: Sequence[Table] = ()
        self.at = 0

    def content(self, width: int) -> list[Line]:
        """Return the row; it begins where the chosen name can be seen."""
        names = [f" {table.title.lower()} " for table in self.tables]
        first = 0
        while sum(map(len, names[first : self.at + 1])) > width and first < self.at:
            first += 1
        shown = enumerate(names[first:], first)
        return [[(name, "current" if at == self.at else "dim") for at, name in shown]]


class SpecialPane(Frame, Vertical):
    """One special table, and the names of all."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, classes="frame")
        self.tables: Sequence[Table] = ()
        self.at = 0
        self._rows: Mapping[tuple[str, int], int] = {}

    def compose(self) -> ComposeResult:
        """Lay out the names and the table."""
        yield SpecialNames()
        yield SpecialView([], empty="The file says nothing of this.", id="special-table")

    @property
    def view(self) -> SpecialView:
        """The table."""
        return self.query_one(SpecialView)

    def set_tables(self, plan: EnginePlan, tables: Sequence[Table]) -> None:
        """Show the first of the tables of a plan."""
        self.tables = tables
        counts = Counter[str]()
        rows = {}
        for place, layer in enumerate(plan.layers):
            rows[layer.name, counts[layer.name]] = place
            counts[layer.name] += 1
        self._rows = rows
        self.show_table(0)

    def next_table(self) -> None:
        """Show the next table."""
        if self.tables:
            self.show_table((self.at + 1) % len(self.tables))

    def show_table(self, at: int) -> None:
        """Show a table by its place."""
        self.at = at
        if not self.tables:
            self.frame("Special tables")
            return
        table = self.tables[at]
        self.view.sort_column = None
        self.view.set_columns(view_columns(table))
        self.view.set_table(SpecialSource(table), keep=False)
        self.view.cursor = 0
        names = self.query_one(SpecialNames)
        names.tables, names.at = self.tables, at
        names.refresh()
        self.frame(f"{table.title} · {fmt.count(len(table.rows))}", "c next table  o sort")

    def shown_table(self) -> Table | None:
        """Return the table that is seen, sorted as it is."""
        if not self.tables:
            return None
        table = self.tables[self.at]
        return replace(table, rows=[table.rows[row] for row in self.view.order])

    def layer_at_cursor(self) -> int | None:
        """Return the layer under the cursor, by its place among the plan's; None for others."""
        row = self.view.row_at_cursor()
        if row is None or not self.tables:
            return None
        table = self.tables[self.at]
        name = table.rows[row][0]
        before = sum(other[0] == name for other in table.rows[:row])
        return self._rows.get((str(name), before))

    @on(MarksChanged)
    def _marked(self, event: MarksChanged) -> None:
        event.stop()
