"""Moving the cursor of a tensor's grid, and marking a range with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.geometry import Size
from textual.scroll_view import ScrollView

if TYPE_CHECKING:
    from dld_tui.widgets.tensor_layout import GridLayout

    class _Base(ScrollView):
        view: GridLayout
        row: int
        column: int
        corner: tuple[int, int] | None

        @property
        def is_empty(self) -> bool: ...
        @property
        def seen_rows(self) -> int: ...
        @property
        def seen_columns(self) -> int: ...
        @property
        def view_size(self) -> Size: ...
        def say_moved(self) -> None: ...
        def refresh_rows(self, *rows: int) -> None: ...
else:
    _Base = object


class GridMoves(_Base):
    """A mixin for a grid with ``row``, ``column`` and ``corner``."""

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
        top = _moved(top, self.row, self.seen_rows, self.view.rows)
        left = _moved(left, self.column, self.seen_columns, self.view.columns)
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

    # --- actions --------------------------------------------------------------------------------

    def _step(self, down: int, across: int) -> None:
        # A range that was begun with Space goes on growing.
        self.move_to(self.row + down, self.column + across)

    def action_cursor_up(self) -> None:
        """Move one row up."""
        self._step(-1, 0)

    def action_cursor_down(self) -> None:
        """Move one row down."""
        self._step(1, 0)

    def action_cursor_left(self) -> None:
        """Move one column to the left."""
        self._step(0, -1)

    def action_cursor_right(self) -> None:
        """Move one column to the right."""
        self._step(0, 1)

    def action_page_up(self) -> None:
        """Move up by what is seen."""
        self._scroll(self.scroll_offset.x, self.scroll_offset.y - self.seen_rows + 1)
        self._step(1 - self.seen_rows, 0)

    def action_page_down(self) -> None:
        """Move down by what is seen."""
        self._scroll(self.scroll_offset.x, self.scroll_offset.y + self.seen_rows - 1)
        self._step(self.seen_rows - 1, 0)

    def action_page_left(self) -> None:
        """Move to the left by what is seen."""
        self._scroll(self.scroll_offset.x - self.seen_columns, self.scroll_offset.y)
        self._step(0, -self.seen_columns)

    def action_page_right(self) -> None:
        """Move to the right by what is seen."""
        self._scroll(self.scroll_offset.x + self.seen_columns, self.scroll_offset.y)
        self._step(0, self.seen_columns)

    def action_row_start(self) -> None:
        """Move to the first column."""
        self.move_to(self.row, 0)

    def action_row_end(self) -> None:
        """Move to the last column."""
        self.move_to(self.row, self.view.columns - 1)

    def action_first(self) -> None:
        """Move to the first element of the slice."""
        self.move_to(0, 0)

    def action_last(self) -> None:
        """Move to the last element of the slice."""
        self.move_to(self.view.rows - 1, self.view.columns - 1)

    def action_extend(self, direction: str) -> None:
        """Make the range larger or smaller by one row or column."""
        down, across = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}[direction]
        self.move_to(self.row + down, self.column + across, extend=True)

    def action_mark(self) -> None:
        """Begin a range at the cursor, or forget the one there is."""
        if not self.clear_range() and not self.is_empty:
            self.corner = (self.row, self.column)
            self.refresh_rows(self.row)
            self.say_moved()


def _moved(first: int, cursor: int, seen: int, count: int) -> int:
    jump = seen // 3
    if cursor < first:
        first = cursor - jump
    elif cursor >= first + seen:
        first = cursor - seen + 1 + jump
    return max(0, min(first, count - seen))
