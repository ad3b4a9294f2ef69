"""A report as one HTML page that can be mailed."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import datetime, timezone
from heapq import nlargest
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.node_cost import sharing_note
from dld_tui.core.report.cost import has_gpu_times, priced
from dld_tui.core.report.export import shape_text
from dld_tui.core.report.gpu_records import Counter, GpuEvent
from dld_tui.core.report.html import tables
from dld_tui.core.report.html.charts import Bar, bars, histogram
from dld_tui.core.report.html.page import Section, Tile, page, paragraphs, tiles
from dld_tui.core.report.html.tables import Column, facts, table
from dld_tui.core.report.html.timeline import Graph, Lane, Span, timeline
from dld_tui.core.report.inputs import report_inputs
from dld_tui.core.report.measured_facts import measured_facts
from dld_tui.core.report.records import Layer, PassEvent
from dld_tui.core.report.triage import coverage_lines, remarks
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.report.reader import Report

_TOP = 20
_COLUMNS = 200
"""Parts that a counter is drawn in."""
_GPU_STYLES = {"kernel": "s0", "memcpy": "s1", "memset": "s1", "overhead": "quiet", "sync": "quiet"}


def report_page(report: Report) -> str:
    """Return the page of a report. The same report gives the same bytes."""
    subtitle = (
        " · ".join(filter(None, (report.backend, report.execution_provider, report.device))),
        " · ".join(filter(None, (report.created, report.path.name, f"{report.status} report"))),
    )
    sections = [
        Section(
            "look",
            "What to look at",
            paragraphs(
                [
                    *((n.text, n.level) for n in remarks(report)),
                    *((line, "info") for line in coverage_lines(report)),
                ]
            ),
        ),
        Section("latency", _latency_title(report), histogram(_latencies(report))),
        Section("timeline", _timeline_title(report), pass_timeline(report)),
        Section("types", "Time by operator type", _type_bars(report)),
        Section("top", f"The {_TOP} costliest layers", _top_bars(report)),
        Section("layers", f"Layers ({len(report.layers):,})", layer_table(report)),
        Section("by-type", "By type", _group_table(report, "type")),
        Section("by-op", "By ONNX operator", _group_table(report, "op")),
        Section("by-provider", "By execution provider", _group_table(report, "provider")),
        Section("inputs", "Inputs", _input_table(report)),
        Section(
            "measured",
            "Also measured",
            facts((fact.name, fact.text) for fact in measured_facts(report)),
        ),
        Section("settings", "Settings", facts(_flat(report.settings))),
        Section("environment", "Environment", facts(_flat(report.environment))),
        Section("model", "Model", facts(_flat(report.model))),
    ]
    return page(report.network or report.path.name, subtitle, _tiles(report), sections)


def _tiles(report: Report) -> str:
    latency = report.latency
    found = []
    if latency is not None:
        found = [
            Tile("median latency, ms", fmt.milliseconds(latency.median)),
            Tile("p90, ms", fmt.milliseconds(latency.p90)),
            Tile("p99, ms", fmt.milliseconds(latency.p99)),
            Tile("inferences/s", f"{latency.throughput:,.1f}"),
            Tile("variation, %", fmt.percent(latency.cov_percent)),
            Tile(f"passes of the {latency.source}", fmt.count(latency.count)),
        ]
    found.append(Tile("layers", fmt.count(len(report.layers))))
    found.append(Tile("all layers of a pass, ms", fmt.milliseconds(report.total_ms)))
    return tiles(found)


def _latencies(report: Report) -> list[float]:
    if report.latency is None:
        return []
    return list(report.latencies) or [one.duration_us / 1000 for one in report.counted_passes]


def _latency_title(report: Report) -> str:
    source = report.latency.source if report.latency is not None else ""
    return f"Latency distribution ({source})" if source else "Latency distribution"


def _timeline_title(report: Report) -> str:
    return (
        "Timeline"
        if report.median_pass is None
        else f"Timeline of pass {report.median_pass + 1}"
        + (", kernels recorded alone" if report.kernel_passes else "")
    )


def _type_bars(report: Report) -> str:
    groups = report.groups("type")[:_TOP]
    rows = [
        Bar(
            f"{group.key} ({group.count:,})",
            (group.cost_ms,),
            (f"{fmt.milliseconds(group.cost_ms)} ms, {fmt.percent(group.percent)} %",),
        )
        for group in groups
        if group.cost_ms > 0
    ]
    return bars(rows)


def _top_bars(report: Report) -> str:
    timed = [layer for layer in priced(report.layers) if layer.time_ms]
    rows = [
        Bar(
            layer.name,
            (layer.time_ms,),
            (f"{fmt.milliseconds(layer.time_ms)} ms, {fmt.percent(layer.percent)} %",),
        )
        for layer in nlargest(_TOP, timed, key=lambda one: one.time_ms or 0.0)
    ]
    return bars(rows)


def _input_table(report: Report) -> str:
    columns = [
        Column("input", name=True),
        Column("shape", brief=True),
        Column("sizes guessed by", name=True),
        Column("values", name=True),
        Column("values because of", name=True),
    ]
    rows = [
        (one.name, one.shape_text, one.why or fmt.UNKNOWN, one.values or fmt.UNKNOWN,
         one.values_reason or fmt.UNKNOWN)
        for one in report_inputs(report)
    ]  # fmt: skip
    return table("inputs", columns, rows)


# The timeline


def pass_timeline(report: Report) -> str:
    """Return the drawing of the median pass, with what the GPU did and the counters under it."""
    index = report.median_pass
    found = next((one for one in report.passes if one.index == index), None)
    if index is None or found is None:
        return ""
    events = report.pass_events(index)
    gpu = report.gpu_events(index)
    length = max([found.duration_us, *(one.start_us + one.duration_us for one in gpu)])
    graphs = []
    for counter in report.counters:
        origin = found.counter_origin_us
        graphs += _graph(report, counter, origin, origin + length)
    lanes = [*_host_lanes(report, events), *_gpu_lanes(gpu)]
    return timeline(lanes, graphs, length)


def _host_lanes(report: Report, events: list[PassEvent]) -> Iterator[Lane]:
    hottest = max((event.self_us for event in events), default=0.0)
    titles = {track.id: track.name for track in report.tracks}
    by_track: dict[int, list[Span]] = {}
    for event in events:
        layer = report.layers[event.layer]
        by_track.setdefault(event.track, []).append(
            Span(event.start_us, event.duration_us, layer.name, _heat(event.self_us, hottest),
                 event.depth)
        )  # fmt: skip
    for place, (track, spans) in enumerate(sorted(by_track.items()), 1):
        name = titles.get(track, "")
        # Numbers of threads are long and say nothing.
        yield Lane(f"thread {place}" if name.isdigit() or not name else name, spans)


def _heat(own: float, hottest: float) -> str:
    if hottest <= 0 or own <= 0:
        return "h0"
    return f"h{min(4, int(5 * math.sqrt(own / hottest)))}"


def _gpu_lanes(events: list[GpuEvent]) -> Iterator[Lane]:
    streams: dict[str, list[Span]] = {}
    for event in events:
        streams.setdefault(event.stream, []).append(
            Span(
                event.start_us,
                event.duration_us,
                event.name,
                _GPU_STYLES.get(event.kind, "quiet"),
            )
        )
    for stream in sorted(streams):
        yield Lane(stream, streams[stream])


def _graph(report: Report, counter: Counter, start: float, end: float) -> list[Graph]:
    buckets = report.counter_series(counter.id, start, end, _COLUMNS)
    means = [None if bucket is None else bucket.mean for bucket in buckets]
    highest = max((bucket.maximum for bucket in buckets if bucket is not None), default=None)
    if highest is None:
        return []
    shown = f"up to {highest:.4g} {counter.unit}".rstrip()
    return [Graph(counter.title, means, counter.top, shown)]


# Tables


def layer_table(report: Report) -> str:
    """Return the table of all layers, the costliest first."""
    has_gpu = has_gpu_times(report.layers)
    gpu = [Column("GPU ms", numeric=True)] if has_gpu else []
    columns = [
        Column("#", numeric=True),
        Column("layer", name=True),
        Column("type"),
        Column("CPU ms" if has_gpu else "time ms", numeric=True),
        *gpu,
        Column("%", numeric=True),
        Column("min", numeric=True),
        Column("max", numeric=True),
        Column("runs", numeric=True),
        Column("precision"),
        Column("provider"),
        Column("output"),
        Column("ONNX node", name=True),
    ]
    costs = {layer.index: layer.time_ms or 0.0 for layer in priced(report.layers)}
    ordered = sorted(report.layers, key=lambda layer: (-costs[layer.index], layer.index))
    rows = (_layer_cells(layer, has_gpu) for layer in ordered)
    return table("layer-table", columns, rows, sorted_by=5 if has_gpu else 3)


def _layer_cells(layer: Layer, has_gpu: bool) -> list[tables.Cell]:
    gpu = [tables.milliseconds(layer.gpu_time_ms)] if has_gpu else []
    return [
        tables.count(layer.index),
        layer.name,
        layer.type,
        tables.milliseconds(layer.time_ms),
        *gpu,
        tables.percent(layer.percent),
        tables.milliseconds(layer.min_ms),
        tables.milliseconds(layer.max_ms),
        tables.count(None if layer.count is None else round(layer.count, 2)),
        layer.precision or fmt.UNKNOWN,
        (layer.provider or fmt.UNKNOWN).removesuffix("ExecutionProvider"),
        "; ".join(shape_text(dims) for dims in layer.output_dims) or fmt.UNKNOWN,
        ", ".join(link.label for link in layer.nodes) or fmt.UNKNOWN,
    ]


def _group_table(report: Report, by: str) -> str:
    has_gpu = has_gpu_times(report.layers)
    columns = [
        Column(by, name=True),
        Column("count", numeric=True),
        Column("CPU ms" if has_gpu else "time ms", numeric=True),
        *([Column("GPU ms", numeric=True)] if has_gpu else []),
        Column("%", numeric=True),
    ]
    groups = report.groups(by)
    if len(groups) < 2:
        return ""
    rows: list[list[tables.Cell]] = [
        [
            f"{group.key} ≈" if group.estimate else group.key,
            tables.count(group.count),
            tables.milliseconds(group.time_ms),
            *([tables.milliseconds(group.gpu_time_ms)] if has_gpu else []),
            tables.percent(group.percent),
        ]
        for group in groups
    ]
    note = sharing_note(report.layers) if any(group.estimate for group in groups) else ""
    return table(f"{by}-table", columns, rows, sorted_by=4 if has_gpu else 2) + paragraphs(
        [(f"≈ {note}", "info")] if note else []
    )


def _flat(values: dict[str, JSON], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield names and values as people read them; inputs have a table of their own."""
    for name, value in values.items():
        if isinstance(value, dict) and value and not prefix:
            if name != "input_shapes":
                yield from _flat(value, f"{name}.")
        elif value is not None and value != "" and value != []:
            yield _readable(prefix + (name or "ai.onnx"), value)


def _readable(name: str, value: JSON) -> tuple[str, str]:
    if isinstance(value, bool):
        return name, "yes" if value else "no"
    if isinstance(value, int) and name == "mtime_ns":
        try:
            time = datetime.fromtimestamp(value / 1e9, timezone.utc)
        except (OverflowError, ValueError, OSError):
            return "modified", fmt.UNKNOWN
        return "modified", f"{time:%Y-%m-%d %H:%M:%S} UTC"
    if isinstance(value, int) and (name == "bytes" or name.endswith(("_bytes", ".bytes"))):
        return name.removesuffix("_bytes") if name != "bytes" else "size", fmt.size(value)
    if isinstance(value, (int, float)) and name.endswith("_ns"):
        return name.removesuffix("_ns") + "_ms", fmt.milliseconds(value / 1e6)
    if isinstance(value, float):
        return name, f"{value:.10g}"
    if isinstance(value, list) and all(isinstance(item, (str, int, float)) for item in value):
        return name, ", ".join(map(str, value))
    return name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
