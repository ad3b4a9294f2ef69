"""Lines of one tensor: each to its own target, or side by side and then one line."""

from __future__ import annotations

from dld_tui.core.graph.layers import Layers


def split(layers: Layers) -> Layers:
    """Return layers in which each link of a tensor has a chain of its own.

    Lines that share a chain can only pass others together. Apart from each other they find better
    ways, and most of those end up side by side again. Vertices, and chains that come in at the
    first rank or go out at the last one, keep their numbers.
    """
    found = Layers(
        [[] for _ in layers.ranks],
        list(layers.rank),
        list(layers.net),
        [[] for _ in layers.below],
        [[] for _ in layers.above],
        [[] for _ in layers.below],
    )
    strands: list[list[int]] = [[] for _ in layers.rank]
    """What stands for each item."""
    fixed = bytearray(len(layers.rank))
    for items in layers.ranks:
        for item in items:
            if layers.net[item] < 0 or not layers.above[item] or not layers.below[item]:
                fixed[item] = 1
                strands[item].append(item)
    for items in layers.ranks:
        for item in items:
            if fixed[item]:
                for lower, net in zip(layers.below[item], layers.nets_below[item], strict=True):
                    _lead(layers, found, item, lower, net, fixed, strands)
    for rank, items in enumerate(layers.ranks):
        found.ranks[rank] = [strand for item in items for strand in strands[item]]
    return found


def _lead(
    layers: Layers,
    found: Layers,
    start: int,
    first: int,
    net: int,
    fixed: bytearray,
    strands: list[list[int]],
) -> None:
    """Add a chain to each end of a tree of chain items."""
    waiting: list[tuple[int, tuple[int, ...]]] = [(first, ())]
    while waiting:
        item, way = waiting.pop()
        if not fixed[item]:
            way = (*way, item)
            waiting += [(lower, way) for lower in reversed(layers.below[item])]
            continue
        end = start
        for passed in way:
            strand = len(found.rank)
            strands[passed].append(strand)
            found.rank.append(layers.rank[passed])
            found.net.append(net)
            found.below.append([])
            found.above.append([])
            found.nets_below.append([])
            _link(found, end, strand, net)
            end = strand
        _link(found, end, item, net)


def _link(layers: Layers, upper: int, lower: int, net: int) -> None:
    layers.below[upper].append(lower)
    layers.nets_below[upper].append(net)
    layers.above[lower].append(upper)


def join(layers: Layers, count: int) -> tuple[Layers, list[int]]:
    """Make one line of those that carry one tensor side by side, from where they start.

    Args:
        layers: Layers as :func:`split` returns them, in a good order.
        count: The items of the layers that were split.

    Returns:
        The layers with their items numbered anew, and for each item its number in the layers
        that were split, -1 for one that is new.
    """
    stands = list(range(len(layers.rank)))
    """The item that each item has become a part of."""
    for items in layers.ranks:
        last = -1
        for item in items:
            if last >= 0 and _alike(layers, stands, last, item):
                stands[item] = stands[last]
            last = item
    kept = [item for items in layers.ranks for item in items if stands[item] == item]
    number = {item: at for at, item in enumerate(kept)}
    found = Layers(
        [[number[i] for i in items if stands[i] == i] for items in layers.ranks],
        [layers.rank[item] for item in kept],
        [layers.net[item] for item in kept],
        [[] for _ in kept],
        [[] for _ in kept],
        [[] for _ in kept],
    )
    done: set[tuple[int, int, int]] = set()
    for items in layers.ranks:
        for item in items:
            upper = number[stands[item]]
            for other, net in zip(layers.below[item], layers.nets_below[item], strict=True):
                link = (upper, number[stands[other]], net)
                if link not in done:
                    done.add(link)
                    _link(found, *link)
    return found, [item if item < count else -1 for item in kept]


def _alike(layers: Layers, stands: list[int], one: int, other: int) -> bool:
    """Return whether two items carry the same tensor from the same item."""
    net, above = layers.net, layers.above
    return (
        net[one] == net[other] >= 0
        and bool(above[one])
        and bool(above[other])
        and stands[above[one][0]] == stands[above[other][0]]
    )
