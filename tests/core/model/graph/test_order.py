from __future__ import annotations

import pytest

from dld_tui.core.model.graph.rails import demand_order, depths
from tests.support.graphs import graph_of_links, random_graph


def names_in_order(links: list[tuple[str, str]]) -> list[str]:
    graph = graph_of_links(links)
    return [graph.names[vertex] for vertex in demand_order(graph)]


@pytest.mark.parametrize("seed", range(60))
def test_everything_comes_once_and_after_what_it_needs(seed: int) -> None:
    graph = random_graph(seed, cycles=False)
    order = demand_order(graph)
    row = {vertex: at for at, vertex in enumerate(order)}
    assert sorted(order) == list(range(len(graph)))
    assert all(row[s] < row[v] for v in range(len(graph)) for s in graph.sources[v])


@pytest.mark.parametrize("seed", range(60))
def test_cycles_and_loops_are_ordered_too(seed: int) -> None:
    graph = random_graph(seed)
    assert sorted(demand_order(graph)) == list(range(len(graph)))


def test_an_input_stands_right_before_its_user() -> None:
    links = [("a", "b"), ("b", "c"), ("c", "d"), ("late", "d"), ("d", "e")]
    assert names_in_order(links) == ["a", "b", "c", "late", "d", "e"]


def test_an_output_stands_right_after_its_producer() -> None:
    links = [("a", "b"), ("b", "out1"), ("b", "c"), ("c", "d"), ("d", "out2")]
    assert names_in_order(links) == ["a", "b", "out1", "c", "d", "out2"]


def test_the_deepest_operand_comes_first() -> None:
    links = [("x", "short"), ("short", "add"), ("x", "l1"), ("l1", "l2"), ("l2", "add")]
    assert names_in_order(links) == ["x", "l1", "l2", "short", "add"]


def test_depth_is_the_longest_way_from_an_input() -> None:
    graph = graph_of_links([("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")])
    assert depths(graph) == [0, 1, 2, 3]


def test_a_deep_chain_needs_no_recursion() -> None:
    links = [(f"n{at}", f"n{at + 1}") for at in range(5000)]
    assert names_in_order(links)[-1] == "n5000"
