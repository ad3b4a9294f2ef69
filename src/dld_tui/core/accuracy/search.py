"""The smallest set of nodes that must keep their precision so that a result is good enough.

Which sets are good is not known until they are tried, and a trial is a run of a model. So the
search is a generator: it yields the set to try next and is sent whether that was good. It can be
stopped and taken up again from the trials made so far, and it knows nothing of models.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Mapping, MutableMapping, Sequence
from typing import Any, TypeAlias

from dld_tui.core import fmt

Kept: TypeAlias = "frozenset[str]"
"""The nodes that keep their precision in a trial."""
Search: TypeAlias = "Generator[Kept, bool, tuple[str, ...] | None]"

_FIRST = 8
"""So many suspects are likely to be needed; behind them all are as good as any other."""


def minimal_set(suspects: Sequence[str], known: MutableMapping[Kept, bool] | None = None) -> Search:
    """Find a smallest set of suspects that makes a trial good.

    This is delta debugging for many suspects of which few matter (Zeller and Hildebrandt,
    *Simplifying and Isolating Failure-Inducing Input*, 2002), by bisection: the last node of the
    shortest good prefix is needed, so it is kept and the next one is looked for before it. That
    takes about ``log2(n)`` trials for each node found, where ``ddmin`` takes several times as many
    for nodes that are far apart. At the end each node is tried without, so the result is 1-minimal
    whatever the rule is: without any one of its nodes a trial is not good. It was tried itself.

    Args:
        suspects: The nodes, those that are likely to be needed first.
        known: Trials that were made already, which are not made again; new ones are added.

    Yields:
        The nodes to keep; send whether the trial was good.

    Returns:
        The nodes in the order given; None when not even all of them are enough.
    """
    tried: MutableMapping[Kept, bool] = {} if known is None else known
    ordered = list(dict.fromkeys(suspects))
    if (yield from _try([], tried)):
        return ()
    if not (yield from _try(ordered, tried)):
        return None
    found: list[str] = []
    rest = ordered
    while rest and not (yield from _try(found, tried)):
        end = yield from _shortest_prefix(found, rest, tried)
        found.append(rest[end - 1])
        rest = rest[: end - 1]
    return tuple((yield from _without_any(sorted(found, key=ordered.index), tried)))


def _try(kept: Iterable[str], tried: MutableMapping[Kept, bool]) -> Generator[Kept, bool, bool]:
    wanted = frozenset(kept)
    if wanted not in tried:
        tried[wanted] = yield wanted
    return tried[wanted]


def _shortest_prefix(
    found: list[str], rest: list[str], tried: MutableMapping[Kept, bool]
) -> Generator[Kept, bool, int]:
    """Return how many of the rest are needed, when `found` alone is not good and all of it is."""
    low, high = 0, 1
    while high < len(rest) and not (yield from _try(found + rest[:high], tried)):
        low, high = high, high * 2 if high < _FIRST else len(rest)
    high = min(high, len(rest))
    while high - low > 1:
        middle = (low + high) // 2
        if (yield from _try(found + rest[:middle], tried)):
            high = middle
        else:
            low = middle
    return high


def _without_any(
    kept: list[str], tried: MutableMapping[Kept, bool]
) -> Generator[Kept, bool, list[str]]:
    """Return what is left of a good set when nothing more can be taken away."""
    at = len(kept) - 1
    while at >= 0:
        rest = kept[:at] + kept[at + 1 :]
        if (yield from _try(rest, tried)):
            kept, at = rest, len(rest)
        at -= 1
    return kept


def expected_trials(suspects: int, needed: int = 1) -> tuple[int, int]:
    """Return how many trials a search takes about, at least and at most, for a result of a size.

    Args:
        suspects: How many nodes there are.
        needed: How many of them are expected to be in the result.
    """
    if suspects < 1:
        return 1, 1
    needed = min(needed, suspects)
    return 2, 2 + needed * (2 * math.ceil(math.log2(suspects + 1)) + 2)


def cost_text(estimate: Mapping[str, Any]) -> str:
    """Return what a search would cost, from ``nodes``, ``trials_per_node`` and ``trial_seconds``.

    How many nodes have to stay is what it is to find, so the cost is told for each of them.
    """
    nodes, each, seconds = (
        estimate[name] for name in ("nodes", "trials_per_node", "trial_seconds")
    )
    return (
        f"{nodes:,} nodes can be lowered. A trial takes {fmt.duration(seconds)}; there are 1 when"
        f" all can be, 2 when that is never enough, and about {each} more"
        f" ({fmt.duration(each * seconds)}) for each node that has to stay"
    )


def as_record(tried: Mapping[Kept, bool]) -> list[list[str] | bool]:
    """Return trials as JSON data: sets and their results, one after the other."""
    flat: list[list[str] | bool] = []
    for kept, good in tried.items():
        flat += [sorted(kept), good]
    return flat


def from_record(record: Sequence[object]) -> dict[Kept, bool]:
    """Return the trials that :func:`as_record` gave; what is damaged is left out."""
    found: dict[Kept, bool] = {}
    for names, good in zip(record[::2], record[1::2], strict=False):
        if isinstance(names, list) and isinstance(good, bool):
            found[frozenset(str(name) for name in names)] = good
    return found
