"""What the graph pane shows: folds, views, what is kept when the graph is made again."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.widgets.graph.state import GraphModel, GraphView
from tests.support import models
from tests.support.graph_panes import graph_model, node_of, rows_of, seen


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


def test_ways_between_two_are_found_in_either_direction(deep: GraphModel) -> None:
    first = deep.drawn.vertex(node_of(deep, "/layers.2/norm")) or 0
    last = deep.drawn.vertex(node_of(deep, "/layers.2/join")) or 0
    names = set()
    for here, there in ((first, last), (last, first)):
        deep.other_end = there
        names.add(frozenset(deep.focus(here).graph.names))
    assert names == {frozenset(f"/layers.2/{n}" for n in ("norm", "scale", "gate", "join"))}
