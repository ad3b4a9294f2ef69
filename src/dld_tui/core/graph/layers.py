"""The layers of a drawing: vertices by rank, and in between the chains that lines run along."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dld_tui.core.graph.graph import Graph


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
        graph: The graph.
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
