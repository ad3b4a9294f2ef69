"""From samples to one row of statistics a layer."""

from __future__ import annotations

import math
import sqlite3
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, field, fields

from dld_tui.core.report.records import PassState
from dld_tui.core.report.statistics import percentile

GPU_TIMES = (
    "SELECT pass, layer, duration_us FROM gpu_events"
    " WHERE kind = 'kernel' AND layer IS NOT NULL ORDER BY pass, seq"
)
"""The rows that the time of a layer on the GPU is the sum of."""

ATTRIBUTED_PASSES = (
    "SELECT DISTINCT pass FROM gpu_events WHERE kind = 'kernel' AND layer IS NOT NULL"
)
"""The passes of which it is known which layers launched the kernels."""

KERNELS_ALONE: PassState = "kernels alone"


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
    """Return the passes that statistics are taken over: the measured ones, else incomplete ones."""
    for state in ("measured", "incomplete", "warm-up"):
        chosen = {index for index, found in states.items() if found == state}
        if chosen:
            return chosen
    return set()


def gpu_passes(states: Mapping[int, PassState], attributed: Iterable[int]) -> set[int]:
    """Return the passes that times of layers on a GPU are taken over.

    Those at true speed in which the layers of the kernels are known; without any, those that the
    statistics of layers are taken over.

    Args:
        states: Of all passes.
        attributed: Those of `ATTRIBUTED_PASSES`.
    """
    found = {index for index in attributed if states.get(index) == KERNELS_ALONE}
    return found or counted_passes(states)


def collect(
    samples: Iterable[tuple[int, int, float | None]], counted: set[int]
) -> dict[int, LayerTimes]:
    """Sum (pass, layer, self_us) rows per layer and pass. The rows come ordered by pass.

    A pass with a time that can be none (missing, negative, not finite) counts for no layer.
    """
    found: dict[int, LayerTimes] = {}
    current: int | None = None
    sums: dict[int, list[float]] = {}
    is_sound = True
    for index, layer, self_us in samples:
        if index != current:
            _close_pass(found, sums, is_sound)
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
    _close_pass(found, sums, is_sound)
    return found


def _close_pass(found: dict[int, LayerTimes], sums: dict[int, list[float]], is_sound: bool) -> None:
    if is_sound:
        for layer, (total, runs) in sums.items():
            times = found.get(layer)
            if times is None:
                times = found[layer] = LayerTimes()
            times.per_pass_us.append(total)
            times.runs += int(runs)
    sums.clear()


def summarise_layers(times: Mapping[int, LayerTimes]) -> dict[int, LayerStatistics]:
    """Return the statistics of each layer that ran."""
    ordered = {layer: sorted(found.per_pass_us) for layer, found in times.items()}
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
    """Return the median sum of a layer's kernels a pass, in milliseconds, where it had any.

    Args:
        rows: Those of `GPU_TIMES`.
        counted: The passes that count.
    """
    times = collect(rows, counted)
    return {
        layer: percentile(sorted(found.per_pass_us), 50) / 1000 for layer, found in times.items()
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
        [(*astuple(found), index) for index, found in statistics.items()],
    )
    database.executemany(
        "UPDATE layers SET gpu_time_ms = ? WHERE id = ?", [(ms, n) for n, ms in gpu.items()]
    )
    database.execute("COMMIT")
