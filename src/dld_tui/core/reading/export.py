"""A report as JSON, CSV, and one HTML page that can be mailed."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timezone
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.codec import finite
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UsageError
from dld_tui.core.files.writer import write_text
from dld_tui.core.fmt import number
from dld_tui.core.reading.first_lines import (
    first_lines,
    latency_title,
    latency_word,
    text_lines,
    timed_text,
)
from dld_tui.core.reading.story import (
    advice_json,
    next_steps,
    step_commands,
    types_of,
)
from dld_tui.core.report.details import details_of
from dld_tui.core.report.formats.chrome_trace import write_trace
from dld_tui.core.report.generation import big_numbers, generation_of, llm_json
from dld_tui.core.report.gpu_kernels import gpu_summary
from dld_tui.core.report.groups import are_launches, costliest
from dld_tui.core.report.layer_table import (
    costliest_first,
    group_table,
    layer_names,
    layer_table,
    node_link_json,
)
from dld_tui.core.report.measured_figures import (
    ReportInput,
    activations_peak,
    figure_of,
    measured_figures,
    measured_json,
    report_inputs,
)
from dld_tui.core.report.records import (
    NOTHING_KNOWN,
    Cost,
    Counter,
    GpuEvent,
    Group,
    Layer,
    PassEvent,
)
from dld_tui.core.report.roofline import is_above_roof, limiter, measured_ms, per_second
from dld_tui.core.report.sharing import sharing_note
from dld_tui.core.report.triage import notes_of
from dld_tui.core.statistics import latency_json
from dld_tui.core.tables.html_page import (
    WIDTH,
    Section,
    Tile,
    axis_marks,
    definitions,
    histogram,
    page,
    paragraphs,
    scale,
    short,
    svg,
    text,
    tiles,
    time_bars,
)
from dld_tui.core.tables.rendering import csv_of, html_of
from dld_tui.core.tables.table import Column, Table, json_of
from dld_tui.core.tables.writers import TableWriter, write_tables, writers
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.report.report import Report


_LEFT, _RIGHT = 150, WIDTH - 10
_TALL, _GAP = 20, 3
_THIN = 0.8
"""Spans narrower than this are drawn together."""
_LETTER = 6.6
_MOST_DEPTHS = 16
_GRAPH_TALL = 44
_DARK = frozenset({"h3", "h4", "s0", "s1", "s2", "s3"})
"""Styles that text needs the page's other colour on."""


@dataclass(frozen=True)
class Span:
    """One bar; times in microseconds since the start of the pass."""

    start_us: float
    duration_us: float
    name: str
    """Untrusted text."""
    style: str
    """A class of the page: h0 to h4 by cost, s0 to s3, or quiet."""
    depth: int = 0


@dataclass(frozen=True)
class Lane:
    """A thread or a stream."""

    title: str
    spans: Sequence[Span]


@dataclass(frozen=True)
class Graph:
    """A counter over the pass: a value or None for each of equally long parts."""

    title: str
    values: Sequence[float | None]
    top: float
    """The value at full height."""
    shown: str
    """The highest value as people read it."""


def timeline(lanes: Sequence[Lane], graphs: Sequence[Graph], length_us: float) -> str:
    """Return a drawing; empty text when nothing ran."""
    lanes = [lane for lane in lanes if lane.spans]
    if not lanes or length_us <= 0:
        return ""
    axis = scale(0.0, length_us / 1000, _LEFT, _RIGHT)
    parts, top = [], 4.0
    for lane in lanes:
        parts.append(_title(lane.title, top))
        deepest = min(_MOST_DEPTHS, max(span.depth for span in lane.spans) + 1)
        for depth in range(deepest):
            row = [span for span in lane.spans if span.depth == depth]
            parts += _row(row, length_us, top)
            top += _TALL + _GAP
        top += _GAP
    for graph in graphs:
        parts += [_title(graph.title, top), _area(graph, top)]
        parts.append(f'<text class="soft" x="{_LEFT - 8}" y="{number(top + 28)}"'
                     f' text-anchor="end">{text(graph.shown)}</text>')  # fmt: skip
        top += _GRAPH_TALL + 2 * _GAP
    parts.append(axis_marks(axis, top + 2, "ms"))
    return svg(top + 36, parts, "timeline")


def _title(title: str, top: float) -> str:
    return (
        f'<text x="{_LEFT - 8}" y="{number(top + 14)}" text-anchor="end">'
        f"<title>{text(title)}</title>{text(short(title, 22))}</text>"
    )


def _row(spans: Sequence[Span], length_us: float, top: float) -> list[str]:
    """Draw spans of one depth; adjacent spans too narrow to be seen become one quiet bar."""
    axis = scale(0.0, length_us, _LEFT, _RIGHT)
    parts: list[str] = []
    thin: list[Span] = []
    end = 0.0

    def flush() -> None:
        if not thin:
            return
        left, right = axis.at(thin[0].start_us), max(end, axis.at(thin[0].start_us) + _THIN)
        title = thin[0].name if len(thin) == 1 else f"{len(thin):,} short ones"
        total = sum(span.duration_us for span in thin)
        style = thin[0].style if len(thin) == 1 else "quiet"
        parts.append(_rect(left, right - left, top, style, f"{title}: {total / 1000:.4g} ms"))
        thin.clear()

    for span in sorted(spans, key=lambda span: (span.start_us, -span.duration_us)):
        left, right = axis.at(span.start_us), axis.at(span.start_us + span.duration_us)
        if right - left < _THIN:
            if thin and left - end > _THIN:
                flush()
            thin.append(span)
            end = max(end, right) if len(thin) > 1 else right
            continue
        flush()
        title = f"{span.name}: {span.duration_us / 1000:.4g} ms"
        parts.append(_rect(left, right - left, top, span.style, title))
        letters = int((right - left - 6) / _LETTER)
        if letters >= 4:
            style = ' class="on"' if span.style in _DARK else ""
            name = span.name.rstrip("/").rpartition("/")[2] or span.name
            parts.append(
                f'<text{style} x="{number(left + 3)}" y="{number(top + 14)}">'
                f"{text(short(name, letters))}</text>"
            )
    flush()
    return parts


def _rect(left: float, width: float, top: float, style: str, title: str) -> str:
    return (
        f'<rect class="{text(style)}" x="{number(left)}" y="{number(top)}"'
        f' width="{number(max(width, 0.3))}" height="{_TALL}"><title>{text(title)}</title></rect>'
    )


def _area(graph: Graph, top: float) -> str:
    """Draw a counter; parts without a sample stay open."""
    step = (_RIGHT - _LEFT) / max(1, len(graph.values))
    base = top + _GRAPH_TALL
    places = [
        (_LEFT + (at + 0.5) * step, base - _GRAPH_TALL * min(1.0, max(0.0, value / graph.top)))
        for at, value in enumerate(graph.values)
        if value is not None
    ]
    runs: list[list[tuple[float, float]]] = [places[:1]] if places else []
    for before, now in pairwise(places):
        if now[0] - before[0] > 1.5 * step:
            runs.append([])
        runs[-1].append(now)
    polygons = []
    for run in runs:
        first, last = run[0][0] - step / 2, run[-1][0] + step / 2
        points = [(first, base), (first, run[0][1]), *run, (last, run[-1][1]), (last, base)]
        drawn = " ".join(f"{number(x)},{number(y)}" for x, y in points)
        polygons.append(f'<polygon class="area" points="{drawn}"/>')
    return "".join(polygons)


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
    latency = report.latency
    marks = [] if latency is None else latency.supported_percentiles
    drawn = "" if report.typical_pass is None else f" of pass {report.typical_pass + 1}"
    alone = ", kernels recorded alone" if drawn and report.kernel_passes else ""
    layers = layer_table(report.layers, "report html", wording=report.wording)
    sections = [
        Section(
            "answer", "In short", definitions((ln.label, ln.text) for ln in first_lines(report))
        ),
        Section("advice", "What may help", paragraphs([*_advice(report)])),
        Section(
            "look", "What to look at", paragraphs([(n.text, n.kind) for n in notes_of(report)])
        ),
        Section(
            "latency",
            latency_title(report).capitalize(),
            histogram(report.latency_samples, marks),
        ),
        Section("timeline", f"Timeline{drawn}{alone}", pass_timeline(report)),
        Section("types", "Time by operator type", _type_bars(report)),
        Section("top", f"The {_TOP} costliest {report.wording.rows}", _top_bars(report)),
        Section(
            "layers",
            f"{report.wording.rows.capitalize()} ({len(report.layers):,})",
            html_of("layer-table", costliest_first(layers)),
        ),
        Section("by-type", "By type", _group_table(report, "type")),
        Section("by-op", "By ONNX operator", _group_table(report, "op")),
        Section("by-provider", "By execution provider", _group_table(report, "provider")),
        Section("inputs", "Inputs", _input_table(report)),
        Section(
            "measured",
            "Also measured",
            definitions((figure.name, figure.text) for figure in measured_figures(report)),
        ),
        Section("settings", "Settings", definitions(_flat(report.settings))),
        Section("environment", "Environment", definitions(_flat(report.environment))),
        Section("model", "Model", definitions(_flat(report.model))),
    ]
    return page(report.network or report.path.name, subtitle, _tiles(report), sections)


def _advice(report: Report) -> Iterator[tuple[str, str]]:
    """Yield the advice and its commands as lines of a list."""
    for step in next_steps(report):
        yield step.line, "info"
        yield from ((command, "inner") for command in step_commands(report, step))


def _tiles(report: Report) -> str:
    latency = report.latency
    figures = [Tile(title, value) for value, title in big_numbers(generation_of(report))]
    # The rate of a decoder is its tokens a second, above.
    rate = [] if figures or latency is None else [f"{latency.throughput:,.1f}"]
    if latency is not None:
        figures += [
            *(
                Tile(f"{name}, ms", fmt.milliseconds(ms))
                for name, ms in [
                    (f"median {latency_word(report)}", latency.median),
                    *latency.supported_percentiles[1:],
                ]
            ),
            *(Tile("inferences/s", text) for text in rate),
            Tile("variation, %", fmt.percent(latency.cov_percent)),
            Tile(timed_text(report), fmt.count(latency.count)),
        ]
    figures.append(Tile(report.wording.rows, fmt.count(len(report.layers))))
    if report.measurement.cost_ms and not are_launches(report.layers):
        article = "an" if report.has_phases else "a"
        title = f"all {report.wording.rows} of {article} {report.wording.whole}, ms"
        figures.append(Tile(title, fmt.milliseconds(report.measurement.cost_ms)))
    return tiles(figures)


def _type_bars(report: Report) -> str:
    return time_bars(
        (f"{group.key} ({group.count:,})", group.cost_ms, group.percent)
        for group in types_of(report)[:_TOP]
        if group.cost_ms > 0
    )


def _top_bars(report: Report) -> str:
    top = [] if are_launches(report.layers) else costliest(report.layers, _TOP)
    return time_bars(
        (name, layer.cost_ms, layer.percent)
        for layer, name in zip(top, layer_names(top, report.layers), strict=True)
    )


def _input_table(report: Report) -> str:
    columns: tuple[Column[ReportInput], ...] = (
        Column("name", "input", lambda report_input: report_input.name),
        Column("shape", "shape", lambda report_input: report_input.shape_text, width=20),
        Column("why", "sizes guessed by", lambda report_input: report_input.why),
        Column("values", "values", lambda report_input: report_input.values),
        Column(
            "values_reason", "values because of", lambda report_input: report_input.values_reason
        ),
    )
    return html_of("inputs", Table(columns, [*report_inputs(report)]))


# The timeline


def pass_timeline(report: Report) -> str:
    """Return the drawing of the typical pass, with what the GPU did and the counters under it."""
    index = report.typical_pass
    pass_ = next((pass_ for pass_ in report.passes if pass_.index == index), None)
    if index is None or pass_ is None:
        return ""
    events = report.pass_events(index)
    gpu = report.gpu_events(index)
    length = max([pass_.duration_us, *(event.start_us + event.duration_us for event in gpu)])
    graphs = []
    for counter in report.counters:
        origin = pass_.counter_origin_us
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


def _group_table(report: Report, by: str) -> str:
    groups = report.groups(by)
    if len(groups) < 2:
        return ""
    table = group_table(groups, by, "text", report.layers)
    note = sharing_note(report.layers) if any(group.estimate for group in groups) else ""
    return html_of(f"{by}-table", replace(table, sort="percent")) + paragraphs(
        [(f"≈ {note}", "info")] if note else []
    )


def _flat(values: Mapping[str, JSON], prefix: str = "") -> Iterator[tuple[str, str]]:
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


def report_json(report: Report, by: str | None = None) -> dict[str, JSON]:
    """Return the document of ``dld report --json``. Fields may be added, never renamed."""
    latency, load_ms = report.latency, report.properties.get("load_ms")
    intervals = map(report.measurement.range_ms, report.layers)
    document: dict[str, JSON] = {
        "path": str(report.path),
        "status": report.status,
        "lines": [*text_lines(report)],
        "network": report.network,
        "backend": report.backend,
        "execution_provider": report.execution_provider,
        "device": report.device,
        "created": report.created,
        "model": report.model,
        "passes": latency.count if latency else 0,
        "profiled_passes": 0 if report.has_phases else len(report.counted_passes),
        "latency_ms": latency_json(latency),
        "profiled_latency_ms": latency_json(report.profiled_latency),
        "rows_are": report.wording.rows,
        "times_are": report.wording.figures,
        "layers_total_ms": report.measurement.total_ms,
        "covered_percent": report.measurement.covered_percent,
        "between_layers_percent": report.measurement.between_percent,
        "order_certain": report.is_order_certain,
        "joined_percent": report.joined_percent,
        "inputs": [report_input.to_json() for report_input in report_inputs(report)],
        "advice": advice_json(report),
        "gpu": gpu_json(report),
        "cost": cost_json(report.layers, report.properties.get("energy_per_inference_j")),
        "memory": memory_json(report.layers),
        "startup": [] if load_ms is None else [{"stage": "session", "ms": load_ms}],
        "energy_j": report.properties.get("energy_per_inference_j"),
        "llm": llm_json(generation_of(report)),
        "measured": measured_json(report),
        "layers": [
            {**record, "time_interval_ms": None if interval is None else [*interval]}
            for record, interval in zip(layers_json(report.layers), intervals, strict=True)
        ],
        "settings": report.settings,
        "environment": report.environment,
        "problems": list(report.problems),
        "notes": [{"level": note.kind.value, "text": note.text} for note in report.notes],
    }
    if by is not None:
        document["by"] = by
        document["groups"] = [*json_of(group_table(report.groups(by), by, "csv"))]
    return document


def gpu_json(report: Report) -> JSON:
    """Return the GPU summary of a pass and the counters; None if nothing is known.

    ``median_pass`` has the medians over all passes; the name has historical reasons.
    """
    summary = gpu_summary(report)
    if summary is None and not report.counters and report.gpu_absent is None:
        return None
    counters: list[JSON] = [asdict(counter) for counter in report.counters]
    slowed = None if summary is None else summary.slowed_by
    true_speed = summary is not None and summary.true_speed
    return {
        "busy_percent": summary.busy_percent if summary is not None and true_speed else None,
        "timeline_slowdown_percent": None if slowed is None else 100 * (slowed - 1),
        "gaps_ms": summary.gaps_us / 1000 if summary is not None and true_speed else None,
        "absent": report.gpu_absent,
        "median_pass": None
        if summary is None
        else {
            **asdict(summary),
            "busy_percent": summary.busy_percent,
            "gap_percent": summary.gap_percent,
            "attributed_percent": summary.attributed_percent,
            "slowed_by": summary.slowed_by,
        },
        "timeline": report.properties.get("gpu_timeline"),
        "counters": counters,
    }


def cost_json(layers: Sequence[Layer], joules: JSON = None) -> JSON:
    """Return operations and bytes of a pass, and by node; None where no layer has any.

    Sums and rates cover the layers with known values, ``uncounted_layers`` the others that took
    time. ``above_roof_layers`` were faster than the measured peaks allow. Rates and limiters of
    nodes are those of their layer. The energy of a node is an estimate: its share of the time of
    all layers, as if each needed the same power.

    Args:
        layers: Of a report.
        joules: The measured energy of a pass; None where it is unknown.
    """
    counted = [layer for layer in layers if layer.cost and layer.cost.flops is not None]
    if not counted:
        return None
    flops, achieved_flops = _amount(layers, lambda cost: cost.flops)
    moved, achieved_bytes = _amount(layers, lambda cost: cost.moved_bytes)
    whole_ms = sum(map(_pass_ms, layers))
    measured = figure_of(joules)
    per_ms = measured / whole_ms if measured is not None and whole_ms else None
    by_limiter: dict[str, float] = {}
    for layer in counted:
        if (limit := limiter(layer)) is not None:
            by_limiter[limit] = by_limiter.get(limit, 0.0) + _pass_ms(layer)
    return {
        "flops": flops,
        "moved_bytes": moved,
        "uncounted_layers": sum(
            None in (cost.flops, cost.moved_bytes)
            for layer in layers
            if _pass_ms(layer) and (cost := layer.cost or NOTHING_KNOWN)
        ),
        "above_roof_layers": sum(map(is_above_roof, layers)),
        "achieved_flops": achieved_flops,
        "achieved_bytes_s": achieved_bytes,
        "limiter": max(by_limiter, key=lambda name: by_limiter[name], default=None),
        "nodes": [
            {
                "scope": [*link.scope],
                "node": link.node,
                "op_type": link.op_type,
                "layer": layer.index,
                "share": link.share,
                "achieved_flops": per_second(layer, layer.cost and layer.cost.flops),
                "achieved_bytes_s": per_second(layer, layer.cost and layer.cost.moved_bytes),
                "limiter": limiter(layer),
                "energy_j_estimate": (
                    None if per_ms is None else per_ms * _pass_ms(layer) * link.share
                ),
            }
            for layer in counted
            for link in layer.nodes
        ],
    }


def _pass_ms(layer: Layer) -> float:
    return (measured_ms(layer) or 0.0) * (layer.count or 1.0)


def _amount(
    layers: Sequence[Layer], of: Callable[[Cost], float | None]
) -> tuple[float | None, float | None]:
    """Return an amount per pass, and per second; None if unknown."""
    known = [
        (layer, amount)
        for layer in layers
        if layer.cost is not None and (amount := of(layer.cost)) is not None
    ]
    total = sum(amount * (layer.count or 1.0) for layer, amount in known)
    ms = sum(_pass_ms(layer) for layer, _ in known)
    return (total if known else None, 1000 * total / ms if ms else None)


def memory_json(layers: Sequence[Layer]) -> JSON:
    """Return the peak of activations in a pass; None if it was not measured.

    A report has no tensors: ``dld memory`` lists those alive at the peak.
    """
    peak = activations_peak(layers)
    if peak is None:
        return None
    at = peak.layer
    return {
        "peak_bytes": peak.in_use_bytes,
        "at": {"layer": at.index, "name": at.name, "nodes": [link.node for link in at.nodes]},
        "arena_bytes": peak.arena_bytes,
        "alive": None,
    }


def layers_json(layers: Sequence[Layer]) -> list[dict[str, JSON]]:
    """Return the entries of ``layers``."""
    records = json_of(layer_table(layers, "report json"))
    return [
        {
            **record,
            "node_links": [*map(node_link_json, layer.nodes)],
            "details": details_of(layer),
        }
        for record, layer in zip(records, layers, strict=True)
    ]


def layers_csv(layers: Sequence[Layer]) -> str:
    """Return the layers as CSV; unknown values are empty.

    Shapes are written as ``1x3x224x224``, several are joined by ``;``, as are node names.
    """
    return csv_of(layer_table(layers, "report csv"))


def groups_csv(groups: Sequence[Group]) -> str:
    """Return groups as CSV."""
    return csv_of(group_table(groups, "", "csv"))


def write_html(report: Report, path: Path, *, overwrite: bool = False) -> list[str]:
    """Write a report as one HTML page and return remarks for the user."""
    return write_text(path, report_page(report), overwrite=overwrite)


def write_layers(
    writer: TableWriter, report: Report, path: Path, *, overwrite: bool = False
) -> list[str]:
    """Write the layers with the writer of a package, a row each, and return remarks for the user.

    The columns are those of the CSV with their types; properties of the run come with them.

    Raises:
        UnavailableError: The writer needs a package that is not installed.
        SaveError: The file cannot be written.
    """
    names = ("network", "backend", "execution_provider", "device", "created")
    metadata = {name: str(getattr(report, name) or "") for name in names}
    tables = [("Layers", layer_table(report.layers, "report parquet"))]
    return write_tables(writer, path, tables, metadata, overwrite=overwrite)


def _write_csv(report: Report, path: Path, *, overwrite: bool = False) -> list[str]:
    return write_text(path, layers_csv(report.layers), overwrite=overwrite)


def _write_json(report: Report, path: Path, *, overwrite: bool = False) -> list[str]:
    text = json.dumps(finite(report_json(report)), indent=2, allow_nan=False)
    return write_text(path, text + "\n", overwrite=overwrite)


FORMATS: dict[str, tuple[str, Callable[..., list[str]]]] = {
    ".trace.json": ("a Chrome trace of all passes, for Perfetto", write_trace),
    ".csv": ("the layers as CSV", _write_csv),
    ".json": ("everything but single runs, as JSON", _write_json),
    ".html": ("one page to mail", write_html),
}
"""Ours; :func:`formats` adds those of packages."""


def formats() -> dict[str, tuple[str, Callable[..., list[str]]]]:
    """Return description and writer by the ending of the file's name; the first match is used."""
    added = {
        writer.ending: (f"the layers as {writer.title}", partial(write_layers, writer))
        for writer in writers().values()
        if writer.ending not in FORMATS
    }
    return {**FORMATS, **added}


def export_report(report: Report, path: Path, *, overwrite: bool = False) -> list[str]:
    """Write a report in the format of the file's name, and return notes for the user.

    Raises:
        UsageError: The name has an unknown ending.
        UnavailableError: The kind needs a package that is not installed.
        SaveError: The file cannot be written.
    """
    name = path.name.lower()
    for ending, (_, write) in formats().items():
        if name.endswith(ending):
            return write(report, path, overwrite=overwrite)
    raise UsageError(
        "the name does not give a known format",
        where=str(path),
        hint=f"End the name in {endings()}",
    )


def endings() -> str:
    """Return the endings for a sentence."""
    names = sorted(formats())
    return f"{', '.join(names[:-1])} or {names[-1]}"
