"""The search for the fewest nodes with which a check still fails."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

Search: TypeAlias = "Generator[tuple[int, ...], bool, tuple[int, ...]]"


@dataclass(frozen=True)
class Reduction:
    """What a search for a smaller model found. Fields may be added, never renamed."""

    path: Path
    """The smallest model that was found."""
    nodes_before: int
    nodes_after: int
    nodes: list[str]
    """What is left, by the refs of the model that was reduced. Foreign text."""
    tried: int
    """Models that were checked."""
    known: int
    """Others of which an earlier search that was stopped had the answer."""
    seconds: float
    said: str
    """The end of what the check printed of the smallest model. Foreign text."""


def smallest(count: int) -> Search:
    """Find few of so many nodes that still fail: no single one of them can be left out.

    Halves are tried first, from the end and then from the start of the order, as a check that looks
    at one place needs only what is near it; then delta debugging leaves out ever smaller parts.

    Args:
        count: How many there are, in an order in which each comes after those that it uses. All of
            them together fail.

    Yields:
        The places of nodes to try; wants to be sent whether they fail.

    Returns:
        The places of those that are left.
    """
    kept = tuple(range(count))
    for from_start in (True, False):
        low, high = 0, len(kept)
        while high - low > 1:
            middle = (low + high) // 2
            part = kept[:middle] if from_start else kept[len(kept) - middle :]
            if (yield part):
                high = middle
            else:
                low = middle
        kept = kept[:high] if from_start else kept[len(kept) - high :]
    size = len(kept) // 2
    while size and len(kept) > 1:
        before = len(kept)
        end = len(kept)
        while end > 0 and len(kept) > 1:
            start = max(0, end - size)
            part = kept[:start] + kept[end:]
            if part and (yield part):
                kept = part
            end = start
        if size > 1:
            size //= 2
        elif len(kept) == before:
            break
    return kept
