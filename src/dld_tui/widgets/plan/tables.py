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
from dld_tui.core.plan.model import EngineLayer, EnginePlan
from dld_tui.core.plan.tables import VIEWS, make_table
from dld_tui.core.tables.table import Column as TableColumn
from dld_tui.core.tables.table import Table
from dld_tui.core.text import cell_width, visible
from dld_tui.widgets.charts.bars import HEATS, Line, heat, hottest
from dld_tui.widgets.lists.line_view import MarksChanged
from dld_tui.widgets.lists.styled import Rows
from dld_tui.widgets.lists.table_view import Cell, Column, TableView
from dld_tui.widgets.shell.frame import Frame

_SHOWN = tuple(view for view in VIEWS if view != "layers")
_TIME = "time_ms"
_WIDEST = 30


class SpecialSource:
    """A table of a plan as the rows of a table view; columns are known by their keys."""

    def __init__(self, table: Table[Any]) -> None:
        self.table = table
        times = [self.sort_value(row, _TIME) for row in range(len(table))]
        self._hot = hottest(time for time in times if isinstance(time, (int, float)))

    def __len__(self) -> int:
        return len(self.table)

    def key(self, row: int) -> Hashable:
        """Return the place of the row."""
        return row

    def cell(self, row: int, column: str, width: int) -> Cell:
        """Return one cell; times carry their heat."""
        about, found = self.table.column(column), self.table.rows[row]
        text = visible(about.shown_text(found))
        if about.heat:
            return text, HEATS[heat(about.order_of(found), self._hot)]
        return text, about.style_of(found)

    def sort_value(self, row: int, column: str) -> Any:
        """Return what to sort by."""
        if column not in self.table.keys:
            return None
        return self.table.column(column).order_of(self.table.rows[row])

    def text(self, row: int) -> str:
        """Return the cells, separated by tabs."""
        return visible(self.table.text(row))


def view_columns(table: Table[Any]) -> list[Column]:
    """Return the columns as a table view wants them: only as wide as what stands in them."""
    return [
        Column(
            column.key,
            column.title,
            None if column.width is None else min(column.width, _width(table, column)),
            "right" if column.is_right else "left",
            min_width=column.least,
            priority=column.priority,
            keep=column.keep,
            descending=column.falls,
        )
        for column in table.columns
    ]


def _width(table: Table[Any], column: TableColumn[Any]) -> int:
    """Return the cells of the longest value of a column, or of its title."""
    texts = (visible(column.shown_text(row)[:_WIDEST]) for row in table.rows)
    return max(max(map(cell_width, texts), default=0), len(column.title) + 1)


def _name(row: Any) -> str:
    return row.name if isinstance(row, EngineLayer) else ""


def special_tables(plan: EnginePlan) -> list[Table[Any]]:
    """Return the tables of a plan that have rows, what takes longest first."""
    found = []
    for view in _SHOWN:
        table = make_table(plan, view)
        if view == "memory":
            table = table.sorted_by("footprint")
        elif _TIME in table.keys:
            table = table.sorted_by(_TIME)
        if table.rows:
            found.append(table.telling())
    return found


class SpecialView(TableView):
    """The rows of the table that is chosen."""

    HELP = (
        "Layers of one kind with what is worth knowing of it. {plan.table} shows the next kind, "
        "{table.sort} sorts by the next column, {list.activate} shows the layer in the layer "
        "table."
    )


class SpecialNames(Rows):
    """The names of the tables, the chosen one marked."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: Sequence[Table[Any]] = ()
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
        self.tables: Sequence[Table[Any]] = ()
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

    def set_tables(self, plan: EnginePlan, tables: Sequence[Table[Any]]) -> None:
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
        self.frame(
            f"{table.title} · {fmt.count(len(table.rows))}",
            "{plan.table} next table  {table.sort} sort",
        )

    def shown_table(self) -> Table[Any] | None:
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
        name = _name(table.rows[row])
        before = sum(_name(other) == name for other in table.rows[:row])
        return self._rows.get((name, before))

    @on(MarksChanged)
    def _marked(self, event: MarksChanged) -> None:
        event.stop()
