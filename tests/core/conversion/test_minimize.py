"""The search for the fewest nodes that still fail."""

from __future__ import annotations

import random

import pytest

from dld_tui.core.conversion.reduction import minimize


def searched(count: int, needed: set[int]) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """Return what a search finds where a part fails that has all needed nodes, and its trials."""
    search = minimize(count)
    tried: list[tuple[int, ...]] = []
    answer: bool | None = None
    while True:
        try:
            part = next(search) if answer is None else search.send(answer)
        except StopIteration as end:
            return end.value, tried
        tried.append(part)
        answer = needed <= set(part)


@pytest.mark.parametrize("seed", range(20))
def test_exactly_the_needed_nodes_are_found(seed: int) -> None:
    dice = random.Random(seed)
    count = dice.randint(1, 300)
    needed = set(dice.sample(range(count), dice.randint(1, min(4, count))))
    found, tried = searched(count, needed)
    assert set(found) == needed
    assert all(part for part in tried)


def test_one_node_of_many_takes_few_trials() -> None:
    found, tried = searched(4096, {1234})
    assert found == (1234,)
    assert len(tried) < 30


def test_what_is_found_cannot_be_made_smaller_where_nothing_is_monotone() -> None:
    def fails(part: tuple[int, ...]) -> bool:
        return len(part) % 3 == 0 and 5 in part

    search = minimize(30)
    answer: bool | None = None
    while True:
        try:
            part = next(search) if answer is None else search.send(answer)
        except StopIteration as end:
            found = end.value
            break
        answer = fails(part)
    assert fails(found)
    assert not any(fails(tuple(x for x in found if x != left)) for left in found)
