"""How the values of a tensor are spread, counted in parts so that any size fits in memory."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dld_tui.core.document.tensor import Tensor, TensorStatistics, tensor_statistics
from dld_tui.core.errors import CancelledError
from dld_tui.core.tensors.elements import PART_ELEMENTS
from dld_tui.core.types import CancelCheck, ProgressCallback


@dataclass(frozen=True)
class Histogram:
    """Counts of finite values in bins of one width; the last bin has both its ends."""

    low: float
    """Where the first bin begins."""
    high: float
    """Where the last bin ends."""
    counts: tuple[int, ...]
    below: int
    """Finite values less than `low`; only with a range that the caller chose."""
    above: int
    nans: int
    negative_infinities: int
    positive_infinities: int
    statistics: TensorStatistics

    def edge(self, index: int) -> float:
        """Return where bin `index` begins; the end of the last one for one more."""
        share = index / len(self.counts)
        return self.low * (1 - share) + self.high * share


def tensor_histogram(
    tensor: Tensor,
    bins: int = 64,
    *,
    low: float | None = None,
    high: float | None = None,
    statistics: TensorStatistics | None = None,
    progress: ProgressCallback | None = None,
    cancelled: CancelCheck | None = None,
) -> Histogram | None:
    """Read a tensor and count its values; None where it has no finite ones, or no real numbers.

    Args:
        bins: How many bins.
        low: Where the first begins; by default at the least finite value.
        high: Where the last ends; by default at the largest finite value.
        statistics: Those of the tensor when they are known, which saves one of two readings.
        progress: Called with elements done and elements in all.
        cancelled: Asked before each part.

    Raises:
        InputError: The values cannot be read.
        CancelledError: `cancelled` said so.
    """
    total = tensor.element_count
    readings = 1 if statistics is not None else 2

    def report(done: int) -> None:
        if progress is not None:
            progress(done, total * readings)

    if statistics is None:
        statistics = tensor_statistics(
            tensor, progress=lambda done, _: report(done), cancelled=cancelled
        )
    if statistics is None or statistics.minimum is None or statistics.maximum is None:
        return None
    start = statistics.minimum if low is None else low
    end = statistics.maximum if high is None else high
    counter = _Counter(start, max(end, start), bins)
    for first in range(0, total, PART_ELEMENTS):
        if cancelled is not None and cancelled():
            raise CancelledError
        counter.add(tensor.read(first, PART_ELEMENTS).astype(np.float64))
        report(total * (readings - 1) + min(first + PART_ELEMENTS, total))
    return counter.result(statistics)


class _Counter:
    def __init__(self, low: float, high: float, bins: int) -> None:
        self._low, self._high = low, high
        self._counts = np.zeros(max(bins, 1), np.int64)
        self._outside = [0, 0]
        self._infinities = [0, 0]
        self._nans = 0

    def add(self, values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> None:
        """Count a part of the values."""
        self._nans += int(np.isnan(values).sum())
        self._infinities[0] += int((values == -math.inf).sum())
        self._infinities[1] += int((values == math.inf).sum())
        known = values[np.isfinite(values)]
        self._outside[0] += int((known < self._low).sum())
        self._outside[1] += int((known > self._high).sum())
        inside = known[(known >= self._low) & (known <= self._high)]
        bins = len(self._counts)
        # Halves: the width of the range of float64 is itself no float64.
        width = self._high / 2 - self._low / 2
        if width > 0:
            places = ((inside / 2 - self._low / 2) / width * bins).astype(np.int64)
            np.clip(places, 0, bins - 1, out=places)
        else:
            places = np.zeros(len(inside), np.int64)
        self._counts += np.bincount(places, minlength=bins)

    def result(self, statistics: TensorStatistics) -> Histogram:
        """Return what was counted."""
        return Histogram(
            low=self._low,
            high=self._high,
            counts=tuple(int(count) for count in self._counts),
            below=self._outside[0],
            above=self._outside[1],
            nans=self._nans,
            negative_infinities=self._infinities[0],
            positive_infinities=self._infinities[1],
            statistics=statistics,
        )
