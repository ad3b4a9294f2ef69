"""The boxes on the canvas of a graph pane: which, how large, drawn at once or on a thread."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial

from textual.geometry import Size

from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.graph.folding import Fold, Subgraph
from dld_tui.core.model.graph.layout import Link
from dld_tui.widgets.graph.canvas import GraphCanvas
from dld_tui.widgets.graph.drawing import ZOOMS, Boxes, Drawing
from dld_tui.widgets.graph.overlays import Overlay
from dld_tui.widgets.graph.state import CANVAS_BOXES, GraphNotes, GraphView, ViewedGraph
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.shell.command_dispatch import hint
from dld_tui.widgets.shell.page import host
from dld_tui.widgets.tasks import on_thread

_STATE = ("layouts", "graph")
AT_ONCE = 300
"""Boxes of the largest canvas that is arranged between two key presses."""
_FITTED = 60
"""Boxes of the largest one of which it is tried whether all that can be said of each fits."""


@dataclass(frozen=True)
class Looks:
    """What boxes are drawn from: the graph, what is said of its nodes, and the colours."""

    model: ViewedGraph
    notes: GraphNotes
    overlay: Overlay

    def drawer(
        self, part: Subgraph, items: Sequence[int | Fold], *, is_cut: bool = True
    ) -> Callable[[int], Drawing]:
        """Return what draws a part of the graph at a zoom.

        Args:
            part: The part.
            items: The vertex of the whole graph, or the fold, that each box is.
            is_cut: Whether links that lead out of the part are shown.
        """
        cuts = list(zip(part.cut_above, part.cut_below, strict=True)) if is_cut else []
        boxes = Boxes(self.model, self.notes, self.overlay, items)
        return partial(boxes.drawing, part.graph, cuts=cuts)


@dataclass(frozen=True)
class Around:
    """A node and its nearest as boxes."""

    drawing: Drawing
    box: int
    """The box of the node."""
    nodes: Sequence[Hashable | None]
    """The node of each box; None for inputs, outputs and outer values."""


def around(looks: Looks, node: Hashable, room: Size) -> Around | None:
    """Return a drawing of a node and its nearest, as large as it fits; None where it is not.

    Args:
        looks: The graph, and how it is drawn.
        node: A node or layer.
        room: Cells there are.
    """
    model = looks.model
    if model.weights is None or not model.holds(node):
        return None  # it is not read to the end yet, or shows something else
    vertex = model.vertex_now(node)
    if vertex is None or node != model.node_at(vertex):
        return None
    part = model.nearest(vertex)
    draw = looks.drawer(part, part.vertices)
    drawings = (draw(zoom) for zoom in range(ZOOMS - 1, 0, -1))
    drawing = next((drawn for drawn in drawings if _fits(drawn, room)), None) or draw(0)
    return Around(drawing, part.vertices.index(vertex), [*map(model.node_at, part.vertices)])


def _fits(drawing: Drawing, room: Size) -> bool:
    return drawing.layout.width <= room.width and drawing.layout.height <= room.height


class CanvasBoxes:
    """What each box of the canvas is, and the zoom that it is drawn at.

    Args:
        canvas: The canvas.
        rows: The view that is seen while the canvas is not.
        redraw: Shows the view again, with its cursor where it is.
    """

    def __init__(self, canvas: GraphCanvas, rows: LineView, redraw: Callable[[], None]) -> None:
        self.canvas = canvas
        self.rows = rows
        self.redraw = redraw
        self.items: list[int | Fold] = []
        """What each box is: a vertex, or a fold that is closed."""
        self.zoom = 1
        self.zoom_is_chosen = False
        """Whether the zoom is what was asked for, not what fits."""
        self.wanted: int | None = None
        """The vertex that a canvas, which a thread is arranging, will have the cursor on."""
        self._looks: Looks | None = None
        self._awaited: object = None
        """What that thread works on; another thread's drawing comes too late."""
        self._names_ports = False
        """Whether the schemas of operators are known, without which no input has a name."""

    def draw(self, looks: Looks, vertex: int) -> None:
        """Draw the boxes of the present view with the cursor on a vertex; many on a thread.

        If they are too many to read, the view becomes that of the folds.
        """
        model = looks.model
        self._looks = looks
        items: list[int | Fold]
        if model.view is GraphView.FOCUS:
            part = model.focus(vertex)
            items = [*part.vertices]
        else:
            part, items = model.canvas_part()
            if len(part.graph) > CANVAS_BOXES:
                model.set_view(GraphView.FOLDED)
                message = f"{len(part.graph):,} boxes are too many to read; fold some with z"
                self.canvas.notify(message, timeout=4)
                return
        draw = looks.drawer(part, items, is_cut=model.view is GraphView.FOCUS)
        if len(items) <= AT_ONCE:
            self._show(self._fitting(draw, len(items)), items, vertex)
            return
        self.items, self.wanted = [], vertex
        self._awaited = awaited = object()
        drawing = self._draw_on_thread(partial(draw, self.zoom), items, awaited)
        self.canvas.tasks.start(drawing, "canvas", replace=True)

    def give_up(self) -> None:
        """Do not show what a thread is drawing."""
        self.wanted = self._awaited = None

    def _fitting(self, draw: Callable[[int], Drawing], count: int) -> Drawing:
        """Return a drawing at the zoom that was chosen; else the largest if all of it is seen."""
        if self.zoom_is_chosen:
            return draw(self.zoom)
        seen = self.canvas if self.canvas.display else self.rows
        if count <= _FITTED:
            drawing = draw(ZOOMS - 1)
            if _fits(drawing, seen.scrollable_content_region.size):
                self.zoom = ZOOMS - 1
                return drawing
        self.zoom = 1
        return draw(self.zoom)

    async def _draw_on_thread(
        self, draw: Callable[[], Drawing], items: list[int | Fold], awaited: object
    ) -> None:
        try:
            drawing = await on_thread(draw)
        except (RuntimeError, KeyError, IndexError):
            return  # an edit has changed the model while it was read: all is drawn again after it
        if self._awaited is awaited and self.wanted is not None:
            self._show(drawing, items, self.wanted)

    def _show(self, drawing: Drawing, items: list[int | Fold], vertex: int) -> None:
        self.items = items
        self.give_up()
        if self._names_ports:
            drawing.name_ports()
        had_focus = self.rows.has_focus
        self.rows.display, self.canvas.display = False, True
        self.canvas.set_drawing(drawing, self.box_of(vertex))
        self.show_notes()
        if had_focus:
            self.canvas.focus()

    def show_notes(self) -> None:
        """Give the canvas its marks and badges."""
        if self._looks is None or not self.canvas.display:
            return
        model, notes = self._looks.model, self._looks.notes
        spans = [model.span(item) for item in self.items]
        marks = {at for at, span in enumerate(spans) if notes.marked(*span)}
        badges = {at: notes.finding_badge(*span) for at, span in enumerate(spans)}
        self.canvas.note(marks, {at: badge for at, badge in badges.items() if badge[0] != " "})

    def name_ports(self) -> None:
        """Name the inputs of boxes from now on: the schemas of operators have been read."""
        self._names_ports = True
        if self.canvas.drawing is not None:
            self.canvas.drawing.name_ports()
            self.canvas.refresh()

    @property
    def at_cursor(self) -> int | Fold | None:
        """What the box under the cursor is."""
        at = self.canvas.cursor
        return self.items[at] if 0 <= at < len(self.items) else None

    def move_to(self, item: int | Fold) -> None:
        """Put the cursor on the box of a fold, or of a vertex or the fold that it is in."""
        self.canvas.move_to(self.box_of(item))

    def box_of(self, item: int | Fold) -> int:
        """Return the box of a fold, or of a vertex or the fold that it is in; 0 without one."""
        if item in self.items:
            return self.items.index(item)
        assert self._looks is not None  # boxes were drawn
        rows = self._looks.model.overview.rails.rows
        if isinstance(item, int) and item >= len(rows):
            return 0  # a body without nodes has no boxes
        row = rows[item] if isinstance(item, int) else item.start
        for at, box in enumerate(self.items):
            if isinstance(box, Fold) and box.start <= row < box.end:
                return at
        return 0

    def show_link(self, link: Link | None) -> None:
        """Put the cursor on a link of the graph, or back on its node."""
        drawn = self._drawn_link(link) if link is not None and self.canvas.display else None
        self.canvas.show_link(drawn, on_link=link is not None)

    def _drawn_link(self, link: Link) -> Link | None:
        """Return a link of the graph as one of the drawing; None where it is in no line of it."""
        drawing = self.canvas.drawing
        if self._looks is None or drawing is None:
            return None
        name = self._looks.model.graph.nets[link.net].name
        source, target = self.box_of(link.source), self.box_of(link.target)
        nets = drawing.graph.nets
        for net in drawing.graph.outputs[source]:
            if nets[net].name == name and target in nets[net].targets:
                return Link(net, source, target)
        return None

    def resized(self) -> None:
        """Draw the boxes as large as they fit now."""
        if self.canvas.display and not self.zoom_is_chosen and 0 < len(self.items) <= _FITTED:
            self.canvas.call_after_refresh(self.redraw)

    def zoom_in(self) -> None:
        """Show more detail in each box."""
        self._set_zoom(self.zoom + 1)

    def zoom_out(self) -> None:
        """Show less detail in each box."""
        self._set_zoom(self.zoom - 1)

    def zoom_to_fit(self) -> None:
        """Show as much detail as fits."""
        if self.canvas.display:
            self.zoom_is_chosen = False
            self.redraw()

    def _set_zoom(self, zoom: int) -> None:
        zoom = max(0, min(zoom, ZOOMS - 1))
        if zoom != self.zoom and self.canvas.display:
            self.zoom, self.zoom_is_chosen = zoom, True
            self.redraw()

    def recall_grid(self) -> None:
        """Show the grid if it was shown the last time."""
        self.canvas.grid = host(self.canvas).state.get(*_STATE).get("grid") is True

    def toggle_grid(self) -> None:
        """Show or hide the grid, this time and the next."""
        canvas = self.canvas
        if not canvas.display:
            message = hint("The grid is for boxes; {graph.view} switches to them")
            canvas.notify(message, timeout=3)
            return
        canvas.grid = not canvas.grid
        canvas.invalidate()
        host(canvas).state.put(*_STATE, {"grid": canvas.grid})
