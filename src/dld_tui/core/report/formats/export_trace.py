"""A report as a Chrome trace, which Perfetto (ui.perfetto.dev) and chrome://tracing show.

One process for the passes and the layers by thread, one for the GPU by stream, one for the
counters. Times are microseconds on the report's clock.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core.errors import CancelledError
from dld_tui.core.files.blobs import SpillFile
from dld_tui.core.files.writer import write_pieces
from dld_tui.core.report.layer_table import shapes_text
from dld_tui.core.report.records import Counter, Layer, ReportPass
from dld_tui.core.report.schema import as_json
from dld_tui.core.text import visible
from dld_tui.core.types import JSON, CancelCheck, ProgressCallback

if TYPE_CHECKING:
    from dld_tui.core.report.report import Report

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
        if gpu.layer is not None and 0 <= gpu.layer < len(report.layers):
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
    if not counter.samples:
        return
    # The counters may have their own clock; a pass is on both.
    shift = next((pass_.start_us - pass_.counter_origin_us for pass_ in report.passes), 0.0)
    parts = max(1, min(counter.samples, _MOST_SAMPLES))
    first, last = counter.first_us, max(counter.last_us, counter.first_us + 1.0)
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
    return f"{value:.3f}".rstrip("0").rstrip(".") or "0"
