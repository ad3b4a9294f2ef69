"""What can be reached from something, step by step: along links, or calls."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


def reached(starts: Iterable[T], following: Callable[[T], Iterable[T]]) -> set[T]:
    """Return what can be reached from some things, these included.

    Args:
        starts: The things.
        following: Returns what is one step from a thing; asked once for each.
    """
    found: set[T] = set()
    waiting = list(starts)
    while waiting:
        thing = waiting.pop()
        if thing not in found:
            found.add(thing)
            waiting += following(thing)
    return found
