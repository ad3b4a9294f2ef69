"""Ordering each layer so that few links cross: sweeps, then lines are moved past each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dld_tui.core.graph.detours import pass_lines, shake
from dld_tui.core.graph.layers import Layers
from dld_tui.core.graph.strands import join, split
from dld_tui.core.graph.sweeps import Ordering

_SWEEPS, _IDLE_SWEEPS = 8, 3
"""Sweeps from each start, at most, and those without success after which it is given up."""
_STARTING = 6_000
"""Items that may be looked at before no other start is tried."""
_PASSING, _POLISHING = 60, 6
"""Items that may be looked at in moving lines past each other, for each item there is; and when
the lines of a tensor have been joined after that."""
_MOST_PASSING = 60_000
"""The same for all items together, at most."""
_SHAKING, _LEAST_SHAKING = 18, 1_500
"""And in the search for something better than that, where few are left; for all items together, at
least."""
_FEW_ITEMS, _FEW_CROSSINGS = 300, 12
"""Drawings that get more care: with so many items, and so many crossings, at most."""


def order_lines(layers: Layers) -> tuple[Layers, list[int], int]:
    """Put the items of each rank in a good order, and find lines of one tensor that had best part.

    Lines that share a chain can only pass others together. So where lines cross, those of one
    tensor are also ordered apart from each other; most of them end up side by side all the same.

    Returns:
        The layers; by item the number that it had before, -1 for one that is new; and the number
        of crossings left.
    """
    count = len(layers.rank)
    together = _Search(layers)
    if together.sweep():
        apart = split(layers)
        if len(apart.rank) > count:
            other = _Search(apart)
            if other.sweep() <= together.best:
                other.improve(_PASSING)
                other.finish()
                joined, items = join(apart, count)
                polished = _Search(joined)
                polished.improve(_POLISHING)
                polished.finish()
                if together.size > _FEW_ITEMS or together.improve(_PASSING) >= polished.best:
                    return joined, items, polished.best
        together.improve(_PASSING)
    together.finish()
    return layers, list(range(count)), together.best


def order_layers(layers: Layers) -> int:
    """Put the items of each rank in a good order; returns the number of crossings left.

    The method is that of Sugiyama, Tagawa and Toda (1981): sweep down and up, put each item at the
    mean place of its neighbours in the rank just done, and keep the best order seen. As in dot
    (Gansner et al. 1993), neighbours are swapped where that saves crossings, and of items that want
    the same place each comes first in turn. What is left is looked at line by line.
    """
    search = _Search(layers)
    if search.sweep():
        search.improve(_PASSING)
    search.finish()
    return search.best


class _Search:
    """The best orders of some layers so far."""

    def __init__(self, layers: Layers) -> None:
        self.layers = layers
        net = _distinct(layers)
        self.ranks, self.given = net.ranks, net.items
        self.size = sum(map(len, self.given))
        self.work = Ordering(self.given, net.above, net.below)
        self.orders = self.given
        self.best = self.work.crossings()

    def sweep(self) -> int:
        """Sweep from one start after the other; returns the crossings left."""
        for start in _starts(self.given, self.work.above, self.work.below):
            if not self.best or self.work.effort > _STARTING:
                break
            self.work.restore(start)
            self.best, self.orders = _swept(self.work, self.best, self.orders)
        return self.best

    def improve(self, effort: int) -> int:
        """Look for something better around the best so far; returns the crossings left.

        Args:
            effort: Items that may be looked at, for each item there is.
        """
        self.work.restore(self.orders)
        self.best = pass_lines(self.work, min(effort * self.size, _MOST_PASSING))
        if 0 < self.best <= _FEW_CROSSINGS and self.size <= _FEW_ITEMS and effort == _PASSING:
            self.best = shake(self.work, max(_SHAKING * self.size, _LEAST_SHAKING))
        self.orders = self.work.ranks
        return self.best

    def finish(self) -> None:
        """Give the layers the best orders."""
        found = dict(zip(self.ranks, self.orders, strict=True))
        layers = self.layers
        for rank in range(len(layers.ranks)):
            items = found.get(rank)
            if items is None:  # as the one before
                items = [layers.below[item][0] for item in layers.ranks[rank - 1]]
            layers.ranks[rank] = list(items)


@dataclass
class _Net:
    """What is to be ordered: ranks that need an order of their own, and what is linked in them."""

    layers: Layers
    ranks: list[int] = field(default_factory=list)
    """The number of each rank, -1 for one of ports."""
    items: list[list[int]] = field(default_factory=list)
    above: list[list[int]] = field(default_factory=list)
    below: list[list[int]] = field(default_factory=list)

    def add_ports(self, upper: Sequence[int], heads: Sequence[int]) -> None:
        """Add a rank for the places where tensors leave items, if these have an order to find."""
        layers = self.layers
        if all([len(set(layers.nets_below[item])) < 2 for item in upper]):
            return
        groups = [_groups(layers.below[item], layers.nets_below[item]) for item in upper]
        if not any(len(found) > 1 and max(map(len, found)) > 1 for found in groups):
            return
        ports: list[int] = []
        for head, found in zip(heads, groups, strict=True):
            own = range(len(self.above), len(self.above) + len(found))
            self.above += [[head] for _ in found]
            self.below += [list(lowers) for lowers in found]
            self.below[head] = list(own)
            ports += own
        for lower in {lower for found in groups for lowers in found for lower in lowers}:
            self.above[lower] = []
        for port in ports:
            for lower in self.below[port]:
                self.above[lower].append(port)
        self.ranks.append(-1)
        self.items.append(ports)


def _groups(lowers: Sequence[int], nets: Sequence[int]) -> list[tuple[int, ...]]:
    """Return where the tensors of an item go to, those that go to the same items as one."""
    found: dict[int, list[int]] = {}
    for lower, net in zip(lowers, nets, strict=True):
        found.setdefault(net, []).append(lower)
    return list(dict.fromkeys(map(tuple, found.values())))


def _distinct(layers: Layers) -> _Net:
    """Return the ranks that need an order of their own.

    Where each item of a rank continues in one of the next, and the other way round, both ranks have
    the same order: the next one is left out, and the items of the first one stand for those below.
    """
    net = _Net(layers, above=list(layers.above), below=list(layers.below))
    head = list(range(len(layers.rank)))
    last: list[int] = []
    for rank, items in enumerate(layers.ranks):
        if (
            last
            and len(items) == len(last)
            and all([len(layers.below[item]) == 1 for item in last])
            and all([len(layers.above[item]) == 1 for item in items])
        ):
            for item in last:
                head[layers.below[item][0]] = head[item]
        else:
            for item in last:
                net.below[head[item]] = layers.below[item]
            for item in items:
                net.above[item] = [head[other] for other in layers.above[item]]
            net.add_ports(last, [head[item] for item in last])
            net.ranks.append(rank)
            net.items.append(items)
        last = items
    for item in last:
        net.below[head[item]] = []
    return net


def _starts(
    given: list[list[int]], above: Sequence[Sequence[int]], below: Sequence[Sequence[int]]
) -> Iterator[list[list[int]]]:
    """Yield orders to start from; the first one is the most promising."""
    yield _depth_first(given[::-1], above)[::-1]
    yield given
    yield _depth_first(given, below)
    yield _depth_first([items[::-1] for items in reversed(given)], above)[::-1]


def _depth_first(
    given: Sequence[Sequence[int]], neighbours: Sequence[Sequence[int]]
) -> list[list[int]]:
    """Return the items of each rank in the order that a depth-first search comes to them."""
    rank_of = {item: rank for rank, items in enumerate(given) for item in items}
    orders: list[list[int]] = [[] for _ in given]
    entered = bytearray(len(neighbours))
    for items in given:
        for start in items:
            waiting = [start]
            while waiting:
                item = waiting.pop()
                if not entered[item]:
                    entered[item] = 1
                    orders[rank_of[item]].append(item)
                    waiting += reversed(neighbours[item])
    return orders


def _swept(work: Ordering, best: int, orders: list[list[int]]) -> tuple[int, list[list[int]]]:
    """Sweep down and up; returns the fewest crossings ever, and the orders with them."""
    since = 0
    least: int | None = None
    for sweep in range(_SWEEPS):
        turned = sweep % 4 < 2
        work.sweep(down=sweep % 2 == 0, turned=turned)
        work.swap_neighbours(ties=not turned)
        crossings = work.crossings()
        since = 0 if least is None or crossings < least else since + 1
        least = crossings if least is None else min(least, crossings)
        if crossings < best:
            best, orders = crossings, work.kept()
        if not best or since == _IDLE_SWEEPS:
            break
    return best, orders
