"""Ranks: which row of a layered drawing each vertex is in, and which links are drawn as stubs."""

from __future__ import annotations

from collections.abc import Sequence

from dld_tui.core.graph.graph import Graph

STUB_RANKS = 24
STUB_TARGETS = 4
"""A tensor with so many users that reaches over so many ranks is named where it is used."""


def ranks_of(graph: Graph, order: Sequence[int]) -> list[int]:
    """Return the rank of each vertex, from 0: below all it takes tensors from.

    A vertex is moved down to its first user where that makes lines shorter in sum, so that inputs
    and short side branches stand beside what uses them. A link that points upwards in `order`
    closes a cycle: it does not count here.

    Args:
        graph: The graph.
        order: Its vertices, as :func:`~dld_tui.core.graph.order.demand_order` returns them.
    """
    row = [0] * len(graph)
    for at, vertex in enumerate(order):
        row[vertex] = at
    rank = [0] * len(graph)
    for vertex in order:
        for source in graph.sources[vertex]:
            if row[source] < row[vertex] and rank[source] >= rank[vertex]:
                rank[vertex] = rank[source] + 1
    for vertex in reversed(order):
        below = [rank[target] for target in graph.targets[vertex] if row[target] > row[vertex]]
        if not below:
            continue
        lowest = min(below) - 1
        if lowest > rank[vertex] and _longer(graph, rank, vertex, lowest) < len(
            graph.outputs[vertex]
        ):
            rank[vertex] = lowest
    return rank


def _longer(graph: Graph, rank: Sequence[int], vertex: int, lowest: int) -> int:
    """Return how many lines get longer when a vertex moves down to a rank."""
    lines = 0
    for number in graph.inputs[vertex]:
        net = graph.nets[number]
        if len(net.targets) >= STUB_TARGETS and lowest - rank[net.source] > STUB_RANKS:
            continue  # a stub
        reach = max([rank[other] for other in net.targets if other != vertex], default=-1)
        lines += reach < lowest
    return lines


def linked_targets(graph: Graph, rank: Sequence[int]) -> list[tuple[int, ...]]:
    """Return for each net the targets that a line is drawn to; the others get its name instead.

    Lines only go down. Those over many ranks are drawn for few targets only: a mask that feeds
    every layer would cost more cells than all other lines together, and nobody could follow it.
    """
    found = []
    for net in graph.nets:
        start = rank[net.source]
        targets = [target for target in net.targets if rank[target] > start]
        if len(net.targets) >= STUB_TARGETS:
            targets = [target for target in targets if rank[target] - start <= STUB_RANKS]
        found.append(tuple(targets))
    return found
