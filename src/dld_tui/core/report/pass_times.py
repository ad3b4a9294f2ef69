"""Times of layers by pass, singly and summed: totals are computed pass by pass.

The sum of the layers' medians is the time of no pass: where something delays another layer in each
pass, every median leaves the delay out, and the sum of a pass does not. So the sum of the layers,
and how much of a pass they cover, is computed for each pass, and the median over the passes is
taken of that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from dld_tui.core.report.schema import WrongValue
from dld_tui.core.report.statistics import GPU_TIMES, median_ranks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray: TypeAlias = NDArray[np.float64]

MIN_PASSES = 6
"""The fewest values whose smallest and largest hold their true median between them with 95 %."""


@dataclass(frozen=True, eq=False)
class PassTimes:
    """The times of layers by pass; None for unknown values."""

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
        """The sum of all layers in a pass, the median over the passes."""
        return _median(self.sums_ms)

    @property
    def covered_percent(self) -> float | None:
        """The layers' time in the time of the pass, by pass, the median; above 100 in parallel."""
        return _median(self._of_length(self.sums_ms))

    @property
    def between_percent(self) -> float | None:
        """The part of a pass in which no layer ran, the median over the passes."""
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
        """Return the total cost of some layers: on the GPU, and on the CPU beside it."""
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
    """Return the first and the last rank, from 1, that a layer may have by its median.

    Another layer is certainly longer or shorter if the intervals of the two medians do not overlap.
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
    """Return times with NaN for passes whose sequential layers took longer than the pass.

    Clocks and rounding are allowed 5 % and 2 microseconds per layer.
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


class Stretch(NamedTuple):
    """A layer or kernel that ran in a pass."""

    layer: int | None
    start_us: float
    """Since the start of the pass."""
    end_us: float
    track: object
    """The thread or stream; of what runs inside each other there, the innermost counts."""


class Moments(NamedTuple):
    """How much of the time of passes is a layer's."""

    running_ms: FloatArray
    """``float64[layers]``: while it ran; overlapping layers share the time."""
    waiting_ms: FloatArray
    """``float64[layers]``: before it could start, with nothing running: scheduling, launches."""
    other_ms: float
    """After the last layer, and what ran and is no layer's. All parts sum to the pass."""


def moments_of(stretches: Iterable[Stretch], length_us: float, layers: int) -> Moments:
    """Distribute the time of a pass: each moment counts for what runs, else for the next layer.

    Unlike durations, these parts sum to the pass even where layers overlapped.

    Args:
        stretches: What ran.
        length_us: Of the pass; later times are cut off.
        layers: The number of layers.
    """
    running, waiting, other = np.zeros(layers), np.zeros(layers), 0.0
    points: list[tuple[float, int, float, Stretch]] = []
    for stretch in stretches:
        start = min(max(stretch.start_us, 0.0), length_us)
        end = max(start, min(stretch.end_us, length_us))
        # What ends comes before what starts; what takes no time ends after it has started.
        points += [(start, 1, -end, stretch), (end, 0 if end > start else 2, 0.0, stretch)]
    points.sort(key=itemgetter(0, 1, 2))
    tracks: dict[object, list[Stretch]] = {}
    now = idle = 0.0
    for time_us, kind, _, stretch in points:
        inner = [stack[-1] for stack in tracks.values() if stack]
        for top in inner:
            if top.layer is None:
                other += (time_us - now) / len(inner)
            else:
                running[top.layer] += (time_us - now) / len(inner)
        idle += 0.0 if inner else time_us - now
        now = time_us
        stack = tracks.setdefault(stretch.track, [])
        if kind != 1:
            stack.remove(stretch)
            continue
        stack.append(stretch)
        if stretch.layer is None:
            other += idle
        else:
            waiting[stretch.layer] += idle
        idle = 0.0
    return Moments(running / 1000, waiting / 1000, (other + idle + length_us - now) / 1000)


if TYPE_CHECKING:
    import sqlite3

    from numpy.typing import NDArray

    Times: TypeAlias = NDArray[np.float64]
    Execute: TypeAlias = Callable[[str], sqlite3.Cursor]

_SELF_TIMES = "SELECT pass, layer, self_us FROM samples"
_ROWS_AT_ONCE = 50_000
_MOST_CELLS = 20_000_000
"""Of the array: 160 MB. Of a longer run, passes at even distances are read."""


def chosen_passes(layers: int, passes: Sequence[int]) -> Sequence[int]:
    """Return the passes that are read of a run: all, or some at even distances of a very long one.

    Args:
        layers: How many the report has.
        passes: Their numbers, ascending.
    """
    return passes[:: max(1, -(-layers * len(passes) // _MOST_CELLS))]


def read_series(
    execute: Execute, layers: int, passes: Sequence[int], *, gpu: bool = False
) -> Times | None:
    """Return milliseconds ``float64[layers, passes]``, NaN where a layer did not run.

    Args:
        execute: Of the report's connection.
        layers: The number of layers of the report.
        passes: The numbers of the passes to read, one column each, ascending. A pass with an
            invalid time (missing, negative, not finite) is NaN.
        gpu: The durations of a layer's kernels on the GPU instead of its self time.

    Returns:
        None when there are no samples.

    Raises:
        WrongValue: A sample is of no layer, or holds text.
    """
    chosen = np.array(chosen_passes(layers, passes), dtype=np.float64)
    if not layers or not chosen.size:
        return None
    sums = np.zeros(layers * chosen.size)
    unsound = np.zeros(chosen.size, dtype=bool)
    runs = np.zeros(sums.size, dtype=np.int32)
    rows = execute(GPU_TIMES if gpu else _SELF_TIMES)
    while batch := rows.fetchmany(_ROWS_AT_ONCE):
        numbers, layer, time_us, sound = _columns(batch, layers)
        column = np.minimum(np.searchsorted(chosen, numbers), chosen.size - 1)
        known = chosen[column] == numbers
        unsound[column[known & ~sound]] = True
        if not known.any():
            continue
        # Samples come pass by pass, so a batch fills a short stretch of an array by passes.
        place = column[known] * layers + layer[known]
        first = int(place.min())
        added = np.bincount(place - first, weights=time_us[known])
        sums[first : first + added.size] += added
        runs[first : first + added.size] += np.bincount(place - first)
    if not runs.any():
        return None
    sums[runs == 0] = np.nan
    by_pass = (sums / 1000).reshape(chosen.size, layers)
    # The time of a layer in such a pass is unknown, and so is the sum of that pass.
    by_pass[unsound] = np.nan
    return np.ascontiguousarray(by_pass.T)


def read_busy(execute: Execute, passes: Sequence[int]) -> Times:
    """Return how many milliseconds any layer ran in each pass, ``float64[passes]``.

    The union of the samples, for runs with layers on several threads; 0 in a pass without
    samples.
    """
    place = {number: at for at, number in enumerate(passes)}
    busy = np.zeros(len(passes))
    rows = execute("SELECT pass, start_us, duration_us FROM samples ORDER BY pass")
    for number, samples in groupby(rows, key=itemgetter(0)):
        at = place.get(number)
        if at is None:
            continue
        table = _as_table([(start, took) for _, start, took in samples])
        table = table[np.isfinite(table).all(axis=1) & (table[:, 1] >= 0)]
        busy[at] = busy_us(table[:, 0], table.sum(axis=1)) / 1000
    return busy


def _columns(
    batch: Sequence[Sequence[object]], layers: int
) -> tuple[Times, NDArray[np.int64], Times, NDArray[np.bool_]]:
    """Return passes, layers, times (0 for invalid ones), and which times are valid."""
    table = _as_table(batch)
    if not np.isfinite(table[:, :2]).all() or np.isinf(table[:, 2]).any():
        raise WrongValue("a sample holds something that is not a number")
    layer, times = table[:, 1], table[:, 2]
    if layer.min() < 0 or layer.max() >= layers:
        raise WrongValue("a sample belongs to a layer that does not exist")
    sound = np.isfinite(times) & (times >= 0)
    return table[:, 0], layer.astype(np.int64), np.where(sound, times, 0.0), sound


def _as_table(batch: Sequence[Sequence[object]]) -> Times:
    """Return rows as an array, NaN for missing values."""
    try:
        return np.array(batch, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise WrongValue("a sample holds something that is not a number") from error
