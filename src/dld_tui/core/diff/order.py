"""How far one order is from another."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise


def out_of_order(numbers: Sequence[int]) -> int:
    """Return how many numbers would have to move to make all of them ascend."""
    if all(first < second for first, second in pairwise(numbers)):
        return 0
    # The longest ascending part may stay: patience sorting finds its length.
    ends: list[int] = []
    for number in numbers:
        place = bisect_left(ends, number)
        ends[place : place + 1] = [number]
    return len(numbers) - len(ends)
