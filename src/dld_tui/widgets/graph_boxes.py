"""What the boxes of the canvas say of vertices and folds."""

from __future__ import annotations

from collections.abc import Sequence

from dld_tui.core.graph.folds import Fold
from dld_tui.core.graph.graph import Graph
from dld_tui.widgets.graph_drawing import Drawing, Says, draw
from dld_tui.widgets.graph_notes import GraphNotes
from dld_tui.widgets.graph_overlays import Overlay
from dld_tui.widgets.graph_viewed import GraphView, ViewedGraph
from dld_tui.widgets.line_source import Piece


class Boxes:
    """The boxes of one drawing.

    Args:
        model: The graph.
        notes: What is said of its nodes.
        overlay: What the colours say.
        boxes: The vertex of the graph, or the fold, that each box is.
    """

    def __init__(
        self, model: ViewedGraph, notes: GraphNotes, overlay: Overlay, boxes: Sequence[int | Fold]
    ) -> None:
        self.model = model
        self.notes = notes
        self.overlay = overlay
        self.boxes = boxes

    def drawing(self, graph: Graph, zoom: int, cuts: Sequence[tuple[int, int]]) -> Drawing:
        """Lay out and draw the boxes.

        Args:
            graph: The graph of the boxes.
            zoom: From 0, the smallest.
            cuts: How many links of each box are not drawn, above and below.
        """
        says = Says(self.style, self.type, self.note)
        return draw(graph, zoom, says, cuts, self.shifts())

    def _vertex(self, at: int) -> int | None:
        """Return the vertex of the whole graph that a box is; None for a fold."""
        box = self.boxes[at]
        return box if isinstance(box, int) else None

    def style(self, at: int) -> str:
        """Return the style of a box: what the overlay says, else its kind of work."""
        tint = self.overlay.style(*self.model.span(self.boxes[at]))
        if tint is not None:
            return tint
        vertex = self._vertex(at)
        return "accent" if vertex is None else self.model.style(vertex)

    def type(self, at: int) -> str:
        """Return the type of what a box makes first; empty when it is not known."""
        vertex = self._vertex(at)
        return "" if vertex is None else self.model.type_of(vertex)

    def note(self, at: int) -> Piece:
        """Return what is said behind the label: the overlay's text, else the precision set."""
        if self.overlay.has_text:
            return self.overlay.text(*self.model.span(self.boxes[at])), self.style(at)
        vertex = self._vertex(at)
        return ("", "") if vertex is None else self.model.badge(vertex)

    def shifts(self) -> dict[int, int]:
        """Return how far boxes were moved to the right, on the canvas."""
        if self.model.view is not GraphView.CANVAS:
            return {}
        found = {}
        for at in range(len(self.boxes)):
            vertex = self._vertex(at)
            cells = 0 if vertex is None else self.model.shift(vertex)
            if cells:
                found[at] = cells
        return found
