from __future__ import annotations

import pytest

from dld_tui.core.graph import crossings
from dld_tui.core.graph.crossings import order_layers
from dld_tui.core.graph.graph import Graph
from dld_tui.core.graph.layers import Layers, make_layers
from dld_tui.core.graph.order import demand_order
from dld_tui.core.graph.ranks import linked_targets, ranks_of
from dld_tui.core.graph.routes import Wire, assign_tracks
from tests.support.graphs import random_graph


def layers_of(graph: Graph) -> Layers:
    order = demand_order(graph)
    rank = ranks_of(graph, order)
    return make_layers(graph, rank, linked_targets(graph, rank), order)


def counted(layers: Layers) -> int:
    """Count the crossings pair by pair."""
    total = 0
    for rank, items in enumerate(layers.ranks[:-1]):
        place = {item: at for at, item in enumerate(layers.ranks[rank + 1])}
        ends = [(at, place[other]) for at, item in enumerate(items) for other in layers.below[item]]
        total += sum(a < c and b > d for a, b in ends for c, d in ends)
    return total


@pytest.mark.parametrize("seed", range(40))
def test_it_returns_the_crossings_that_are_left(seed: int) -> None:
    layers = layers_of(random_graph(seed))
    items = [sorted(rank) for rank in layers.ranks]
    found = order_layers(layers)
    assert found == counted(layers)
    assert [sorted(rank) for rank in layers.ranks] == items


@pytest.mark.parametrize("left_out", ["_REPAIRS", "_SHAKES"])
@pytest.mark.parametrize("seed", [12, 81, 159, 163])
def test_crossings_that_sweeps_leave_are_repaired(
    seed: int, left_out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = random_graph(seed, 14, cycles=False)
    monkeypatch.setattr(crossings, left_out, 0)
    assert order_layers(layers_of(graph)) == 0, "one of the two is enough"
    monkeypatch.setattr(crossings, "_REPAIRS", 0)
    monkeypatch.setattr(crossings, "_SHAKES", 0)
    assert order_layers(layers_of(graph)) > 0


def test_lines_that_go_the_same_way_turn_without_crossing() -> None:
    left, right = Wire((0,), (2,), (20,), (20,)), Wire((1,), (6,), (30,), (30,))
    assert assign_tracks([left, right]) == 2
    assert (right.track, left.track) == (0, 1)


def test_lines_that_share_a_column_keep_their_order_all_the_same() -> None:
    above = Wire((0,), (8,), (2,), (2,))
    below = Wire((1,), (4,), (8,), (8,))
    assert assign_tracks([below, above]) == 2
    assert above.track < below.track  # it leaves where the other one arrives
