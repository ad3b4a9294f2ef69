"""The graph pane in the workspace: in step with the list of nodes, made again after edits."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from textual.timer import Timer

from dld_tui.commands.command import table
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import CancelledError
from dld_tui.core.model.document.metadata import MOST, position_of
from dld_tui.core.model.document.node import NodeTexts
from dld_tui.core.model.document.transactions import DocumentChange
from dld_tui.core.process.interpreter import collector_paused, freeze
from dld_tui.core.types import JSON
from dld_tui.screens.workspace.activities import Activities
from dld_tui.screens.workspace.controller import Controller, hears
from dld_tui.screens.workspace.history import EditHistory
from dld_tui.screens.workspace.navigation import Navigation
from dld_tui.screens.workspace.opening import AT_ONCE, OpenedModel
from dld_tui.screens.workspace.panes import Panes
from dld_tui.screens.workspace.state import is_alive
from dld_tui.widgets.explorer.pane import Explorer
from dld_tui.widgets.explorer.state import Figures
from dld_tui.widgets.graph.overlays import Overlay, memory_overlay
from dld_tui.widgets.graph.pane import GraphPane
from dld_tui.widgets.graph.state import GraphModel
from dld_tui.widgets.lists.line_view import MarksChanged
from dld_tui.widgets.shell.page import Page, host
from dld_tui.widgets.tasks import on_thread

if TYPE_CHECKING:
    from dld_tui.core.model.cost.nodes import ModelCosts
    from dld_tui.core.model.document import Node, Scope
    from dld_tui.core.report.reports_of_model import Profile
    from dld_tui.screens.workspace.opening import EarlyGraph


_LOOK_S, _LOOKS = 0.1, 20
"""How often to look whether the picture is painted: what is not seen is painted later."""
_AGAIN_S = 0.4
"""A larger one is made again when no edit came for so long."""
_WAITS = 10
"""How often it looks whether the model is still being checked, before it is made all the same."""


@dataclass(eq=False)
class Graphs(Controller):
    """Keeps the graph pane."""

    COMMAND_TABLE = table(
        "workspace",
        ("go.around", "graphs.show_around", "t", "named", "around",
         "Show what is around the node at the cursor in the graph, as boxes.",
         "focus, neighbours, neighbors, around this node, surroundings"),
        ("graph.picture", "graphs.save_picture", "", "", "save picture",
         "Write what the graph pane shows as SVG, PNG, JPEG or text.",
         "export, image, screenshot, png, svg, jpeg, export image, picture of the graph, "
         "diagram, print"),
        common="document", footer="go.around",
    )  # fmt: skip

    panes: Panes
    navigation: Navigation
    history: EditHistory
    activities: Activities

    _graph_scope: Scope | None = None
    """What the graph pane shows, or will when it is arranged."""
    _begun: tuple[GraphModel, Event] | None = None
    """A graph that was arranged before there was a pane for it."""
    _graph_timer: Timer | None = None
    _reports: tuple[Page, ...] = ()
    """The tabs that may know times, when the colours were chosen last."""
    _profile: Profile | None = None
    """The newest profile of the file, of those that lie beside it or were opened before."""
    _costs: tuple[tuple[int, bool], ModelCosts] | None = None
    """The cost of nodes, and the version at which it was computed."""
    _is_other: bool = False
    """Whether what will be shown has nothing of what the graph's cursor was on."""

    def show_around(self) -> None:
        """Show what is around the node at the cursor, as boxes in the graph pane."""
        self.panes.focus("graph")
        if self.panes.graph.model is None:
            self.say("The graph is still loading")
        self.panes.graph.show_around()

    def _quantized(self) -> tuple[Mapping[Node, float], str]:
        """Return around which nodes tensors are quantized in the model, or would be."""
        from dld_tui.core.conversion.quantization_plan import quantized_nodes

        there = quantized_nodes(self.document.main)
        return (there, "") if there else self.model.quantized

    def _flops(self) -> tuple[Mapping[Node, float], str]:
        """Return the operations of the nodes that are shown. May run on a thread."""
        from dld_tui.core.model.cost.nodes import ModelCosts
        from dld_tui.core.model.shapes.size import Polynomial, size_at

        now = (self.model.version, self.model.has_fresh_types)
        if self._costs is None or self._costs[0] != now:
            self._costs = now, ModelCosts(self.document)
        costs = self._costs[1].nodes
        shown = [] if self._graph_scope is None else self._graph_scope.nodes
        counts = [(node, costs[node].flops) for node in shown if node in costs]
        symbolic = any(isinstance(count, Polynomial) for _, count in counts)
        title = ", each dynamic dimension taken as 1" if symbolic else ""
        return {node: float(size_at(count, 1)) for node, count in counts if count}, title

    def _show_figures(self, overlay: Overlay) -> None:
        """Have the list show the figures that the colours of the graph stand for."""
        figures = Figures(overlay.name, overlay.figures, overlay.shown) if overlay.figures else None
        self.panes.explorer.set_figures(figures)

    def begin(self, opened: OpenedModel) -> None:
        """Begin to arrange a large graph while the panes are still being made."""
        scope = opened.document.main
        if len(scope.nodes) > AT_ONCE:
            self._graph_scope = scope
            constants = opened.explorer.show_constants
            nothing: frozenset[Node] = frozenset()
            self._arrange(scope, constants, nothing, opened.texts, opened.early, opened.finish)

    def show_begun(self) -> None:
        """Show the graph that was begun before there was a pane for it, if it is arranged."""
        if self._begun is not None:
            self._show_graph_model(*self._begun)

    def show_graph(self, scope: Scope) -> None:
        """Show the graph of a scope; of a large one, as soon as it is arranged."""
        self._graph_scope = scope
        constants, exceptions = self._constants_shown
        if len(scope.nodes) <= AT_ONCE:
            model = GraphModel(scope, constants=constants, exceptions=exceptions)
            model.weigh()
            self._show_graph_model(model, Event())
            return
        self._arrange(scope, constants, exceptions)

    @property
    def _constants_shown(self) -> tuple[bool, frozenset[Node]]:
        """Whether the explorer shows constants, and which ones it shows or hides for itself."""
        listed = self.model.listing
        return listed.show_constants, frozenset(listed.exceptions)

    def _arrange(
        self,
        scope: Scope,
        constants: bool,
        exceptions: frozenset[Node],
        texts: NodeTexts | None = None,
        early: EarlyGraph | None = None,
        finish: Callable[[], None] = lambda: None,
    ) -> None:
        """Make and show a graph on a thread.

        Args:
            scope: What to draw.
            constants: Whether constants are drawn, too.
            exceptions: Constants that are drawn where the others are not, or the other way round.
            texts: The texts of its nodes, where they have just been read.
            early: It has been begun already.
            finish: Called on the thread once the picture is there.
        """
        from dld_tui.screens.workspace.opening import make_graph

        self.model.is_arranging = True
        self._begun = None

        def task() -> None:
            shown = Event()
            # An edit may change the model while it is read: then the graph is made again after it.
            with suppress(RuntimeError, KeyError, IndexError, CancelledError):
                with collector_paused():
                    model = early.result(self._is_gone) if early is not None else None
                    model = model or make_graph(scope, constants, exceptions, texts, self._is_gone)
                    freeze()  # else each later collection would walk the whole graph
                    self.page.call_later(self._show_graph_model, model, shown)
                    self._wait_for_paint(shown)  # the picture first
                    model.complete()
                    model.weigh()
                    memory_overlay(model)  # keeps it for later
                self.page.call_later(self._graph_weighed, model)
            finish()
            self.page.call_later(self._graph_ended)

        self.page.tasks.start(on_thread(task), "graph", replace=True)

    def _is_gone(self) -> bool:
        return not self.page.is_attached

    def _wait_for_paint(self, shown: Event) -> None:
        """Wait, on a thread, until the picture is on the screen; not for a page that is closed."""
        for _ in range(_LOOKS):
            if shown.wait(_LOOK_S) or not self.page.is_attached:
                return

    def _show_graph_model(self, model: GraphModel, shown: Event) -> None:
        """Show a graph, and say when it is on the screen."""
        if not (self.page.is_attached and model.scope is self._graph_scope):
            shown.set()
        elif not self.model.is_open:
            self._begun = (model, shown)
        else:
            self._begun = None
            self.panes.graph.has_precisions = self.model.listing.has_precisions
            self.panes.graph.colours.ask_times = self._node_times
            self.panes.graph.colours.has_reports = self._has_reports
            self.panes.graph.colours.ask_errors = self.activities.tensor_errors
            self.panes.graph.colours.ask_quantized = self._quantized
            self.panes.graph.colours.ask_flops = self._flops
            self.panes.graph.colours.tell = self._show_figures
            self.panes.parameters.ask_nearest = self.panes.graph.around
            self.panes.graph.show(model)
            self.panes.parameters.show_nearest()
            if self._is_other or not self.panes.graph.has_keys:
                self.panes.graph.reveal(self.panes.explorer.node)
            self._is_other = False
            self.page.call_after_refresh(shown.set)

    def _graph_weighed(self, model: GraphModel) -> None:
        if self.page.is_attached and self.model.is_open and self.panes.graph.model is model:
            self.panes.graph.colours.weighed()
            self.panes.parameters.show_nearest()

    def _graph_ended(self) -> None:
        self.model.is_arranging = False

    def redraw(self, change: DocumentChange) -> None:
        """Draw the graph again after an edit: at once, or when edits pause."""
        scope = self._graph_scope
        if scope is None:
            return
        if change.is_everything or not is_alive(scope):
            self._is_other = self.panes.graph.is_outdated = True
            self.show_graph(scope if is_alive(scope) else self.document.main)
        elif len(scope.nodes) <= AT_ONCE:
            self.show_graph(scope)
        else:
            if self._graph_timer is not None:
                self._graph_timer.stop()
            self._draw_again(scope, _AGAIN_S, waits=_WAITS)

    def _draw_again(self, scope: Scope, after_s: float, waits: int) -> None:
        """Draw the graph again when edits pause; findings go first where they come soon."""

        def draw() -> None:
            if self.model.is_checking and waits:
                self._draw_again(scope, _LOOK_S, waits - 1)
            else:
                self.show_graph(scope)

        self._graph_timer = self.page.set_timer(after_s, draw)

    def reveal(self, subject: Node | Scope) -> None:
        """Show in the graph what the parameters pane shows."""
        from dld_tui.core.model.document import Node

        scope = subject.scope if isinstance(subject, Node) else subject
        if scope is not self._graph_scope:
            self._is_other = True
            self.show_graph(scope)
        elif isinstance(subject, Node) and not self.panes.graph.has_keys:
            self.panes.graph.reveal(subject)

    @hears(Explorer.Arranged)
    def show_constants(self, event: Explorer.Arranged) -> None:
        """Show constants in the graph where the explorer does."""
        model = self.panes.graph.model
        if not isinstance(model, GraphModel):
            return
        if (model.constants, model.exceptions) != self._constants_shown:
            self.show_graph(model.scope)

    @hears(GraphPane.Selected)
    def follow_cursor(self, event: GraphPane.Selected) -> None:
        """Show in the other panes what the graph's cursor is on, once it rests.

        That is the scope where it is on a fold, an input or an output. Without the keys the graph
        follows the others: it stands on the node that uses what they show where it does not draw
        that, as with what is made of constants alone.
        """
        if not self.panes.graph.has_keys:
            return
        subject = event.node or event.scope
        self.navigation.when_rested(lambda: self._follow_graph(subject))

    def _follow_graph(self, subject: Node | Scope) -> None:
        from dld_tui.core.model.document import Node

        if not is_alive(subject):
            return
        if isinstance(subject, Node) and self.panes.explorer.node is not subject:
            with self.page.prevent(Explorer.Selected):
                self.panes.explorer.reveal(subject)
        self.navigation.show_subject(subject)

    @hears(GraphPane.MoveAsked)
    def move_box(self, event: GraphPane.MoveAsked) -> None:
        """Keep where a box was moved to."""
        from dld_tui.core.model.edits import metadata

        node = event.node
        x, y = position_of(node) or (0, 0)
        x = max(-MOST, min(x + event.cells, MOST))
        y = max(-MOST, min(y + event.rows, MOST))
        place: JSON = [x, y] if x or y else None
        edit = metadata.set_positions(scope=node.scope.path, positions={node.ref: place})
        self.history.try_edit(edit)

    @hears(GraphPane.ArrangeAsked)
    def arrange(self, event: GraphPane.ArrangeAsked) -> None:
        """Forget where boxes were moved to."""
        from dld_tui.core.model.edits import metadata

        if any(position_of(node) is not None for node in event.scope.nodes):
            self.history.try_edit(metadata.set_positions(scope=event.scope.path, positions=None))
        else:
            self.say("No box was moved here")

    @hears(MarksChanged)
    def show_marks(self, event: MarksChanged) -> None:
        """Mark in the graph what is marked in the explorer."""
        from dld_tui.core.model.document import Node

        marked = self.panes.explorer.list
        if event.view is marked:
            # Those of now: by a message that is late the two would chase each other for ever.
            self.panes.graph.set_marked(mark for mark in marked.marks if isinstance(mark, Node))

    @hears(GraphPane.Marked)
    def take_marks(self, event: GraphPane.Marked) -> None:
        """Mark in the explorer what is marked in the graph."""
        # It may be late: those of a model that another has taken the place of are gone.
        scopes = {node.scope for node in event.nodes}
        alive = (event.nodes.intersection(scope.nodes) for scope in scopes)
        self.panes.explorer.list.set_marks(set[Hashable]().union(*alive))

    def _has_reports(self) -> bool:
        pages = host(self.page).pages
        return self._profile is not None or any(page.knows_times for page in pages)

    def look_for_profile(self) -> None:
        """Look for the newest profile of the file, on a thread, and colour the graph by it."""
        self.page.tasks.start(self._look_for_profile(), "times", replace=True)

    async def _look_for_profile(self) -> None:
        path = self.document.path
        if path is None:
            return
        opened = [file.path for file in host(self.page).state.recent() if file.kind == "REPORT"]
        self._profile = await on_thread(_newest_profile, path, opened)
        if self._profile is not None and self.model.is_open:
            self.panes.graph.colours.weighed()

    def show_times(self) -> None:
        """Colour by the newest report where others were opened or closed since the last time."""
        reports = tuple(page for page in host(self.page).pages if page.knows_times)
        if reports != self._reports and self.model.is_open:
            self._reports = reports
            self.panes.graph.colours.weighed()
            self.look_for_profile()

    def _node_times(self) -> tuple[Mapping[Node, float], str]:
        """Return the milliseconds of nodes in what was opened last: a report, or an engine.

        Without such those of the newest profile on the disk. May run on a thread.
        """
        times = (page.node_times(self.document) for page in reversed(host(self.page).pages))
        node_times = next(filter(None, times), None)
        if node_times is None and self._profile is not None:
            from dld_tui.core.report.reports_of_model import times_by_node

            node_times = times_by_node(self._profile.layers, self.document), self._profile.title
        return node_times or ({}, "")

    @hears(GraphPane.Opened)
    def open_node(self, event: GraphPane.Opened) -> None:
        """Go to the node's parameters."""
        self._follow_graph(event.node)
        self.panes.focus("parameters")

    def save_picture(self) -> None:
        """Write what the graph pane shows as a picture."""
        from dld_tui.screens.model.graph_picture import PictureWriter

        PictureWriter(self.page, self.document, self.panes.graph, self.work).save()


def _newest_profile(path: Path, opened: list[str]) -> Profile | None:
    """Return the newest profile of a file; nothing is imported where there is no report at all."""
    if not opened and not any(path.absolute().parent.glob("*.dldprof")):
        return None
    from dld_tui.core.report.reports_of_model import newest_profile

    return newest_profile(path, opened)
