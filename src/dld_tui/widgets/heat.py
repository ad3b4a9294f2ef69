"""Heat: how much a time stands out, in six steps."""

from __future__ import annotations

from collections.abc import Iterable

HEATS = ("heat-0", "heat-1", "heat-2", "heat-3", "heat-4", "heat-5")
"""From cold to hot: style classes of line views, component classes of the timeline."""
_LIMITS = (0.04, 0.12, 0.3, 0.5, 0.75)


def hottest(times: Iterable[float]) -> float:
    """Return the time that counts as fully hot.

    It is the longest, but at least four times the mean: where all take the same time none is hot.
    """
    known = list(times)
    return max(*known, 4 * sum(known) / len(known)) if known else 0.0


def heat(time: float | None, hot: float) -> int:
    """Return a time's step, 0 to 5, where `hot` is what :func:`hottest` found."""
    if time is None or hot <= 0:
        return 0
    return sum(time >= limit * hot for limit in _LIMITS)
