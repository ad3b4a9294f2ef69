"""How far a difference of medians can come from chance: a percentile bootstrap.

The interval is the percentile interval of Efron and Tibshirani, "An Introduction to the Bootstrap"
(1993), section 13.3, of the difference of two independent medians.

A bootstrap sample of n values need not be drawn to know its median. Its k-th smallest value is that
at rank ``floor(n * U)`` of the sorted data, where U is the k-th smallest of n uniform numbers: Beta
(k, n - k + 1) distributed (David and Nagaraja, "Order Statistics", 2003, section 2.3). So each
resample costs one or two numbers, however long the sample, and all rows with the same number of
passes share them.

An interval of 95 % leaves out 0 for one unchanged row of twenty. So many rows are tested together:
each gets a p-value of the Mann-Whitney U test (normal approximation with the corrections for ties
and continuity, Hollander and Wolfe, "Nonparametric Statistical Methods", 1999, section 4.1), and of
these the procedure of Benjamini and Hochberg ("Controlling the False Discovery Rate", 1995) keeps
so many that of the rows called changed at most 5 % are expected not to be. A row is changed when
both say so.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from dld_tui.core.compare.model import Interval

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dld_tui.core.compare.model import FloatArray

RESAMPLES = 1000
LEVEL_PERCENT = 95.0
SEED = 20_240_229
MIN_PASSES = 5
"""With fewer values the bootstrap says nothing: it draws the same few again and again."""
METHOD = (
    f"± is half the width of the {LEVEL_PERCENT:.0f} % interval of the difference of medians"
    f" (percentile bootstrap, {RESAMPLES} resamples, Efron and Tibshirani 1993); a row is noise"
    " where the interval contains 0, or where the Mann-Whitney test of all rows together (Benjamini"
    " and Hochberg 1995, 5 %) does not tell it apart: so a difference larger than its ± can be"
    " noise, too"
)
"""What ``±`` and ``noise`` mean."""
FALSE_DISCOVERIES = 0.05
"""The part of the rows called changed that may be unchanged, expected."""

_ROWS_AT_ONCE = 256
"""Rows whose resamples are held together: 2 x 2 MB."""


@lru_cache(maxsize=64)
def _ranks(count: int, stream: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the two ranks whose mean is the median, for each resample of `count` values."""
    dice = random.Random(SEED * 1_000_003 + stream)
    upper_rank = count // 2 + 1
    upper = [dice.betavariate(upper_rank, count - upper_rank + 1) for _ in range(RESAMPLES)]
    lower = upper
    if count % 2 == 0:
        # Below the (m + 1)-th smallest lie m uniform numbers; the largest of them is the m-th.
        below = upper_rank - 1
        lower = [value * dice.random() ** (1 / below) for value in upper]
    return _as_ranks(lower, count), _as_ranks(upper, count)


def _as_ranks(uniform: Sequence[float], count: int) -> NDArray[np.intp]:
    ranks = np.floor(np.array(uniform) * count).astype(np.intp)
    return np.asarray(np.minimum(ranks, count - 1))


def intervals(
    first: Sequence[FloatArray], second: Sequence[FloatArray], resolution_ms: float = 0.0
) -> list[Interval | None]:
    """Return the interval of ``median(second) - median(first)`` for each pair of samples.

    Args:
        first: Sorted samples without NaN, one a row.
        second: The samples that they are compared with, as many.
        resolution_ms: The step of the clock: a difference can be wrong by so much for this alone.

    Returns:
        One interval a row, None for those with fewer than `MIN_PASSES` values.
    """
    found: list[Interval | None] = [None] * len(first)
    batches: dict[tuple[int, int], list[int]] = {}
    for row, (one, other) in enumerate(zip(first, second, strict=True)):
        if min(len(one), len(other)) >= MIN_PASSES:
            batches.setdefault((len(one), len(other)), []).append(row)
    for rows in batches.values():
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            part = rows[start : start + _ROWS_AT_ONCE]
            moved = _medians([second[row] for row in part], 1)
            moved -= _medians([first[row] for row in part], 0)
            low, high = _bounds(moved)
            for row, below, above in zip(part, low.tolist(), high.tolist(), strict=True):
                found[row] = Interval(below - resolution_ms, above + resolution_ms)
    return found


def _medians(samples: Sequence[FloatArray], stream: int) -> FloatArray:
    ordered = np.stack(samples)
    lower, upper = _ranks(ordered.shape[1], stream)
    return (ordered[:, lower] + ordered[:, upper]) / 2


def _bounds(moved: FloatArray) -> tuple[FloatArray, FloatArray]:
    tail = int(RESAMPLES * (100 - LEVEL_PERCENT) / 200)
    moved.partition((tail, RESAMPLES - 1 - tail), axis=1)
    return moved[:, tail], moved[:, RESAMPLES - 1 - tail]


def p_value(first: FloatArray, second: FloatArray) -> float:
    """Return how likely two samples so far apart are when nothing changed: Mann-Whitney U.

    Args:
        first: Sorted, not empty.
        second: Sorted, not empty.
    """
    count, other = len(first), len(second)
    below = np.searchsorted(first, second, "left")
    upto = np.searchsorted(first, second, "right")
    statistic = float((below + upto).sum()) / 2
    total = count + other
    _, ties = np.unique(np.concatenate((first, second)), return_counts=True)
    tied = float((ties.astype(np.float64) ** 3 - ties).sum())
    variance = count * other / 12 * (total + 1 - tied / (total * (total - 1)))
    if variance <= 0:  # all values are the same
        return 1.0
    away = max(abs(statistic - count * other / 2) - 0.5, 0.0)
    return math.erfc(away / math.sqrt(2 * variance))


def discoveries(p_values: Sequence[float | None]) -> list[bool | None]:
    """Return which of several tests made together hold, by Benjamini and Hochberg.

    Args:
        p_values: One a test; None where there was none, which is None in the result, too.
    """
    known = sorted(value for value in p_values if value is not None)
    limit = -1.0
    for rank, value in enumerate(known, 1):
        if value <= rank / len(known) * FALSE_DISCOVERIES:
            limit = value
    return [None if value is None else value <= limit for value in p_values]


def median_of(ordered: FloatArray) -> float:
    """Return the median of a sorted sample."""
    return float(ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def resolution_of(values: FloatArray) -> float:
    """Return the step of the clock in milliseconds: 0.001 when all are whole microseconds, else 0.

    ONNX Runtime writes whole microseconds, which is as long as a small layer takes.
    """
    micro = values[np.isfinite(values)] * 1000
    if micro.size and bool(np.all(np.abs(micro - np.round(micro)) < 1e-6)):
        return 0.001
    return 0.0
