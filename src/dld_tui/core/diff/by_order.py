"""Matching by the order of the file, where nothing else tells nodes apart."""

from __future__ import annotations

from dld_tui.core.diff.matches import Matches, open_nodes
from dld_tui.core.diff.side import Side
from dld_tui.core.diff.structure import Interner

_BUDGET = 2_000_000
"""Steps after which two sequences are too different to align."""


def match_order(matches: Matches, intern: Interner) -> None:
    """Align the open nodes of both sides by operator and attributes, and pair what fits."""
    if not matches.unfinished:
        return
    mine, theirs = open_nodes(matches.old), open_nodes(matches.new)
    first = [_key(matches.old, index, intern) for index in mine]
    second = [_key(matches.new, index, intern) for index in theirs]
    for one, other in common_subsequence(first, second):
        support, doubt = matches.evidence(mine[one], theirs[other])
        if support > doubt:
            matches.pair(mine[one], theirs[other], guessed=True)


def _key(side: Side, index: int, intern: Interner) -> int:
    return intern(("kind", side.operators[index], side.attributes(index)))


def common_subsequence(
    first: list[int], second: list[int], budget: int = _BUDGET
) -> list[tuple[int, int]]:
    """Return the places of a longest common subsequence (Myers 1986, the greedy algorithm).

    Args:
        first: The one sequence.
        second: The other one.
        budget: Steps to spend; nothing but the common ends is found when it does not suffice.
    """
    start = 0
    shorter = min(len(first), len(second))
    while start < shorter and first[start] == second[start]:
        start += 1
    end = 0
    while end < shorter - start and first[-1 - end] == second[-1 - end]:
        end += 1
    head = [(place, place) for place in range(start)]
    tail = [(len(first) - place, len(second) - place) for place in range(end, 0, -1)]
    middle = _greedy(first[start : len(first) - end], second[start : len(second) - end], budget)
    return [*head, *((one + start, other + start) for one, other in middle), *tail]


def _greedy(first: list[int], second: list[int], budget: int) -> list[tuple[int, int]]:
    size, other_size = len(first), len(second)
    reached = {1: 0}
    trace: list[dict[int, int]] = []
    for edits in range(size + other_size + 1):
        trace.append(dict(reached))
        budget -= 2 * edits + 1
        for diagonal in range(-edits, edits + 1, 2):
            down = diagonal == -edits or (
                diagonal != edits and reached[diagonal - 1] < reached[diagonal + 1]
            )
            x = reached[diagonal + 1] if down else reached[diagonal - 1] + 1
            y = x - diagonal
            begin = x
            while x < size and y < other_size and first[x] == second[y]:
                x += 1
                y += 1
            budget -= x - begin
            reached[diagonal] = x
            if x >= size and y >= other_size:
                return _walk_back(trace, size, other_size)
        if budget < 0:
            return []
    return []


def _walk_back(trace: list[dict[int, int]], x: int, y: int) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    for edits in range(len(trace) - 1, -1, -1):
        reached = trace[edits]
        diagonal = x - y
        down = diagonal == -edits or (
            diagonal != edits and reached[diagonal - 1] < reached[diagonal + 1]
        )
        before = diagonal + 1 if down else diagonal - 1
        start_x = reached[before] if edits else 0
        start_y = start_x - before if edits else 0
        while x > start_x and y > start_y:
            x, y = x - 1, y - 1
            pairs.append((x, y))
        x, y = start_x, start_y
    return pairs[::-1]
