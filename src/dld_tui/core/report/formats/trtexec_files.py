"""Files of trtexec: layer times (``--exportProfile``) and inference times (``--exportTimes``).

The first row is ``{"count": iterations}``. A layer has ``timeMs`` (the sum), ``averageMs``,
``percentage`` and, from TensorRT 8.2 on, ``medianMs``. Names repeat, so each row is a layer.
"""

from __future__ import annotations

import json
import math
import os
import re
import sqlite3
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import InputError
from dld_tui.core.foreign import text_of, time_of, whole_of
from dld_tui.core.notes import NoteKind
from dld_tui.core.report.dla import dla_kinds
from dld_tui.core.report.enqueueing import enqueue_note, is_launch_bound
from dld_tui.core.report.formats.json_stream import ArrayReader, LastList, last_list
from dld_tui.core.report.groups import layer_type
from dld_tui.core.report.records import Layer, LayerInformation
from dld_tui.core.report.report import LAYERS_ONLY, PHASES_ONLY, Report, temporary_report
from dld_tui.core.report.store import ReportWriter
from dld_tui.core.statistics import median
from dld_tui.core.types import JSON, CancelCheck, ProgressCallback

_ROUNDING_MS, _ROUNDING = 0.05, 0.02
"""How far apart times may be that say the same: trtexec writes single precision since its start."""
_ROW_ROUNDING_MS, _ROW_ROUNDING = 0.001, 0.05
"""The same of layers: logs give a mean with four digits behind the point, of microseconds."""
_BEGINS_WITH_RUN_MS = 100.0
"""Times that begin before this count from the start of the run, warm-up and all."""
_DEFAULT_WARM_UP_MS = 200.0
_WARM_UP = re.compile(r"\+ *([\d.]+) *ms warm up")
_LARGEST_METADATA = 16 << 20


class LayerRow(NamedTuple):
    """One layer's times over all passes of ``--exportProfile``."""

    name: str
    information: LayerInformation
    """Nothing but times: without an average if another figure of the row contradicts it."""


@dataclass
class LayerRows:
    """The rows of a layer profile; :meth:`add` them in the order of the file."""

    passes: int | None = None
    rows: list[LayerRow] = field(default_factory=list)
    unsound: int = 0
    """Rows without a name or a valid time."""
    contradictory: int = 0
    """Rows whose mean is not their total over the passes."""
    repeated: int = 0
    """Rows that are there twice, each figure the same, and count once."""
    runs: int = 1
    notes: list[str] = field(default_factory=list)
    _seen: set[LayerRow] = field(default_factory=set)

    @property
    def sum_ms(self) -> float:
        """The mean times of all rows together."""
        return math.fsum(row.information.average_ms or 0.0 for row in self.rows)

    @property
    def doubtful(self) -> int:
        """Rows whose time is not known."""
        return self.unsound + self.contradictory

    def add(self, raw: Mapping[str, JSON]) -> None:
        """Take a row; a count in the middle of them begins another run, and the last counts."""
        if "name" not in raw:
            self._count(raw.get("count"))
            return
        name = text_of(raw["name"])
        if not name:
            self.unsound += 1
            return
        row = LayerRow(name, self._facts(raw))
        if (
            row.information.total_ms or row.information.average_ms
        ):  # layers of no time may well be alike
            if row in self._seen:
                self.repeated += 1
                return
            self._seen.add(row)
        self.rows.append(row)

    def repeated_note(self) -> list[str]:
        """Return notes about repeated rows."""
        if not self.repeated:
            return []
        rows = fmt.plural(self.repeated, "row is", "rows are")
        return [f"{rows} in the profile twice and counted once"]

    def _count(self, value: JSON) -> None:
        count = whole_of(value)
        if count is None:
            self.unsound += 1
            return
        if self.rows:
            self.rows, self._seen = [], set()
            self.unsound = self.contradictory = self.repeated = 0
            self.runs += 1
        self.passes = count if count >= 0 else None

    def _facts(self, raw: Mapping[str, JSON]) -> LayerInformation:
        total, mean = time_of(raw.get("timeMs")), time_of(raw.get("averageMs"))
        median, percentage = time_of(raw.get("medianMs")), time_of(raw.get("percentage"))
        if mean is None and total is not None and self.passes:
            mean = total / self.passes
        # A negative or impossible time makes the whole row doubtful.
        written = ("timeMs", "averageMs", "medianMs")
        if mean is None or any(key in raw and time_of(raw[key]) is None for key in written):
            self.unsound += 1
            return LayerInformation()
        wrong = total is not None and self.passes and _row_contradicts(total / self.passes, mean)
        # Half of the passes took the median or longer, so it is at most twice the mean.
        if wrong or (median or 0.0) > 2 * mean * (1 + _ROW_ROUNDING) + _ROW_ROUNDING_MS:
            self.contradictory += 1
            return LayerInformation()
        return LayerInformation(
            total_ms=total, average_ms=mean, median_ms=median, trtexec_percentage=percentage
        )


def _row_contradicts(mean: float, written: float) -> bool:
    return abs(mean - written) > _ROW_ROUNDING_MS + _ROW_ROUNDING * max(mean, written)


@dataclass(frozen=True)
class Inference:
    """One row of ``--exportTimes``; times in milliseconds, from where the file counts."""

    start_ms: float | None
    """None where the file has durations only; the phases then count from 0."""
    latency_ms: float
    enqueue_ms: float | None
    phases: tuple[tuple[float, float], ...]
    """(start, duration) of the copy to the device, of computing, and of the copy back."""
    copies: tuple[bool, bool]
    """Whether the file has times of either copy."""

    @property
    def compute_ms(self) -> float:
        """The time that the GPU computed."""
        return self.phases[1][1]

    @property
    def end_ms(self) -> float:
        """When the last phase ended."""
        return max(start + took for start, took in self.phases)


@dataclass
class InferenceRows:
    """Selects the rows of a timing file that count; :meth:`take` them in file order.

    Args:
        warm_up_ms: Inferences whose compute starts before this are left out, as in trtexec's own
            summary; None if unknown: then its default, if the file begins with the run.
    """

    warm_up_ms: float | None = None
    bad: int = 0
    repeated: int = 0
    warm: list[Inference] = field(default_factory=list)
    """Those of the warm-up. Used if a run ended before it did."""
    kept: int = 0
    """The number of inferences that count, without a warm-up that is used instead."""
    first_ms: float | None = None
    _assumed: bool = False
    _seen: set[tuple[float, float]] = field(default_factory=set)

    def take(self, raw: Mapping[str, JSON]) -> Inference | None:
        """Return a row's inference when it counts."""
        inference = inference_of(raw)
        if inference is None:
            self.bad += 1
            return None
        if inference.start_ms is None:
            self.kept += 1
            return inference
        key = (inference.start_ms, inference.latency_ms)
        if key in self._seen:  # no two inferences begin and end at once
            self.repeated += 1
            return None
        self._seen.add(key)
        if self.first_ms is None:
            self.first_ms = inference.start_ms
            if self.warm_up_ms is None:
                with_run = inference.start_ms < _BEGINS_WITH_RUN_MS
                self.warm_up_ms = _DEFAULT_WARM_UP_MS if with_run else 0.0
                self._assumed = with_run
        if inference.phases[1][0] < (self.warm_up_ms or 0.0):
            self.warm.append(inference)
            return None
        self.kept += 1
        return inference

    def warm_up_notes(self) -> list[str]:
        """Return notes about the warm-up."""
        if not self.warm:
            return []
        length = f"{self.warm_up_ms or 0.0:g} ms{', the default' if self._assumed else ''}"
        if not self.kept:
            return [f"all inferences are within the warm-up ({length}): they are shown"]
        count = fmt.plural(len(self.warm), "inference")
        return [f"{count} of the warm-up ({length}) left out, as in trtexec's own summary"]

    def doubts(self) -> list[str]:
        """Return notes about invalid and repeated rows."""
        doubts = []
        if self.repeated:
            inferences = fmt.plural(self.repeated, "inference is", "inferences are")
            doubts.append(f"{inferences} in the file twice and counted once")
        if self.bad:
            doubts.append(f"{fmt.plural(self.bad, 'inference')} without valid times left out")
        return doubts


def inference_of(raw: Mapping[str, JSON]) -> Inference | None:
    """Return the times of a row; None where they are missing, impossible or contradictory."""
    times = {key: time_of(value) for key, value in raw.items() if key.endswith("Ms")}
    if None in times.values():  # an invalid time makes the whole row doubtful
        return None
    phases: list[tuple[float | None, float]] = []
    copies = []
    for part, key in (("H2d", "h2dMs"), ("Compute", "computeMs"), ("D2h", "d2hMs")):
        start, end = times.get(f"start{part}Ms"), times.get(f"end{part}Ms")
        took = times.get(key)
        if start is not None and end is not None:
            if end < start or (took is not None and not _agree(took, end - start)):
                return None
            took = end - start if took is None else took
        if part != "Compute":
            copies.append(took is not None)
            took = took or 0.0  # versions that leave copies out
        if took is None:
            return None
        phases.append((start, took))
    compute_start = phases[1][0]
    if compute_start is None:
        phases = _one_after_another(took for _, took in phases)
    known = tuple(((compute_start or 0.0) if at is None else at, took) for at, took in phases)
    first, end = min(at for at, _ in known), max(at + took for at, took in known)
    latency, whole = times.get("latencyMs"), sum(took for _, took in known)
    if latency is None:
        latency = end - first
    elif not _agree(latency, whole) and not _agree(latency, end - first):
        return None
    enqueue = times.get("enqMs")
    begin, finish = times.get("startEnqMs"), times.get("endEnqMs")
    if enqueue is None and begin is not None and finish is not None and finish >= begin:
        enqueue = finish - begin
    start_ms = None if compute_start is None else first
    return Inference(start_ms, latency, enqueue, known, (copies[0], copies[1]))


def _one_after_another(durations: Iterable[float]) -> list[tuple[float | None, float]]:
    spans: list[tuple[float | None, float]] = []
    at = 0.0
    for took in durations:
        spans.append((at, took))
        at += took
    return spans


def _agree(time: float, other: float) -> bool:
    """Return whether two figures of one time are equal up to rounding."""
    return abs(time - other) <= _ROUNDING_MS + _ROUNDING * max(time, other)


def warm_up_ms(metadata: Mapping[str, JSON]) -> float | None:
    """Return how long a run warmed up, by ``Duration: 3s (+ 200ms warm up)``; None when unknown."""
    options = metadata.get("inference_options")
    text = options.get("Duration") if isinstance(options, dict) else None
    if not isinstance(text, str):
        return None
    match = _WARM_UP.search(text)
    if match is None:
        return 0.0 if text else None
    return float(match[1]) if match[1].count(".") < 2 else None


def warm_up_beside(timing: Path) -> float | None:
    """Return the warm-up from TREx's metadata beside a timing file, or None."""
    if ".timing." not in timing.name:
        return None
    path = timing.with_name(timing.name.replace(".timing.", ".profile.metadata."))
    try:
        if path.stat().st_size > _LARGEST_METADATA:
            return None
        data = json.loads(path.read_bytes().decode("utf-8-sig", "replace"), strict=False)
    except (OSError, ValueError, RecursionError):
        return None
    return warm_up_ms(data) if isinstance(data, dict) else None


_MOST_LAYERS = 1_000_000


def report_from_trtexec_profile(
    path: str | os.PathLike[str],
    progress: ProgressCallback | None = None,
    cancelled: CancelCheck | None = None,
) -> Report:
    """Return a layer profile of trtexec as a report of one pass, its layers in sequence.

    Raises:
        InputError: The file cannot be read, or has no layer with a valid time.
        CancelledError: `cancelled` returned True.
        SaveError: The folder for temporary files is full.
    """
    target = Path(path)
    last = last_list(target, cancelled)
    reader = ArrayReader(target, progress, cancelled, only=last.index)
    layer_rows = LayerRows()
    for raw in reader.objects():
        layer_rows.add(raw)
    rows = [
        (row, mean) for row in layer_rows.rows if (mean := row.information.average_ms) is not None
    ][:_MOST_LAYERS]
    bad = layer_rows.doubtful + reader.damage.skipped
    if not rows:
        reason = f": {fmt.plural(bad, 'row')} without a valid time" if bad else ""
        raise InputError(f"the layer profile has no layer{reason}", where=str(target))

    def fill(writer: ReportWriter) -> None:
        _fill(writer, rows)
        if layer_rows.passes is not None:
            writer.add_environment({"iterations": layer_rows.passes})
        _remark(writer, layer_rows, reader, last)

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
    kinds = dla_kinds((row.name, "") for row, _ in rows)
    for (row, mean), on_dla in zip(rows, kinds, strict=True):
        # Without a provider: those of ONNX Runtime are timed where they are launched.
        layer = writer.add_layer(
            Layer(row.name, on_dla or layer_type(row.name), engine=row.information)
        )
        samples.append((layer, start, mean * 1000, mean * 1000, "sum of layers"))
        start += mean * 1000
    writer.add_pass(0, 0.0, start)
    writer.add_samples(0, samples)
    writer.set_property("execution_provider", "TensorRT")
    writer.set_property(LAYERS_ONLY, True)


def _remark(writer: ReportWriter, rows: LayerRows, reader: ArrayReader, last: LastList) -> None:
    over = f" over {fmt.plural(rows.passes, 'iteration')}" if rows.passes else ""
    writer.note(
        f"trtexec layer profile: times are each layer's average{over}, as trtexec's own percentages"
        " are; single passes and the latency from end to end are not in the file, so the pass is"
        " the sum of its layers"
    )
    writer.note("types are guessed from the layers' names")
    if rows.passes == 0:
        writer.note("the profile is of 0 iterations", NoteKind.WARNING)
    if rows.runs > 1:
        writer.note(f"the profile is of {rows.runs} runs: the last is shown", NoteKind.WARNING)
    for text in last.notes("profile"):
        writer.note(text, NoteKind.WARNING)
    if reader.damage.ends_early:
        writer.note("the profile ends early: it was cut", NoteKind.WARNING)
    for text in rows.repeated_note():
        writer.note(text, NoteKind.WARNING)
    bad = rows.doubtful + reader.damage.skipped
    if bad:
        writer.note(f"{fmt.plural(bad, 'row')} without a valid time left out", NoteKind.WARNING)


_BLOCK = 1000
_PHASES = (
    ("host to device copy", "memcpy"),
    ("GPU compute", "compute"),
    ("device to host copy", "memcpy"),
)
"""Name and type of the rows of a report, in the order of `Inference.phases`."""


@dataclass
class _InferenceTotals:
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
        InputError: The file cannot be read, or has no inference with valid times.
        CancelledError: `cancelled` returned True.
        SaveError: The folder for temporary files is full.
    """
    target = Path(path)

    def fill(writer: ReportWriter) -> None:
        last = last_list(target, cancelled)
        reader = ArrayReader(target, progress, cancelled, only=last.index)
        seen, rows = _InferenceTotals(), InferenceRows(warm_up_beside(target))
        inferences = _counted(reader, rows)
        while block := list(islice(inferences, _BLOCK)):
            _add(writer, block, seen)
        if not seen.count:
            raise InputError("no inference has valid times", where=str(target))
        rows.bad += reader.damage.skipped
        _times_remark(writer, seen, rows, reader, last)

    name = target.name.removesuffix(".json").removesuffix(".timing").removesuffix(".engine")
    return temporary_report(target, fill, network=name, backend="TensorRT (trtexec)")


def _counted(reader: ArrayReader, rows: InferenceRows) -> Iterator[Inference]:
    """Yield the inferences that count; those of the warm-up if there are no others."""
    for raw in reader.objects():
        inference = rows.take(raw)
        if inference is not None:
            yield inference
    if not rows.kept:
        yield from rows.warm


def _add(writer: ReportWriter, block: Sequence[Inference], seen: _InferenceTotals) -> None:
    writer.add_latencies(inference.latency_ms for inference in block)
    for inference in block:
        rows: list[tuple[int, float, float, float, int | str]] = []
        for place, (start, took) in enumerate(inference.phases):
            if took <= 0:
                continue
            layer = seen.layers.get(place)
            if layer is None:
                layer = seen.layers[place] = writer.add_layer(Layer(*_PHASES[place]))
            rows.append((layer, start * 1000, took * 1000, took * 1000, _PHASES[place][0]))
        writer.add_pass(seen.count, (inference.start_ms or 0.0) * 1000, inference.latency_ms * 1000)
        writer.add_samples(seen.count, rows)
        if inference.start_ms is not None:
            seen.placed += 1
            seen.first_ms = min(seen.first_ms, inference.start_ms)
            seen.last_ms = max(seen.last_ms, inference.end_ms)
        seen.compute.append(inference.compute_ms)
        if inference.enqueue_ms is not None:
            seen.enqueue.append(inference.enqueue_ms)


def _times_remark(
    writer: ReportWriter,
    seen: _InferenceTotals,
    rows: InferenceRows,
    reader: ArrayReader,
    last: LastList,
) -> None:
    writer.set_property("execution_provider", "TensorRT")
    writer.set_property(PHASES_ONLY, True)
    writer.note("trtexec inference times: whole inferences; times of layers are not in the file")
    compute = median(seen.compute)
    whole = not rows.bad and seen.placed == seen.count > 1
    if whole and seen.last_ms > seen.first_ms:
        writer.set_property("throughput_per_s", 1000 * seen.count / (seen.last_ms - seen.first_ms))
    if set(seen.layers) == {1}:
        writer.note("no copies were timed: run trtexec without --noDataTransfers to have them")
    if seen.enqueue:
        enqueue = median(seen.enqueue)
        kind = NoteKind.WARNING if is_launch_bound(enqueue, compute) else NoteKind.INFO
        writer.note(enqueue_note(enqueue, compute), kind)
    if reader.damage.ends_early:
        writer.note("the list ends early: it was cut", NoteKind.WARNING)
    for text in last.notes("timing file"):
        writer.note(text, NoteKind.WARNING)
    for text in rows.warm_up_notes():
        writer.note(text)
    for text in rows.doubts():
        writer.note(text, NoteKind.WARNING)
