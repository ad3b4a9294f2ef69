"""Statistics over passes, with their definitions, and those of each layer.

Percentiles interpolate linearly between the two nearest ranks: position ``p/100 * (n -
1)`` in the sorted sample (Hyndman and Fan, "Sample Quantiles in Statistical Packages", 1996, type
7; the default of NumPy and R). The median is the 50th percentile of the same definition.

trtexec does not interpolate: of N sorted times it takes that at ``N - 1 - int((1 - p/100) * N)``,
in single precision (``findPercentile`` of ``samples/common/sampleReporting.cpp``). This definition
is used for TensorRT, whose figures are compared with trtexec's.
"""

from __future__ import annotations

import math
import sqlite3
import struct
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields
from functools import lru_cache
from typing import TypeAlias

from dld_tui.core.report.records import PassState, Program, program_of
from dld_tui.core.types import TextEnum

PERCENTILES = (90, 95, 99)
METHOD = "linear interpolation (Hyndman-Fan type 7)"
TRTEXEC_METHOD = "a measured value, as trtexec takes it"
Percentile: TypeAlias = "Callable[[Sequence[float], float], float]"
"""Takes a sorted, non-empty sample and a percentage."""

TRUSTED_COV_PERCENT = 2.5
"""Above this coefficient of variation, a run is too noisy to compare: clocks are not locked, or the
machine is shared."""


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
    """Sequential inferences per second, 1000 / `mean`; 0 when the mean is 0."""
    source: LatencySource = LatencySource.LOOP
    percentiles: str = METHOD
    """How p90, p95 and p99 are defined."""


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


def percentile_of(backend: str) -> Percentile:
    """Return the definition of percentiles that goes with a backend, as a report names it."""
    return trtexec_percentile if program_of(backend) is Program.TENSORRT else percentile


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
    mean = math.fsum(ordered) / len(ordered)
    squares = math.fsum((value - mean) ** 2 for value in ordered)
    std = math.sqrt(squares / (len(ordered) - 1)) if len(ordered) > 1 else 0.0
    p90, p95, p99 = (percentile_at(ordered, percent) for percent in PERCENTILES)
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
        percentiles=METHOD if percentile_at is percentile else TRTEXEC_METHOD,
    )


GPU_TIMES = (
    "SELECT pass, layer, duration_us FROM gpu_events"
    " WHERE kind = 'kernel' AND layer IS NOT NULL ORDER BY pass, seq"
)
"""The rows that the time of a layer on the GPU is the sum of."""

ATTRIBUTED_PASSES = (
    "SELECT DISTINCT pass FROM gpu_events WHERE kind = 'kernel' AND layer IS NOT NULL"
)
"""The passes with kernels that are attributed to layers."""


@dataclass
class LayerTimes:
    """What one layer took in each pass in which it ran."""

    per_pass_us: array[float] = field(default_factory=lambda: array("d"))
    runs: int = 0


@dataclass(frozen=True)
class LayerStatistics:
    """The computed columns of a layer; times in milliseconds."""

    time_ms: float
    percent: float
    min_ms: float
    max_ms: float
    mean_ms: float
    count: float
    passes: int


def counted_passes(states: Mapping[int, PassState]) -> set[int]:
    """Return the passes that statistics use: the measured ones, else the incomplete ones."""
    for state in (PassState.MEASURED, PassState.INCOMPLETE, PassState.WARM_UP):
        chosen = {index for index, pass_state in states.items() if pass_state is state}
        if chosen:
            return chosen
    return set()


def gpu_passes(states: Mapping[int, PassState], attributed: Iterable[int]) -> set[int]:
    """Return the passes that GPU times of layers are computed from.

    Those at true speed with kernels attributed to layers; without any, those that the
    statistics of layers use.

    Args:
        states: Of all passes.
        attributed: Those of `ATTRIBUTED_PASSES`.
    """
    alone = PassState.KERNELS_ALONE
    at_true_speed = {index for index in attributed if states.get(index) is alone}
    return at_true_speed or counted_passes(states)


def collect(
    samples: Iterable[tuple[int, int, float | None]], counted: set[int]
) -> dict[int, LayerTimes]:
    """Sum (pass, layer, self_us) rows by layer and pass. The rows must be ordered by pass.

    A pass with an invalid time (missing, negative, not finite) is left out for all layers.
    """
    times: dict[int, LayerTimes] = {}
    current: int | None = None
    sums: dict[int, list[float]] = {}
    is_sound = True
    for index, layer, self_us in samples:
        if index != current:
            _close_pass(times, sums, is_sound)
            current, is_sound = index, True
        if index not in counted:
            continue
        if self_us is None or not 0 <= self_us < math.inf:
            is_sound = False
            continue
        known = sums.get(layer)
        if known is None:
            sums[layer] = [self_us, 1]
        else:
            known[0] += self_us
            known[1] += 1
    _close_pass(times, sums, is_sound)
    return times


def _close_pass(times: dict[int, LayerTimes], sums: dict[int, list[float]], is_sound: bool) -> None:
    if is_sound:
        for layer, (total, runs) in sums.items():
            layer_times = times.get(layer)
            if layer_times is None:
                layer_times = times[layer] = LayerTimes()
            layer_times.per_pass_us.append(total)
            layer_times.runs += int(runs)
    sums.clear()


def summarise_layers(times: Mapping[int, LayerTimes]) -> dict[int, LayerStatistics]:
    """Return the statistics of each layer that ran."""
    ordered = {layer: sorted(layer_times.per_pass_us) for layer, layer_times in times.items()}
    medians = {layer: percentile(values, 50) for layer, values in ordered.items()}
    total = math.fsum(medians.values())
    return {
        layer: LayerStatistics(
            time_ms=medians[layer] / 1000,
            percent=100 * medians[layer] / total if total > 0 else 0.0,
            min_ms=values[0] / 1000,
            max_ms=values[-1] / 1000,
            mean_ms=math.fsum(values) / len(values) / 1000,
            count=times[layer].runs / len(values),
            passes=len(values),
        )
        for layer, values in ordered.items()
    }


def gpu_medians(
    rows: Iterable[tuple[int, int, float | None]], counted: set[int]
) -> dict[int, float]:
    """Return the median over passes of a layer's kernel time, in milliseconds.

    Args:
        rows: Those of `GPU_TIMES`.
        counted: The passes that count.
    """
    times = collect(rows, counted)
    return {
        layer: percentile(sorted(layer_times.per_pass_us), 50) / 1000
        for layer, layer_times in times.items()
    }


def store_statistics(database: sqlite3.Connection, passes: Mapping[int, PassState]) -> None:
    """Fill the computed columns of the layers of a report that is being written."""
    counted = counted_passes(passes)
    samples = database.execute("SELECT pass, layer, self_us FROM samples ORDER BY pass, seq")
    statistics = summarise_layers(collect(samples, counted))
    attributed = (index for (index,) in database.execute(ATTRIBUTED_PASSES))
    gpu = gpu_medians(database.execute(GPU_TIMES), gpu_passes(passes, attributed))
    assignments = ", ".join(f"{field.name} = ?" for field in fields(LayerStatistics))
    database.execute("BEGIN IMMEDIATE")
    database.executemany(
        f"UPDATE layers SET {assignments} WHERE id = ?",
        [(*astuple(row), index) for index, row in statistics.items()],
    )
    database.executemany(
        "UPDATE layers SET gpu_time_ms = ? WHERE id = ?", [(ms, n) for n, ms in gpu.items()]
    )
    database.execute("COMMIT")
