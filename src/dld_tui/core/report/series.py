"""What each layer took in each pass, all at once: millions of samples as one array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dld_tui.core.report.aggregate import GPU_TIMES
from dld_tui.core.report.pass_times import busy_us
from dld_tui.core.report.values import WrongValue

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
        layers: How many the report has.
        passes: The numbers of the passes to read, one column each, ascending. A pass with a time
            that can be none (missing, negative, not finite) is NaN.
        gpu: The durations of a layer's kernels on the GPU instead of its self time.

    Returns:
        None when there is nothing.

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
    # What a layer took in such a pass is not known, and so no sum of that pass.
    by_pass[unsound] = np.nan
    return np.ascontiguousarray(by_pass.T)


def read_busy(execute: Execute, passes: Sequence[int]) -> Times:
    """Return how many milliseconds any layer ran in each pass, ``float64[passes]``.

    The union of the samples, for runs whose layers were on several threads at once; 0 in a pass
    without samples.
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
    """Return passes, layers, times with 0 for those that can be none, and which can be one."""
    table = _as_table(batch)
    if not np.isfinite(table[:, :2]).all() or np.isinf(table[:, 2]).any():
        raise WrongValue("a sample holds something that is not a number")
    layer, times = table[:, 1], table[:, 2]
    if layer.min() < 0 or layer.max() >= layers:
        raise WrongValue("a sample is of a layer that is not there")
    sound = np.isfinite(times) & (times >= 0)
    return table[:, 0], layer.astype(np.int64), np.where(sound, times, 0.0), sound


def _as_table(batch: Sequence[Sequence[object]]) -> Times:
    """Return rows as an array; what is missing is NaN."""
    try:
        return np.array(batch, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise WrongValue("a sample holds something that is not a number") from error
