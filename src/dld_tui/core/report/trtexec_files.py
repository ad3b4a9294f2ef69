"""Files of trtexec: layer times (``--exportProfile``) and inference times (``--exportTimes``).

The first row is ``{"count": iterations}``. A layer has ``timeMs`` (the sum), ``averageMs``,
``percentage`` and, from TensorRT 8.2 on, ``medianMs``. Names repeat, so each row is a layer.
"""

from __future__ import annotations

import os
import sqlite3
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from dld_tui.core import fmt
from dld_tui.core.errors import InputError
from dld_tui.core.report.groups import layer_type
from dld_tui.core.report.json_stream import ArrayReader, LastList, last_list
from dld_tui.core.report.model import Report, temporary_report
from dld_tui.core.report.records import Layer
from dld_tui.core.report.rows import LAYERS_ONLY, PHASES_ONLY
from dld_tui.core.report.statistics import median
from dld_tui.core.report.store import ReportWriter
from dld_tui.core.report.trtexec_rows import (
    Inference,
    InferenceRows,
    LayerRow,
    LayerRows,
    warm_up_beside,
)
from dld_tui.core.types import JSON, CancelCheck, ProgressCallback

_MOST_LAYERS = 1_000_000


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
    last = last_list(target, cancelled)
    reader = ArrayReader(target, progress, cancelled, only=last.index)
    found = LayerRows()
    for raw in reader.objects():
        found.add(raw)
    rows = [(row, row.mean_ms) for row in found.rows if row.mean_ms is not None][:_MOST_LAYERS]
    bad = found.doubtful + reader.damage.skipped
    if not rows:
        reason = f": {fmt.plural(bad, 'row')} without a sound time" if bad else ""
        raise InputError(f"the layer profile has no layer{reason}", where=str(target))

    def fill(writer: ReportWriter) -> None:
        _fill(writer, rows)
        if found.passes is not None:
            writer.add_environment({"iterations": found.passes})
        _remark(writer, found, reader, last)

    def amend(database: sqlite3.Connection) -> None:
        # The extremes of a layer are not in the file.
        values = [(mean, index) for index, (_, mean) in enumerate(rows)]
        database.executemany(
            "UPDATE layers SET min_ms = NULL, max_ms = NULL, mean_ms = ? WHERE id = ?", values
        )

    name = target.name.removesuffix(".json").removesuffix(".profile").removesuffix(".engine")
    return temporary_report(target, fill, network=name, backend="TensorRT", amend=amend)


def _fill(writer: ReportWriter, rows: Sequence[tuple[LayerRow, float]]) -> None:
    start = 0.0
    samples: list[tuple[int, float, float, float, int | str]] = []
    for row, mean in rows:
        details: dict[str, JSON] = {
            "total_ms": row.total_ms,
            "average_ms": row.mean_ms,
            "median_ms": row.median_ms,
            "trtexec_percentage": row.percentage,
        }
        known = {name: value for name, value in details.items() if value is not None}
        # Without a provider: those of ONNX Runtime are timed where they are launched.
        layer = writer.add_layer(Layer(row.name, layer_type(row.name), details=known))
        samples.append((layer, start, mean * 1000, mean * 1000, "sum of layers"))
        start += mean * 1000
    writer.add_pass(0, 0.0, start)
    writer.add_samples(0, samples)
    writer.set_fact("execution_provider", "TensorRT")
    writer.set_fact(LAYERS_ONLY, True)


def _remark(writer: ReportWriter, found: LayerRows, reader: ArrayReader, last: LastList) -> None:
    over = f" over {fmt.plural(found.passes, 'iteration')}" if found.passes else ""
    writer.note(
        f"trtexec layer profile: times are each layer's average{over}, as trtexec's own percentages"
        " are; single passes and the latency from end to end are not in the file, so the pass is"
        " the sum of its layers"
    )
    writer.note("types are told from the layers' names")
    if found.passes == 0:
        writer.note("the profile says that it is of 0 iterations", "warning")
    if found.runs > 1:
        writer.note(f"the profile is of {found.runs} runs: the last is shown", "warning")
    for text in last.notes("profile"):
        writer.note(text, "warning")
    if reader.damage.ends_early:
        writer.note("the profile ends early: it was cut", "warning")
    for text in found.repeated_note():
        writer.note(text, "warning")
    bad = found.doubtful + reader.damage.skipped
    if bad:
        writer.note(f"{fmt.plural(bad, 'row')} without a sound time left out", "warning")


_BLOCK = 1000
_LAUNCH_BOUND = 0.8
"""Share of the GPU's time from which enqueueing is what limits the throughput."""
_PHASES = (
    ("host to device copy", "memcpy"),
    ("GPU compute", "compute"),
    ("device to host copy", "memcpy"),
)
"""Name and type of the rows of a report, in the order of `Inference.phases`."""


@dataclass
class _Seen:
    layers: dict[int, int] = field(default_factory=dict)
    enqueue: array[float] = field(default_factory=lambda: array("d"))
    compute: array[float] = field(default_factory=lambda: array("d"))
    placed: int = 0
    """How many have a start."""
    first_ms: float = float("inf")
    last_ms: float = 0.0

    @property
    def count(self) -> int:
        """How many inferences were added."""
        return len(self.compute)


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
        last = last_list(target, cancelled)
        reader = ArrayReader(target, progress, cancelled, only=last.index)
        seen, rows = _Seen(), InferenceRows(warm_up_beside(target))
        inferences = _counted(reader, rows)
        while block := list(islice(inferences, _BLOCK)):
            _add(writer, block, seen)
        if not seen.count:
            raise InputError("there is no inference with sound times", where=str(target))
        rows.bad += reader.damage.skipped
        _times_remark(writer, seen, rows, reader, last)

    name = target.name.removesuffix(".json").removesuffix(".timing").removesuffix(".engine")
    return temporary_report(target, fill, network=name, backend="TensorRT (trtexec)")


def _counted(reader: ArrayReader, rows: InferenceRows) -> Iterator[Inference]:
    """Yield the inferences that count; those of the warm-up when there is no other."""
    for raw in reader.objects():
        found = rows.take(raw)
        if found is not None:
            yield found
    if not rows.kept:
        yield from rows.warm


def _add(writer: ReportWriter, block: Sequence[Inference], seen: _Seen) -> None:
    writer.add_latencies(found.latency_ms for found in block)
    for found in block:
        rows: list[tuple[int, float, float, float, int | str]] = []
        for place, (start, took) in enumerate(found.phases):
            if took <= 0:
                continue
            layer = seen.layers.get(place)
            if layer is None:
                layer = seen.layers[place] = writer.add_layer(Layer(*_PHASES[place]))
            rows.append((layer, start * 1000, took * 1000, took * 1000, _PHASES[place][0]))
        writer.add_pass(seen.count, (found.start_ms or 0.0) * 1000, found.latency_ms * 1000)
        writer.add_samples(seen.count, rows)
        if found.start_ms is not None:
            seen.placed += 1
            seen.first_ms = min(seen.first_ms, found.start_ms)
            seen.last_ms = max(seen.last_ms, found.end_ms)
        seen.compute.append(found.compute_ms)
        if found.enqueue_ms is not None:
            seen.enqueue.append(found.enqueue_ms)


def _times_remark(
    writer: ReportWriter, seen: _Seen, rows: InferenceRows, reader: ArrayReader, last: LastList
) -> None:
    writer.set_fact("execution_provider", "TensorRT")
    writer.set_fact(PHASES_ONLY, True)
    writer.note("trtexec inference times: whole inferences; times of layers are not in the file")
    compute = median(seen.compute)
    whole = not rows.bad and seen.placed == seen.count > 1
    if whole and seen.last_ms > seen.first_ms:
        writer.set_fact("throughput_per_s", 1000 * seen.count / (seen.last_ms - seen.first_ms))
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
    for text in last.notes("timing file"):
        writer.note(text, "warning")
    for text in rows.warm_up_notes():
        writer.note(text)
    for text in rows.doubts():
        writer.note(text, "warning")
