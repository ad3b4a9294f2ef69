"""Orders of ranks: counting what crosses, and changing it."""

from __future__ import annotations

import itertools
import random

import pytest

from dld_tui.core.model.graph.crossings import Ordering


def ordering(seed: int, sizes: tuple[int, ...] = (5, 7, 6, 4)) -> Ordering:
    chance = random.Random(seed)
    ranks: list[list[int]] = []
    for size in sizes:
        start = sum(map(len, ranks))
        ranks.append(list(range(start, start + size)))
    count = sum(sizes)
    above: list[list[int]] = [[] for _ in range(count)]
    below: list[list[int]] = [[] for _ in range(count)]
    for upper, lower in itertools.pairwise(ranks):
        for one in upper:
            for other in chance.sample(lower, chance.randint(0, 3)):
                below[one].append(other)
                above[other].append(one)
    return Ordering(ranks, above, below)


def pairs(work: Ordering) -> int:
    """Count the crossings pair by pair."""
    total = 0
    for rank, items in enumerate(work.ranks[:-1]):
        place = {item: at for at, item in enumerate(work.ranks[rank + 1])}
        ends = [(at, place[other]) for at, item in enumerate(items) for other in work.below[item]]
        total += sum(a < c and b > d for a, b in ends for c, d in ends)
    return total


@pytest.mark.parametrize("seed", range(8))
def test_what_has_changed_is_counted_again(seed: int) -> None:
    work = ordering(seed)
    assert work.crossings() == pairs(work)
    for sweep in range(6):
        work.sweep(down=sweep % 2 == 0, turned=sweep % 4 < 2)
        assert work.crossings() == pairs(work)
        before = work.crossings()
        work.swap_neighbours(ties=sweep % 3 == 0)
        assert work.crossings() == pairs(work) <= before
        assert [sorted(items) for items in work.ranks] == [
            sorted(items) for items in ordering(seed).ranks
        ]


@pytest.mark.parametrize("seed", range(8))
def test_an_order_with_more_crossings_is_not_taken(seed: int) -> None:
    work, chance = ordering(seed), random.Random(seed)
    work.crossings()
    taken = []
    for _ in range(60):
        before, kept, places = sum(work.crossed), work.kept(), list(work.place)
        first = chance.randrange(4)
        orders = {
            rank: chance.sample(work.ranks[rank], len(work.ranks[rank]))
            for rank in range(first, min(4, first + 2))
        }
        taken.append(work.attempt(orders))
        if taken[-1]:
            assert [work.ranks[rank] for rank in orders] == list(orders.values())
            assert sum(work.crossed) <= before
        else:
            assert (work.ranks, work.place, sum(work.crossed)) == (kept, places, before)
        assert sum(work.crossed) == pairs(work)
    assert set(taken) == {True, False}


def test_the_orders_come_back() -> None:
    work = ordering(3)
    kept, crossings = work.kept(), work.crossings()
    work.sweep(down=True)
    work.sweep(down=False)
    assert work.ranks != kept
    work.restore(kept)
    assert work.ranks == kept
    assert work.crossings() == crossings
    assert all(work.place[item] == at for items in kept for at, item in enumerate(items))
