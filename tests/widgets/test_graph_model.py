"""What the graph pane shows: folds, views, what is kept when the graph is made again."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from dld_tui.widgets.graph.overlays import PrecisionOverlay
from dld_tui.widgets.graph.state import GraphModel, GraphView, ViewedGraph
from tests.support import models
from tests.support.graph_panes import graph_model, node_of, rows_of, seen
from tests.support.sessions import document_of

HIDDEN = """
<ir_version: 10, opset_import: ["" : 18]>
hidden (float[N] x) => (float[N] y)
<float[1] w = {1}>
{
    [cast] c = Cast<to = 1>(w)
    [far] d = Neg(c)
    [use] y = Add(x, d)
}
"""


@pytest.fixture
def deep(tmp_path: Path) -> GraphModel:
    return graph_model(tmp_path, models.layered(8))


def test_repeated_blocks_are_one_row_and_open_in_place(deep: GraphModel) -> None:
    folds = [row.fold for row in deep.rows if row.fold is not None]
    assert [fold.count for fold in folds] == [8]
    deep.overview.set_open(folds[0])
    assert "+ layers.3 x1" in seen(deep)
    assert len(deep.rows) == 1 + 8 + len(seen(deep)) - 9


def test_what_the_views_of_a_graph_hold(tmp_path: Path, deep: GraphModel) -> None:
    # Small graphs open on the canvas and large ones folded.
    assert deep.view is GraphView.FOLDED
    assert graph_model(tmp_path, models.CHAIN).view is GraphView.CANVAS
    # The rail view shows every vertex and folds come back.
    before = len(deep.rows)
    deep.set_view(GraphView.RAIL)
    assert len(deep.rows) == len(deep.drawn.graph)
    deep.set_view(GraphView.FOLDED)
    assert len(deep.rows) == before
    # Closed folds are boxes of the canvas and open ones are not.
    part, boxes = deep.canvas_part()
    assert len(boxes) == len(part.graph) == sum(not row.is_open for row in deep.rows)
    assert all(not deep.overview.is_open(box) for box in boxes if not isinstance(box, int))
    # Keys of rows are nodes vertices and folds.
    rows = rows_of(deep)
    for at in range(len(rows)):
        assert rows.index_of(rows.key(at)) == at
    node = node_of(deep, "/stem")
    assert rows.key(rows.index_of(node) or 0) is node


def test_a_hidden_node_is_at_its_user_or_drawn_when_asked_for(tmp_path: Path) -> None:
    # A node that is not drawn stands at its first user.
    model = graph_model(tmp_path, HIDDEN)
    assert model.vertex_of(node_of(model, "cast")) == model.drawn.vertex(node_of(model, "use"))
    # Constants are drawn when they are asked for.
    everything = GraphModel(model.scope, constants=True)
    assert model.drawn.vertex(node_of(model, "cast")) is None
    assert everything.drawn.vertex(node_of(model, "cast")) is not None


def test_folds_stay_open_when_the_graph_is_made_again(deep: GraphModel) -> None:
    deep.overview.reveal(deep.drawn.vertex(node_of(deep, "/layers.3/gate")) or 0)
    open_before = [title for title in seen(deep) if title.startswith("-")]
    document_of(deep.scope).apply(
        "rename_node", scope=[], node="/layers.3/gate", name="/layers.3/g"
    )
    again = GraphModel(deep.scope)
    again.carry_over(deep)
    assert [title for title in seen(again) if title.startswith("-")] == open_before
    assert "/layers.3/g" in seen(again)


def test_an_open_fold_stays_open_without_its_first_node(deep: GraphModel) -> None:
    deep.overview.reveal(deep.drawn.vertex(node_of(deep, "/layers.3/gate")) or 0)
    document_of(deep.scope).apply(
        "delete_nodes", scope=[], nodes=["/layers.3/norm"], reconnect=True
    )
    again = GraphModel(deep.scope)
    again.carry_over(deep)
    assert "/layers.3/gate" in seen(again) or "- layers.3 x1" in seen(again)


def test_ways_between_two_are_found_in_either_direction(deep: GraphModel) -> None:
    first = deep.drawn.vertex(node_of(deep, "/layers.2/norm")) or 0
    last = deep.drawn.vertex(node_of(deep, "/layers.2/join")) or 0
    names = set()
    for here, there in ((first, last), (last, first)):
        deep.other_end = there
        names.add(frozenset(deep.focus(here).graph.names))
    assert names == {frozenset(f"/layers.2/{n}" for n in ("norm", "scale", "gate", "join"))}


def test_precisions_of_several_nodes_fit_beside_them() -> None:
    precisions = [("float8e4m3", "a"), ("i8", "b"), ("i8", "b"), None]
    rails = SimpleNamespace(rails=SimpleNamespace(order=range(4)))
    model = SimpleNamespace(precision=precisions.__getitem__, overview=rails)
    overlay = PrecisionOverlay(cast("ViewedGraph", model))
    shown = {(0, 1): "float8e4m", (0, 2): "float8 +1", (0, 4): "i8 +1", (2, 4): "i8", (3, 4): ""}
    assert {rows: overlay.text(*rows) for rows in shown} == shown
    assert [overlay.style(0, 4), overlay.style(3, 4)] == ["b", "faint"]
