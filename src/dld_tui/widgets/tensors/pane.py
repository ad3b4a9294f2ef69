"""The grid of a tensor with its bar of slices, the line of the cell, and the field to edit one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input

from dld_tui.core.errors import DldError
from dld_tui.core.text import visible
from dld_tui.widgets.charts.bars import Line, width_of
from dld_tui.widgets.forms.text_field import TextField
from dld_tui.widgets.lists.line_source import Piece
from dld_tui.widgets.lists.styled import Rows
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.command_dispatch import saves
from dld_tui.widgets.shell.frame import Framed
from dld_tui.widgets.tensors.grid import GridLayout, TensorGrid

_LEAST_FIELD = 14


class SliceBar(Rows):
    """Which axes are rows and columns, and the index along each of the others."""

    def __init__(self) -> None:
        super().__init__([[]])
        self._shown: tuple[GridLayout, int | None] | None = None
        self._ends: list[int] = []

    @dataclass
    class Clicked(Message):
        """An axis was clicked."""

        axis: int

    def show(self, layout: GridLayout, axis: int | None) -> None:
        """Show a view; `axis` is the one that the keys step along."""
        self.display = bool(layout.free_axes)
        if (layout, axis) != self._shown:
            self._shown = (layout, axis)
            self.refresh()

    def content(self, width: int) -> Sequence[Line]:
        if self._shown is None:
            return [[]]
        rooms = [self._axes(*self._shown, in_words=in_words) for in_words in (True, False)]
        axes = next((axes for axes in rooms if sum(map(width_of, axes)) <= width), rooms[-1])
        self._ends = list(itertools.accumulate(map(width_of, axes)))
        return [[piece for pieces in axes for piece in pieces]]

    @staticmethod
    def _axes(layout: GridLayout, axis: int | None, *, in_words: bool) -> list[Line]:
        """Return the pieces of each axis."""
        lines: list[Line] = []
        for number, size in enumerate(layout.shape):
            name = f"axis {number} " if in_words else f"{number}:"
            if number in (layout.row_axis, layout.column_axis):
                role = "rows" if number == layout.row_axis else "columns"
                lines.append([(f"  {name}{role if in_words else role[0]} {size:,} ", "dim")])
                continue
            place = f"{layout.fixed[number]:,}"
            of = f" of {size:,}" if in_words else f"/{size:,}"
            equals = "= " if in_words else ""
            if number == axis:
                lines.append([
                    (" [", "key"), (f"{name}{equals}", "accent"), (place, "accent strong"),
                    (of, "accent"), ("]", "key"),
                ])  # fmt: skip
            else:
                lines.append([(f"  {name}{equals}{place}{of} ", "")])
        return lines

    def on_click(self, event: events.Click) -> None:
        """Step along the axis that was clicked from now on."""
        axis = next((number for number, end in enumerate(self._ends) if event.x < end), None)
        if axis is not None:
            self.post_message(self.Clicked(axis))


class CellEditor(TextField):
    """The field over a cell."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "cancel", show=False),
        Binding("tab", "accept(0, 1)", "next", show=False, priority=True),
        Binding("down", "accept(1, 0)", "down", show=False),
        Binding("up", "accept(-1, 0)", "up", show=False),
    ]

    def action_leave(self) -> None:
        self.query_ancestor(GridPane).close_editor()

    def action_accept(self, down: int, across: int) -> None:
        self.query_ancestor(GridPane).accept(down, across)


class GridPane(Framed, Vertical):
    """The pane. Ask it for a cell's value with :meth:`ask`."""

    class Next(Message):
        """The value was taken, and the next cell is to be edited."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.is_editing = False
        """Whether a cell is being edited."""
        self._take: Callable[[str], None] | None = None

    def compose(self) -> ComposeResult:
        yield SliceBar()
        yield TensorGrid()
        yield CellLine([[]])

    @property
    def grid(self) -> TensorGrid:
        """The grid."""
        return self.query_one(TensorGrid)

    def say(self, pieces: Iterable[Piece]) -> None:
        """Show the details of the cell, or the error in the typed text."""
        self.query_one(CellLine).set_rows([list(pieces)])

    # --- editing in place -----------------------------------------------------------------------

    def ask(self, value: str, take: Callable[[str], None]) -> None:
        """Edit the cell at the cursor.

        Args:
            value: The text to begin with.
            take: Called with the text; a DldError that it raises is shown, and the field stays.
        """
        self.close_editor()
        self._take = take
        grid = self.grid
        grid.show_cursor()
        cell = grid.cell_region()
        width = max(cell.width, _LEAST_FIELD, len(value) + 2)
        # As wide as the value needs, within the grid, and over the cell's right end.
        width = min(width, max(1, grid.size.width))
        left = max(0, min(cell.right - width, grid.size.width - width))
        editor = CellEditor(value, select_on_focus=True)
        editor.styles.width = width
        origin = grid.region.offset - self.content_region.offset
        editor.styles.offset = (origin.x + left, origin.y + cell.y)
        self.is_editing = True
        self.mount(editor)
        editor.focus()
        self.say([(" Enter accept  Tab next  ↑↓ next row  Esc cancel", "dim")])

    def close_editor(self) -> None:
        """Take the field away; the grid has the keys again."""
        if self.is_editing:
            self.is_editing = False
            self.query(CellEditor).remove()
            self.grid.focus()
            self.grid.say_moved()

    def accept(self, down: int = 0, across: int = 0) -> bool:
        """Take the value, and go on to another cell; False when there is something wrong."""
        editor = self.query(CellEditor).last() if self.is_editing else None
        if editor is None or self._take is None:
            return False
        try:
            self._take(editor.value)
        except DldError as error:
            editor.add_class("-wrong")
            mark = glyphs.current().error
            hint = f". {error.hint}" if error.hint else ""
            self.say([(f" {mark} {visible(error.message + hint)}", "bad")])
            return False
        self.close_editor()
        if down or across:
            grid = self.grid
            before = (grid.row, grid.column)
            grid.move_to(grid.row + down, grid.column + across)
            if (grid.row, grid.column) != before:
                self.post_message(self.Next())
        return True

    def on_key(self, event: events.Key) -> None:
        """Take the value before the key saves the model."""
        if self.is_editing and saves(self.screen, event) and not self.accept():
            event.stop()

    @on(Input.Submitted)
    def submitted(self, event: Input.Submitted) -> None:
        """Take the value."""
        event.stop()
        self.accept()

    @on(Input.Changed)
    def typed(self, event: Input.Changed) -> None:
        """Forget what was wrong with another text."""
        event.stop()
        if event.input.has_class("-wrong"):
            event.input.remove_class("-wrong")
            self.say([(" Enter accept  Tab next  ↑↓ next row  Esc cancel", "dim")])


class CellLine(Rows):
    """One row below the grid."""
