"""The parameters pane: everything about the node or scope under the explorer's cursor.

Enter goes where a row leads: to the producer or user of a value, into a subgraph; it folds and
unfolds sections and tensors. Tensors are read on a thread, one at a time; Esc stops that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property
from threading import Event
from typing import TYPE_CHECKING

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.geometry import Size
from textual.message import Message

from dld_tui.commands.command import table
from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.document.node import Node
from dld_tui.core.text import visible
from dld_tui.widgets.graph.canvas import GraphCanvas
from dld_tui.widgets.lists.line_view import LineView, ListPlace
from dld_tui.widgets.lists.search import LineSearch
from dld_tui.widgets.lists.styled import compiled
from dld_tui.widgets.parameters.descriptions import (
    DEFAULTS,
    DOCUMENTATION,
    REQUIRED,
    NodeRows,
    ParameterLines,
    ParameterRow,
    ScopeRows,
)
from dld_tui.widgets.shell.frame import Framed
from dld_tui.widgets.tasks import Tasks, task, with_progress

if TYPE_CHECKING:
    from dld_tui.core.model.document.scope import Scope
    from dld_tui.core.model.document.summary import ModelSummary
    from dld_tui.core.model.tensors.tensor import Tensor
    from dld_tui.widgets.graph.boxes import Around
    from dld_tui.widgets.tensors.side import TensorPreview


class ParametersSearch(LineSearch):
    """A search that finds default values although they are folded."""

    def __init__(self, view: ParametersList) -> None:
        super().__init__(view)
        self.owner = view.owner

    def start(self, pattern: str, backwards: bool = False, *, first: int | None = None) -> None:
        """Move to the next row that has `pattern`."""
        if pattern:
            self.owner.unfold_for(compiled(pattern))
        super().start(pattern, backwards, first=first)


class ParametersList(LineView):
    """The rows; its owner is the :class:`Parameters` around it."""

    SCOPE = "parameters"
    COMMAND_TABLE = table(
        "parameters",
        ("parameters.fold", "owner.toggle_fold", "z", "", "fold", "Fold or unfold the row."),
        ("parameters.leave", "leave", "escape", "", "to layers",
         "Stop reading a tensor, or return to the layers."),
        palette=False,
    )  # fmt: skip
    HELP = (
        "The parameters of the node or scope at the explorer's cursor. {list.activate} goes to the "
        "node in a row, opens a subgraph or a tensor, or unfolds. {edit.change} edits a value, "
        "{edit.rename} renames, {view.documentation} shows the operator's documentation, "
        "{edit.revert} resets an attribute to its default."
    )

    def __init__(self, owner: Parameters) -> None:
        super().__init__(empty="Nothing is selected.", id="parameters-list")
        self.owner = owner
        self.finder = ParametersSearch(self)

    def show(self, rows: Sequence[ParameterRow], *, keep: bool) -> None:
        """Show other rows; only those that look different are painted again.

        With `keep` the cursor stays on its row, and the row where it is seen.
        """
        before, old_key = self.lines, self.key_at_cursor()
        old_top, old_cursor = self.scroll_offset.y, self.cursor
        self.lines = source = ParameterLines(rows)
        line = self.find_key(old_key, guess=old_cursor) if keep and old_key is not None else None
        target = old_cursor if keep and line is None else line or 0
        self._strips.clear()
        self._resize_virtual()
        self.set_reactive(LineView.cursor, self.validate_cursor(target))
        self._scroll_rows(old_top + self.cursor - old_cursor)
        if not keep or not old_top <= old_cursor < old_top + self.page:
            self.show_cursor()
        if self.scroll_offset.y != old_top or not isinstance(before, ParameterLines):
            self.refresh()
            return
        width = self.view_size.width
        for index in range(old_top, old_top + self.page):
            is_old, is_new = index < len(before), index < len(source)
            same = is_old and is_new and before.line(index, width) == source.line(index, width)
            moved = old_cursor != self.cursor and index in (old_cursor, self.cursor)
            if (is_old or is_new) and (moved or not same):
                self.refresh_row(index)

    def on_resize(self) -> None:
        """Wrap the texts for the new width."""
        self.owner.width_changed()

    def activate(self) -> None:
        """Go where the row leads."""
        self.owner.activate()

    def mark(self) -> None:
        """Fold or unfold; nothing here can be marked."""
        self.owner.toggle_fold()

    def go_right(self) -> None:
        """Unfold."""
        self.owner.fold(unfolded=True)

    def go_left(self) -> None:
        """Fold."""
        self.owner.fold(unfolded=False)

    def action_leave(self) -> None:
        if not self.owner.stop_reading():
            self.owner.post_message(self.owner.Left())


class Nearest(GraphCanvas, can_focus=False):
    """The boxes around a node; a click goes to one."""

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Go nowhere before the click has ended, whose place would be in another drawing then."""
        event.prevent_default()


_LEAST_NEAREST = 8
"""Rows that they need."""


@dataclass(frozen=True)
class ParametersPlace:
    """What the pane showed, and where its cursor was."""

    subject: Node | Scope | None
    folds: Mapping[Hashable, bool]
    row: ListPlace


class Parameters(Framed, Vertical):
    """The pane.

    Args:
        preview_bytes: Tensors up to this size are read as soon as they are unfolded.
        editable: Whether the frame offers to edit.
        id: The widget's id.
    """

    tasks = cached_property(Tasks)
    """Its long work."""

    @dataclass
    class Jumped(Message):
        """Enter on a row that names a node."""

        node: Node

    @dataclass
    class ScopeOpened(Message):
        """Enter on a row that names a subgraph or function body."""

        scope: Scope

    class RowReached(Message):
        """The cursor is on another row: other commands may fit."""

    class Left(Message):
        """Esc: the keys go back to the layers."""

    @dataclass
    class EditAsked(Message):
        """Enter on a row that only has a value to edit."""

        row: ParameterRow

    @dataclass
    class TensorAsked(Message):
        """Enter on a row that shows a tensor."""

        row: ParameterRow

    @dataclass
    class _PreviewChanged(Message):
        preview: TensorPreview

    def __init__(self, *, preview_bytes: int, editable: bool = True, id: str | None = None) -> None:
        super().__init__(id=id)
        self._editable = editable
        self.summary: ModelSummary | None = None
        """The model's figures, once they are known."""
        self.subject: Node | Scope | None = None
        self.list = ParametersList(self)
        self._preview_bytes = preview_bytes
        self._rows: list[ParameterRow] = []
        self._folds: dict[Hashable, bool] = {}
        self._previews: dict[Hashable, TensorPreview] = {}
        self._stop: Event | None = None
        self._width = 0
        self.nearest = Nearest(id="nearest")
        self.ask_nearest: Callable[[Node, Size], Around | None] = lambda node, room: None
        """Returns what is around a node as boxes for so many cells, where it is known."""
        self._near: Around | None = None

    def compose(self) -> ComposeResult:
        yield self.list
        yield self.nearest

    def on_mount(self) -> None:
        """Draw the empty pane."""
        self.frame.show("Parameters")
        self.nearest.display = False

    def on_resize(self) -> None:
        """Draw what is around the node for the new size."""
        self.show_nearest()

    def show_nearest(self) -> None:
        """Show what is around the node in the lower half, where the rows leave it empty."""
        size, node = self.scrollable_content_region.size, self.subject
        half = size.height // 2
        self._near = None
        if isinstance(node, Node) and half >= _LEAST_NEAREST and len(self._rows) <= half:
            self._near = self.ask_nearest(node, Size(size.width - 2, half - 1))
        self.nearest.display = self._near is not None
        if self._near is not None:
            self.nearest.set_drawing(self._near.drawing, self._near.box)

    @on(GraphCanvas.CursorMoved)
    @on(GraphCanvas.Activated)
    @on(GraphCanvas.MenuAsked)
    def nearest_message(self, event: Message) -> None:
        """Go to the node whose box was clicked."""
        event.stop()
        if isinstance(event, GraphCanvas.CursorMoved) and self._near is not None:
            node = self._near.nodes[event.vertex]
            if isinstance(node, Node):
                self.post_message(self.Jumped(node))
            else:
                self.show_nearest()

    def show(self, subject: Node | Scope | None) -> None:
        """Show a node or a scope."""
        if subject is self.subject:
            return
        self.stop_reading()
        self.subject = subject
        self._previews.clear()
        for key in [key for key in self._folds if key not in _KEPT_FOLDS]:
            del self._folds[key]
        self._build(keep=False)
        self._say_title()

    def rebuild(self) -> None:
        """Read the subject again, after an edit."""
        self._previews.clear()
        self._build(keep=True)
        self._say_title()

    def show_verdicts(self) -> None:
        """Read again what was found of the model's requirements, where they are shown."""
        if any(isinstance(row.key, tuple) and row.key[0] == REQUIRED for row in self._rows):
            self._build(keep=True)

    @property
    def place(self) -> ParametersPlace:
        """What is shown, and where the cursor is."""
        return ParametersPlace(self.subject, dict(self._folds), self.list.place)

    def return_to(self, place: ParametersPlace) -> None:
        """Unfold what was unfolded of the subject that is shown, and put the cursor back."""
        if place.subject is self.subject:
            if self._folds != place.folds:
                self._folds = dict(place.folds)
                self._build(keep=True)
            self.list.return_to(place.row)

    def width_changed(self) -> None:
        """Wrap the texts for the new width."""
        if self.list.view_size.width != self._width:
            self._build(keep=True)

    def _build(self, *, keep: bool) -> None:
        width = self._width = self.list.view_size.width
        subject = self.subject
        if subject is None:
            self._rows = []
        elif isinstance(subject, Node):
            self._rows = NodeRows(subject, self._folds, self._tensor_rows, width).rows()
        else:
            rows = ScopeRows(subject, self.summary, self._folds, self._tensor_rows, width)
            self._rows = rows.rows()
        self.list.show(self._rows, keep=keep)
        self.show_nearest()
        self._start_reading()

    def _say_title(self) -> None:
        subject = self.subject
        if subject is None:
            self.frame.show("Parameters")
        elif isinstance(subject, Node):
            self.frame.show(
                visible(subject.op_type), "{edit.change} edit" if self._editable else ""
            )
        else:
            self.frame.show(visible(subject.title))

    @property
    def row(self) -> ParameterRow | None:
        """The row under the cursor."""
        at = self.list.cursor
        return self._rows[at] if 0 <= at < len(self._rows) else None

    @on(LineView.Activated)
    @on(LineView.CursorMoved)
    def list_message(self, event: Message) -> None:
        """Keep the list's messages inside."""
        event.stop()
        if isinstance(event, LineView.CursorMoved):
            self.post_message(self.RowReached())

    def activate(self) -> None:
        """Go where the row leads, unfold it, read its tensor, or edit its value."""
        row = self.row
        if row is None:
            return
        if row.node is not None:
            self.post_message(self.Jumped(row.node))
        elif row.scope is not None:
            self.post_message(self.ScopeOpened(row.scope))
        elif row.tensor is not None:
            self._open_tensor(row)
        elif row.unfolded is not None:
            self.toggle_fold()
        elif row.attribute or row.name_of:
            self.post_message(self.EditAsked(row))

    def toggle_fold(self) -> None:
        """Fold or unfold the row."""
        row = self.row
        if row is not None and row.unfolded is not None:
            self.fold(unfolded=not row.unfolded)

    def fold(self, *, unfolded: bool) -> None:
        """Fold or unfold the row; the cursor stays."""
        row = self.row
        if row is None or row.unfolded is None or row.unfolded is unfolded:
            return
        self._folds[row.fold_key] = unfolded
        self._build(keep=True)
        self.list.show_cursor()  # and some of what is unfolded

    def unfold_for(self, searched: re.Pattern[str]) -> None:
        """Unfold the defaults when only they have what is searched for."""
        if self._folds.get(DEFAULTS) or self._has(searched):
            return
        self._folds[DEFAULTS] = True
        self._build(keep=True)
        if not self._has(searched):
            self._folds[DEFAULTS] = False
            self._build(keep=True)

    def _has(self, searched: re.Pattern[str]) -> bool:
        return any(searched.search(row.text()) for row in self._rows)

    def toggle_documentation(self) -> None:
        """Show or hide the operator's documentation, and go to it."""
        shown = not self._folds.get(DOCUMENTATION, False)
        self._folds[DOCUMENTATION] = shown
        self._build(keep=True)
        if shown:
            self.list.go_to_key(DOCUMENTATION)
            self.list.scroll_to(y=self.list.cursor, animate=False, immediate=True)

    def go_to_attributes(self) -> None:
        """Put the cursor on the first attribute; unfold the defaults when none is set."""
        for attempt in range(2):
            for at, row in enumerate(self._rows):
                if row.attribute:
                    self.list.cursor = at
                    return
            if attempt == 0:
                self._folds[DEFAULTS] = True
                self._build(keep=True)

    def _tensor_rows(self, key: Hashable, tensor: Tensor) -> list[ParameterRow]:
        from dld_tui.widgets.tensors.side import TensorPreview, preview_rows

        preview = self._previews.get(key)
        if preview is None:
            preview = self._previews[key] = TensorPreview(tensor)
            if (tensor.nbytes or 0) > self._preview_bytes:
                preview.state = "ask"
        return list(preview_rows(key, preview))

    def _start_reading(self) -> None:
        """Read the first tensor that waits, unless one is being read."""
        if self._stop is not None:
            return
        for preview in self._previews.values():
            if preview.state == "new":
                self._read(preview)
                return

    @task("tensor")
    async def _read(self, preview: TensorPreview) -> None:
        self._stop = stop = Event()
        preview.state = "reading"

        def report(done: int, total: int) -> None:
            preview.fraction = done / total if total else 0.0
            self.post_message(self._PreviewChanged(preview))

        await with_progress(
            lambda progress, cancelled: preview.read(cancelled, progress), report, stop
        )
        self.post_message(self._PreviewChanged(preview))

    def _open_tensor(self, row: ParameterRow) -> None:
        """Read a tensor that waits to be asked for; open any other in the editor."""
        waiting = [
            preview
            for preview in self._previews.values()
            if preview.tensor is row.tensor and preview.state in ("ask", "failed")
        ]
        if row.unfolded is not None or not waiting:
            self.post_message(self.TensorAsked(row))
            return
        for preview in waiting:
            preview.state = "new"
        self._start_reading()
        self._build(keep=True)

    def holder_of(self, row: ParameterRow) -> ParameterRow:
        """Return the row of the value that a row below an unfolded tensor belongs to."""
        if row.tensor is None:
            return row
        at = next((n for n, other in enumerate(self._rows) if other is row), 0)
        while at > 0 and self._rows[at].unfolded is None:
            at -= 1
        return self._rows[at]

    @on(_PreviewChanged)
    def preview_changed(self, event: _PreviewChanged) -> None:
        """Show how far a tensor is; when it is done, read the next one."""
        event.stop()
        if event.preview.state != "reading":
            self._stop = None
        if any(event.preview is preview for preview in self._previews.values()):
            self._build(keep=True)
        else:
            self._start_reading()

    def stop_reading(self) -> bool:
        """Stop the thread that reads a tensor; False when none is being read."""
        if self._stop is None:
            return False
        self._stop.set()
        return True

    def on_unmount(self) -> None:
        """Let the thread end."""
        self.stop_reading()


_KEPT_FOLDS: frozenset[Hashable] = frozenset({DEFAULTS, DOCUMENTATION})
"""What stays unfolded when the cursor goes to another node."""
