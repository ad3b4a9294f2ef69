"""The comparison of two models: side by side, one row a difference."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

from textual import events, on
from textual.containers import Container
from textual.widget import Widget

from dld_tui.commands.command import table
from dld_tui.core import fmt
from dld_tui.core.compare.diff import diff_documents
from dld_tui.core.compare.diff.model_diff import STATUSES, Field, ModelChange, ModelDiff, ScopeDiff
from dld_tui.core.compare.diff.text import (
    MARKS,
    field_status,
    field_text,
    noise_text,
    noisiest,
    scope_title,
    shown_fields,
    summary,
    title,
)
from dld_tui.core.dataclass import dataclass
from dld_tui.core.llm.folder import open_document
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.node import Node
from dld_tui.core.process.interpreter import collector_paused, freeze
from dld_tui.core.process.paths import relative_to_cwd
from dld_tui.core.text import clip, fit, visible
from dld_tui.core.types import CancelCheck, ProgressCallback
from dld_tui.styles import STYLES
from dld_tui.widgets.charts.bars import Line
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.styled import ListSource, Piece, Rows, wrap
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.command_dispatch import hint, holding
from dld_tui.widgets.shell.page import AppServices, Page, host
from dld_tui.widgets.tasks import on_thread, task, with_progress

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
    change: ModelChange | None = None
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
        scope_rows = list(_scope_rows(scope, place, status, with_same and not status))
        if scope_rows:
            rows.append(DiffRow("scope", place, scope, title=_title(scope, status)))
            rows += scope_rows
    if diff.weights and not status:
        rows += _noise_rows(diff)
    return rows


def _noise_rows(diff: ModelDiff) -> Iterator[DiffRow]:
    count = fmt.count(len(diff.weights))
    title = f"weights in few bits  {count}, signal to noise, most noise first"
    yield DiffRow("scope", "noise", None, title=title)
    scopes = {scope.new_path: scope for scope in diff.scopes}
    for number, weight in enumerate(noisiest(diff)):
        scope = scopes.get(weight.scope)
        node = scope.new.find(weight.node) if scope is not None else None
        yield DiffRow("noise", ("noise", number), scope, new_node=node, title=noise_text(weight))


def _wanted(changes: Sequence[ModelChange], status: str) -> list[tuple[_Key, ModelChange]]:
    """Return changes of a status, each with a key that it has whatever is left out."""
    counts = Counter[_Key]()
    wanted: list[tuple[_Key, ModelChange]] = []
    for change in changes:
        name = (change.kind, change.old, change.new)
        counts[name] += 1
        if status in ("", change.status):
            wanted.append(((*name, counts[name]), change))
    return wanted


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

    def before(self, change: ModelChange) -> Iterator[DiffRow]:
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


def _change_rows(change: ModelChange, key: _Key, scope: ScopeDiff | None) -> Iterator[DiffRow]:
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
    """Return what a row says of the old and of the new model. Untrusted text."""
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


def _item_side(change: ModelChange, name: str | None, about: str) -> str:
    if name is None:
        return ""
    kind = "type of" if change.kind == "value" else change.kind
    words = "order" if change.kind == "order" else f"{kind} {name}"
    return f"{words}  {about}".rstrip()


def _abouts(change: ModelChange) -> tuple[str, str]:
    """Return what the old and the new item are; empty where a row below has it."""
    if change.kind == "value" and change.fields:
        return change.fields[0].old or "", change.fields[0].new or ""
    if any(field.name in _TYPED for field in change.fields):
        return "", ""
    return change.about, change.about


def node_text(node: Node | None) -> str:
    """Return a node with its name, inputs and outputs, or nothing. Untrusted text."""
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
        "The old model is on the left, the new one on the right. {list.activate} goes to a node in "
        "the new model, or in the old one if it was removed. {diff.previous} and {diff.next} go "
        "from change to change, {diff.filter} shows only added, removed, changed or renamed nodes, "
        "{diff.all} also shows unchanged nodes. Low-bit weights come last, with their "
        "signal-to-noise ratio."
    )

    def __init__(self, old: str, new: str, *, empty: str = "") -> None:
        """Make the view of two models; `old` and `new` name them and are untrusted text."""
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

    HELP = "The full text of the row at the cursor."

    _of: DiffRow | None = None

    def on_resize(self) -> None:
        """Wrap the text to the new width."""
        super().on_resize()
        self.show(self._of)

    def show(self, row: DiffRow | None) -> None:
        """Show a row."""
        self._of = row
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


def _rows_of_change(change: ModelChange, row: DiffRow, cells: int) -> list[Line]:
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


_LOW = 30
"""Rows of a terminal below which the detail is lower."""


class DiffScreen(Page):
    """What differs between two models."""

    SCOPE = "diff"
    COMMAND_TABLE = table(
        "diff",
        ("diff.filter", "filter_status", "f", "compared", "filter",
         "Show only added, removed, changed, renamed or moved nodes."),
        ("diff.all", "toggle_same", "C", "compared", "all nodes", "Also show unchanged nodes."),
        ("diff.previous", "previous_change", "left_square_bracket", "compared", "previous change",
         "Go to the previous change."),
        ("diff.next", "next_change", "right_square_bracket", "compared", "next change",
         "Go to the next change."),
        ("diff.new", "show_new", "s", "new_node", "new model", "Show the node in the new model."),
        ("diff.old", "show_old", "X", "old_node", "old model", "Show the node in the old model."),
        ("diff.again", "again", "f5", "compared", "compare again", "Compare the files again."),
        ("diff.clear", "clear", "escape", "", "clear",
         "Stop comparing, or show all changes again."),
        footer="diff.filter diff.all diff.next diff.new diff.old",
    )  # fmt: skip
    CSS_PATH = STYLES / "lists.tcss"
    AUTO_FOCUS = "DiffView"
    HELP = DiffView.HELP

    def __init__(self, old: Path, new: Path, *, weights: bool = True) -> None:
        super().__init__()
        self.old = old
        self.new = new
        self.weights = weights
        self.tab_title = f"{old.name} -> {new.name}"
        self.diff: ModelDiff | None = None
        self.status = ""
        """The status that is shown; all when empty."""
        self.with_same = False
        self._documents: list[Document] = []

    def body(self) -> Iterable[Widget]:
        return (
            Rows([[(f" comparing {visible(self.tab_title)} …", "dim")]], id="loading"),
            Container(
                DiffView(
                    relative_to_cwd(self.old),
                    relative_to_cwd(self.new),
                    empty=" The models are the same in everything that was compared.",
                ),
                DiffDetail(gutter=False),
                id="diff",
            ),
        )

    def on_mount(self) -> None:
        """Compare the models."""
        self.query_one("#diff").display = False
        self._arrange()
        self._start()

    def on_unmount(self) -> None:
        """Close the models."""
        self._close(self._documents)

    # Comparing

    @task("load", replace=True)
    async def _start(self) -> None:
        documents: list[Document] = []
        try:
            for path in (self.old, self.new):
                self._show_progress(f"reading {visible(path.name)}")
                documents.append(await with_progress(partial(_read, path)))
            read = partial(_compared, documents, self.weights)
            compared = await with_progress(read, self._show_percent)
        except (Exception, asyncio.CancelledError):
            self._close(documents)
            host(self).close_page(self)
            raise
        self._compared(compared, documents)

    def _show_percent(self, done: int, total: int) -> None:
        if total:
            self._show_progress(f"comparing weights: {fmt.progress(done, total)}")

    def _show_progress(self, text: str) -> None:
        if self.is_mounted and self.diff is None:
            self.query_one("#loading", Rows).set_rows(
                [[(f" {text}   {hint('{diff.clear} stops')}", "dim")]]
            )

    @staticmethod
    def _close(documents: list[Document]) -> None:
        for document in documents:
            document.close()

    def _compared(self, diff: ModelDiff, documents: list[Document]) -> None:
        self._close(self._documents)
        self._documents = documents
        self.diff = diff
        self.query_one("#loading").display = False
        self.query_one("#diff").display = True
        self._show_rows()
        self.query_one(DiffView).focus()
        self.tab_changed()
        if diff.notes:
            more = f" (and {len(diff.notes) - 1} more)" if len(diff.notes) > 1 else ""
            self.notify(f"{visible(diff.notes[0])}{more}", severity="warning", markup=False)

    # Rows

    @task("rows", replace=True)
    async def _show_rows(self) -> None:
        """Make the rows, on a thread: there may be 100,000 of them."""
        if self.diff is None:
            return
        lines, title = await on_thread(_lines, self.diff, self.status, self.with_same)
        view = self.query_one(DiffView)
        view.set_lines(lines)
        view.frame.show(
            title,
            self.status
            or ("all nodes" if self.with_same else "{diff.filter} filter  {diff.all} all"),
        )
        self._moved()

    def row(self) -> DiffRow | None:
        """Return the row under the cursor."""
        return self.query_one(DiffView).row_at_cursor() if self.is_mounted else None

    @on(LineView.CursorMoved)
    def _moved(self) -> None:
        row = self.row()
        self.query_one(DiffDetail).show(row)
        scope = row.scope if row is not None else None
        path = scope.new_path if scope is not None else ()
        self.crumb(visible(" › ".join(path)) or "main")
        self.refresh_bindings()

    @on(DiffView.Activated)
    def _activated(self) -> None:
        row = self.row()
        if row is not None and row.new_node is not None:
            self.action_show_new()
        elif row is not None and row.old_node is not None:
            self.action_show_old()

    def conditions(self) -> set[str]:
        row = self.row()
        return super().conditions() | holding(
            compared=self.diff is not None,
            old_node=row is not None and row.old_node is not None,
            new_node=row is not None and row.new_node is not None,
        )

    def on_resize(self, event: events.Resize) -> None:
        """Give the detail less room on a small terminal."""
        self._arrange()

    def _arrange(self) -> None:
        self.set_class(self.app.size.height < _LOW, "-low")

    # Commands

    def action_filter_status(self) -> None:
        if self.diff is None:
            return
        present = {status for counts in self.diff.counts().values() for status in counts}
        choices = ["", *(status for status in STATUSES if status in present)]
        at = choices.index(self.status) if self.status in choices else 0
        self.status = choices[(at + 1) % len(choices)]
        self._show_rows()

    def action_toggle_same(self) -> None:
        self.with_same = not self.with_same
        self.status = ""
        self._show_rows()

    def action_next_change(self) -> None:
        self._step(1)

    def action_previous_change(self) -> None:
        self._step(-1)

    def _step(self, step: int) -> None:
        if not self.query_one(DiffView).go_to_change(step):
            self.notify("No further change", timeout=2)

    def action_show_new(self) -> None:
        row = self.row()
        if row is not None and row.new_node is not None:
            self._reveal(self.new, row, is_old=False)

    def action_show_old(self) -> None:
        row = self.row()
        if row is not None and row.old_node is not None:
            self._reveal(self.old, row, is_old=True)

    def _reveal(self, path: Path, row: DiffRow, *, is_old: bool) -> None:
        node = row.old_node if is_old else row.new_node
        if node is not None:
            host(self).reveal(path, node.scope.path, node.ref)

    def action_again(self) -> None:
        self.diff = None
        self.query_one("#diff").display = False
        self.query_one("#loading").display = True
        self._start()

    def action_clear(self) -> None:
        if self.diff is None:
            self.tasks.cancel("load")
        elif self.status or self.with_same:
            self.status, self.with_same = "", False
            self._show_rows()


def _read(path: Path, progress: ProgressCallback, cancelled: CancelCheck) -> Document:
    with collector_paused():
        return open_document(path, cancelled=cancelled)


def _compared(
    documents: Sequence[Document], weights: bool, progress: ProgressCallback, cancelled: CancelCheck
) -> ModelDiff:
    with collector_paused():
        diff = diff_documents(*documents, weights=weights, progress=progress, cancelled=cancelled)
        freeze()  # a walk over two models would hold the screen for 100 ms, and find nothing
    return diff


def _lines(diff: ModelDiff, status: str, with_same: bool) -> tuple[DiffLines, str]:
    with collector_paused():
        lines = DiffLines(diff_rows(diff, status=status, with_same=with_same))
        lines.index_of(None)  # makes the index
        freeze()
    return lines, summary(diff)


async def ask_models(services: AppServices, new: Path | None) -> tuple[Path, Path] | None:
    """Ask for the models to compare; None when the user changes their mind.

    Args:
        services: Know what is open, and ask.
        new: The model that is shown, which is taken as the new one; None asks for it, too.
    """
    from dld_tui.screens.home.nearby import MODELS, ask_nearby

    but = [new] if new is not None else []
    old = await ask_nearby(services, "Compare: the old model", MODELS, but)
    if old is not None and new is None:
        new = await ask_nearby(services, "Compare: the new model", MODELS, [old])
    return None if old is None or new is None else (old, new)
