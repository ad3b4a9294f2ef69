"""What layers took together in each pass: figures of a whole are computed pass by pass.

The sum of the layers' medians is the time of no pass: where something disturbs another layer in
each pass, every median leaves it out and the sum of a pass does not. So what layers take together,
and how much of a pass they cover, is computed for each pass, and then the median over the passes is
taken.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dld_tui.core.report.statistics import median_ranks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dld_tui.core.report.series import Times

    FloatArray: TypeAlias = NDArray[np.float64]

MIN_PASSES = 6
"""The fewest values whose smallest and largest hold their true median between them with 95 %."""


@dataclass(frozen=True, eq=False)
class PassTimes:
    """The times of layers by pass. None stands for what is not known."""

    times_ms: Times
    """``float64[layers, passes]``, NaN where a layer did not run."""
    lengths_ms: FloatArray
    """Of the passes, end to end: ``float64[passes]``; NaN where that is not known."""
    busy_ms: FloatArray | None = field(default=None)
    """How long any layer ran in each pass, where they ran on several threads; else None, as then it
    is the sum of their self times."""

    @cached_property
    def sums_ms(self) -> FloatArray:
        """The time of all layers together in each pass, NaN in one in which none ran."""
        return _sums(self.times_ms, None)

    @property
    def total_ms(self) -> float | None:
        """What the layers take together in a pass, the median over the passes."""
        return _median(self.sums_ms)

    @property
    def covered_percent(self) -> float | None:
        """The layers' time in the time of the pass, by pass, the median; above 100 in parallel."""
        return _median(self._of_length(self.sums_ms))

    @property
    def between_percent(self) -> float | None:
        """The part of a pass in which no layer ran, by pass, the median."""
        busy = self.sums_ms if self.busy_ms is None else self.busy_ms
        rest = _median(100 - self._of_length(busy))
        return None if rest is None else max(rest, 0.0)

    def together_ms(
        self, layers: Sequence[int], shares: Sequence[float] | None = None
    ) -> float | None:
        """Return what some layers take together, the median over the passes in which one ran.

        Args:
            layers: Their numbers.
            shares: How much of each; all of it by default.
        """
        if not layers:
            return None
        weights = None if shares is None else np.asarray(shares, dtype=np.float64)
        return _median(_sums(self.times_ms[list(layers)], weights))

    def of_pass_percent(self, layers: Sequence[int]) -> float | None:
        """Return the part of the whole pass that layers take together, by pass, the median.

        Over the passes in which one of them ran.
        """
        if not layers:
            return None
        return _median(self._of_length(_sums(self.times_ms[list(layers)], None)))

    @cached_property
    def intervals_ms(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper limits of each layer's median, NaN with fewer than `MIN_PASSES` values.

        The 95 % interval between two order statistics, which assumes nothing of the distribution
        (Hahn and Meeker, "Statistical Intervals", 1991, section 5.2).
        """
        ordered = np.sort(self.times_ms, axis=1)  # NaN last
        counts = np.count_nonzero(~np.isnan(self.times_ms), axis=1)
        low, high = np.full(len(counts), np.nan), np.full(len(counts), np.nan)
        for count in np.unique(counts):
            if count < MIN_PASSES:
                continue
            rows = counts == count
            below, above = median_ranks(int(count))
            low[rows], high[rows] = ordered[rows, below], ordered[rows, above]
        return low, high

    def _of_length(self, sums: FloatArray) -> FloatArray:
        lengths = np.where(self.lengths_ms > 0, self.lengths_ms, np.nan)
        return np.asarray(100 * sums / lengths)


@dataclass(frozen=True, eq=False)
class CostTimes:
    """What layers cost where some ran on a GPU: the two are recorded in passes of their own."""

    own: PassTimes
    """Self times on the processor."""
    gpu: PassTimes
    """Kernels on the GPU."""
    on_host: frozenset[int]
    """The layers that cost their own time; all others cost their kernels."""

    def together_ms(
        self, layers: Sequence[int], shares: Sequence[float] | None = None
    ) -> float | None:
        """Return what some layers cost together: on the GPU, and on the processor beside it."""
        weights = [1.0] * len(layers) if shares is None else shares
        parts = []
        for times, host in ((self.own, True), (self.gpu, False)):
            chosen = [(n, w) for n, w in zip(layers, weights, strict=True)
                      if (n in self.on_host) == host]  # fmt: skip
            parts.append(times.together_ms([n for n, _ in chosen], [w for _, w in chosen]))
        known = [part for part in parts if part is not None]
        return sum(known) if known else None

    @cached_property
    def intervals_ms(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper limits of the median of what each layer costs."""
        low, high = (limits.copy() for limits in self.gpu.intervals_ms)
        hosts = sorted(self.on_host)
        for mine, own in zip((low, high), self.own.intervals_ms, strict=True):
            mine[hosts] = own[hosts]
        return low, high


def interval_ms(times: PassTimes | CostTimes, layer: int) -> tuple[float, float] | None:
    """Return the 95 % interval of the median of a layer; None with too few passes."""
    low, high = (float(limits[layer]) for limits in times.intervals_ms)
    return None if math.isnan(low) else (low, high)


def places(times: PassTimes | CostTimes, layer: int) -> tuple[int, int] | None:
    """Return the first and the last place that a layer may have by its median, from 1.

    Another layer is surely longer or shorter when the intervals of the two medians do not overlap.
    None with too few passes.
    """
    own = interval_ms(times, layer)
    if own is None:
        return None
    low, high = times.intervals_ms
    longer = int(np.count_nonzero(low > own[1]))
    shorter = int(np.count_nonzero(high < own[0]))
    known = int(np.count_nonzero(~np.isnan(low)))
    return 1 + longer, max(known - shorter, 1 + longer)


def _sums(times: Times, weights: FloatArray | None) -> FloatArray:
    ran = ~np.isnan(times)
    known = np.where(ran, times, 0.0)
    sums = known.sum(axis=0) if weights is None else weights @ known
    return np.asarray(np.where(ran.any(axis=0), sums, np.nan))


def _median(values: FloatArray) -> float | None:
    known = values[~np.isnan(values)]
    return float(np.median(known)) if known.size else None


def without_contradictions(times: Times, lengths_ms: FloatArray) -> Times:
    """Return times with NaN for passes whose layers, one after another, took longer than the pass.

    Clocks and rounding are allowed 5 % and 2 microseconds a layer.
    """
    ran = np.count_nonzero(~np.isnan(times), axis=0)
    with np.errstate(invalid="ignore"):
        wrong: NDArray[np.bool_] = _sums(times, None) > 1.05 * lengths_ms + 0.002 * ran
    if not wrong.any():
        return times
    return np.asarray(np.where(wrong, np.nan, times))


def busy_us(starts: FloatArray, ends: FloatArray) -> float:
    """Return how long at least one of some intervals lasts: their union."""
    if not starts.size:
        return 0.0
    order = np.argsort(starts, kind="stable")
    begins, reached = starts[order], np.maximum.accumulate(ends[order])
    # What lies between the furthest end so far and the next start is covered by none.
    gaps = np.maximum(begins[1:] - reached[:-1], 0.0).sum()
    return float(reached[-1] - begins[0] - gaps)
