"""The special tables of an engine, one at a time: convolutions, products, reformats and so on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical

from dld_tui.core import fmt
from dld_tui.core.plan.model import EngineLayer, EnginePlan
from dld_tui.core.plan.tables import VIEWS, make_table
from dld_tui.core.tables.table import Table
from dld_tui.widgets.charts.bars import Line
from dld_tui.widgets.lists.line_view import MarksChanged
from dld_tui.widgets.lists.styled import Rows
from dld_tui.widgets.lists.table_view import TableView
from dld_tui.widgets.shell.frame import Frame

_SHOWN = tuple(view for view in VIEWS if view != "layers")


def _name(row: Any) -> str:
    return row.name if isinstance(row, EngineLayer) else ""


def special_tables(plan: EnginePlan) -> list[Table[Any]]:
    """Return the tables of a plan that have rows, what takes longest first."""
    found = []
    for view in _SHOWN:
        table = make_table(plan, view)
        if view == "memory":
            table = table.sorted_by("footprint")
        elif "time_ms" in table.keys:
            table = table.sorted_by("time_ms")
        if table.rows:
            found.append(table.telling())
    return found


class SpecialView(TableView):
    """The rows of the table that is chosen."""

    FITTED = True
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
        yield SpecialView(empty="The file says nothing of this.", id="special-table")

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
        self.view.set_table(table, keep=False)
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
        return replace(self.view.table, rows=self.view.shown_rows()) if self.tables else None

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
