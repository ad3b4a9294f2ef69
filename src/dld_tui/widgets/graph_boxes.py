"""What the boxes of the canvas say of nodes and folds."""

from __future__ import annotations

from collections.abc import Sequence

from dld_tui.core.document import Node
from dld_tui.core.document.positions import position_of
from dld_tui.core.graph.folds import Fold
from dld_tui.core.graph.graph import Graph
from dld_tui.widgets.graph_drawing import Drawing, Says, draw
from dld_tui.widgets.graph_model import GraphModel, GraphView
from dld_tui.widgets.graph_notes import GraphNotes
from dld_tui.widgets.graph_overlays import Overlay
from dld_tui.widgets.line_source import Piece
from dld_tui.widgets.operator_style import operator_style
from dld_tui.widgets.value_types import shown_type


class Boxes:
    """The boxes of one drawing.

    Args:
        model: The graph.
        notes: What is said of its nodes.
        overlay: What the colours say.
        boxes: The vertex of the graph, or the fold, that each box is.
    """

    def __init__(
        self, model: GraphModel, notes: GraphNotes, overlay: Overlay, boxes: Sequence[int | Fold]
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

    def subject(self, at: int) -> Node | str | None:
        """Return what a box stands for: None for a fold."""
        box = self.boxes[at]
        return self.model.subject(box) if isinstance(box, int) else None

    def style(self, at: int) -> str:
        """Return the style of a box: what the overlay says, else its kind of work."""
        tint = self.overlay.style(*self.model.span(self.boxes[at]))
        if tint is not None:
            return tint
        found = self.subject(at)
        if isinstance(found, Node):
            return operator_style(found.op_type, found.domain)
        return "accent" if found is None else "io"

    def type(self, at: int) -> str:
        """Return the type of what a box makes first; empty when it is not known."""
        found = self.subject(at)
        if found is None:
            return ""
        name = found if isinstance(found, str) else next(filter(None, found.outputs), "")
        return shown_type(self.model.scope, name) if name else ""

    def note(self, at: int) -> Piece:
        """Return what is said behind the label: the overlay's text, else the precision set."""
        if self.overlay.has_text:
            return self.overlay.text(*self.model.span(self.boxes[at])), self.style(at)
        found = self.subject(at)
        return self.notes.precision_badge(found) if isinstance(found, Node) else ("", "")

    def shifts(self) -> dict[int, int]:
        """Return how far boxes were moved to the right, on the canvas."""
        found = {}
        if self.model.view is GraphView.CANVAS:
            for at in range(len(self.boxes)):
                node = self.subject(at)
                place = position_of(node) if isinstance(node, Node) else None
                if place is not None:
                    found[at] = place[0]
        return found
