"""Where the cursor of a graph pane is, so that it can go back there in another drawing."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.graph.folding import Fold
from dld_tui.core.model.graph.layout import Link
from dld_tui.widgets.graph.state import GraphView, ViewedGraph


@dataclass(frozen=True)
class GraphPlace:
    """Where the cursor of a graph was; what it was on may be drawn again later."""

    ends: tuple[Hashable, ...]
    """What it was on; of a fold the first and the last that it holds."""
    link: Link | None
    marks: frozenset[Hashable]
    """Marked inputs and outputs."""

    def item(self, model: ViewedGraph) -> int | Fold | None:
        """Return the vertex or fold of another drawing that the cursor was on; None without it."""
        vertices = [model.vertex_now(subject) for subject in self.ends]
        if None in vertices:
            return None
        if len(vertices) > 1 and model.view is not GraphView.FOCUS:
            for row in model.rows:
                fold = row.fold
                if fold is not None and [fold.vertices[0], fold.vertices[-1]] == vertices:
                    return fold
        return vertices[0]

    def marked(self, model: ViewedGraph) -> set[int]:
        """Return the vertices of another drawing that were marked, besides nodes."""
        return {at for at in map(model.vertex_now, self.marks) if at is not None}


def place_of(
    model: ViewedGraph, item: int | Fold, link: Link | None, marks: Iterable[Hashable]
) -> GraphPlace:
    """Return the place of a cursor on a vertex or fold, and on a link of it or none."""
    ends = (item.vertices[0], item.vertices[-1]) if isinstance(item, Fold) else (item,)
    terminals = frozenset(model.subject(mark) for mark in marks if isinstance(mark, int))
    return GraphPlace(tuple(map(model.subject, ends)), link, terminals)
