"""Statistics over passes, with their definitions.

Percentiles interpolate linearly between the two nearest ranks: position ``p/100 * (n -
1)`` in the sorted sample (Hyndman and Fan, "Sample Quantiles in Statistical Packages", 1996, type
7; the default of NumPy and R). The median is the 50th percentile of the same definition.

trtexec does not interpolate: of N sorted times it takes that at ``N - 1 - int((1 - p/100) * N)``,
in single precision (``findPercentile`` of ``samples/common/sampleReporting.cpp``). This definition
is used for TensorRT, whose figures are compared with trtexec's.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from functools import lru_cache
from typing import TypeAlias

from dld_tui.core.dataclass import dataclass
from dld_tui.core.types import JSON, TextEnum

PERCENTILES = (90, 95, 99)
METHOD = "linear interpolation (Hyndman-Fan type 7)"
TRTEXEC_METHOD = "a measured value, as trtexec takes it"
Percentile: TypeAlias = "Callable[[Sequence[float], float], float]"
"""Takes a sorted, non-empty sample and a percentage."""

TRUSTED_COV_PERCENT = 2.5
"""Above this coefficient of variation, a run is too noisy to compare: clocks are not locked, or the
machine is shared."""


FEW_FOR_P90, FEW_FOR_P99 = 10, 100
"""Passes without which a percentile says little more than the maximum."""


class LatencySource(TextEnum):
    """What a latency was measured with."""

    LOOP = "latency loop"
    PROFILED = "profiled passes"
    """Only those were measured: profiling makes a run slower."""


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
    """Sequential inferences per second, 1000 / `median`; 0 when that is 0."""
    source: LatencySource = LatencySource.LOOP
    percentiles: str = METHOD
    """How p90, p95 and p99 are defined."""

    @property
    def supported_percentiles(self) -> list[tuple[str, float]]:
        """The median and the percentiles that so many passes support, by name, for people."""
        known = [("median", self.median, 0), ("p90", self.p90, FEW_FOR_P90)]
        known.append(("p99", self.p99, FEW_FOR_P99))
        return [(name, ms) for name, ms, least in known if self.count >= least]


def share_percent(part: float | None, whole: float | None) -> float | None:
    """Return a part as a percentage of its whole; None where one is unknown, or the whole is 0."""
    return None if part is None or whole is None or not whole > 0 else 100 * part / whole


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Return a percentile of a sorted, non-empty sample, as the module says."""
    position = (len(ordered) - 1) * percent / 100
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def trtexec_percentile(ordered: Sequence[float], percent: float) -> float:
    """Return a percentile of a sorted, non-empty sample as trtexec does: one of the values."""
    count = len(ordered)
    excluded = int(_single(_single(1.0 - _single(_single(percent) / 100.0)) * count))
    return ordered[max(count - 1 - excluded, 0)]


def _single(value: float) -> float:
    """Return the nearest number of single precision."""
    return float(struct.unpack("f", struct.pack("f", value))[0])


@lru_cache(maxsize=256)
def median_ranks(count: int, level: float = 0.95) -> tuple[int, int]:
    """Return the ranks, from 0, of the sorted values between which the true median lies.

    The narrowest symmetric pair (r, n - 1 - r) whose coverage ``1 - 2 P(Bin(n, 1/2) <= r)`` is at
    least `level`; the smallest and the largest when there is none.
    """
    limit, below, rank = (1 - level) / 2, 0.0, 0
    logarithm = -count * math.log(2)  # of C(n, 0) / 2^n
    for successes in range(count // 2):
        below += math.exp(logarithm)
        if below > limit:
            break
        rank = successes
        logarithm += math.log((count - successes) / (successes + 1))
    return rank, count - 1 - rank


def median(values: Iterable[float]) -> float:
    """Return the median of a non-empty sample."""
    return percentile(sorted(values), 50)


FASTEST = 0.25
"""The part of a layer's passes that its time is the mean of."""


def fastest_count(count: int) -> int:
    """Return how many of a number of passes are the fastest quarter, at least one."""
    return math.ceil(FASTEST * count)


def undisturbed(ordered: Sequence[float]) -> float:
    """Return the mean of the fastest quarter of a sorted, non-empty sample.

    What a layer takes when nothing delays it, as far as a run can tell: other programs delay other
    layers in each pass, so that no pass is free of them, and neither sums nor medians are.
    """
    fastest = ordered[: fastest_count(len(ordered))]
    return math.fsum(fastest) / len(fastest)


LONGEST = 1e18
"""The longest valid time: microseconds of 30,000 years. Squares of longer ones would overflow."""


def is_valid_time(time: float) -> bool:
    """Return whether a value can be a time, in any unit: not negative, and not absurdly large."""
    return 0 <= time <= LONGEST


def summarise(
    values: Iterable[float],
    source: LatencySource = LatencySource.LOOP,
    percentile_at: Percentile = percentile,
) -> LatencySummary | None:
    """Return the summary of latencies in milliseconds; None without any.

    Args:
        values: Invalid times are left out.
        source: What was timed.
        percentile_at: The definition of percentiles; does not apply to the median.
    """
    ordered = sorted(value for value in values if is_valid_time(value))
    if not ordered:
        return None
    mean, middle = math.fsum(ordered) / len(ordered), percentile(ordered, 50)
    squares = math.fsum((value - mean) ** 2 for value in ordered)
    std = math.sqrt(squares / (len(ordered) - 1)) if len(ordered) > 1 else 0.0
    p90, p95, p99 = (percentile_at(ordered, percent) for percent in PERCENTILES)
    return LatencySummary(
        count=len(ordered),
        median=middle,
        min=ordered[0],
        max=ordered[-1],
        mean=mean,
        std=std,
        cov_percent=100 * std / mean if mean else 0.0,
        p90=p90,
        p95=p95,
        p99=p99,
        throughput=1000 / middle if middle > 0 else 0.0,
        source=source,
        percentiles=METHOD if percentile_at is percentile else TRTEXEC_METHOD,
    )


def trtexec_summary(values: Iterable[float]) -> LatencySummary | None:
    """Return the summary with trtexec's percentiles; None without any."""
    return summarise(values, percentile_at=trtexec_percentile)


ENOUGH = 0.95
"""The part of the highest throughput above which more work at once pays no longer."""


def is_certain_knee(
    knee: tuple[float, float], best: tuple[float, float], smaller: Iterable[tuple[float, float]]
) -> bool:
    """Return whether a size is certainly the first with `ENOUGH` of the best throughput.

    Args:
        knee: The interval of its throughput.
        best: That of the size with the highest; the same one if that is the knee.
        smaller: Those of smaller sizes.
    """
    is_near = knee == best or knee[0] >= ENOUGH * best[1]
    return is_near and all(high < ENOUGH * best[0] for _, high in smaller)


def latency_json(summary: LatencySummary | None) -> JSON:
    """Return a latency summary in milliseconds; None when nothing was measured."""
    return None if summary is None else asdict(summary)
