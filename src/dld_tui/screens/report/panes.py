"""Which panes and columns of a report are seen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget

from dld_tui.core.report.records import Layer
from dld_tui.core.tables.table import Table
from dld_tui.screens.panes import Panes
from dld_tui.widgets.dialogs.dialogs import Dialog
from dld_tui.widgets.layers.table import column_title
from dld_tui.widgets.lists.line_source import ListSource, Piece
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.shell import glyphs

PANES = ("summary", "timeline", "layers", "charts", "environment")


class ReportPanes(Panes):
    """A mixin: arranges the panes of the report screen for its size."""

    PANES: ClassVar[tuple[str, ...]] = PANES
    FOCUS: ClassVar[dict[str, str]] = {"layers": "#layer-table", "charts": "#type-chart"}

    def visible_panes(self) -> set[str]:
        """Return the panes that are seen: on a medium size summary and timeline stay."""
        if self.maximised or self.size_class == "small":
            return {self.pane}
        if self.size_class == "large":
            return set(PANES)
        lower = self.pane if self.pane in PANES[2:] else "layers"
        return {"summary", "timeline", lower}

    def place_panes(self, shown: set[str]) -> None:
        """Hide what holds nothing."""
        self.query_one("#side").display = bool(shown & {"charts", "environment"})
        self.query_one("#lower").display = bool(shown & set(PANES[2:]))


class ColumnList(LineView):
    """One row a column; Space and Enter switch it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("space", "activate", "switch", show=False)]
    HELP = "Space shows or hides a column, d takes the usual ones, Esc keeps what is chosen."


class ColumnsDialog(Dialog[tuple[str, ...]]):
    """Which columns to show; changes are kept when it is closed."""

    TITLE_TEXT = "Columns"
    KEYS = "Space switch  d default  Esc done"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "done", show=False),
        Binding("f,C", "close", "done", show=False),
        Binding("d", "defaults", "default", show=False),
    ]

    def __init__(self, chosen: Sequence[str], known: Table[Layer]) -> None:
        super().__init__()
        self.chosen = set(chosen)
        self.known = known

    def body(self) -> Iterable[Widget]:
        """Return the list."""
        view = ColumnList(self._rows())
        view.styles.height = min(len(self.known.columns), max(self.app.size.height - 6, 4))
        yield view

    def _rows(self) -> ListSource:
        shown = glyphs.current()
        rows: list[list[Piece]] = []
        for column in self.known.columns:
            on = column.key in self.chosen
            rows.append(
                [
                    (shown.on if on else shown.off, "accent" if on else "dim"),
                    (f" {column_title(column):<14}", "strong" if on else ""),
                    (f" {column.help}", "dim"),
                ]
            )
        return ListSource(rows, self.known.keys)

    def on_line_view_activated(self, event: LineView.Activated) -> None:
        """Show or hide the column at the cursor."""
        event.stop()
        self.chosen ^= {str(event.key)}
        self.query_one(ColumnList).set_lines(self._rows())

    def action_defaults(self) -> None:
        """Take the columns that a new user sees."""
        self.chosen = {column.key for column in self.known.columns if column.shown}
        self.query_one(ColumnList).set_lines(self._rows())

    def go_back(self) -> None:
        """Give the chosen columns, in the order of the table."""
        self.dismiss(tuple(key for key in self.known.keys if key in self.chosen))
