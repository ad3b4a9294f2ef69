"""The pane of the initializer list: its table, its filter, and what is marked."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Input, Label

from dld_tui.core import fmt
from dld_tui.core.errors import DldError
from dld_tui.core.text import visible
from dld_tui.widgets import glyphs
from dld_tui.widgets.dialogs import text_field
from dld_tui.widgets.frame import Frame
from dld_tui.widgets.initializer_rows import (
    COLUMNS,
    SCOPE_COLUMN,
    InitializerRow,
    InitializerTable,
)
from dld_tui.widgets.line_marks import MarksChanged
from dld_tui.widgets.styled import Rows
from dld_tui.widgets.table_view import TableView

_KEYS = "/ filter  b all scopes  C constants"
_FILTER_HELP = "words all must match: name, type, shape, file"


class InitializersView(TableView):
    """The rows; `/` filters instead of searching."""

    HELP = (
        "The initializers of a scope, the largest first. Enter shows and edits the elements, "
        "those of a sparse one as text, E the place of external ones. Space "
        "marks rows for delete, convert, external and inline. c gives one to a node input, w gives "
        "a user another one, \\ takes it from a user, s goes to a user. b lists all scopes, C the "
        "tensors of Constant nodes, too."
    )

    def action_search(self) -> None:
        """Open the pane's filter."""
        self.query_ancestor(InitializersPane).open_filter()


class InitializerFilter(Horizontal):
    """The row in which the filter is typed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "drop", "clear", show=False),
        Binding("down", "keep", "to the rows", show=False),
    ]

    def compose(self) -> ComposeResult:
        """Lay out the name and the field."""
        yield Label("filter ", markup=False)
        yield text_field(placeholder=_FILTER_HELP)

    def action_drop(self) -> None:
        """Show everything again."""
        self.query_one(Input).value = ""
        self.query_ancestor(InitializersPane).close_filter()

    def action_keep(self) -> None:
        """Go to the rows with the filter as it is."""
        self.query_ancestor(InitializersPane).close_filter()


class InitializersPane(Frame, Vertical):
    """The list."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, classes="frame")
        self.rows: Sequence[InitializerRow] = ()
        self.filter = ""
        self._source = InitializerTable((), self.problem_of)
        self._problems: dict[Hashable, str] = {}

    def compose(self) -> ComposeResult:
        """Lay out the filter, the table and the line of what is marked."""
        yield InitializerFilter()
        yield InitializersView(COLUMNS, empty="listing …")
        yield Rows([[]], id="marked")

    @property
    def table(self) -> InitializersView:
        """The table view."""
        return self.query_one(InitializersView)

    def on_mount(self) -> None:
        """Start with the largest on top, and without a filter row."""
        self.query_one(InitializerFilter).display = False
        self.query_one("#marked").display = False
        self.table.sort_by("bytes", descending=True)

    # --- rows -----------------------------------------------------------------------------------

    def show(self, rows: Sequence[InitializerRow], *, with_scope: bool) -> None:
        """Show other rows; cursor and marks stay on those that are still there."""
        self.rows = rows
        self._problems = {}
        self._source = InitializerTable(rows, self.problem_of)
        table = self.table
        columns = (*COLUMNS[:1], SCOPE_COLUMN, *COLUMNS[1:]) if with_scope else COLUMNS
        if columns != table.columns:
            table.set_columns(columns)
        if table.marks:
            table.set_marks(table.marks & {row.key for row in rows})
        self._fill()

    def problem_of(self, row: InitializerRow) -> str:
        """Return why a tensor's values cannot be read, or nothing."""
        found = self._problems.get(row.key)
        if found is None:
            try:
                found = row.tensor.problem or ""
            except DldError as error:
                found = error.message
            self._problems[row.key] = found
        return found

    def _fill(self) -> None:
        words = self.filter.lower().split()
        shown: Sequence[int] | None = None
        if words:
            texts = (self._source.text(at).lower() for at in range(len(self.rows)))
            shown = [at for at, text in enumerate(texts) if all(word in text for word in words)]
        none = "No initializer here. a makes one, b lists all scopes."
        self.table.empty = "Nothing passes the filter. Esc clears it." if self.rows else none
        self.table.set_table(self._source, shown)

    def row_at_cursor(self) -> InitializerRow | None:
        """Return the row under the cursor."""
        at = self.table.row_at_cursor()
        return self.rows[at] if at is not None else None

    def chosen(self) -> list[InitializerRow]:
        """Return the marked rows that are shown, or the one under the cursor."""
        marks = self.table.marks
        if marks:
            return [self.rows[at] for at in self.table.order if self.rows[at].key in marks]
        row = self.row_at_cursor()
        return [] if row is None else [row]

    def shown(self) -> list[InitializerRow]:
        """Return the rows that pass the filter."""
        return [self.rows[at] for at in self.table.order]

    def say_title(self, where: str) -> None:
        """Say where the rows are from, how many there are and how large they are."""
        dot = f" {glyphs.current().dot} "
        size = fmt.size(sum(row.nbytes or 0 for row in self.rows))
        parts = ["Initializers", f"{len(self.rows):,}", size, where]
        problems = sum(bool(problem) for problem in self._problems.values())
        if problems:
            parts.append(fmt.plural(problems, "problem"))
        self.frame(dot.join(parts), _KEYS)

    @on(MarksChanged)
    def marked(self, event: MarksChanged) -> None:
        """Add up what is marked."""
        rows = [row for row in self.rows if row.key in event.marks]
        line = self.query_one("#marked", Rows)
        line.display = bool(rows)
        size = fmt.size(sum(row.nbytes or 0 for row in rows))
        types = sorted({row.tensor.dtype for row in rows})
        text = f" {len(rows):,} marked  {size}  {' '.join(types[:4])}"
        line.set_rows([[(visible(text), "accent")]])

    # --- filter ---------------------------------------------------------------------------------

    def open_filter(self) -> None:
        """Ask for the filter; rows follow while one types."""
        self.query_one(InitializerFilter).display = True
        self.query_one(InitializerFilter).query_one(Input).focus()

    @on(Input.Changed)
    def filter_typed(self, event: Input.Changed) -> None:
        """Show what passes."""
        if isinstance(event.input.parent, InitializerFilter) and event.value != self.filter:
            event.stop()
            self.filter = event.value
            self._fill()

    @on(Input.Submitted)
    def filter_kept(self, event: Input.Submitted) -> None:
        """Return to the rows."""
        event.stop()
        self.close_filter()

    def close_filter(self) -> None:
        """Return to the table; an empty filter takes its row away."""
        self.table.focus()
        self.query_one(InitializerFilter).display = bool(self.filter)

    def clear(self) -> bool:
        """Take back one thing: the marks or the filter; False when there is none."""
        if self.table.marks:
            self.table.set_marks(set())
        elif self.filter:
            self.filter = ""
            self.query_one(InitializerFilter).query_one(Input).value = ""
            self.query_one(InitializerFilter).display = False
            self._fill()
        else:
            return False
        return True
