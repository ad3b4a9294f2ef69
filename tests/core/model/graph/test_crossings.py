from __future__ import annotations

import itertools
from math import comb

import pytest

from dld_tui.core.model.graph import crossings
from dld_tui.core.model.graph.crossings import order_lines
from dld_tui.core.model.graph.edge_routes import Wire, assign_tracks
from dld_tui.core.model.graph.graph import Graph
from dld_tui.core.model.graph.placement import Layers, linked_targets, make_layers, ranks_of
from dld_tui.core.model.graph.rails import demand_order
from tests.support.graphs import graph_of_links, random_graph


def layers_of(graph: Graph) -> Layers:
    order = demand_order(graph)
    rank = ranks_of(graph, order)
    return make_layers(graph, rank, linked_targets(graph, rank), order)


def single_graph(seed: int, most: int = 40) -> Graph:
    """Return a random graph of vertices with one tensor each."""
    graph, found = random_graph(seed, most), Graph()
    for label, name in zip(graph.labels, graph.names, strict=True):
        found.add(label, name)
    for net in {net.source: net for net in graph.nets}.values():
        found.link(net.name, net.source, net.targets)
    return found


def counted(layers: Layers, orders: list[list[int]] | None = None) -> int:
    """Count the crossings pair by pair."""
    total = 0
    ranks = layers.ranks if orders is None else orders
    for rank, items in enumerate(ranks[:-1]):
        place = {item: at for at, item in enumerate(ranks[rank + 1])}
        ends = [(at, place[other]) for at, item in enumerate(items) for other in layers.below[item]]
        total += sum(a < c and b > d for a, b in ends for c, d in ends)
    return total


def fewest(layers: Layers) -> int:
    """Try all orders of all ranks."""
    every = [[list(found) for found in itertools.permutations(items)] for items in layers.ranks]
    return min(counted(layers, list(orders)) for orders in itertools.product(*every))


def experts(count: int) -> Graph:
    """Return a mixture of experts, each of which takes two tensors and adds to the one before."""
    links, last = [("x", "h"), ("h", "gate"), ("gate", "routes"), ("h", "zeros")], "zeros"
    for n in range(count):
        links += [("routes", f"equal{n}"), (f"equal{n}", f"index{n}"), ("h", f"gather{n}")]
        links += [(f"index{n}", f"{to}{n}") for to in ("gather", "share", "scatter")]
        links += [("routes", f"share{n}"), (f"gather{n}", f"up{n}"), (f"up{n}", f"mul{n}")]
        links += [(f"share{n}", f"mul{n}"), (last, f"scatter{n}"), (f"mul{n}", f"scatter{n}")]
        last = f"scatter{n}"
    return graph_of_links([*links, (last, "out")])


@pytest.mark.parametrize("seed", range(40))
def test_it_returns_the_crossings_that_are_left(seed: int) -> None:
    layers = layers_of(single_graph(seed))
    ordered, numbers, found = order_lines(layers_of(single_graph(seed)))
    assert found == counted(ordered)
    vertices = [number for number in numbers if number >= 0 and layers.net[number] < 0]
    assert sorted(vertices) == [item for item, net in enumerate(layers.net) if net < 0]


@pytest.mark.parametrize("seed", range(30))
def test_there_is_no_better_order_of_a_small_graph(seed: int) -> None:
    layers = layers_of(single_graph(seed, 9))
    if max(map(len, layers.ranks)) > 4 or len(layers.ranks) > 5:
        layers = layers_of(single_graph(seed, 6))
    least = fewest(layers)
    assert order_lines(layers)[2] == least


@pytest.mark.parametrize(("upper", "lower"), [(2, 2), (3, 3), (4, 2), (5, 4)])
def test_all_to_all(upper: int, lower: int) -> None:
    links = [(f"a{one}", f"b{other}") for one in range(upper) for other in range(lower)]
    assert order_lines(layers_of(graph_of_links(links)))[2] == comb(upper, 2) * comb(lower, 2)


def test_a_tree_whose_leaves_are_mixed_up_is_drawn_without_crossings() -> None:
    links = [(f"n{at // 2:02}", f"n{at:02}") for at in range(2, 64)]
    mixed = sorted(links, key=lambda link: int(link[1][1:]) * 37 % 61)
    assert order_lines(layers_of(graph_of_links(mixed)))[2] == 0


@pytest.mark.parametrize(("seed", "left"), [(56, 1), (197, 2), (188, 4)])
def test_lines_pass_each_other_where_sweeps_leave_them(
    seed: int, left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = random_graph(seed, 14, cycles=False)
    assert order_lines(layers_of(graph))[2] <= left
    monkeypatch.setattr(crossings, "_PASSING", 0)
    assert order_lines(layers_of(graph))[2] > left


@pytest.mark.parametrize(("count", "left"), [(2, 2), (3, 5), (4, 8)])
def test_lines_of_one_tensor_part_where_that_saves_crossings(count: int, left: int) -> None:
    layers, numbers, found = order_lines(layers_of(experts(count)))
    assert found == counted(layers) <= left
    assert -1 in numbers


@pytest.mark.parametrize("graph", [random_graph(11), random_graph(29), experts(4)])
def test_the_same_graph_gets_the_same_orders(graph: Graph) -> None:
    first, second = order_lines(layers_of(graph)), order_lines(layers_of(graph))
    assert first[0].ranks == second[0].ranks
    assert first[1:] == second[1:]


def test_lines_that_go_the_same_way_turn_without_crossing() -> None:
    left, right = Wire(0, 2, (20,), (20,)), Wire(1, 6, (30,), (30,))
    assert assign_tracks([left, right]) == 2
    assert (right.track, left.track) == (0, 1)


def test_lines_that_share_a_column_keep_their_order_all_the_same() -> None:
    above = Wire(0, 8, (2,), (2,))
    below = Wire(1, 4, (8,), (8,))
    assert assign_tracks([below, above]) == 2
    assert above.track < below.track  # it leaves where the other one arrives
