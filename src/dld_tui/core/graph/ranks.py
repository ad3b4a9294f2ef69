"""Ranks: which row of a layered drawing each vertex is in, and the chains that lines run along."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dld_tui.core.graph.graph import Graph

STUB_RANKS = 24
STUB_TARGETS = 4
"""A tensor with so many users that reaches over so many ranks is named where it is used."""
MOST_LINES = 24
"""Lines that are drawn to one vertex, a row each at worst; what else it takes is named there."""


def ranks_of(graph: Graph, order: Sequence[int]) -> list[int]:
    """Return the rank of each vertex, from 0: below all it takes tensors from.

    A vertex is moved down to its first user where that makes lines shorter in sum, so that inputs
    and short side branches stand beside what uses them. A link that points upwards in `order`
    closes a cycle: it does not count here.

    Args:
        order: Its vertices, as :func:`~dld_tui.core.graph.lanes.demand_order` returns them.
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
    The same holds for what goes into a vertex that takes hundreds of tensors.
    """
    found = []
    lines = [0] * len(graph)
    for net in graph.nets:
        start = rank[net.source]
        targets = [
            target for target in net.targets if rank[target] > start and lines[target] < MOST_LINES
        ]
        if len(net.targets) >= STUB_TARGETS:
            targets = [target for target in targets if rank[target] - start <= STUB_RANKS]
        for target in targets:
            lines[target] += 1
        found.append(tuple(targets))
    return found


@dataclass
class Layers:
    """Items by rank: an item is a vertex (same number) or one link of a chain (numbers above).

    A tensor that passes ranks has one chain, however many users it has.
    """

    ranks: list[list[int]]
    """The items of each rank, from left to right."""
    rank: list[int]
    """The rank of each item."""
    net: list[int]
    """The net of each chain item; -1 for a vertex."""
    below: list[list[int]]
    """Items of the next rank that each item is linked to."""
    above: list[list[int]]
    """Items of the rank before that each item is linked to."""
    nets_below: list[list[int]] = field(default_factory=list)
    """The net of each link in `below`."""

    def is_chain(self, item: int) -> bool:
        """Return whether an item is a part of a line, not a vertex."""
        return self.net[item] >= 0


def make_layers(
    graph: Graph, rank: Sequence[int], targets: Sequence[Sequence[int]], order: Sequence[int]
) -> Layers:
    """Return the layers, each in the order of its vertices' rows.

    Args:
        rank: The rank of each vertex.
        targets: For each net, the targets that are linked by a line.
        order: The vertices in the order of their rows.
    """
    count = len(graph)
    layers = Layers(
        [[] for _ in range(max(rank, default=-1) + 1)],
        list(rank),
        [-1] * count,
        [[] for _ in range(count)],
        [[] for _ in range(count)],
        [[] for _ in range(count)],
    )
    for vertex in order:
        layers.ranks[rank[vertex]].append(vertex)
        for number in graph.outputs[vertex]:
            _add_net(layers, number, vertex, sorted(targets[number], key=rank.__getitem__))
    return layers


def _add_net(layers: Layers, number: int, source: int, targets: Sequence[int]) -> None:
    """Link a source to its targets, the nearest first."""
    end = source
    for target in targets:
        while layers.rank[end] + 1 < layers.rank[target]:
            end = _extend(layers, number, end)
        _link(layers, number, end, target)


def _extend(layers: Layers, number: int, end: int) -> int:
    item = len(layers.rank)
    layers.rank.append(layers.rank[end] + 1)
    layers.net.append(number)
    layers.below.append([])
    layers.above.append([])
    layers.nets_below.append([])
    layers.ranks[layers.rank[item]].append(item)
    _link(layers, number, end, item)
    return item


def _link(layers: Layers, number: int, upper: int, lower: int) -> None:
    layers.below[upper].append(lower)
    layers.nets_below[upper].append(number)
    layers.above[lower].append(upper)
