"""What the layers of a run take: the samples, and every share, sum and sentence that follows.

A layer takes the mean of the fastest quarter of its times in the passes in which it ran, times the
part of the passes in which it ran. So the times of layers add up to those of their types and of all
layers, whatever is summed. Eleven models were measured alone and beside two busy processes on two
threads (2026-11-28): shares by type differed by 2.6 points on average by this, by 4.0 by the means
of the faster half of the passes, by 5.5 by the means of all, by 5.2 by the medians of layers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, fields
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dld_tui.core.dataclass import dataclass
from dld_tui.core.report.pass_statistics import (
    ATTRIBUTED_PASSES,
    GPU_TIMES,
    counted_passes,
    gpu_passes,
)
from dld_tui.core.report.records import Layer, PassState
from dld_tui.core.report.schema import WrongValue
from dld_tui.core.statistics import FASTEST, is_valid_time, share_percent, undisturbed

if TYPE_CHECKING:
    import sqlite3

    from numpy.typing import NDArray

    FloatArray: TypeAlias = NDArray[np.float64]
    Times: TypeAlias = NDArray[np.float64]
    Execute: TypeAlias = Callable[[str], sqlite3.Cursor]

MIN_PASSES = 6
"""With fewer passes, nothing is said of the order of layers."""
FIRST_LAYERS = 3
"""The layers whose order is judged."""


@dataclass(frozen=True)
class LayerStatistics:
    """The stored columns of a layer; times in milliseconds."""

    time_ms: float
    percent: float
    """Of the sum of all layers."""
    min_ms: float
    max_ms: float
    mean_ms: float
    count: float
    passes: int


@dataclass(frozen=True, eq=False)
class Samples:
    """What was measured of layers, by pass."""

    times_ms: Times
    """``float64[layers, passes]``, NaN where a layer did not run."""
    runs: NDArray[np.int64]
    """How often each layer ran in these passes."""
    lengths_ms: FloatArray
    """Of the passes, end to end; NaN where that is not known."""
    numbers: Sequence[int] = ()
    """Of the passes."""
    busy_ms: FloatArray | None = None
    """How long any layer ran in each pass, where they ran on several threads; else None, as then it
    is the sum of their times."""

    @cached_property
    def sums_ms(self) -> FloatArray:
        """The time of all layers together in each pass, NaN in one in which none ran."""
        return _sums(self.times_ms)

    @cached_property
    def passes(self) -> int:
        """The number of passes in which any layer ran."""
        return int(np.count_nonzero(~np.isnan(self.sums_ms)))

    @cached_property
    def left_out(self) -> frozenset[int]:
        """The numbers of the passes in which no layer ran with a valid time."""
        return frozenset(self.numbers[at] for at in np.flatnonzero(np.isnan(self.sums_ms)).tolist())

    @cached_property
    def ran(self) -> NDArray[np.int64]:
        """In how many passes each layer ran."""
        return np.asarray(np.count_nonzero(~np.isnan(self.times_ms), axis=1))

    @cached_property
    def undisturbed_ms(self) -> FloatArray:
        """What each layer takes a pass, as the module says; NaN for one that never ran."""
        ordered = np.sort(self.times_ms, axis=1)  # NaN last
        fastest = np.ceil(FASTEST * self.ran).astype(np.int64)
        taken = np.arange(ordered.shape[1]) < fastest[:, None]
        sums = np.where(taken, ordered, 0.0).sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(sums / fastest * self.ran / self.passes)

    @cached_property
    def ranges_ms(self) -> tuple[FloatArray, FloatArray]:
        """What each layer takes in its fastest and in its median pass, of all passes.

        What it takes undisturbed lies between the two, unless it was delayed in each pass. NaN for
        one that ran in fewer than `MIN_PASSES` passes.
        """
        known = self.ran >= MIN_PASSES
        low, high = np.full(len(known), np.nan), np.full(len(known), np.nan)
        if known.any():
            part = self.ran[known] / self.passes
            low[known] = np.nanmin(self.times_ms[known], axis=1) * part
            high[known] = np.nanmedian(self.times_ms[known], axis=1) * part
        return low, high

    def typical_ms(self, values: FloatArray) -> float | None:
        """Return the mean of the fastest quarter of a figure of passes; NaN is unknown."""
        known = np.sort(values[~np.isnan(values)])
        return undisturbed(known.tolist()) if known.size else None

    def statistics(self) -> dict[int, LayerStatistics]:
        """Return the stored columns of the layers that ran, by number."""
        times = self.undisturbed_ms
        total = math.fsum(times[self.ran > 0])
        return {
            index: LayerStatistics(
                time_ms=float(times[index]),
                percent=share_percent(float(times[index]), total) or 0.0,
                min_ms=float(known.min()),
                max_ms=float(known.max()),
                mean_ms=float(known.mean()),
                count=int(self.runs[index]) / self.passes,
                passes=int(self.ran[index]),
            )
            for index in np.flatnonzero(self.ran).tolist()
            for known in (self.times_ms[index][~np.isnan(self.times_ms[index])],)
        }


@dataclass(frozen=True, eq=False)
class Measurement:
    """The layers of a run and their samples: whoever shows a share or a sum asks here."""

    layers: Sequence[Layer]
    """With `Layer.index` as their place."""
    own: Samples | None
    """Their self times on the processor; None without any."""
    gpu: Samples | None = None
    """Their kernels on a GPU, in passes of their own."""

    @cached_property
    def total_ms(self) -> float:
        """The self times of all layers; longer than a pass where layers overlap."""
        return math.fsum(layer.time_ms or 0.0 for layer in self.layers)

    @cached_property
    def cost_ms(self) -> float:
        """What all layers cost, of which their percentages are: see `Layer.cost_ms`."""
        return math.fsum(layer.cost_ms or 0.0 for layer in self.layers)

    @cached_property
    def between_ms(self) -> float | None:
        """How long no layer runs in a pass; None where the length of passes is unknown."""
        return None if self.own is None else self._of_pass(self.own.lengths_ms - self._busy)

    @cached_property
    def pass_ms(self) -> float | None:
        """What a pass of the profiled run takes undisturbed: the layers and what is between them.

        Layers that ran at the same time count once.
        """
        if self.own is None or self.between_ms is None:
            return None
        busy = self.total_ms if self.own.busy_ms is None else self._of_pass(self._busy)
        return None if busy is None else busy + self.between_ms

    @property
    def covered_percent(self) -> float | None:
        """The layers' time as a part of the pass; above 100 where layers overlap."""
        return share_percent(self.total_ms, self.pass_ms)

    @property
    def between_percent(self) -> float | None:
        """What is between the layers as a part of the pass."""
        return share_percent(self.between_ms, self.pass_ms)

    def of_pass_percent(self, layer: Layer) -> float | None:
        """Return the part of the profiled pass that a layer takes on the processor."""
        return share_percent(layer.time_ms, self.pass_ms)

    def range_ms(self, layer: Layer) -> tuple[float, float] | None:
        """Return what a layer costs at least and at most: its fastest and its median pass.

        None with too few passes.
        """
        low, high = (float(limits[layer.index]) for limits in self._ranges)
        return None if math.isnan(low) else (low, high)

    @cached_property
    def is_order_certain(self) -> bool | None:
        """Whether the costliest layers are in their order, by their ranges.

        None when nothing can be said: with too few passes or layers.
        """
        order = self._ordered
        if len(order) < 2:
            return None
        low, high = (limits[order] for limits in self._ranges)
        first = range(min(FIRST_LAYERS, len(order) - 1))
        if any(math.isnan(low[at]) for at in first):
            return None
        return all(low[at] > np.nanmax(high[at + 1 :], initial=0.0) for at in first)

    @property
    def may_be_first(self) -> int:
        """How many layers may be the costliest one."""
        low, high = (limits[self._ordered] for limits in self._ranges)
        return int(np.count_nonzero(high >= np.nanmax(low, initial=0.0)))

    @cached_property
    def _ordered(self) -> list[int]:
        timed = [layer for layer in self.layers if layer.cost_ms]
        return [one.index for one in sorted(timed, key=lambda one: -(one.cost_ms or 0.0))]

    @cached_property
    def _ranges(self) -> tuple[FloatArray, FloatArray]:
        """The ranges of what each layer costs: of its kernels, or of its own time."""
        unknown = np.full(len(self.layers), np.nan)
        low, high = unknown.copy(), unknown.copy()
        on_gpu = np.array([layer.gpu_time_ms is not None for layer in self.layers], dtype=bool)
        for samples, which in ((self.own, ~on_gpu), (self.gpu, on_gpu)):
            if samples is not None:
                for mine, limits in zip((low, high), samples.ranges_ms, strict=True):
                    mine[which] = limits[which]
        return low, high

    @property
    def _busy(self) -> FloatArray:
        assert self.own is not None
        return self.own.sums_ms if self.own.busy_ms is None else self.own.busy_ms

    def _of_pass(self, values: FloatArray) -> float | None:
        assert self.own is not None
        return self.own.typical_ms(np.maximum(values, 0.0))


def _sums(times: Times) -> FloatArray:
    ran = ~np.isnan(times)
    return np.asarray(np.where(ran.any(axis=0), np.where(ran, times, 0.0).sum(axis=0), np.nan))


def _is_contradictory(times: Times, lengths_ms: FloatArray) -> NDArray[np.bool_]:
    """Return which passes are shorter than their sequential layers.

    Clocks and rounding are allowed 5 % and 2 microseconds per layer.
    """
    ran = np.count_nonzero(~np.isnan(times), axis=0)
    with np.errstate(invalid="ignore"):
        return np.asarray(_sums(times) > 1.05 * lengths_ms + 0.002 * ran)


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


def read_samples(
    execute: Execute,
    layers: int,
    lengths_ms: Mapping[int, float],
    *,
    gpu: bool = False,
    parallel: bool = False,
) -> Samples | None:
    """Return the samples of layers; None when there are none.

    A pass with an invalid time (missing, negative, not finite) is NaN, and so is one that is
    shorter than its layers, unless they can overlap.

    Args:
        execute: Of the report's connection.
        layers: The number of layers of the report.
        lengths_ms: Of the passes to read, by number; NaN where they are not known. Of very many,
            only some are read, evenly spaced.
        gpu: The durations of a layer's kernels on the GPU instead of its self time.
        parallel: Layers ran on several threads.

    Raises:
        WrongValue: A sample is of no layer, or holds text.
    """
    passes = chosen_passes(layers, sorted(lengths_ms))
    chosen = np.array(passes, dtype=np.float64)
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
    lengths = np.array([lengths_ms[number] for number in passes])
    if not gpu and not parallel:
        unsound |= _is_contradictory(by_pass.T, lengths)
    # The time of a layer in such a pass is unknown, and so is the sum of that pass.
    by_pass[unsound] = np.nan
    runs = runs.reshape(chosen.size, layers)[~unsound].sum(axis=0, dtype=np.int64)
    busy = _read_busy(execute, passes) if parallel and not gpu else None
    return Samples(np.ascontiguousarray(by_pass.T), runs, lengths, passes, busy)


def busy_us(starts: FloatArray, ends: FloatArray) -> float:
    """Return how long at least one of some intervals lasts: their union."""
    if not starts.size:
        return 0.0
    order = np.argsort(starts, kind="stable")
    begins, reached = starts[order], np.maximum.accumulate(ends[order])
    # What lies between the furthest end so far and the next start is covered by none.
    gaps = np.maximum(begins[1:] - reached[:-1], 0.0).sum()
    return float(reached[-1] - begins[0] - gaps)


def _read_busy(execute: Execute, passes: Sequence[int]) -> FloatArray:
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


def store_statistics(database: sqlite3.Connection, passes: Mapping[int, PassState]) -> None:
    """Fill the computed columns of the layers of a report that is being written."""
    sql = "SELECT pass, duration_us FROM passes"
    lengths = {n: us / 1000 for n, us in database.execute(sql) if us is not None}
    lengths = {number: ms for number, ms in lengths.items() if is_valid_time(ms)}
    ((layers,),) = database.execute("SELECT COUNT(*) FROM layers")
    ((threads,),) = database.execute("SELECT COUNT(*) FROM tracks WHERE kind = 'thread'")
    attributed = (index for (index,) in database.execute(ATTRIBUTED_PASSES))

    def samples(chosen: Iterable[int], *, gpu: bool = False) -> Samples | None:
        known = {number: lengths[number] for number in chosen if number in lengths}
        return read_samples(database.execute, layers, known, gpu=gpu, parallel=threads > 1)

    own = samples(counted_passes(passes))
    kernels = samples(gpu_passes(passes, attributed), gpu=True)
    assignments = ", ".join(f"{field.name} = ?" for field in fields(LayerStatistics))
    database.execute("BEGIN IMMEDIATE")
    if own is not None:
        database.executemany(
            f"UPDATE layers SET {assignments} WHERE id = ?",
            [(*astuple(row), index) for index, row in own.statistics().items()],
        )
    if kernels is not None:
        database.executemany(
            "UPDATE layers SET gpu_time_ms = ? WHERE id = ?",
            [(row.time_ms, index) for index, row in kernels.statistics().items()],
        )
    database.execute("COMMIT")
