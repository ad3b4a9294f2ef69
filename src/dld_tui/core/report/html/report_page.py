"""A report as one HTML page that can be mailed."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timezone
from heapq import nlargest
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.node_cost import sharing_note
from dld_tui.core.report.groups import has_gpu_times, priced
from dld_tui.core.report.html.charts import Bar, bars, histogram
from dld_tui.core.report.html.page import Section, Tile, facts, page, paragraphs, tiles
from dld_tui.core.report.html.timeline import Graph, Lane, Span, timeline
from dld_tui.core.report.layer_table import costliest_first, group_table, layer_table
from dld_tui.core.report.measured_facts import ReportInput, measured_facts, report_inputs
from dld_tui.core.report.records import Counter, GpuEvent, PassEvent
from dld_tui.core.report.triage import coverage_lines, remarks
from dld_tui.core.tables.as_html import html_of
from dld_tui.core.tables.table import Column, Table
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
        Section("top", f"The {_TOP} costliest {report.wording.rows}", _top_bars(report)),
        Section(
            "layers",
            f"{report.wording.rows.capitalize()} ({len(report.layers):,})",
            _layer_table(report),
        ),
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
            Tile(
                "inferences" if report.has_phases else f"passes of the {latency.source}",
                fmt.count(latency.count),
            ),
        ]
    found.append(Tile(report.wording.rows, fmt.count(len(report.layers))))
    whole = "an inference" if report.has_phases else "a pass"
    found.append(
        Tile(f"all {report.wording.rows} of {whole}, ms", fmt.milliseconds(report.total_ms))
    )
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
    columns: tuple[Column[ReportInput], ...] = (
        Column("name", "input", lambda one: one.name),
        Column("shape", "shape", lambda one: one.shape_text, width=20),
        Column("why", "sizes guessed by", lambda one: one.why),
        Column("values", "values", lambda one: one.values),
        Column("values_reason", "values because of", lambda one: one.values_reason),
    )
    return html_of("inputs", Table(columns, [*report_inputs(report)]))


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


def _layer_table(report: Report) -> str:
    table = layer_table(report.layers, "report html", wording=report.wording)
    return html_of("layer-table", costliest_first(table))


def _group_table(report: Report, by: str) -> str:
    groups = report.groups(by)
    if len(groups) < 2:
        return ""
    table = group_table(groups, by, "text", on_gpu=has_gpu_times(report.layers))
    note = sharing_note(report.layers) if any(group.estimate for group in groups) else ""
    return html_of(f"{by}-table", replace(table, sort="percent")) + paragraphs(
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
