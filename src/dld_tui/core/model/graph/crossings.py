"""Ordering each layer so that few links cross: sweeps, then lines are moved past each other."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Sequence

from dld_tui.core.model.graph.edge_routes import join_edges, split_edges
from dld_tui.core.model.graph.placement import Layers

_ROUNDS = 4
"""How often the neighbours of a rank are tried in swapped places, at most."""


class Ordering:
    """The orders of all ranks, and the crossings between them."""

    def __init__(
        self,
        ranks: Sequence[Sequence[int]],
        above: Sequence[Sequence[int]],
        below: Sequence[Sequence[int]],
    ) -> None:
        """Take ranks in some order.

        Args:
            ranks: The items of each rank.
            above: By item, those of the rank before that it is linked to.
            below: By item, those of the next rank that it is linked to.
        """
        self.ranks = [list(items) for items in ranks]
        self.above = above
        self.below = below
        self.place = [0] * len(above)
        """By item, where it is in its rank."""
        for items in ranks:
            for at, item in enumerate(items):
                self.place[item] = at
        count = len(ranks)
        self.effort = 0
        """Items that were looked at: what searching has cost, the same on any machine."""
        self.crossed = [0] * count
        """The crossings below each rank, as counted last."""

    def kept(self) -> list[list[int]]:
        """Return a copy of the orders."""
        return [list(items) for items in self.ranks]

    def restore(self, orders: Sequence[list[int]]) -> None:
        """Give all ranks another order of their items."""
        for rank, items in enumerate(orders):
            if items != self.ranks[rank]:
                self.change(rank, list(items))

    def change(self, rank: int, items: list[int]) -> None:
        """Give one rank another order of its items."""
        self.ranks[rank] = items
        place = self.place
        for at, item in enumerate(items):
            place[item] = at

    def sweep(self, *, down: bool, turned: bool = False) -> None:
        """Sort rank after rank by the one before it.

        Args:
            down: Start at the top.
            turned: Turn the order of items that want the same place.
        """
        count = len(self.ranks)
        for rank in range(1, count) if down else range(count - 2, -1, -1):
            if len(self.ranks[rank]) > 1:
                self._sort(rank, self.above if down else self.below, turned)

    def _sort(self, rank: int, neighbours: Sequence[Sequence[int]], turned: bool) -> None:
        """Sort a rank by the mean place of each item's neighbours; one without any stays put."""
        items, place = self.ranks[rank], self.place
        self.effort += len(items)
        keys: dict[int, float] = {}
        for item in items:
            linked = neighbours[item]
            if len(linked) == 1:
                keys[item] = place[linked[0]]
            elif linked:
                keys[item] = sum([place[other] for other in linked]) / len(linked)
        order = sorted(reversed(keys) if turned else keys, key=keys.__getitem__)
        if len(keys) < len(items):
            moved = iter(order)
            order = [next(moved) if item in keys else item for item in items]
        if order != items:
            self.change(rank, order)

    def crossings(self) -> int:
        """Return how many pairs of links between neighbouring ranks cross."""
        for rank in range(len(self.ranks) - 1):
            self.crossed[rank] = self.count_below(rank)
        return sum(self.crossed)

    def count_below(self, rank: int) -> int:
        """Return how many pairs of links between a rank and the next one cross."""
        place, below = self.place, self.below
        ends: list[int] = []
        for item in self.ranks[rank]:
            linked = below[item]
            if len(linked) == 1:
                ends.append(place[linked[0]])
            elif linked:
                ends += sorted([place[other] for other in linked])
        self.effort += len(ends)
        total, most = 0, -1
        before: list[int] = []
        for end in ends:
            if end >= most:
                most = end
                before.append(end)
            else:
                at = bisect_right(before, end)
                total += len(before) - at
                before.insert(at, end)
        return total

    def swap_neighbours(self, *, ties: bool) -> None:
        """Swap items side by side near crossings, wherever that saves some.

        Args:
            ties: Swap those, too, that cross as often in either order.
        """
        self.crossings()
        crossed = self.crossed
        for rank in range(len(self.ranks)):
            if crossed[rank] or (rank and crossed[rank - 1]):
                self._swap(rank, ties)

    def _swap(self, rank: int, ties: bool) -> None:
        items, place = self.ranks[rank], self.place
        known: dict[tuple[int, int], int] = {}
        improved, rounds = True, 0
        while improved and rounds < _ROUNDS:
            improved, rounds = False, rounds + 1
            self.effort += len(items)
            for at in range(len(items) - 1):
                pair = left, right = items[at], items[at + 1]
                saving = known.get(pair)
                if saving is None:
                    saving = known[pair] = self._crossings_saved(left, right)
                    known[right, left] = -saving
                if saving > 0 or (ties and rounds == 1 and not saving):
                    items[at], items[at + 1] = right, left
                    place[left], place[right] = at + 1, at
                    improved = improved or saving > 0

    def _crossings_saved(self, left: int, right: int) -> int:
        """Return how many crossings fewer there are when two neighbours change places."""
        saving, place = 0, self.place
        for neighbours in (self.above, self.below):
            mine, theirs = neighbours[left], neighbours[right]
            if mine and theirs:
                for position in mine:
                    at = place[position]
                    for other in theirs:
                        if at > place[other]:
                            saving += 1
                        elif at < place[other]:
                            saving -= 1
        return saving

    def attempt(self, orders: dict[int, list[int]]) -> bool:
        """Give some ranks another order if not more links cross then; returns whether it is kept.

        All crossings must have been counted.
        """
        place, crossed, ranks = self.place, self.crossed, self.ranks
        gaps = sorted({gap for rank in orders for gap in (rank - 1, rank)})
        if gaps[0] < 0:
            del gaps[0]
        if gaps and gaps[-1] == len(ranks) - 1:
            gaps.pop()
        before = [crossed[gap] for gap in gaps]
        old = {rank: ranks[rank] for rank in orders}
        most = sum(before)
        for rank, items in orders.items():
            ranks[rank] = items
            for at, item in enumerate(items):
                place[item] = at
        for gap in gaps:
            crossed[gap] = self.count_below(gap)
            most -= crossed[gap]
            if most < 0:
                break
        if most >= 0:
            return True
        for rank, items in old.items():
            ranks[rank] = items
            for at, item in enumerate(items):
                place[item] = at
        for gap, crossings in zip(gaps, before, strict=True):
            crossed[gap] = crossings
        return False


_REACHES = (3, 6, 12, 24)
"""So many ranks above and below a crossing a line may be moved."""
_PATIENCE = 20
"""Moves without success after which no more are tried, for each crossing there is."""
_SEED = 89
"""The same graph has to give the same drawing. Of those tried, this one leaves the fewest crossings
on the networks of the benchmarks; with others there are some more here and there."""


def pass_lines(work: Ordering, effort: int) -> int:
    """Move lines to the other side of those that they cross; returns how many crossings are left.

    A random crossing is taken, and one of its two lines is put on the other side of the other one
    in the ranks around; this is kept unless more lines cross then, also when as many do: the next
    move may be better from there.

    Args:
        work: The orders.
        effort: Items that may be looked at.
    """
    best = work.crossings()
    if not best:
        return 0
    chance, end = random.Random(_SEED), work.effort + effort
    rank_of = {item: rank for rank, items in enumerate(work.ranks) for item in items}
    runs = _runs(work)
    known: dict[int, list[tuple[int, int, int, int]]] = {}
    gaps = [gap for gap, crossings in enumerate(work.crossed) if crossings]
    idle = 0
    while gaps and work.effort < end and idle < _PATIENCE * best:
        idle += 1
        gap = gaps[int(chance.random() * len(gaps))]
        pairs = known.get(gap)
        if pairs is None:
            pairs = known[gap] = _crossings(work, gap)
        upper, lower, other_upper, other_lower = pairs[int(chance.random() * len(pairs))]
        if chance.random() < 0.5:
            upper, lower, other_upper, other_lower = other_upper, other_lower, upper, lower
        reach = chance.choice(_REACHES)
        first, last = gap - reach, gap + 1 + reach
        beside = {rank_of[item]: item for item in runs[other_lower]}
        beside |= {rank_of[item]: item for item in runs[other_upper]}
        behind = chance.random() < 0.5
        orders: dict[int, list[int]] = {}
        for item in runs[upper if chance.random() < 0.5 else lower]:
            rank = rank_of[item]
            other = beside.get(rank)
            if other is None or other == item or not first <= rank <= last:
                continue
            items = list(work.ranks[rank])
            items.remove(item)
            items.insert(items.index(other) + behind, item)
            if items != work.ranks[rank]:
                orders[rank] = items
        work.effort += 8
        if orders and work.attempt(orders):
            for rank in orders:
                known.pop(rank - 1, None)
                known.pop(rank, None)
            gaps = [gap for gap, crossings in enumerate(work.crossed) if crossings]
            crossings = sum(work.crossed)
            if crossings < best:
                best, idle = crossings, 0
    return best


def _runs(work: Ordering) -> list[list[int]]:
    """Return by item the items that it makes one line with, from top to bottom."""
    above, below = work.above, work.below
    runs: list[list[int]] = [[] for _ in above]
    for items in work.ranks:
        for item in items:
            linked = above[item]
            if len(linked) == 1 and len(below[linked[0]]) == 1:
                runs[item] = runs[linked[0]]
            runs[item].append(item)
    return runs


def _crossings(work: Ordering, gap: int) -> list[tuple[int, int, int, int]]:
    """Return the links that cross below a rank: the ends of the one and of the other."""
    place = work.place
    links = [
        (at, place[lower], upper, lower)
        for at, upper in enumerate(work.ranks[gap])
        for lower in work.below[upper]
    ]
    work.effort += len(links)
    return [
        (upper, lower, other_upper, other_lower)
        for number, (left, left_end, upper, lower) in enumerate(links)
        for right, right_end, other_upper, other_lower in links[number + 1 :]
        if left < right and left_end > right_end
    ]


_SWEEPS, _IDLE_SWEEPS = 8, 3
"""Sweeps, at most, and those without success after which no more are tried."""
_PASSING = 60
"""Items that may be looked at in moving lines past each other, for each item there is."""
_MOST_PASSING = 60_000
"""The limit for all items in total."""


def order_lines(layers: Layers) -> tuple[Layers, list[int], int]:
    """Put the items of each rank in a good order, and find lines of one tensor that had best part.

    The method is that of Sugiyama, Tagawa and Toda (1981): sweep down and up, put each item at the
    mean place of its neighbours in the rank just done, and keep the best order seen. As in dot
    (Gansner et al. 1993), neighbours are swapped where that saves crossings, and of items that want
    the same place each comes first in turn. What is left is looked at line by line.

    Lines that share a chain can only pass others together. So where lines cross, those of one
    tensor are also ordered apart from each other; most of them end up side by side all the same.

    Returns:
        The layers; by item the number that it had before, -1 for one that is new; and the number
        of crossings left.
    """
    count = len(layers.rank)
    together = _best_order(layers)
    if together.crossings():
        split = split_edges(layers)
        if len(split.rank) > count:
            other = _best_order(split)
            if other.crossings() <= together.crossings():
                pass_lines(other, min(_PASSING * len(split.rank), _MOST_PASSING))
                split.ranks[:] = other.ranks
                joined, items = join_edges(split, count)
                crossings = Ordering(joined.ranks, joined.above, joined.below).crossings()
                return joined, items, crossings
        pass_lines(together, min(_PASSING * count, _MOST_PASSING))
    layers.ranks[:] = together.ranks
    return layers, list(range(count)), together.crossings()


def _best_order(layers: Layers) -> Ordering:
    """Return the best orders that sweeps down and up lead to."""
    work = Ordering(layers.ranks, layers.above, layers.below)
    best, orders, since = work.crossings(), work.kept(), 0
    least: int | None = None
    if best:
        work.restore(_depth_first(layers.ranks[::-1], layers.above)[::-1])
    for sweep in range(_SWEEPS if best else 0):
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
    work.restore(orders)
    return work


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
