"""The rows of a graph pane, in its overview and its rail view, and a search in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.binding import BindingType

from dld_tui.core.model.graph.folding import Fold
from dld_tui.widgets.graph.state import GraphView, ViewedGraph
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.search import LineSearch
from dld_tui.widgets.lists.styled import compiled
from dld_tui.widgets.shell.command_dispatch import shown_too

_FILLED = 5_000
"""Vertices of the largest graph whose folds are opened between two key presses."""


class GraphSearch(LineSearch):
    """A search that looks into what is folded, too."""

    def __init__(self, view: GraphList) -> None:
        super().__init__(view)
        self.reveal_match = view.reveal_match

    def end(self, index: int | None) -> None:
        """Go to the row that was found; else look into what is folded."""
        if index is not None or not self.reveal_match(self.pattern):
            super().end(index)


class GraphList(LineView):
    """The rows of the overview and the rail view.

    Args:
        toggle_mark: Marks or unmarks what the cursor is on.
        reveal_match: Goes to a match of a pattern in what is folded; False without one.
    """

    HELP = (
        "The graph as rows; each vertical line is a live tensor. {graph.fold} or {list.activate} "
        "unfolds a block, {graph.view} shows all nodes, then boxes; {go.around} shows the "
        "neighbourhood of the cursor as boxes. {graph.overlay} colours by precision, findings, "
        "weights, time or errors."
    )
    BINDINGS: ClassVar[list[BindingType]] = shown_too("list.activate")

    def __init__(
        self, toggle_mark: Callable[[], None], reveal_match: Callable[[str], bool]
    ) -> None:
        super().__init__(empty="The graph is being arranged", id="graph-list")
        self.toggle_mark = toggle_mark
        self.reveal_match = reveal_match
        self.finder = GraphSearch(self)

    def mark(self) -> None:
        """Mark the row, or every node of the fold, and move down."""
        self.toggle_mark()
        self.cursor += 1


class Filling:
    """Opens folds until rows fill a pane; those that a user opened or closed stay as they are."""

    def __init__(self) -> None:
        self._opened: frozenset[Fold] | None = None
        """The folds that were opened by it; None before."""

    def fill(self, model: ViewedGraph, room: int) -> bool:
        """Open folds; return whether any was opened.

        Args:
            model: The graph.
            room: Rows there are.
        """
        before = model.overview.opened
        if not room or model.view is not GraphView.FOLDED or len(model.graph) > _FILLED:
            return False
        if self._opened not in (None, before):
            return False
        model.overview.fill(room)
        self._opened = model.overview.opened
        return self._opened != before


def next_match(model: ViewedGraph, cursor: int, pattern: str) -> int | None:
    """Return the next vertex whose operator or name has a pattern, folded or not.

    Args:
        model: The graph.
        cursor: The row to begin at.
        pattern: The pattern of the search.

    Returns:
        None where there is none, or the view folds nothing.
    """
    if model.view is not GraphView.FOLDED or not model.rows:
        return None
    graph, order = model.graph, model.overview.rails.order
    is_match = compiled(pattern).search
    begin = model.rows[min(cursor, len(model.rows) - 1)].start
    for row in (*range(begin, len(order)), *range(begin)):
        vertex: int = order[row]
        if is_match(f"{graph.labels[vertex]}  {graph.names[vertex]}"):
            return vertex
    return None
