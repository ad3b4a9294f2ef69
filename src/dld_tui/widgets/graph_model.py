"""What the graph pane shows: one scope, its folds, and which of the views it is in."""

from __future__ import annotations

from enum import Enum
from functools import cached_property

from dld_tui.core.document import Node, Scope
from dld_tui.core.graph.build import ScopeGraph, graph_of
from dld_tui.core.graph.focus import Part, between, neighbourhood, part_of
from dld_tui.core.graph.folds import Fold
from dld_tui.core.graph.overview import Overview, Row
from dld_tui.core.graph.weights import Weights

CANVAS_BOXES = 1_500
"""Boxes of the largest canvas; more are to be folded first."""
OPENS_ON_CANVAS = 24
"""Vertices up to which a graph opens on the canvas."""


class GraphView(Enum):
    """How the graph is drawn; the value is the title."""

    FOLDED = "overview"
    RAIL = "rail"
    CANVAS = "canvas"
    FOCUS = "focus"


class GraphModel:
    """The graph of a scope, what of it is open, and the vertex under the cursor."""

    def __init__(self, scope: Scope, *, constants: bool = False) -> None:
        self.scope = scope
        self.constants = constants
        self.drawn: ScopeGraph = graph_of(scope, constants=constants)
        self.overview = Overview(self.drawn.graph)
        self.view = (
            GraphView.CANVAS if len(self.drawn.graph) <= OPENS_ON_CANVAS else GraphView.FOLDED
        )
        self.hops = 2
        self.other_end: int | None = None
        """The vertex up to which the focus view goes; None for a neighbourhood."""

    # --- what vertices stand for ----------------------------------------------------------------

    def subject(self, vertex: int) -> Node | str:
        """Return the node, or the name of the value, that a vertex stands for."""
        return self.drawn.subjects[vertex]

    def vertex_of(self, node: Node) -> int | None:
        """Return the vertex of a node, or of the first user of one that is not drawn."""
        seen: set[Node] = set()
        waiting = [node]
        while waiting:
            node = waiting.pop(0)
            found = self.drawn.vertex(node)
            if found is not None:
                return found
            seen.add(node)
            users = (use.node for name in node.outputs if name for use in self.scope.users(name))
            waiting += [user for user in users if user not in seen and user.scope is self.scope]
        return None

    @cached_property
    def weights(self) -> Weights:
        """The bytes of weights that are used."""
        return Weights(self.drawn, self.overview.rails)

    # --- rows -----------------------------------------------------------------------------------

    @property
    def rows(self) -> list[Row]:
        """The rows of the list views."""
        return self.overview.rows

    def set_view(self, view: GraphView) -> None:
        """Switch to another view; the rail view has every fold open."""
        if view is self.view:
            return
        if view is GraphView.RAIL:
            self.overview.open_all()
        elif self.view is GraphView.RAIL:
            self.overview.close_all()
        self.view = view

    def carry_over(self, old: GraphModel) -> None:
        """Take over how another model of the same scope was shown, after an edit."""
        self.view, self.hops = old.view, old.hops
        if self.view is GraphView.RAIL:
            self.overview.open_all()
            return
        opened = {old.fold_key(row.fold) for row in old.rows if row.is_open and row.fold}
        closed = {old.fold_key(row.fold) for row in old.rows if row.fold and not row.is_open}
        waiting = list(self.overview.folds)
        while waiting:
            fold = waiting.pop()
            key = self.fold_key(fold)
            if key in opened:
                self.overview.set_open(fold)
                waiting += fold.children
            elif key in closed:
                self.overview.set_open(fold, False)

    def fold_key(self, fold: Fold) -> object:
        """Return what a fold is known by when the graph is made again."""
        return (fold.title, fold.count, self.subject(fold.vertices[0]))

    def canvas_part(self) -> tuple[Part, list[int | Fold]]:
        """Return what the canvas shows, and what each box of it is: all but heads of open folds."""
        part = part_of(
            self.overview.seen()[0], (n for n, r in enumerate(self.rows) if not r.is_open)
        )
        rows = [self.rows[at] for at in part.vertices]
        order = self.overview.rails.order
        return part, [row.fold if row.fold is not None else order[row.start] for row in rows]

    # --- parts ----------------------------------------------------------------------------------

    def focus(self, vertex: int) -> Part:
        """Return what the focus view shows around a vertex."""
        if self.other_end is not None:
            return between(self.drawn.graph, vertex, self.other_end)
        return neighbourhood(self.drawn.graph, vertex, self.hops)
