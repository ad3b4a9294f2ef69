"""Figures over passes, with their definitions.

Percentiles are of linear interpolation between the two nearest ranks: position ``p/100 * (n - 1)``
in the sorted sample (Hyndman and Fan, "Sample Quantiles in Statistical Packages", 1996, type 7; the
default of NumPy and R). The median is the 50th percentile of the same definition. trtexec takes the
next measured value instead, so its p99 of a short run can differ by one sample.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

PERCENTILES = (90, 95, 99)
METHOD = "linear interpolation (Hyndman-Fan type 7)"

TRUSTED_COV_PERCENT = 2.5
"""Above this coefficient of variation a run is too noisy to compare: clocks are not locked, or the
machine is shared."""


@dataclass(frozen=True)
class LatencySummary:
    """Latency over the passes of one run, in milliseconds."""

    count: int
    median: float
    min: float
    max: float
    mean: float
    std: float
    """Standard deviation of the sample (n - 1); 0 for one pass."""
    cov_percent: float
    """Coefficient of variation: `std` as a percentage of `mean`."""
    p90: float
    p95: float
    p99: float
    throughput: float
    """Inferences a second: one after another, so 1000 / `mean`. 0 when the mean is 0."""
    source: str = "latency loop"
    """``latency loop``, or ``profiled passes`` when only those were measured: profiling makes a run
    slower."""


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Return a percentile of a sorted, non-empty sample, as the module says."""
    position = (len(ordered) - 1) * percent / 100
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def median(values: Iterable[float]) -> float:
    """Return the median of a non-empty sample."""
    return percentile(sorted(values), 50)


def summarise(values: Iterable[float], source: str = "latency loop") -> LatencySummary | None:
    """Return the summary of latencies in milliseconds; None when there are none."""
    ordered = sorted(value for value in values if math.isfinite(value))
    if not ordered:
        return None
    mean = math.fsum(ordered) / len(ordered)
    squares = math.fsum((value - mean) ** 2 for value in ordered)
    std = math.sqrt(squares / (len(ordered) - 1)) if len(ordered) > 1 else 0.0
    p90, p95, p99 = (percentile(ordered, percent) for percent in PERCENTILES)
    return LatencySummary(
        count=len(ordered),
        median=percentile(ordered, 50),
        min=ordered[0],
        max=ordered[-1],
        mean=mean,
        std=std,
        cov_percent=100 * std / mean if mean else 0.0,
        p90=p90,
        p95=p95,
        p99=p99,
        throughput=1000 / mean if mean > 0 else 0.0,
        source=source,
    )
