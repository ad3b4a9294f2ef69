"""Graph models of models written as ONNX text, for tests of the pane's parts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from dld_tui.core.model.document import Document, Node
from dld_tui.core.text import cell_width
from dld_tui.widgets.graph.overlays import Overlay
from dld_tui.widgets.graph.rows import GraphRows
from dld_tui.widgets.graph.state import GraphModel, GraphNotes
from dld_tui.widgets.lists.styled import Piece
from tests.support import models

RICH = """<ir_version: 10, opset_import: ["" : 18]>
rich (float[N, 4] x, bool choice) => (float[N, 4] y, float[1024, 1024, 1024, 4] z)
<float[2, 4] u = {1, 2, 3, 4, 5, 6, 7, 8}, WEIGHTS>
{
    BLOCKS
    ["/a name that is too long for a row of few cells"] p = Add(x, x)
    ["/a name that is too long/算子"] q = Transpose<perm = [1, 0]>(u)
    ["choose"] c = If(choice) <
        then_branch = then () => (float[N, 4] t) { ["inner"] t = Neg(h6) },
        else_branch = other () => (float[N, 4] e) { e = Mul(h6, p) }>
    ["last"] y = Add(c, p)
    ["other"] z = Custom(c, q, p, x)
}
"""
_LAYERED = models.layered(6)
RICH = RICH.replace("WEIGHTS", _LAYERED.partition("<float[4]")[2].partition(">")[0]).replace(
    "<float[2, 4] u = {1, 2, 3, 4, 5, 6, 7, 8}, ",
    "<float[2, 4] u = {1, 2, 3, 4, 5, 6, 7, 8}, float[4]",
)
RICH = RICH.replace("BLOCKS", _LAYERED.partition("{\n")[2].partition('    ["/head"]')[0])
"""A graph with repeated blocks, names of all lengths, a subgraph and a custom operator."""


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


def painted(lines: Iterable[Iterable[Piece]]) -> str:
    """Return rows of pieces, each above a letter of the style of each cell, and what they mean."""
    letters: dict[str, str] = {"": " "}
    shown = []
    for pieces in lines:
        told = list(pieces)
        for _, style in told:
            letters.setdefault(style, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJ"[len(letters) - 1])
        shown.append("".join(text for text, _ in told))
        shown.append("".join(letters[style] * cell_width(text) for text, style in told))
    legend = ", ".join(f"{letter} {style}" for style, letter in letters.items() if style)
    return "\n".join([*shown, legend])
