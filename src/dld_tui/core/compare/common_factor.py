"""A factor by which all rows of a comparison changed: of the machine or a setting, not of rows.

A machine that is 4 times slower makes every row slower, by 3.5 to 5 times, as the rest of the noise
of a busy machine is not the same for all. That is one finding, and what does not follow it another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dld_tui.core.compare.records import ComparisonRow
from dld_tui.core.dataclass import dataclass

LEAST_ROWS = 8
"""Rows from which it means something that all changed alike."""
_MOST_TIME = 0.9
"""The part of the time that has to follow the factor."""
_NEAR, _POWER = 1.06, 0.3
"""Rows follow a factor within so much of it, or within a power of it: 4.2 within 1.54."""


@dataclass(frozen=True)
class CommonFactor:
    """What most of the time of the base is multiplied by."""

    ratio: float
    """The median ratio, each row as heavy as its time in the base."""
    low: float
    """The least ratio of the rows that follow it."""
    high: float
    rows: int
    """Rows with a time in both."""

    def holds(self, ratio: float) -> bool:
        """Return whether a ratio is this factor."""
        return _follows(ratio, self.ratio)


def _width(ratio: float) -> float:
    return max(_NEAR, math.pow(max(ratio, 1 / ratio), _POWER))


def _follows(ratio: float, factor: float) -> bool:
    return abs(math.log(ratio / factor)) <= math.log(_width(factor))


def common_factor(rows: Sequence[ComparisonRow], index: int, base: int) -> CommonFactor | None:
    """Return the factor by which a report differs from the base; None where there is none.

    Args:
        rows: By layer.
        index: The report.
        base: The report that it is compared with.
    """
    pairs = sorted(
        (after / before, before)
        for row in rows
        if (before := row.cells[base].time_ms) and (after := row.cells[index].time_ms)
    )
    if len(pairs) < LEAST_ROWS:
        return None
    whole, passed, usual = sum(before for _, before in pairs), 0.0, 1.0
    for ratio, before in pairs:
        passed += before
        if passed >= whole / 2:
            usual = ratio
            break
    if max(usual, 1 / usual) <= _width(usual):
        return None
    following = [(ratio, before) for ratio, before in pairs if _follows(ratio, usual)]
    if sum(before for _, before in following) < _MOST_TIME * whole:
        return None
    return CommonFactor(usual, following[0][0], following[-1][0], len(pairs))
