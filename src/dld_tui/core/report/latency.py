"""The latency loop, which disturbs what it times as little as possible, and its figures."""

from __future__ import annotations

import contextlib
import gc
import math
import statistics
import time
from array import array
from collections.abc import Callable, Generator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

from dld_tui.core.errors import UsageError
from dld_tui.core.report.statistics import percentile_of, summarise
from dld_tui.core.settings.paths import unused

BURST_S = 0.1
"""How long calls follow each other without a pause; what is told, is told between bursts."""
PROCESSOR_MS = "processor_ms"
"""The fact of a report: processor time of the calling thread, a pass without recording, where that
is what a pass lasts on a machine that is free."""
_BURST_CALLS = 20_000
_TURN_S = 0.005
_SPINNING_TURN_S = 0.03
_LOOK_S, _QUIET_LOOKS = 0.002, 3
_SPIN_S = 0.1
"""Spinning threads are not waited for any longer."""
_QUIET = 0.1
"""Processor time, of the time that passes, below which threads do not spin."""
_COLD_PASSES = 2
"""Passes of a turn from which the first one is left out."""

TimeCalls: TypeAlias = "Callable[[int, array[int], int, int], int]"
"""Makes calls one after another and times each alone. Arguments: how many were made before, where
to put the durations in nanoseconds, how many to make at most, and the ``perf_counter_ns`` at which
to stop; returns how many it made, at least one. A backend writes this loop itself, so that nothing
stands between the clock and its call."""


@dataclass(frozen=True)
class Extent:
    """How long to go on: until both are reached, but never beyond `most` calls."""

    calls: int = 0
    seconds: float = 0.0
    most: int = 10_000_000

    def done(self, calls: int, seconds: float) -> bool:
        """Return whether that is enough."""
        return calls >= self.most or (calls >= self.calls and seconds >= self.seconds)

    def progress(self, calls: int, seconds: float) -> tuple[float, float, str]:
        """Return (done, total, unit) of whatever will take longer."""
        by_calls = min(1.0, calls / self.calls) if self.calls else 1.0
        by_time = min(1.0, seconds / self.seconds) if self.seconds else 1.0
        if self.seconds and by_time <= by_calls:
            return min(seconds, self.seconds), self.seconds, "s"
        return calls, max(self.calls, 1), "passes"


@dataclass(frozen=True)
class Burst:
    """Calls that followed each other."""

    milliseconds: list[float]
    calls: int
    """All calls so far, these included."""
    seconds: float
    """Since the first call, with the pauses between bursts."""
    processor_ms: float
    """Processor time of the calling thread, a call, on average."""


def measure(
    time_calls: TimeCalls, extent: Extent, burst_s: float = BURST_S
) -> Generator[Burst, None, None]:
    """Time calls in bursts, with the garbage collector off. Closing the iterator stops it."""
    durations = array("q", bytes(8 * _BURST_CALLS))
    calls = 0
    collecting = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        begin = time.perf_counter_ns()
        seconds = 0.0
        while not extent.done(calls, seconds):
            most = min(_BURST_CALLS, extent.most - calls)
            left = burst_s
            if calls < extent.calls:
                most = min(most, extent.calls - calls)
            else:
                left = min(burst_s, extent.seconds - seconds)
            until = time.perf_counter_ns() + int(left * 1e9)
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
    """Passes of two versions, one after the other."""

    base_ms: list[float]
    new_ms: list[float]
    base_processor_ms: float
    """Processor time of the calling thread, a pass, on average."""
    new_processor_ms: float

    @property
    def ratio(self) -> float:
        """How many times as long the new version takes."""
        return statistics.median(self.new_ms) / statistics.median(self.base_ms)

    @property
    def processor_ratio(self) -> float:
        """The same of the processor time."""
        return self.new_processor_ms / self.base_processor_ms

    @property
    def least_processor_ms(self) -> float:
        """The less of both."""
        return min(self.base_processor_ms, self.new_processor_ms)


def turn_s(*, spins: bool) -> float:
    """Return how long a turn takes, unless one pass takes longer.

    Args:
        spins: Whether threads spin on after a pass, so that :func:`settle` comes before a turn.
    """
    return _SPINNING_TURN_S if spins else _TURN_S


def settle() -> None:
    """Wait until the threads of this process sleep, for a tenth of a second at most.

    The threads of a session of ONNX Runtime go on spinning for 22 to 32 ms after a pass, on the
    processors that they are pinned to, and so take them from those of the next session: in turns
    of 5 ms int8 made an encoder 15 % faster, and 5 % where each version ran alone.
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
    """Return how many seconds this process has waited in :func:`settle`: nothing is timed then."""
    return _SETTLED_S[0]


def measure_in_turns(
    base: TimeCalls,
    new: TimeCalls,
    extent: Extent,
    *,
    new_first: bool = False,
    spins: bool = False,
) -> Generator[Turn, None, None]:
    """Time calls of two versions, a few of each at a time, with the garbage collector off.

    On a busy machine the speed changes within tenths of a second, and passes that are near each
    other in time are hit alike: of a 10 ms model with two threads on two busy cores the ratio of
    the medians of 1.5 s each was off by 7 %, the median ratio of single passes by 3 %. Each
    version is first in every other turn.

    Args:
        base: Makes calls of one version.
        new: Of the other one.
        extent: How long to go on, of each.
        new_first: Which one has the first turn.
        spins: Whether threads of one spin on after its passes: turns are longer, and begin when
            they sleep.
    """
    endless = Extent(seconds=math.inf)
    with contextlib.ExitStack() as stack:
        length_s = turn_s(spins=spins)
        sides = [stack.enter_context(contextlib.closing(measure(timer, endless, length_s)))
                 for timer in (base, new)]  # fmt: skip
        order = (1, 0) if new_first else (0, 1)
        begin, calls = time.perf_counter(), [0, 0]
        while not extent.done(min(calls), (time.perf_counter() - begin) / 2):
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


def noting_times(timer: TimeCalls, spans: list[tuple[int, int]]) -> TimeCalls:
    """Return a timer that also notes when each call ran.

    Args:
        timer: Makes the calls.
        spans: Gets (begin, end) of each call, in nanoseconds of the Unix epoch. Noting is outside
            of what the timer times: a microsecond between two calls.
    """

    def time_calls(first: int, durations: array[int], most: int, until: int) -> int:
        one = array("q", [0])
        for slot in range(most):
            begin = time.time_ns()
            timer(first + slot, one, 1, 0)
            end = time.time_ns()
            durations[slot] = one[0]
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
    """Inferences a second."""
    percentiles_ms: dict[str, float]
    """Those that were asked for, by their number."""


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
    """Return the figures of timed passes; None without a pass.

    Args:
        latencies: Of the passes.
        percentiles: The ones that were asked for.
        backend: As a report names it; of TensorRT they are trtexec's.
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


def report_path(wanted: Path | None, model: Path) -> Path:
    """Return where a report shall be: `wanted`, else ``NAME.dldprof`` here, with a number."""
    if wanted is not None:
        return wanted
    return unused(Path(f"{model.stem or 'model'}.dldprof"))
