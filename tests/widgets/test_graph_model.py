"""What the graph pane shows: folds, views, what is kept when the graph is made again."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.geometry import Size

from dld_tui.widgets.graph.boxes import Looks, around
from dld_tui.widgets.graph.drawing import ZOOMS
from dld_tui.widgets.graph.overlays import Overlay
from dld_tui.widgets.graph.row_list import Filling
from dld_tui.widgets.graph.state import GraphModel, GraphNotes, GraphView
from tests.support import models
from tests.support.graph_panes import graph_model, node_of, seen


@pytest.fixture
def deep(tmp_path: Path) -> GraphModel:
    return graph_model(tmp_path, models.layered(8))


def test_repeated_blocks_are_one_row_and_open_in_place(deep: GraphModel) -> None:
    folds = [row.fold for row in deep.rows if row.fold is not None]
    assert [fold.count for fold in folds] == [8]
    deep.overview.set_open(folds[0])
    assert "+ layers.3 x1" in seen(deep)
    assert len(deep.rows) == 1 + 8 + len(seen(deep)) - 9


def test_ways_between_two_are_found_in_either_direction(deep: GraphModel) -> None:
    first = deep.drawn.vertex(node_of(deep, "/layers.2/norm")) or 0
    last = deep.drawn.vertex(node_of(deep, "/layers.2/join")) or 0
    names = set()
    for here, there in ((first, last), (last, first)):
        deep.other_end = there
        names.add(frozenset(deep.focus(here).graph.names))
    assert names == {frozenset(f"/layers.2/{n}" for n in ("norm", "scale", "gate", "join"))}


def test_folds_are_opened_until_the_pane_is_full_and_left_once_a_user_has_chosen(
    deep: GraphModel,
) -> None:
    filling = Filling()
    few = len(deep.rows)
    assert not filling.fill(deep, 0)
    assert not filling.fill(deep, few)
    assert filling.fill(deep, few + 40)
    full = len(deep.rows)
    assert few < full <= few + 40
    assert not filling.fill(deep, few + 40)
    assert filling.fill(deep, 500)
    assert full < len(deep.rows)
    opened = deep.overview.opened
    deep.overview.set_open(next(iter(opened)), False)
    chosen = deep.overview.opened
    assert not filling.fill(deep, 900)
    assert deep.overview.opened == chosen != opened
    deep.set_view(GraphView.RAIL)
    assert not Filling().fill(deep, 900)


def test_a_node_and_its_nearest_are_drawn_as_large_as_they_fit(tmp_path: Path) -> None:
    model = graph_model(tmp_path, models.BRANCHES)
    node = node_of(model, "choose")
    looks = Looks(model, GraphNotes(model), Overlay())
    sizes = []
    for zoom in range(ZOOMS):
        part = model.nearest(model.vertex_now(node) or 0)
        layout = looks.drawer(part, part.vertices)(zoom).layout
        sizes.append((layout.width, layout.height))
    (_, small), (middle, high), (wide, tall) = sizes
    assert small < high < tall
    for room, size in {
        (wide, tall): 2, (wide - 1, tall): 0, (wide, tall - 1): 1, (middle, high): 1,
        (middle - 1, 99): 0, (99, high - 1): 0, (1, 1): 0, (99, 99): 2,
    }.items():  # fmt: skip
        shown = around(looks, node, Size(*room))
        assert shown is not None
        assert (shown.drawing.layout.width, shown.drawing.layout.height) == sizes[size], room
        assert shown.nodes[shown.box] is node
    assert around(looks, "nobody", Size(99, 99)) is None
