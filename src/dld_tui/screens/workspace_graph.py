"""The graph pane in the workspace: in step with the explorer, made again after edits."""

from __future__ import annotations

from pathlib import Path

from textual import on
from textual.timer import Timer

from dld_tui.core.document import Node, Scope
from dld_tui.core.document.history import Change
from dld_tui.screens.workspace_base import is_alive
from dld_tui.screens.workspace_edit import Editing
from dld_tui.widgets.explorer import Explorer
from dld_tui.widgets.graph_model import GraphModel
from dld_tui.widgets.graph_pane import GraphPane

_AT_ONCE = 2_000
"""Nodes of the largest scope whose graph is made between two key presses."""
_AGAIN_S = 0.4
"""A larger one is made again when no edit came for so long."""


class Graphs(Editing):
    """The part of the workspace that keeps the graph pane."""

    def __init__(self, path: Path | str | None = None) -> None:
        super().__init__(path)
        self._graph_scope: Scope | None = None
        """What the graph pane shows, or will when it is arranged."""
        self._graph_timer: Timer | None = None

    # --- making it ------------------------------------------------------------------------------

    def show_graph(self, scope: Scope) -> None:
        """Show the graph of a scope; of a large one, as soon as it is arranged."""
        self._graph_scope = scope
        constants = self.explorer.model.show_constants
        if len(scope.nodes) <= _AT_ONCE:
            self._show_graph_model(GraphModel(scope, constants=constants))
            return

        def task() -> None:
            try:
                model = GraphModel(scope, constants=constants)
            except (RuntimeError, KeyError, IndexError):
                return  # an edit changed the model while it was read: it is made again after
            self.call_later(self._show_graph_model, model)

        self.run_worker(task, thread=True, group="graph", exclusive=True, name="arrange the graph")

    def _show_graph_model(self, model: GraphModel) -> None:
        if self.is_attached and self.is_open and model.scope is self._graph_scope:
            self.graph.show(model)
            if self.explorer.node is not None:
                self.graph.reveal(self.explorer.node)

    def document_changed(self, change: Change) -> None:
        """Draw the graph again after an edit: at once, or when edits pause."""
        super().document_changed(change)
        scope = self._graph_scope
        if scope is None:
            return
        if not is_alive(scope):
            self.show_graph(self.document.main)
        elif len(scope.nodes) <= _AT_ONCE:
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
        if model is not None and model.constants != event.show_constants:
            self.show_graph(model.scope)

    @on(GraphPane.Selected)
    def graph_selected(self, event: GraphPane.Selected) -> None:
        """Show in the other panes what the graph's cursor is on, once it rests."""
        event.stop()
        node = event.node
        if node is None:
            return
        self.when_rested(lambda: self._follow_graph(node))

    def _follow_graph(self, node: Node) -> None:
        if not is_alive(node):
            return
        if self.explorer.node is not node:
            with self.prevent(Explorer.Selected):
                self.explorer.reveal(node)
        self.show_subject(node)

    @on(GraphPane.Opened)
    def graph_opened(self, event: GraphPane.Opened) -> None:
        """Go to the node's parameters."""
        event.stop()
        self._follow_graph(event.node)
        self.focus_pane("parameters")
