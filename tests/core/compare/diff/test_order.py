"""Orders and sequences."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dld_tui.core.compare.diff.matching import common_subsequence, out_of_order


def test_out_of_order() -> None:
    assert out_of_order([]) == 0
    assert out_of_order([1, 5, 9]) == 0
    assert out_of_order([9, 1, 5]) == 1
    assert out_of_order([3, 2, 1]) == 2


def length_of_longest(first: list[int], second: list[int]) -> int:
    row = [0] * (len(second) + 1)
    for one in first:
        before = list(row)
        for place, other in enumerate(second):
            row[place + 1] = (
                before[place] + 1 if one == other else max(before[place + 1], row[place])
            )
    return row[-1]


SEQUENCES = st.lists(st.integers(0, 3), max_size=20)


@given(SEQUENCES, SEQUENCES)
def test_common_subsequence_is_a_longest_one(first: list[int], second: list[int]) -> None:
    pairs = common_subsequence(first, second)
    assert all(first[one] == second[other] for one, other in pairs)
    assert pairs == sorted(set(pairs))
    assert len({one for one, _ in pairs}) == len({other for _, other in pairs}) == len(pairs)
    assert len(pairs) == length_of_longest(first, second)


def test_a_small_budget_leaves_the_common_ends() -> None:
    first, second = [1, 2, *range(10, 60), 3], [1, 2, *range(100, 150), 3]
    assert common_subsequence(first, second, budget=20) == [(0, 0), (1, 1), (52, 52)]
