"""The rows of a comparison with their filter, and what is said about the whole."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input

from dld_tui.core import fmt
from dld_tui.core.compare.comparison import MISMATCH, Comparison
from dld_tui.core.compare.model import Row, label
from dld_tui.core.text import visible
from dld_tui.widgets.compare_mismatches import MismatchSource, mismatch_columns
from dld_tui.widgets.compare_rows import CompareSource, about_lines, compare_columns
from dld_tui.widgets.filter_bar import FilterBar
from dld_tui.widgets.frame import Frame
from dld_tui.widgets.line_source import ListSource
from dld_tui.widgets.line_view import LineView
from dld_tui.widgets.table_view import TableSource, TableView

_KEYS = "/ filter  b group  f no noise  o sort  w csv"
_LOOK_S = 0.1


class CompareAbout(Frame, LineView):
    """What differs, what makes it unfair, and where the time went."""

    HELP = (
        "Settings that differ and what makes the comparison unfair come first, then the times end "
        "to end, and where the time went. Tab goes to the rows."
    )
    comparison: Comparison | None = None
    _width = 0

    def show(self, comparison: Comparison) -> None:
        """Show a comparison."""
        self.comparison = comparison
        titles = ", ".join(visible(title) for title in comparison.titles)
        self.frame(f"Compare · {titles}", "= next base")
        self._fill()
        self._look_again()

    def _look_again(self) -> None:
        # It has just been displayed: its width is known with a later layout, and an event of its
        # size does not always tell that (Textual may have looked at the new layout before).
        if not self._width and self.is_attached:
            self._fill()
            self.set_timer(_LOOK_S, self._look_again)

    def on_resize(self) -> None:
        """Break the text again for another width."""
        if self.view_size.width != self._width:
            self._fill()

    def _fill(self) -> None:
        self._width = self.view_size.width
        if self.comparison is not None and self._width > 0:
            lines = about_lines(self.comparison, max(20, self._width - 2))
            self.set_lines(ListSource(lines))


class CompareTable(TableView):
    """The rows; `/` filters instead of searching."""

    HELP = (
        "One row a layer, or what `b` chose, the largest difference first. A layer of one report "
        "that does the work of several of another makes one row with them: 3>1. What is dim is "
        "within noise. Enter goes to the ONNX node, or into a group; `t` shows the layer in its "
        "report."
    )

    def action_search(self) -> None:
        """Open the pane's filter."""
        self.query_ancestor(ComparePane).open_filter()


class ComparePane(Frame, Vertical):
    """The table, its filter and its title."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, classes="frame")
        self.comparison: Comparison | None = None
        self.by = "layer"
        self.filter = ""
        self.sure_only = False
        self.group: tuple[str, str] | None = None
        """Only layers of this (grouping, key) are shown."""
        self._members: Collection[tuple[int, int]] = ()
        self.rows: Sequence[Row] = ()

    def compose(self) -> ComposeResult:
        """Lay out the filter and the table."""
        yield FilterBar("part of a name", "compare-filter")
        yield CompareTable([], id="compare-table")

    def on_mount(self) -> None:
        """Start without a filter row."""
        self.query_one(FilterBar).display = False

    @property
    def table(self) -> CompareTable:
        """The table view."""
        return self.query_one(CompareTable)

    def show(self, comparison: Comparison, by: str) -> None:
        """Show the rows of a comparison by something."""
        other = comparison is not self.comparison or by != self.by
        self.comparison, self.by = comparison, by
        if other:
            self.table.sort_column = None
            self.table.set_columns(
                mismatch_columns(comparison) if by == MISMATCH else compare_columns(comparison, by)
            )
        self.refill(keep=not other)

    def refill(self, keep: bool = True) -> None:
        """Show the rows that pass the filter."""
        comparison = self.comparison
        if comparison is None:
            return
        self.rows = comparison.rows(self.by)
        shown = [index for index, row in enumerate(self.rows) if self._passes(row)]
        self.table.empty = "Nothing passes the filter. Esc clears it."
        source: TableSource = CompareSource(comparison, self.rows, self.by)
        if self.by == MISMATCH:
            source = MismatchSource(comparison, self.rows)
            if not self.rows:
                self.table.empty = "All layers have the same precision and tactic."
        self.table.set_table(source, shown, keep)
        if not keep:
            self.table.cursor = 0
        self._say(len(shown))

    def _passes(self, row: Row) -> bool:
        comparison = self.comparison
        if comparison is None:
            return False
        cell = row.cells[comparison.target]
        if self.sure_only:
            alone = row.state(comparison.target, comparison.base)
            if not alone and (cell.noise is not False or cell.delta_ms is None):
                return False
        if self.group is not None and not self._in_group(row):
            return False
        name = row.key.lower()
        return all(word in name for word in self.filter.lower().split())

    def _in_group(self, row: Row) -> bool:
        return any(
            (report, layer) in self._members
            for report, cell in enumerate(row.cells)
            for layer in cell.layers
        )

    def _say(self, shown: int) -> None:
        whole = len(self.rows)
        of = "" if shown == whole else f" of {fmt.count(whole)}"
        place = f" of {self.group[0]} {visible(self.group[1])}" if self.group is not None else ""
        sure = ", more than noise" if self.sure_only else ""
        comparison = self.comparison
        base = label(comparison.base) if comparison is not None else ""
        by = "Other precision or tactic" if self.by == MISMATCH else f"By {self.by}"
        self.frame(f"{by}{place} · {fmt.count(shown)}{of}{sure} · base {base}", _KEYS)

    # What is where

    def row_at_cursor(self) -> Row | None:
        """Return the row under the cursor."""
        index = self.table.row_at_cursor() if self.comparison is not None else None
        return self.rows[index] if index is not None and index < len(self.rows) else None

    def shown_rows(self) -> list[Row]:
        """Return the rows as they are shown: filtered and sorted."""
        return [self.rows[index] for index in self.table.order]

    def open_group(self, row: Row) -> None:
        """Show the layers that a group's row is made of."""
        if self.comparison is None:
            return
        self.group = (self.by, row.key)
        self._members = {
            (report, layer) for report, cell in enumerate(row.cells) for layer in cell.layers
        }
        self.show(self.comparison, "layer")

    def clear(self) -> str | None:
        """Take back one thing; return what to group by when that changes, None when nothing was."""
        if self.filter:
            self.query_one(Input).value = ""
            self._set_filter("")
            return self.by
        if self.sure_only:
            self.sure_only = False
            return self.by
        if self.group is not None:
            by, self.group = self.group[0], None
            return by
        return "layer" if self.by != "layer" else None

    # Filter

    def open_filter(self) -> None:
        """Ask for the filter; rows follow while one types."""
        self.query_one(FilterBar).display = True
        self.query_one(Input).focus()

    @on(FilterBar.Changed)
    def _typed(self, event: FilterBar.Changed) -> None:
        event.stop()
        if event.text != self.filter:
            self._set_filter(event.text)

    @on(FilterBar.Left)
    def _left(self, event: FilterBar.Left) -> None:
        event.stop()
        if event.clear:
            self.query_one(Input).value = ""
            self._set_filter("")
        self.table.focus()
        self.query_one(FilterBar).display = bool(self.filter)

    def _set_filter(self, text: str) -> None:
        self.filter = text
        self.refill()
        self.query_one(FilterBar).display = bool(text) or self.query_one(Input).has_focus
