"""The one widget for long lists, with marks: it draws only the rows that are seen.

Textual's DataTable and Tree format every row when they are filled and read names as markup; this
view asks its source for visible rows only, takes text as text, and repaints the two rows that a
cursor move touches.

Beyond the cursor, marks, search, mouse and horizontal scrolling, it offers:

* ``source.content_width`` (optional, int): rows are that wide and scroll sideways;
* ``source.index_of(key)`` (optional): finds a row faster than looking at each key;
* ``empty``: a line shown when there are no rows, saying what to press;
* ``tail``: while the cursor is on the last row it stays on the last row as rows are added;
* ``HELP``: a paragraph for the help screen; subclasses and users of the view replace it.

Style classes of pieces are the names in :data:`.styled.STYLES`; a subclass adds names to its
``COMPONENT_CLASSES`` as ``line--NAME`` with a rule in a ``.tcss`` file (see ``styled``).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Any, ClassVar

from textual import events
from textual.cache import LRUCache
from textual.geometry import Offset, Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from dld_tui.commands.command import table
from dld_tui.core.dataclass import dataclass
from dld_tui.core.text import visible
from dld_tui.widgets.lists.search import LineSearch
from dld_tui.widgets.lists.styled import LineSource, ListSource, Piece, PieceStyles
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.command_dispatch import Commands
from dld_tui.widgets.shell.frame import Frame


@dataclass
class MarksChanged(Message, namespace="line_view"):
    """Rows were marked or unmarked."""

    view: Any
    """The line view."""
    marks: set[Hashable]


@dataclass
class _OfRow(Message):
    """Something about one row of a line view."""

    view: LineView
    index: int
    key: Hashable

    @property
    def control(self) -> LineView:
        """Return the view, for ``@on`` selectors."""
        return self.view


@dataclass(frozen=True)
class ListPlace:
    """Where the cursor and the marks of a list were."""

    key: Hashable
    index: int
    marks: frozenset[Hashable]


_RIGHT = 3
"""The right mouse button."""
_MARGIN = 2
"""Rows kept visible above and below the cursor when the view is high enough."""


class LineView(Commands, ScrollView, can_focus=True, inherit_bindings=False):
    """A list of any length with a cursor, marks and search."""

    SCOPE = "list"
    COMMAND_TABLE = (
        *table(
            "list",
            ("list.up", "cursor_up", "up,k", "", "up", "Move up."),
            ("list.down", "cursor_down", "down,j", "", "down", "Move down."),
            ("list.left", "cursor_left", "left,h", "", "left", "Scroll left, or fold."),
            ("list.right", "cursor_right", "right,l", "", "right", "Scroll right, or unfold."),
            ("list.page_up", "page_up", "pageup,ctrl+b", "", "page up", "Move one page up."),
            ("list.page_down", "page_down", "pagedown,ctrl+f", "", "page down",
             "Move one page down."),
            ("list.first", "first", "home,g", "", "first", "Move to the first line."),
            ("list.last", "last", "end,G", "", "last", "Move to the last line."),
            ("list.activate", "activate", "enter", "", "open",
             "Open the item at the cursor, or jump to it."),
            ("list.mark", "mark", "space", "", "mark", "Mark or unmark the line and move down."),
            ("list.mark_range", "mark_range", "M", "", "mark range",
             "Mark from the last mark to the cursor."),
            ("list.search_next", "finder.next", "n", "", "next match", "Go to the next match."),
            ("list.search_previous", "finder.previous", "N", "", "previous match",
             "Go to the previous match."),
            ("list.copy", "copy_line", "Y", "", "copy line", "Copy the line to the clipboard."),
            palette=False,
        ),
        *table(
            "list",
            ("list.search", "finder.ask", "slash", "", "search", "Search in this list.",
             "find, find a node, find node, grep, search nodes"),
        ),
    )  # fmt: skip
    COMPONENT_CLASSES: ClassVar[set[str]] = {"line--cursor"}
    HELP = ""
    MOVES = frozenset(("cursor_up", "cursor_down", "page_up", "page_down"))
    """Actions that do nothing but move the cursor: see :mod:`~dld_tui.widgets.shell.key_queue`."""
    ALLOW_SELECT = False
    JUMP: ClassVar[bool] = True
    """Scroll by a third of the view when the cursor leaves it; False: by one line.

    A scroll repaints the whole view, so jumping keeps the average key press small over SSH.
    """

    finder = cached_property(LineSearch)
    frame = cached_property(Frame)

    MarksChanged = MarksChanged
    shows_cursor = True
    """Whether the row of the cursor stands out."""
    marks: set[Hashable]
    _last_mark: Hashable | None = None
    cursor: reactive[int] = reactive(0, repaint=False, init=False)

    class CursorMoved(_OfRow):
        """The cursor is on another row, or the rows under it changed."""

    class Activated(_OfRow):
        """Enter or a double click on a row."""

    @dataclass
    class MenuAsked(Message):
        """A right click on a row, which is the cursor's now."""

        view: LineView

    def __init__(
        self,
        lines: LineSource | None = None,
        *,
        empty: str = "",
        gutter: bool = True,
        tail: bool = False,
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self.piece_styles = PieceStyles(self)
        self.lines: LineSource = ListSource() if lines is None else lines
        self.marks: set[Hashable] = set()
        self.empty = empty
        self.tail = tail
        self.header_rows = 0
        """Rows at the top that do not scroll; see :meth:`header_line`."""
        self._gutter_cells = 1 if gutter else 0
        self._strips: LRUCache[tuple[object, ...], Strip] = LRUCache(1024)
        self._at_end = True
        """The cursor is on the last row, or there was none: a tail follows."""
        self._resize_virtual()

    # Content

    @property
    def cursor_offset(self) -> Offset:
        """Where on the screen a menu about the row under the cursor begins."""
        region = self.content_region
        row = self.cursor - self.scroll_offset.y + self.header_rows
        return region.offset + Offset(4, max(0, min(row, region.height - 1)))

    def set_lines(self, source: LineSource, keep: bool = True) -> None:
        """Show other rows; with `keep` the cursor stays on the row with the same key."""
        old_key, old_cursor = self.key_at_cursor(), self.cursor
        self.lines = source
        target = 0
        if keep:
            line = self.find_key(old_key, guess=old_cursor) if old_key is not None else None
            target = min(old_cursor, len(source) - 1) if line is None else line
        if self.tail and self._at_end:
            target = len(source) - 1
        self._strips.clear()
        self._resize_virtual()
        self.refresh()
        self.set_reactive(LineView.cursor, self.validate_cursor(target))
        self._at_end = self.cursor >= len(source) - 1
        self.show_cursor()
        if self.key_at_cursor() != old_key or self.cursor != old_cursor:
            self._say_moved()

    def key_at_cursor(self) -> Hashable | None:
        """Return the key of the cursor's row, or None when there are no rows."""
        return self.lines.key(self.cursor) if 0 <= self.cursor < len(self.lines) else None

    def find_key(self, key: Hashable, guess: int = 0) -> int | None:
        """Return the index of a key, or None; `guess` is looked at first."""
        count = len(self.lines)
        if 0 <= guess < count and self.lines.key(guess) == key:
            return guess
        index_of = getattr(self.lines, "index_of", None)
        if index_of is not None:
            line: int | None = index_of(key)
            return line
        line_key = self.lines.key
        return next((index for index in range(count) if line_key(index) == key), None)

    def go_to_key(self, key: Hashable) -> bool:
        """Move the cursor to a key; returns False when no row has it."""
        index = self.find_key(key, guess=self.cursor)
        if index is not None:
            self.cursor = index
        return index is not None

    @property
    def place(self) -> ListPlace:
        """Where the cursor and the marks are."""
        return ListPlace(self.key_at_cursor(), self.cursor, frozenset(self.marks))

    def return_to(self, place: ListPlace) -> None:
        """Put the cursor back to the key of its row, or else to the place; and the marks."""
        if place.key is None or not self.go_to_key(place.key):
            self.cursor = place.index
        self.set_marks({mark for mark in place.marks if self.may_mark(mark)})

    def may_mark(self, key: Hashable) -> bool:
        """Return whether a key that was marked before an edit can be marked."""
        return self.find_key(key) is not None

    def refresh_row(self, index: int) -> None:
        """Repaint one row, if it is seen."""
        y = index - self.scroll_offset.y + self.header_rows
        if self.header_rows <= y < self.view_size.height:
            self.refresh(Region(0, y, self.size.width, 1))

    def invalidate(self) -> None:
        """Repaint all rows after the source's text or styles changed."""
        self._strips.clear()
        self.refresh()

    # Cursor

    def validate_cursor(self, cursor: int) -> int:
        """Keep the cursor on a row."""
        return max(0, min(cursor, len(self.lines) - 1))

    def watch_cursor(self, old: int, new: int) -> None:
        """Repaint the row left and the row reached, and scroll when the cursor leaves the view."""
        self._at_end = new >= len(self.lines) - 1
        self.refresh_row(old)
        self.refresh_row(new)
        self.show_cursor()
        self._say_moved()

    def _say_moved(self) -> None:
        key = self.key_at_cursor()
        if self.is_mounted and len(self.lines):
            self.post_message(self.CursorMoved(self, self.cursor, key))

    @property
    def view_size(self) -> Size:
        """The cells that rows are drawn in: without border and scrollbars."""
        return self.scrollable_content_region.size

    @property
    def page(self) -> int:
        """The number of rows that are seen at once, at least 1."""
        return max(1, self.view_size.height - self.header_rows)

    @property
    def _margin(self) -> int:
        return min(_MARGIN, (self.page - 1) // 2)

    def show_cursor(self) -> None:
        """Scroll, without animation, so that the cursor and a margin are in view."""
        page = self.page
        if self.view_size.height <= 0:
            return
        margin = self._margin
        top = self.scroll_offset.y
        jump = page // 3 if self.JUMP else 0
        if self.cursor < top + margin:
            top = self.cursor - max(margin, jump)
        elif self.cursor > top + page - 1 - margin:
            top = self.cursor - page + 1 + max(margin, jump)
        self._scroll_rows(top)

    def _scroll_rows(self, top: int) -> None:
        top = max(0, min(top, len(self.lines) - self.page))
        if top != self.scroll_offset.y:
            self.scroll_to(y=top, animate=False, force=True, immediate=True)

    def action_cursor_up(self) -> None:
        self.step(-1)

    def action_cursor_down(self) -> None:
        self.step(1)

    def action_page_up(self) -> None:
        self.step_page(-1)

    def action_page_down(self) -> None:
        self.step_page(1)

    def action_first(self) -> None:
        self.step(-len(self.lines))

    def action_last(self) -> None:
        self.step(len(self.lines))

    def step(self, rows: int) -> None:
        """Move the cursor by some rows; views whose cursor is on no row go elsewhere."""
        self.cursor += rows

    def step_page(self, way: int) -> None:
        """Move the cursor by a page, up with -1 and down with 1."""
        self._scroll_rows(self.scroll_offset.y + way * (self.page - 1))
        self.step(way * max(1, self.page - 1))

    def action_cursor_left(self) -> None:
        self.go_left()

    def action_cursor_right(self) -> None:
        self.go_right()

    def action_activate(self) -> None:
        self.activate()

    def go_left(self) -> None:
        """Scroll sideways to the left; views with branches fold instead."""
        self.scroll_to(x=self.scroll_offset.x - 8, animate=False, force=True, immediate=True)

    def go_right(self) -> None:
        """Scroll sideways to the right; views with branches unfold instead."""
        self.scroll_to(x=self.scroll_offset.x + 8, animate=False, force=True, immediate=True)

    def activate(self) -> None:
        """Post that the cursor's row was chosen."""
        key = self.key_at_cursor()
        if len(self.lines):
            self.post_message(self.Activated(self, self.cursor, key))

    def action_copy_line(self) -> None:
        if len(self.lines):
            self.app.copy_to_clipboard(visible(self.lines.text(self.cursor)))

    # Mouse

    def on_click(self, event: events.Click) -> None:
        """Move to the row; with ctrl mark it; twice opens it; the right button asks for a menu."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        row = offset.y - self.header_rows
        if row < 0:
            self.header_clicked(offset.x + self.scroll_offset.x - self._gutter_cells)
        elif row + self.scroll_offset.y < len(self.lines):
            if event.chain != 2:  # of two clicks the first may scroll: its row is the one meant
                self.cursor = row + self.scroll_offset.y
            if event.button == _RIGHT:
                self.post_message(self.MenuAsked(self))
            elif event.ctrl:
                self.action_mark()
            elif event.chain == 2:
                self.action_activate()
        event.stop()

    def header_clicked(self, cell: int) -> None:
        """React to a click on the header, `cell` cells from the left of the text."""

    def _on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(event, 3)

    def _on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(event, -3)

    def _wheel(self, event: events.MouseEvent, rows: int) -> None:
        if event.shift or event.ctrl:
            self.scroll_to(x=self.scroll_offset.x + rows * 4, animate=False, force=True)
        else:
            self._scroll_rows(self.scroll_offset.y + rows)
            # As in vim the cursor stays in view, so new rows do not pull the view back.
            top, page, margin = self.scroll_offset.y, self.page, self._margin
            first = top + margin if top else 0
            last = top + page - 1 - (margin if top + page < len(self.lines) else 0)
            self.cursor = max(first, min(self.cursor, last))
        event.stop()

    # Drawing

    def header_line(self, width: int) -> Sequence[Piece]:
        """Return the fixed header's pieces; asked for when ``header_rows`` is 1."""
        return ()

    def render_line(self, y: int) -> Strip:
        """Draw one line of the view."""
        seen = self.view_size.width
        width = max(seen, self.virtual_size.width)
        if y < self.header_rows:
            strip = self._strip(self.header_line(width - self._gutter_cells), width, ("header",))
        elif not len(self.lines) and y == self.header_rows:
            strip = self._strip([(self.empty, "empty")], width, ())
        else:
            strip = self._row(self.scroll_offset.y + y - self.header_rows, width)
        left = self.scroll_offset.x
        return strip.crop_extend(left, left + seen, self.visual_style.rich_style)

    def _row(self, index: int, width: int) -> Strip:
        if index >= len(self.lines):
            return Strip([])
        is_cursor = index == self.cursor and self.shows_cursor
        is_marked = bool(self.marks) and self.lines.key(index) in self.marks
        states = (("mark",) if is_marked else ()) + (("cursor",) if is_cursor else ())
        key = (index, width, states, self.finder.pattern, self.has_focus)
        strip = self._strips.get(key)
        if strip is None:
            pieces = self.lines.line(index, width - self._gutter_cells)
            strip = self._strips[key] = self._strip(pieces, width, states)
        return strip

    def _strip(self, pieces: Sequence[Piece], width: int, states: tuple[str, ...]) -> Strip:
        if self._gutter_cells:
            pieces = [(self._gutter_glyph(states), "accent"), *pieces]
        return self.piece_styles.strip(pieces, width, states)

    def _gutter_glyph(self, states: tuple[str, ...]) -> str:
        shown = glyphs.current()
        if "cursor" in states:
            return shown.cursor_mark if "mark" in states else shown.cursor
        return shown.mark if "mark" in states else " "

    def notify_style_update(self) -> None:
        """Forget drawn rows when the theme, the focus or a class changes."""
        super().notify_style_update()
        self.piece_styles.forget()
        self._strips.clear()
        if self.is_mounted:
            self.frame.draw()

    def _size_updated(
        self, size: Size, virtual_size: Size, container_size: Size, layout: bool = True
    ) -> bool:
        # Not every new size comes with an event.
        is_changed = super()._size_updated(size, virtual_size, container_size, layout)
        if is_changed:
            self.frame.draw()
        return is_changed

    def on_resize(self) -> None:
        """Keep the cursor in view at any size."""
        self._resize_virtual()
        self.show_cursor()

    def _resize_virtual(self) -> None:
        wide: Any = getattr(self.lines, "content_width", None)
        width = 0 if wide is None else int(wide) + self._gutter_cells
        size = Size(width, len(self.lines) + self.header_rows)
        if size == self.virtual_size:
            return
        if not self.is_mounted or self.styles.auto_dimensions:
            self.virtual_size = size
        else:
            # Setting the reactive lays the whole screen out again; only the scrollbars change.
            self.set_reactive(LineView.virtual_size, size)
            self._scroll_update(size)

    def action_mark(self) -> None:
        self.mark()

    def mark(self) -> None:
        """Mark or unmark the cursor's row and move down; views with branches mark all below."""
        key = self.key_at_cursor()
        if key is None:
            return
        self.marks ^= {key}
        self._last_mark = key
        self.refresh_row(self.cursor)
        self.post_message(self.MarksChanged(self, set(self.marks)))
        self.cursor += 1

    def action_mark_range(self) -> None:
        start = None if self._last_mark is None else self.find_key(self._last_mark)
        if not len(self.lines):
            return
        low, high = sorted((self.cursor if start is None else start, self.cursor))
        self.set_marks(self.marks | {self.lines.key(index) for index in range(low, high + 1)})

    def set_marks(self, marks: set[Hashable]) -> None:
        """Replace the marks; an empty set clears them."""
        if marks != self.marks:
            self.marks = set(marks)
            self.refresh()
            self.post_message(self.MarksChanged(self, set(marks)))


class LaidOutView(LineView):
    """Lines that are laid out for the width, and again for another width or set of glyphs."""

    MARGIN: ClassVar[int] = 1
    """Blank cells at both sides."""

    def __init__(self, *, id: str | None = None, classes: str | None = "frame") -> None:
        super().__init__(id=id, gutter=False, classes=classes)

    def laid_out(self, width: int) -> Sequence[Sequence[Piece]] | None:
        """Return the lines for a width; None while there is nothing to show."""
        raise NotImplementedError

    def draw(self) -> None:
        """Lay the lines out."""
        width = self.size.width - 2 * self.MARGIN
        lines = self.laid_out(width) if width > 2 else None
        if lines is not None:
            margin: Piece = (" " * self.MARGIN, "")
            self.set_lines(ListSource([[margin, *line] for line in lines]), keep=False)

    def on_resize(self) -> None:
        """Lay the lines out for the new width."""
        self.draw()

    def notify_style_update(self) -> None:
        """Draw again when the glyph set changes with the theme."""
        super().notify_style_update()
        if self.is_mounted:
            self.draw()


__all__ = ["LaidOutView", "LineSource", "LineView", "ListSource", "MarksChanged", "Piece"]
