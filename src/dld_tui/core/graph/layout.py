"""A layered drawing in cells: boxes and lines with their places, for canvas and pictures."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dld_tui.core.graph.graph import Graph
from dld_tui.core.graph.lanes import demand_order
from dld_tui.core.graph.positions import shift_items
from dld_tui.core.graph.ranks import Layers, linked_targets, make_layers, ranks_of
from dld_tui.core.graph.routes import Gap, route
from dld_tui.core.graph.segments import arrange
from dld_tui.core.machine.collector import collector_paused

GAP = 3
"""Cells between two things side by side."""
_APART = 9
"""Cells of a box up to which its lines are given a blank between them."""


@dataclass(frozen=True, slots=True)
class Box:
    """Where a vertex is drawn."""

    vertex: int
    x: int
    y: int
    width: int
    height: int


@dataclass
class Layout:
    """Places in cells, from 0 at the top left."""

    width: int
    height: int
    boxes: list[Box | None]
    """By vertex."""
    ranks: list[list[Box]]
    """From top to bottom, each from left to right."""
    tops: list[int]
    """The first row of each rank."""
    heights: list[int]
    """The rows of each rank."""
    passing: list[list[tuple[int, int]]]
    """Lines that pass each rank: (column, net)."""
    gaps: list[Gap]
    """The lines below each rank but the last."""
    crossings: int
    stubs: dict[int, list[int]] = field(default_factory=dict)
    """Nets that reach a vertex by name, without a line."""

    def rank_at(self, y: int) -> int:
        """Return the rank that a row is in, or whose gap below it is in."""
        return max(0, bisect_right(self.tops, y) - 1)


Size = Callable[[int, Sequence[int]], "tuple[int, int]"]
"""Called with a vertex and the nets that reach it by name; returns (width, height) in cells."""


def lay_out(
    graph: Graph,
    size: Size,
    *,
    order: Sequence[int] | None = None,
    shifts: Mapping[int, int] | None = None,
) -> Layout:
    """Return a drawing of a graph: deterministic, in ranks from top to bottom.

    Args:
        graph: The graph; it may have cycles.
        size: Tells the cells that a vertex needs; one where many lines meet gets more.
        order: An order of the vertices, if one is known.
        shifts: Cells by which vertices are moved to the right, negative ones to the left.
    """
    with collector_paused():
        return _laid_out(graph, size, demand_order(graph) if order is None else order, shifts or {})


def _laid_out(graph: Graph, size: Size, order: Sequence[int], shifts: Mapping[int, int]) -> Layout:
    rank = ranks_of(graph, order)
    targets = linked_targets(graph, rank)
    stubs = _stubs(graph, targets)
    layers = make_layers(graph, rank, targets, order)
    sizes = [size(vertex, stubs.get(vertex, ())) for vertex in range(len(graph))]
    widths = [
        max(width, least_width(layers, vertex)) for vertex, (width, _) in enumerate(sizes)
    ] + [1] * (len(layers.rank) - len(graph))
    left, gaps, crossings = arrange(layers, widths, GAP, routed=not shifts)
    if shifts:
        widths += [1] * (len(left) - len(widths))
        shift_items(layers, left, widths, GAP, shifts)
        gaps = route(layers, left, widths)
    sizes = [(width, height) for width, (_, height) in zip(widths, sizes, strict=False)]
    return _assembled(layers, sizes, left, gaps, crossings, stubs)


def least_width(layers: Layers, vertex: int) -> int:
    """Return the least width of a box at which each line has a column, none of them a corner's."""
    ports = max(len(layers.above[vertex]), len(set(layers.nets_below[vertex])))
    return max(ports + 2, min(2 * ports + 1, _APART)) if ports > 1 else 1


def _stubs(graph: Graph, targets: Sequence[Sequence[int]]) -> dict[int, list[int]]:
    """Return the nets without a line by the vertex that they should reach."""
    found: dict[int, list[int]] = {}
    for number, net in enumerate(graph.nets):
        if len(targets[number]) < len(net.targets):
            linked = set(targets[number])
            for target in net.targets:
                if target not in linked:
                    found.setdefault(target, []).append(number)
    return found


def _assembled(
    layers: Layers,
    sizes: Sequence[tuple[int, int]],
    left: Sequence[int],
    gaps: list[Gap],
    crossings: int,
    stubs: dict[int, list[int]],
) -> Layout:
    boxes: list[Box | None] = [None] * len(sizes)
    layout = Layout(0, 0, boxes, [], [], [], [], gaps, crossings, stubs)
    y = 0
    for rank, items in enumerate(layers.ranks):
        height = max((sizes[item][1] for item in items if not layers.is_chain(item)), default=1)
        row = []
        for item in items:
            if layers.is_chain(item):
                continue
            width, own = sizes[item]
            box = Box(item, left[item], y + (height - own) // 2, width, own)
            boxes[item] = box
            row.append(box)
            layout.width = max(layout.width, box.x + width)
        passing = [(left[i], layers.net[i]) for i in items if layers.is_chain(i)]
        layout.width = max([layout.width, *(column + 1 for column, _ in passing)])
        if rank < len(gaps):
            layout.width = max([layout.width, *(wire.right + 1 for wire in gaps[rank].wires)])
        layout.ranks.append(row)
        layout.tops.append(y)
        layout.heights.append(height)
        layout.passing.append(passing)
        y += height
        if rank < len(gaps) and gaps[rank].wires:
            y += gaps[rank].tracks + 1
    layout.height = y
    return layout


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
