"""Files of trtexec: layer times (``--exportProfile``) and inference times (``--exportTimes``).

The first row is ``{"count": iterations}``. A layer has ``timeMs`` (the sum), ``averageMs``,
``percentage`` and, from TensorRT 8.2 on, ``medianMs``. Names repeat, so each row is a layer.
"""

from __future__ import annotations

import math
import os
import sqlite3
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from dld_tui.core import fmt
from dld_tui.core.errors import InputError
from dld_tui.core.report.groups import layer_type
from dld_tui.core.report.json_stream import ArrayReader
from dld_tui.core.report.reader import Report
from dld_tui.core.report.records import Layer
from dld_tui.core.report.rows import LAYERS_ONLY
from dld_tui.core.report.statistics import median
from dld_tui.core.report.store import ReportWriter
from dld_tui.core.report.temporary import temporary_report
from dld_tui.core.types import JSON, CancelCheck, ProgressCallback

_LONGEST_MS = 1e12
_MOST_LAYERS = 1_000_000


@dataclass(frozen=True)
class _Row:
    name: str
    total_ms: float | None
    average_ms: float
    median_ms: float | None
    percentage: float | None


@dataclass
class _Rows:
    count: int | None = None
    rows: list[_Row] = field(default_factory=list)
    bad: int = 0

    @property
    def by_median(self) -> bool:
        return all(row.median_ms is not None for row in self.rows)

    def time_ms(self, row: _Row) -> float:
        """Return the median when every row has one, so that all rows are of one kind."""
        return row.median_ms if self.by_median and row.median_ms is not None else row.average_ms


def report_from_trtexec_profile(
    path: str | os.PathLike[str],
    progress: ProgressCallback | None = None,
    cancelled: CancelCheck | None = None,
) -> Report:
    """Return a layer profile of trtexec as a report of one pass: the layers one after another.

    Raises:
        InputError: The file cannot be read, or has no layer with a sound time.
        CancelledError: `cancelled` said so.
        SaveError: There is no room in the folder for temporary files.
    """
    target = Path(path)
    reader = ArrayReader(target, progress, cancelled)
    found = _read(reader)
    if not found.rows:
        bad = found.bad + reader.damage.skipped
        reason = f": {fmt.plural(bad, 'row')} without a sound time" if bad else ""
        raise InputError(f"the layer profile has no layer{reason}", where=str(target))

    def fill(writer: ReportWriter) -> None:
        _fill(writer, found, reader)

    def amend(database: sqlite3.Connection) -> None:
        # The extremes of a layer are not in the file, and its mean may be.
        values = [(row.average_ms, index) for index, row in enumerate(found.rows)]
        database.executemany(
            "UPDATE layers SET min_ms = NULL, max_ms = NULL, mean_ms = ? WHERE id = ?", values
        )

    name = target.name.removesuffix(".json").removesuffix(".profile").removesuffix(".engine")
    return temporary_report(target, fill, network=name, backend="TensorRT", amend=amend)


def _read(reader: ArrayReader) -> _Rows:
    found = _Rows()
    for row in reader.objects():
        if "name" not in row:
            count = row.get("count")
            if isinstance(count, int) and not isinstance(count, bool):
                found.count = count
            else:
                found.bad += 1
            continue
        made = _row(row, found.count)
        if made is None or len(found.rows) >= _MOST_LAYERS:
            found.bad += 1
        else:
            found.rows.append(made)
    return found


def _row(row: dict[str, JSON], count: int | None) -> _Row | None:
    name, total = row.get("name"), _time(row.get("timeMs"))
    average = _time(row.get("averageMs"))
    if average is None and "averageMs" not in row and total is not None and (count or 0) > 0:
        average = total / (count or 1)
    # A negative or impossible time makes the whole row doubtful.
    odd = any(key in row and _time(row[key]) is None for key in ("timeMs", "averageMs", "medianMs"))
    if not isinstance(name, str) or average is None or odd:
        return None
    if total is not None and (count or 0) > 0 and _contradict(total / (count or 1), average):
        return None
    return _Row(name, total, average, _time(row.get("medianMs")), _time(row.get("percentage")))


def _contradict(mean: float, average: float) -> bool:
    """Tell whether the mean that the sum gives is not the one that is written."""
    return abs(mean - average) > 0.001 + 0.05 * max(mean, average)


def _time(value: JSON) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value <= _LONGEST_MS and math.isfinite(value) else None


def _fill(writer: ReportWriter, found: _Rows, reader: ArrayReader) -> None:
    start = 0.0
    samples: list[tuple[int, float, float, float, int | str]] = []
    for row in found.rows:
        details: dict[str, JSON] = {
            "total_ms": row.total_ms,
            "average_ms": row.average_ms,
            "median_ms": row.median_ms,
            "trtexec_percentage": row.percentage,
        }
        known = {name: value for name, value in details.items() if value is not None}
        # Without a provider: those of ONNX Runtime are timed where they are launched.
        layer = writer.add_layer(Layer(row.name, layer_type(row.name), details=known))
        length = found.time_ms(row) * 1000
        samples.append((layer, start, length, length, "sum of layers"))
        start += length
    writer.add_pass(0, 0.0, start)
    writer.add_samples(0, samples)
    writer.set_fact("execution_provider", "TensorRT")
    writer.set_fact(LAYERS_ONLY, True)
    if found.count is not None:
        writer.add_environment({"iterations": found.count})
    _remark(writer, found, reader)


def _remark(writer: ReportWriter, found: _Rows, reader: ArrayReader) -> None:
    figure = "median" if found.by_median else "average"
    over = f" over {fmt.plural(found.count, 'iteration')}" if found.count else ""
    writer.note(
        f"trtexec layer profile: times are each layer's {figure}{over}; single passes and the"
        " latency from end to end are not in the file, so the pass is the sum of its layers"
    )
    writer.note("types are told from the layers' names")
    if found.count == 0:
        writer.note("the profile says that it is of 0 iterations", "warning")
    if reader.damage.ends_early:
        writer.note("the profile ends early: it was cut", "warning")
    bad = found.bad + reader.damage.skipped
    if bad:
        writer.note(f"{fmt.plural(bad, 'row')} without a sound time left out", "warning")


_LONGEST_ITERATION_MS = 1e12
_BLOCK = 1000
_ROUNDING_MS, _ROUNDING = 0.05, 0.02
"""How far apart times may be that say the same: trtexec writes single precision since its start."""
_LAUNCH_BOUND = 0.8
"""Share of the GPU's time from which enqueueing is what limits the throughput."""

_WARM_UP_MS = 100.0
"""Inferences before this are of the warm-up: with times since the start of the run, newer versions
leave those out and begin after it."""

_PHASES = (
    ("host to device copy", "memcpy", "H2d", "h2dMs"),
    ("GPU compute", "compute", "Compute", "computeMs"),
    ("device to host copy", "memcpy", "D2h", "d2hMs"),
)
"""(layer, type, the part of ``start…Ms`` and ``end…Ms``, its duration)."""


class _Inference(NamedTuple):
    start_us: float
    latency_ms: float
    enqueue_ms: float | None
    phases: tuple[tuple[float, float], ...]
    """(start, duration) of each of `_PHASES` in microseconds."""


@dataclass
class _Seen:
    layers: dict[int, int] = field(default_factory=dict)
    enqueue: array[float] = field(default_factory=lambda: array("d"))
    compute: array[float] = field(default_factory=lambda: array("d"))
    count: int = 0
    bad: int = 0
    repeated: int = 0
    first_us: float = math.inf
    last_us: float = 0.0


def report_from_trtexec_times(
    path: str | os.PathLike[str],
    progress: ProgressCallback | None = None,
    cancelled: CancelCheck | None = None,
) -> Report:
    """Return trtexec's inference times as a report: latencies, and a pass for each inference.

    Raises:
        InputError: The file cannot be read, or has no inference with sound times.
        CancelledError: `cancelled` said so.
        SaveError: There is no room in the folder for temporary files.
    """
    target = Path(path)

    def fill(writer: ReportWriter) -> None:
        seen = _Seen()
        reader = ArrayReader(target, progress, cancelled)
        inferences = _inferences(reader, seen)
        while block := list(islice(inferences, _BLOCK)):
            _add(writer, block, seen)
        if not seen.count:
            raise InputError("there is no inference with sound times", where=str(target))
        _times_remark(writer, seen, reader)

    name = target.name.removesuffix(".json").removesuffix(".timing").removesuffix(".engine")
    return temporary_report(target, fill, network=name, backend="TensorRT (trtexec)")


def _inferences(reader: ArrayReader, seen: _Seen) -> Iterator[_Inference]:
    begun = set[tuple[float, float]]()
    for row in reader.objects():
        found = _inference(row)
        key = (0.0, 0.0) if found is None else (found.start_us, found.latency_ms)
        if found is None:
            seen.bad += 1
        elif key in begun:  # no two inferences begin and end at once
            seen.repeated += 1
        else:
            begun.add(key)
            yield found


def _inference(row: dict[str, JSON]) -> _Inference | None:
    # A time that is written and can be none makes the whole row doubtful.
    if any(key.endswith("Ms") and _iteration_time(value) is None for key, value in row.items()):
        return None
    phases = []
    for _, _, part, duration_key in _PHASES:
        start, end = (
            _iteration_time(row.get(f"start{part}Ms")),
            _iteration_time(row.get(f"end{part}Ms")),
        )
        took, between = _iteration_time(row.get(duration_key)), None
        if start is not None and end is not None:
            if end < start:
                return None
            between = end - start
        if took is None:
            took = between
        elif between is not None and not _agree(took, between):
            return None
        if part != "Compute" and took is None:
            took = 0.0  # versions that leave copies out
        if took is None:
            return None
        phases.append((None if start is None else 1000 * start, 1000 * took))
    compute_start = phases[1][0]
    if compute_start is None:
        return None
    known = tuple((compute_start if at is None else at, took) for at, took in phases)
    first = min(at for at, _ in known)
    end = max(at + took for at, took in known)
    latency = _iteration_time(row.get("latencyMs"))
    begin, done = _iteration_time(row.get("startEnqMs")), _iteration_time(row.get("endEnqMs"))
    enqueue = done - begin if begin is not None and done is not None and done >= begin else None
    whole = sum(took for _, took in known) / 1000
    if latency is None:
        latency = (end - first) / 1000
    elif not _agree(latency, whole) and not _agree(latency, (end - first) / 1000):
        return None
    return _Inference(first, latency, enqueue, known)


def _agree(time: float, other: float) -> bool:
    """Tell whether two figures of one time are the same, but for how they were rounded."""
    return abs(time - other) <= _ROUNDING_MS + _ROUNDING * max(time, other)


def _iteration_time(value: JSON) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value <= _LONGEST_ITERATION_MS else None


def _add(writer: ReportWriter, block: list[_Inference], seen: _Seen) -> None:
    writer.add_latencies(found.latency_ms for found in block)
    for found in block:
        rows: list[tuple[int, float, float, float, int | str]] = []
        for place, (start, took) in enumerate(found.phases):
            if took <= 0:
                continue
            name, kind, _, _ = _PHASES[place]
            layer = seen.layers.get(place)
            if layer is None:
                layer = seen.layers[place] = writer.add_layer(Layer(name, kind))
            rows.append((layer, start, took, took, name))
        writer.add_pass(seen.count, found.start_us, found.latency_ms * 1000)
        writer.add_samples(seen.count, rows)
        seen.count += 1
        seen.first_us = min(seen.first_us, found.start_us)
        seen.last_us = max(seen.last_us, *(start + took for start, took in found.phases))
        seen.compute.append(found.phases[1][1] / 1000)
        if found.enqueue_ms is not None:
            seen.enqueue.append(found.enqueue_ms)


def _times_remark(writer: ReportWriter, seen: _Seen, reader: ArrayReader) -> None:
    writer.set_fact("execution_provider", "TensorRT")
    writer.note("trtexec inference times: whole inferences; times of layers are not in the file")
    compute = median(seen.compute)
    bad = seen.bad + reader.damage.skipped
    if not bad and seen.count > 1 and seen.last_us > seen.first_us:
        writer.set_fact("throughput_per_s", 1e6 * seen.count / (seen.last_us - seen.first_us))
    if seen.first_us < 1000 * _WARM_UP_MS:
        writer.note(
            "the times begin with the run: those of the warm-up (200 ms, unless --warmUp said"
            " otherwise) are among them, which trtexec leaves out of its own summary"
        )
    if set(seen.layers) == {1}:
        writer.note("no copies were timed: run trtexec without --noDataTransfers to have them")
    if seen.enqueue:
        enqueue = median(seen.enqueue)
        text = f"enqueueing takes {enqueue:.3f} ms (median), the GPU {compute:.3f} ms"
        if enqueue > _LAUNCH_BOUND * compute:
            writer.note(f"launch-bound: {text}; a CUDA graph would help", "warning")
        else:
            writer.note(text)
    if reader.damage.ends_early:
        writer.note("the list ends early: it was cut", "warning")
    if seen.repeated:
        noun = fmt.plural(seen.repeated, "inference is", "inferences are")
        writer.note(f"{noun} in the file twice and counted once", "warning")
    if bad:
        writer.note(f"{fmt.plural(bad, 'inference')} without sound times left out", "warning")
