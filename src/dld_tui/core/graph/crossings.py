"""Ordering each layer so that few links cross: sweeps, then lines are moved past each other."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import field

from dld_tui.core.dataclass import dataclass
from dld_tui.core.graph.edge_routes import join_edges, split_edges
from dld_tui.core.graph.placement import Layers

_ROUNDS = 4
"""How often the neighbours of a rank are tried in swapped places, at most."""


class Ordering:
    """The orders of all ranks; what has not changed since it was looked at is not done again."""

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
        self._stale = set(range(count - 1))
        self._changes = [0] * count
        """How often the order of each rank has changed."""
        self._sorted = [[(-1, -1)] * count for _ in range(4)]
        """By direction and ties: the changes of each rank and of the one it was sorted by."""
        self._swapped = [(-1, -1, -1, False)] * count
        """The changes of the ranks around each one when its neighbours were tried."""

    def kept(self) -> list[list[int]]:
        """Return a copy of the orders."""
        return [list(items) for items in self.ranks]

    def restore(self, orders: Sequence[list[int]], crossed: Sequence[int] = ()) -> None:
        """Give all ranks another order of their items.

        Args:
            orders: The items of each rank.
            crossed: The crossings below each rank then, if they are known.
        """
        for rank, items in enumerate(orders):
            if items != self.ranks[rank]:
                self.change(rank, list(items))
        if crossed:
            self.crossed[:] = crossed
            self._stale.clear()

    def change(self, rank: int, items: list[int]) -> None:
        """Give one rank another order of its items."""
        self.ranks[rank] = items
        place = self.place
        for at, item in enumerate(items):
            place[item] = at
        self._touch(rank)

    def _touch(self, rank: int) -> None:
        self._changes[rank] += 1
        if rank:
            self._stale.add(rank - 1)
        if rank + 1 < len(self.ranks):
            self._stale.add(rank)

    def sweep(self, *, down: bool, turned: bool = False) -> None:
        """Sort rank after rank by the one before it.

        Args:
            down: Start at the top.
            turned: Turn the order of items that want the same place.
        """
        count, changes, seen = len(self.ranks), self._changes, self._sorted[2 * down + turned]
        neighbours, step = (self.above, -1) if down else (self.below, 1)
        for rank in range(1, count) if down else range(count - 2, -1, -1):
            other = rank + step
            if seen[rank] != (changes[rank], changes[other]):
                if len(self.ranks[rank]) > 1:
                    self._sort(rank, neighbours, turned)
                seen[rank] = (changes[rank], changes[other])

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
        while self._stale:
            rank = self._stale.pop()
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
        changes, swapped, crossed = self._changes, self._swapped, self.crossed
        last = len(changes) - 1
        for rank in range(last + 1):
            if not (crossed[rank] or (rank and crossed[rank - 1])):
                continue
            above = changes[rank - 1] if rank else -1
            below = changes[rank + 1] if rank < last else -1
            if swapped[rank] != (above, changes[rank], below, ties):
                self._swap(rank, ties)
                swapped[rank] = (above, changes[rank], below, ties)

    def _swap(self, rank: int, ties: bool) -> None:
        items, place = self.ranks[rank], self.place
        known: dict[tuple[int, int], int] = {}
        changed, improved, rounds = False, True, 0
        while improved and rounds < _ROUNDS:
            improved, rounds = False, rounds + 1
            self.effort += len(items)
            for at in range(len(items) - 1):
                pair = left, right = items[at], items[at + 1]
                saving = known.get(pair)
                if saving is None:
                    saving = known[pair] = self._saving(left, right)
                    known[right, left] = -saving
                if saving > 0 or (ties and rounds == 1 and not saving):
                    items[at], items[at + 1] = right, left
                    place[left], place[right] = at + 1, at
                    changed = True
                    improved = improved or saving > 0
        if changed:
            self._touch(rank)

    def _saving(self, left: int, right: int) -> int:
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
            for rank in orders:
                self._changes[rank] += 1
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
_SETTLING_SWEEPS = 3
"""Sweeps after a shake, at most."""
_SEED, _SHAKING_SEED = 3, 940
"""The same graph has to give the same drawing. Of those tried, these leave the fewest crossings on
the networks of the benchmarks; with others there are some more here and there."""


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
        reach = _REACHES[int(chance.random() * len(_REACHES))]
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


def shake(work: Ordering, effort: int) -> int:
    """Look for better orders around the best one; returns how many crossings there are then.

    Sweeps end where no rank can do better for itself. So a few ranks get a random order, or one
    item a random place, and all are swept again; what comes of it is kept unless it is worse: an
    iterated local search.

    Args:
        work: The orders.
        effort: Items that may be looked at.
    """
    best = work.crossings()
    kept, counted = work.kept(), list(work.crossed)
    chance, end, last = random.Random(_SHAKING_SEED), work.effort + effort, len(work.ranks) - 1
    while best and work.effort < end:
        crossed = [rank for rank, crossings in enumerate(counted) if crossings]
        rank = min(last, max(0, chance.choice(crossed) + chance.randint(-2, 3)))
        if chance.random() < 0.5:
            for near in range(rank, min(last, rank + chance.randrange(4)) + 1):
                work.change(near, chance.sample(work.ranks[near], len(work.ranks[near])))
        else:
            items = list(work.ranks[rank])
            item = items.pop(chance.randrange(len(items)))
            items.insert(chance.randint(0, len(items)), item)
            work.change(rank, items)
        down, turned = chance.random() < 0.5, chance.random() < 0.5
        for sweep in range(_SETTLING_SWEEPS):
            work.sweep(down=down == (sweep % 2 == 0), turned=turned)
            work.swap_neighbours(ties=sweep % 2 == 0)
            if work.crossings() <= best:
                break
        if work.crossings() <= best:
            best, kept, counted = work.crossings(), work.kept(), list(work.crossed)
        else:
            work.restore(kept, counted)
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
"""Sweeps from each start, at most, and those without success after which it is given up."""
_STARTING = 6_000
"""Items that may be looked at before no other start is tried."""
_PASSING, _POLISHING = 60, 6
"""Items that may be looked at in moving lines past each other, for each item there is; and when
the lines of a tensor have been joined after that."""
_MOST_PASSING = 60_000
"""The limit for all items in total."""
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
        apart = split_edges(layers)
        if len(apart.rank) > count:
            other = _Search(apart)
            if other.sweep() <= together.best:
                other.improve(_PASSING)
                other.finish()
                joined, items = join_edges(apart, count)
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
        orders = dict(zip(self.ranks, self.orders, strict=True))
        layers = self.layers
        for rank in range(len(layers.ranks)):
            items = orders.get(rank)
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
        if not any(len(group) > 1 and max(map(len, group)) > 1 for group in groups):
            return
        ports: list[int] = []
        for head, group in zip(heads, groups, strict=True):
            own = range(len(self.above), len(self.above) + len(group))
            self.above += [[head] for _ in group]
            self.below += [list(lowers) for lowers in group]
            self.below[head] = list(own)
            ports += own
        for lower in {lower for group in groups for lowers in group for lower in lowers}:
            self.above[lower] = []
        for port in ports:
            for lower in self.below[port]:
                self.above[lower].append(port)
        self.ranks.append(-1)
        self.items.append(ports)


def _groups(lowers: Sequence[int], nets: Sequence[int]) -> list[tuple[int, ...]]:
    """Return where the tensors of an item go to, those that go to the same items as one."""
    groups: dict[int, list[int]] = {}
    for lower, net in zip(lowers, nets, strict=True):
        groups.setdefault(net, []).append(lower)
    return list(dict.fromkeys(map(tuple, groups.values())))


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
