"""The initializers of a model as rows of a table: what they are, where, and who uses them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dld_tui.core import fmt
from dld_tui.core.document.node import Node
from dld_tui.core.document.scope import Scope
from dld_tui.core.document.tensor import Tensor
from dld_tui.core.document.wiretext import text_of
from dld_tui.core.text import visible
from dld_tui.widgets import glyphs
from dld_tui.widgets.table_view import Cell, Column

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
