"""The graph pane: one scope in four views, with the cursor kept across them.

What the cursor is on goes out as :class:`GraphPane.Selected`; Enter on a node posts
:class:`GraphPane.Opened`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Size
from textual.message import Message

from dld_tui.commands.command import table
from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.graph.folding import Fold
from dld_tui.core.model.graph.layout import Link, links_at
from dld_tui.core.model.tensors.value_types import alias_legend
from dld_tui.core.text import visible
from dld_tui.widgets.graph.canvas import GraphCanvas
from dld_tui.widgets.graph.colours import Colours
from dld_tui.widgets.graph.drawing import ZOOMS, Boxes, Drawing
from dld_tui.widgets.graph.overlays import Overlay
from dld_tui.widgets.graph.state import CANVAS_BOXES, GraphModel, GraphNotes, GraphView, ViewedGraph
from dld_tui.widgets.lists.line_view import LineView, MarksChanged
from dld_tui.widgets.lists.search import LineSearch
from dld_tui.widgets.lists.styled import compiled
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.command_dispatch import Commands, hint, shown_too
from dld_tui.widgets.shell.frame import CHOICE, Choices, Framed
from dld_tui.widgets.shell.page import host
from dld_tui.widgets.tasks import on_thread

if TYPE_CHECKING:
    from dld_tui.core.model.document import Node, Scope
    from dld_tui.widgets.parameters.terminals import Terminal


_STATE = ("layouts", "graph")
_CYCLE = (GraphView.FOLDED, GraphView.RAIL, GraphView.CANVAS)


AT_ONCE = 300
"""Boxes of the largest canvas that is arranged between two key presses."""
_FILLED = 5_000
"""Vertices of the largest graph whose folds are opened between two key presses."""
_FITTED = 60
"""Boxes of the largest one of which it is tried whether all that can be said of each fits."""


class GraphSearch(LineSearch):
    """A search that looks into what is folded, too."""

    def __init__(self, view: GraphList) -> None:
        super().__init__(view)
        self.pane = view.pane

    def end(self, index: int | None) -> None:
        """Go to the row that was found; else look into what is folded."""
        if index is not None or not self.pane.reveal_match(self.pattern):
            super().end(index)


class GraphList(LineView):
    """The rows of the overview and the rail view."""

    HELP = (
        "The graph as rows; each vertical line is a live tensor. {graph.fold} or {list.activate} "
        "unfolds a block, {graph.view} shows all nodes, then boxes; {go.around} shows the "
        "neighbourhood of the cursor as boxes. {graph.overlay} colours by precision, findings, "
        "weights, time or errors."
    )
    BINDINGS: ClassVar[list[BindingType]] = shown_too("list.activate")

    def __init__(self, pane: GraphPane) -> None:
        super().__init__(empty="The graph is being arranged", id="graph-list")
        self.pane = pane
        self.finder = GraphSearch(self)

    def mark(self) -> None:
        """Mark the row, or every node of the fold, and move down."""
        self.pane.toggle_mark()
        self.cursor += 1


@dataclass(frozen=True)
class GraphPlace:
    """Where the cursor of a graph was; what it was on may be drawn again later."""

    ends: tuple[Hashable, ...]
    """What it was on; of a fold the first and the last that it holds."""
    link: Link | None
    marks: frozenset[Hashable]
    """Marked inputs and outputs."""


@dataclass(frozen=True)
class Around:
    """A node and its nearest as boxes."""

    drawing: Drawing
    box: int
    """The box of the node."""
    nodes: Sequence[Hashable | None]
    """The node of each box; None for inputs, outputs and outer values."""


def _fits(drawing: Drawing, room: Size) -> bool:
    return drawing.layout.width <= room.width and drawing.layout.height <= room.height


class GraphPane(Framed, Commands, Vertical):
    """The views, rows and boxes, and the model that they show; empty until :meth:`show`."""

    SCOPE = "graph"
    COMMAND_TABLE = (
        *table(
            "graph",
            ("graph.view", "next_view", "v", "graph", "view",
             "Switch between overview, rails, boxes and focus view.",
             "overview, rails, boxes, layout of the graph, switch view"),
            ("graph.path", "show_path", "", "graph", "paths between",
             "Show the nodes between two marked nodes, or between mark and cursor, as boxes.",
             "ways between"),
            ("graph.fold", "toggle_fold", "z", "graph", "fold",
             "Fold or unfold a repeated block or name scope."),
            ("graph.overlay", "colours.next", "percent_sign", "graph", "overlay",
             "Colour by operator, precision, findings, weights, FLOPs, or time and errors of "
             "other tabs.",
             "heat, heatmap, heat map, colour, color, hot nodes"),
            ("graph.zoom_in", "zoom_in", "plus,equals_sign", "graph", "zoom in",
             "Show more detail in each box.", "zoom, magnify"),
            ("graph.zoom_out", "zoom_out", "minus", "graph", "zoom out",
             "Show less detail in each box."),
            ("graph.link", "link", "semicolon", "graph", "to link",
             "Select a link of the node, or the next one, for connect, insert and delete."),
            ("graph.arrange", "arrange", "", "graph", "arrange again",
             "Return all boxes to the automatic layout."),
            ("graph.grid", "toggle_grid", "number_sign", "graph", "grid",
             "Show or hide a grid of dots between the boxes."),
            footer="graph.view", menus={"graph.link": "node input boundary"},
        ),
        *table(
            "graph",
            ("graph.zoom_reset", "zoom_reset", "0", "graph", "zoom to fit",
             "Show as much detail as fits on the screen."),
            ("graph.more_hops", "more_hops", "right_parenthesis", "graph", "more around",
             "Extend the focus view by one link."),
            ("graph.fewer_hops", "fewer_hops", "left_parenthesis", "graph", "less around",
             "Shrink the focus view by one link."),
            ("graph.move_left", "move_box -4", "shift+left", "graph", "move left",
             "Move the box left; the model's metadata stores the position."),
            ("graph.move_right", "move_box 4", "shift+right", "graph", "move right",
             "Move the box right; the model's metadata stores the position."),
            ("graph.move_up", "move_box 0 -1", "shift+up", "graph", "move up",
             "Move the box a row up; the model's metadata stores the position."),
            ("graph.move_down", "move_box 0 1", "shift+down", "graph", "move down",
             "Move the box a row down; the model's metadata stores the position."),
            ("graph.leave", "leave", "escape", "", "leave",
             "Leave the link or the focus view; clear marks."),
            palette=False,
        ),
    )  # fmt: skip

    @dataclass
    class Selected(Message):
        """The cursor is on a node, or on a fold, input or output of `scope`."""

        node: Node | None
        scope: Scope

    @dataclass
    class Opened(Message):
        """Enter on a node."""

        node: Node

    class LinkReached(Message):
        """The cursor is on another link, or on none any more."""

    class MenuAsked(Message):
        """A right click."""

    @dataclass
    class MoveAsked(Message):
        """The box of a node is to be so many cells further right, and rows further down."""

        node: Node
        cells: int
        rows: int

    @dataclass
    class ArrangeAsked(Message):
        """All boxes of a scope are to be where they would be arranged."""

        scope: Scope

    @dataclass
    class Marked(Message):
        """Other nodes are marked now."""

        nodes: frozenset[Node]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.colours = Colours(self)
        self.model: ViewedGraph | None = None
        self.notes: GraphNotes | None = None
        self.list = GraphList(self)
        self.canvas = GraphCanvas(id="graph-canvas")
        for finder in (self.list.finder, self.canvas.finder):
            finder.ask_missing = self._hidden_constants
        self.zoom = 1
        self.zoom_is_chosen = False
        """Whether the zoom is what was asked for, not what fits."""
        self.link: Link | None = None
        """The link of the node under the cursor that the cursor is on."""
        self.boxes: list[int | Fold] = []
        """What each box of the canvas is: a vertex, or a fold that is closed."""
        self.has_precisions = False
        """Whether to leave room for the precision that layers are set to."""
        self._names_ports = False
        """Whether the schemas of operators are known, without which no input has a name."""
        self.is_outdated = False
        """Whether what it shows is no more, and another graph is being arranged."""
        self._findings: Sequence[Any] = ()
        self._wanted: int | None = None
        """The vertex that a canvas, which a thread is arranging, will have the cursor on."""
        self._drawing: object = None
        """What that thread works on; another thread's drawing comes too late."""
        self._return: GraphPlace | None = None
        """Where the cursor goes back to when a graph is shown."""
        self._left_from: int | Fold | None = None
        """What it was on then: it stays where it has been moved to since."""
        self._before: GraphView | None = None
        """The view that the focus view goes back to."""
        self._filled: frozenset[Fold] | None = None
        """The folds that were opened to fill the pane; None before."""

    def on_mount(self) -> None:
        """Show the list until there is something to draw, and the grid as it was the last time."""
        self.canvas.display = False
        self.frame.show("Graph")
        self.canvas.grid = host(self).state.get(*_STATE).get("grid") is True

    def compose(self) -> ComposeResult:
        """Lay out the two kinds of views; one is seen at a time."""
        yield self.list
        yield self.canvas

    def on_resize(self) -> None:
        """Fill the pane with rows, or draw the boxes as large as they fit now."""
        if self.list.display and self._fill():
            self.show_view(self.cursor_vertex)
        if self.canvas.display and not self.zoom_is_chosen and 0 < len(self.boxes) <= _FITTED:
            # The cursor of then: vertices of the graph that is shown by then have other numbers.
            self.call_after_refresh(lambda: self.show_view(self.cursor_vertex))

    def show(self, model: ViewedGraph) -> None:
        """Show a graph; after an edit of the same scope, in the way the old one was shown."""
        old, item = self.model, self._at_cursor
        is_same = old is not None and model.is_same(old)
        if old is not None and is_same:
            model.carry_over(old)
        self.model, self.is_outdated = model, False
        self._take_notes(model)
        if not is_same:
            self._filled = None
            self._fill()
        vertex = None
        if old is not None and is_same and item is not None:
            inside = item.vertices if isinstance(item, Fold) else (item,)
            subjects = [old.subject(at) for at in inside]
            vertex = next((v for v in map(model.vertex_now, subjects) if v is not None), None)
        fold = model.same_fold(old, item) if is_same and old and isinstance(item, Fold) else None
        if fold is not None and model.view is not GraphView.FOCUS:
            self.show_fold(fold)
        else:
            self.show_view(vertex if vertex is not None else self.first_vertex())
        self._go_back()
        self._return = None

    def _fill(self) -> bool:
        """Open folds until the rows fill the pane; those of a user stay as they are.

        Returns:
            Whether it has opened any.
        """
        model, room = self.model, self.list.scrollable_content_region.height
        if model is None or not room or model.view is not GraphView.FOLDED:
            return False
        before = model.overview.opened
        if len(model.graph) > _FILLED or self._filled not in (None, before):
            return False
        model.overview.fill(room)
        self._filled = model.overview.opened
        return self._filled != before

    def _take_notes(self, model: ViewedGraph) -> None:
        """Keep the notes of the old graph for a new one."""
        self.notes = GraphNotes(model)
        self.notes.has_precisions = self.has_precisions
        self.notes.set_findings(self._findings)
        # Vertices of another graph have other numbers.
        self.list.marks = {mark for mark in self.list.marks if not isinstance(mark, int)}
        self.notes.set_marks(self.list.marks)
        self.colours.find()

    def set_findings(self, findings: Sequence[Any]) -> None:
        """Show what is wrong, in all views."""
        had_findings = self.notes is not None and self.notes.has_findings
        self._findings = findings
        if self.notes is not None and (findings or had_findings):
            self.notes.set_findings(findings)
            self.show_notes()

    def set_marked(self, nodes: Iterable[Hashable]) -> None:
        """Mark nodes and no others; marked inputs and outputs stay marked."""
        others = {mark for mark in self.list.marks if isinstance(mark, int)}
        self.list.set_marks({*others, *nodes})

    def toggle_mark(self) -> None:
        """Mark or unmark the vertex under the cursor, or every node of the fold."""
        model, item = self.model, self._at_cursor
        if model is None or item is None:
            return
        vertices = item.vertices if isinstance(item, Fold) else (item,)
        nodes = [(model.node_at(vertex), vertex) for vertex in vertices]
        keys: set[Hashable] = {vertex if node is None else node for node, vertex in nodes}
        marks = self.list.marks
        self.list.set_marks(marks - keys if keys <= marks else marks | keys)

    def show_notes(self) -> None:
        """Draw marks, findings and colours again, without arranging anything."""
        notes = self.notes
        if notes is None:
            return
        notes.set_marks(self.list.marks)
        self.list.invalidate()
        self._note_boxes()
        self._say_title()

    def _note_boxes(self) -> None:
        """Give the canvas its marks and badges."""
        notes = self.notes
        if notes is None or not self.canvas.display:
            return
        assert self.model is not None  # there are notes on it
        spans = [self.model.span(box) for box in self.boxes]
        marks = {at for at, span in enumerate(spans) if notes.marked(*span)}
        badges = {at: notes.finding_badge(*span) for at, span in enumerate(spans)}
        self.canvas.note(marks, {at: badge for at, badge in badges.items() if badge[0] != " "})

    @property
    def cursor_vertex(self) -> int:
        """The vertex under the cursor; of a fold, the first one in it."""
        vertex, fold = self.vertex, self.fold
        if vertex is not None:
            return vertex
        return fold.vertices[0] if fold is not None else self.first_vertex()

    def first_vertex(self) -> int:
        """Return the vertex at the top."""
        return self.model.overview.rails.order[0] if self.model and len(self.model.rows) else 0

    @property
    def place(self) -> GraphPlace | None:
        """Where the cursor is, and what is marked besides nodes."""
        model, item = self.model, self._at_cursor
        if model is None or item is None:
            return None
        ends = (item.vertices[0], item.vertices[-1]) if isinstance(item, Fold) else (item,)
        terminals = {mark for mark in self.list.marks if isinstance(mark, int)}
        named = frozenset(model.subject(vertex) for vertex in terminals)
        return GraphPlace(tuple(map(model.subject, ends)), self.link, named)

    def return_to(self, place: GraphPlace) -> None:
        """Put the cursor back, once the graph is drawn again that it was in."""
        self._return, self._left_from = place, self._at_cursor
        if not self.is_outdated:
            self._go_back()

    def _go_back(self) -> None:
        place, model = self._return, self.model
        if place is None or model is None or self._at_cursor != self._left_from:
            return
        vertices = [model.vertex_now(subject) for subject in place.ends]
        if None in vertices:
            return
        folds = [row.fold for row in model.rows if row.fold and len(vertices) > 1]
        ends = ((fold, [fold.vertices[0], fold.vertices[-1]]) for fold in folds)
        fold = next((fold for fold, both in ends if both == vertices), None)
        if fold is not None and model.view is not GraphView.FOCUS:
            if self.fold is not fold:
                self.show_fold(fold)
        elif (vertex := vertices[0]) is not None and self.vertex != vertex:
            model.overview.reveal(vertex)
            self.show_view(vertex)
        self.list.set_marks({
            *(mark for mark in self.list.marks if not isinstance(mark, int)),
            *(at for at in map(model.vertex_now, place.marks) if at is not None),
        })  # fmt: skip
        if place.link is not None and place.link in links_at(model.graph, self.cursor_vertex):
            self.set_link(place.link)
            self.post_message(self.LinkReached())

    def reveal(self, node: Hashable) -> None:
        """Put the cursor on a node or layer of this graph, without a message."""
        model = self.model
        if model is None or node == self.subject_at_cursor:
            return
        vertex = model.vertex_now(node) if model.holds(node) else None
        if vertex is None:
            return
        if model.view is GraphView.FOCUS or (model.view is GraphView.CANVAS and self._is_seen):
            self._to_vertex(vertex)
            return
        rows = len(model.rows)
        model.overview.reveal(vertex)
        with self.prevent(LineView.CursorMoved):
            if len(model.rows) != rows:
                self.show_view(vertex)
            else:
                self._to_vertex(vertex)

    def reveal_match(self, pattern: str) -> bool:
        """Open the folds around the next vertex whose operator or name has a pattern.

        Returns:
            False where there is none, or nothing is folded in this view.
        """
        model = self.model
        if model is None or model.view is not GraphView.FOLDED or not model.rows:
            return False
        graph, order = model.graph, model.overview.rails.order
        is_match = compiled(pattern).search
        begin = model.rows[min(self.list.cursor, len(model.rows) - 1)].start
        for row in (*range(begin, len(order)), *range(begin)):
            vertex = order[row]
            if is_match(f"{graph.labels[vertex]}  {graph.names[vertex]}"):
                model.overview.reveal(vertex)
                self.show_view(vertex)
                return True
        return False

    @property
    def has_keys(self) -> bool:
        """Whether keys go to one of its views, or to a search in one."""
        finders = (self.list.finder, self.canvas.finder)
        return self.has_focus_within or any(finder.has_keys for finder in finders)

    @property
    def _is_seen(self) -> bool:
        return self.canvas.display and self.canvas.drawing is not None

    @property
    def _at_cursor(self) -> int | Fold | None:
        """The vertex or fold under the cursor."""
        model = self.model
        if model is None or self._wanted is not None:
            return self._wanted
        if self.canvas.display:
            at = self.canvas.cursor
            return self.boxes[at] if 0 <= at < len(self.boxes) else None
        if self.list.cursor >= len(model.rows):
            return None
        row = model.rows[self.list.cursor]
        return row.fold if row.fold is not None else model.overview.rails.order[row.start]

    @property
    def vertex(self) -> int | None:
        """The vertex under the cursor; None for a fold."""
        item = self._at_cursor
        return item if isinstance(item, int) else None

    @property
    def fold(self) -> Fold | None:
        """The fold under the cursor."""
        item = self._at_cursor
        return item if isinstance(item, Fold) else None

    @property
    def subject_at_cursor(self) -> Hashable | None:
        """The node or layer under the cursor."""
        vertex = self.vertex
        return None if vertex is None or self.model is None else self.model.node_at(vertex)

    def focus_view(self) -> None:
        """Give the keys to the view that is seen."""
        (self.canvas if self.canvas.display else self.list).focus()

    def show_view(self, vertex: int) -> None:
        """Show the present view with the cursor on a vertex."""
        model = self.model
        if model is None:
            return
        self.link = None
        if model.view in (GraphView.CANVAS, GraphView.FOCUS):
            self._show_canvas(vertex)
        else:
            self._show_list(vertex)
        self._say_title()

    def show_fold(self, fold: Fold) -> None:
        """Show the view again with the cursor on a fold, or in it when it is open on the canvas."""
        model = self.model
        assert model is not None  # the callers have looked
        self.show_view(fold.vertices[0])
        if not self.canvas.display:
            self.list.cursor = next((n for n, r in enumerate(model.rows) if r.fold is fold), 0)
        elif not model.overview.is_open(fold) and self._wanted is None:
            self.canvas.move_to(self.box_of(fold))

    def _show_list(self, vertex: int) -> None:
        from dld_tui.widgets.graph.rows import GraphRows

        model, notes = self.model, self.notes
        assert model is not None  # the callers have looked
        assert notes is not None
        self._wanted = self._drawing = None
        had_focus = self.canvas.has_focus
        self.canvas.display, self.list.display = False, True
        self.list.set_lines(GraphRows(model, notes, self.colours.overlay), keep=False)
        if model.rows:
            self.list.cursor = model.overview.place(vertex)
        if had_focus:
            self.list.focus()

    def _show_canvas(self, vertex: int) -> None:
        model = self.model
        assert model is not None  # the callers have looked
        things: list[int | Fold]
        if model.view is GraphView.FOCUS:
            part = model.focus(vertex)
            things = [*part.vertices]
            cuts = list(zip(part.cut_above, part.cut_below, strict=True))
        else:
            part, things = model.canvas_part()
            cuts = []
            if len(part.graph) > CANVAS_BOXES:
                model.set_view(GraphView.FOLDED)
                message = f"{len(part.graph):,} boxes are too many to read; fold some with z"
                self.notify(message, timeout=4)
                self._show_list(vertex)
                return
        assert self.notes is not None  # made with the model
        boxes = Boxes(model, self.notes, self.colours.overlay, things)
        if len(things) <= AT_ONCE:
            draw = partial(boxes.drawing, part.graph, cuts=cuts)
            self._show_drawing(self._fitting(draw, len(things)), things, vertex)
            return
        if not self.canvas.display:
            self._show_list(vertex)  # its rows may be others now
        self.boxes, self._wanted = [], vertex
        self._drawing = asked = object()
        self.tasks.start(
            self._draw(partial(boxes.drawing, part.graph, self.zoom, cuts), things, asked),
            "canvas",
            replace=True,
        )

    def around(self, node: Hashable, room: Size) -> Around | None:
        """Return a drawing of a node and its nearest, as large as it fits; None where it is not.

        Args:
            node: A node or layer.
            room: Cells there are.
        """
        model = self.model
        if model is None or self.notes is None or model.weights is None or not model.holds(node):
            return None  # it is not read to the end yet, or shows something else
        vertex = model.vertex_now(node)
        if vertex is None or node != model.node_at(vertex):
            return None
        part = model.nearest(vertex)
        things: list[int | Fold] = [*part.vertices]
        cuts = list(zip(part.cut_above, part.cut_below, strict=True))
        boxes = Boxes(model, self.notes, self.colours.overlay, things)
        draw = partial(boxes.drawing, part.graph, cuts=cuts)
        drawings = (draw(zoom) for zoom in range(ZOOMS - 1, 0, -1))
        drawing = next((drawn for drawn in drawings if _fits(drawn, room)), None) or draw(0)
        return Around(drawing, part.vertices.index(vertex), [*map(model.node_at, part.vertices)])

    def _fitting(self, draw: Callable[[int], Drawing], boxes: int) -> Drawing:
        """Return a drawing at the zoom that was chosen; else the largest if all of it is seen."""
        if self.zoom_is_chosen:
            return draw(self.zoom)
        room = (self.canvas if self.canvas.display else self.list).scrollable_content_region.size
        if boxes <= _FITTED:
            drawing = draw(ZOOMS - 1)
            if _fits(drawing, room):
                self.zoom = ZOOMS - 1
                return drawing
        self.zoom = 1
        return draw(self.zoom)

    async def _draw(
        self, draw: Callable[[], Drawing], things: list[int | Fold], asked: object
    ) -> None:
        try:
            drawing = await on_thread(draw)
        except (RuntimeError, KeyError, IndexError):
            return  # an edit has changed the model while it was read: all is drawn again after it
        if self._drawing is asked and self._wanted is not None:
            self._show_drawing(drawing, things, self._wanted)

    def _show_drawing(self, drawing: Drawing, things: list[int | Fold], vertex: int) -> None:
        """Show a drawing on the canvas, whose boxes are so many things."""
        self.boxes, self._wanted, self._drawing = things, None, None
        if self._names_ports:
            drawing.name_ports()
        had_focus = self.list.has_focus
        self.list.display, self.canvas.display = False, True
        self.canvas.set_drawing(drawing, self.box_of(vertex))
        self._note_boxes()
        if had_focus:
            self.canvas.focus()

    def name_ports(self) -> None:
        """Name the inputs of boxes from now on: the schemas of operators have been read."""
        self._names_ports = True
        if self.canvas.drawing is not None:
            self.canvas.drawing.name_ports()
            self.canvas.refresh()

    def box_of(self, item: int | Fold) -> int:
        """Return the box of a fold, or of a vertex or the fold that it is in; 0 without one."""
        model = self.model
        assert model is not None  # the callers have looked
        if item in self.boxes:
            return self.boxes.index(item)
        if isinstance(item, int) and item >= len(model.overview.rails.rows):
            return 0  # a body without nodes has no boxes
        row = model.overview.rails.rows[item] if isinstance(item, int) else item.start
        for at, box in enumerate(self.boxes):
            if isinstance(box, Fold) and box.start <= row < box.end:
                return at
        return 0

    def set_link(self, link: Link | None) -> None:
        """Put the cursor on a link, or back on its node, without a message."""
        self.link = link
        drawn = self._drawn_link(link) if link is not None and self.canvas.display else None
        self.canvas.show_link(drawn, on_link=link is not None)
        self._say_title()

    def _drawn_link(self, link: Link) -> Link | None:
        """Return a link of the graph as one of the drawing; None where it is in no line of it."""
        model, drawing = self.model, self.canvas.drawing
        if model is None or drawing is None:
            return None
        name = model.graph.nets[link.net].name
        source, target = self.box_of(link.source), self.box_of(link.target)
        nets = drawing.graph.nets
        for net in drawing.graph.outputs[source]:
            if nets[net].name == name and target in nets[net].targets:
                return Link(net, source, target)
        return None

    def _link_text(self, model: ViewedGraph, link: Link) -> str:
        graph, name = model.graph, model.graph.nets[link.net].name
        source, target = (
            f"{graph.labels[end]} {model.name_ends.without(graph.names[end])}".strip()
            for end in (link.source, link.target)
        )
        port, kind = model.port(link.target, name), model.named_type(name)
        text = f"link {name}  {kind}  {source} → {target}" + (f" {port}" if port else "")
        return visible(text)

    def _to_vertex(self, vertex: int) -> None:
        model = self.model
        if model is None:
            return
        if model.view is GraphView.FOCUS:
            self.show_view(vertex)
        elif self._wanted is not None:
            self._wanted = vertex
        elif self.canvas.display:
            self.canvas.move_to(self.box_of(vertex))
        else:
            self.list.cursor = model.overview.place(vertex)

    def _hidden_constants(self) -> str:
        model = self.model
        if model is None or model.count == model.total or model.view is GraphView.FOCUS:
            return ""
        return hint("{view.constants} shows constants, too")

    def _say_title(self) -> None:
        model = self.model
        if model is None:
            return
        crumb = glyphs.current().crumb
        place = f" {crumb} {visible(model.place)}" if model.place else ""
        if self.list.display and model.name_ends.gapped:
            place += f" · {visible(model.name_ends.gapped)}"
        said = (
            alias_legend(model.aliases) if self.link is None else self._link_text(model, self.link)
        )
        self.border_subtitle = Content(glyphs.shown(said))
        count = fmt.plural(model.total, model.noun)
        if model.count != model.total:
            count = f"{fmt.count(model.count)} of {count}"
        view = model.view.value
        if model.view is GraphView.FOCUS:
            view += " ways" if model.other_end is not None else f" {model.hops}"
        colours = ""
        if self.colours.overlay.name != Overlay.name:
            legend = self.colours.overlay.legend
            colours = f" · {self.colours.overlay.name}" + (f" {legend}" if legend else "")
        marked = len(self.list.marks)
        counts = f"{fmt.count(marked)} marked  {count}" if marked else count
        views = list(GraphView)
        choices = Choices(
            visible(f"Graph{place}{colours}"),
            visible(f"{counts}  {hint('{graph.view}')}"),
            tuple(view if other is model.view else other.value for other in views),
            views.index(model.view),
        )
        self.frame.show(
            f"Graph{place} · {view}{colours}", f"{counts}  {{graph.view}} view", choices
        )

    @on(LineView.CursorMoved)
    def row_reached(self, event: LineView.CursorMoved) -> None:
        """Post what the cursor reached, even if it has moved on since."""
        event.stop()
        self._leave_link()
        self.say_selected(event.key)

    @on(GraphCanvas.CursorMoved)
    def box_reached(self, event: GraphCanvas.CursorMoved) -> None:
        """Post what the cursor reached, even if it has moved on since.

        After an edit the boxes are others: then it is what the cursor is on now.
        """
        event.stop()
        model = self.model
        if model is None:
            return
        if event.drawing is not self.canvas.drawing or not self.boxes:
            self.say_selected(self.subject_at_cursor)
            return
        self._leave_link()
        box = self.boxes[event.vertex]
        self.say_selected(model.node_at(box) if isinstance(box, int) else None)

    @on(LineView.MarksChanged)
    def marks_changed(self, event: MarksChanged) -> None:
        """Show the marks in the view that is seen."""
        event.stop()
        self.show_notes()
        # A message of the list that was caused here would not get any further than here.
        self.say_marked(event.marks)

    @on(GraphCanvas.MarkAsked)
    def mark_asked(self, event: GraphCanvas.MarkAsked) -> None:
        """Mark the box under the cursor."""
        event.stop()
        self.toggle_mark()

    # What is said of the cursor and the marks; the pane of an engine says it in its own words.

    @property
    def node(self) -> Node | None:
        """The node under the cursor."""
        from dld_tui.core.model.document import Node

        subject = self.subject_at_cursor
        return subject if isinstance(subject, Node) else None

    @property
    def terminal(self) -> Terminal | None:
        """The end of the link that the cursor is on."""
        if self.link is None or not isinstance(self.model, GraphModel):
            return None
        return self.model.terminal(self.link)

    @property
    def boundary(self) -> Terminal | None:
        """The input or output of the graph that the cursor is on."""
        if self.link is not None or self.vertex is None or not isinstance(self.model, GraphModel):
            return None
        return self.model.boundary(self.vertex)

    def say_marked(self, marks: Iterable[Hashable]) -> None:
        """Say which nodes are marked now."""
        from dld_tui.core.model.document import Node

        self.post_message(self.Marked(frozenset(m for m in marks if isinstance(m, Node))))

    def say_selected(self, subject: Hashable | None) -> None:
        """Post that the cursor has reached a node, or something else."""
        from dld_tui.core.model.document import Node

        if isinstance(self.model, GraphModel):
            node = subject if isinstance(subject, Node) else None
            self.post_message(self.Selected(node, self.model.scope))

    def say_opened(self) -> None:
        """Post that the node under the cursor was opened."""
        node = self.node
        if node is not None:
            self.post_message(self.Opened(node))

    @on(LineView.Activated)
    def row_activated(self, event: LineView.Activated) -> None:
        """Unfold a block; follow a link; show what is near a node."""
        event.stop()
        if self.link is not None:
            self._follow_link("target")
        elif self.fold is not None:
            self.action_toggle_fold()
        else:
            self.show_around()

    @on(GraphCanvas.Activated)
    def box_activated(self, event: GraphCanvas.Activated) -> None:
        """Unfold a block; open a node."""
        event.stop()
        if self.fold is not None:
            self.action_toggle_fold()
        else:
            self.say_opened()

    @on(LineView.MenuAsked)
    @on(GraphCanvas.Dragged)
    def box_dragged(self, event: GraphCanvas.Dragged) -> None:
        """Move the box to where it was dragged."""
        event.stop()
        steps = f"{event.cells} {event.rows}"
        if self.check_action("move_box", (steps,)):
            self.action_move_box(steps)
        else:
            self.notify("Only boxes of nodes can be moved", timeout=3)

    @on(GraphCanvas.MenuAsked)
    def menu_asked(self, event: LineView.MenuAsked | GraphCanvas.MenuAsked) -> None:
        """Ask for the menu of what is under the cursor."""
        event.stop()
        self.post_message(self.MenuAsked())

    @property
    def is_behind(self) -> bool:
        """Whether the picture is still to come: keys wait for it for a moment."""
        return self.model is None or self.is_outdated

    def conditions(self) -> set[str]:
        return {"graph"} if self.model is not None and self.model.rows else set()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave Esc to others while there is nothing to leave."""
        if action == "leave":
            return (
                self.link is not None
                or bool(self.list.marks)
                or (self.model is not None and self.model.view is GraphView.FOCUS)
            )
        if action == "move_box" and " " in str(parameters[0]) and self.node is None:
            return False  # up and down move an input or output in its list
        return super().check_action(action, parameters)

    def action_next_view(self) -> None:
        if self.model is None or not self.model.rows:
            return
        view = self.model.view
        at = _CYCLE.index(view) if view in _CYCLE else -1
        self.switch_view(_CYCLE[(at + 1) % len(_CYCLE)])

    def switch_view(self, view: GraphView) -> None:
        """Switch to a view; the cursor stays."""
        model = self.model
        if model is None or not model.rows or view is model.view:
            return
        vertex = self.cursor_vertex
        if view is GraphView.FOCUS:
            self._focus(None, vertex)
        else:
            model.set_view(view, vertex)
            self.show_view(vertex)

    def on_click(self, event: events.Click) -> None:
        """Switch to the view that was clicked in the border."""
        number = event.style.meta.get(CHOICE)
        if number is not None:
            event.stop()
            self.focus_view()
            self.switch_view(list(GraphView)[number])

    def action_toggle_fold(self) -> None:
        """Open or close the fold at the cursor, or close the one around the cursor's node."""
        model = self.model
        if model is None or model.view is GraphView.FOCUS:
            return
        fold = self.fold or self._fold_around()
        if fold is None:
            return
        if model.view is GraphView.RAIL:
            model.set_view(GraphView.FOLDED, self.vertex)
            model.overview.reveal(fold.vertices[0])
        model.overview.set_open(fold, not model.overview.is_open(fold))
        self.show_fold(fold)
        self.say_selected(self.subject_at_cursor)

    def _fold_around(self) -> Fold | None:
        """Return the innermost open fold that the cursor's vertex is in."""
        model, vertex = self.model, self.vertex
        if model is None or vertex is None:
            return None
        around = model.overview.around(vertex)
        return around[-1] if around else None

    def show_around(self) -> None:
        """Show the neighbourhood of the node at the cursor as boxes."""
        self._focus(None)

    def action_show_path(self) -> None:
        """Show what is between two marked nodes, or the marked one and the cursor's."""
        marks = self.notes.marked_vertices if self.notes is not None else []
        here = self.vertex
        if len(marks) == 2:
            self._focus(marks[1], marks[0])
        elif here is not None and len(others := [mark for mark in marks if mark != here]) == 1:
            self._focus(others[0])
        else:
            self.notify(hint("Mark one or two nodes with {canvas.mark} first"), timeout=4)

    def _focus(self, other_end: int | None, vertex: int | None = None) -> None:
        model = self.model
        vertex = self.vertex if vertex is None else vertex
        if model is None or vertex is None:
            return
        if model.view is not GraphView.FOCUS:
            self._before = model.view
        model.other_end = other_end
        model.view = GraphView.FOCUS
        self.show_view(vertex)
        self.say_selected(self.subject_at_cursor)

    def action_leave(self) -> None:
        """Go back from a link to its node, or from the focus view; else clear the marks."""
        model = self.model
        if self.link is not None:
            self._leave_link()
        elif model is not None and model.view is GraphView.FOCUS:
            vertex = self.cursor_vertex
            model.view = self._before or GraphView.FOLDED
            model.overview.reveal(vertex)
            self.show_view(vertex)
        else:
            self.list.set_marks(set())

    def action_link(self) -> None:
        """Put the cursor on the first link of its node, or on the next one."""
        self._step_link(1)

    @on(GraphCanvas.LinkKey)
    def link_key(self, event: GraphCanvas.LinkKey) -> None:
        """Go to another link of the node, or to an end of this one."""
        event.stop()
        if event.end:
            self._follow_link(event.end)
        else:
            self._step_link(event.step)

    def _step_link(self, step: int) -> None:
        model, vertex = self.model, self.vertex
        links = links_at(model.graph, vertex) if model is not None and vertex is not None else []
        if not links:
            self.notify(hint("Only nodes have links; {graph.fold} unfolds a block"), timeout=3)
            return
        at = links.index(self.link) + step if self.link in links else 0
        self.set_link(links[at % len(links)])
        self.post_message(self.LinkReached())

    def _leave_link(self) -> None:
        if self.link is not None:
            self.set_link(None)
            self.post_message(self.LinkReached())

    def _follow_link(self, end: str) -> None:
        """Go to the node at the end of the link."""
        link, model = self.link, self.model
        if link is not None and model is not None:
            vertex = link.source if end == "source" else link.target
            self._leave_link()
            model.overview.reveal(vertex)
            self.show_view(vertex)
            self.say_selected(self.subject_at_cursor)

    def action_move_box(self, steps: str) -> None:
        node = self.node
        cells, _, rows = steps.partition(" ")
        if self.model is None or self.model.view is not GraphView.CANVAS or node is None:
            self.notify(
                hint("Nodes can be moved on the canvas only; {graph.view} switches to it"),
                timeout=3,
            )
        else:
            self.post_message(self.MoveAsked(node, int(cells), int(rows or 0)))

    def action_arrange(self) -> None:
        if isinstance(self.model, GraphModel):
            self.post_message(self.ArrangeAsked(self.model.scope))

    def action_zoom_in(self) -> None:
        self._set_zoom(self.zoom + 1)

    def action_zoom_out(self) -> None:
        self._set_zoom(self.zoom - 1)

    def action_zoom_reset(self) -> None:
        if self.canvas.display:
            self.zoom_is_chosen = False
            self.show_view(self.cursor_vertex)

    def _set_zoom(self, zoom: int) -> None:
        zoom = max(0, min(zoom, ZOOMS - 1))
        if zoom != self.zoom and self.canvas.display:
            self.zoom, self.zoom_is_chosen = zoom, True
            self.show_view(self.cursor_vertex)

    def action_toggle_grid(self) -> None:
        if not self.canvas.display:
            self.notify(hint("The grid is for boxes; {graph.view} switches to them"), timeout=3)
            return
        self.canvas.grid = not self.canvas.grid
        self.canvas.invalidate()
        host(self).state.put(*_STATE, {"grid": self.canvas.grid})

    def action_more_hops(self) -> None:
        self._set_hops(1)

    def action_fewer_hops(self) -> None:
        self._set_hops(-1)

    def _set_hops(self, change: int) -> None:
        model = self.model
        if model is not None and model.view is GraphView.FOCUS and model.other_end is None:
            model.hops = max(1, min(model.hops + change, 9))
            self.show_view(self.cursor_vertex)
