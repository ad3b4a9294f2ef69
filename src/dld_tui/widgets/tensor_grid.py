"""A tensor as a grid of any size: only the cells that are seen are read and drawn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from dld_tui.core.text import fit, visible
from dld_tui.widgets import glyphs
from dld_tui.widgets.commands import Commands, bindings_for
from dld_tui.widgets.line_source import Piece
from dld_tui.widgets.styled import Styled
from dld_tui.widgets.tensor_cells import CellBlocks, Elements
from dld_tui.widgets.tensor_layout import GridLayout, layout_of
from dld_tui.widgets.tensor_moves import GridMoves
from dld_tui.widgets.tensor_text import NumberFormat

_LEAST, _MOST = 4, 26
"""Cells of a column, without the gap."""


class TensorGrid(GridMoves, Styled, Commands, ScrollView, can_focus=True, inherit_bindings=False):
    """The grid: a cursor, a marked range, headings that do not scroll.

    It scrolls by whole columns: ``scroll_offset`` is the first row and the first column seen.
    """

    SCOPE = "grid"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("grid")
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "line--cell", "line--range", "line--heading", "line--here",
    }  # fmt: skip
    HELP = (
        "The elements of a tensor. Arrows or h j k l move, Shift with an arrow marks a range, and "
        "Space begins one at the cursor. e or Enter edits a cell; f fills the range, + and * add "
        "and multiply. [ and ] go to the slice before and after, a chooses the axis that they step "
        "along, r and c the axes of rows and columns, t exchanges them, i goes to an index."
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
        self.view: GridLayout = layout_of((0,))
        self.numbers = NumberFormat()
        self.row = self.column = 0
        self.corner: tuple[int, int] | None = None
        """The other corner of the marked range."""
        self.problem = ""
        """Why there is nothing to show."""
        self.blocks: CellBlocks | None = None
        self._cells = _LEAST

    # --- content --------------------------------------------------------------------------------

    def show(
        self, elements: Elements, dtype: str, shape: tuple[int, ...], problem: str = ""
    ) -> None:
        """Show a tensor; the place stays when the shape is the same.

        Args:
            elements: What is read.
            dtype: ONNX's name of the element type.
            shape: Its dimensions.
            problem: Why it cannot be read: foreign text, shown in place of the elements.
        """
        self.problem = problem
        shape = (0,) if problem else shape
        if shape != self.view.shape or self.blocks is None:
            self.view = layout_of(shape).wrapped_for(self._fitting)
            self.row = self.column = 0
            self.corner = None
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

    def set_numbers(self, numbers: NumberFormat) -> None:
        """Show elements in another way."""
        self.numbers = numbers
        self._cells = _LEAST
        self._remake()

    def reread(self) -> None:
        """Read the elements again, after an edit."""
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
        """Tell that the cursor or the range is another."""
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

    # --- sizes ----------------------------------------------------------------------------------

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

    # --- drawing --------------------------------------------------------------------------------

    def _seen(self) -> tuple[range, range]:
        left, top = self.scroll_offset
        bottom = min(top + self.seen_rows, self.view.rows)
        # Whole columns only: a number that is cut off reads as another number.
        right = min(left + self.seen_columns, self.view.columns)
        return range(min(top, bottom), bottom), range(min(left, right), right)

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
            said, style = f" No elements: the shape is {list(self.view.shape)}.", "empty"
            if self.problem:
                said, style = f" {glyphs.current().error} {visible(self.problem)}", "bad"
            return self.strip_of([(said, style)] if y == 1 and self.blocks else [], width)
        if y == 0:
            return self.strip_of(list(self._headings()), width)
        assert self.blocks is not None
        if self.blocks.problem:
            mark = glyphs.current().error
            said = f" {mark} {visible(self.blocks.problem)}" if y == 2 else ""
            return self.strip_of([(said, "bad")], width)
        row = self.scroll_offset.y + y - 1
        if row >= self.view.rows:
            return self.strip_of([], width)
        return self.strip_of(list(self._line(row)), width)

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
        """Edit the cell."""
        if not self.is_empty:
            self.post_message(self.Activated(self))

    # --- mouse ----------------------------------------------------------------------------------

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
