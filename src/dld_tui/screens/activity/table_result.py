"""A result that is some sentences and a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from textual.binding import BindingType
from textual.widget import Widget

from dld_tui.core.cost.critical_path import CriticalPath, path_lines, path_table
from dld_tui.core.cost.memory import MemoryPlan, memory_lines, memory_table
from dld_tui.core.files.writer import write_text
from dld_tui.core.report.start_up import StartUp, node_table, start_up_lines
from dld_tui.core.tables.rendering import csv_of
from dld_tui.core.tables.table import Table
from dld_tui.core.types import JSON
from dld_tui.screens.activity.result_head import Paragraph, ResultHead
from dld_tui.screens.files import ask_where
from dld_tui.screens.list_page import ListPage
from dld_tui.styles import STYLES
from dld_tui.widgets.shell.commands import bindings_for


class TableResult(ListPage[Any]):
    """Shows such a result.

    Args:
        title: Of the tab.
        said: The sentences, fit for a terminal.
        rows: The table.
    """

    SCOPE = "result"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("result")
    CSS_PATH = STYLES / "lists.tcss"
    LIST_KEYS = "{result.csv} save csv  {table.sort} sort"
    LIST_EMPTY = "There are no rows"
    HELP = "{result.copy} copies what is said, {result.csv} writes the table."

    def __init__(self, title: str, said: Sequence[str], rows: Table[Any]) -> None:
        super().__init__()
        self.tab_title = title
        self.said = tuple(said)
        self._rows = rows
        self.LIST_TITLE = rows.title  # type: ignore[misc]

    def body(self) -> Iterable[Widget]:
        styles = ["strong", *[""] * len(self.said)]
        yield ResultHead([Paragraph(*pair) for pair in zip(self.said, styles, strict=False)])
        yield from super().body()

    def on_mount(self) -> None:
        """Show the rows."""
        self.show_rows()

    def table(self) -> Table[Any]:
        """Return the rows."""
        return self._rows

    def action_copy(self) -> None:
        self.app.copy_to_clipboard("\n".join(self.said))

    def action_save_csv(self) -> None:
        def write(path: Path, overwrite: bool) -> Sequence[str]:
            return write_text(path, csv_of(self._rows), overwrite=overwrite)

        ask_where(self, "Save CSV", "Write the table to", f"{self._rows.name}.csv", write)


def of_start_up(result: StartUp, values: Mapping[str, JSON]) -> TableResult:
    """Return the page of the start of a session."""
    stages = [f"{one.name}: {one.ms:.3f} ms" for one in result.stages]
    said = [*start_up_lines(result), "; ".join(stages)]
    return TableResult(f"start of {Path(result.model).name}", said, node_table(result))


def of_memory(plan: MemoryPlan, name: str) -> TableResult:
    """Return the page of what a run of a model needs; `name` is foreign text."""
    return TableResult(f"memory of {name}", memory_lines(plan), memory_table(plan))


def of_critical_path(result: CriticalPath, values: Mapping[str, JSON]) -> TableResult:
    """Return the page of a critical path."""
    title = f"path of {Path(result.model).name}"
    return TableResult(title, path_lines(result), path_table(result))
