"""Orders of ranks: counting what crosses, and changing it."""

from __future__ import annotations

import itertools
import random
from math import comb

import pytest

from dld_tui.core.model.graph.crossings import Ordering, order_lines, pass_lines
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


@pytest.mark.parametrize("seed", range(12))
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


@pytest.mark.parametrize(("count", "left"), [(2, 2), (3, 5), (4, 8)])
def test_lines_of_one_tensor_part_where_that_saves_crossings(count: int, left: int) -> None:
    layers, numbers, found = order_lines(layers_of(experts(count)))
    assert found == counted(layers) <= left
    assert -1 in numbers


def test_lines_that_go_the_same_way_turn_without_crossing() -> None:
    left, right = Wire(0, 2, (20,), (20,)), Wire(1, 6, (30,), (30,))
    assert assign_tracks([left, right]) == 2
    assert (right.track, left.track) == (0, 1)


def test_lines_that_share_a_column_keep_their_order_all_the_same() -> None:
    above = Wire(0, 8, (2,), (2,))
    below = Wire(1, 4, (8,), (8,))
    assert assign_tracks([below, above]) == 2
    assert above.track < below.track  # it leaves where the other one arrives


def ordering(seed: int, sizes: tuple[int, ...] = (5, 7, 6, 4)) -> Ordering:
    chance = random.Random(seed)
    ranks: list[list[int]] = []
    for size in sizes:
        start = sum(map(len, ranks))
        ranks.append(list(range(start, start + size)))
    count = sum(sizes)
    above: list[list[int]] = [[] for _ in range(count)]
    below: list[list[int]] = [[] for _ in range(count)]
    for upper, lower in itertools.pairwise(ranks):
        for one in upper:
            for other in chance.sample(lower, chance.randint(0, 3)):
                below[one].append(other)
                above[other].append(one)
    return Ordering(ranks, above, below)


def pairs(work: Ordering) -> int:
    """Count the crossings pair by pair."""
    total = 0
    for rank, items in enumerate(work.ranks[:-1]):
        place = {item: at for at, item in enumerate(work.ranks[rank + 1])}
        ends = [(at, place[other]) for at, item in enumerate(items) for other in work.below[item]]
        total += sum(a < c and b > d for a, b in ends for c, d in ends)
    return total


@pytest.mark.parametrize("seed", range(8))
def test_what_has_changed_is_counted_again(seed: int) -> None:
    work = ordering(seed)
    assert work.crossings() == pairs(work)
    for sweep in range(6):
        work.sweep(down=sweep % 2 == 0, turned=sweep % 4 < 2)
        assert work.crossings() == pairs(work)
        before = work.crossings()
        work.swap_neighbours(ties=sweep % 3 == 0)
        assert work.crossings() == pairs(work) <= before
        assert [sorted(items) for items in work.ranks] == [
            sorted(items) for items in ordering(seed).ranks
        ]


def two_lines(length: int) -> Ordering:
    """Return two lines that cross, with a third one beside them; each rank is fine by itself."""
    ranks = [[3 * rank, 3 * rank + 1, 3 * rank + 2] for rank in range(length)]
    ranks[-1][:2] = reversed(ranks[-1][:2])
    count = 3 * length
    above = [[item - 3] if item >= 3 else [] for item in range(count)]
    below = [[item + 3] if item + 3 < count else [] for item in range(count)]
    return Ordering(ranks, above, below)


def test_a_line_is_moved_as_a_whole() -> None:
    work = two_lines(4)
    assert work.crossings() == 1
    assert pass_lines(work, 4_000) == 0
    assert pairs(work) == 0


@pytest.mark.parametrize("seed", range(10))
def test_it_never_gets_worse_and_counts_what_is_left(seed: int) -> None:
    work = ordering(seed, (4, 6, 6, 5, 4, 6))
    before, items = work.crossings(), [sorted(found) for found in work.ranks]
    passed = pass_lines(work, 20_000)
    assert passed == pairs(work) < before
    assert [sorted(found) for found in work.ranks] == items


def test_the_effort_is_kept_to() -> None:
    work = ordering(0, (30, 40, 40, 30))
    work.crossings()
    start = work.effort
    pass_lines(work, 3_000)
    assert work.effort - start < 3_000 + 500, "one move more, at most"


def test_without_crossings_nothing_is_tried() -> None:
    work = two_lines(3)
    pass_lines(work, 4_000)
    before = work.kept()
    assert pass_lines(work, 1_000) == 0
    assert work.ranks == before


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
