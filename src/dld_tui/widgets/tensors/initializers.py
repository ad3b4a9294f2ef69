"""The initializers of a model as rows of a table, and the pane that lists them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import DldError
from dld_tui.core.files.proto_fields import text_of as plain_text
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.scope import Scope
from dld_tui.core.model.tensors.tensor import Tensor
from dld_tui.core.tables.table import BAR, BYTES, COUNT, NOTE, Column, Table
from dld_tui.core.text import visible
from dld_tui.core.types import precision_style
from dld_tui.widgets.lists.table_view import TablePane, TableView
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.command_dispatch import hint

DENSE, SPARSE, CONSTANT = "dense", "sparse", "constant"


@dataclass(frozen=True, eq=False)
class InitializerRow:
    """One tensor of the list."""

    scope: Scope
    name: str
    """Its name, or that of the Constant node's output. Untrusted text."""
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
        """Where its values are: untrusted text."""
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
        uses, path = scope.references(), scope.path
        for proto in scope.records.get("initializer", ()):
            tensor = Tensor(proto, scope.document)
            yield _row(scope, tensor.name, DENSE, tensor, uses, path)
        for sparse in scope.records.get("sparse_initializer", ()):
            tensor = Tensor(sparse.values, scope.document)
            shape = tuple(sparse.dims)
            yield _row(scope, tensor.name, SPARSE, tensor, uses, path, shape=shape)
        if constants:
            for node in scope.nodes:
                if plain_text(node.proto.op_type) == "Constant":
                    yield from _constant(node, uses, path)


def _constant(node: Node, uses: Counter[str], path: tuple[str, ...]) -> Iterator[InitializerRow]:
    attribute = node.attribute("value")
    if attribute is None or attribute.kind != "tensor" or not node.outputs:
        return
    yield _row(node.scope, node.outputs[0], CONSTANT, attribute.value, uses, path, node=node)


def _row(
    scope: Scope,
    name: str,
    kind: str,
    tensor: Tensor,
    uses: Counter[str],
    path: tuple[str, ...],
    *,
    shape: tuple[int, ...] | None = None,
    node: Node | None = None,
) -> InitializerRow:
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
        uses[name],
        (path, kind, name),
        node,
        attribute,
    )


def text_of(row: InitializerRow) -> str:
    """Return what search and filter see of a row: untrusted text."""
    shape = fmt.shape(row.shape)
    return " ".join((row.name, row.tensor.dtype, shape, row.where, " ".join(row.scope.path)))


def initializer_table(
    rows: Sequence[InitializerRow],
    problem_of: Callable[[InitializerRow], str],
    *,
    with_scope: bool = False,
) -> Table[InitializerRow]:
    """Return the initializers as a table.

    Args:
        rows: The rows.
        problem_of: Returns why a row's values cannot be read, or nothing; asked for visible rows.
        with_scope: With the scope of each.
    """

    def name_style(row: InitializerRow) -> str:
        return "bad" if problem_of(row) else "" if row.is_initializer else "op-data"

    def problem(row: InitializerRow) -> str:
        problem_text = problem_of(row)
        if problem_text:
            return f"{glyphs.current().error} {problem_text}"
        return "" if row.uses else "never used"

    scope: list[Column[InitializerRow]] = [
        Column("scope", "scope", lambda row: " › ".join(row.scope.path) or "main", NOTE, 18,
               priority=6, keep="end", style="dim", order=lambda row: row.scope.path),
    ]  # fmt: skip
    columns: list[Column[InitializerRow]] = [
        Column("name", "name", lambda row: row.name, least=18, keep="middle", style=name_style,
               text=lambda row: row.name or "(no name)"),
        *(scope if with_scope else ()),
        Column("dtype", "type", lambda row: row.tensor.dtype, width=10, priority=2,
               style=lambda row: precision_style(row.tensor.dtype)),
        Column("shape", "shape", lambda row: fmt.shape(row.shape), width=18, priority=3,
               order=lambda row: (len(row.shape), row.shape)),
        Column("elements", "elements", lambda row: row.elements, COUNT, 12, priority=7,
               style="dim"),
        Column("bytes", "size", lambda row: row.nbytes, BYTES, 8),
        Column("bar", "", lambda row: row.nbytes, BAR, 8, align="left", heat=True, priority=4,
               sortable=False),
        Column("uses", "uses", lambda row: row.uses, COUNT, 5, priority=1,
               style=lambda row: "" if row.uses else "warn"),
        Column("where", "where", lambda row: row.where, least=16, priority=5, keep="middle",
               style=lambda row: "dim" if row.tensor.location != "none" else "bad"),
        Column("problem", "problem", problem_of, NOTE, least=20, priority=4, text=problem,
               style=lambda row: "bad" if problem_of(row) else "warn"),
    ]  # fmt: skip
    return Table(columns, rows, row_key=lambda row: row.key)


_KEYS = (
    "{initializers.filter} filter  {initializers.scopes} all scopes  {initializers.constants} "
    "constants"
)
_FILTER_HELP = "words all must match: name, type, shape, file"


class InitializersView(TableView):
    """The rows."""

    FITTED = True

    HELP = (
        "The initializers of a scope, largest first. {list.activate} opens the tensor editor (a "
        "text for sparse ones), {initializers.data_file} edits the location of external data. "
        "{list.mark} marks rows for delete, convert, external and inline. {initializers.connect} "
        "connects an initializer to a node input, {initializers.switch} gives a consumer another "
        "initializer, {initializers.disconnect} disconnects one, {initializers.users} goes to a "
        "consumer. {initializers.scopes} lists all scopes, {initializers.constants} also lists the "
        "tensors of Constant nodes."
    )


class InitializersPane(TablePane):
    """The list."""

    VIEW = InitializersView
    FILTER_HELP = _FILTER_HELP

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.rows: Sequence[InitializerRow] = ()
        self._with_scope = False
        self._problems: dict[Hashable, str] = {}

    def on_mount(self) -> None:
        """Start with the largest on top."""
        super().on_mount()
        self.table.empty = "listing …"
        self.table.sort_by("bytes", descending=True)

    def show(self, rows: Sequence[InitializerRow], *, with_scope: bool) -> None:
        """Show other rows; cursor and marks stay on those that are still there."""
        self.rows = rows
        self._problems = {}
        self._with_scope = with_scope
        table = self.table
        if table.marks:
            table.set_marks(table.marks & {row.key for row in rows})
            self.say_sums(table.marks)  # of the same rows, which may have other sizes now
        self.fill()

    def problem_of(self, row: InitializerRow) -> str:
        """Return why a tensor's values cannot be read, or nothing."""
        problem = self._problems.get(row.key)
        if problem is None:
            try:
                problem = row.tensor.problem or ""
            except DldError as error:
                problem = error.message
            self._problems[row.key] = problem
        return problem

    def fill(self) -> None:
        """Show the rows that pass the filter."""
        words = self.filter.lower().split()
        shown = [
            at
            for at, row in enumerate(self.rows)
            if not words or all(word in text_of(row).lower() for word in words)
        ]
        none = hint(
            "No initializer here. {initializers.constants} lists Constant nodes, too,"
            " {initializers.scopes} all scopes; {initializers.create} makes one."
        )
        self.table.empty = (
            "No initializer matches the filter. Esc clears it." if self.rows else none
        )
        table = initializer_table(self.rows, self.problem_of, with_scope=self._with_scope)
        self.table.set_table(table, shown)

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
        return self.table.shown_rows()

    def say_title(self, where: str) -> None:
        """Say where the rows are from, how many there are and how large they are."""
        dot = f" {glyphs.current().dot} "
        size = fmt.size(sum(row.nbytes or 0 for row in self.rows))
        parts = ["Initializers", f"{len(self.rows):,}", size, where]
        problems = sum(bool(problem) for problem in self._problems.values())
        if problems:
            parts.append(fmt.plural(problems, "problem"))
        self.frame.show(dot.join(parts), _KEYS)

    def sums(self, marks: set[Hashable]) -> Sequence[str]:
        """Return how many are marked, and how large they are."""
        rows = [row for row in self.rows if row.key in marks]
        size = fmt.size(sum(row.nbytes or 0 for row in rows))
        types = sorted({row.tensor.dtype for row in rows})
        return [visible(f"{len(rows):,} marked  {size}  {' '.join(types[:4])}")] if rows else []
