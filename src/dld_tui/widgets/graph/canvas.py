"""The canvas and its overview in a corner: boxes and lines, a cursor that follows the links."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import ClassVar

from textual import events
from textual.geometry import Offset, Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from dld_tui.commands.command import table
from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.graph.layout import Box, Layout, Link
from dld_tui.widgets.graph.drawing import Drawing, drawn_line
from dld_tui.widgets.lists.search import LineSearch
from dld_tui.widgets.lists.styled import LineSource, ListSource, Piece, PieceStyles
from dld_tui.widgets.shell.command_dispatch import Commands

CELLS = 18
"""Columns of the map, the border at its left included."""
LEAST_WIDTH = 100
"""Columns of a view that has room for it."""
_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""Bits of a braille cell by column and row."""
_BLANK = 0x2800


class Minimap:
    """Boxes as braille dots: two columns and four rows of them in a cell; made once a drawing."""

    def __init__(self, layout: Layout, rows: int) -> None:
        self.rows = rows
        self._across = min(1.0, (CELLS - 1) * 2 / max(1, layout.width))
        self._down = min(1.0, rows * 4 / max(1, layout.height))
        self._shift = int(((CELLS - 1) * 2 - layout.width * self._across) / 2)
        cells = [[0] * (CELLS - 1) for _ in range(rows)]
        for box in layout.boxes:
            if box is not None:
                self._draw(box, cells)
        self._lines = ["".join(chr(_BLANK + bits) for bits in line) for line in cells]

    def _draw(self, box: Box, cells: list[list[int]]) -> None:
        left, top = self._x(box.x), self._y(box.y)
        right = max(left + 1, self._x(box.x + box.width))
        bottom = max(top + 1, self._y(box.y + box.height))
        for y in range(top, min(bottom, self.rows * 4)):
            for x in range(left, min(right, (CELLS - 1) * 2)):
                cells[y // 4][x // 2] |= _DOTS[x % 2][y % 4]

    def _x(self, column: int) -> int:
        return max(0, int(column * self._across) + self._shift)

    def _y(self, row: int) -> int:
        return max(0, int(row * self._down))

    def line(self, y: int, view: tuple[int, int, int, int], cursor: Box | None) -> list[Piece]:
        """Return a row of the map, exactly as wide as it is.

        Args:
            y: The row.
            view: Columns and rows of the drawing that are seen: left, top, right, bottom.
            cursor: The box that stands out.
        """
        if y >= self.rows:
            return [("│" + " " * (CELLS - 1), "guide")]
        left, top, right, bottom = view
        first, last = self._x(left) // 2, max(self._x(left) // 2 + 1, -(-self._x(right) // 2))
        is_seen = self._y(top) // 4 <= y <= max(0, self._y(bottom) - 1) // 4
        text = self._lines[y].replace(chr(_BLANK), " ")
        at = -1
        if cursor is not None and self._y(cursor.y + cursor.height // 2) // 4 == y:
            at = min(CELLS - 2, self._x(cursor.x + cursor.width // 2) // 2)
        pieces: list[Piece] = [("│", "guide")]
        for column, char in enumerate(text):
            style = "viewport" if is_seen and first <= column < last else "faint"
            pieces.append(
                ("◆" if column == at else char, f"accent {style}" if column == at else style)
            )
        return pieces

    def target(self, x: int, y: int) -> tuple[int, int]:
        """Return the column and row of the drawing that a cell of the map stands for."""
        dots = max(0, (x - 1) * 2 + 1 - self._shift)
        return int(dots / self._across), int((y * 4 + 2) / self._down)


_RIGHT_BUTTON = 3
_MARGIN = 2
"""Cells that are seen around the cursor's box."""


class GraphCanvas(Commands, ScrollView, can_focus=True, inherit_bindings=False):
    """A drawing that is larger than the screen, and a cursor on one of its boxes."""

    SCOPE = "canvas"
    COMMAND_TABLE = table(
        "canvas",
        ("canvas.up", "cursor_up", "up,k", "", "up", "Follow the link up."),
        ("canvas.down", "cursor_down", "down,j", "", "down", "Follow the link down."),
        ("canvas.left", "cursor_left", "left,h", "", "left", "Go to the box at the left."),
        ("canvas.right", "cursor_right", "right,l", "", "right", "Go to the box at the right."),
        ("canvas.page_up", "page_up", "pageup,ctrl+b", "", "page up", "Go one page up."),
        ("canvas.page_down", "page_down", "pagedown,ctrl+f", "", "page down", "Go one page down."),
        ("canvas.first", "first", "home,g", "", "first", "Go to the top."),
        ("canvas.last", "last", "end,G", "", "last", "Go to the bottom."),
        ("canvas.activate", "activate", "enter", "", "open", "Open the box at the cursor."),
        ("canvas.mark", "mark", "space", "", "mark", "Mark or unmark the box."),
        ("canvas.search", "finder.ask", "slash", "", "search", "Search in the boxes."),
        ("canvas.search_next", "finder.next", "n", "", "next match", "Go to the next match."),
        ("canvas.search_previous", "finder.previous", "N", "", "previous match",
         "Go to the previous match."),
        palette=False, footer="canvas.activate",
    )  # fmt: skip
    COMPONENT_CLASSES: ClassVar[set[str]] = {"line--viewport"}
    ALLOW_SELECT = False
    finder = cached_property(LineSearch)
    HELP = (
        "The graph as boxes. Up and down follow the links, left and right go to the neighbouring "
        "box. {graph.zoom_in} and {graph.zoom_out} zoom, {graph.view} shows the graph as rows, "
        "{canvas.activate} opens a fold or goes to the parameters. {graph.link} puts the cursor on "
        "a link: left and right choose another link of the node, up and down go to its ends. "
        "{graph.move_left}, {graph.move_down} and the like move the box of a node, as dragging it "
        "does."
    )

    @dataclass
    class CursorMoved(Message):
        """The cursor is on another box."""

        drawing: Drawing
        vertex: int
        """Of this drawing; another one has other numbers."""

    @dataclass
    class Activated(Message):
        """Enter or a double click on a box."""

        vertex: int

    @dataclass
    class LinkKey(Message):
        """A key on a link: another one of its node, or the node at one of its ends."""

        step: int = 0
        end: str = ""
        """``source`` or ``target``."""

    @dataclass
    class Dragged(Message):
        """The box that the cursor is on was dragged so many cells to the right, and rows down."""

        cells: int
        rows: int

    class MenuAsked(Message):
        """A right click on a box, which is the cursor's now."""

    class MarkAsked(Message):
        """Space: mark or unmark what the cursor is on."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.piece_styles = PieceStyles(self)
        self.drawing: Drawing | None = None
        self.lines: LineSource = ListSource()
        """What search sees of each box."""
        self.grid = False
        """Whether dots are shown between the boxes, to see what is in line."""
        self._map: Minimap | None = None
        self._cursor = 0
        self._lit: frozenset[int] = frozenset()
        self._on_link = False
        """Whether the cursor is on a link of the box, and keys are for that."""
        self._held: Offset | None = None
        """Where the button went down on the cursor's box, on the screen."""
        self._dragged = Offset(0, 0)

    @property
    def cursor(self) -> int:
        """The vertex that the cursor is on."""
        return self._cursor

    @cursor.setter
    def cursor(self, vertex: int) -> None:
        self._go(vertex)

    def set_drawing(self, drawing: Drawing, cursor: int) -> None:
        """Show a drawing with the cursor on a vertex."""
        self.drawing = drawing
        graph = drawing.graph
        names = zip(graph.labels, graph.names, strict=True)
        self.lines = ListSource([[(f"{label}  {name}", "")] for label, name in names])
        self._fit()
        self._place_cursor(min(cursor, len(drawing.graph) - 1))
        self.refresh()
        self.call_after_refresh(self.show_cursor)

    def _fit(self) -> None:
        """Make the map, where there is room for it and more to see than fits."""
        if self.drawing is None:
            return
        layout, size = self.drawing.layout, self.scrollable_content_region.size
        fits = layout.width <= size.width and layout.height <= size.height
        self._map = None
        if size.width >= LEAST_WIDTH and size.height and not fits:
            self._map = Minimap(layout, size.height)
        width = layout.width + 2 + (CELLS if self._map is not None else 0)
        self.virtual_size = Size(width, layout.height + 1)

    def on_resize(self) -> None:
        """Make the map for the new size, and keep the cursor in view."""
        self._fit()
        self.show_cursor()

    @property
    def _room(self) -> Size:
        """The cells in which the drawing is seen."""
        size = self.scrollable_content_region.size
        return Size(size.width - (CELLS if self._map is not None else 0), size.height)

    def note(self, marks: set[int], badges: Mapping[int, Piece]) -> None:
        """Show which boxes are marked, and a glyph in some."""
        if self.drawing is not None:
            self.drawing.marks, self.drawing.badges = marks, dict(badges)
            self.refresh()

    def invalidate(self) -> None:
        """Draw again what is seen."""
        self.refresh()

    def move_to(self, vertex: int, margin: int | None = _MARGIN) -> None:
        """Put the cursor on a vertex, without a message; without a margin nothing scrolls."""
        if self.drawing is not None and 0 <= vertex < len(self.drawing.graph):
            self._place_cursor(vertex)
            if margin is not None:
                self.show_cursor(margin)
            self.refresh()

    def show_link(self, link: Link | None, *, on_link: bool) -> None:
        """Put the cursor on a link, or back on the box, without a message.

        Args:
            link: The link of the drawing; None for one that is not drawn.
            on_link: Whether the cursor is on a link.
        """
        self._on_link = on_link
        if self.drawing is not None:
            self.drawing.set_link(link)
            nets = self._nets_at(self.cursor) if link is None else (link.net,)
            self._lit = frozenset(nets)
            self.refresh()

    def _nets_at(self, vertex: int) -> tuple[int, ...]:
        graph = self.drawing.graph if self.drawing is not None else ()
        return (*graph.inputs[vertex], *graph.outputs[vertex]) if graph else ()

    def _place_cursor(self, vertex: int) -> None:
        self._cursor = vertex
        self.show_link(None, on_link=False)

    def _go(self, vertex: int | None, margin: int | None = _MARGIN) -> None:
        is_there = vertex == self.cursor and not self._on_link
        if vertex is None or self.drawing is None or is_there:
            return
        self.move_to(vertex, margin)
        self.post_message(self.CursorMoved(self.drawing, vertex))

    @property
    def _box(self) -> Box | None:
        if self.drawing is None or not len(self.drawing.graph):
            return None
        return self.drawing.box(self.cursor)

    def _nearest(self, boxes: list[Box], x: int) -> int | None:
        if not boxes:
            return None
        return min(boxes, key=lambda box: (abs(box.x + box.width // 2 - x), box.y)).vertex

    def _linked(self, vertices: list[int]) -> int | None:
        box = self._box
        if box is None or self.drawing is None:
            return None
        return self._nearest([self.drawing.box(v) for v in vertices], box.x + box.width // 2)

    def action_cursor_up(self) -> None:
        if self._on_link:
            self.post_message(self.LinkKey(end="source"))
        elif self.drawing is not None and self._box is not None:
            self._go(self._linked(self.drawing.graph.sources[self.cursor]))

    def action_cursor_down(self) -> None:
        if self._on_link:
            self.post_message(self.LinkKey(end="target"))
        elif self.drawing is not None and self._box is not None:
            self._go(self._linked(self.drawing.graph.targets[self.cursor]))

    def action_cursor_left(self) -> None:
        """Go to the box at the left, in this rank or the nearest one that has one."""
        self._sideways(-1)

    def action_cursor_right(self) -> None:
        """Go to the box at the right, in this rank or the nearest one that has one."""
        self._sideways(1)

    def _sideways(self, sign: int) -> None:
        if self._on_link:
            self.post_message(self.LinkKey(sign))
            return
        box = self._box
        if box is None or self.drawing is None:
            return
        layout = self.drawing.layout
        own = layout.rank_at(box.y)
        for distance in range(12):
            nearer = [
                other
                for rank in {own - distance, own + distance}
                if 0 <= rank < len(layout.ranks)
                for other in layout.near(rank)
                if (other.x - box.x) * sign > 0 and other.vertex != box.vertex
            ]
            if nearer:
                self._go(min(nearer, key=lambda other: abs(other.x - box.x)).vertex)
                return

    def _page(self, sign: int) -> None:
        box = self._box
        if box is None or self.drawing is None:
            return
        layout = self.drawing.layout
        y = box.y + sign * max(1, self.scrollable_content_region.height - 2)
        rank = layout.rank_at(max(0, min(y, layout.height - 1)))
        self._go(self._nearest(layout.near(rank), box.x + box.width // 2))

    def action_page_up(self) -> None:
        self._page(-1)

    def action_page_down(self) -> None:
        self._page(1)

    def action_first(self) -> None:
        self._go_to_end(min)

    def action_last(self) -> None:
        self._go_to_end(max)

    def _go_to_end(self, end: Callable[[Iterable[int]], int]) -> None:
        if self.drawing is None or self._box is None:
            return
        boxes = [box for box in self.drawing.layout.boxes if box is not None]
        row = end(box.y for box in boxes)
        self._go(min((box.x, box.vertex) for box in boxes if box.y == row)[1])

    def action_activate(self) -> None:
        """Open what the cursor is on; follow the link."""
        if self._on_link:
            self.post_message(self.LinkKey(end="target"))
        elif self._box is not None:
            self.post_message(self.Activated(self.cursor))

    def action_mark(self) -> None:
        if self._box is not None:
            self.post_message(self.MarkAsked())

    @property
    def cursor_offset(self) -> Offset:
        """Where on the screen the row below the cursor's box begins, less one."""
        box, region = self._box, self.content_region
        if box is None:
            return region.offset
        x = box.x + self._indent - self.scroll_offset.x
        y = box.y + box.height - 1 - self.scroll_offset.y
        return region.offset + Offset(
            max(0, min(x, region.width - 1)), max(0, min(y, region.height - 1))
        )

    def show_cursor(self, margin: int = _MARGIN) -> None:
        """Scroll so that the box, and the ones above and below it, are in view."""
        box = self._box
        size = self._room
        if box is None or not size.height:
            return
        x = (
            0
            if self._indent
            else _scrolled(self.scroll_offset.x, size.width, (box.x, box.width), 4, margin)
        )
        y = _scrolled(self.scroll_offset.y, size.height, (box.y, box.height), 3, margin)
        if (x, y) != (self.scroll_offset.x, self.scroll_offset.y):
            self.scroll_to(x=x, y=y, animate=False, force=True, immediate=True)

    def on_click(self, event: events.Click) -> None:
        """Go to the box that was clicked; twice opens it."""
        offset = event.get_content_offset(self)
        if offset is None or self.drawing is None:
            return
        event.stop()
        if self._map is not None and offset.x >= self._room.width:
            self._go_to(*self._map.target(offset.x - self._room.width, offset.y))
            return
        box = self._box_at(offset)
        if box is not None:
            self._go(box.vertex, None)
            if event.button == _RIGHT_BUTTON:
                self.post_message(self.MenuAsked())
            elif event.chain == 2:
                self.action_activate()

    def _box_at(self, offset: Offset) -> Box | None:
        """Return the box in a cell of what is seen, that on top where there are several."""
        from dld_tui.core.model.graph.layout import boxes_in_row

        if self.drawing is None or not self.drawing.layout.ranks or offset.x >= self._room.width:
            return None
        x, y = offset.x + self.scroll_offset.x - self._indent, offset.y + self.scroll_offset.y
        return next(reversed(boxes_in_row(self.drawing.layout, y, x, x)), None)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Hold the box under the mouse."""
        offset = event.get_content_offset(self)
        box = self._box_at(offset) if offset is not None and event.button == 1 else None
        if box is not None:
            event.stop()
            self._go(box.vertex, None)  # else what follows, such as the click, meets another box
            self._held = event.screen_offset
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Show where the box that is held would be."""
        if self._held is not None:
            self._dragged = event.screen_offset - self._held
            self.refresh()

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """Put down the box that is held."""
        if self._held is not None:
            moved = event.screen_offset - self._held
            self.release_mouse()
            if moved:
                self.post_message(self.Dragged(moved.x, moved.y))

    def on_mouse_release(self, event: events.MouseRelease) -> None:
        """Hold nothing any more."""
        self._held, self._dragged = None, Offset(0, 0)
        self.refresh()

    @property
    def _ghost(self) -> Box | None:
        """The box that is held, where it would be."""
        box = self._box
        if self._held is None or box is None or not self._dragged:
            return None
        return replace(box, x=box.x + self._dragged.x, y=box.y + self._dragged.y)

    def _go_to(self, x: int, y: int) -> None:
        """Go to the box nearest to a place of the drawing."""
        assert self.drawing is not None  # there is a map of it
        layout = self.drawing.layout
        if layout.ranks:
            self._go(self._nearest(layout.near(layout.rank_at(y)), x))

    def notify_style_update(self) -> None:
        """Forget the styles of pieces."""
        super().notify_style_update()
        self.piece_styles.forget()

    def render_line(self, y: int) -> Strip:
        """Draw one line of what is seen."""
        width = self._room.width
        if self.drawing is None or not len(self.drawing.graph):
            text = "Nothing to draw" if y == 0 else ""
            return self.piece_styles.strip([(text, "empty")], width)
        left, top = self.scroll_offset
        pieces = drawn_line(
            self.drawing,
            y + top,
            left - self._indent,
            width,
            self.cursor,
            self._lit,
            grid=self.grid,
            ghost=self._ghost,
        )
        if self._map is None:
            return self.piece_styles.strip(pieces, width)
        view = (left, top, left + width, top + self._room.height)
        return self.piece_styles.strip(
            [*pieces, *self._map.line(y, view, self._box)], width + CELLS
        )

    @property
    def _indent(self) -> int:
        """Cells at the left of a drawing that is less wide than the view: it is in the middle."""
        if self.drawing is None:
            return 0
        return max(0, (self._room.width - self.drawing.layout.width) // 2)

    def watch_scroll_x(self, old_value: float, new_value: float) -> None:
        """Draw again for the columns that are seen now."""
        super().watch_scroll_x(old_value, new_value)
        self.refresh(Region(0, 0, *self.size))


def _scrolled(offset: int, room: int, span: tuple[int, int], part: int, margin: int) -> int:
    """Return the offset that shows a range: the present one if it does, else a part further on.

    Args:
        offset: The first cell that is seen.
        room: Cells that are seen.
        span: The first cell of the range, and how many it has.
        part: Which part of the room is beyond the range then: 3 for the third.
        margin: Cells beyond the range that are to be seen at least.
    """
    start, length = span
    if start - margin < offset:
        return max(0, start - max(margin, room // part))
    if start + length + margin > offset + room:
        return max(0, start + length + max(margin, room // part) - room)
    return offset
