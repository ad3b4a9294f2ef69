"""The graph pane: one scope in four views, with the cursor kept across them.

What the cursor is on goes out as :class:`GraphPane.Selected`; Enter on a node posts
:class:`GraphPane.Opened`.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.binding import BindingType
from textual.message import Message

from dld_tui.core.document import Node, Scope
from dld_tui.core.graph.folds import Fold
from dld_tui.widgets.commands import Commands, bindings_for
from dld_tui.widgets.graph_canvas import GraphCanvas
from dld_tui.widgets.graph_drawing import ZOOMS
from dld_tui.widgets.graph_model import GraphView
from dld_tui.widgets.graph_views import GraphViews
from dld_tui.widgets.line_view import LineView

_CYCLE = (GraphView.FOLDED, GraphView.RAIL, GraphView.CANVAS)


class GraphPane(Commands, GraphViews):
    """The pane; empty until :meth:`show` is called."""

    SCOPE = "graph"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("graph")

    @dataclass
    class Selected(Message):
        """The cursor is on a node, or on a fold, input or output of `scope`."""

        node: Node | None
        scope: Scope

    @dataclass
    class Opened(Message):
        """Enter on a node."""

        node: Node

    class MenuAsked(Message):
        """A right click."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._before: GraphView | None = None
        """The view that the focus view goes back to."""

    # --- messages of the views ------------------------------------------------------------------

    @on(LineView.CursorMoved)
    def row_reached(self, event: LineView.CursorMoved) -> None:
        """Say what the cursor is on."""
        event.stop()
        self._say_selected()

    @on(GraphCanvas.CursorMoved)
    def box_reached(self, event: GraphCanvas.CursorMoved) -> None:
        """Say what the cursor is on."""
        event.stop()
        self._say_selected()

    def _say_selected(self) -> None:
        if self.model is not None:
            self.post_message(self.Selected(self.node, self.model.scope))

    @on(LineView.Activated)
    def row_activated(self, event: LineView.Activated) -> None:
        """Unfold a block; show what is near a node."""
        event.stop()
        if self.fold is not None:
            self.action_toggle_fold()
        else:
            self.action_focus_around()

    @on(GraphCanvas.Activated)
    def box_activated(self, event: GraphCanvas.Activated) -> None:
        """Unfold a block; open a node."""
        event.stop()
        node = self.node
        if self.fold is not None:
            self.action_toggle_fold()
        elif node is not None:
            self.post_message(self.Opened(node))

    @on(LineView.MenuAsked)
    @on(GraphCanvas.MenuAsked)
    def menu_asked(self, event: LineView.MenuAsked | GraphCanvas.MenuAsked) -> None:
        """Ask for the menu of what is under the cursor."""
        event.stop()
        self.post_message(self.MenuAsked())

    def facts(self) -> set[str]:
        """Return what holds for its commands."""
        return {"graph"} if self.model is not None and self.model.rows else set()

    # --- actions --------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave Esc to others while there is nothing to leave."""
        if action == "leave":
            return bool(self.list.marks) or (
                self.model is not None and self.model.view is GraphView.FOCUS
            )
        return super().check_action(action, parameters)

    def _vertex_or_first(self) -> int:
        """Return the vertex under the cursor; of a fold, the first one in it."""
        vertex, fold = self.vertex, self.fold
        if vertex is not None:
            return vertex
        return fold.vertices[0] if fold is not None else self.first_vertex()

    def action_next_view(self) -> None:
        """Switch to the next view."""
        if self.model is None or not self.model.rows:
            return
        vertex = self._vertex_or_first()
        view = self.model.view
        at = _CYCLE.index(view) if view in _CYCLE else -1
        self.model.set_view(_CYCLE[(at + 1) % len(_CYCLE)])
        self.show_view(vertex)

    def action_toggle_fold(self) -> None:
        """Open or close the fold at the cursor, or close the one around the cursor's node."""
        model = self.model
        if model is None or model.view is GraphView.FOCUS:
            return
        fold = self.fold or self._fold_around()
        if fold is None:
            return
        model.overview.set_open(fold, not model.overview.is_open(fold))
        if model.view is GraphView.RAIL:
            model.view = GraphView.FOLDED
        self._show_fold(fold)

    def _fold_around(self) -> Fold | None:
        """Return the innermost open fold that the cursor's vertex is in."""
        model, vertex = self.model, self.vertex
        if model is None or vertex is None:
            return None
        row = model.overview.rails.rows[vertex]
        around = [
            seen.fold
            for seen in model.rows
            if seen.fold is not None and seen.is_open and seen.start <= row < seen.end
        ]
        return around[-1] if around else None

    def _show_fold(self, fold: Fold) -> None:
        """Show the view again with the cursor on a fold, or in it when it is open on the canvas."""
        model = self.model
        assert model is not None  # the callers have looked
        self.show_view(fold.vertices[0])
        if not self.canvas.display:
            self.list.cursor = next((n for n, r in enumerate(model.rows) if r.fold is fold), 0)
        elif not model.overview.is_open(fold):
            self.canvas.move_to(self.box_of(fold))
        self._say_selected()

    def action_focus_around(self) -> None:
        """Show only what is near the cursor's node."""
        self._focus(None)

    def action_show_path(self) -> None:
        """Show what is between the cursor's node and the marked one."""
        marks = [mark for mark in self.list.marks if isinstance(mark, int)]
        if len(marks) != 1:
            self.notify("Mark one row with Space in the overview or rail view first", timeout=4)
            return
        self._focus(marks[0])

    def _focus(self, other_end: Hashable) -> None:
        model = self.model
        vertex = self.vertex
        if model is None or vertex is None:
            return
        if model.view is not GraphView.FOCUS:
            self._before = model.view
        model.other_end = other_end if isinstance(other_end, int) else None
        model.view = GraphView.FOCUS
        self.show_view(vertex)

    def action_leave(self) -> None:
        """Go back from the focus view; else clear the marks."""
        model = self.model
        if model is not None and model.view is GraphView.FOCUS:
            vertex = self._vertex_or_first()
            model.view = self._before or GraphView.FOLDED
            model.overview.reveal(vertex)
            self.show_view(vertex)
        else:
            self.list.marks.clear()
            self.list.invalidate()

    def action_zoom_in(self) -> None:
        """Say more in each box."""
        self._set_zoom(self.zoom + 1)

    def action_zoom_out(self) -> None:
        """Say less in each box."""
        self._set_zoom(self.zoom - 1)

    def action_zoom_reset(self) -> None:
        """Draw the boxes in their middle size."""
        self._set_zoom(1)

    def _set_zoom(self, zoom: int) -> None:
        zoom = max(0, min(zoom, ZOOMS - 1))
        if zoom != self.zoom and self.canvas.display:
            self.zoom = zoom
            self.show_view(self._vertex_or_first())

    def action_more_hops(self) -> None:
        """Show what is one link further away."""
        self._set_hops(1)

    def action_fewer_hops(self) -> None:
        """Show what is one link nearer."""
        self._set_hops(-1)

    def _set_hops(self, change: int) -> None:
        model = self.model
        if model is not None and model.view is GraphView.FOCUS and model.other_end is None:
            model.hops = max(1, min(model.hops + change, 9))
            self.show_view(self._vertex_or_first())
