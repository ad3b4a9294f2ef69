"""The graph pane: one scope in four views, with the cursor kept across them.

What the cursor is on goes out as :class:`GraphPane.Selected`; Enter on a node posts
:class:`GraphPane.Opened`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.binding import BindingType
from textual.message import Message

from dld_tui.core.graph.folding import Fold
from dld_tui.core.graph.links import links_at
from dld_tui.widgets.graph.canvas import GraphCanvas
from dld_tui.widgets.graph.drawing import ZOOMS
from dld_tui.widgets.graph.model import GraphModel, GraphView
from dld_tui.widgets.graph.views import GraphViews
from dld_tui.widgets.hints import hint
from dld_tui.widgets.lists.line_view import LineView, MarksChanged
from dld_tui.widgets.shell.commands import Commands, bindings_for
from dld_tui.widgets.shell.frame import CHOICE
from dld_tui.widgets.shell.host import host

if TYPE_CHECKING:
    from dld_tui.core.document import Node, Scope
    from dld_tui.widgets.parameters.terminals import Terminal


_STATE = ("layouts", "graph")
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

    class LinkReached(Message):
        """The cursor is on another link, or on none any more."""

    class MenuAsked(Message):
        """A right click."""

    @dataclass
    class MoveAsked(Message):
        """The box of a node is to be so many cells further right."""

        node: Node
        cells: int

    @dataclass
    class ArrangeAsked(Message):
        """All boxes of a scope are to be where they would be arranged."""

        scope: Scope

    @dataclass
    class Marked(Message):
        """Other nodes are marked now."""

        nodes: frozenset[Node]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._before: GraphView | None = None
        """The view that the focus view goes back to."""

    def on_mount(self) -> None:
        """Show the grid where it was shown the last time."""
        self.canvas.grid = host(self).state.get(*_STATE).get("grid") is True

    # --- messages of the views ------------------------------------------------------------------

    @on(LineView.CursorMoved)
    def row_reached(self, event: LineView.CursorMoved) -> None:
        """Say what the cursor has reached, also when it has left that since."""
        event.stop()
        self._leave_link()
        self.say_selected(event.key)

    @on(GraphCanvas.CursorMoved)
    def box_reached(self, event: GraphCanvas.CursorMoved) -> None:
        """Say what the cursor has reached, also when it has left that since."""
        event.stop()
        self._leave_link()
        box = self.boxes[event.vertex] if event.vertex < len(self.boxes) else None
        if self.model is not None:
            self.say_selected(self.model.node_at(box) if isinstance(box, int) else None)

    @on(LineView.MarksChanged)
    def marks_changed(self, event: MarksChanged) -> None:
        """Show the marks in the view that is seen."""
        event.stop()
        self.show_notes()
        # A message of the list that was caused here would not get any further than here.
        self.say_marked(event.marks)

    @on(GraphCanvas.MarkAsked)
    def mark_asked(self, event: GraphCanvas.MarkAsked) -> None:
        """Mark the box under the cursor."""
        event.stop()
        self.toggle_mark()

    # What is said of the cursor and the marks; the pane of an engine says it in its own words.

    @property
    def node(self) -> Node | None:
        """The node under the cursor."""
        from dld_tui.core.document import Node

        found = self.subject_at_cursor
        return found if isinstance(found, Node) else None

    @property
    def terminal(self) -> Terminal | None:
        """The end of the link that the cursor is on."""
        if self.link is None or not isinstance(self.model, GraphModel):
            return None
        return self.model.terminal(self.link)

    def say_marked(self, marks: Iterable[Hashable]) -> None:
        """Say which nodes are marked now."""
        from dld_tui.core.document import Node

        self.post_message(self.Marked(frozenset(m for m in marks if isinstance(m, Node))))

    def say_selected(self, subject: Hashable | None) -> None:
        """Say that the cursor has reached a node, or something else."""
        from dld_tui.core.document import Node

        if isinstance(self.model, GraphModel):
            node = subject if isinstance(subject, Node) else None
            self.post_message(self.Selected(node, self.model.scope))

    def say_opened(self) -> None:
        """Say that the node under the cursor was opened."""
        node = self.node
        if node is not None:
            self.post_message(self.Opened(node))

    @on(LineView.Activated)
    def row_activated(self, event: LineView.Activated) -> None:
        """Unfold a block; follow a link; show what is near a node."""
        event.stop()
        if self.link is not None:
            self._follow_link("target")
        elif self.fold is not None:
            self.action_toggle_fold()
        else:
            self.action_focus_around()

    @on(GraphCanvas.Activated)
    def box_activated(self, event: GraphCanvas.Activated) -> None:
        """Unfold a block; open a node."""
        event.stop()
        if self.fold is not None:
            self.action_toggle_fold()
        else:
            self.say_opened()

    @on(LineView.MenuAsked)
    @on(GraphCanvas.MenuAsked)
    def menu_asked(self, event: LineView.MenuAsked | GraphCanvas.MenuAsked) -> None:
        """Ask for the menu of what is under the cursor."""
        event.stop()
        self.post_message(self.MenuAsked())

    @property
    def is_behind(self) -> bool:
        """Whether the first picture is still to come: keys wait for it for a moment."""
        return self.model is None

    def facts(self) -> set[str]:
        """Return what holds for its commands."""
        return {"graph"} if self.model is not None and self.model.rows else set()

    # --- actions --------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave Esc to others while there is nothing to leave."""
        if action == "leave":
            return (
                self.link is not None
                or bool(self.list.marks)
                or (self.model is not None and self.model.view is GraphView.FOCUS)
            )
        return super().check_action(action, parameters)

    def action_next_view(self) -> None:
        """Switch to the next view."""
        if self.model is None or not self.model.rows:
            return
        view = self.model.view
        at = _CYCLE.index(view) if view in _CYCLE else -1
        self.switch_view(_CYCLE[(at + 1) % len(_CYCLE)])

    def switch_view(self, view: GraphView) -> None:
        """Switch to a view; the cursor stays."""
        model = self.model
        if model is None or not model.rows or view is model.view:
            return
        vertex = self.cursor_vertex
        if view is GraphView.FOCUS:
            self._focus(None, vertex)
        else:
            model.set_view(view, vertex)
            self.show_view(vertex)

    def on_click(self, event: events.Click) -> None:
        """Switch to the view that was clicked in the border."""
        number = event.style.meta.get(CHOICE)
        if number is not None:
            event.stop()
            self.focus_view()
            self.switch_view(list(GraphView)[number])

    def action_toggle_fold(self) -> None:
        """Open or close the fold at the cursor, or close the one around the cursor's node."""
        model = self.model
        if model is None or model.view is GraphView.FOCUS:
            return
        fold = self.fold or self._fold_around()
        if fold is None:
            return
        if model.view is GraphView.RAIL:
            model.set_view(GraphView.FOLDED, self.vertex)
            model.overview.reveal(fold.vertices[0])
        model.overview.set_open(fold, not model.overview.is_open(fold))
        self.show_fold(fold)
        self.say_selected(self.subject_at_cursor)

    def _fold_around(self) -> Fold | None:
        """Return the innermost open fold that the cursor's vertex is in."""
        model, vertex = self.model, self.vertex
        if model is None or vertex is None:
            return None
        around = model.overview.around(vertex)
        return around[-1] if around else None

    def action_focus_around(self) -> None:
        """Show only what is near the cursor's node."""
        self._focus(None)

    def action_show_path(self) -> None:
        """Show what is between two marked nodes, or the marked one and the cursor's."""
        marks = self.notes.marked_vertices if self.notes is not None else []
        here = self.vertex
        if len(marks) == 2:
            self._focus(marks[1], marks[0])
        elif here is not None and len(others := [mark for mark in marks if mark != here]) == 1:
            self._focus(others[0])
        else:
            self.notify(hint("Mark one or two nodes with {canvas.mark} first"), timeout=4)

    def _focus(self, other_end: int | None, vertex: int | None = None) -> None:
        model = self.model
        vertex = self.vertex if vertex is None else vertex
        if model is None or vertex is None:
            return
        if model.view is not GraphView.FOCUS:
            self._before = model.view
        model.other_end = other_end
        model.view = GraphView.FOCUS
        self.show_view(vertex)
        self.say_selected(self.subject_at_cursor)

    def action_next_overlay(self) -> None:
        """Let the colours say the next thing: precision, findings, weights, time."""
        self.next_overlay()

    def action_leave(self) -> None:
        """Go back from a link to its node, or from the focus view; else clear the marks."""
        model = self.model
        if self.link is not None:
            self._leave_link()
        elif model is not None and model.view is GraphView.FOCUS:
            vertex = self.cursor_vertex
            model.view = self._before or GraphView.FOLDED
            model.overview.reveal(vertex)
            self.show_view(vertex)
        else:
            self.list.set_marks(set())

    # --- links ----------------------------------------------------------------------------------

    def action_link(self) -> None:
        """Put the cursor on the first link of its node, or on the next one."""
        self._step_link(1)

    @on(GraphCanvas.LinkKey)
    def link_key(self, event: GraphCanvas.LinkKey) -> None:
        """Go to another link of the node, or to an end of this one."""
        event.stop()
        if event.end:
            self._follow_link(event.end)
        else:
            self._step_link(event.step)

    def _step_link(self, step: int) -> None:
        model, vertex = self.model, self.vertex
        links = links_at(model.graph, vertex) if model is not None and vertex is not None else []
        if not links:
            self.notify(hint("Links are of nodes: {graph.fold} unfolds a block"), timeout=3)
            return
        at = links.index(self.link) + step if self.link in links else 0
        self.set_link(links[at % len(links)])
        self.post_message(self.LinkReached())

    def _leave_link(self) -> None:
        if self.link is not None:
            self.set_link(None)
            self.post_message(self.LinkReached())

    def _follow_link(self, end: str) -> None:
        """Go to the node at the end of the link."""
        link, model = self.link, self.model
        if link is not None and model is not None:
            vertex = link.source if end == "source" else link.target
            self._leave_link()
            model.overview.reveal(vertex)
            self.show_view(vertex)
            self.say_selected(self.subject_at_cursor)

    def action_move_box(self, cells: str) -> None:
        """Move the cursor's box sideways."""
        node = self.node
        if self.model is None or self.model.view is not GraphView.CANVAS or node is None:
            self.notify(hint("Nodes can be moved on the canvas: {graph.view} shows it"), timeout=3)
        else:
            self.post_message(self.MoveAsked(node, int(cells)))

    def action_arrange(self) -> None:
        """Put all boxes back to where they would be arranged."""
        if isinstance(self.model, GraphModel):
            self.post_message(self.ArrangeAsked(self.model.scope))

    def action_zoom_in(self) -> None:
        """Say more in each box."""
        self._set_zoom(self.zoom + 1)

    def action_zoom_out(self) -> None:
        """Say less in each box."""
        self._set_zoom(self.zoom - 1)

    def action_zoom_reset(self) -> None:
        """Say as much in the boxes as fits."""
        if self.canvas.display:
            self.zoom_is_chosen = False
            self.show_view(self.cursor_vertex)

    def _set_zoom(self, zoom: int) -> None:
        zoom = max(0, min(zoom, ZOOMS - 1))
        if zoom != self.zoom and self.canvas.display:
            self.zoom, self.zoom_is_chosen = zoom, True
            self.show_view(self.cursor_vertex)

    def action_toggle_grid(self) -> None:
        """Show or hide the dots between the boxes."""
        if not self.canvas.display:
            self.notify(hint("The grid is between the boxes: {graph.view} shows them"), timeout=3)
            return
        self.canvas.grid = not self.canvas.grid
        self.canvas.invalidate()
        host(self).state.put(*_STATE, {"grid": self.canvas.grid})

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
            self.show_view(self.cursor_vertex)
