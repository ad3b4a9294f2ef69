"""Lines that are moved past each other."""

from __future__ import annotations

import pytest

from dld_tui.core.model.graph.crossings import Ordering, pass_lines
from tests.core.model.graph.test_sweeps import ordering, pairs


def two_lines(length: int) -> Ordering:
    """Return two lines that cross, with a third one beside them; each rank is fine by itself."""
    ranks = [[3 * rank, 3 * rank + 1, 3 * rank + 2] for rank in range(length)]
    ranks[-1][:2] = reversed(ranks[-1][:2])
    count = 3 * length
    above = [[item - 3] if item >= 3 else [] for item in range(count)]
    below = [[item + 3] if item + 3 < count else [] for item in range(count)]
    return Ordering(ranks, above, below)


def test_a_line_is_moved_as_a_whole() -> None:
    work = two_lines(4)
    assert work.crossings() == 1
    assert pass_lines(work, 4_000) == 0
    assert pairs(work) == 0


@pytest.mark.parametrize("seed", range(10))
def test_it_never_gets_worse_and_counts_what_is_left(seed: int) -> None:
    work = ordering(seed, (4, 6, 6, 5, 4, 6))
    before, items = work.crossings(), [sorted(found) for found in work.ranks]
    passed = pass_lines(work, 20_000)
    assert passed == pairs(work) < before
    assert [sorted(found) for found in work.ranks] == items


def test_the_effort_is_kept_to() -> None:
    work = ordering(0, (30, 40, 40, 30))
    work.crossings()
    start = work.effort
    pass_lines(work, 3_000)
    assert work.effort - start < 3_000 + 500, "one move more, at most"


def test_without_crossings_nothing_is_tried() -> None:
    work = two_lines(3)
    pass_lines(work, 4_000)
    before = work.kept()
    assert pass_lines(work, 1_000) == 0
    assert work.ranks == before
