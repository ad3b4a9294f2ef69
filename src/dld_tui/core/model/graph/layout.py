"""A layered drawing in cells: boxes and lines with their places, for canvas and pictures.

Where a rank has one item only, what is above and what is below are arranged independently. Deep
networks repeat a few such parts over and over, so each kind is arranged once, with more care than a
whole graph could get, and looks the same wherever it stands.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from itertools import pairwise
from typing import NamedTuple

from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.graph.crossings import order_lines
from dld_tui.core.model.graph.edge_routes import Gap, Wire, route
from dld_tui.core.model.graph.graph import Graph
from dld_tui.core.model.graph.moving import DOWN, LEFT, RIGHT, UP, Moved, move_boxes
from dld_tui.core.model.graph.placement import (
    Layers,
    linked_targets,
    make_layers,
    place_items,
    ranks_of,
)
from dld_tui.core.model.graph.rails import demand_order
from dld_tui.core.process.interpreter import collector_paused

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
    moved: Moved = field(default_factory=Moved)

    def rank_at(self, y: int) -> int:
        """Return the rank that a row is in, or whose gap below it is in."""
        return max(0, bisect_right(self.tops, y) - 1)

    def near(self, rank: int) -> list[Box]:
        """Return the boxes of a rank, and those that were moved to it."""
        return self.ranks[rank] + [b for b in self.moved.boxes if self.rank_at(b.y) == rank]


Size = Callable[[int, Sequence[int]], "tuple[int, int]"]
"""Called with a vertex and the nets that reach it by name; returns (width, height) in cells."""


def lay_out(
    graph: Graph,
    size: Size,
    *,
    order: Sequence[int] | None = None,
    moves: Mapping[int, tuple[int, int]] | None = None,
) -> Layout:
    """Return a drawing of a graph: deterministic, in ranks from top to bottom.

    Args:
        graph: The graph; it may have cycles.
        size: Tells the cells that a vertex needs; one where many lines meet gets more.
        order: An order of the vertices, if one is known.
        moves: Cells to the right and rows down by which boxes are moved by hand, by vertex.
    """
    with collector_paused():
        layout = _laid_out(graph, size, demand_order(graph) if order is None else order)
        if moves:
            move_boxes(layout, graph, moves)
        return layout


def _laid_out(graph: Graph, size: Size, order: Sequence[int]) -> Layout:
    rank = ranks_of(graph, order)
    targets = linked_targets(graph, rank)
    stubs = _stubs(graph, targets)
    layers = make_layers(graph, rank, targets, order)
    sizes = [size(vertex, stubs.get(vertex, ())) for vertex in range(len(graph))]
    widths = [
        max(width, least_width(layers, vertex)) for vertex, (width, _) in enumerate(sizes)
    ] + [1] * (len(layers.rank) - len(graph))
    left, gaps, crossings = arrange(layers, widths, GAP)
    sizes = [(width, height) for width, (_, height) in zip(widths, sizes, strict=False)]
    return _assembled(layers, sizes, left, gaps, crossings, stubs)


def least_width(layers: Layers, vertex: int) -> int:
    """Return the least width of a box at which each line has a column, none of them a corner's."""
    ports = max(len(layers.above[vertex]), len(set(layers.nets_below[vertex])))
    return max(ports + 2, min(2 * ports + 1, _APART)) if ports > 1 else 1


def _stubs(graph: Graph, targets: Sequence[Sequence[int]]) -> dict[int, list[int]]:
    """Return the nets without a line by the vertex that they should reach."""
    stubs: dict[int, list[int]] = {}
    for number, net in enumerate(graph.nets):
        if len(targets[number]) < len(net.targets):
            linked = set(targets[number])
            for target in net.targets:
                if target not in linked:
                    stubs.setdefault(target, []).append(number)
    return stubs


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
    cells: set[tuple[int, int]] = set()
    for line in layout.moved.lines:
        if (line.net, line.target) == (link.net, link.target):
            return frozenset(line.cells())
    target, source = layout.boxes[link.target], layout.boxes[link.source]
    if target is None or source is None or {*link[1:]} & layout.moved.origins.keys():
        return frozenset()

    def down(column: int, first: int, last: int) -> None:
        cells.update((column, y) for y in range(first, last + 1))

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
            cells.update((x, at) for x in range(min(wire.top, column), max(wire.top, column) + 1))
            column, end = wire.top, at
            if wire.parent_track < 0:
                break
            parent = wire.parent_track
            wire = next(other for other in wires if other.track == parent and column in other.reach)
        down(column, top, end)
        if (column, link.net) not in layout.passing[rank]:
            down(column, source.y + source.height, top - 1)
            break
        down(column, layout.tops[rank], top - 1)
    return frozenset(cells)


_Key = tuple[object, ...]


@dataclass
class _Part:
    """The ranks from one meeting point to the next, both included."""

    first: int
    items: list[int]
    """Rank by rank, in the order that they had before: their places here are local numbers."""
    nets: list[int]
    """Local numbers of nets are places here."""
    key: _Key


@dataclass
class _Arrangement:
    """What is found of a kind of part, in local numbers."""

    layers: Layers
    items: list[int]
    """For each item its place in the part, -1 for one that is new."""
    left: list[int]
    gaps: list[Gap]
    crossings: int


def arrange(layers: Layers, widths: Sequence[int], gap: int) -> tuple[list[int], list[Gap], int]:
    """Order and place the items of all ranks.

    Args:
        layers: The items; their orders are changed, and there may be other items in the chains.
        widths: Cells of each item.
        gap: Cells between two items of a rank.

    Returns:
        The left edge of each item, the lines below each rank but the last, and the number of
        crossings.
    """
    parts = _parts(layers, widths)
    often = Counter(part.key for part in parts)
    known: dict[_Key, _Arrangement] = {}
    left = [0] * len(layers.rank)
    placed: list[tuple[_Arrangement, int]] = []
    crossings, offset = 0, 0
    for number, part in enumerate(parts):
        arranged = known.get(part.key)
        if arranged is None:
            arranged = _arranged(layers, part, widths, gap, pinned=often[part.key] > 1)
            known[part.key] = arranged
        crossings += arranged.crossings
        if number:  # the first item is where the part before has put it
            offset = left[part.items[0]] - arranged.left[arranged.layers.ranks[0][0]]
        _put(layers, part, arranged)
        left += [0] * (len(layers.rank) - len(left))
        for rank, order in enumerate(arranged.layers.ranks, part.first):
            for item, at in zip(layers.ranks[rank], order, strict=True):
                left[item] = arranged.left[at] + offset
        placed.append((arranged, offset))
    first = min([left[item] for items in layers.ranks for item in items], default=0)
    if first:
        left = [at - first for at in left]
    gaps = [
        _moved(lines, part.nets, offset - first)
        for part, (arranged, offset) in zip(parts, placed, strict=True)
        for lines in arranged.gaps
    ]
    return left, gaps, crossings


def _put(layers: Layers, part: _Part, arranged: _Arrangement) -> None:
    """Give the ranks of a part the orders that were found, and new items where there are some."""
    items = [part.items[at] if at >= 0 else -1 for at in arranged.items]
    if -1 in items:
        mine = arranged.layers
        for at, item in enumerate(items):
            if item < 0:
                items[at] = len(layers.rank)
                layers.rank.append(part.first + mine.rank[at])
                layers.net.append(part.nets[mine.net[at]])
                layers.below.append([])
                layers.above.append([])
                layers.nets_below.append([])
        last = len(mine.ranks) - 1
        for at, item in enumerate(items):
            if mine.rank[at]:
                layers.above[item] = [items[other] for other in mine.above[at]]
            if mine.rank[at] < last:
                layers.below[item] = [items[other] for other in mine.below[at]]
                layers.nets_below[item] = [part.nets[net] for net in mine.nets_below[at]]
    for rank, order in enumerate(arranged.layers.ranks, part.first):
        layers.ranks[rank] = [items[at] for at in order]


def _parts(layers: Layers, widths: Sequence[int]) -> list[_Part]:
    last = len(layers.ranks) - 1
    if last < 0:
        return []
    meeting = [rank for rank in range(1, last) if len(layers.ranks[rank]) == 1]
    bounds = [0, *meeting, last] if last else [0, 0]
    return [_part(layers, widths, first, end) for first, end in pairwise(bounds)]


def _part(layers: Layers, widths: Sequence[int], first: int, last: int) -> _Part:
    ranks = layers.ranks[first : last + 1]
    items = [item for rank in ranks for item in rank]
    local = {item: at for at, item in enumerate(items)}
    nets: dict[int, int] = {-1: -1}
    net, below, nets_below = layers.net, layers.below, layers.nets_below
    key: list[object] = [tuple(map(len, ranks))]
    linked = len(items) - len(ranks[-1])
    for item in items[:linked]:
        numbers = [nets.setdefault(n, len(nets) - 1) for n in (net[item], *nets_below[item])]
        key.append((widths[item], *numbers, *[local[other] for other in below[item]]))
    for item in items[linked:]:
        key.append((widths[item], nets.setdefault(net[item], len(nets) - 1)))
    return _Part(first, items, list(nets)[1:], tuple(key))


def _arranged(
    layers: Layers, part: _Part, widths: Sequence[int], gap: int, *, pinned: bool
) -> _Arrangement:
    mine, items, crossings = order_lines(_local(layers, part))
    own = [widths[part.items[at]] if at >= 0 else 1 for at in items]
    left = place_items(mine, own, gap)
    ends = mine.ranks[0], mine.ranks[-1]
    if pinned and len(ends[0]) == len(ends[1]) == 1:
        (top,), (bottom,) = ends
        left[bottom] = left[top] + (own[top] - 1) // 2 - (own[bottom] - 1) // 2
    return _Arrangement(mine, items, left, route(mine, left, own), crossings)


def _local(layers: Layers, part: _Part) -> Layers:
    """Return the layers of a part, its items and nets numbered from 0."""
    local = {item: at for at, item in enumerate(part.items)}
    nets = {number: at for at, number in enumerate(part.nets)} | {-1: -1}
    first = layers.rank[part.items[0]]
    last = layers.rank[part.items[-1]]
    mine = Layers(
        [[] for _ in range(last - first + 1)],
        [layers.rank[item] - first for item in part.items],
        [nets[layers.net[item]] for item in part.items],
        [[] for _ in part.items],
        [[] for _ in part.items],
        [[] for _ in part.items],
    )
    for at, item in enumerate(part.items):
        mine.ranks[mine.rank[at]].append(at)
        if layers.rank[item] < last:
            mine.below[at] = [local[other] for other in layers.below[item]]
            mine.nets_below[at] = [nets[number] for number in layers.nets_below[item]]
        if layers.rank[item] > first:
            mine.above[at] = [local[other] for other in layers.above[item]]
    return mine


def _moved(lines: Gap, nets: Sequence[int], offset: int) -> Gap:
    """Return the lines of a gap with nets by their real numbers, and further to the right."""
    wires = [wire.shifted(nets[wire.net], offset) for wire in lines.wires]
    return Gap(wires, lines.tracks)


_LINES = " ╵╷│╴╯╮┤╶╰╭├─┴┬┼"
"""By the sum of the sides that a cell is linked to."""
_ARROW = "▼"


class LineRow:
    """The lines in one row: what each column is linked to, and by which net."""

    def __init__(self) -> None:
        self.links: dict[int, int] = {}
        self.arrows: set[int] = set()
        self.nets: dict[int, int] = {}

    def glyph(self, column: int) -> str:
        """Return the character of a column."""
        return _ARROW if column in self.arrows else _LINES[self.links.get(column, 0)]

    def add(self, column: int, sides: int, net: int) -> None:
        """Link a column to more sides; where two nets cross, the one goes under the upright one."""
        present = self.links.get(column, 0)
        if present and self.nets[column] != net:
            if present == UP | DOWN:
                return
            present = 0
        self.links[column] = present | sides
        self.nets[column] = net


def line_row(layout: Layout, y: int, first: int, last: int) -> LineRow:
    """Return the lines of a row between two columns, both included; boxes hide lines below them."""
    row = LineRow()
    rank = layout.rank_at(y)
    inside = y - layout.tops[rank]
    height = layout.heights[rank]
    if inside < height:
        for column, net in layout.passing[rank]:
            if first <= column <= last:
                row.add(column, UP | DOWN, net)
        _lines_to_low_boxes(layout, rank, y, row)
    elif rank < len(layout.gaps):
        _gap_row(layout.gaps[rank], inside - height, first, last, row)
    for column, sides, net in layout.moved.rows.get(y, ()):
        if first <= column <= last:
            row.add(column, sides, net)
    row.arrows.update(layout.moved.arrows.get(y, ()))
    return row


def _lines_to_low_boxes(layout: Layout, rank: int, y: int, row: LineRow) -> None:
    """Add the lines above and below boxes that are less high than their rank."""
    for box in layout.ranks[rank]:
        if box.y <= y < box.y + box.height or box.height == layout.heights[rank]:
            continue
        gap = rank - 1 if y < box.y else rank
        if not 0 <= gap < len(layout.gaps):
            continue
        for wire in layout.gaps[gap].wires:
            if y >= box.y and wire.parent_track >= 0:
                continue
            for column in wire.bottoms if y < box.y else (wire.top,):
                if box.x <= column < box.x + box.width:
                    row.add(column, UP | DOWN, wire.net)


def _gap_row(gap: Gap, inside: int, first: int, last: int, row: LineRow) -> None:
    for wire in gap.wires:
        if wire.left > last or wire.right < first:
            continue
        if wire.is_straight:
            row.add(wire.left, UP | DOWN, wire.net)
        elif inside < wire.track:
            if inside > wire.parent_track:
                row.add(wire.top, UP | DOWN, wire.net)
            elif inside == wire.parent_track:
                row.add(wire.top, DOWN, wire.net)
        elif inside > wire.track:
            for column in wire.bottoms:
                row.add(column, UP | DOWN, wire.net)
        else:
            _track_row(wire, first, last, row)
    if inside == gap.tracks:
        row.arrows.update(column for wire in gap.wires for column in wire.arrows)


def _track_row(wire: Wire, first: int, last: int, row: LineRow) -> None:
    left, right = wire.left, wire.right
    for column in range(max(left, first), min(right, last) + 1):
        sides = LEFT * (column > left) + RIGHT * (column < right)
        sides += UP * (column == wire.top) + DOWN * (column in wire.bottoms)
        row.add(column, sides, wire.net)


def boxes_in_row(layout: Layout, y: int, first: int, last: int) -> list[Box]:
    """Return the boxes that a row between two columns shows a part of.

    Those that were moved are last: they hide others.
    """
    rank = layout.rank_at(y)
    arranged = layout.ranks[rank] if y - layout.tops[rank] < layout.heights[rank] else []
    return [
        box
        for box in (*arranged, *layout.moved.boxes)
        if box.x <= last and box.x + box.width > first and box.y <= y < box.y + box.height
    ]


def text_of(layout: Layout, labels: Sequence[str]) -> list[str]:
    """Return the whole drawing as lines of text, every box with its label in the middle row.

    Args:
        layout: The drawing.
        labels: The text of each vertex: one cell a character.
    """
    return [_text_row(layout, labels, y) for y in range(layout.height)]


def _text_row(layout: Layout, labels: Sequence[str], y: int) -> str:
    row = line_row(layout, y, 0, layout.width)
    cells = [row.glyph(column) for column in range(layout.width)]
    for box in boxes_in_row(layout, y, 0, layout.width):
        cells[box.x : box.x + box.width] = box_row(box, y, labels[box.vertex])
    return "".join(cells).rstrip()


def box_row(box: Box, y: int, label: str) -> str:
    """Return one row of a box, padded to its width."""
    if box.height < 3:
        return label[: box.width].center(box.width)
    inside = box.width - 2
    if y == box.y:
        return f"┌{'─' * inside}┐"
    if y == box.y + box.height - 1:
        return f"└{'─' * inside}┘"
    text = label[:inside] if y == box.y + 1 else ""
    return f"│{text.center(inside)}│"
