from __future__ import annotations

import itertools

import pytest

from dld_tui.core.model.graph.graph import Graph
from dld_tui.core.model.graph.layout import Layout, lay_out, text_of
from dld_tui.core.model.graph.placement import MOST_LINES, STUB_RANKS
from tests.support.graphs import graph_of_links, random_graph


def boxed(graph: Graph) -> Layout:
    return lay_out(graph, lambda vertex, stubs: (len(graph.labels[vertex]) + 4, 3))


def picture(graph: Graph) -> list[str]:
    layout = lay_out(graph, lambda vertex, stubs: (len(graph.labels[vertex]) + 2, 1))
    return text_of(layout, graph.labels)


def test_a_diamond() -> None:
    graph = graph_of_links([("a", "bb"), ("a", "cc"), ("bb", "d"), ("cc", "d")])
    assert picture(graph) == [
        "    a",
        " ╭──┴───╮",
        " ▼      ▼",
        " bb     cc",
        " ╰─╮ ╭──╯",
        "   ▼ ▼",
        "    d",
    ]


def test_a_skip_beside_its_block() -> None:
    graph = graph_of_links([("x", "conv"), ("conv", "add"), ("x", "add"), ("add", "y")])
    assert picture(graph) == [
        "      x",
        "╭─────┤",
        "│     ▼",
        "│    conv",
        "╰────╮│",
        "     ▼▼",
        "     add",
        "      ▼",
        "      y",
    ]


def overlapping(layout: Layout) -> list[tuple[int, int]]:
    """Return the columns of lines that run on top of each other, by gap."""
    found = []
    for number, gap in enumerate(layout.gaps):
        for wire in gap.wires:
            for column in wire.bottoms:
                for other in gap.wires:
                    if other is wire or column != other.top:
                        continue
                    if wire.is_straight or other.is_straight or other.track >= wire.track:
                        found.append((number, column))
            for other in gap.wires:
                if other is wire or wire.is_straight or other.is_straight:
                    continue
                meet = other.left <= wire.right and wire.left <= other.right
                if meet and other.track == wire.track:
                    found.append((number, wire.left))
    return found


@pytest.mark.parametrize("seed", range(150))
def test_nothing_is_drawn_on_top_of_anything(seed: int) -> None:
    graph = random_graph(seed)
    layout = boxed(graph)
    assert overlapping(layout) == []
    for rank, boxes in enumerate(layout.ranks):
        for left, right in itertools.pairwise(boxes):
            assert left.x + left.width < right.x
        for column, _ in layout.passing[rank]:
            assert not any(box.x <= column < box.x + box.width for box in boxes)
    assert sorted(box.vertex for boxes in layout.ranks for box in boxes) == list(range(len(graph)))


@pytest.mark.parametrize("seed", range(60))
def test_every_line_arrives(seed: int) -> None:
    """Following the wires from a vertex down leads to each target that has no stub."""
    graph = random_graph(seed, cycles=False)
    layout = boxed(graph)
    for number, net in enumerate(graph.nets):
        arrived: set[int] = set()
        for gap, boxes in zip(layout.gaps, layout.ranks[1:], strict=True):
            for wire in gap.wires:
                if number == wire.net:
                    for column in wire.arrows:
                        arrived.update(b.vertex for b in boxes if b.x <= column < b.x + b.width)
        stubbed = {t for t in net.targets if number in layout.stubs.get(t, ())}
        assert set(net.targets) - stubbed <= arrived


@pytest.mark.parametrize("seed", range(20))
def test_the_same_graph_is_drawn_the_same_way(seed: int) -> None:
    first, second = picture(random_graph(seed)), picture(random_graph(seed))
    assert first == second


def test_no_line_goes_up_and_loops_end() -> None:
    graph = graph_of_links([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "d")])
    layout = boxed(graph)
    assert len(layout.ranks) == 3
    # What closes a cycle is named where it arrives.
    named = {graph.names[vertex]: nets for vertex, nets in layout.stubs.items()}
    assert named == {"b": [0], "d": [3]}


def test_a_tensor_over_many_ranks_is_named_at_its_far_users() -> None:
    links = [(f"n{at:03}", f"n{at + 1:03}") for at in range(80)]
    links += [("mask", f"n{at:03}") for at in range(5, 80, 10)]
    graph = graph_of_links(links)
    layout = boxed(graph)
    net = next(number for number, net in enumerate(graph.nets) if net.name == "mask:0")
    stubbed = {graph.names[vertex] for vertex, nets in layout.stubs.items() if net in nets}
    assert "n075" in stubbed
    assert "n005" not in stubbed
    assert layout.width < 4 * STUB_RANKS


def test_a_vertex_with_2000_inputs() -> None:
    graph = graph_of_links([(f"n{at}", "concat") for at in range(2000)])
    layout = boxed(graph)
    assert len(layout.ranks[0]) == 2000
    assert len(layout.gaps[0].wires) == MOST_LINES
    assert [len(nets) for nets in layout.stubs.values()] == [2000 - MOST_LINES]


def test_a_residual_network_is_drawn_without_crossings_and_straight() -> None:
    links, last = [], "x"
    for block in range(20):
        names = [f"{kind}{block}" for kind in ("conv", "relu", "mul", "add")]
        links += [(last, names[0]), *itertools.pairwise(names), (last, names[3])]
        last = names[3]
    layout = boxed(graph_of_links(links))
    assert layout.crossings == 0
    assert layout.width < 24


def test_tensors_leave_a_box_in_the_order_of_where_they_go() -> None:
    graph = Graph()
    top = graph.add("If")
    ends = [graph.add("Unsqueeze") for _ in range(3)]
    graph.link("x", top, (ends[0], ends[2]))
    graph.link("y", top, (ends[1],))
    layout = boxed(graph)
    (gap,) = layout.gaps
    by_net = {wire.net: wire for wire in gap.wires}
    spread, single = by_net[0], by_net[1]
    assert layout.crossings == 0
    assert (min(single.bottoms) < min(spread.bottoms)) == (single.top < spread.top)


def test_an_empty_graph_and_a_single_vertex() -> None:
    assert boxed(Graph()).height == 0
    graph = Graph()
    graph.add("only")
    assert picture(graph) == [" only"]
