"""Chrome traces: one as a report, and a report as one, for Perfetto and chrome://tracing.

In an imported trace, names are the layers and steps the passes. An exported one has one process for
the passes and the layers by thread, one for the GPU by stream, and one for the counters. Times are
microseconds on the report's clock.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from dld_tui.core import fmt
from dld_tui.core.errors import CancelledError, InputError
from dld_tui.core.files.blobs import SpillFile
from dld_tui.core.files.writer import write_pieces
from dld_tui.core.notes import NoteKind
from dld_tui.core.report.formats.json_stream import ArrayReader
from dld_tui.core.report.formats.trace_events import EVENT_LIMIT, Mark, Spans, TraceEvents
from dld_tui.core.report.layer_table import shapes_text
from dld_tui.core.report.records import Counter, GpuEvent, GpuKind, Layer, ReportPass
from dld_tui.core.report.report import Report, temporary_report
from dld_tui.core.report.schema import as_json
from dld_tui.core.report.store import ReportWriter
from dld_tui.core.text import visible
from dld_tui.core.types import JSON, CancelCheck, ProgressCallback

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dld_tui.core.report.report import Report


_BLOCK = 20_000
_MOST_PASSES = 100_000


def report_from_trace(
    path: str | os.PathLike[str],
    progress: ProgressCallback | None = None,
    cancelled: CancelCheck | None = None,
) -> Report:
    """Return a Chrome trace as a report.

    Its passes are the steps or runs that it marks (``ProfilerStep#3`` of PyTorch, ``pass 3`` of
    this program's own export); a trace without any is one pass. Each name in a category is a layer.

    Raises:
        InputError: The file cannot be read, or has no event with a duration.
        CancelledError: `cancelled` returned True.
        SaveError: The folder for temporary files is full.
    """
    target = Path(path)
    reader = ArrayReader(target, progress, cancelled)
    events = TraceEvents()
    events.read(reader)
    if not len(events.host) + len(events.gpu):
        bad = events.bad + reader.damage.skipped
        reason = f": {fmt.plural(bad, 'event')} could not be read" if bad else ""
        raise InputError(f"the trace has no event with a duration{reason}", where=str(target))

    def fill(writer: ReportWriter) -> None:
        _Importer(writer, events).run()
        _remark(writer, events, reader)

    network = target.name.removesuffix(".json").removesuffix(".trace")
    return temporary_report(target, fill, network=network, backend="Chrome trace")


class _Importer:
    def __init__(self, writer: ReportWriter, events: TraceEvents) -> None:
        self._writer = writer
        self._events = events
        self._layers: dict[int, int] = {}
        self._labels = [events.label(number) for number in range(len(events.threads))]

    def run(self) -> None:
        self._writer.set_property("execution_provider", "GPU" if len(self._events.gpu) else "")
        host, gpu = self._events.host, self._events.gpu
        # In a trace with kernels only, these are the layers.
        whole = host if len(host) else gpu
        starts = np.frombuffer(whole.starts, dtype=np.float64)
        durations = np.frombuffer(whole.durations, dtype=np.float64)
        origin = float(starts.min())
        marks = self._marks(starts, durations)
        # By start; of equal starts the longer one, which holds the other, first.
        order = np.lexsort((-durations, starts))
        gpu_order = np.argsort(np.frombuffer(gpu.starts, dtype=np.float64), kind="stable")
        once = self._once(gpu)
        gpu_order = gpu_order[once[gpu_order]]
        gpu_starts = np.frombuffer(gpu.starts, dtype=np.float64)[gpu_order]
        if whole is gpu:
            order = order[once[order]]
        ordered = starts[order]
        outside = len(order)
        for index, (begin, end, state) in enumerate(marks):
            first = int(np.searchsorted(ordered, begin, "left"))
            last = int(np.searchsorted(ordered, end, "right" if len(marks) == 1 else "left"))
            chosen = order[first:last]
            outside -= len(chosen)
            self._writer.add_pass(index, begin - origin, end - begin, state)
            self._add_samples(index, whole, chosen, origin)
            if len(gpu) and whole is host:
                # Work of a pass may run after it: everything until the next pass begins belongs to
                # it.
                until = marks[index + 1].start_us if index + 1 < len(marks) else np.inf
                reached, past = np.searchsorted(gpu_starts, (begin, until), "left")
                self._add_gpu(index, begin, gpu_order[reached:past])
        if whole is host:
            outside += int(np.searchsorted(gpu_starts, marks[0].start_us, "left"))
        if outside > 0:
            self._writer.note(f"{fmt.plural(outside, 'event')} outside all passes left out")

    def _once(self, spans: Spans) -> NDArray[np.bool_]:
        """Return which GPU events count: on a stream, nothing runs twice at the same time."""
        parts = (spans.names, spans.threads, spans.durations, spans.starts)
        keys = [np.frombuffer(part, dtype=part.typecode) for part in parts]
        order = np.lexsort(keys)
        again = np.ones(max(len(order) - 1, 0), dtype=np.bool_)
        for key in keys:
            again &= key[order[1:]] == key[order[:-1]]
        again &= keys[2][order[1:]] > 0
        counts = np.ones(len(order), dtype=np.bool_)
        counts[order[1:][again]] = False
        count = int(again.sum())
        if count:
            events = fmt.plural(count, "event of a GPU is", "events of a GPU are")
            self._writer.note(f"{events} in the trace twice and counted once", NoteKind.WARNING)
        return counts

    def _marks(self, starts: NDArray[np.float64], durations: NDArray[np.float64]) -> list[Mark]:
        """Return where passes begin and end: marks that do not overlap, else all as one."""
        marks: list[Mark] = []
        for mark in sorted(self._events.marks)[:_MOST_PASSES]:
            if mark.end_us > mark.start_us and (not marks or mark.start_us >= marks[-1].end_us):
                marks.append(mark)
        overlapping = len(self._events.marks) - len(marks)
        if overlapping > 0:
            self._writer.note(
                f"{fmt.plural(overlapping, 'step')} left out: they overlap others", NoteKind.WARNING
            )
        if not marks:
            marks = [Mark(float(starts.min()), float((starts + durations).max()))]
            self._writer.note("the trace marks no steps or runs: it is shown as one pass")
        return marks

    def _add_samples(
        self, index: int, spans: Spans, chosen: NDArray[np.int64], origin: float
    ) -> None:
        own = self_times(spans, chosen)
        labels = self._labels

        def rows() -> Iterator[tuple[int, float, float, float, int | str]]:
            for place, self_us in zip(chosen.tolist(), own, strict=True):
                layer = self._layer(spans.names[place])
                start, took = spans.starts[place] - origin, spans.durations[place]
                yield layer, start, took, self_us, labels[spans.threads[place]]

        samples = rows()
        while block := list(islice(samples, _BLOCK)):
            self._writer.add_samples(index, block)

    def _add_gpu(self, index: int, begin: float, chosen: NDArray[np.int64]) -> None:
        gpu_events = (self._gpu_event(place, begin) for place in chosen.tolist())
        while block := list(islice(gpu_events, _BLOCK)):
            self._writer.add_gpu_events(index, block)

    def _gpu_event(self, place: int, begin: float) -> GpuEvent:
        gpu = self._events.gpu
        size = gpu.sizes[place]
        return GpuEvent(
            stream=self._labels[gpu.threads[place]],
            kind=cast("GpuKind", self._events.gpu_kind(gpu.names[place])),
            name=self._events.names[gpu.names[place]].text,
            start_us=gpu.starts[place] - begin,
            duration_us=gpu.durations[place],
            bytes=int(size) if size >= 0 else None,
        )

    def _layer(self, number: int) -> int:
        layer = self._layers.get(number)
        if layer is None:
            name = self._events.names[number]
            kind = name.category or "event"
            layer = self._layers[number] = self._writer.add_layer(Layer(name.text, kind))
        return layer


def self_times(spans: Spans, chosen: NDArray[np.int64]) -> list[float]:
    """Return durations without those of the spans directly inside, on the same thread.

    Args:
        spans: All of them.
        chosen: Places in `spans`, by start, of equal starts the longer first.
    """
    own: list[float] = []
    open_spans: dict[int, list[tuple[float, int]]] = {}
    for at, place in enumerate(chosen.tolist()):
        start, took = spans.starts[place], spans.durations[place]
        open_ = open_spans.setdefault(spans.threads[place], [])
        while open_ and open_[-1][0] <= start:
            open_.pop()
        if open_:
            # A child that ends after its parent takes only what the parent has left.
            parent_end, parent = open_[-1]
            own[parent] = max(0.0, own[parent] - min(took, parent_end - start))
        own.append(took)
        open_.append((start + took, at))
    return own


def _remark(writer: ReportWriter, events: TraceEvents, reader: ArrayReader) -> None:
    if reader.damage.ends_early:
        writer.note("the trace ends early: the process was killed, or it was cut", NoteKind.WARNING)
    bad = events.bad + reader.damage.skipped
    if bad:
        writer.note(
            f"{fmt.plural(bad, 'event')} could not be read or have no end", NoteKind.WARNING
        )
    if events.left_out:
        writer.note(
            f"only the first {EVENT_LIMIT:,} events are read, {events.left_out:,} are left out",
            NoteKind.WARNING,
        )
    others = sum(events.others.values())
    if others:
        letters = ", ".join(sorted(events.others)[:8])
        writer.note(f"{fmt.plural(others, 'event')} of other kinds left out ({letters})")


_HOST, _GPU, _COUNTERS = 1, 2, 3
"""The process ids."""
_PASSES = 0
"""The thread id of the passes."""
_MOST_SAMPLES = 20_000
_MOST_NODES = 8
_LINES = 2000
"""Lines per write."""

_GPU_CATEGORIES = {
    "kernel": "kernel",
    "memcpy": "gpu_memcpy",
    "memset": "gpu_memset",
    "overhead": "gpu_overhead",
    "sync": "gpu_sync",
}
"""The words of PyTorch where it has some; `trace_events` reads them back."""


def write_trace(
    report: Report,
    path: Path,
    *,
    overwrite: bool = False,
    progress: ProgressCallback | None = None,
    cancelled: CancelCheck | None = None,
) -> list[str]:
    """Write a report as a Chrome trace and return notes for the user, mostly none.

    Args:
        report: All of its passes are written.
        path: Where; by convention ``NAME.trace.json``.
        overwrite: Replace an existing file.
        progress: Called with (passes done, passes in all).
        cancelled: Asked before each pass.

    Raises:
        SaveError: It cannot be written; an existing file is unchanged.
        CancelledError: `cancelled` returned True.
    """
    spill = SpillFile()
    try:
        blob = spill.append(_blocks(trace_lines(report, progress, cancelled)))
        return write_pieces(path, [blob], overwrite=overwrite)
    finally:
        spill.close()


def trace_lines(
    report: Report,
    progress: ProgressCallback | None = None,
    cancelled: CancelCheck | None = None,
) -> Iterator[str]:
    """Yield the lines of the trace: one JSON object, an event per line.

    Raises:
        CancelledError: `cancelled` returned True.
    """
    other: dict[str, JSON] = {
        "network": report.network,
        "backend": report.backend,
        "execution_provider": report.execution_provider,
        "device": report.device,
        "created": report.created,
    }
    yield f'{{"displayTimeUnit": "ms", "otherData": {as_json(other)}, "traceEvents": ['
    comma = ""
    for event in _events(report, progress, cancelled):
        yield comma + event
        comma = ","
    yield "]}"


def _blocks(lines: Iterator[str]) -> Iterator[bytes]:
    while block := list(islice(lines, _LINES)):
        yield ("\n".join(block) + "\n").encode()


def _events(
    report: Report, progress: ProgressCallback | None, cancelled: CancelCheck | None
) -> Iterator[str]:
    yield from _names(report)
    layers = [_layer(layer) for layer in report.layers]
    for done, pass_ in enumerate(report.passes):
        if cancelled is not None and cancelled():
            raise CancelledError(where=str(report.path))
        yield from _pass(report, pass_, layers)
        if progress is not None:
            progress(done + 1, len(report.passes))
    for counter in report.counters:
        yield from _counter(report, counter)


def _names(report: Report) -> Iterator[str]:
    title = visible(report.network) or "model"
    yield _named("process_name", _HOST, 0, f"{title} · CPU")
    yield _named("thread_name", _HOST, _PASSES, "passes")
    if report.has_gpu_events:
        yield _named("process_name", _GPU, 0, f"{title} · GPU")
    if report.counters:
        yield _named("process_name", _COUNTERS, 0, "counters")
    for track in report.tracks:
        process = _GPU if track.kind == "stream" else _HOST
        name = f"thread {track.name}" if track.name.isdigit() else visible(track.name)
        yield _named("thread_name", process, track.id + 1, name)


def _pass(report: Report, report_pass: ReportPass, layers: list[tuple[str, str]]) -> Iterator[str]:
    start = report_pass.start_us
    yield _complete(
        f'"name":"pass {report_pass.index + 1}","cat":"pass"',
        _HOST,
        _PASSES,
        start,
        report_pass.duration_us,
        as_json({"state": report_pass.state}),
    )
    for event in report.pass_events(report_pass.index):
        title, arguments = layers[event.layer]
        at = start + event.start_us
        yield _complete(title, _HOST, event.track + 1, at, event.duration_us, arguments)
    streams = {track.name: track.id + 1 for track in report.tracks if track.kind == "stream"}
    for gpu in report.gpu_events(report_pass.index):
        arguments_: dict[str, JSON] = dict(gpu.details)
        if gpu.bytes is not None:
            arguments_["bytes"] = gpu.bytes
        if gpu.layer is not None:
            arguments_["layer"] = visible(report.layers[gpu.layer].name)
        yield _complete(
            _title(gpu.name, _GPU_CATEGORIES.get(gpu.kind, gpu.kind)),
            _GPU,
            streams.get(gpu.stream, 0),
            start + gpu.start_us,
            gpu.duration_us,
            as_json(arguments_),
        )


def _counter(report: Report, counter: Counter) -> Iterator[str]:
    # The counters may have their own clock; a pass is on both.
    shift = next((pass_.start_us - pass_.counter_origin_us for pass_ in report.passes), 0.0)
    parts = max(1, min(counter.samples, _MOST_SAMPLES))
    # The last sample stands for a period, too.
    first, last = counter.first_us, counter.last_us + (counter.period_us or 1.0)
    step = (last - first) / parts
    title = json.dumps(f"{visible(counter.title)} ({visible(counter.unit)})")
    for place, bucket in enumerate(report.counter_series(counter.id, first, last, parts)):
        if bucket is not None:
            at = _time(first + place * step + shift)
            yield (
                f'{{"ph":"C","name":{title},"pid":{_COUNTERS},"tid":0,"ts":{at},'
                f'"args":{{"value":{bucket.mean:.6g}}}}}'
            )


def _layer(layer: Layer) -> tuple[str, str]:
    """Return the name part of a layer's events, and their arguments."""
    arguments: dict[str, JSON] = {"layer": layer.index, "type": visible(layer.type)}
    if layer.provider:
        arguments["provider"] = visible(layer.provider)
    if layer.precision:
        arguments["precision"] = visible(layer.precision)
    if layer.output_dims:
        arguments["output"] = visible(shapes_text(layer.output_dims))
    if layer.nodes:
        arguments["onnx"] = [visible(link.label) for link in layer.nodes[:_MOST_NODES]]
    return _title(layer.name, layer.type), as_json(arguments)


def _title(name: str, category: str) -> str:
    # A comma would make it several categories.
    word = visible(category).replace(",", ";")
    return f'"name":{json.dumps(visible(name))},"cat":{json.dumps(word)}'


def _complete(
    title: str, process: int, thread: int, start: float, took: float, arguments: str
) -> str:
    return (
        f'{{"ph":"X",{title},"pid":{process},"tid":{thread},"ts":{_time(start)},'
        f'"dur":{_time(took)},"args":{arguments}}}'
    )


def _named(kind: str, process: int, thread: int, name: str) -> str:
    return (
        f'{{"ph":"M","name":"{kind}","pid":{process},"tid":{thread},'
        f'"args":{{"name":{json.dumps(name)}}}}}'
    )


def _time(value: float) -> str:
    return fmt.number(value, 3)
