"""A drawing in parts that meet in one item: equal parts are arranged once.

Where a rank has one item only, what is above and what is below are arranged independently. Deep
networks repeat a few such parts over and over, so each kind is arranged once, with more care than a
whole graph could get, and looks the same wherever it stands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from dld_tui.core.graph.crossings import order_lines
from dld_tui.core.graph.positions import place_items
from dld_tui.core.graph.ranks import Layers
from dld_tui.core.graph.routes import Gap, route

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
class _Arranged:
    """What is found of a kind of part, in local numbers."""

    layers: Layers
    items: list[int]
    """For each item its place in the part, -1 for one that is new."""
    left: list[int]
    gaps: list[Gap]
    crossings: int


def arrange(
    layers: Layers, widths: Sequence[int], gap: int, *, routed: bool = True
) -> tuple[list[int], list[Gap], int]:
    """Order and place the items of all ranks.

    Args:
        layers: The items; their orders are changed, and there may be other items in the chains.
        widths: Cells of each item.
        gap: Cells between two items of a rank.
        routed: Whether the lines are wanted, too.

    Returns:
        The left edge of each item, the lines below each rank but the last (empty if they are not
        wanted), and the number of crossings.
    """
    parts = _parts(layers, widths)
    often = Counter(part.key for part in parts)
    known: dict[_Key, _Arranged] = {}
    left = [0] * len(layers.rank)
    placed: list[tuple[_Arranged, int]] = []
    crossings, offset = 0, 0
    for number, part in enumerate(parts):
        found = known.get(part.key)
        if found is None:
            found = _arranged(layers, part, widths, gap, pinned=often[part.key] > 1, routed=routed)
            known[part.key] = found
        crossings += found.crossings
        if number:  # the first item is where the part before has put it
            offset = left[part.items[0]] - found.left[found.layers.ranks[0][0]]
        _put(layers, part, found)
        left += [0] * (len(layers.rank) - len(left))
        for rank, order in enumerate(found.layers.ranks, part.first):
            for item, at in zip(layers.ranks[rank], order, strict=True):
                left[item] = found.left[at] + offset
        placed.append((found, offset))
    first = min([left[item] for items in layers.ranks for item in items], default=0)
    if first:
        left = [at - first for at in left]
    gaps = [
        _moved(lines, part.nets, offset - first)
        for part, (found, offset) in zip(parts, placed, strict=True)
        for lines in found.gaps
    ]
    return left, gaps, crossings


def _put(layers: Layers, part: _Part, found: _Arranged) -> None:
    """Give the ranks of a part the orders that were found, and new items where there are some."""
    items = [part.items[at] if at >= 0 else -1 for at in found.items]
    if -1 in items:
        mine = found.layers
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
    for rank, order in enumerate(found.layers.ranks, part.first):
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
    layers: Layers, part: _Part, widths: Sequence[int], gap: int, *, pinned: bool, routed: bool
) -> _Arranged:
    mine, items, crossings = order_lines(_local(layers, part))
    own = [widths[part.items[at]] if at >= 0 else 1 for at in items]
    left = place_items(mine, own, gap)
    ends = mine.ranks[0], mine.ranks[-1]
    if pinned and len(ends[0]) == len(ends[1]) == 1:
        (top,), (bottom,) = ends
        left[bottom] = left[top] + (own[top] - 1) // 2 - (own[bottom] - 1) // 2
    gaps = route(mine, left, own) if routed else []
    return _Arranged(mine, items, left, gaps, crossings)


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
