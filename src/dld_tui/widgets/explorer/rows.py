"""How the explorer's rows look: tree guides, type, name, output shape and precision."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from dld_tui.core import fmt
from dld_tui.core.model.tensors.value_types import ValueType, with_aliases
from dld_tui.core.text import cell_width, clip, fit, visible
from dld_tui.core.text.names import ListedNames
from dld_tui.core.types import precision_style
from dld_tui.widgets.explorer.branches import Branch, ExplorerEntry, Item, Rows, Sort, View
from dld_tui.widgets.lists.styled import Piece, operator_style
from dld_tui.widgets.parameters.descriptions import stale_mark
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.command_dispatch import hint

if TYPE_CHECKING:
    from dld_tui.widgets.explorer.state import ExplorerModel, Figures

_FILTER_GLYPH = {"unicode": "▽", "ascii": "v"}
_SHAPE_FROM = 62
"""Rows of so many cells have a column for the output's shape."""
_DTYPE_FROM = 34
_DTYPE_CELLS = 5
_FIGURE_CELLS = 9
_PRECISION_TITLE = "TRT-Pre"
_MAX_DEPTH_SHARE = 3
"""Indentation takes at most the third part of a row."""


class Columns:
    """Cells of the columns at one width of the pane; 0 for a column that is not shown."""

    def __init__(
        self, width: int, longest_type: int, precision: bool = False, figure: bool = False
    ) -> None:
        self.width = width
        self.figure = _FIGURE_CELLS if figure and width >= _DTYPE_FROM else 0
        wide = width >= _SHAPE_FROM
        self.precision = (len(_PRECISION_TITLE) if wide else _DTYPE_CELLS) if precision else 0
        self.type = min(longest_type, 11 if width < 50 else 18)
        self.dtype = _DTYPE_CELLS if width >= _DTYPE_FROM else 0
        self.shape = min(30, max(16, width // 4)) if width >= _SHAPE_FROM else 0

    @property
    def right(self) -> int:
        """Cells of all columns right of the name, with the blank before each."""
        shown = (self.figure, self.shape, self.dtype, self.precision)
        return sum(cells + 1 for cells in shown if cells)


class Seen(Protocol):
    """Figures of all listed nodes."""

    longest_type: int
    """Cells of the longest operator type."""
    has_precisions: bool
    """Whether there is a column for the TensorRT precision."""
    figures: Figures | None
    """What there is a column of, beside."""


class ExplorerRows:
    """The line source of the explorer.

    Args:
        rows: What to show.
        is_unfolded: Whether an item is unfolded, None when there is nothing below it.
        seen: What all nodes need of the columns.
        is_context: Whether a node is only shown because of what is in it.
    """

    def __init__(
        self,
        rows: Rows,
        is_unfolded: Callable[[Item], bool | None],
        seen: Seen,
        is_context: Callable[[ExplorerEntry], bool],
    ) -> None:
        self.rows = rows
        self._is_context = is_context
        self._is_unfolded = is_unfolded
        self._seen = seen
        self._columns = Columns(0, 0)
        self._has_figure = False
        self._places: dict[Hashable, int] | None = None
        self._names = ListedNames(
            _tail(item, start)
            for item, start in zip(rows.items, rows.starts, strict=True)
            if not isinstance(item, Branch)
        )

    def __len__(self) -> int:
        return len(self.rows)

    def columns(self, width: int) -> Columns:
        """Return the columns at a width."""
        precision = self._seen.has_precisions
        figure = self._seen.figures is not None
        now = (self._columns.width, bool(self._columns.precision), self._has_figure)
        if now != (width, precision, figure):
            self._columns = Columns(width, self._seen.longest_type, precision, figure)
            self._has_figure = figure
        return self._columns

    def key(self, index: int) -> Hashable:
        """Return the node of a row, or what tells a branch from the others."""
        return self.rows.items[index].key

    def index_of(self, key: Hashable) -> int | None:
        """Return the row of a key, or None."""
        if self._places is None:
            items = self.rows.items
            self._places = {items[at].key: at for at in range(len(items) - 1, -1, -1)}
        return self._places.get(key)

    def text(self, index: int) -> str:
        item = self.rows.items[index]
        return item.label if isinstance(item, Branch) else f"{item.op_type}  {item.label}"

    def line(self, index: int, width: int) -> Sequence[Piece]:
        item = self.rows.items[index]
        depth = min(self.rows.depths[index], width // _MAX_DEPTH_SHARE // 2)
        indent = (glyphs.current().separator + " ") * (depth - 1) + "  " * (depth > 0)
        pieces = [(indent, "guide"), (self._fold_glyph(item) + " ", "dim")]
        room = width - 2 * depth - 2
        if isinstance(item, Branch):
            return [*pieces, *_branch_pieces(item, room)]
        return [*pieces, *self._entry_pieces(item, self.rows.starts[index], room, width)]

    def header(self, title: str, width: int) -> Sequence[Piece]:
        """Return the row above the list: how it is arranged, and the columns' names."""
        columns = self.columns(width)
        left = fit(title, width - columns.right)
        pieces = [(left, "header-sort")]
        if columns.figure and self._seen.figures is not None:
            name = clip(self._seen.figures.title, columns.figure)
            pieces.append((f" {name:>{columns.figure}}", "header"))
        if columns.shape:
            pieces.append((" " + fit("output", columns.shape), "header"))
        if columns.dtype:
            pieces.append((" " + fit("dtype", columns.dtype), "header"))
        if columns.precision:
            title = _PRECISION_TITLE if columns.precision >= len(_PRECISION_TITLE) else "TRT"
            pieces.append((" " + fit(title, columns.precision), "header"))
        return pieces

    def _fold_glyph(self, item: Item) -> str:
        unfolded = self._is_unfolded(item)
        if unfolded is None:
            return " "
        return glyphs.current().unfolded if unfolded else glyphs.current().folded

    def _entry_pieces(self, entry: ExplorerEntry, start: int, room: int, width: int) -> list[Piece]:
        columns = self.columns(width)
        kind = fit(entry.op_type, min(columns.type, max(4, room // 2)))
        cells = max(0, room - cell_width(kind) - 1 - columns.right)
        keep = "end" if start == 0 else "middle"
        name = fit(self._names.cut(_tail(entry, start), cells, keep=keep), cells)
        style = operator_style(entry.kind[1], entry.kind[0])
        name_style = "" if entry.named else "dim"
        if self._is_context(entry):
            style = name_style = "faint"
        pieces = [(kind, style), (" " + name, name_style)]
        if columns.figure and self._seen.figures is not None:
            value = self._seen.figures.values.get(entry.node)
            text = fmt.UNKNOWN if value is None else self._seen.figures.shown(value)
            text = clip(text, columns.figure)
            pieces.append((f" {text:>{columns.figure}}", "faint" if value is None else "number"))
        if columns.right:
            pieces += _output_pieces(entry, columns)
        if columns.precision:
            text = fit(visible(entry.precision), columns.precision)
            pieces.append((" " + text, precision_style(entry.precision)))
        return pieces


def view_title(view: View, sort: Sort, descending: bool = False) -> str:
    """Return how the nodes are listed, e.g. ``By scope ▾ by name ▲``; no arrow: as in the file.

    Args:
        view: How they are arranged.
        sort: Their order among siblings.
        descending: Whether it is reversed.
    """
    arrow = glyphs.current().down if descending else glyphs.current().up
    title = f"{view.value} {glyphs.current().unfolded}"
    if view is View.NAME:
        return f"{title} {arrow}"
    if view is View.TYPE and sort is Sort.TYPE:
        return f"{title} fewest first {arrow}" if descending else f"{title} most first"
    if sort is Sort.FILE:
        return f"{title} reversed {arrow}" if descending else title
    return f"{title} by {sort.value} {arrow}"


def _tail(entry: ExplorerEntry, start: int) -> str:
    """Return the name of a node without what names the row that it is below."""
    return entry.label[start:] or entry.label


def _output_pieces(entry: ExplorerEntry, columns: Columns) -> list[Piece]:
    if not entry.output:
        return _type_pieces(None, columns)
    scope, types = entry.node.scope, entry.node.scope.document.shown_types
    value_type, is_stale = types.of(scope, entry.output)
    return _type_pieces(value_type, columns, stale_mark(is_stale), types.aliases(scope))


def _type_pieces(
    value_type: ValueType | None,
    columns: Columns,
    mark: str = "",
    aliases: Mapping[str, str] = MappingProxyType({}),
) -> list[Piece]:
    pieces: list[Piece] = []
    if columns.shape:
        known = value_type is not None and value_type.dims is not None
        dims = fmt.shape(value_type.dims).replace(", ", ",") if known and value_type else ""
        text = visible(with_aliases(dims, aliases))
        style = "faint" if not known else "dim" if mark else ""
        pieces.append((" " + fit(mark + (text or fmt.UNKNOWN), columns.shape), style))
    if columns.dtype:
        dtype = visible(short_dtype(value_type)) if value_type is not None else fmt.UNKNOWN
        style = precision_style(value_type.dtype if value_type is not None else None)
        if mark and not columns.shape:
            dtype, style = mark + dtype, "dim"
        pieces.append((" " + fit(dtype, columns.dtype), style))
    return pieces


def short_dtype(value_type: ValueType) -> str:
    """Return the element type in short, e.g. ``f32``, with what is around it."""
    return ValueType(value_type.dtype, (), value_type.container).short


def _branch_pieces(branch: Branch, room: int) -> list[Piece]:
    count = f"{branch.count:,}"
    if branch.kind == "note":
        text = (
            f"{branch.label}  {count} hidden, {hint('{view.constants} shows them')}"
            if branch.count
            else branch.label
        )
        return [(clip(text, room), "dim")]
    return [*_label_pieces(branch, max(0, room - len(count) - 1)), (" " + count, "dim")]


def _label_pieces(branch: Branch, room: int) -> list[Piece]:
    style = {"scope": "strong", "type": "strong", "folder": ""}[branch.kind]
    if branch.kind == "type":
        style = f"strong {operator_style(branch.label, branch.domain)}"
    label = clip(branch.label or "(no name)", room, keep="middle")
    is_function = branch.kind == "scope" and branch.scope is not None and branch.scope.is_function
    note = {"type": branch.domain, "scope": "function" if is_function else ""}.get(branch.kind, "")
    rest = fit(f"  {visible(note)}" if note else "", max(0, room - cell_width(label)))
    return [(label, style), (rest, "faint")]


def counts_text(model: ExplorerModel, conditions: int, marks: int) -> str:
    """Return how many nodes are marked and shown, and of how many: constants may be hidden.

    Args:
        model: What is shown.
        conditions: How many conditions the advanced filter has.
        marks: How many nodes are marked.
    """
    filters = conditions + bool(model.text.strip())
    text = fmt.count(model.shown)
    if model.shown != model.total:
        text += f" of {fmt.count(model.total)}"
    if filters:
        glyph = _FILTER_GLYPH[glyphs.current().name]
        text = f"{glyph} {fmt.plural(filters, 'filter')}  {text}"
    return f"{fmt.count(marks)} marked  {text}" if marks else text
