"""From a pass of a report to a timeline."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from types import MappingProxyType

from dld_tui.core import fmt
from dld_tui.core.report.gpu_records import Bucket, GpuEvent
from dld_tui.core.report.model import Report
from dld_tui.core.report.records import Layer, PassEvent, Track
from dld_tui.core.text import visible
from dld_tui.widgets.heat import heat, hottest
from dld_tui.widgets.timeline_model import TONES, CounterRow, Span, Timeline, event_key, layout

_TONE_OF = MappingProxyType(
    {
        "memcpy": "gpu-copy",
        "memset": "gpu-memset",
        "overhead": "gpu-overhead",
        "sync": "gpu-sync",
    }
)


def short_name(name: str) -> str:
    """Return the last part of a layer's name that tells something, for a bar."""
    parts = [part for part in name.split("/") if part]
    return visible(parts[-1]) if parts else ""


def bar_names(layers: Iterable[Layer]) -> dict[int, tuple[str, ...]]:
    """Return for each layer the texts for its bar, the most telling first."""
    names: dict[int, tuple[str, ...]] = {}
    for layer in layers:
        kind = visible(layer.type)
        names[layer.index] = (visible(layer.name), short_name(layer.name), kind)
    return names


def track_title(track: Track, number: int) -> str:
    """Return a short title; thread ids are long numbers that say nothing."""
    if track.kind == "thread" and track.name.isdigit():
        return f"thread {number}"
    return visible(track.name)


def event_title(event: GpuEvent) -> str:
    """Return what to call a GPU event: a kernel without its types and arguments, a copy's size."""
    if event.kind in ("memcpy", "memset"):
        size = "" if event.bytes is None else f" {fmt.size(event.bytes)}"
        return f"{visible(event.name) or event.kind}{size}"
    return visible(kernel_name(event.name)) or event.kind


def kernel_name(name: str) -> str:
    """Return the telling part of a kernel's name, e.g. ``nchwToNhwcKernel``."""
    plain = name.partition("<")[0].partition("(")[0].strip()
    return plain.split()[-1].rpartition("::")[2] if plain else name


def build(
    events: Iterable[PassEvent],
    report: Report,
    length_us: float,
    gpu: Sequence[GpuEvent] = (),
    counters: Sequence[CounterRow] = (),
) -> Timeline:
    """Return the timeline of a pass from its events: threads, streams, counters."""
    spans: dict[int, list[Span]] = {}
    found = list(events)
    hot = hottest(event.self_us for event in found)
    for event in found:
        end = event.start_us + event.duration_us
        tone = heat(event.self_us, hot)
        spans.setdefault(event.track, []).append(
            Span(event.start_us, end, event.layer, tone, event.self_us)
        )
    threads = [track for track in report.tracks if track.id in spans]
    titled = [(track_title(track, n), spans[track.id]) for n, track in enumerate(threads, 1)]
    unknown = [(f"track {n}", rows) for n, rows in spans.items() if all(t.id != n for t in threads)]
    lanes = layout([*titled, *unknown, *gpu_tracks(gpu)])
    names = bar_names(report.layers)
    for number, work in enumerate(gpu):
        if work.layer is None:
            title = event_title(work)
            names[event_key(number)] = (title, visible(work.name), work.kind)
    return Timeline(lanes, length_us, names, gpu, counters)


def gpu_tracks(events: Sequence[GpuEvent]) -> list[tuple[str, list[Span]]]:
    """Return the streams in the order of their first work; what is no stream comes last."""
    times: dict[int, float] = {}
    for event in events:
        if event.kind == "kernel" and event.layer is not None:
            times[event.layer] = times.get(event.layer, 0.0) + event.duration_us
    hot = hottest(times.values())
    streams: dict[str, list[Span]] = {}
    for number, event in enumerate(events):
        layer = -1 if event.layer is None else event.layer
        if event.kind == "kernel":
            # All kernels of a layer have the layer's colour.
            tone = heat(times.get(layer, event.duration_us), hot)
        else:
            tone = TONES.index(_TONE_OF[event.kind])
        end = event.start_us + event.duration_us
        span = Span(event.start_us, end, layer, tone, event.duration_us, number)
        streams.setdefault(event.stream, []).append(span)
    ordered = sorted(streams.items(), key=lambda item: _only_overhead(events, item[1]))
    return [(visible(name), spans) for name, spans in ordered]


def _only_overhead(events: Sequence[GpuEvent], spans: Iterable[Span]) -> bool:
    return all(events[span.event].kind in ("overhead", "sync") for span in spans)


def counter_rows(report: Report, origin_us: float) -> list[CounterRow]:
    """Return the rows below the lanes of a pass that starts at a time of the counters' clock."""
    rows = []
    absent: dict[str, list[str]] = {}
    if report.gpu_absent is not None:
        absent[report.gpu_absent] = ["GPU"]
    for counter in report.counters:
        if counter.absent is not None or not counter.samples:
            reason = counter.absent or "no sample was taken"
            absent.setdefault(reason, []).append(visible(counter.title))
            continue
        title, unit = visible(counter.title), visible(counter.unit)
        series = partial(_series, report, counter.id, origin_us)
        rows.append(CounterRow(title, unit, counter.top, None, series))
    # One row a reason: the same one four times would say no more.
    for reason, titles in absent.items():
        more = f" +{len(titles) - 1}" if len(titles) > 1 else ""
        rows.append(_absent_row(titles[0] + more, reason))
    return rows


def _absent_row(title: str, reason: str) -> CounterRow:
    return CounterRow(title, "", 1.0, visible(reason), lambda start, end, parts: [None] * parts)


def _series(
    report: Report, counter: int, origin_us: float, start_us: float, end_us: float, parts: int
) -> Sequence[Bucket | None]:
    return report.counter_series(counter, origin_us + start_us, origin_us + end_us, parts)


def timeline_of(report: Report, index: int) -> Timeline:
    """Read a pass and return its timeline; empty when the report has no such pass."""
    found = next((one for one in report.passes if one.index == index), None)
    if found is None:
        return Timeline([], 0.0)
    gpu = report.gpu_events(index)
    counters = counter_rows(report, found.counter_origin_us)
    return build(report.pass_events(index), report, found.duration_us, gpu, counters)
