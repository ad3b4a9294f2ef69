"""The model of a timeline: the spans of a pass of a report, laid out in lanes.

A lane holds spans that do not overlap, in columns, so that what is at a time is found by
bisection.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from heapq import nlargest
from itertools import accumulate, pairwise
from types import MappingProxyType
from typing import NamedTuple

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.report.gpu_kernels import Interval, busy_intervals, covered
from dld_tui.core.report.groups import main_node
from dld_tui.core.report.layer_table import layer_names
from dld_tui.core.report.records import Bucket, GpuEvent, Layer, PassEvent, Track
from dld_tui.core.report.report import Report
from dld_tui.core.text import visible
from dld_tui.core.text.names import MOST_SHARE, shared_ends
from dld_tui.widgets.charts.bars import HEATS, heat, hottest

GPU_TONES = ("gpu-copy", "gpu-memset", "gpu-overhead", "gpu-sync")
"""What a GPU does beside running kernels."""
TONES = HEATS + GPU_TONES
"""The kinds of span: style classes; their foreground is the bar's colour."""


_OVERVIEW_BUCKETS = 2048
"""Parts of the pass that the overview is made of, at any width."""


class Span(NamedTuple):
    """Something that ran, in microseconds from the start of the pass."""

    start_us: float
    end_us: float
    key: int
    """Which layer it belongs to, several spans may share one; -1 when none is known."""
    tone: int
    """Index into `TONES`."""
    self_us: float
    """Its time without the spans that run inside it."""
    event: int = -1
    """Which of `Timeline.events` it is; -1 for what a processor ran."""


@dataclass(frozen=True)
class CounterRow:
    """A counter under the lanes; times are of the pass."""

    title: str
    unit: str
    top: float
    """The value at full height."""
    absent: str | None
    """Why there is nothing to draw."""
    series: Callable[[float, float, int], Sequence[Bucket | None]]
    """Returns the counter from one time to another in so many equal parts."""


class Lane:
    """Spans of one row, in order of time, none overlapping the next."""

    def __init__(self, title: str, spans: Sequence[Span]) -> None:
        self.title = title
        """The thread or stream; empty for the bodies below it."""
        self.starts = array("d", (span.start_us for span in spans))
        self.ends = array("d", (span.end_us for span in spans))
        self.keys = array("q", (span.key for span in spans))
        self.tones = array("b", (span.tone for span in spans))
        self.self_times = array("d", (span.self_us for span in spans))
        self.events = array("q", (span.event for span in spans))
        self.gpu = any(span.event >= 0 for span in spans)
        """Whether it is a stream of a GPU."""
        self.sums = {tone: _running_sum(spans, tone) for tone in sorted(set(self.tones))}

    def __len__(self) -> int:
        return len(self.starts)

    def name_key(self, index: int) -> int:
        """Return what `Timeline.names` knows a span by: its layer, or else its GPU event."""
        return self.keys[index] if self.keys[index] >= 0 else event_key(self.events[index])

    def nearest(self, time_us: float) -> int | None:
        """Return the index of the span that runs at a time, or else the nearest one."""
        if not self.starts:
            return None
        index = max(bisect_right(self.starts, time_us) - 1, 0)
        following = index + 1
        if following == len(self) or self.ends[index] >= time_us:
            return index
        nearer_after = self.starts[following] - time_us < time_us - self.ends[index]
        return following if nearer_after else index

    def between(self, start_us: float, end_us: float) -> range:
        """Return the indices of the spans that lie in or reach into an interval."""
        return range(bisect_left(self.ends, start_us), bisect_right(self.starts, end_us))


def event_key(event: int) -> int:
    """Return what `Timeline.names` knows a GPU event by that belongs to no layer."""
    return -2 - event


def _running_sum(spans: Sequence[Span], tone: int) -> array[float]:
    times = (span.end_us - span.start_us if span.tone == tone else 0.0 for span in spans)
    return array("d", accumulate(times, initial=0.0))


class Timeline:
    """All lanes of one pass.

    Args:
        lanes: In drawing order.
        total_us: The length of the pass in microseconds.
        names: Texts of a layer for its bar, the most telling first; visible text.
        events: What the GPU did; the spans of its lanes name them.
        counters: What is drawn below the lanes.
    """

    def __init__(
        self,
        lanes: list[Lane],
        total_us: float,
        names: Mapping[int, tuple[str, ...]] | None = None,
        events: Sequence[GpuEvent] = (),
        counters: Sequence[CounterRow] = (),
    ) -> None:
        self.lanes = lanes
        self.total_us = max([total_us, *(lane.ends[-1] for lane in lanes if len(lane))])
        self.names = names or {}
        self.events = events
        self.counters = counters
        self.busy: list[Interval] = busy_intervals(events)
        """When any kernel ran on the GPU."""
        self.has_gpu = any(lane.gpu for lane in lanes)
        self._peaks = self._longest_by_part()
        self._places: dict[int, tuple[int, int]] = {}
        self._kernels: dict[int, tuple[int, int]] = {}
        self._events_of: dict[int, list[GpuEvent]] = {}
        for event in events:
            if event.kind == "kernel" and event.layer is not None:
                self._events_of.setdefault(event.layer, []).append(event)
        for number, lane in enumerate(lanes):
            longest_spans = self._kernels if lane.gpu else self._places
            for index, key in enumerate(lane.keys):
                place = longest_spans.get(key)
                if key >= 0 and (
                    place is None or self._length(*place) < self._length(number, index)
                ):
                    longest_spans[key] = (number, index)

    def _length(self, lane: int, index: int) -> float:
        return self.lanes[lane].ends[index] - self.lanes[lane].starts[index]

    def find(self, key: int) -> tuple[int, int] | None:
        """Return the lane and the index in it of the longest span of a layer."""
        return self._places.get(key) or self._kernels.get(key)

    def find_kernel(self, key: int) -> tuple[int, int] | None:
        """Return the lane and the index in it of the longest kernel of a layer."""
        return self._kernels.get(key)

    def kernels_of(self, key: int) -> Sequence[GpuEvent]:
        """Return the kernels of a layer, in order of time."""
        return self._events_of.get(key, ())

    def find_launch(self, key: int) -> tuple[int, int] | None:
        """Return the lane and the index in it of a layer's longest span on a processor."""
        return self._places.get(key)

    def longest(self, start_us: float, end_us: float, count: int) -> list[tuple[float, int]]:
        """Return (self time in microseconds, key of its name) of what took longest in a time.

        On the GPU when it did anything: there the work is, the processor only launches it.
        """
        longest: list[tuple[float, int]] = []
        for lane in self.lanes:
            if lane.gpu != self.has_gpu:
                continue
            indices = lane.between(start_us, end_us)
            times = lane.self_times[indices.start : indices.stop]
            for at in nlargest(count, range(len(times)), key=times.__getitem__):
                longest.append((times[at], lane.name_key(indices.start + at)))
        return nlargest(count, longest)

    def overview(self, cells: int) -> list[float | None]:
        """Return the longest self time of each of `cells` equal parts, in microseconds."""
        if cells <= 0:
            return []
        edges = [math.ceil(cell * _OVERVIEW_BUCKETS / cells) for cell in range(cells + 1)]
        overview: list[float | None] = []
        for first, last in pairwise(edges):
            peak = max(self._peaks[first : max(last, first + 1)], default=-1.0)
            overview.append(peak if peak >= 0 else None)
        return overview

    def _longest_by_part(self) -> array[float]:
        peaks = array("d", [-1.0]) * _OVERVIEW_BUCKETS
        if self.total_us <= 0:
            return peaks
        per_us = _OVERVIEW_BUCKETS / self.total_us
        for lane in self.lanes:
            for start, end, length in zip(lane.starts, lane.ends, lane.self_times, strict=True):
                first = min(max(int(start * per_us), 0), _OVERVIEW_BUCKETS - 1)
                for part in range(
                    first, max(first + 1, min(math.ceil(end * per_us), _OVERVIEW_BUCKETS))
                ):
                    if length > peaks[part]:
                        peaks[part] = length
        return peaks


_TICK_US = 0.001
"""Spans that overlap by less run one after the other: sums of floats are not exact."""


def layout(tracks: Iterable[tuple[str, Sequence[Span]]]) -> list[Lane]:
    """Return lanes: one or more a track, children in the lanes below their parent.

    Args:
        tracks: Title and spans of each thread or stream, in any order of time.
    """
    lanes = []
    for title, spans in tracks:
        rows: list[list[Span]] = []
        for span in sorted(spans, key=_outer_first):
            for row in rows:
                if row[-1].end_us <= span.start_us + _TICK_US:
                    row[-1] = row[-1]._replace(end_us=min(row[-1].end_us, span.start_us))
                    row.append(span)
                    break
            else:
                rows.append([span])
        for depth, row_spans in enumerate(rows):
            lanes.append(Lane(title if depth == 0 else "", row_spans))
    return lanes


def _outer_first(span: Span) -> tuple[float, bool, float, int]:
    # A span of no length is before, not inside, one that begins at the same tick of the clock.
    return (span.start_us, span.end_us > span.start_us, -span.end_us, span.key)


@dataclass(frozen=True)
class Measure:
    """The time between two marks and what lies in it."""

    start_us: float
    end_us: float
    layers: int
    self_us: float
    """The sum of the self times between the marks, on processors."""
    gpu_us: float | None = None
    """With any kernel running between the marks; None when nothing of a GPU is known."""
    on_gpu: bool = False
    """Whether kernels were counted, and not what a processor ran."""

    @property
    def length_us(self) -> float:
        """The time between the marks."""
        return self.end_us - self.start_us


def measure(
    timeline: Timeline, mark_us: float, other_mark_us: float, on_gpu: bool = False
) -> Measure:
    """Return what lies between two times; a span counts when all of it does.

    Args:
        timeline: The pass.
        mark_us: One mark.
        other_mark_us: The other one, before or after it.
        on_gpu: Count the layers of kernels, and not of what a processor ran.
    """
    start, end = min(mark_us, other_mark_us), max(mark_us, other_mark_us)
    layers: set[int] = set()
    total = 0.0
    for lane in timeline.lanes:
        for index in lane.between(start, end):
            if lane.starts[index] >= start and lane.ends[index] <= end:
                if lane.gpu == on_gpu and lane.keys[index] >= 0:
                    layers.add(lane.keys[index])
                total += 0.0 if lane.gpu else lane.self_times[index]
    gpu = covered(timeline.busy, start, end) if timeline.has_gpu else None
    return Measure(start, end, len(layers), total, gpu, on_gpu)


_TONE_OF = MappingProxyType(
    {
        "memcpy": "gpu-copy",
        "memset": "gpu-memset",
        "overhead": "gpu-overhead",
        "sync": "gpu-sync",
    }
)


def short_name(name: str) -> str:
    """Return the last meaningful part of a layer's name, for a bar."""
    parts = [part for part in name.split("/") if part]
    return visible(parts[-1]) if parts else ""


def bar_names(layers: Sequence[Layer]) -> dict[int, tuple[str, ...]]:
    """Return for each layer the texts for its bar, the most telling first.

    Without what most names have in common.
    """
    names: dict[int, tuple[str, ...]] = {}
    shown = layer_names(layers)
    ends = shared_ends(shown, MOST_SHARE)
    for layer, name in zip(layers, shown, strict=True):
        last = (main_node(layer.nodes).name if layer.nodes else "") or layer.name
        names[layer.index] = (ends.without(name), short_name(last), visible(layer.type))
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
    pass_events = list(events)
    hot = hottest(event.self_us for event in pass_events)
    for event in pass_events:
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


_LARGE = 1_000_000


def memory_rows(report: Report, events: Sequence[PassEvent]) -> list[CounterRow]:
    """Return the row of the activations in use during a pass, if a layer has them.

    They are those of the first pass: later ones take all that they need as one block.
    """
    in_use = {
        layer.index: layer.cost.in_use_bytes
        for layer in report.layers
        if layer.cost is not None and layer.cost.in_use_bytes is not None
    }
    steps = sorted(
        (event.start_us, in_use[event.layer]) for event in events if event.layer in in_use
    )
    top = max((size for _, size in steps), default=0)
    if not top:
        return []
    scale, unit = (1e6, "MB") if top >= _LARGE else (1e3, "kB")
    starts, sizes = [start for start, _ in steps], [size / scale for _, size in steps]
    return [CounterRow("activations", unit, top / scale, None, partial(highest, starts, sizes))]


def highest(
    starts: Sequence[float], sizes: Sequence[float], start_us: float, end_us: float, parts: int
) -> Sequence[Bucket | None]:
    """Return the highest of the sizes in equal parts of a time; each holds until the next.

    Args:
        starts: When each begins, ascending.
        sizes: Of each.
        start_us: Where the first part begins.
        end_us: Where the last one ends.
        parts: How many.
    """
    width = (end_us - start_us) / max(parts, 1)
    buckets: list[Bucket | None] = []
    for part in range(parts):
        begin = start_us + part * width
        first = max(bisect_right(starts, begin) - 1, 0)
        last = max(bisect_left(starts, begin + width), first + 1)
        values = sizes[first:last] if begin + width > starts[0] else ()
        buckets.append(
            Bucket(len(values), max(values), min(values), max(values)) if values else None
        )
    return buckets


def _absent_row(title: str, reason: str) -> CounterRow:
    return CounterRow(title, "", 1.0, visible(reason), lambda start, end, parts: [None] * parts)


def _series(
    report: Report, counter: int, origin_us: float, start_us: float, end_us: float, parts: int
) -> Sequence[Bucket | None]:
    return report.counter_series(counter, origin_us + start_us, origin_us + end_us, parts)


def timeline_of(report: Report, index: int) -> Timeline:
    """Read a pass and return its timeline; empty when the report has no such pass."""
    shown_pass = next((candidate for candidate in report.passes if candidate.index == index), None)
    if shown_pass is None:
        return Timeline([], 0.0)
    gpu = report.gpu_events(index)
    events = list(report.pass_events(index))
    counters = [*memory_rows(report, events), *counter_rows(report, shown_pass.counter_origin_us)]
    return build(events, report, shown_pass.duration_us, gpu, counters)
