"""Graph models of models written as ONNX text, for tests of the pane's parts."""

from __future__ import annotations

from pathlib import Path

from dld_tui.core.model.document import Document, Node
from dld_tui.widgets.graph.overlays import Overlay
from dld_tui.widgets.graph.rows import GraphRows
from dld_tui.widgets.graph.state import GraphModel, GraphNotes
from tests.support import models


def graph_model(folder: Path, text: str, path: tuple[str, ...] = ()) -> GraphModel:
    """Return the graph model of a scope of a model; the document stays open."""
    model = GraphModel(Document.open(models.write(folder, text)).scope_at(path))
    model.weigh()
    return model


def node_of(model: GraphModel, name: str) -> Node:
    """Return a node of the scope by its name."""
    node = model.scope.find(name)
    assert node is not None
    return node


def rows_of(model: GraphModel, overlay: Overlay | None = None) -> GraphRows:
    """Return the source of the list views."""
    return GraphRows(model, GraphNotes(model), overlay or Overlay())


def seen(model: GraphModel) -> list[str]:
    """Return what the rows are about: names, or titles of folds with how often they come."""
    found = []
    for row in model.rows:
        if row.fold is not None:
            sign = "-" if row.is_open else "+"
            found.append(f"{sign} {row.fold.title} x{row.fold.count}")
        else:
            found.append(model.drawn.graph.names[model.overview.rails.order[row.start]])
    return found
