"""What the graph pane shows: one scope, its folds, and which of the views it is in."""

from __future__ import annotations

from enum import Enum

from dld_tui.core.document import Node, Scope
from dld_tui.core.graph.build import ScopeGraph, graph_of
from dld_tui.core.graph.focus import Part, between, neighbourhood, part_of
from dld_tui.core.graph.folds import Fold
from dld_tui.core.graph.overview import Overview, Row
from dld_tui.core.graph.weights import Weights
from dld_tui.core.text import visible

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
        self.weights: Weights | None = None
        """The bytes of weights that are used, once :meth:`weigh` was called."""
        self._entered_rail_at: int | None = None
        """Where the cursor was when the rail view was entered."""

    # --- what vertices stand for ----------------------------------------------------------------

    def subject(self, vertex: int) -> Node | str:
        """Return the node, or the name of the value, that a vertex stands for."""
        return self.drawn.subjects[vertex]

    def span(self, box: int | Fold) -> tuple[int, int]:
        """Return the rows, of the order of all vertices, of a vertex or fold."""
        if isinstance(box, Fold):
            return box.start, box.end
        row = self.overview.rails.rows[box]
        return row, row + 1

    def vertex_now(self, subject: Node | str) -> int | None:
        """Return the vertex of what a vertex of an older graph of the scope stood for."""
        return self.drawn.vertex(subject) if isinstance(subject, str) else self.vertex_of(subject)

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

    def weigh(self) -> None:
        """Read how large the weights are."""
        self.weights = Weights(self.drawn, self.overview.rails)

    def prepare(self) -> None:
        """Work out now what the views ask for first; on a thread, for large graphs."""
        self.drawn.vertex("")
        _ = self.overview.flat_rows
        self.overview.seen()

    # --- rows -----------------------------------------------------------------------------------

    @property
    def rows(self) -> list[Row]:
        """The rows of the list views."""
        return self.overview.rows

    def set_view(self, view: GraphView, vertex: int | None = None) -> None:
        """Switch to another view; the rail view has no folds.

        Args:
            view: The view.
            vertex: Where the cursor is: it is not hidden again when it has moved meanwhile.
        """
        if view is GraphView.RAIL and not self.overview.is_flat:
            self._entered_rail_at = vertex
        was_flat = self.overview.is_flat
        self.overview.is_flat = view is GraphView.RAIL
        if was_flat and view is not GraphView.RAIL and vertex not in (None, self._entered_rail_at):
            self.overview.reveal(vertex)
        self.view = view

    def carry_over(self, old: GraphModel) -> None:
        """Take over how another model of the same scope was shown, after an edit."""
        self.view, self.hops = old.view, old.hops
        if old.other_end is not None:
            self.other_end = self.vertex_now(old.subject(old.other_end))
        is_flat, old.overview.is_flat = old.overview.is_flat, False
        opened = {key for row in old.rows if row.is_open and row.fold
                  for key in old._fold_keys(row.fold)}  # fmt: skip
        closed = {key for row in old.rows if row.fold and not row.is_open
                  for key in old._fold_keys(row.fold)}  # fmt: skip
        waiting = list(self.overview.folds)
        while waiting:
            fold = waiting.pop()
            keys = self._fold_keys(fold)
            if any(key in opened and key not in closed for key in keys):
                self.overview.set_open(fold)
                waiting += fold.children
            elif not closed.isdisjoint(keys):
                self.overview.set_open(fold, False)
        self.overview.is_flat = old.overview.is_flat = is_flat

    def same_fold(self, old: GraphModel, fold: Fold) -> Fold | None:
        """Return the fold that is seen where an older graph had one."""
        keys = set(old._fold_keys(fold))
        seen = (row.fold for row in self.rows if row.fold is not None)
        return next((own for own in seen if not keys.isdisjoint(self._fold_keys(own))), None)

    def _fold_keys(self, fold: Fold) -> tuple[object, ...]:
        """Return what a fold is known by when the graph is made again: its ends and its title."""
        kind = fold.count > 1
        ends = (self.subject(fold.vertices[0]), self.subject(fold.vertices[-1]))
        return (kind, ends), (kind, fold.title, ends[0]), (kind, fold.title, "", ends[1])

    def canvas_part(self) -> tuple[Part, list[int | Fold]]:
        """Return what the canvas shows, and what each box of it is: all but heads of open folds."""
        part = part_of(
            self.overview.seen()[0], (n for n, r in enumerate(self.rows) if not r.is_open)
        )
        rows = [self.rows[at] for at in part.vertices]
        order = self.overview.rails.order
        for at, row in enumerate(rows):
            if row.fold is not None:
                times = f"×{row.fold.count} " if row.fold.count > 1 else ""
                part.graph.labels[at] = times + fold_title(row.fold)
                part.graph.names[at] = fold_summary(row.fold, 3)
        return part, [row.fold if row.fold is not None else order[row.start] for row in rows]

    # --- parts ----------------------------------------------------------------------------------

    def focus(self, vertex: int) -> Part:
        """Return what the focus view shows around a vertex."""
        if self.other_end is not None:
            return between(self.drawn.graph, vertex, self.other_end)
        return neighbourhood(self.drawn.graph, vertex, self.hops)


def fold_title(fold: Fold) -> str:
    """Return what a fold is called: its scope, or that it is a block."""
    return visible(fold.title) or "block"


def fold_summary(fold: Fold, most: int = 6) -> str:
    """Return the commonest operators of a fold, e.g. ``Conv×10, Relu×9``."""
    parts = []
    for name, count in fold.operators.most_common(most):
        parts.append(f"{visible(name)}×{count}" if count > 1 else visible(name))
    return ", ".join(parts)
