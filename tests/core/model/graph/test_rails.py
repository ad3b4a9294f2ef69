from __future__ import annotations

import pytest

from dld_tui.core.model.graph.graph import Graph
from dld_tui.core.model.graph.rails import (
    HUB_ROWS,
    Rails,
    demand_order,
    depths,
    lay_rails,
    rail_cells,
)
from tests.support.graphs import graph_of_links, random_graph


def live_nets(graph: Graph, rails: Rails, row: int) -> int:
    """Return how many tensors pass from one row to the next, hubs aside."""
    return sum(
        rails.rows[net.source] <= row < max(rails.rows[target] for target in net.targets)
        for number, net in enumerate(graph.nets)
        if number not in rails.hubs
    )


@pytest.mark.parametrize("seed", range(12))
def test_there_are_as_many_lines_between_two_rows_as_tensors(seed: int) -> None:
    graph = random_graph(seed)
    rails = lay_rails(graph, demand_order(graph))
    for row in range(len(graph)):
        assert bin(rails.below[row]).count("1") == live_nets(graph, rails, row)
        if row:
            assert rails.above[row] == rails.below[row - 1]
        assert rails.columns[row] < rails.width


@pytest.mark.parametrize("seed", range(12))
def test_every_row_draws_its_vertex_once(seed: int) -> None:
    graph = random_graph(seed)
    rails = lay_rails(graph, demand_order(graph))
    for row in range(len(graph)):
        cells = rail_cells(rails, row, 0, rails.width)
        assert cells.count("o") == 1
        assert len(cells) == 2 * rails.width


def test_a_tensor_that_feeds_everything_has_no_rail() -> None:
    links = [(f"n{at:04}", f"n{at + 1:04}") for at in range(HUB_ROWS * 2)]
    links += [("mask", f"n{at:04}") for at in range(10, HUB_ROWS * 2, 40)]
    graph = graph_of_links(links)
    rails = lay_rails(graph, demand_order(graph))
    hub = next(number for number, net in enumerate(graph.nets) if net.name == "mask:0")
    assert rails.hubs == {hub}
    assert rails.width == 2  # the chain, and the mask beside the row it stands in
    used = graph.names.index("n0050")
    assert rails.named_inputs(graph, rails.rows[used]) == [hub]


@pytest.mark.parametrize("order", ["abcd", "dcba", "cadb", "bdac"])
def test_depth_is_that_of_the_longest_way_in_any_order_of_the_file(order: str) -> None:
    links = [("a", "b"), ("b", "c"), ("a", "c"), ("c", "d"), ("a", "d")]
    assert depths(graph_of_links(links, order)) == ["abcd".index(name) for name in order]


def names_in_order(links: list[tuple[str, str]]) -> list[str]:
    graph = graph_of_links(links)
    return [graph.names[vertex] for vertex in demand_order(graph)]


@pytest.mark.parametrize("seed", range(12))
def test_everything_comes_once_and_after_what_it_needs(seed: int) -> None:
    graph = random_graph(seed, cycles=False)
    order = demand_order(graph)
    row = {vertex: at for at, vertex in enumerate(order)}
    assert sorted(order) == list(range(len(graph)))
    assert all(row[s] < row[v] for v in range(len(graph)) for s in graph.sources[v])


@pytest.mark.parametrize("seed", range(12))
def test_cycles_and_loops_are_ordered_too(seed: int) -> None:
    graph = random_graph(seed)
    assert sorted(demand_order(graph)) == list(range(len(graph)))


def test_a_deep_chain_needs_no_recursion() -> None:
    links = [(f"n{at}", f"n{at + 1}") for at in range(5000)]
    assert names_in_order(links)[-1] == "n5000"
