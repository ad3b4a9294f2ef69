"""The views of the graph pane: which one is seen, and what its cursor is on."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical

from dld_tui.core import fmt
from dld_tui.core.document import Node
from dld_tui.core.graph.folds import Fold
from dld_tui.core.graph.graph import Graph, Kind
from dld_tui.core.text import visible
from dld_tui.widgets import glyphs
from dld_tui.widgets.frame import Frame
from dld_tui.widgets.graph_canvas import GraphCanvas
from dld_tui.widgets.graph_drawing import Drawing, draw
from dld_tui.widgets.graph_model import CANVAS_BOXES, GraphModel, GraphView
from dld_tui.widgets.graph_rows import GraphRows
from dld_tui.widgets.line_view import LineView
from dld_tui.widgets.operator_style import operator_style


class GraphList(LineView):
    """The rows of the overview and the rail view."""

    HELP = (
        "The graph as rows: each line is a tensor that is alive. z or Enter unfolds a block, v "
        "shows all nodes, then boxes; t shows what is near the cursor as boxes."
    )


class GraphViews(Frame, Vertical):
    """The two kinds of views, rows and boxes, and the model that they show."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.model: GraphModel | None = None
        self.list = GraphList(empty="The graph is being arranged", id="graph-list")
        self.canvas = GraphCanvas(id="graph-canvas")
        self.zoom = 1
        self.boxes: list[int | Fold] = []
        """What each box of the canvas is: a vertex, or a fold that is closed."""

    def compose(self) -> ComposeResult:
        """Lay out the two kinds of views; one is seen at a time."""
        yield self.list
        yield self.canvas

    def on_mount(self) -> None:
        """Show the list until there is something to draw."""
        self.canvas.display = False
        self.frame("Graph")

    # --- content --------------------------------------------------------------------------------

    def show(self, model: GraphModel) -> None:
        """Show a graph; after an edit of the same scope, in the way the old one was shown."""
        node = self.node
        if self.model is not None and self.model.scope is model.scope:
            model.carry_over(self.model)
        self.model = model
        vertex = model.vertex_of(node) if node is not None and node.scope is model.scope else None
        self.show_view(vertex if vertex is not None else self.first_vertex())

    def first_vertex(self) -> int:
        """Return the vertex at the top."""
        return self.model.overview.rails.order[0] if self.model and len(self.model.rows) else 0

    def reveal(self, node: Node) -> None:
        """Put the cursor on a node, without a message."""
        model = self.model
        if model is None or node is self.node or node.scope is not model.scope:
            return
        vertex = model.vertex_of(node)
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

    @property
    def _is_seen(self) -> bool:
        return self.canvas.display and self.canvas.drawing is not None

    @property
    def _at_cursor(self) -> object:
        """The vertex or fold under the cursor."""
        if not self.canvas.display:
            return self.list.key_at_cursor()
        return self.boxes[self.canvas.cursor] if self.canvas.cursor < len(self.boxes) else None

    @property
    def vertex(self) -> int | None:
        """The vertex under the cursor; None for a fold."""
        found = self._at_cursor if self.model is not None else None
        return found if isinstance(found, int) else None

    @property
    def fold(self) -> Fold | None:
        """The fold under the cursor."""
        found = self._at_cursor if self.model is not None else None
        return found if isinstance(found, Fold) else None

    @property
    def node(self) -> Node | None:
        """The node under the cursor."""
        vertex = self.vertex
        if vertex is None or self.model is None:
            return None
        subject = self.model.subject(vertex)
        return subject if isinstance(subject, Node) else None

    def focus_view(self) -> None:
        """Give the keys to the view that is seen."""
        (self.canvas if self.canvas.display else self.list).focus()

    # --- views ----------------------------------------------------------------------------------

    def show_view(self, vertex: int) -> None:
        """Show the present view with the cursor on a vertex."""
        model = self.model
        if model is None:
            return
        if model.view in (GraphView.CANVAS, GraphView.FOCUS):
            self._show_canvas(vertex)
        else:
            self._show_list(vertex)
        self._say_title()

    def _show_list(self, vertex: int) -> None:
        model = self.model
        assert model is not None  # the callers have looked
        had_focus = self.canvas.has_focus
        self.canvas.display, self.list.display = False, True
        self.list.set_lines(GraphRows(model), keep=False)
        if model.rows:
            self.list.cursor = model.overview.place(vertex)
        if had_focus:
            self.list.focus()

    def _show_canvas(self, vertex: int) -> None:
        model = self.model
        assert model is not None  # the callers have looked
        if model.view is GraphView.FOCUS:
            part = model.focus(vertex)
            self.boxes = [*part.vertices]
            cuts = list(zip(part.cut_above, part.cut_below, strict=True))
        else:
            part, self.boxes = model.canvas_part()
            cuts = []
            if len(part.graph) > CANVAS_BOXES:
                model.set_view(GraphView.FOLDED)
                message = f"{len(part.graph):,} boxes are too many to read: fold some with z"
                self.notify(message, timeout=4)
                self._show_list(vertex)
                return
        graph, cursor = part.graph, self.box_of(vertex)
        drawing = self._drawing(graph, cuts)
        had_focus = self.list.has_focus
        self.list.display, self.canvas.display = False, True
        self.canvas.set_drawing(drawing, cursor)
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

    def _drawing(self, graph: Graph, cuts: list[tuple[int, int]]) -> Drawing:
        model = self.model
        assert model is not None  # the callers have looked

        def subject(at: int) -> Node | str | None:
            box = self.boxes[at]
            return model.subject(box) if isinstance(box, int) else None

        def style_of(at: int) -> str:
            found = subject(at)
            if isinstance(found, Node):
                return operator_style(found.op_type, found.domain)
            return "accent" if graph.kinds[at] == Kind.GROUP else "io"

        def type_of(at: int) -> str:
            found = subject(at)
            name = found if isinstance(found, str) else next(
                (n for n in found.outputs if n), "") if found is not None else ""  # fmt: skip
            known = model.scope.value_type(name) if name else None
            return visible(known.short) if known is not None else ""

        return draw(graph, self.zoom, style_of, type_of, cuts)

    def _to_vertex(self, vertex: int) -> None:
        model = self.model
        if model is None:
            return
        if model.view is GraphView.FOCUS:
            self.show_view(vertex)
        elif self.canvas.display:
            self.canvas.move_to(self.box_of(vertex))
        else:
            self.list.cursor = model.overview.place(vertex)

    def _say_title(self) -> None:
        model = self.model
        if model is None:
            return
        crumb = glyphs.current().crumb
        place = "" if model.scope.kind == "graph" else f" {crumb} {visible(model.scope.title)}"
        count = fmt.plural(sum(isinstance(s, Node) for s in model.drawn.subjects), "node")
        view = model.view.value
        if model.view is GraphView.FOCUS:
            view += " ways" if model.other_end is not None else f" {model.hops}"
        self.frame(f"Graph{place} · {view}", f"{count}  v view")
