"""The two columns of a comparison of models, and the full text of the row under the cursor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dld_tui.core import fmt
from dld_tui.core.diff.model import Change, Field, ModelDiff, ScopeDiff
from dld_tui.core.diff.text import (
    MARKS,
    field_status,
    field_text,
    noise_text,
    noisiest,
    scope_title,
    shown_fields,
    title,
)
from dld_tui.core.document.node import Node
from dld_tui.core.text import clip, fit, visible
from dld_tui.widgets.charts.bars import Line
from dld_tui.widgets.lists.line_source import ListSource, Piece
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.styled import wrap
from dld_tui.widgets.shell import glyphs

STATUS_STYLES = {
    "added": "good",
    "removed": "bad",
    "changed": "warn",
    "renamed": "info",
    "moved": "info",
}
MARK_CELLS = 3
"""Cells before the columns, with the mark of a change."""
_WHOLE = ("model", "graph")
"""Kinds whose differences are shown without a row of their own."""
_AFTER_NODES = ("order", "initializer", "value")
"""Kinds whose changes come after those of the nodes."""
_Key: TypeAlias = "tuple[Hashable, ...]"
_TYPED = {"type", "dtype", "shape"}
_MOST = 1000
"""Characters of a text that can be seen at most."""


@dataclass(frozen=True, slots=True)
class DiffRow:
    """One row: a scope's title, an item, one of its differences, or a node that is the same."""

    kind: str
    """``scope``, ``change``, ``field``, ``same``, or ``noise`` of a weight in few bits."""
    key: Hashable
    scope: ScopeDiff | None
    """None for what is of the model as a whole."""
    change: Change | None = None
    field: Field | None = None
    old_node: Node | None = None
    new_node: Node | None = None
    title: str = ""
    """The text of a scope's row, or of noise, fit to be shown."""


def diff_rows(diff: ModelDiff, *, status: str = "", with_same: bool = False) -> list[DiffRow]:
    """Return the rows of a comparison.

    Args:
        diff: The comparison.
        status: Only changes of this status; all when empty.
        with_same: The nodes that are the same, too, where the new file has them.
    """
    rows: list[DiffRow] = []
    changes = _wanted(diff.changes, status)
    if changes:
        rows.append(DiffRow("scope", "model", None, title="model"))
        for key, change in changes:
            rows += _change_rows(change, ("model", *key), None)
    for place, scope in enumerate(diff.scopes):
        found = list(_scope_rows(scope, place, status, with_same and not status))
        if found:
            rows.append(DiffRow("scope", place, scope, title=_title(scope, status)))
            rows += found
    if diff.weights and not status:
        rows += _noise_rows(diff)
    return rows


def _noise_rows(diff: ModelDiff) -> Iterator[DiffRow]:
    title = f"weights in few bits  {fmt.count(len(diff.weights))}, most noise first"
    yield DiffRow("scope", "noise", None, title=title)
    scopes = {scope.new_path: scope for scope in diff.scopes}
    for number, one in enumerate(noisiest(diff)):
        scope = scopes.get(one.scope)
        node = scope.new.find(one.node) if scope is not None else None
        yield DiffRow("noise", ("noise", number), scope, new_node=node, title=noise_text(one))


def _wanted(changes: Sequence[Change], status: str) -> list[tuple[_Key, Change]]:
    """Return changes of a status, each with a key that it has whatever is left out."""
    counts = Counter[_Key]()
    found: list[tuple[_Key, Change]] = []
    for change in changes:
        name = (change.kind, change.old, change.new)
        counts[name] += 1
        if status in ("", change.status):
            found.append(((*name, counts[name]), change))
    return found


def _title(scope: ScopeDiff, status: str) -> str:
    count = len(_wanted(scope.changes, status))
    words = "no differences" if not count else "1 difference" if count == 1 else ""
    return f"{scope_title(scope)}  {words or f'{fmt.count(count)} differences'}"


def _scope_rows(scope: ScopeDiff, place: int, status: str, with_same: bool) -> Iterator[DiffRow]:
    changes = _wanted(scope.changes, status)
    same = _SameNodes(scope, place) if with_same else None
    for key, change in changes:
        if same is not None:
            yield from same.before(change)
        yield from _change_rows(change, (place, *key), scope)
    if same is not None:
        yield from same.rest()


class _SameNodes:
    """Hands out the nodes that are the same, in the order of the new file."""

    def __init__(self, scope: ScopeDiff, place: int) -> None:
        self._scope = scope
        self._place = place
        self._at = 0
        self._changed = {id(change.new_node) for change in scope.changes}
        self._old_of = {other: index for index, other in enumerate(scope.partners) if other >= 0}
        self._old_index = {id(node): index for index, node in enumerate(scope.old.nodes)}
        self._new_index = {id(node): index for index, node in enumerate(scope.new.nodes)}

    def before(self, change: Change) -> Iterator[DiffRow]:
        """Yield the nodes that stand before a change; changes of nodes are in order."""
        if change.kind in _AFTER_NODES:
            yield from self.rest()
        elif id(change.new_node) in self._new_index:
            yield from self._until(self._new_index[id(change.new_node)])
        elif id(change.old_node) in self._old_index:
            limit = self._old_index[id(change.old_node)]
            end = self._at
            while end < len(self._scope.new.nodes) and self._old_of.get(end, limit) < limit:
                end += 1
            yield from self._until(end)

    def rest(self) -> Iterator[DiffRow]:
        """Yield the nodes that are left."""
        yield from self._until(len(self._scope.new.nodes))

    def _until(self, end: int) -> Iterator[DiffRow]:
        scope = self._scope
        for index in range(self._at, end):
            node = scope.new.nodes[index]
            old = self._old_of.get(index)
            if id(node) not in self._changed and old is not None:
                yield DiffRow(
                    "same",
                    (self._place, index),
                    scope,
                    old_node=scope.old.nodes[old],
                    new_node=node,
                )
        self._at = max(self._at, end)


def _change_rows(change: Change, key: _Key, scope: ScopeDiff | None) -> Iterator[DiffRow]:
    old, new = change.old_node, change.new_node
    kind = "change"
    if change.kind not in _WHOLE:
        yield DiffRow(kind, key, scope, change, old_node=old, new_node=new)
        kind = "field"
    for number, field in enumerate(shown_fields(change)):
        yield DiffRow(kind, (*key, number), scope, change, field, old, new)


def row_status(row: DiffRow) -> str:
    """Return the status of a row's change; of what is the same, nothing."""
    if row.change is None:
        return ""
    if row.field is not None and row.change.kind in _WHOLE:
        return field_status(row.field)
    return row.change.status


def sides(row: DiffRow) -> tuple[str, str]:
    """Return what a row says of the old and of the new model. Foreign text."""
    if row.kind in ("scope", "noise"):
        return row.title, ""
    if row.kind == "same":
        return node_text(row.old_node), node_text(row.new_node)
    change, field = row.change, row.field
    if change is None:
        return "", ""
    if field is not None:
        indent = "" if change.kind in _WHOLE else "    "
        return _field_side(field, field.old, indent), _field_side(field, field.new, indent)
    if change.old_node is not None or change.new_node is not None:
        return node_text(change.old_node), node_text(change.new_node)
    old, new = _abouts(change)
    return _item_side(change, change.old, old), _item_side(change, change.new, new)


def _field_side(field: Field, value: str | None, indent: str) -> str:
    return "" if value is None else f"{indent}{field.name}: {value}"


def _item_side(change: Change, name: str | None, about: str) -> str:
    if name is None:
        return ""
    kind = "type of" if change.kind == "value" else change.kind
    words = "order" if change.kind == "order" else f"{kind} {name}"
    return f"{words}  {about}".rstrip()


def _abouts(change: Change) -> tuple[str, str]:
    """Return what the old and the new item are; nothing where a row below says so."""
    if change.kind == "value" and change.fields:
        return change.fields[0].old or "", change.fields[0].new or ""
    if any(field.name in _TYPED for field in change.fields):
        return "", ""
    return change.about, change.about


def node_text(node: Node | None) -> str:
    """Return a node with its name, inputs and outputs, or nothing. Foreign text."""
    if node is None:
        return ""
    operator = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
    ins, outs = (", ".join(name or "–" for name in names) for names in (node.inputs, node.outputs))
    return f"{node.name or '–'}  {operator}({ins}) -> {outs or '–'}"


class DiffLines:
    """The line source of the two columns."""

    def __init__(self, rows: Sequence[DiffRow] = ()) -> None:
        self.rows = rows
        self._places: dict[Hashable, int] | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def key(self, index: int) -> Hashable:
        return self.rows[index].key

    def index_of(self, key: Hashable) -> int | None:
        """Return the row of a key, or None."""
        if self._places is None:
            self._places = {row.key: index for index, row in enumerate(self.rows)}
        return self._places.get(key)

    def text(self, index: int) -> str:
        left, right = sides(self.rows[index])
        return f"{left} | {right}" if right else left

    def line(self, index: int, width: int) -> list[Piece]:
        row = self.rows[index]
        if row.kind == "scope":
            return [(f" {clip(row.title, max(0, width - 1), keep='middle')}", "strong")]
        if row.kind == "noise":
            return [(fit(row.title, width), "")]
        left, right = (visible(text[:_MOST]) for text in sides(row))
        status = row_status(row)
        style = STATUS_STYLES.get(status, "dim")
        mark = MARKS[status] if row.kind == "change" else " "
        pieces = columns(f" {mark} ", (left, right), _styles(row, style), width)
        return [(pieces[0][0], style), *pieces[1:]]


def columns(mark: str, texts: tuple[str, str], styles: tuple[str, str], width: int) -> list[Piece]:
    """Return a row of two columns for `width` cells; the texts are fit to be shown."""
    gap = f" {glyphs.current().separator} "
    room = max(0, width - len(mark) - len(gap))
    left = room // 2
    return [
        (mark, ""),
        (fit(texts[0], left), styles[0]),
        (gap, "guide"),
        (fit(texts[1], room - left), styles[1]),
    ]


def _styles(row: DiffRow, style: str) -> tuple[str, str]:
    """Return the styles of the two columns."""
    if row.change is None:
        return "dim", "dim"
    if row.field is not None:
        return "bad", "good"
    return (style, style) if row.change.status != "changed" else ("", "")


class DiffView(LineView):
    """The rows."""

    HELP = (
        "The old model is at the left, the new one at the right. {list.activate} goes to a node "
        "in the new model, or in the old one when it is gone. {diff.previous} and {diff.next} go "
        "from change to change, {diff.filter} shows only what was added, removed, changed or "
        "renamed, {diff.all} shows the nodes that are the same, too. Weights in few bits come "
        "last, with their signal to noise."
    )

    def __init__(self, old: str, new: str, *, empty: str = "") -> None:
        """Make the view of two models; `old` and `new` name them and are foreign text."""
        super().__init__(empty=empty)
        self.models = visible(old), visible(new)
        self.header_rows = 1

    def header_line(self, width: int) -> list[Piece]:
        """Return the row that says which model is where."""
        return columns(" " * MARK_CELLS, self.models, ("header-sort", "header-sort"), width)

    def row_at_cursor(self) -> DiffRow | None:
        """Return the row under the cursor."""
        lines = self.lines
        if isinstance(lines, DiffLines) and self.cursor < len(lines):
            return lines.rows[self.cursor]
        return None

    def go_to_change(self, step: int) -> bool:
        """Move to the next change (1) or the one before (-1); False when there is none."""
        lines = self.lines
        if not isinstance(lines, DiffLines):
            return False
        index = self.cursor + step
        while 0 <= index < len(lines.rows):
            if lines.rows[index].kind == "change":
                self.cursor = index
                return True
            index += step
        return False


class DiffDetail(LineView):
    """Everything about the row under the cursor, wrapped."""

    HELP = "The whole text of the row under the cursor."

    def show(self, row: DiffRow | None) -> None:
        """Show a row."""
        cells = max(10, self.view_size.width - 2)
        rows: list[Line] = []
        if row is not None and row.change is not None:
            rows = _rows_of_change(row.change, row, cells)
        elif row is not None:
            left, right = sides(row)
            rows = [
                [(text, "")] for text in wrap(left if left == right else f"{left}\n{right}", cells)
            ]
        self.frame.show("Difference", "")
        self.set_lines(ListSource(rows), keep=False)


def _rows_of_change(change: Change, row: DiffRow, cells: int) -> list[Line]:
    style = STATUS_STYLES[change.status]
    head = f"{change.status} {change.kind if change.kind != 'value' else 'type of'} {title(change)}"
    rows: list[Line] = [[(text, style)] for text in wrap(head, cells)]
    if change.new_place is not None:
        rows.append([(f"to {visible(' › '.join(change.new_place)) or 'main'}", "")])
    fields = [row.field] if row.field is not None else change.fields
    for field in fields:
        rows += [[(text, "")] for text in wrap(f"  {field_text(field)}", cells)]
    left, right = sides(DiffRow("change", None, row.scope, change))
    for mark, text, look in (("- ", left, "bad"), ("+ ", right, "good")):
        if text and row.field is None:
            rows += [[(part, look)] for part in wrap(f"{mark}{text}", cells)]
    return rows
