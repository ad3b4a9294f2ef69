"""The links of a graph, each from one vertex to another, and the cells that one is drawn in."""

from __future__ import annotations

from typing import NamedTuple

from dld_tui.core.graph.graph import Graph
from dld_tui.core.graph.layout import Layout


class Link(NamedTuple):
    """One use of a tensor."""

    net: int
    source: int
    """The vertex that makes it."""
    target: int
    """The vertex that takes it."""


def links_at(graph: Graph, vertex: int) -> list[Link]:
    """Return the links of a vertex: those that lead away from it, then those that lead to it."""
    away = [Link(n, vertex, target) for n in graph.outputs[vertex] for target in graph.nets[n][2]]
    return away + [Link(n, graph.nets[n].source, vertex) for n in graph.inputs[vertex]]


def cells_of(layout: Layout, link: Link) -> frozenset[tuple[int, int]]:
    """Return the cells (column, row) of the line of a link; none where it is named instead."""
    found: set[tuple[int, int]] = set()
    target, source = layout.boxes[link.target], layout.boxes[link.source]
    if target is None or source is None:
        return frozenset()

    def down(column: int, first: int, last: int) -> None:
        found.update((column, y) for y in range(first, last + 1))

    below = layout.rank_at(target.y)
    wires = [w for w in layout.gaps[below - 1].wires if w.net == link.net] if below else []
    inside = range(target.x, target.x + target.width)
    column = next((at for wire in wires for at in wire.arrows if at in inside), -1)
    down(column, layout.tops[below], target.y - 1)
    for rank in range(below - 1, -1, -1):
        top = layout.tops[rank] + layout.heights[rank]
        wires = [wire for wire in layout.gaps[rank].wires if wire.net == link.net]
        wire = next((wire for wire in wires if column in wire.bottoms), None)
        if wire is None:
            return frozenset()
        end = layout.tops[rank + 1] - 1
        while True:
            at = top + wire.track
            down(column, at, end)
            found.update((x, at) for x in range(min(wire.top, column), max(wire.top, column) + 1))
            column, end = wire.top, at
            if wire.begins < 0:
                break
            begins = wire.begins
            wire = next(other for other in wires if other.track == begins and column in other.reach)
        down(column, top, end)
        if (column, link.net) not in layout.passing[rank]:
            down(column, source.y + source.height, top - 1)
            break
        down(column, layout.tops[rank], top - 1)
    return frozenset(found)
