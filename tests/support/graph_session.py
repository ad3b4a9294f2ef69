"""The graph pane of a model that is open in the app."""

from __future__ import annotations

from dld_tui.core.model.document import Node
from dld_tui.core.model.graph.folding import Fold
from dld_tui.widgets.graph.state import GraphModel, GraphView
from tests.support.workspace import Session


def shown(session: Session) -> GraphModel:
    """Return the graph that is drawn."""
    model = session.screen.graph.model
    assert isinstance(model, GraphModel)
    return model


def view(session: Session) -> GraphView:
    """Return the view that is seen."""
    return shown(session).view


def named(session: Session, name: str) -> Node:
    """Return a node of any scope by its name."""
    scopes = session.screen.document.scopes()
    return next(node for scope in scopes for node in scope.nodes if node.name == name)


def at(session: Session) -> str:
    """Return the name of the node under the graph's cursor."""
    node = session.screen.graph.node
    return node.name if node is not None else ""


async def to_graph(session: Session, name: str = "") -> None:
    """Go to a node in the explorer, and then to the graph."""
    if name:
        await session.go(name)
    await session.press("2")
    assert session.screen.graph.has_focus_within


def fold(session: Session) -> Fold:
    """Return the repeat."""
    return next(
        row.fold for row in shown(session).rows if row.fold is not None and row.fold.count > 1
    )
