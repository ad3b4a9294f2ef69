"""Orders of the ranks of a layered drawing: sorting, swapping neighbours, counting what crosses."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

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
        found = sorted(reversed(keys) if turned else keys, key=keys.__getitem__)
        if len(keys) < len(items):
            moved = iter(found)
            found = [next(moved) if item in keys else item for item in items]
        if found != items:
            self.change(rank, found)

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
                for one in mine:
                    at = place[one]
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
