"""Where each vertex of a layered drawing is: its rank (the row), and its place in the row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from operator import mul

from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.graph.graph import Graph

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
        order: Its vertices, as :func:`~dld_tui.core.model.graph.rails.demand_order` returns them.
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
    every layer would cost more cells than all other lines, and would be unreadable.
    The same holds for the inputs of a vertex that takes hundreds of tensors.
    """
    linked = []
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
        linked.append(tuple(targets))
    return linked


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


_BOTH_BOXES, _BOTH_CHAIN, _MIXED = 200.0, 20.0, 1.0
"""How strongly a link wants to be straight. With equal weights every block drifts sideways."""
_FAR = 0.25
"""The share of that for links to the rank that is placed after."""
_STRENGTHS = ((_BOTH_BOXES, _MIXED), (_MIXED, _BOTH_CHAIN))
"""By whether an item is part of a line, and whether the other one is."""
_FAR_AWAY = 1 << 60
_SWEEPS, _SWEEPS_IF_LARGE, _LARGE = 6, 4, 10_000
"""How often to go down or up; less where there are so many items."""


def place_items(layers: Layers, widths: Sequence[int], gap: int) -> list[int]:
    """Return the left edge of each item, so that links are straight and items do not touch.

    Rank by rank, down and up, each item wants to be under (over) its neighbours; keeping the order
    and the distances that is a weighted isotonic regression, solved exactly by pooling adjacent
    violators (Ayer et al. 1955).

    Args:
        layers: Items in their order.
        widths: Cells of each item.
        gap: Cells between two items of a rank.
    """
    middle = [0.0] * len(layers.rank)
    for items in layers.ranks:
        for item, offset in zip(items, _offsets(items, widths, gap), strict=True):
            middle[item] = offset
    down, up = _rows(layers, widths, gap)
    for sweep in range(_SWEEPS if len(middle) <= _LARGE else _SWEEPS_IF_LARGE):
        for row in up if sweep % 2 else down:
            _place(row, middle)
    left = [at - width / 2 for at, width in zip(middle, widths, strict=True)]
    placed = _whole(layers, widths, gap, left)
    _straighten(layers, widths, gap, placed)
    return placed


@dataclass(slots=True)
class _Row:
    """A rank, and where its items are pulled to when the one before it has been placed."""

    items: list[int]
    offsets: list[float]
    """The middles of the items when they stand as close as they may."""
    pulls: list[tuple[tuple[int, ...], tuple[float, ...]]]
    """For each item others and their shares: it wants to be at the mean of their middles."""
    weights: list[float]
    """How much each item wants it."""


def _offsets(items: Sequence[int], widths: Sequence[int], gap: int) -> list[float]:
    offsets = []
    at = 0.0
    for item in items:
        offsets.append(at + widths[item] / 2)
        at += widths[item] + gap
    return offsets


_Shares = tuple[tuple[float, ...], float]


def _rows(layers: Layers, widths: Sequence[int], gap: int) -> tuple[list[_Row], list[_Row]]:
    """Return the ranks for going down, and for going up: that from the last one."""
    is_chain = [net >= 0 for net in layers.net]
    down, up = [], []
    for items in layers.ranks:
        offsets = _offsets(items, widths, gap)
        falling, rising = _Row(items, offsets, [], []), _Row(items, offsets, [], [])
        for item in items:
            strengths = _STRENGTHS[is_chain[item]]
            above, below = layers.above[item], layers.below[item]
            others = (*above, *below)
            if not others:  # it stays where it is
                for row in (falling, rising):
                    row.pulls.append(((item,), (1.0,)))
                    row.weights.append(0.01)
                continue
            shares = _shares([strengths[is_chain[other]] for other in others], len(above))
            falling.pulls.append((others, shares[0][0]))
            falling.weights.append(shares[0][1])
            rising.pulls.append((others, shares[1][0]))
            rising.weights.append(shares[1][1])
        down.append(falling)
        up.append(rising)
    return down, up[::-1]


def _shares(strengths: Sequence[float], above: int) -> tuple[_Shares, _Shares]:
    """Return the share of each link and their weight, for going down and for going up."""
    shares = []
    for factors in ((1.0, _FAR), (_FAR, 1.0)):
        own = [strength * factors[at >= above] for at, strength in enumerate(strengths)]
        weight = sum(own)
        shares.append((tuple(strength / weight for strength in own), weight))
    return shares[0], shares[1]


def _place(row: _Row, middle: list[float]) -> None:
    """Move the items of a rank to where they are pulled, keeping the order and the distances."""
    # Less the widths before it, each item must be no further left than the one before.
    wanted = [
        sum(map(mul, shares, [middle[at] for at in others])) - offset
        for (others, shares), offset in zip(row.pulls, row.offsets, strict=True)
    ]
    if wanted != sorted(wanted):
        wanted = _pooled(wanted, row.weights)
    for item, at, offset in zip(row.items, wanted, row.offsets, strict=True):
        middle[item] = at + offset


def _pooled(wanted: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Return the numbers nearest to the wanted ones none of which is below the one before."""
    sums: list[float] = []  # of blocks of items that share a number
    totals: list[float] = []
    counts: list[int] = []
    for at, weight in zip(wanted, weights, strict=True):
        pulled, count = at * weight, 1
        while sums and sums[-1] * weight > pulled * totals[-1]:
            pulled += sums.pop()
            weight += totals.pop()
            count += counts.pop()
        sums.append(pulled)
        totals.append(weight)
        counts.append(count)
    pooled: list[float] = []
    for pulled, weight, count in zip(sums, totals, counts, strict=True):
        pooled += [pulled / weight] * count
    return pooled


def _whole(layers: Layers, widths: Sequence[int], gap: int, left: Sequence[float]) -> list[int]:
    """Return whole cells from 0, rounding so that the order and distances hold."""
    first = min(left, default=0.0)
    cells = [0] * len(left)
    for items in layers.ranks:
        free = 0
        for item in items:
            # Middles are rounded, not edges: boxes of different widths stay centred on each other.
            half = (widths[item] - 1) // 2
            middle = round(left[item] - first + widths[item] / 2 - 0.5)
            cells[item] = max(free, middle - half)
            free = cells[item] + widths[item] + gap
    return cells


def _straighten(layers: Layers, widths: Sequence[int], gap: int, left: list[int]) -> None:
    """Move what is linked one to one into a common column, as far as the things beside leave room.

    Rounding and pooling leave steps of a cell or two in what should be a straight column.
    """
    beside = [(-1, -1)] * len(layers.rank)
    for items in layers.ranks:
        for item, before, after in zip(items, [-1, *items], [*items[1:], -1], strict=False):
            beside[item] = (before, after)
    half = [(width - 1) // 2 for width in widths]
    following = _following(layers)
    begun = set(following.values())
    runs = []
    for first in following:
        if first in begun:
            continue
        run = [first]
        while run[-1] in following:
            run.append(following[run[-1]])
        runs.append(run)
    boxes = [run for run in runs if layers.net[run[0]] < 0]
    chains = [run for run in runs if layers.net[run[0]] >= 0]
    # Lines give way to boxes, and then get what room is left; moving one can free another.
    for run in (*boxes, *chains, *boxes, *chains):
        _straighten_run(run, beside, widths, half, gap, left)


def _following(layers: Layers) -> dict[int, int]:
    """Return the item below of those linked one to one: box to box, or along a line."""
    following = {}
    for item, below in enumerate(layers.below):
        chain = layers.net[item] >= 0
        same = [other for other in below if (layers.net[other] >= 0) == chain]
        if len(same) == 1:
            above = [o for o in layers.above[same[0]] if (layers.net[o] >= 0) == chain]
            if len(above) == 1:
                following[item] = same[0]
    return following


def _straighten_run(
    run: Sequence[int],
    beside: Sequence[tuple[int, int]],
    widths: Sequence[int],
    half: Sequence[int],
    gap: int,
    left: list[int],
) -> None:
    """Give a run as few columns as possible; a column is that of an item's middle."""
    start = 0
    while start < len(run):
        low, high, end = -_FAR_AWAY, _FAR_AWAY, start
        while end < len(run):
            item = run[end]
            before, after = beside[item]
            lowest = half[item]
            if before >= 0:
                lowest += left[before] + widths[before] + gap
            if lowest < low:
                lowest = low
            highest = high
            if after >= 0:
                room = left[after] - gap - widths[item] + half[item]
                if room < highest:
                    highest = room
            if lowest > highest:
                break
            low, high, end = lowest, highest, end + 1
        part = run[start:end]
        columns = sorted([left[item] + half[item] for item in part])
        column = min(high, max(low, columns[len(columns) // 2]))
        for item in part:
            left[item] = column - half[item]
        start = end
