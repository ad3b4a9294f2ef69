"""The graph pane: one scope in four views, with the cursor kept across them.

What the cursor is on goes out as :class:`GraphPane.Selected`; Enter on a node posts
:class:`GraphPane.Opened`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Size
from textual.message import Message

from dld_tui.commands.command import table
from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.graph.folding import Fold
from dld_tui.widgets.graph.boxes import Around, CanvasBoxes, Looks, around
from dld_tui.widgets.graph.canvas import GraphCanvas
from dld_tui.widgets.graph.colours import Colours
from dld_tui.widgets.graph.links import LinkCursor
from dld_tui.widgets.graph.places import GraphPlace, place_of
from dld_tui.widgets.graph.row_list import Filling, GraphList, next_match
from dld_tui.widgets.graph.state import GraphModel, GraphNotes, GraphView, ViewedGraph
from dld_tui.widgets.graph.title import show_title, subtitle
from dld_tui.widgets.lists.line_view import LineView, MarksChanged
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.command_dispatch import Commands, hint
from dld_tui.widgets.shell.frame import CHOICE, Framed

if TYPE_CHECKING:
    from dld_tui.core.model.document import Node, Scope
    from dld_tui.widgets.parameters.terminals import Terminal


_CYCLE = (GraphView.FOLDED, GraphView.RAIL, GraphView.CANVAS)
_DRAWN = (GraphView.CANVAS, GraphView.FOCUS)
"""The views that are boxes."""


class GraphPane(Framed, Commands, Vertical):
    """The views, rows and boxes, and the model that they show; empty until :meth:`show`."""

    SCOPE = "graph"
    COMMAND_TABLE = (
        *table(
            "graph",
            ("graph.view", "next_view", "v", "graph", "view",
             "Switch between overview, rails, boxes and focus view.",
             "overview, rails, boxes, layout of the graph, switch view"),
            ("graph.path", "show_path", "", "graph", "paths between",
             "Show the nodes between two marked nodes, or between mark and cursor, as boxes.",
             "ways between"),
            ("graph.fold", "toggle_fold", "z", "graph", "fold",
             "Fold or unfold a repeated block or name scope."),
            ("graph.overlay", "colours.next", "percent_sign", "graph", "overlay",
             "Colour by operator, precision, findings, weights, FLOPs, or time and errors of "
             "other tabs.",
             "heat, heatmap, heat map, colour, color, hot nodes"),
            ("graph.zoom_in", "boxes.zoom_in", "plus,equals_sign", "graph", "zoom in",
             "Show more detail in each box.", "zoom, magnify"),
            ("graph.zoom_out", "boxes.zoom_out", "minus", "graph", "zoom out",
             "Show less detail in each box."),
            ("graph.link", "links.next", "semicolon", "graph", "to link",
             "Select a link of the node, or the next one, for connect, insert and delete."),
            ("graph.arrange", "arrange", "", "graph", "arrange again",
             "Return all boxes to the automatic layout."),
            ("graph.grid", "boxes.toggle_grid", "number_sign", "graph", "grid",
             "Show or hide a grid of dots between the boxes."),
            footer="graph.view", menus={"graph.link": "node input boundary"},
        ),
        *table(
            "graph",
            ("graph.zoom_reset", "boxes.zoom_to_fit", "0", "graph", "zoom to fit",
             "Show as much detail as fits on the screen."),
            ("graph.more_hops", "change_hops 1", "right_parenthesis", "graph", "more around",
             "Extend the focus view by one link."),
            ("graph.fewer_hops", "change_hops -1", "left_parenthesis", "graph", "less around",
             "Shrink the focus view by one link."),
            ("graph.move_left", "move_box -4", "shift+left", "graph", "move left",
             "Move the box left; the model's metadata stores the position."),
            ("graph.move_right", "move_box 4", "shift+right", "graph", "move right",
             "Move the box right; the model's metadata stores the position."),
            ("graph.move_up", "move_box 0 -1", "shift+up", "graph", "move up",
             "Move the box a row up; the model's metadata stores the position."),
            ("graph.move_down", "move_box 0 1", "shift+down", "graph", "move down",
             "Move the box a row down; the model's metadata stores the position."),
            ("graph.leave", "leave", "escape", "", "leave",
             "Leave the link or the focus view; clear marks."),
            palette=False,
        ),
    )  # fmt: skip

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
        """The box of a node is to be so many cells further right, and rows further down."""

        node: Node
        cells: int
        rows: int

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
        self.colours = Colours(self)
        self.links = LinkCursor(self)
        self.model: ViewedGraph | None = None
        self.notes: GraphNotes | None = None
        self.list = GraphList(self.toggle_mark, self.reveal_match)
        self.canvas = GraphCanvas(id="graph-canvas")
        self.boxes = CanvasBoxes(self.canvas, self.list, lambda: self.show_view(self.cursor_vertex))
        for finder in (self.list.finder, self.canvas.finder):
            finder.ask_missing = self._hidden_constants
        self.has_precisions = False
        """Whether to leave room for the precision that layers are set to."""
        self.is_outdated = False
        """Whether what it shows is no more, and another graph is being arranged."""
        self._findings: Sequence[Any] = ()
        self._return: GraphPlace | None = None
        """Where the cursor goes back to when a graph is shown."""
        self._left_from: int | Fold | None = None
        """What it was on then: it stays where it has been moved to since."""
        self._before: GraphView | None = None
        """The view that the focus view goes back to."""
        self._filling = Filling()

    def on_mount(self) -> None:
        """Show the list until there is something to draw, and the grid as it was the last time."""
        self.canvas.display = False
        self.frame.show("Graph")
        self.boxes.recall_grid()

    def compose(self) -> ComposeResult:
        """Lay out the two kinds of views; one is seen at a time."""
        yield self.list
        yield self.canvas

    def on_resize(self) -> None:
        """Fill the pane with rows, or draw the boxes as large as they fit now."""
        if self.list.display and self._fill():
            self.show_view(self.cursor_vertex)
        self.boxes.resized()

    def show(self, model: ViewedGraph) -> None:
        """Show a graph; after an edit of the same scope, in the way the old one was shown."""
        old, item = self.model, self.item
        is_same = old is not None and model.is_same(old)
        if old is not None and is_same:
            model.carry_over(old)
        self.model, self.is_outdated = model, False
        self._take_notes(model)
        if not is_same:
            self._filling = Filling()
            self._fill()
        vertex = None
        if old is not None and is_same and item is not None:
            inside = item.vertices if isinstance(item, Fold) else (item,)
            subjects = [old.subject(at) for at in inside]
            vertex = next((v for v in map(model.vertex_now, subjects) if v is not None), None)
            if vertex is None and not isinstance(item, Fold):
                vertex = model.same_end(old, item)
        fold = model.same_fold(old, item) if is_same and old and isinstance(item, Fold) else None
        if fold is not None and model.view is not GraphView.FOCUS:
            self.show_fold(fold)
        else:
            self.show_view(vertex if vertex is not None else self.first_vertex())
        self._go_back()
        self._return = None

    def _fill(self) -> bool:
        """Open folds until the rows fill the pane; return whether any was opened."""
        room = self.list.scrollable_content_region.height
        return self.model is not None and self._filling.fill(self.model, room)

    def _take_notes(self, model: ViewedGraph) -> None:
        """Keep the notes of the old graph for a new one."""
        self.notes = GraphNotes(model)
        self.notes.has_precisions = self.has_precisions
        self.notes.set_findings(self._findings)
        # Vertices of another graph have other numbers.
        self.list.marks = {mark for mark in self.list.marks if not isinstance(mark, int)}
        self.notes.set_marks(self.list.marks)
        self.colours.find()

    def set_findings(self, findings: Sequence[Any]) -> None:
        """Show what is wrong, in all views."""
        had_findings = self.notes is not None and self.notes.has_findings
        self._findings = findings
        if self.notes is not None and (findings or had_findings):
            self.notes.set_findings(findings)
            self.show_notes()

    def set_marked(self, nodes: Iterable[Hashable]) -> None:
        """Mark nodes and no others; marked inputs and outputs stay marked."""
        others = {mark for mark in self.list.marks if isinstance(mark, int)}
        self.list.set_marks({*others, *nodes})

    def toggle_mark(self) -> None:
        """Mark or unmark the vertex under the cursor, or every node of the fold."""
        model, item = self.model, self.item
        if model is None or item is None:
            return
        vertices = item.vertices if isinstance(item, Fold) else (item,)
        nodes = [(model.node_at(vertex), vertex) for vertex in vertices]
        keys: set[Hashable] = {vertex if node is None else node for node, vertex in nodes}
        marks = self.list.marks
        self.list.set_marks(marks - keys if keys <= marks else marks | keys)

    def show_notes(self) -> None:
        """Draw marks, findings and colours again, without arranging anything."""
        notes = self.notes
        if notes is None:
            return
        notes.set_marks(self.list.marks)
        self.list.invalidate()
        self.boxes.show_notes()
        self.show_title()

    @property
    def cursor_vertex(self) -> int:
        """The vertex under the cursor; of a fold, the first one in it."""
        vertex, fold = self.vertex, self.fold
        if vertex is not None:
            return vertex
        return fold.vertices[0] if fold is not None else self.first_vertex()

    def first_vertex(self) -> int:
        """Return the vertex at the top."""
        return self.model.overview.rails.order[0] if self.model and len(self.model.rows) else 0

    @property
    def place(self) -> GraphPlace | None:
        """Where the cursor is, and what is marked besides nodes."""
        model, item = self.model, self.item
        if model is None or item is None:
            return None
        return place_of(model, item, self.links.link, self.list.marks)

    def return_to(self, place: GraphPlace) -> None:
        """Put the cursor back, once the graph is drawn again that it was in."""
        self._return, self._left_from = place, self.item
        if not self.is_outdated:
            self._go_back()

    def _go_back(self) -> None:
        place, model = self._return, self.model
        if place is None or model is None or self.item != self._left_from:
            return
        item = place.item(model)
        if item is None:
            return
        if isinstance(item, Fold):
            if self.fold is not item:
                self.show_fold(item)
        elif self.vertex != item:
            model.overview.reveal(item)
            self.show_view(item)
        nodes = {mark for mark in self.list.marks if not isinstance(mark, int)}
        self.list.set_marks({*nodes, *place.marked(model)})
        self.links.go_back(place.link, self.cursor_vertex)

    def reveal(self, node: Hashable) -> None:
        """Put the cursor on a node or layer of this graph, without a message."""
        model = self.model
        if model is None or node == self.subject_at_cursor:
            return
        vertex = model.vertex_now(node) if model.holds(node) else None
        if vertex is None:
            return
        is_drawn = self.canvas.display and self.canvas.drawing is not None
        if model.view is GraphView.FOCUS or (model.view is GraphView.CANVAS and is_drawn):
            self._to_vertex(vertex)
            return
        rows = len(model.rows)
        model.overview.reveal(vertex)
        with self.prevent(LineView.CursorMoved):
            if len(model.rows) != rows:
                self.show_view(vertex)
            else:
                self._to_vertex(vertex)

    def reveal_match(self, pattern: str) -> bool:
        """Open the folds around the next vertex whose operator or name has a pattern.

        Returns:
            False where there is none, or nothing is folded in this view.
        """
        model = self.model
        vertex = None if model is None else next_match(model, self.list.cursor, pattern)
        if model is None or vertex is None:
            return False
        model.overview.reveal(vertex)
        self.show_view(vertex)
        return True

    @property
    def has_keys(self) -> bool:
        """Whether keys go to one of its views, or to a search in one."""
        finders = (self.list.finder, self.canvas.finder)
        return self.has_focus_within or any(finder.has_keys for finder in finders)

    @property
    def item(self) -> int | Fold | None:
        """The vertex or fold under the cursor."""
        model = self.model
        if model is None or self.boxes.wanted is not None:
            return self.boxes.wanted
        if self.canvas.display:
            return self.boxes.at_cursor
        if self.list.cursor >= len(model.rows):
            return None
        row = model.rows[self.list.cursor]
        return row.fold if row.fold is not None else model.overview.rails.order[row.start]

    @property
    def vertex(self) -> int | None:
        """The vertex under the cursor; None for a fold."""
        item = self.item
        return item if isinstance(item, int) else None

    @property
    def fold(self) -> Fold | None:
        """The fold under the cursor."""
        item = self.item
        return item if isinstance(item, Fold) else None

    @property
    def subject_at_cursor(self) -> Hashable | None:
        """The node or layer under the cursor."""
        vertex = self.vertex
        return None if vertex is None or self.model is None else self.model.node_at(vertex)

    def focus_view(self) -> None:
        """Give the keys to the view that is seen."""
        (self.canvas if self.canvas.display else self.list).focus()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Pass the keys on where the view was changed after it was asked to take them."""
        if event.widget in (self.list, self.canvas) and not event.widget.display:
            self.focus_view()

    def show_view(self, vertex: int) -> None:
        """Show the present view with the cursor on a vertex."""
        model = self.model
        if model is None:
            return
        self.links.forget()
        looks = self._looks(model)
        if model.view in _DRAWN:
            self.boxes.draw(looks, vertex)
        if model.view not in _DRAWN:  # or there were too many boxes
            self.boxes.give_up()
            self._show_rows(looks, vertex)
        elif self.boxes.wanted is not None and not self.canvas.display:
            self._show_rows(looks, vertex)  # they may be others now
        self.show_title()

    def _looks(self, model: ViewedGraph) -> Looks:
        assert self.notes is not None  # made with the model
        return Looks(model, self.notes, self.colours.overlay)

    def show_fold(self, fold: Fold) -> None:
        """Show the view again with the cursor on a fold, or in it when it is open on the canvas."""
        model = self.model
        assert model is not None  # the callers have looked
        self.show_view(fold.vertices[0])
        if not self.canvas.display:
            self.list.cursor = next((n for n, r in enumerate(model.rows) if r.fold is fold), 0)
        elif not model.overview.is_open(fold) and self.boxes.wanted is None:
            self.boxes.move_to(fold)

    def _show_rows(self, looks: Looks, vertex: int) -> None:
        from dld_tui.widgets.graph.rows import GraphRows

        model = looks.model
        had_focus = self.canvas.has_focus
        self.canvas.display, self.list.display = False, True
        self.list.set_lines(GraphRows(model, looks.notes, looks.overlay), keep=False)
        if model.rows:
            self.list.cursor = model.overview.place(vertex)
        if had_focus:
            self.list.focus()

    def around(self, node: Hashable, room: Size) -> Around | None:
        """Return a drawing of a node and its nearest, as large as it fits; None where it is not.

        Args:
            node: A node or layer.
            room: Cells there are.
        """
        return None if self.model is None else around(self._looks(self.model), node, room)

    def _to_vertex(self, vertex: int) -> None:
        model = self.model
        if model is None:
            return
        if model.view is GraphView.FOCUS:
            self.show_view(vertex)
        elif self.boxes.wanted is not None:
            self.boxes.wanted = vertex
        elif self.canvas.display:
            self.boxes.move_to(vertex)
        else:
            self.list.cursor = model.overview.place(vertex)

    def _hidden_constants(self) -> str:
        model = self.model
        if model is None or model.count == model.total or model.view is GraphView.FOCUS:
            return ""
        return hint("{view.constants} shows constants, too")

    def show_title(self) -> None:
        """Say in the border what is shown, and which link the cursor is on."""
        model = self.model
        if model is not None:
            self.border_subtitle = Content(glyphs.shown(subtitle(model, self.links.link)))
            overlay, marked = self.colours.overlay, len(self.list.marks)
            show_title(self.frame, model, overlay, marked, with_rows=self.list.display)

    @on(LineView.CursorMoved)
    def row_reached(self, event: LineView.CursorMoved) -> None:
        """Post what the cursor reached, even if it has moved on since."""
        event.stop()
        self.links.leave()
        self.say_selected(event.key)

    @on(GraphCanvas.CursorMoved)
    def box_reached(self, event: GraphCanvas.CursorMoved) -> None:
        """Post what the cursor reached, even if it has moved on since.

        After an edit the boxes are others: then it is what the cursor is on now.
        """
        event.stop()
        model = self.model
        if model is None:
            return
        if event.drawing is not self.canvas.drawing or not self.boxes.items:
            self.say_selected(self.subject_at_cursor)
            return
        self.links.leave()
        item = self.boxes.items[event.vertex]
        self.say_selected(model.node_at(item) if isinstance(item, int) else None)

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
        from dld_tui.core.model.document import Node

        subject = self.subject_at_cursor
        return subject if isinstance(subject, Node) else None

    @property
    def boundary(self) -> Terminal | None:
        """The input or output of the graph that the cursor is on."""
        vertex, model = self.vertex, self.model
        if self.links.link is not None or vertex is None or not isinstance(model, GraphModel):
            return None
        return model.boundary(vertex)

    def say_marked(self, marks: Iterable[Hashable]) -> None:
        """Say which nodes are marked now."""
        from dld_tui.core.model.document import Node

        self.post_message(self.Marked(frozenset(m for m in marks if isinstance(m, Node))))

    def say_selected(self, subject: Hashable | None) -> None:
        """Post that the cursor has reached a node, or something else."""
        from dld_tui.core.model.document import Node

        if isinstance(self.model, GraphModel):
            node = subject if isinstance(subject, Node) else None
            self.post_message(self.Selected(node, self.model.scope))

    def say_opened(self) -> None:
        """Post that the node under the cursor was opened."""
        node = self.node
        if node is not None:
            self.post_message(self.Opened(node))

    @on(LineView.Activated)
    def row_activated(self, event: LineView.Activated) -> None:
        """Unfold a block; follow a link; show what is near a node."""
        event.stop()
        if self.links.link is not None:
            self.links.follow("target")
        elif self.fold is not None:
            self.action_toggle_fold()
        else:
            self.show_around()

    @on(GraphCanvas.Activated)
    def box_activated(self, event: GraphCanvas.Activated) -> None:
        """Unfold a block; open a node."""
        event.stop()
        if self.fold is not None:
            self.action_toggle_fold()
        else:
            self.say_opened()

    @on(GraphCanvas.Dragged)
    def box_dragged(self, event: GraphCanvas.Dragged) -> None:
        """Move the box to where it was dragged."""
        event.stop()
        steps = f"{event.cells} {event.rows}"
        if self.check_action("move_box", (steps,)):
            self.action_move_box(steps)
        else:
            self.notify("Only boxes of nodes can be moved", timeout=3)

    @on(LineView.MenuAsked)
    @on(GraphCanvas.MenuAsked)
    def menu_asked(self, event: LineView.MenuAsked | GraphCanvas.MenuAsked) -> None:
        """Ask for the menu of what is under the cursor."""
        event.stop()
        self.post_message(self.MenuAsked())

    @property
    def is_behind(self) -> bool:
        """Whether the picture is still to come: keys wait for it for a moment."""
        return self.model is None or self.is_outdated

    def conditions(self) -> set[str]:
        return {"graph"} if self.model is not None and self.model.rows else set()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave Esc to others while there is nothing to leave."""
        if action == "leave":
            return (
                self.links.link is not None
                or bool(self.list.marks)
                or (self.model is not None and self.model.view is GraphView.FOCUS)
            )
        if action == "move_box" and " " in str(parameters[0]) and self.node is None:
            return False  # up and down move an input or output in its list
        return super().check_action(action, parameters)

    def action_next_view(self) -> None:
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

    def show_around(self) -> None:
        """Show the neighbourhood of the node at the cursor as boxes."""
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

    def action_leave(self) -> None:
        """Go back from a link to its node, or from the focus view; else clear the marks."""
        model = self.model
        if self.links.link is not None:
            self.links.leave()
        elif model is not None and model.view is GraphView.FOCUS:
            vertex = self.cursor_vertex
            model.view = self._before or GraphView.FOLDED
            model.overview.reveal(vertex)
            self.show_view(vertex)
        else:
            self.list.set_marks(set())

    @on(GraphCanvas.LinkKey)
    def link_key(self, event: GraphCanvas.LinkKey) -> None:
        """Go to another link of the node, or to an end of this one."""
        event.stop()
        if event.end:
            self.links.follow(event.end)
        else:
            self.links.step(event.step)

    def action_move_box(self, steps: str) -> None:
        node = self.node
        cells, _, rows = steps.partition(" ")
        if self.model is None or self.model.view is not GraphView.CANVAS or node is None:
            self.notify(
                hint("Nodes can be moved on the canvas only; {graph.view} switches to it"),
                timeout=3,
            )
        else:
            self.post_message(self.MoveAsked(node, int(cells), int(rows or 0)))

    def action_arrange(self) -> None:
        if isinstance(self.model, GraphModel):
            self.post_message(self.ArrangeAsked(self.model.scope))

    def action_change_hops(self, change: str) -> None:
        model = self.model
        if model is not None and model.view is GraphView.FOCUS and model.other_end is None:
            model.hops = max(1, min(model.hops + int(change), 9))
            self.show_view(self.cursor_vertex)
