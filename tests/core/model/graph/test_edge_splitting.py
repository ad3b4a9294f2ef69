"""Lines of one tensor: apart, and side by side again."""

from __future__ import annotations

import pytest

from dld_tui.core.model.graph.edge_routes import join_edges, split_edges
from dld_tui.core.model.graph.placement import Layers
from tests.core.model.graph.test_crossings import layers_of
from tests.support.graphs import graph_of_links, random_graph


def ends(layers: Layers) -> list[tuple[int, int, int]]:
    """Return (net, source, target) of each link between vertices, followed along its chain."""
    found = []
    for items in layers.ranks:
        for item in items:
            if layers.net[item] >= 0:
                continue
            waiting = list(zip(layers.nets_below[item], layers.below[item], strict=True))
            while waiting:
                net, other = waiting.pop()
                if layers.net[other] < 0:
                    found.append((net, item, other))
                else:
                    assert layers.net[other] == net
                    waiting += zip(layers.nets_below[other], layers.below[other], strict=True)
    return sorted(found)


@pytest.mark.parametrize("seed", range(25))
def test_each_link_has_a_chain_of_its_own(seed: int) -> None:
    before = layers_of(random_graph(seed))
    apart = split_edges(before)
    assert ends(apart) == ends(before)
    for item, net in enumerate(apart.net):
        if net >= 0:
            assert len(apart.below[item]) <= 1
    for items in apart.ranks:
        assert all(apart.rank[item] == apart.rank[items[0]] for item in items)


@pytest.mark.parametrize("seed", range(25))
def test_lines_side_by_side_become_one(seed: int) -> None:
    before = layers_of(random_graph(seed))
    joined, numbers = join_edges(split_edges(before), len(before.rank))
    known = [(net, numbers[one], numbers[other]) for net, one, other in ends(joined)]
    assert sorted(known) == ends(before)
    assert len(joined.rank) <= len(before.rank), "in the order they came in they are side by side"


def test_lines_with_something_in_between_stay_apart() -> None:
    links = [("a", "p"), ("p", "q"), ("q", "r"), ("a", "b"), ("b", "c"), ("c", "d")]
    before = layers_of(graph_of_links([*links, ("a", "r"), ("a", "d")]))
    apart = split_edges(before)
    copies = [item for item, net in enumerate(apart.net) if net >= 0 and apart.rank[item] == 1]
    copies = [item for item in copies if item in apart.ranks[1]]
    assert len(copies) == 2
    vertices = [item for item in apart.ranks[1] if item not in copies]
    for rank in (1, 2):
        lines = [item for item in apart.ranks[rank] if apart.net[item] >= 0]
        boxes = [item for item in apart.ranks[rank] if apart.net[item] < 0]
        apart.ranks[rank] = [lines[0], *boxes, lines[1]]
    joined, numbers = join_edges(apart, len(before.rank))
    assert [len(items) for items in joined.ranks] == [1, 4, 4, 2]
    assert numbers.count(-1) == 4
    assert len(vertices) == 2
