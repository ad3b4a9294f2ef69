"""A graph as the graph pane shows it: its folds, and which of the views it is in.

A subclass defines what its vertices are: nodes of a model, or layers of an engine.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from enum import Enum
from functools import cached_property
from time import sleep
from typing import TYPE_CHECKING, Any

from dld_tui.core.graph.build import Weights
from dld_tui.core.graph.folding import (
    Arranged,
    Fold,
    Overview,
    Part,
    Row,
    between,
    neighbourhood,
    part_of,
)
from dld_tui.core.graph.graph import Graph, Kind
from dld_tui.core.tables.table import SharedEnds, shared_ends
from dld_tui.core.text import visible
from dld_tui.widgets.lists.line_source import Piece

if TYPE_CHECKING:
    from dld_tui.core.graph.pictures.content import Content


CANVAS_BOXES = 1_500
"""Boxes of the largest canvas; more are to be folded first."""
OPENS_ON_CANVAS = 24
"""Vertices up to which a graph opens on the canvas."""


_MOST_NAMES = 5_000
"""Vertices of the largest graph whose names are compared."""
_NODES = (Kind.NODE, Kind.HOLDER, Kind.CALL)


class GraphView(Enum):
    """How the graph is drawn; the value is the title."""

    FOLDED = "overview"
    RAIL = "rail"
    CANVAS = "canvas"
    FOCUS = "focus"


class ViewedGraph:
    """A graph, what of it is open, and the view that it is in; vertices stand for subjects.

    Args:
        graph: The graph.
        subjects: What each vertex stands for.
        arranged: Its order, rails and folds, where a child process has worked them out.
    """

    noun = "node"
    """What most vertices stand for."""
    memory_name = "weights"
    """The overlay that colours by bytes."""

    def __init__(
        self, graph: Graph, subjects: Sequence[Hashable], arranged: Arranged | None = None
    ) -> None:
        self.graph = graph
        self.subjects = subjects
        self.overview = Overview(graph, arranged)
        self.view = GraphView.CANVAS if len(graph) <= OPENS_ON_CANVAS else GraphView.FOLDED
        self.hops = 2
        self.other_end: int | None = None
        """The vertex up to which the focus view goes; None for a neighbourhood."""
        self.weights: Weights | None = None
        """The bytes of weights that are used, once they are known."""
        self.memory_heat: object = None
        """The overlay of these bytes, which is made once: there may be 50,000."""
        self._entered_rail_at: int | None = None
        """Where the cursor was when the rail view was entered."""

    # --- what vertices stand for ----------------------------------------------------------------

    @property
    def place(self) -> str:
        """Where in a model it is, for the title; empty at the top. Foreign text."""
        return ""

    @property
    def steps(self) -> tuple[str, ...]:
        """Where in a model it is, one step each; nothing at the top. Foreign text."""
        return ()

    def named_type(self, name: str) -> str:
        """Return the type of a tensor that has no label in the graph; empty when not known."""
        return ""

    def content(self, title: str) -> Content:
        """Return all of it as the content of a picture.

        Raises:
            UsageError: It has too many vertices.
        """
        from dld_tui.core.graph.pictures.content import graph_content

        return graph_content(self.graph, title)

    def is_same(self, other: ViewedGraph) -> bool:
        """Return whether another graph is of the same thing, before or after an edit."""
        return other is self

    def holds(self, subject: Hashable) -> bool:
        """Return whether a node or layer belongs to what the graph is of."""
        return True

    @cached_property
    def count(self) -> int:
        """How many nodes or layers are drawn."""
        return sum(map(self.graph.kinds.count, _NODES))

    @property
    def total(self) -> int:
        """How many there are, also of constants that are not drawn."""
        return self.count

    @cached_property
    def name_ends(self) -> SharedEnds:
        """What the names of all nodes or layers share; nothing in a large graph."""
        if len(self.graph) > _MOST_NAMES:
            return SharedEnds()
        named = zip(self.graph.names, self.graph.kinds, strict=True)
        return shared_ends(name for name, kind in named if kind in _NODES)

    @property
    def aliases(self) -> Mapping[str, str]:
        """Short names of long dimensions. Foreign text."""
        return {}

    def subject(self, vertex: int) -> Hashable:
        """Return what a vertex stands for."""
        return self.subjects[vertex]

    def node_at(self, vertex: int) -> Hashable | None:
        """Return the node or layer of a vertex; None for inputs, outputs and outer values."""
        raise NotImplementedError

    def vertex(self, subject: Hashable) -> int | None:
        """Return the vertex of a subject; None when it is not drawn."""
        raise NotImplementedError

    def vertex_now(self, subject: Hashable) -> int | None:
        """Return the vertex of what a vertex of an older graph of the same thing stood for."""
        return self.vertex(subject)

    def style(self, vertex: int) -> str:
        """Return the style class of a vertex: its kind of work."""
        raise NotImplementedError

    def type_of(self, vertex: int) -> str:
        """Return the type of what a vertex makes first; empty when it is not known."""
        raise NotImplementedError

    def work(self, vertex: int) -> str:
        """Return what a vertex does, in at most 24 characters; mostly empty."""
        return ""

    def weight(self, vertex: int) -> str:
        """Return the type of the weight of a vertex; empty without one. Foreign text."""
        return ""

    def port(self, vertex: int, tensor: str) -> str:
        """Return what the operator calls a tensor that it takes; empty when not known."""
        return ""

    def badge(self, vertex: int) -> Piece:
        """Return the precision that is set, at most four cells; empty without one."""
        return "", ""

    def precision(self, vertex: int) -> Piece | None:
        """Return the precision that a vertex computes in; None when it is not known."""
        raise NotImplementedError

    def shift(self, vertex: int) -> int:
        """Return the cells by which a box was moved to the right on the canvas."""
        return 0

    def levels(self, findings: Iterable[Any]) -> Iterable[tuple[str, int]]:
        """Return (level, vertex) of findings; those of nothing that is drawn are left out."""
        raise NotImplementedError

    def row_times(self, times: Mapping[Any, float]) -> list[float]:
        """Return milliseconds by row, of times by subject."""
        raise NotImplementedError

    def memory(self) -> tuple[Sequence[float], Sequence[float]] | None:
        """Return bytes by row, and what each adds to a sum; None when they are not known."""
        return None

    def span(self, box: int | Fold) -> tuple[int, int]:
        """Return the rows, of the order of all vertices, of a vertex or fold."""
        if isinstance(box, Fold):
            return box.start, box.end
        row = self.overview.rails.rows[box]
        return row, row + 1

    def prepare(self) -> None:
        """Work out now what the views ask for first; on a thread, for large graphs."""
        self.vertex("")
        self.overview.seen()

    def complete(self) -> None:
        """Work out now what the other views ask for; on a thread, once the first one is seen."""
        for ask in (lambda: self.graph.inputs, lambda: self.graph.outputs, self.overview.complete):
            ask()
            sleep(0.001)  # this thread holds the interpreter otherwise

    # --- rows -----------------------------------------------------------------------------------

    @property
    def rows(self) -> Sequence[Row]:
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

    def carry_over(self, old: ViewedGraph) -> None:
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

    def same_fold(self, old: ViewedGraph, fold: Fold) -> Fold | None:
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
                times = f"×{row.fold.count:,} " if row.fold.count > 1 else ""
                part.graph.labels[at] = times + fold_title(row.fold)
                part.graph.names[at] = fold_summary(row.fold, 3)
        return part, [row.fold if row.fold is not None else order[row.start] for row in rows]

    # --- parts ----------------------------------------------------------------------------------

    def focus(self, vertex: int) -> Part:
        """Return what the focus view shows around a vertex."""
        if self.other_end is not None:
            return between(self.graph, vertex, self.other_end)
        return neighbourhood(self.graph, vertex, self.hops)


def fold_title(fold: Fold) -> str:
    """Return what a fold is called: its scope, or that it is a block."""
    return visible(fold.title) or "block"


def fold_summary(fold: Fold, most: int = 6) -> str:
    """Return the commonest operators of a fold, e.g. ``Conv×10, Relu×9``."""
    parts = []
    for name, count in fold.operators.most_common(most):
        parts.append(f"{visible(name)}×{count:,}" if count > 1 else visible(name))
    return ", ".join(parts)
