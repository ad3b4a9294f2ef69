"""A tensor as a grid of any size, with a bar of slices and a field to edit a cell.

Only visible cells are read and drawn.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Input

from dld_tui.commands.command import table
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import DldError
from dld_tui.core.text import fit, visible
from dld_tui.widgets.charts.bars import Line, width_of
from dld_tui.widgets.forms.text_field import TextField
from dld_tui.widgets.lists.styled import Piece, PieceStyles, Rows
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.command_dispatch import Commands, saves
from dld_tui.widgets.shell.frame import Framed
from dld_tui.widgets.tensors.grid_layout import (
    CellBlocks,
    Elements,
    GridLayout,
    GridPlace,
    NumberFormat,
    layout_of,
    moved,
)

_LEAST, _MOST = 4, 26
"""Cells of a column, without the gap."""


class TensorGrid(Commands, ScrollView, can_focus=True, inherit_bindings=False):
    """The grid: a cursor, a marked range, headings that do not scroll.

    It scrolls by whole columns: ``scroll_offset`` is the first row and the first column seen.
    """

    SCOPE = "grid"
    COMMAND_TABLE = table(
        "grid",
        ("grid.up", "cursor_up", "up,k", "", "up", "Move up."),
        ("grid.down", "cursor_down", "down,j", "", "down", "Move down."),
        ("grid.left", "cursor_left", "left,h", "", "left", "Move to the left."),
        ("grid.right", "cursor_right", "right,l", "", "right", "Move to the right."),
        ("grid.page_up", "page_up", "pageup,ctrl+b", "", "page up", "Move one page up."),
        ("grid.page_down", "page_down", "pagedown,ctrl+f", "", "page down", "Move one page down."),
        ("grid.page_left", "page_left", "ctrl+left", "", "page left", "Move one page to the left."),
        ("grid.page_right", "page_right", "ctrl+right", "", "page right",
         "Move one page to the right."),
        ("grid.row_start", "row_start", "home,0", "", "row start", "Move to the first column."),
        ("grid.row_end", "row_end", "end,dollar_sign", "", "row end", "Move to the last column."),
        ("grid.first", "first", "g,ctrl+home", "", "first", "Move to the first cell of the slice."),
        ("grid.last", "last", "G,ctrl+end", "", "last", "Move to the last cell of the slice."),
        ("grid.extend_up", "extend up", "shift+up", "", "mark up",
         "Extend the marked range one row up."),
        ("grid.extend_down", "extend down", "shift+down", "", "mark down",
         "Extend the marked range one row down."),
        ("grid.extend_left", "extend left", "shift+left", "", "mark left",
         "Extend the marked range one column to the left."),
        ("grid.extend_right", "extend right", "shift+right", "", "mark right",
         "Extend the marked range one column to the right."),
        ("grid.mark", "mark", "space", "", "mark",
         "Start a marked range at the cursor, or clear it."),
        ("grid.activate", "activate", "enter", "", "edit cell", "Edit the cell."),
        palette=False,
    )  # fmt: skip
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "line--cell", "line--range", "line--heading", "line--here",
    }  # fmt: skip
    HELP = (
        "The elements of a tensor. Arrows or h j k l move, Shift with an arrow marks a range, and "
        "{grid.mark} starts one at the cursor. {tensor.cell} or {grid.activate} edits a cell; "
        "{tensor.fill} fills the range, {tensor.add} and {tensor.multiply} add and multiply. "
        "{tensor.previous_slice} and {tensor.next_slice} go to the previous and next slice, "
        "{tensor.axis} chooses the axis of the slices, {tensor.row_axis} and {tensor.column_axis} "
        "the axes of rows and columns, {tensor.transpose} swaps them, {tensor.index} goes to an "
        "index. {tensor.insert_rows} and {tensor.delete_rows} insert and delete rows; numbers that "
        "are pasted go into the cells from the cursor on."
    )
    ALLOW_SELECT = False

    @dataclass
    class CursorMoved(Message):
        """The cursor, the marked range or the slice is another."""

        grid: TensorGrid

    @dataclass
    class Activated(Message):
        """Enter or a double click on a cell."""

        grid: TensorGrid

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.piece_styles = PieceStyles(self)
        self.view: GridLayout = layout_of((0,))
        self.numbers = NumberFormat()
        self.row = self.column = 0
        self.corner: tuple[int, int] | None = None
        """The other corner of the marked range."""
        self.problem = ""
        """Why there is nothing to show."""
        self.blocks: CellBlocks | None = None
        self._cells = _LEAST

    def show(
        self, elements: Elements, dtype: str, shape: tuple[int, ...], problem: str = ""
    ) -> None:
        """Show a tensor; the place stays when it has as many dimensions as the one before.

        Args:
            elements: What is read.
            dtype: ONNX's name of the element type.
            shape: Its dimensions.
            problem: Why it cannot be read: untrusted text, shown in place of the elements.
        """
        self.problem = problem
        shape = (0,) if problem else shape
        if shape != self.view.shape or self.blocks is None:
            self.corner = None
            if len(shape) == len(self.view.shape) and self.view.count:
                self.view = self.view.resized(shape)
            else:
                self.view = layout_of(shape).wrapped_for(self._fitting)
                self.row = self.column = 0
        if self.blocks is None or self.blocks.dtype != dtype:
            self._cells = _LEAST
        self.blocks = CellBlocks(elements, dtype, self.view, self.numbers)
        self._changed()

    def set_layout(self, layout: GridLayout, row: int | None = None, column: int = 0) -> None:
        """Show another view of the tensor, by default at its first cell.

        Args:
            layout: The view.
            row: The row of the cursor in it; the cell at the cursor stays where it is when None.
            column: The column of the cursor.
        """
        turned = (layout.row_axis, layout.column_axis) != (
            self.view.row_axis,
            self.view.column_axis,
        )
        if row is None:
            here = self.view.indexes(self.row, self.column)
            if turned:  # the element at the cursor stays, and with it the slice
                layout, row, column = layout.at(here)
            else:
                row, column = self.row, self.column
        self.view = layout
        self.row, self.column = row, column
        self.corner = None
        self._remake()

    @property
    def place(self) -> GridPlace:
        """The view, and where the cursor and the other corner of the marked range are in it."""
        return GridPlace(self.view, self.row, self.column, self.corner)

    def return_to(self, place: GridPlace) -> None:
        """Put cursor and range back, if the tensor has the shape of then."""
        if place.view.shape == self.view.shape and place != self.place:
            self.set_layout(place.view.wrapped_for(self._fitting), place.row, place.column)
            self.corner = place.corner
            self.refresh()

    def set_numbers(self, numbers: NumberFormat) -> None:
        """Show elements in another way."""
        self.numbers = numbers
        self._cells = _LEAST
        self._remake()

    def _remake(self) -> None:
        old = self.blocks
        if old is not None:
            self.blocks = CellBlocks(old.elements, old.dtype, self.view, self.numbers)
        self._changed()

    def _changed(self) -> None:
        self.row = max(0, min(self.row, self.view.rows - 1))
        self.column = max(0, min(self.column, self.view.columns - 1))
        self._clip_to_end()
        self._resize_virtual()
        self.show_cursor()
        self.refresh()
        self.say_moved()

    def say_moved(self) -> None:
        """Post that the cursor or the range changed."""
        if self.is_mounted:
            # A message that is made while the parent acts would not get past the parent.
            self.call_later(lambda: self.post_message(self.CursorMoved(self)))

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show a cursor on."""
        return not self.view.count or self.blocks is None

    @property
    def marked(self) -> tuple[range, range]:
        """The rows and columns that are marked, or those of the cursor."""
        row, column = self.corner if self.corner is not None else (self.row, self.column)
        rows, columns = sorted((row, self.row)), sorted((column, self.column))
        return range(rows[0], rows[1] + 1), range(columns[0], columns[1] + 1)

    @property
    def heading_cells(self) -> int:
        """Cells of the headings of the rows, with the gap behind them."""
        label = self.view.row_label(max(0, self.view.rows - 1))
        return len(label) + 1 if label else 0

    @property
    def cell_cells(self) -> int:
        """Cells of a column, with the gap before it."""
        label = self.view.column_label(max(0, self.view.columns - 1))
        return max(self._cells, len(label)) + 2

    @property
    def view_size(self) -> Size:
        """The cells of the view, without scrollbars."""
        return self.scrollable_content_region.size

    @property
    def _fitting(self) -> int:
        room = self.view_size.width - len(str(max(0, self.view.count - 1))) - 1
        return max(1, room // (max(self._cells, 4) + 2))

    @property
    def seen_rows(self) -> int:
        """Rows that are seen at once."""
        return max(1, self.view_size.height - 1)

    @property
    def seen_columns(self) -> int:
        """Whole columns that are seen at once."""
        return max(1, (self.view_size.width - self.heading_cells) // self.cell_cells)

    def on_resize(self) -> None:
        """Wrap for the new width, and keep the cursor in view."""
        self._rewrap()
        self._resize_virtual()
        self.show_cursor()

    def _rewrap(self) -> None:
        layout = self.view.wrapped_for(self._fitting)
        if layout != self.view:
            index = self.row * self.view.wrap + self.column
            self.view = layout
            self.row, self.column = divmod(index, layout.wrap)
            self.corner = None
            if self.blocks is not None:
                old = self.blocks
                self.blocks = CellBlocks(old.elements, old.dtype, layout, self.numbers)
            self.refresh()
            self.say_moved()

    def _resize_virtual(self) -> None:
        wide = max(0, self.view.columns - self.seen_columns)
        size = Size(self.view_size.width + wide, self.view.rows + 1)
        if size == self.virtual_size:
            return
        if not self.is_mounted:
            self.virtual_size = size
            return
        self.set_reactive(TensorGrid.virtual_size, size)
        self._scroll_update(size)

    def _seen(self) -> tuple[range, range]:
        left, top = self.scroll_offset
        bottom = min(top + self.seen_rows, self.view.rows)
        # Whole columns only: a number that is cut off reads as another number.
        right = min(left + self.seen_columns, self.view.columns)
        return range(min(top, bottom), bottom), range(min(left, right), right)

    def notify_style_update(self) -> None:
        """Forget the styles of pieces."""
        super().notify_style_update()
        self.piece_styles.forget()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Read what is seen before it is drawn: a wider text makes all columns wider."""
        if self.blocks is not None and not self.is_empty and self.view_size.height > 1:
            self.blocks.load(*self._seen())
            wanted = min(_MOST, max(_LEAST, self.blocks.widest))
            if wanted > self._cells:
                self._cells = wanted
                self.call_later(self._widened)
        return super().render_lines(crop)

    def _widened(self) -> None:
        self._rewrap()
        self._resize_virtual()
        self.show_cursor()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Draw one line."""
        width = self.view_size.width
        if self.is_empty:
            message, style = f" No elements: the shape is {list(self.view.shape)}.", "empty"
            if self.problem:
                message, style = f" {glyphs.current().error} {visible(self.problem)}", "bad"
            return self.piece_styles.strip(
                [(message, style)] if y == 1 and self.blocks else [], width
            )
        if y == 0:
            return self.piece_styles.strip(list(self._headings()), width)
        assert self.blocks is not None
        if self.blocks.problem:
            mark = glyphs.current().error
            message = f" {mark} {visible(self.blocks.problem)}" if y == 2 else ""
            return self.piece_styles.strip([(message, "bad")], width)
        row = self.scroll_offset.y + y - 1
        if row >= self.view.rows:
            return self.piece_styles.strip([], width)
        return self.piece_styles.strip(list(self._line(row)), width)

    def _headings(self) -> Iterator[Piece]:
        yield " " * self.heading_cells, ""
        for column in self._seen()[1]:
            style = "heading here" if column == self.column else "heading"
            label = self.view.column_label(column)
            yield "  " + fit(label, self.cell_cells - 2, align="right"), style

    def _line(self, row: int) -> Iterator[Piece]:
        assert self.blocks is not None
        style = "heading here" if row == self.row else "heading"
        label = self.view.row_label(row)
        yield fit(label, max(0, self.heading_cells - 1), align="right"), style
        yield (" " if label else ""), ""
        rows, columns = self.marked
        is_range = self.corner is not None and row in rows
        run, run_style = "", ""
        for column in self._seen()[1]:
            text, style = self.blocks.cell(row, column)
            inner = fit(text, self.cell_cells - 1, align="right")
            is_marked = is_range and column in columns
            # The blank before a cell belongs to the range when both its neighbours do.
            blank = "range" if is_marked and column - 1 in columns else style
            if (row, column) == (self.row, self.column):
                style += " cell"
            elif is_marked and text:
                style += " range"
            # Neighbours that look the same are one piece: most rows are a few pieces.
            for part, part_style in ((" ", blank), (inner, style)):
                if part_style != run_style:
                    yield run, run_style
                    run, run_style = "", part_style
                run += part
        yield run, run_style

    def refresh_rows(self, *rows: int) -> None:
        """Repaint the headings and some rows."""
        width = self.size.width
        self.refresh(Region(0, 0, width, 1))
        for row in rows:
            y = row - self.scroll_offset.y + 1
            if 0 < y < self.view_size.height:
                self.refresh(Region(0, y, width, 1))

    def cell_region(self) -> Region:
        """Return where the cursor's cell is, in cells of the view."""
        left, top = self.scroll_offset
        x = self.heading_cells + (self.column - left) * self.cell_cells + 1
        return Region(x, self.row - top + 1, self.cell_cells - 1, 1)

    def action_activate(self) -> None:
        if not self.is_empty:
            self.post_message(self.Activated(self))

    def on_click(self, event: events.Click) -> None:
        """Move to the cell; with shift mark up to it; twice edits it."""
        offset = event.get_content_offset(self)
        if offset is None or self.is_empty:
            return
        row = self.scroll_offset.y + offset.y - 1
        column = self.scroll_offset.x + (offset.x - self.heading_cells) // self.cell_cells
        if offset.y and row < self.view.rows and 0 <= column < self.view.columns:
            self.move_to(row, column, extend=event.shift)
            if event.chain == 2:
                self.post_message(self.Activated(self))
        event.stop()

    def _on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self.wheel(3, sideways=event.shift or event.ctrl)
        event.stop()

    def _on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self.wheel(-3, sideways=event.shift or event.ctrl)
        event.stop()

    def move_to(self, row: int, column: int, *, extend: bool = False) -> None:
        """Move the cursor; with `extend` the range grows to it."""
        if self.is_empty:
            return
        old, had_range = (self.row, self.column), self.corner is not None
        if extend and self.corner is None:
            self.corner = old
        self.row = max(0, min(row, self.view.rows - 1))
        self.column = max(0, min(column, self.view.columns - 1))
        self._clip_to_end()
        if had_range or self.corner is not None:
            self.refresh()
        else:
            self.refresh_rows(old[0], self.row)
        self.show_cursor()
        self.say_moved()

    def _clip_to_end(self) -> None:
        """Step back to the last element when the cell is behind it."""
        if self.view.count and self.view.flat(self.row, self.column) is None:
            self.column = (self.view.count - 1) % max(1, self.view.wrap)

    def clear_range(self) -> bool:
        """Forget the marked range; False when there is none."""
        if self.corner is None:
            return False
        self.corner = None
        self.refresh()
        self.say_moved()
        return True

    def show_cursor(self) -> None:
        """Scroll so that the cursor is in view: by a third of it, as lists do."""
        if self.view_size.height < 2:
            return
        left, top = self.scroll_offset
        top = moved(top, self.row, self.seen_rows, self.view.rows)
        left = moved(left, self.column, self.seen_columns, self.view.columns)
        self._scroll(left, top)

    def _scroll(self, left: int, top: int) -> None:
        left = max(0, min(left, self.view.columns - self.seen_columns))
        top = max(0, min(top, self.view.rows - self.seen_rows))
        if (left, top) != tuple(self.scroll_offset):
            self.scroll_to(x=left, y=top, animate=False, force=True, immediate=True)

    def wheel(self, steps: int, *, sideways: bool) -> None:
        """Scroll, and keep the cursor in view so that the next key does not pull back."""
        left, top = self.scroll_offset
        self._scroll(left + (steps if sideways else 0), top + (0 if sideways else steps))
        left, top = self.scroll_offset
        row = max(top, min(self.row, top + self.seen_rows - 1))
        column = max(left, min(self.column, left + self.seen_columns - 1))
        if (row, column) != (self.row, self.column):
            self.move_to(row, column, extend=self.corner is not None)

    def _step(self, down: int, across: int) -> None:
        # A range that was begun with Space goes on growing.
        self.move_to(self.row + down, self.column + across)

    def action_cursor_up(self) -> None:
        self._step(-1, 0)

    def action_cursor_down(self) -> None:
        self._step(1, 0)

    def action_cursor_left(self) -> None:
        self._step(0, -1)

    def action_cursor_right(self) -> None:
        self._step(0, 1)

    def action_page_up(self) -> None:
        self._scroll(self.scroll_offset.x, self.scroll_offset.y - self.seen_rows + 1)
        self._step(1 - self.seen_rows, 0)

    def action_page_down(self) -> None:
        self._scroll(self.scroll_offset.x, self.scroll_offset.y + self.seen_rows - 1)
        self._step(self.seen_rows - 1, 0)

    def action_page_left(self) -> None:
        self._scroll(self.scroll_offset.x - self.seen_columns, self.scroll_offset.y)
        self._step(0, -self.seen_columns)

    def action_page_right(self) -> None:
        self._scroll(self.scroll_offset.x + self.seen_columns, self.scroll_offset.y)
        self._step(0, self.seen_columns)

    def action_row_start(self) -> None:
        self.move_to(self.row, 0)

    def action_row_end(self) -> None:
        self.move_to(self.row, self.view.columns - 1)

    def action_first(self) -> None:
        self.move_to(0, 0)

    def action_last(self) -> None:
        self.move_to(self.view.rows - 1, self.view.columns - 1)

    def action_extend(self, direction: str) -> None:
        down, across = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}[direction]
        self.move_to(self.row + down, self.column + across, extend=True)

    def action_mark(self) -> None:
        if not self.clear_range() and not self.is_empty:
            self.corner = (self.row, self.column)
            self.refresh_rows(self.row)
            self.say_moved()


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
