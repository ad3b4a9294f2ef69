"""The pane of the initializer list: its table, its filter, and what is marked.

The initializers of a model as rows of a table: what they are, where, and who uses them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Input, Label

from dld_tui.core import fmt
from dld_tui.core.document.node import Node
from dld_tui.core.document.proto_text import text_of
from dld_tui.core.document.scope import Scope
from dld_tui.core.document.tensor import Tensor
from dld_tui.core.errors import DldError
from dld_tui.core.text import visible
from dld_tui.widgets.dialogs.dialogs import text_field
from dld_tui.widgets.hints import hint
from dld_tui.widgets.lists.line_view import MarksChanged
from dld_tui.widgets.lists.styled import Rows
from dld_tui.widgets.lists.table_view import Cell, Column, TableView
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.frame import Frame

DENSE, SPARSE, CONSTANT = "dense", "sparse", "constant"


@dataclass(frozen=True, eq=False)
class InitializerRow:
    """One tensor of the list."""

    scope: Scope
    name: str
    """Its name, or that of the Constant node's output. Foreign text."""
    kind: str
    """``dense``, ``sparse`` or ``constant``."""
    tensor: Tensor
    """The values; of a sparse one those that are not zero."""
    shape: tuple[int, ...]
    elements: int
    nbytes: int | None
    uses: int
    key: Hashable
    """What identifies it: (path of the scope, kind, name)."""
    node: Node | None = None
    """The Constant node."""
    attribute: str = ""

    @property
    def is_initializer(self) -> bool:
        """False for the tensor of a Constant node."""
        return self.node is None

    @property
    def where(self) -> str:
        """Where its values are: foreign text."""
        if self.kind == SPARSE:
            return "sparse"
        if self.kind == CONSTANT:
            return "Constant node"
        if self.tensor.is_external:
            entries = self.tensor.external_entries
            offset = entries.get("offset", "0")
            return f"{entries.get('location', '')} @{offset}"
        blob = self._blob_offset()
        if self.tensor.location == "none":
            return "no data"
        return "inline" if blob is None else f"inline @{blob:,}"

    def _blob_offset(self) -> int | None:
        """Return where its payload is in the model file, when it was left there."""
        document, proto = self.tensor.document, self.tensor.proto
        if document is None or not proto.HasField("raw_data"):
            return None
        blob = document.blobs.get(proto.raw_data)
        if blob is None or blob.source is not document.source:
            return None
        return blob.offset


def initializer_rows(
    scopes: Iterable[Scope], *, constants: bool = False
) -> Iterator[InitializerRow]:
    """Yield the initializers of some scopes, those of Constant nodes too when asked for."""
    for scope in scopes:
        outputs, path = set(scope.outputs), scope.path
        for proto in scope.records.get("initializer", ()):
            tensor = Tensor(proto, scope.document)
            yield _row(scope, tensor.name, DENSE, tensor, outputs, path)
        for sparse in scope.records.get("sparse_initializer", ()):
            tensor = Tensor(sparse.values, scope.document)
            shape = tuple(sparse.dims)
            yield _row(scope, tensor.name, SPARSE, tensor, outputs, path, shape=shape)
        if constants:
            for node in scope.nodes:
                if text_of(node.proto.op_type) == "Constant":
                    yield from _constant(node, outputs, path)


def _constant(node: Node, outputs: set[str], path: tuple[str, ...]) -> Iterator[InitializerRow]:
    attribute = node.attribute("value")
    if attribute is None or attribute.kind != "tensor" or not node.outputs:
        return
    yield _row(node.scope, node.outputs[0], CONSTANT, attribute.value, outputs, path, node=node)


def _row(
    scope: Scope,
    name: str,
    kind: str,
    tensor: Tensor,
    outputs: set[str],
    path: tuple[str, ...],
    *,
    shape: tuple[int, ...] | None = None,
    node: Node | None = None,
) -> InitializerRow:
    uses = len(scope.users(name)) + (name in outputs)
    shape = tensor.shape if shape is None else shape
    count = tensor.element_count
    attribute = "value" if node is not None else ""
    return InitializerRow(
        scope,
        name,
        kind,
        tensor,
        shape,
        count,
        tensor.nbytes,
        uses,
        (path, kind, name),
        node,
        attribute,
    )


# --- columns ------------------------------------------------------------------------------------

COLUMNS = (
    Column("name", "name", min_width=18, keep="middle"),
    Column("dtype", "type", width=10, priority=2),
    Column("shape", "shape", width=18, priority=3),
    Column("elements", "elements", width=12, align="right", priority=7, descending=True),
    Column("bytes", "size", width=8, align="right", descending=True),
    Column("uses", "uses", width=5, align="right", priority=1, descending=True),
    Column("where", "where", min_width=16, priority=5, keep="middle"),
    Column("problem", "problem", min_width=20, priority=4),
)
SCOPE_COLUMN = Column("scope", "scope", width=18, priority=6, keep="end")

_STYLES = {"float16": "prec-fp16", "bfloat16": "prec-bf16", "int8": "prec-int8"}


class InitializerTable:
    """The table source.

    Args:
        rows: The rows.
        problem_of: Returns why a row's values cannot be read, or nothing; asked for visible rows.
    """

    def __init__(
        self, rows: Sequence[InitializerRow], problem_of: Callable[[InitializerRow], str]
    ) -> None:
        self.rows = rows
        self.problem_of = problem_of

    def __len__(self) -> int:
        return len(self.rows)

    def key(self, row: int) -> Hashable:
        """Return what identifies the row."""
        return self.rows[row].key

    def cell(self, row: int, column: str, width: int) -> Cell:
        """Return one cell."""
        return _CELLS[column](self.rows[row], self)

    def sort_value(self, row: int, column: str) -> Any:
        """Return what to sort by."""
        found = self.rows[row]
        if column == "problem":
            return self.problem_of(found) or None
        return _SORT[column](found)

    def text(self, row: int) -> str:
        """Return what search, filter and copy see."""
        found = self.rows[row]
        shape = fmt.shape(found.shape)
        parts = (found.name, found.tensor.dtype, shape, found.where, " ".join(found.scope.path))
        return visible(" ".join(parts))


def _name_cell(row: InitializerRow, table: InitializerTable) -> Cell:
    style = "bad" if table.problem_of(row) else "" if row.is_initializer else "op-data"
    return (row.name or "(no name)", style)


def _uses_cell(row: InitializerRow, table: InitializerTable) -> Cell:
    return (fmt.count(row.uses), "warn" if not row.uses else "")


def _where_cell(row: InitializerRow, table: InitializerTable) -> Cell:
    return (row.where, "dim" if row.tensor.location != "none" else "bad")


def _problem_cell(row: InitializerRow, table: InitializerTable) -> Cell:
    problem = table.problem_of(row)
    if problem:
        return (f"{glyphs.current().error} {problem}", "bad")
    return ("never used", "warn") if not row.uses else ""


_CELLS: dict[str, Callable[[InitializerRow, InitializerTable], Cell]] = {
    "name": _name_cell,
    "dtype": lambda row, table: (row.tensor.dtype, _STYLES.get(row.tensor.dtype, "type")),
    "shape": lambda row, table: fmt.shape(row.shape),
    "elements": lambda row, table: (fmt.count(row.elements), "dim"),
    "bytes": lambda row, table: fmt.size(row.nbytes),
    "uses": _uses_cell,
    "where": _where_cell,
    "problem": _problem_cell,
    "scope": lambda row, table: (" › ".join(row.scope.path) or "main", "dim"),
}
_SORT: dict[str, Callable[[InitializerRow], Any]] = {
    "name": lambda row: row.name.lower(),
    "dtype": lambda row: row.tensor.dtype,
    "shape": lambda row: (len(row.shape), row.shape),
    "elements": lambda row: row.elements,
    "bytes": lambda row: row.nbytes,
    "uses": lambda row: row.uses,
    "where": lambda row: row.where,
    "scope": lambda row: row.scope.path,
}


_KEYS = (
    "{initializers.filter} filter  {initializers.scopes} all scopes  {initializers.constants} "
    "constants"
)
_FILTER_HELP = "words all must match: name, type, shape, file"


class InitializersView(TableView):
    """The rows; `/` filters instead of searching."""

    HELP = (
        "The initializers of a scope, the largest first. {list.activate} shows and edits the "
        "elements, those of a sparse one as text, {initializers.data_file} the place of external "
        "ones. {list.mark} marks rows for delete, convert, external and inline. "
        "{initializers.connect} gives one to a node input, {initializers.switch} gives a user "
        "another one, {initializers.disconnect} takes it from a user, {initializers.users} goes "
        "to a user. {initializers.scopes} lists all scopes, {initializers.constants} the tensors "
        "of Constant nodes, too."
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
        none = hint(
            "No initializer here. {initializers.create} makes one, {initializers.scopes} lists all"
            " scopes."
        )
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
