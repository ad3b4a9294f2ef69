"""The latency loop: timing with as little overhead as possible, and the statistics of it."""

from __future__ import annotations

import contextlib
import gc
import math
import statistics
import time
from array import array
from collections.abc import Callable, Generator
from dataclasses import asdict
from typing import TypeAlias

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UsageError
from dld_tui.core.report.pass_statistics import percentile_of
from dld_tui.core.statistics import summarise

BURST_S = 0.1
"""How long calls follow each other without a pause; progress is reported between bursts."""
PROCESSOR_MS = "processor_ms"
"""The property with the processor time of the calling thread per pass, without recording.

Present where that equals the duration of a pass on an idle machine."""
_BURST_CALLS = 20_000
_TURN_S = 0.005
_SPINNING_TURN_S = 0.03
_LOOK_S, _QUIET_LOOKS = 0.002, 3
_SPIN_S = 0.1
"""The longest wait for spinning threads."""
_QUIET = 0.1
"""The share of elapsed time used on the processor below which no thread spins."""
_COLD_PASSES = 2
"""Above this number of passes in a turn, the first one is left out."""

TimeCalls: TypeAlias = "Callable[[int, array[int], int, int], int]"
"""Makes calls one after another and times each of them.

Arguments: the number of calls made before, the array for the durations in nanoseconds, the largest
number of calls, and the ``perf_counter_ns`` at which to stop. Returns the number of calls made, at
least one. Each backend implements this loop itself, so that nothing stands between the clock and
the call."""


@dataclass(frozen=True)
class StopCondition:
    """When to stop: once both minima are reached, and at either maximum in any case."""

    calls: int = 0
    seconds: float = 0.0
    most: int = 10_000_000
    limit_s: float = math.inf
    """The maximum of `seconds`; at least one call is made."""

    def is_met(self, calls: int, seconds: float) -> bool:
        """Return whether these calls and seconds are enough."""
        if calls >= self.most or (calls > 0 and seconds >= self.limit_s):
            return True
        return calls >= self.calls and seconds >= self.seconds

    def progress(self, calls: int, seconds: float) -> tuple[float, float, str]:
        """Return (done, total, unit) of the minimum that will take longer to reach."""
        by_calls = min(1.0, calls / self.calls) if self.calls else 1.0
        by_time = min(1.0, seconds / self.seconds) if self.seconds else 1.0
        if self.seconds and by_time <= by_calls:
            return min(seconds, self.seconds), self.seconds, "s"
        most = max(self.calls, 1)
        return min(calls, most), most, "passes"


@dataclass(frozen=True)
class Burst:
    """Calls made one after another without a pause."""

    milliseconds: list[float]
    calls: int
    """All calls so far, these included."""
    seconds: float
    """Since the first call, including the pauses between bursts."""
    processor_ms: float
    """Mean processor time of the calling thread per call."""


def measure(
    time_calls: TimeCalls, stop: StopCondition, burst_s: float = BURST_S
) -> Generator[Burst, None, None]:
    """Time calls in bursts, with the garbage collector off. Close the generator to stop early."""
    durations = array("q", bytes(8 * _BURST_CALLS))
    calls = 0
    collecting = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        begin = time.perf_counter_ns()
        seconds = 0.0
        while not stop.is_met(calls, seconds):
            most = min(_BURST_CALLS, stop.most - calls)
            length_s = burst_s
            if calls < stop.calls:
                most = min(most, stop.calls - calls)
            else:
                length_s = min(burst_s, stop.seconds - seconds)
            until = time.perf_counter_ns() + int(length_s * 1e9)
            processor = time.thread_time_ns()
            count = time_calls(calls, durations, most, until)
            processor = time.thread_time_ns() - processor
            calls += count
            seconds = (time.perf_counter_ns() - begin) / 1e9
            times = [nanoseconds / 1e6 for nanoseconds in durations[:count]]
            yield Burst(times, calls, seconds, processor / count / 1e6)
    finally:
        if collecting:
            gc.enable()


@dataclass(frozen=True)
class Turn:
    """Passes of two versions, one version after the other."""

    base_ms: list[float]
    new_ms: list[float]
    base_processor_ms: float
    """Mean processor time of the calling thread per pass."""
    new_processor_ms: float

    @property
    def ratio(self) -> float:
        """The median pass of the new version over that of the base version."""
        return statistics.median(self.new_ms) / statistics.median(self.base_ms)

    @property
    def processor_ratio(self) -> float:
        """The same ratio of processor times."""
        return self.new_processor_ms / self.base_processor_ms

    @property
    def least_processor_ms(self) -> float:
        """The processor time of the faster version."""
        return min(self.base_processor_ms, self.new_processor_ms)


def turn_s(*, spins: bool) -> float:
    """Return the length of a turn in seconds; a single longer pass extends it.

    Args:
        spins: Whether threads keep spinning after a pass, so that :func:`settle` precedes a turn.
    """
    return _SPINNING_TURN_S if spins else _TURN_S


def settle() -> None:
    """Wait until the threads of this process sleep, for at most a tenth of a second.

    The threads of an ONNX Runtime session keep spinning for 22 to 32 ms after a pass, on the
    processors that they are pinned to, and so slow down the next session: with turns of 5 ms, int8
    appeared to make an encoder 15 % faster; it was 5 % when each version ran alone.
    """
    started = time.perf_counter()
    end, quiet = started + _SPIN_S, 0
    while quiet < _QUIET_LOOKS and time.perf_counter() < end:
        begin, used = time.perf_counter_ns(), time.process_time_ns()
        time.sleep(_LOOK_S)
        used = time.process_time_ns() - used
        quiet = quiet + 1 if used < _QUIET * (time.perf_counter_ns() - begin) else 0
    _SETTLED_S[0] += time.perf_counter() - started


_SETTLED_S = [0.0]


def settled_s() -> float:
    """Return the total seconds that this process has waited in :func:`settle`."""
    return _SETTLED_S[0]


def measure_in_turns(
    base: TimeCalls,
    new: TimeCalls,
    stop: StopCondition,
    *,
    new_first: bool = False,
    spins: bool = False,
) -> Generator[Turn, None, None]:
    """Time calls of two versions in alternation, with the garbage collector off.

    On a busy machine the speed changes within tenths of a second, and passes close in time are
    affected alike: with a 10 ms model and two threads on two busy cores, the ratio of the medians
    of 1.5 s each was off by 7 %, the median ratio of single passes by 3 %. Each version goes first
    in every other turn.

    Args:
        base: Makes calls of the base version.
        new: Makes calls of the new version.
        stop: When to stop; counts the calls of each version.
        new_first: Whether the new version has the first turn.
        spins: Whether the threads of a version keep spinning after its passes: turns are then
            longer, and begin when these threads sleep.
    """
    endless = StopCondition(seconds=math.inf)
    with contextlib.ExitStack() as stack:
        length_s = turn_s(spins=spins)
        sides = [stack.enter_context(contextlib.closing(measure(timer, endless, length_s)))
                 for timer in (base, new)]  # fmt: skip
        order = (1, 0) if new_first else (0, 1)
        begin, calls = time.perf_counter(), [0, 0]
        while not stop.is_met(min(calls), (time.perf_counter() - begin) / 2):
            bursts = {}
            for side in order:
                if spins:
                    settle()
                bursts[side] = next(sides[side])
            order = order[::-1]
            calls = [bursts[side].calls for side in (0, 1)]
            # The first pass finds the other version's data in the caches.
            base_ms, new_ms = (
                bursts[side].milliseconds[int(len(bursts[side].milliseconds) > _COLD_PASSES) :]
                for side in (0, 1)
            )
            yield Turn(base_ms, new_ms, bursts[0].processor_ms, bursts[1].processor_ms)


def recording_spans(timer: TimeCalls, spans: list[tuple[int, int]]) -> TimeCalls:
    """Return a timer that also records when each call ran.

    Args:
        timer: Makes the calls.
        spans: Receives (begin, end) of each call, in nanoseconds of the Unix epoch. Recording takes
            a microsecond between two calls and is not part of the measured time.
    """

    def time_calls(first: int, durations: array[int], most: int, until: int) -> int:
        duration = array("q", [0])
        for slot in range(most):
            begin = time.time_ns()
            timer(first + slot, duration, 1, 0)
            end = time.time_ns()
            durations[slot] = duration[0]
            spans.append((begin, end))
            if time.perf_counter_ns() >= until:
                return slot + 1
        return most

    return time_calls


_FIGURES = ("median", "min", "max", "mean", "std", "p90", "p95", "p99")


@dataclass(frozen=True)
class LatencyFigures:
    """The latency of the timed passes."""

    passes: int
    latency_ms: dict[str, float]
    """Median, extremes, mean, standard deviation and the usual percentiles by name."""
    throughput: float | None
    """Inferences per second."""
    percentiles_ms: dict[str, float]
    """The requested percentiles, by their number."""


def parse_percentiles(text: str) -> list[float]:
    """Return the percentiles of a text such as ``90,95,99``.

    Raises:
        UsageError: One is not a number from 0 to 100.
    """
    try:
        percentiles = [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        percentiles = [-1.0]
    if not all(0 <= percentile <= 100 for percentile in percentiles):
        raise UsageError(f"--percentile is {text!r}; write numbers from 0 to 100, as in 90,95,99")
    return percentiles


def latency_summary(
    latencies: list[float], percentiles: list[float], backend: str = ""
) -> LatencyFigures | None:
    """Return the statistics of timed passes; None without a pass.

    Args:
        latencies: Of the passes, in milliseconds.
        percentiles: The requested ones.
        backend: As a report names it; for TensorRT, percentiles follow trtexec's definition.
    """
    percentile = percentile_of(backend)
    figures = summarise(latencies, percentile_at=percentile)
    if figures is None:
        return None
    ordered = sorted(latencies)
    return LatencyFigures(
        figures.count,
        {key: value for key, value in asdict(figures).items() if key in _FIGURES},
        figures.throughput,
        {f"{p:g}": percentile(ordered, p) for p in percentiles},
    )
