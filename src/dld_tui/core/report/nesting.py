"""Which events of a thread lie inside which others: the body of an If, Loop or Scan."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeAlias

Span: TypeAlias = "tuple[Hashable, float, float]"
"""(thread, start, duration)."""


class SelfTimes:
    """Self times of the events of one pass, which come in the order of their ends.

    What ended before an event and began after its start lay inside it. Comparing ends would not
    do: profilers cut starts and durations to microseconds, so a child can seem to end after its
    parent. Of two equal starts that of an event which can hold others (`holds_others`) is earlier.
    """

    def __init__(self) -> None:
        self._finished: dict[Hashable, list[tuple[float, float]]] = {}

    def add(self, thread: Hashable, start: float, duration: float, holds_others: bool) -> float:
        """Return the duration without that of the events directly inside, never below 0."""
        finished = self._finished.setdefault(thread, [])
        inside = 0.0
        while finished and (finished[-1][0] > start or (holds_others and finished[-1][0] == start)):
            inside += finished.pop()[1]
        finished.append((start, duration))
        return max(0.0, duration - inside)

    @property
    def outermost(self) -> int:
        """How many events so far lie inside no other one."""
        return sum(len(finished) for finished in self._finished.values())


def depths(spans: Sequence[Span]) -> list[int]:
    """Return how many spans of the same thread hold each one.

    Args:
        spans: Sorted by start, of equal starts the longer first.
    """
    found: list[int] = []
    ends: dict[Hashable, list[float]] = {}
    for thread, start, duration in spans:
        holders = ends.setdefault(thread, [])
        while holders and holders[-1] <= start:
            holders.pop()
        found.append(len(holders))
        holders.append(start + duration)
    return found
