from __future__ import annotations

from dld_tui.core.model.graph.folding import HUB_DEGREE, Subgraph, between, neighbourhood
from dld_tui.core.model.graph.graph import Graph
from tests.support.graphs import graph_of_links

CHAIN = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("b", "side"), ("side", "d")]


def names(graph: Graph, part: Subgraph) -> set[str]:
    return {graph.names[vertex] for vertex in part.vertices}


def at(graph: Graph, name: str) -> int:
    return graph.names.index(name)


def test_hops_go_both_ways() -> None:
    graph = graph_of_links(CHAIN)
    assert names(graph, neighbourhood(graph, at(graph, "c"), 1)) == {"b", "c", "d"}
    assert names(graph, neighbourhood(graph, at(graph, "c"), 2)) == {
        "a", "b", "c", "d", "e", "side",
    }  # fmt: skip


def test_links_that_are_cut_are_counted() -> None:
    graph = graph_of_links(CHAIN)
    part = neighbourhood(graph, at(graph, "c"), 1)
    place = {graph.names[vertex]: n for n, vertex in enumerate(part.vertices)}
    assert part.cut_above[place["b"]] == 1
    assert part.cut_below[place["b"]] == 1  # side
    assert part.cut_above[place["d"]] == 1
    assert part.cut_below[place["c"]] == 0


def test_hops_do_not_go_through_hubs() -> None:
    links = [("hub", f"user{n}") for n in range(HUB_DEGREE + 2)]
    links += [("user0", "next")]
    graph = graph_of_links(links)
    part = neighbourhood(graph, at(graph, "next"), 3)
    assert names(graph, part) == {"next", "user0", "hub"}
    # Asked for itself, a hub shows its neighbours.
    assert len(neighbourhood(graph, at(graph, "hub"), 1).vertices) == HUB_DEGREE + 3


def test_a_ring_that_is_too_large_is_left_out() -> None:
    links = [("m", f"p{n}") for n in range(6)]
    links += [(f"p{n}", f"q{n}x{k}") for n in range(6) for k in range(7)]
    graph = graph_of_links(links)
    assert len(neighbourhood(graph, at(graph, "m"), 2, most=20).vertices) == 7


def test_everything_on_the_ways_between_two() -> None:
    graph = graph_of_links(CHAIN)
    expected = {"b", "c", "side", "d"}
    assert names(graph, between(graph, at(graph, "b"), at(graph, "d"))) == expected
    assert names(graph, between(graph, at(graph, "d"), at(graph, "b"))) == expected


def test_two_that_are_not_linked() -> None:
    graph = graph_of_links([("a", "b"), ("c", "d")])
    assert names(graph, between(graph, at(graph, "b"), at(graph, "c"))) == {"b", "c"}
