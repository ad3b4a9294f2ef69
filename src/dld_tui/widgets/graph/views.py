"""The views of the graph pane: which one is seen, and what its cursor is on."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import Any

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content

from dld_tui.core import fmt
from dld_tui.core.graph.folding import Fold
from dld_tui.core.graph.links import Link
from dld_tui.core.text import visible
from dld_tui.widgets.graph.canvas import GraphCanvas
from dld_tui.widgets.graph.drawing import ZOOMS, Boxes, Drawing
from dld_tui.widgets.graph.model import GraphNotes
from dld_tui.widgets.graph.overlays import Colours, Overlay
from dld_tui.widgets.graph.viewed import CANVAS_BOXES, GraphView, ViewedGraph
from dld_tui.widgets.hints import hint
from dld_tui.widgets.lists.line_source import compiled
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.frame import Choices, Frame
from dld_tui.widgets.tasks import on_thread

AT_ONCE = 300
"""Boxes of the largest canvas that is arranged between two key presses."""
_FITTED = 60
"""Boxes of the largest one of which it is tried whether all that can be said of each fits."""


class GraphList(LineView):
    """The rows of the overview and the rail view."""

    HELP = (
        "The graph as rows: each line is a tensor that is alive. {graph.fold} or {list.activate} "
        "unfolds a block, {graph.view} shows all nodes, then boxes; {graph.focus} shows what is "
        "near the cursor as boxes. {graph.overlay} colours by precision, findings, weights, time "
        "or errors."
    )

    def __init__(self, views: GraphViews) -> None:
        super().__init__(empty="The graph is being arranged", id="graph-list")
        self.views = views

    def mark(self) -> None:
        """Mark the row, or every node of the fold, and move down."""
        self.views.toggle_mark()
        self.cursor += 1

    def search_ended(self, found: int | None) -> None:
        """Go to the row that was found; else look into what is folded."""
        if found is not None or not self.views.reveal_match(self.search_pattern):
            super().search_ended(found)


class GraphViews(Colours, Frame, Vertical):
    """The two kinds of views, rows and boxes, and the model that they show."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.model: ViewedGraph | None = None
        self.notes: GraphNotes | None = None
        self.list = GraphList(self)
        self.canvas = GraphCanvas(id="graph-canvas")
        self.zoom = 1
        self.zoom_is_chosen = False
        """Whether the zoom is what was asked for, not what fits."""
        self.link: Link | None = None
        """The link of the node under the cursor that the cursor is on."""
        self.boxes: list[int | Fold] = []
        """What each box of the canvas is: a vertex, or a fold that is closed."""
        self.has_precisions = False
        """Whether to leave room for the precision that layers are set to."""
        self._findings: Sequence[Any] = ()
        self._wanted: int | None = None
        """The vertex that a canvas, which a thread is arranging, will have the cursor on."""
        self._drawing: object = None
        """What that thread works on; another thread's drawing comes too late."""

    def compose(self) -> ComposeResult:
        """Lay out the two kinds of views; one is seen at a time."""
        yield self.list
        yield self.canvas

    def on_mount(self) -> None:
        """Show the list until there is something to draw."""
        self.canvas.display = False
        self.frame("Graph")

    def on_resize(self) -> None:
        """Draw the boxes as large as they fit now."""
        if self.canvas.display and not self.zoom_is_chosen and 0 < len(self.boxes) <= _FITTED:
            self.call_after_refresh(self.show_view, self.cursor_vertex)

    # --- content --------------------------------------------------------------------------------

    def show(self, model: ViewedGraph) -> None:
        """Show a graph; after an edit of the same scope, in the way the old one was shown."""
        old, thing = self.model, self._at_cursor
        is_same = old is not None and model.is_same(old)
        if old is not None and is_same:
            model.carry_over(old)
        self.model = model
        self._take_notes(model)
        vertex = None
        if old is not None and is_same and thing is not None:
            inside = thing.vertices if isinstance(thing, Fold) else (thing,)
            subjects = [old.subject(at) for at in inside]
            vertex = next((v for v in map(model.vertex_now, subjects) if v is not None), None)
        fold = model.same_fold(old, thing) if is_same and old and isinstance(thing, Fold) else None
        if fold is not None and model.view is not GraphView.FOCUS:
            self.show_fold(fold)
        else:
            self.show_view(vertex if vertex is not None else self.first_vertex())

    # --- notes ----------------------------------------------------------------------------------

    def _take_notes(self, model: ViewedGraph) -> None:
        """Say of a new graph what was said of the old one."""
        self.notes = GraphNotes(model)
        self.notes.has_precisions = self.has_precisions
        self.notes.set_findings(self._findings)
        # Vertices of another graph have other numbers.
        self.list.marks = {mark for mark in self.list.marks if not isinstance(mark, int)}
        self.notes.set_marks(self.list.marks)
        self.find_overlay()

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
        model, thing = self.model, self._at_cursor
        if model is None or thing is None:
            return
        vertices = thing.vertices if isinstance(thing, Fold) else (thing,)
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

    # --- the cursor ----------------------------------------------------------------------------

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
        """Whether keys go to one of its views, or to a search in its rows."""
        return self.has_focus_within or self.list.is_searched

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
        found = self._at_cursor
        return found if isinstance(found, int) else None

    @property
    def fold(self) -> Fold | None:
        """The fold under the cursor."""
        found = self._at_cursor
        return found if isinstance(found, Fold) else None

    @property
    def subject_at_cursor(self) -> Hashable | None:
        """The node or layer under the cursor."""
        vertex = self.vertex
        return None if vertex is None or self.model is None else self.model.node_at(vertex)

    def focus_view(self) -> None:
        """Give the keys to the view that is seen."""
        (self.canvas if self.canvas.display else self.list).focus()

    # --- views ----------------------------------------------------------------------------------

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
        self.list.set_lines(GraphRows(model, notes, self._overlay), keep=False)
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
                message = f"{len(part.graph):,} boxes are too many to read: fold some with z"
                self.notify(message, timeout=4)
                self._show_list(vertex)
                return
        assert self.notes is not None  # made with the model
        boxes = Boxes(model, self.notes, self._overlay, things)
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

    def _fitting(self, draw: Callable[[int], Drawing], boxes: int) -> Drawing:
        """Return a drawing at the zoom that was chosen; else the largest if all of it is seen."""
        if self.zoom_is_chosen:
            return draw(self.zoom)
        room = (self.canvas if self.canvas.display else self.list).scrollable_content_region.size
        if boxes <= _FITTED:
            drawing = draw(ZOOMS - 1)
            size = drawing.layout
            if size.width <= room.width and size.height <= room.height:
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
        had_focus = self.list.has_focus
        self.list.display, self.canvas.display = False, True
        self.canvas.set_drawing(drawing, self.box_of(vertex))
        self._note_boxes()
        if had_focus:
            self.canvas.focus()

    def box_of(self, thing: int | Fold) -> int:
        """Return the box of a fold, or of a vertex or the fold that it is in; 0 without one."""
        model = self.model
        assert model is not None  # the callers have looked
        if thing in self.boxes:
            return self.boxes.index(thing)
        if isinstance(thing, int) and thing >= len(model.overview.rails.rows):
            return 0  # a body without nodes has no boxes
        row = model.overview.rails.rows[thing] if isinstance(thing, int) else thing.start
        for at, box in enumerate(self.boxes):
            if isinstance(box, Fold) and box.start <= row < box.end:
                return at
        return 0

    # --- the cursor on a link -------------------------------------------------------------------

    def set_link(self, link: Link | None) -> None:
        """Put the cursor on a link, or back on its node; nothing is said of it."""
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

    def _say_title(self) -> None:
        model = self.model
        if model is None:
            return
        crumb = glyphs.current().crumb
        place = f" {crumb} {visible(model.place)}" if model.place else ""
        if self.list.display and model.name_ends.said:
            place += f" · {visible(model.name_ends.said)}"
        aliases = "  ".join(f"{alias} {name}" for name, alias in model.aliases.items())
        said = visible(aliases) if self.link is None else self._link_text(model, self.link)
        self.border_subtitle = Content(glyphs.shown(said))
        count = fmt.plural(model.count, model.noun)
        view = model.view.value
        if model.view is GraphView.FOCUS:
            view += " ways" if model.other_end is not None else f" {model.hops}"
        colours = ""
        if self._overlay.name != Overlay.name:
            legend = self._overlay.legend
            colours = f" · {self._overlay.name}" + (f" {legend}" if legend else "")
        marked = len(self.list.marks)
        counts = f"{fmt.count(marked)} marked  {count}" if marked else count
        views = list(GraphView)
        choices = Choices(
            visible(f"Graph{place}{colours}"),
            visible(f"{counts}  {hint('{graph.view}')}"),
            tuple(view if other is model.view else other.value for other in views),
            views.index(model.view),
        )
        self.frame(f"Graph{place} · {view}{colours}", f"{counts}  {{graph.view}} view", choices)
