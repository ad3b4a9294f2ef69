"""Ordering each layer so that few links cross: barycentres, then swaps of neighbours."""

from __future__ import annotations

import random
from collections.abc import Sequence

from dld_tui.core.graph.layers import Layers

_SWAPPED_ITEMS = 3_000
"""Items of the largest drawing whose neighbours are tried in swapped places: it takes long."""
_SHAKES, _SHAKEN_ITEMS = 24, 8_000
"""How often to look for something better; less where there are so many items to sweep."""
_SHAKEN_RANKS, _SETTLING_SWEEPS = 6, 4
"""Ranks that are put into a random order at a time, at most; the sweeps after that."""
_REPAIRS, _REPAIR_RANKS, _REPAIR_AWAY = 40, 24, 8
"""Orders that are tried in the end; the ranks above and below that may change; how far away."""


def order_layers(layers: Layers, *, sweeps: int = 8) -> int:
    """Put the items of each rank in a better order; returns the number of crossings left.

    The method is that of Sugiyama, Tagawa and Toda (1981): sweep down and up, put each item at the
    mean place of its neighbours in the rank just done, and keep the best order seen. Crossings are
    counted as Barth, Jünger and Mutzel (2002) do.
    """
    work = _Ordering(layers)
    best = work.crossings()
    kept = [list(items) for items in layers.ranks]
    since = 0
    for sweep in range(sweeps):
        if not best or since >= 4:
            break
        work.sweep(0, len(layers.ranks), down=sweep % 2 == 0)
        if len(layers.rank) <= _SWAPPED_ITEMS:
            _swap_neighbours(layers, work)
        crossings = work.crossings()
        since += 1
        if crossings < best:
            best, since = crossings, 0
            kept = [list(items) for items in layers.ranks]
    work.restore(0, kept)
    if best:
        best = _repaired(work, best)
    return _shaken(work, best) if best else best


def _repaired(work: _Ordering, best: int) -> int:
    """Look for better orders around the crossings that are left; returns how many there are then.

    Where branches want the same place, such as the inputs of a node, any of their orders is as
    good for their rank, and the sweeps cannot tell which one suits the others. So the other order
    of one rank is tried at a time, and taken when it turns out to be better.
    """
    ranks = work.layers.ranks
    tries = 0
    for rank in [rank for rank, found in enumerate(work.by_rank()) if found]:
        first, last = max(0, rank - _REPAIR_RANKS), min(len(ranks), rank + 2 + _REPAIR_RANKS)
        for away in range(_REPAIR_AWAY):
            for turned, down in ((rank + 1 + away, False), (rank - away, True)):
                if tries == _REPAIRS or not work.by_rank()[rank] or not first < turned < last - 1:
                    continue
                kept = [list(items) for items in ranks[first:last]]
                if not work.turn(turned, down=down):
                    continue
                tries += 1
                work.sweep(*((turned, last) if down else (first, turned + 1)), down=down)
                work.sweep(first, last, down=not down)
                work.sweep(first, last, down=down)
                crossings = work.crossings()
                if crossings < best:
                    best = crossings
                else:
                    work.restore(first, kept)
    return best


def _shaken(work: _Ordering, best: int) -> int:
    """Look for better orders around the best one; returns how many crossings there are then.

    Sweeps end where no rank can do better for itself. So a few ranks get a random order and are
    swept again, and what comes of it is kept unless it is worse: an iterated local search, with a
    fixed seed, since the same graph has to give the same drawing.
    """
    layers, count = work.layers, len(work.layers.ranks)
    chance = random.Random(0)
    swapped = len(layers.rank) <= _SWAPPED_ITEMS
    kept = [list(items) for items in layers.ranks]
    for shake in range(min(_SHAKES, _SHAKEN_ITEMS // len(layers.rank))):
        first = chance.randrange(count)
        last = min(count, first + chance.randint(1, _SHAKEN_RANKS))
        work.restore(first, [chance.sample(rank, len(rank)) for rank in layers.ranks[first:last]])
        for sweep in range(shake, shake + _SETTLING_SWEEPS):
            work.sweep(0, count, down=sweep % 2 == 0)
            if swapped:
                _swap_neighbours(layers, work)
            if work.crossings() < best:
                break
        if work.crossings() > best:
            work.restore(0, kept)
            continue
        best = work.crossings()
        kept = [list(items) for items in layers.ranks]
        if not best:
            break
    return best


class _Ordering:
    """The orders of all ranks; what has not changed since it was looked at is not done again."""

    def __init__(self, layers: Layers) -> None:
        self.layers = layers
        self.place = [0] * len(layers.rank)
        _number(layers.ranks, self.place)
        count = len(layers.ranks)
        self.changes = [0] * count
        """How often the order of each rank has changed."""
        self._sorted = {True: [(-1, -1)] * count, False: [(-1, -1)] * count}
        """By direction: the changes of each rank and of the one it was sorted by."""
        self._counted = [(-1, -1, 0)] * count
        """The changes of each rank and of the next one, and the crossings between them."""

    def sweep(self, first: int, last: int, *, down: bool) -> None:
        """Sort rank after rank by the one before it.

        Args:
            first: The first rank; it is not sorted on the way down.
            last: The rank after the last one; that is not sorted on the way up.
            down: Start at the top.
        """
        layers, changes, seen = self.layers, self.changes, self._sorted[down]
        neighbours = layers.above if down else layers.below
        for rank in range(first + 1, last) if down else range(last - 2, first - 1, -1):
            other = rank - 1 if down else rank + 1
            if seen[rank] != (changes[rank], changes[other]):
                changes[rank] += _sort(layers.ranks[rank], neighbours, self.place)
                seen[rank] = (changes[rank], changes[other])

    def turn(self, rank: int, *, down: bool) -> bool:
        """Turn items of a rank around that want the same place; False when there are none."""
        layers = self.layers
        neighbours = layers.above if down else layers.below
        changed = _sort(layers.ranks[rank], neighbours, self.place, turned=True)
        self.changes[rank] += changed
        return changed

    def restore(self, first: int, orders: Sequence[list[int]]) -> None:
        """Put the items of ranks back into an order that they had before."""
        for rank, items in enumerate(orders, first):
            if items != self.layers.ranks[rank]:
                self.layers.ranks[rank] = list(items)
                self.changes[rank] += 1
                for at, item in enumerate(items):
                    self.place[item] = at

    def by_rank(self) -> list[int]:
        """Return the crossings below each rank, as counted last."""
        self.crossings()
        return [crossings for _, _, crossings in self._counted]

    def crossings(self) -> int:
        """Return how many pairs of links between neighbouring ranks cross."""
        total, changes = 0, self.changes
        for rank in range(len(changes) - 1):
            upper, lower, crossings = self._counted[rank]
            if upper != changes[rank] or lower != changes[rank + 1]:
                crossings = _crossings_below(self.layers, rank, self.place)
                self._counted[rank] = (changes[rank], changes[rank + 1], crossings)
            total += crossings
        return total


def _number(ranks: Sequence[Sequence[int]], place: list[int]) -> None:
    for items in ranks:
        for at, item in enumerate(items):
            place[item] = at


def _sort(
    items: list[int],
    neighbours: Sequence[Sequence[int]],
    place: list[int],
    *,
    turned: bool = False,
) -> bool:
    """Sort a rank by the mean place of each item's neighbours; one without any stays put.

    Args:
        items: The rank.
        neighbours: Of each item, in the rank that it is sorted by.
        place: The place of each item in its rank.
        turned: Turn the order of items with the same mean around.

    Returns:
        Whether the order has changed.
    """
    if len(items) == 1:
        return False
    keys = {}
    for item in items:
        linked = neighbours[item]
        if len(linked) == 1:
            keys[item] = float(place[linked[0]])
        elif linked:
            keys[item] = sum([place[other] for other in linked]) / len(linked)
    found = sorted(reversed(keys) if turned else keys, key=keys.__getitem__)
    if len(keys) < len(items):
        moved = iter(found)
        found = [next(moved) if item in keys else item for item in items]
    if found == items:
        return False
    items[:] = found
    for at, item in enumerate(items):
        place[item] = at
    return True


def _crossings_below(layers: Layers, rank: int, place: Sequence[int]) -> int:
    """Return how many pairs of links between a rank and the next one cross."""
    ends: list[int] = []
    for item in layers.ranks[rank]:
        linked = layers.below[item]
        if len(linked) == 1:
            ends.append(place[linked[0]])
        elif linked:
            ends += sorted([place[other] for other in linked])
    return _inversions(ends, len(layers.ranks[rank + 1]))


def _inversions(ends: Sequence[int], size: int) -> int:
    """Return the number of pairs that are in the wrong order, with a Fenwick tree."""
    if list(ends) == sorted(ends):
        return 0
    tree = [0] * (size + 1)
    total = 0
    for seen, end in enumerate(ends):
        at, before = end + 1, 0
        while at:
            before += tree[at]
            at -= at & -at
        total += seen - before
        at = end + 1
        while at <= size:
            tree[at] += 1
            at += at & -at
    return total


def _swap_neighbours(layers: Layers, work: _Ordering) -> None:
    """Swap items side by side wherever that saves crossings."""
    place = work.place
    for rank, items in enumerate(layers.ranks):
        improved, rounds = True, 0
        while improved and rounds < 4:
            improved, rounds = False, rounds + 1
            for at in range(len(items) - 1):
                left, right = items[at], items[at + 1]
                if _saving(layers, place, left, right) > 0:
                    items[at], items[at + 1] = right, left
                    place[left], place[right] = at + 1, at
                    work.changes[rank] += 1
                    improved = True


def _saving(layers: Layers, place: Sequence[int], left: int, right: int) -> int:
    """Return how many crossings fewer there are when two neighbours change places."""
    saving = 0
    for neighbours in (layers.above, layers.below):
        mine, theirs = neighbours[left], neighbours[right]
        for one in mine:
            for other in theirs:
                if place[one] > place[other]:
                    saving += 1
                elif place[one] < place[other]:
                    saving -= 1
    return saving
