"""The canvas: boxes and lines, a cursor that follows the links. Only what is seen is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from dld_tui.core.graph.layout import Box
from dld_tui.widgets.commands import Commands, bindings_for
from dld_tui.widgets.graph_drawing import Drawing, drawn_line
from dld_tui.widgets.styled import Styled

_RIGHT_BUTTON = 3


class GraphCanvas(Styled, Commands, ScrollView, can_focus=True, inherit_bindings=False):
    """A drawing that is larger than the screen, and a cursor on one of its boxes."""

    SCOPE = "canvas"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("canvas")
    ALLOW_SELECT = False
    HELP = (
        "The graph as boxes. Up and down follow the links, left and right go to the box beside. "
        "+ and - zoom, v shows the graph as rows, Enter opens a fold or goes to the parameters."
    )

    @dataclass
    class CursorMoved(Message):
        """The cursor is on another box."""

        vertex: int

    @dataclass
    class Activated(Message):
        """Enter or a double click on a box."""

        vertex: int

    class MenuAsked(Message):
        """A right click on a box, which is the cursor's now."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.drawing: Drawing | None = None
        self.cursor = 0
        self._lit: frozenset[int] = frozenset()

    # --- content --------------------------------------------------------------------------------

    def set_drawing(self, drawing: Drawing, cursor: int) -> None:
        """Show a drawing with the cursor on a vertex."""
        self.drawing = drawing
        layout = drawing.layout
        self.virtual_size = Size(layout.width + 2, layout.height + 1)
        self._place_cursor(min(cursor, len(drawing.graph) - 1))
        self.refresh()
        self.call_after_refresh(self.show_cursor)

    def move_to(self, vertex: int) -> None:
        """Put the cursor on a vertex; nothing is said of it."""
        if self.drawing is not None and 0 <= vertex < len(self.drawing.graph):
            self._place_cursor(vertex)
            self.show_cursor()
            self.refresh()

    def _place_cursor(self, vertex: int) -> None:
        self.cursor = vertex
        if self.drawing is not None and len(self.drawing.graph):
            graph = self.drawing.graph
            self._lit = frozenset((*graph.inputs[vertex], *graph.outputs[vertex]))

    def _go(self, vertex: int | None) -> None:
        if vertex is None or vertex == self.cursor:
            return
        self.move_to(vertex)
        self.post_message(self.CursorMoved(vertex))

    # --- moving ---------------------------------------------------------------------------------

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
        """Follow the link up that is nearest to straight."""
        if self.drawing is not None and self._box is not None:
            self._go(self._linked(self.drawing.graph.sources[self.cursor]))

    def action_cursor_down(self) -> None:
        """Follow the link down that is nearest to straight."""
        if self.drawing is not None and self._box is not None:
            self._go(self._linked(self.drawing.graph.targets[self.cursor]))

    def action_cursor_left(self) -> None:
        """Go to the box at the left, in this rank or the nearest one that has one."""
        self._sideways(-1)

    def action_cursor_right(self) -> None:
        """Go to the box at the right, in this rank or the nearest one that has one."""
        self._sideways(1)

    def _sideways(self, sign: int) -> None:
        box = self._box
        if box is None or self.drawing is None:
            return
        ranks = self.drawing.layout.ranks
        own = self.drawing.layout.rank_at(box.y)
        for distance in range(12):
            found = [
                other
                for rank in {own - distance, own + distance}
                if 0 <= rank < len(ranks)
                for other in ranks[rank]
                if (other.x - box.x) * sign > 0 and other.vertex != box.vertex
            ]
            if found:
                self._go(min(found, key=lambda other: abs(other.x - box.x)).vertex)
                return

    def _page(self, sign: int) -> None:
        box = self._box
        if box is None or self.drawing is None:
            return
        layout = self.drawing.layout
        y = box.y + sign * max(1, self.scrollable_content_region.height - 2)
        rank = layout.rank_at(max(0, min(y, layout.height - 1)))
        self._go(self._nearest(layout.ranks[rank], box.x + box.width // 2))

    def action_page_up(self) -> None:
        """Go up by what is seen."""
        self._page(-1)

    def action_page_down(self) -> None:
        """Go down by what is seen."""
        self._page(1)

    def action_first(self) -> None:
        """Go to the top."""
        if self.drawing is not None and self._box is not None:
            self._go(self.drawing.layout.ranks[0][0].vertex)

    def action_last(self) -> None:
        """Go to the bottom."""
        if self.drawing is not None and self._box is not None:
            self._go(self.drawing.layout.ranks[-1][0].vertex)

    def action_activate(self) -> None:
        """Open what the cursor is on."""
        if self._box is not None:
            self.post_message(self.Activated(self.cursor))

    def show_cursor(self) -> None:
        """Scroll so that the box, and the ones above and below it, are in view."""
        box = self._box
        size = self.scrollable_content_region.size
        if box is None or not size.height:
            return
        x = (
            0
            if self._indent
            else self._scrolled(self.scroll_offset.x, size.width, box.x, box.width, size.width // 4)
        )
        y = self._scrolled(self.scroll_offset.y, size.height, box.y, box.height, size.height // 3)
        if (x, y) != (self.scroll_offset.x, self.scroll_offset.y):
            self.scroll_to(x=x, y=y, animate=False, force=True, immediate=True)

    @staticmethod
    def _scrolled(offset: int, room: int, start: int, length: int, jump: int) -> int:
        """Return the offset that shows a range: the present one if it does, else some cells on."""
        margin = 2
        if start - margin < offset:
            return max(0, start - jump)
        if start + length + margin > offset + room:
            return max(0, start + length + jump - room)
        return offset

    # --- mouse ----------------------------------------------------------------------------------

    def on_click(self, event: events.Click) -> None:
        """Go to the box that was clicked; twice opens it."""
        offset = event.get_content_offset(self)
        if offset is None or self.drawing is None:
            return
        x, y = offset.x + self.scroll_offset.x - self._indent, offset.y + self.scroll_offset.y
        layout = self.drawing.layout
        for box in layout.ranks[layout.rank_at(y)] if layout.ranks else ():
            if box.x <= x < box.x + box.width and box.y <= y < box.y + box.height:
                self._go(box.vertex)
                if event.button == _RIGHT_BUTTON:
                    self.post_message(self.MenuAsked())
                elif event.chain == 2:
                    self.action_activate()
        event.stop()

    # --- drawing --------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        """Draw one line of what is seen."""
        width = self.scrollable_content_region.width
        if self.drawing is None or not len(self.drawing.graph):
            text = "Nothing to draw" if y == 0 else ""
            return self.strip_of([(text, "empty")], width)
        left, top = self.scroll_offset
        pieces = drawn_line(
            self.drawing, y + top, left - self._indent, width, self.cursor, self._lit
        )
        return self.strip_of(pieces, width)

    @property
    def _indent(self) -> int:
        """Cells at the left of a drawing that is less wide than the view: it is in the middle."""
        if self.drawing is None:
            return 0
        return max(0, (self.scrollable_content_region.width - self.drawing.layout.width) // 2)

    def watch_scroll_x(self, old_value: float, new_value: float) -> None:
        """Draw again for the columns that are seen now."""
        super().watch_scroll_x(old_value, new_value)
        self.refresh(Region(0, 0, *self.size))
