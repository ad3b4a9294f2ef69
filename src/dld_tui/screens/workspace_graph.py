"""The graph pane in the workspace: in step with the explorer, made again after edits."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, cast

from textual import on
from textual.timer import Timer

from dld_tui.core.collector import collector_paused
from dld_tui.core.document import Node, Scope
from dld_tui.core.document.history import Change
from dld_tui.core.document.positions import MOST, position_of
from dld_tui.core.document.texts import NodeTexts
from dld_tui.core.errors import CancelledError, EditError
from dld_tui.core.plan.mapping import share_times
from dld_tui.core.types import JSON
from dld_tui.screens.graph_picture import save_picture
from dld_tui.screens.workspace_arranging import EarlyGraph, make_graph
from dld_tui.screens.workspace_base import is_alive
from dld_tui.screens.workspace_edit import Editing
from dld_tui.screens.workspace_opening import AT_ONCE, OpenedModel
from dld_tui.widgets.explorer import Explorer
from dld_tui.widgets.graph_model import GraphModel
from dld_tui.widgets.graph_overlays import memory_overlay
from dld_tui.widgets.graph_pane import GraphPane
from dld_tui.widgets.host import host
from dld_tui.widgets.line_view import LineView, MarksChanged

if TYPE_CHECKING:
    from dld_tui.screens.plan import PlanScreen
    from dld_tui.screens.plan_load import Loaded
    from dld_tui.screens.report import ReportScreen

_LOOK_S, _LOOKS = 0.1, 20
"""How often to look whether the picture is painted: what is not seen is painted later."""
_AGAIN_S = 0.4
"""A larger one is made again when no edit came for so long."""


class Graphs(Editing):
    """The part of the workspace that keeps the graph pane."""

    def __init__(self, path: Path | str | None = None) -> None:
        super().__init__(path)
        self._graph_scope: Scope | None = None
        """What the graph pane shows, or will when it is arranged."""
        self._begun: tuple[GraphModel, Event] | None = None
        """A graph that was arranged before there was a pane for it."""
        self._graph_timer: Timer | None = None
        self._passed: Node | None = None
        """The node that the graph's cursor was on last."""

    # --- making it ------------------------------------------------------------------------------

    def begin_graph(self, opened: OpenedModel) -> None:
        """Begin to arrange a large graph while the panes are still being made."""
        scope = opened.document.main
        if len(scope.nodes) > AT_ONCE:
            self._graph_scope = scope
            constants = opened.explorer.show_constants
            nothing: frozenset[Node] = frozenset()
            self._arrange(scope, constants, nothing, opened.texts, opened.early, opened.finish)

    def show_begun_graph(self) -> None:
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
        listed = self.explorer.model
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
        self.is_arranging = True
        self._begun = None

        def task() -> None:
            shown = Event()
            # An edit may change the model while it is read: then the graph is made again after it.
            with suppress(RuntimeError, KeyError, IndexError, CancelledError):
                with collector_paused():
                    model = early.result(self._is_gone) if early is not None else None
                    model = model or make_graph(scope, constants, exceptions, texts, self._is_gone)
                    gc.freeze()  # else each later collection would walk the whole graph
                    self.call_later(self._show_graph_model, model, shown)
                    self._wait_for_paint(shown)  # the picture first
                    model.complete()
                    model.weigh()
                    memory_overlay(model)  # keeps it for later
                self.call_later(self._graph_weighed, model)
            finish()
            self.call_later(self._graph_ended)

        self.run_worker(task, thread=True, group="graph", exclusive=True, name="arrange the graph")

    def _is_gone(self) -> bool:
        return not self.is_attached

    def _wait_for_paint(self, shown: Event) -> None:
        """Wait, on a thread, until the picture is on the screen; not for a page that is closed."""
        for _ in range(_LOOKS):
            if shown.wait(_LOOK_S) or not self.is_attached:
                return

    def _show_graph_model(self, model: GraphModel, shown: Event) -> None:
        """Show a graph, and say when it is on the screen."""
        if not (self.is_attached and model.scope is self._graph_scope):
            shown.set()
        elif not self.is_open:
            self._begun = (model, shown)
        else:
            self._begun = None
            self.graph.has_precisions = self.explorer.model.has_precisions
            self.graph.ask_times = self._report_times
            self.graph.ask_errors = self.tensor_errors
            self.graph.show(model)
            if self.explorer.node is not None and not self.graph.has_focus_within:
                self.graph.reveal(self.explorer.node)
            self.call_after_refresh(shown.set)

    def _graph_weighed(self, model: GraphModel) -> None:
        if self.is_attached and self.is_open and self.graph.model is model:
            self.graph.weighed()

    def _graph_ended(self) -> None:
        self.is_arranging = False

    def document_changed(self, change: Change) -> None:
        """Draw the graph again after an edit: at once, or when edits pause."""
        super().document_changed(change)
        scope = self._graph_scope
        if scope is None:
            return
        if not is_alive(scope):
            self.show_graph(self.document.main)
        elif len(scope.nodes) <= AT_ONCE:
            self.show_graph(scope)
        elif change.is_everything:
            if self.graph.has_focus_within:  # what it shows is no more
                self.focus_first()
            self.show_graph(scope)
        else:
            if self._graph_timer is not None:
                self._graph_timer.stop()
            self._graph_timer = self.set_timer(_AGAIN_S, lambda: self.show_graph(scope))

    # --- in step with the explorer --------------------------------------------------------------

    def show_subject(self, subject: Node | Scope) -> None:
        """Show a node or scope in the parameters pane and in the graph."""
        super().show_subject(subject)
        scope = subject.scope if isinstance(subject, Node) else subject
        if scope is not self._graph_scope:
            self.show_graph(scope)
        elif isinstance(subject, Node) and not self.graph.has_focus_within:
            self.graph.reveal(subject)

    @on(Explorer.Arranged)
    def constants_shown(self, event: Explorer.Arranged) -> None:
        """Show constants in the graph where the explorer does."""
        model = self.graph.model
        if not isinstance(model, GraphModel):
            return
        if (model.constants, model.exceptions) != self._constants_shown:
            self.show_graph(model.scope)

    @on(GraphPane.Selected)
    def graph_selected(self, event: GraphPane.Selected) -> None:
        """Show in the other panes what the graph's cursor is on, once it rests."""
        event.stop()
        node = event.node
        if node is not None:
            self._passed = node
        elif not self.follows:  # the cursor went over a node quicker than the panes follow
            node = self._passed
        self.when_rested(lambda: self._follow_graph(node) if node else self.facts_changed())

    def _follow_graph(self, node: Node) -> None:
        if not is_alive(node):
            return
        if self.explorer.node is not node:
            with self.prevent(Explorer.Selected):
                self.explorer.reveal(node)
        self.show_subject(node)

    @on(GraphPane.MenuAsked)
    def graph_menu_asked(self, event: GraphPane.MenuAsked) -> None:
        """Show the menu on a right click, once the details have followed the cursor."""
        event.stop()
        self.call_after_refresh(self.run_action, "context_menu")

    @on(GraphPane.MoveAsked)
    def move_asked(self, event: GraphPane.MoveAsked) -> None:
        """Keep where a box was moved to."""
        event.stop()
        node = event.node
        x, y = position_of(node) or (0, 0)
        x = max(-MOST, min(x + event.cells, MOST))
        place: list[JSON] | None = [x, y] if x or y else None
        self.try_edit("set_positions", scope=list(node.scope.path), positions={node.ref: place})

    @on(GraphPane.ArrangeAsked)
    def arrange_asked(self, event: GraphPane.ArrangeAsked) -> None:
        """Forget where boxes were moved to."""
        event.stop()
        if any(position_of(node) is not None for node in event.scope.nodes):
            self.try_edit("set_positions", scope=list(event.scope.path), positions=None)
        else:
            self.notify("No box was moved here", timeout=3)

    @on(LineView.MarksChanged)
    def same_marks(self, event: MarksChanged) -> None:
        """Mark in the graph what is marked in the explorer."""
        if event.view is self.explorer.list:
            self.graph.set_marked(mark for mark in event.marks if isinstance(mark, Node))

    @on(GraphPane.Marked)
    def graph_marked(self, event: GraphPane.Marked) -> None:
        """Mark in the explorer what is marked in the graph."""
        event.stop()
        # It may be late: those of a model that another has taken the place of are gone.
        scopes = {node.scope for node in event.nodes}
        alive = (event.nodes.intersection(scope.nodes) for scope in scopes)
        self.explorer.list.set_marks(set[Hashable]().union(*alive))

    def tensor_errors(self) -> tuple[dict[Node, float], str]:
        """Return the errors of nodes in a comparison of this model's results; none here."""
        return {}, ""

    def _report_times(self) -> tuple[dict[Node, float], str]:
        """Return the milliseconds of nodes in what was opened last: a report, or an engine.

        May run on a thread.
        """
        for page in reversed(host(self).pages):
            if _is_a(page, "dld_tui.screens.plan", "PlanScreen"):
                times = self._engine_times(cast("PlanScreen", page).loaded)
                if times:
                    return times, f"{page.tab_title}, shared by cost in a layer (an estimate)"
                continue
            if not _is_a(page, "dld_tui.screens.report", "ReportScreen"):
                continue
            shown = cast("ReportScreen", page)
            if shown.report is None or self.path is None:
                continue
            if shown.model_path() != self.path.absolute():
                continue
            times = {}
            for layer in shown.report.layers:
                for link in layer.nodes:
                    node = self._linked(link.scope, link.node)
                    if node is not None and layer.time_ms is not None:
                        times[node] = times.get(node, 0.0) + layer.time_ms * link.share
            return times, page.tab_title
        return {}, ""

    def _engine_times(self, loaded: Loaded | None) -> dict[Node, float]:
        """Return the milliseconds of nodes in an engine of this model; nothing for another one."""
        if loaded is None or loaded.model is None or self.path is None:
            return {}
        if loaded.model.absolute() != self.path.absolute():
            return {}
        times: dict[Node, float] = {}
        for time in share_times(loaded.plan, loaded.mapping):
            node = self._linked(time.node.scope, time.node.ref) if time.node else None
            if node is not None:
                times[node] = times.get(node, 0.0) + time.time_ms
        return times

    def _linked(self, path: Sequence[str], ref: str) -> Node | None:
        try:
            return self.document.scope_at(path).find(ref)
        except EditError:
            return None

    @on(GraphPane.Opened)
    def graph_opened(self, event: GraphPane.Opened) -> None:
        """Go to the node's parameters."""
        event.stop()
        self._follow_graph(event.node)
        self.focus_pane("parameters")

    def action_save_picture(self) -> None:
        """Write what the graph pane shows as a picture."""
        save_picture(self)


def _is_a(page: object, module: str, name: str) -> bool:
    """Return whether a page is of a class, without an import: what is shown has been imported."""
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(page, kind)
