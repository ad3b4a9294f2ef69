"""What each layer took in each pass, all at once: millions of samples as one array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dld_tui.core.report.aggregate import GPU_TIMES
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


def read_series(
    execute: Execute, layers: int, passes: Sequence[int], *, gpu: bool = False
) -> Times | None:
    """Return milliseconds ``float64[layers, passes]``, NaN where a layer did not run.

    Args:
        execute: Of the report's connection.
        layers: How many the report has.
        passes: The numbers of the passes to read, one column each, ascending.
        gpu: The durations of a layer's kernels on the GPU instead of its self time.

    Returns:
        None when there is nothing.

    Raises:
        WrongValue: A sample is of no layer, or holds no number.
    """
    step = max(1, -(-layers * len(passes) // _MOST_CELLS))
    chosen = np.array(passes[::step], dtype=np.float64)
    if not layers or not chosen.size:
        return None
    sums = np.zeros(layers * chosen.size)
    runs = np.zeros(sums.size, dtype=np.int32)
    rows = execute(GPU_TIMES if gpu else _SELF_TIMES)
    while batch := rows.fetchmany(_ROWS_AT_ONCE):
        numbers, layer, time_us = _columns(batch, layers)
        column = np.minimum(np.searchsorted(chosen, numbers), chosen.size - 1)
        known = chosen[column] == numbers
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
    return np.ascontiguousarray((sums / 1000).reshape(chosen.size, layers).T)


def _columns(
    batch: Sequence[Sequence[object]], layers: int
) -> tuple[Times, NDArray[np.int64], Times]:
    try:
        table = np.array(batch, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise WrongValue("a sample holds something that is not a number") from error
    if not np.isfinite(table).all():
        raise WrongValue("a sample holds something that is not a number")
    layer = table[:, 1]
    if layer.min() < 0 or layer.max() >= layers:
        raise WrongValue("a sample is of a layer that is not there")
    return table[:, 0], layer.astype(np.int64), table[:, 2]
