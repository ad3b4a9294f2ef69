"""The panes of a plan: report card, layers and their details, findings, and the graph."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.graph.graph import Kind
from dld_tui.core.graph.pictures.content import Content
from dld_tui.core.notes import Note, NoteKind, plain_notes
from dld_tui.core.operators.categories import colour_class_of
from dld_tui.core.report.groups import group_layers
from dld_tui.core.report.layer_table import precision_style, short_precision
from dld_tui.core.report.records import Group, Layer
from dld_tui.core.report.roofline import Limiter, limits_text
from dld_tui.core.statistics import trtexec_summary
from dld_tui.core.tables.table import Table
from dld_tui.core.tensorrt.plan.engine_plan import EngineLayer, EnginePlan, EngineTensor, missing
from dld_tui.core.tensorrt.plan.file_set import device_name
from dld_tui.core.tensorrt.plan.gains import gain_text
from dld_tui.core.tensorrt.plan.graph import (
    LayerVertex,
    PlanGraph,
    plan_content,
    precision_text,
    tensor_type,
)
from dld_tui.core.tensorrt.plan.layer_records import shown_names
from dld_tui.core.tensorrt.plan.layer_work import (
    peaks_of,
    placement,
    points_under_roofs,
    unknown_device,
)
from dld_tui.core.tensorrt.plan.lint import PlanFinding
from dld_tui.core.tensorrt.plan.mapping import LayerNodes
from dld_tui.core.tensorrt.plan.summary import is_slowed, left_out, summary_of
from dld_tui.core.tensorrt.plan.tables import VIEWS, layers_of_row, make_table
from dld_tui.core.text import cell_width, clip, fit, visible
from dld_tui.core.text.names import ListedNames, cut_names
from dld_tui.widgets.charts.bars import Block, Line, bar, bar_ramp, block, fitted, flow, width_of
from dld_tui.widgets.charts.plots import Plot
from dld_tui.widgets.charts.report_charts import Chart, distribution_plot, roofline_plot
from dld_tui.widgets.explorer.findings import level_glyph
from dld_tui.widgets.graph.pane import GraphPane
from dld_tui.widgets.graph.state import GraphView, ViewedGraph
from dld_tui.widgets.lists.line_view import LaidOutView, LineView, MarksChanged
from dld_tui.widgets.lists.styled import ListSource, Piece, Rows, layer_style, wrap
from dld_tui.widgets.lists.table_view import TableView
from dld_tui.widgets.results.report_views import (
    ChartPane,
    advice_lines,
    distribution_block,
    figure_block,
)
from dld_tui.widgets.results.summary import slowest_lines
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.frame import Framed

_WIDE = 150
_TOP = 5
_TALL = 3
"""Rows of figures in a column, on a narrow screen."""
_GAP = 3
_BAR, _SHORT_BAR = 12, 7
_Figures: TypeAlias = "list[tuple[str, float | None]]"
_LEVEL_STYLES = {"warning": "warn", "note": "info"}


@dataclass(frozen=True)
class LoadedPlan:
    """What the summary is of."""

    plan: EnginePlan
    layers: Sequence[Layer]
    """Its layers as records."""
    findings: Sequence[PlanFinding]
    mapped: int
    """How many layers have a known ONNX node."""
    model_problem: str = ""
    """Why nodes are but names; empty when the model was read."""


def summary_lines(loaded: LoadedPlan, width: int) -> list[Line]:
    """Return the whole summary for `width` cells."""
    plan, layers = loaded.plan, loaded.layers
    lines = [*_head(loaded, width), []]
    figures = [_figure(plan), *_statistics(plan, width >= _WIDE)]
    amounts = _amounts(loaded, width >= _WIDE)
    cells = _BAR if width >= _WIDE else _SHORT_BAR
    bars = _some(_bars("precision", layers, cells), _bars("type", layers, cells))
    finding_lines = _findings(loaded, width)
    if width >= _WIDE:
        used = sum(bar.width + _GAP for bar in bars)
        room = max(width - used, 40)
        top = [block(slowest_lines(layers, room, _TOP), room)] if plan.total_ms else []
        blocks = [*bars, *top]
        lines += flow([*figures, *amounts], width, _GAP)
        lines += [[], *flow(blocks, width, _GAP), [], *finding_lines]
    else:
        lines += [*flow(figures, width, _GAP), [], *flow(amounts, width, 2 * _GAP), []]
        lines += [*flow(bars, width, _GAP), [], *finding_lines]
        if plan.total_ms:
            lines += [[], *slowest_lines(layers, min(width, 100), 3)]
    lines += _missing(loaded, width)
    return [fitted(line, width) for line in lines]


def _some(*blocks: Block) -> list[Block]:
    return [part for part in blocks if part.lines]


def _head(loaded: LoadedPlan, width: int) -> list[Line]:
    plan = loaded.plan
    dot = f" {glyphs.current().dot} "
    name = clip(visible(plan.title) or "(no name)", max(width // 2, 20), keep="middle")
    others = ", ".join(left_out(plan))
    parts = [
        visible(device_name(plan.device)),
        fmt.plural(len(plan.layers), "layer") + (f" (and {others})" if others else ""),
        fmt.plural(plan.profile_count, "profile") if plan.profile_count > 1 else "",
    ]
    lines: list[Line] = [[(name, "strong")]]
    for part in filter(None, parts):
        if width_of(lines[-1]) + cell_width(dot + part) > width:
            lines.append([("  ", "")])
        lines[-1].append((dot + part, "dim"))
    return lines


def _passes(count: int | None) -> str:
    if not count:
        return ""
    return f"{count:,} passes" if count > 1 else "1 pass"


def _figure(plan: EnginePlan) -> Block:
    timing = plan.timing
    times = None if timing is None else timing.compute or timing.latency
    if timing is not None and times is not None:
        title = "GPU compute, median" if timing.compute is not None else "latency, median"
        rate = timing.throughput
        return figure_block(times.median, title, f"{rate:,.1f} inferences/s" if rate else "")
    if plan.total_ms:
        return figure_block(plan.total_ms, "sum of the layers", "mean of each")
    return block([[("no times", "dim")]])


def _statistics(plan: EnginePlan, wide: bool) -> list[Block]:
    """Return the figures beside the median; on a wide screen the distribution, too."""
    timing = plan.timing
    times = None if timing is None else timing.compute or timing.latency
    if timing is None or times is None:
        return []
    columns: tuple[_Figures, _Figures] = (
        [("min", times.min), ("mean", times.mean), ("max", times.max), ("p99", times.p99)],
        [(name, one.median if one is not None else None) for name, one in (
            ("latency", timing.latency), ("H2D", timing.h2d), ("D2H", timing.d2h),
            ("enqueue", timing.enqueue),
        )],
    )  # fmt: skip
    blocks = []
    for column in columns:
        known = [(name, value) for name, value in column if value is not None]
        longest = max((len(name) for name, _ in known), default=0)
        blocks.append(block([
            [(f"{name:<{longest}}", "dim"), (f"{fmt.milliseconds(value):>9}", "")]
            for name, value in known
        ]))  # fmt: skip
    values = timing.series.get("compute") or timing.series.get("latency") or ()
    shape = [distribution_block(values, times.median, 24)] if wide else []
    return _some(*(blocks if wide else blocks[:1]), *shape)


def _amounts(loaded: LoadedPlan, wide: bool) -> list[Block]:
    """Return the figures of the whole engine; in two columns where there are few rows."""
    plan = loaded.plan
    summary = summary_of(plan)
    weights = _bytes_text(
        summary.weights_bytes, summary.weights_complete, summary.weights_estimated
    )
    activations = _bytes_text(summary.activations_bytes, summary.activations_complete)
    rows = [
        (
            "profiled layers sum to" if is_slowed(plan) else "layers sum to",
            f"{fmt.milliseconds(plan.total_ms)} ms" if plan.total_ms else "",
        ),
        ("weights", "" if plan.names_only else weights),
        ("activations", "" if plan.names_only else activations),
        ("profiled", _passes(plan.passes)),
        ("with ONNX nodes", f"{loaded.mapped:,} of {len(plan.layers):,}"),
    ]
    shown = [(name, value) for name, value in rows if value]
    parts = [shown] if wide or len(shown) < _TALL else [shown[:_TALL], shown[_TALL:]]
    blocks = []
    for part in parts:
        longest = max((len(name) for name, _ in part), default=0)
        blocks.append(block([
            [(f"{name:<{longest}} ", "dim"), (f"{value:>10}", "")] for name, value in part
        ]))  # fmt: skip
    return _some(*blocks)


def _bytes_text(known: int, is_complete: bool, estimated: int = 0) -> str:
    """Return bytes, and how far they are known."""
    if not known and not is_complete:
        return fmt.UNKNOWN
    word = "about " if estimated else ""
    return f"{word if is_complete else 'at least '}{fmt.size(known)}"


def _bars(by: str, layers: Sequence[Layer], cells: int) -> Block:
    """Return bars of time by type or precision; of how many there are when no time is known."""
    groups = group_layers(layers, by)
    if by == "precision" and not any(layer.precision for layer in layers):
        return block([])
    timed = sum(group.time_ms for group in groups) > 0
    if not timed:
        groups.sort(key=lambda group: -group.count)
    whole = sum(_amount(group, timed) for group in groups) or 1.0
    names = [_name(by, group) for group in groups[:_TOP]]
    wide = min(max(map(cell_width, names), default=4), 22)
    lines: list[Line] = []
    for name, group in zip(cut_names(names, wide), groups[:_TOP], strict=True):
        share = _amount(group, timed) / whole
        style = precision_style(group.key) if by == "precision" else layer_style(group.key)
        value = f"{fmt.milliseconds(group.time_ms)} ms" if timed else ""
        lines.append([
            (fit(name, wide) + " ", style),
            (bar(share, cells, bar_ramp()), style),
            (f" {100 * share:>3.0f} %", ""),
            (f" {value:>9}" if timed else "", "dim"),
            (f" {group.count:>4}", "dim"),
        ])  # fmt: skip
    if len(groups) > _TOP:
        lines.append([(f"{len(groups) - _TOP:,} more", "dim")])
    return block(lines)


def _amount(group: Group, timed: bool) -> float:
    return group.time_ms if timed else float(group.count)


def _name(by: str, group: Group) -> str:
    return short_precision(group.key) if by == "precision" else visible(group.key)


def _findings(loaded: LoadedPlan, width: int) -> list[Line]:
    """Return how much was found, and the first of it."""
    findings = loaded.findings
    if not findings:
        good = glyphs.current().good
        return [[(f" {good} ", "good"), ("nothing was found that costs time", "")]]
    count = fmt.plural(len(findings), "finding")
    lines: list[Line] = [[(f"{count}", "strong"), ("  3 shows all", "dim")]]
    names = shown_names(loaded.plan, loaded.layers)
    shown_first = [layers_text(one, names) for one in findings[:3]]
    listed = ListedNames(shown_first, _NAME_STEP)
    for finding, name in zip(findings[:3], shown_first, strict=True):
        share = "" if finding.percent is None else f"{fmt.percent(finding.percent)} % "
        style = _LEVEL_STYLES.get(finding.level, "info")
        text = clip(share + visible(finding.hazard), width - 3)
        room = width - 6 - cell_width(text)
        shown = f"   {listed.cut(name, room)}" if name and room > 12 else ""
        lines.append([(f" {level_glyph(finding.level)} ", style), (text, ""), (shown, "dim")])
    return lines


def _missing(loaded: LoadedPlan, width: int) -> list[Line]:
    """Return what is missing and how to get it, and what could not be read."""
    advice = [Note(NoteKind.WARNING, text) for text in loaded.plan.notes]
    advice += plain_notes(missing(loaded.plan))
    if loaded.model_problem:
        advice += plain_notes([loaded.model_problem])
    lines = advice_lines(advice, width)
    return [[], *lines] if lines else []


_ROOF_BAR = 16


class PlanSummary(LaidOutView):
    """What the engine is, how long it takes, where the time goes, and what to look at."""

    HELP = (
        "The report card of the engine: latency if known, precisions and types by their share of "
        "the time, the costliest layers, findings, and missing information."
    )

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.about: LoadedPlan | None = None

    def set_plan(self, loaded: LoadedPlan) -> None:
        """Show an engine."""
        self.about = loaded
        self.frame.show("Engine")
        self.draw()

    def laid_out(self, width: int) -> Sequence[Line] | None:
        return None if self.about is None else summary_lines(self.about, width)


class PlanCharts(ChartPane):
    """The charts of an engine, one at a time, and the times of whole inferences."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._plan: EnginePlan | None = None

    def set_plan(self, plan: EnginePlan, layers: Sequence[Layer], types: Sequence[Group]) -> None:
        """Show the charts of an engine; `layers` are its records."""
        self._plan = plan
        series = plan.timing.series if plan.timing is not None else {}
        values = series.get("compute") or series.get("latency") or ()
        title = "GPU compute" if series.get("compute") else "latency"
        title += " over the inferences, ms"
        self.set_layers(layers, types, values, title, trtexec_summary(values))

    def line_charts(self) -> dict[str, Chart]:
        """Return those of a report, with other distributions, and the roofline."""
        own = {
            "distribution": Chart(
                "distribution",
                "Distribution of the layers' times",
                plot=lambda data: distribution_plot(
                    [layer.time_ms for layer in data.layers if layer.time_ms], data.width
                ),
            ),
            "inferences": Chart(
                "inferences",
                "Distribution of the inferences' times",
                plot=lambda data: (
                    distribution_plot(data.latencies, data.width, data.latency)
                    if data.latencies
                    else "The files have no time of single inferences."
                ),
            ),
        }
        others = {
            "roofline": Chart("roofline", "Roofline", plot=lambda data: self._roofline()),
            "efficiency": Chart(
                "efficiency",
                "How near to the roofline the layers are",
                lambda data: [] if self._plan is None else roofline_lines(self._plan, data.width),
            ),
        }
        return {**own, **(super().line_charts() | own | others)}

    def _roofline(self) -> Plot | str:
        plan = self._plan
        peaks = None if plan is None else peaks_of(plan.device)
        if plan is None or peaks is None:
            why = "" if plan is None else unknown_device(plan)
            return f"{why[:1].upper()}{why[1:]}."
        records = dict(zip((layer.index for layer in plan.layers), self._layers, strict=False))
        known, tops = points_under_roofs(plan.layers, peaks)
        points = [(x, y, records[layer.index]) for layer, x, y in known]
        return roofline_plot(points, peaks, tops)


def roofline_lines(plan: EnginePlan, width: int) -> list[Line]:
    """Return how near to what the device can do the layers come, the costliest first."""
    peaks = peaks_of(plan.device)
    if peaks is None:
        why = unknown_device(plan)
        return [[(part, "dim")] for part in (why[:1].upper() + why[1:] + ".",)]
    tops = ", ".join(f"{kind} {rate / 1e12:g}" for kind, rate in peaks.flops.items())
    lines: list[Line] = [
        [(clip(f"{visible(peaks.device)}: {peaks.bandwidth / 1e9:,.0f} GB/s", width), "strong")],
        [(clip(f"T(FL)OPS at most: {tops}", width), "dim")],
        [],
    ]
    known: list[tuple[Limiter, float, float]] = []
    rows: list[Line] = []
    layers = sorted(plan.layers, key=lambda item: -(item.time_ms or 0.0))
    room = max(width - _ROOF_BAR - 35, 8)
    names = cut_names([visible(layer.name) for layer in layers], room)
    for layer, name in zip(layers, names, strict=True):
        placed = placement(layer, peaks)
        if placed is None:
            continue
        share = placed.efficiency
        if share is not None and layer.time_ms is not None:
            known.append((placed.bound, layer.time_ms, share * layer.time_ms))
        text = fmt.UNKNOWN if share is None else f"{100 * share:.0f}"
        rows.append([
            (f"{fmt.milliseconds(layer.time_ms):>8} ms ", "number"),
            (f"{placed.bound:<9}", "warn" if placed.bound == "compute" else "info"),
            (bar(share, _ROOF_BAR, bar_ramp()), layer_style(layer.kind)),
            (f" {text:>4} %  ", ""),
            (name, ""),
        ])  # fmt: skip
    if told := limits_text(known, plan.total_ms or 0.0):
        lines.insert(2, [(clip(f"of the time {told}", width), "")])
    return [*lines, *rows]


_MOST_NODES = 60
_MOST_TENSORS = 40
_QUIET = ("Name", "LayerType", "Inputs", "Outputs", "Constants", "TacticName", "Metadata",
          "ParameterType", "TacticValue", "StreamId", "Origin")  # fmt: skip
"""Attributes of the file that have lines of their own."""


@dataclass(frozen=True)
class NodeLine:
    """The key of a line about an ONNX node."""

    place: int
    """Among the layer's nodes."""


class PlanDetails(LineView):
    """The layer under the cursor of another pane."""

    HELP = (
        "Everything that the file says about the layer: tensors with formats, weights, tactic, "
        "ONNX nodes and findings. {list.activate} on a node goes to the model."
    )

    @dataclass
    class NodeChosen(Message):
        """Enter on the line of an ONNX node."""

        place: int

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, empty="No layer is selected.", classes="frame")
        self._shown: tuple[EngineLayer, LayerNodes | None, Sequence[PlanFinding]] | None = None

    def show(
        self, layer: EngineLayer, nodes: LayerNodes | None, findings: Sequence[PlanFinding]
    ) -> None:
        """Show a layer, the ONNX nodes that it computes and what was found in it."""
        same = self._shown is not None and self._shown[0].index == layer.index
        self._shown = (layer, nodes, findings)
        self.frame.show(f"Layer {layer.index}", "s go to node")
        self._draw(keep=same)

    def on_resize(self) -> None:
        """Wrap for the new width."""
        self._draw(keep=True)

    def _draw(self, keep: bool) -> None:
        if self._shown is None:
            return
        rows = detail_lines(*self._shown, max(self.size.width - 2, 20))
        keys = [key if key is not None else number for number, (_, key) in enumerate(rows)]
        self.set_lines(ListSource([line for line, _ in rows], keys), keep=keep)

    def activate(self) -> None:
        """Go to the node of the line, if it is one."""
        key = self.key_at_cursor()
        if isinstance(key, NodeLine):
            self.post_message(self.NodeChosen(key.place))


def detail_lines(
    layer: EngineLayer,
    nodes: LayerNodes | None,
    findings: Sequence[PlanFinding],
    width: int,
) -> list[tuple[Line, NodeLine | None]]:
    """Return lines about a layer, the most telling first, and which node each is of."""
    kind = visible(layer.type) or "type not in the file"
    figures = _figures(layer)
    style = layer_style(layer.kind)
    lines: list[Line] = [
        [(part, "strong")] for part in wrap(visible(layer.name) or "(no name)", width)[:3]
    ]
    first: Line = [(kind, style)]
    if layer.subtype and layer.subtype != layer.type:
        first.append((f" {visible(layer.subtype)}", "dim"))
    precision = precision_text(layer)
    if precision:
        first.append((f"  {precision}", precision_style(layer.precision)))
    lines += [[*first, (f"  {figures}" if figures else "", "number")]]
    for finding in findings:
        lines += _finding_lines(finding, width)
    lines += _tensors("in", layer.inputs, width) + _tensors("out", layer.outputs, width)
    if layer.weights_bytes:
        estimated = ", estimated from shapes" if layer.weights_from == "shapes" else ""
        lines.append([("weights ", "dim"), (f"{fmt.size(layer.weights_bytes)}{estimated}", "")])
    elif layer.known_weights is None:
        lines.append([("weights ", "dim"), ("not in the file", "dim")])
    tactic = " ".join(visible(part) for part in (layer.tactic, layer.tactic_value) if part)
    if tactic:
        lines.append([("tactic  ", "dim"), (clip(tactic, width - 8, keep="middle"), "")])
    if layer.origin:
        lines.append([("origin  ", "dim"), (visible(layer.origin), "")])
    rows: list[tuple[Line, NodeLine | None]] = [(line, None) for line in lines]
    rows += _node_lines(nodes, width)
    rows += [(line, None) for line in _attribute_lines(layer, width)]
    return rows


def _figures(layer: EngineLayer) -> str:
    if layer.time_ms is None:
        return ""
    return f"{fmt.milliseconds(layer.time_ms)} ms  {fmt.percent(layer.percent)} %"


def _finding_lines(finding: PlanFinding, width: int) -> list[Line]:
    style = _LEVEL_STYLES.get(finding.level, "info")
    lines: list[Line] = []
    for number, part in enumerate(wrap(finding.hazard, width - 2)):
        mark = f"{level_glyph(finding.level)} " if number == 0 else "  "
        lines.append([(mark, style), (part, style)])
    if finding.mitigation:
        lines += [[("  ", ""), (part, "")] for part in wrap(finding.mitigation, width - 2)]
    if finding.gain is not None:
        text = wrap(gain_text(finding.gain), width - 2)
        lines += [[("  ", ""), (part, "info")] for part in text]
    return lines


def _tensors(title: str, tensors: Sequence[EngineTensor], width: int) -> list[Line]:
    shown = glyphs.current()
    arrow = shown.left if title == "in" else shown.right
    lines: list[Line] = []
    for number, tensor in enumerate(tensors[:_MOST_TENSORS]):
        head = f"{title:<4}" if number == 0 else "    "
        kind = visible(tensor_type(tensor)) or "type unknown"
        size = f"  {fmt.size(tensor.bytes)}" if tensor.bytes is not None else ""
        room = max(width - len(head) - 2 - len(kind) - len(size) - 2, 8)
        name = clip(visible(tensor.name), room, keep="middle")
        lines.append([
            (head, "dim"), (f"{arrow} ", "io"), (f"{name}  ", "link"), (kind, ""), (size, "dim"),
        ])  # fmt: skip
        about = ", ".join(visible(part) for part in (tensor.format, tensor.location) if part)
        if about and about.lower() != tensor.dtype:
            lines.append([(" " * 6, ""), (clip(about, width - 6), "dim")])
    if len(tensors) > _MOST_TENSORS:
        lines.append([(f"    {len(tensors) - _MOST_TENSORS:,} more", "dim")])
    return lines


def _node_lines(nodes: LayerNodes | None, width: int) -> list[tuple[Line, NodeLine | None]]:
    if nodes is None or not nodes.nodes:
        return [([("ONNX    ", "dim"), ("no ONNX node is known for this layer", "dim")], None)]
    count = fmt.plural(len(nodes.nodes), "node")
    cut = ", the file cut the list" if nodes.truncated else ""
    how = f"{count}, {nodes.confidence}, by {_HOW.get(nodes.how, nodes.how)}{cut}"
    rows: list[tuple[Line, NodeLine | None]] = [([("ONNX    ", "dim"), (how, "dim")], None)]
    for place, node in enumerate(nodes.nodes[:_MOST_NODES]):
        kind = visible(node.op_type)
        label = clip(visible(node.label), max(width - len(kind) - 6, 8), keep="end")
        line: Line = [("  ", ""), (label, "link"), (f"  {kind}" if kind else "", "dim")]
        rows.append((line, NodeLine(place)))
    if len(nodes.nodes) > _MOST_NODES:
        rows.append(([(f"  {len(nodes.nodes) - _MOST_NODES:,} more", "dim")], None))
    return rows


_HOW = {
    "metadata": "the layer's metadata",
    "name": "its name",
    "range": "the range in its name",
    "join": "the names in its name",
}


def _attribute_lines(layer: EngineLayer, width: int) -> list[Line]:
    shown = [(key, value) for key, value in layer.attributes.items() if key not in _QUIET]
    if layer.stream is not None:
        shown.append(("stream", layer.stream))
    return [
        [
            (f"{clip(visible(key), 26)} ", "dim"),
            (clip(visible(str(value)), max(width - 28, 8), keep="middle"), ""),
        ]
        for key, value in shown
    ]


_NAME_SHARE = 0.35
_NAME_FROM = 96
"""Rows of so many cells name the layer, shorter ones where the finding leaves room."""
_LEAST_NAME, _NAME_STEP = 14, 8


def layers_text(finding: PlanFinding, names: Mapping[int, str]) -> str:
    """Return the layers of a finding: ``Conv_0 and 1 more``; empty if it is about none."""
    concerned = [index for index in finding.concerned if index in names]
    if not concerned:
        return ""
    more = f" and {len(concerned) - 1:,} more" if len(concerned) > 1 else ""
    return names[concerned[0]] + more


class FindingRows:
    """Findings as the lines of a view."""

    def __init__(self, findings: Sequence[PlanFinding], names: Mapping[int, str]) -> None:
        self.findings = findings
        self._names = names
        self._has_percent = any(finding.percent is not None for finding in findings)
        self._listed = ListedNames(map(self._name, findings), _NAME_STEP)

    def __len__(self) -> int:
        return len(self.findings)

    def key(self, index: int) -> Hashable:
        finding = self.findings[index]
        return finding.rule, finding.layer, finding.layers, finding.hazard

    def _name(self, finding: PlanFinding) -> str:
        return layers_text(finding, self._names) or "the whole engine"

    def text(self, index: int) -> str:
        finding = self.findings[index]
        parts = (finding.rule, self._name(finding), finding.hazard, finding.mitigation)
        return "\t".join(visible(part) for part in parts)

    def line(self, index: int, width: int) -> Sequence[Piece]:
        finding = self.findings[index]
        style = _LEVEL_STYLES.get(finding.level, "info")
        pieces: list[Piece] = [(f"{level_glyph(finding.level)} ", style)]
        if self._has_percent:
            share = "" if finding.percent is None else f"{fmt.percent(finding.percent)} %"
            pieces.append((f"{share:>7}  ", "number"))
        room = width - sum(cell_width(text) for text, _ in pieces)
        named = int(room * _NAME_SHARE) if width >= _NAME_FROM else 0
        whole = visible(finding.hazard)
        if not named and room - cell_width(whole) >= _LEAST_NAME:
            named = room - cell_width(whole) - 2  # what a short finding leaves
        hazard = clip(whole, room - named - (2 if named else 0))
        pieces.append((hazard, ""))
        if named:
            gap = room - named - cell_width(hazard)
            pieces.append((" " * gap, ""))
            pieces.append((self._listed.cut(self._name(finding), named), "link"))
        return pieces


class PlanFindings(LineView):
    """The findings of an engine."""

    HELP = (
        "Findings that may cost time in this engine, the costliest first. The details say what "
        "to do. {list.activate} goes to the layer; if the finding names a rewrite rule, "
        "{plan.improve} previews it on the model."
    )

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, empty="Nothing was found that costs time.", classes="frame")
        self.findings: Sequence[PlanFinding] = ()

    def show(self, findings: Sequence[PlanFinding], names: Mapping[int, str]) -> None:
        """Show findings; the names of layers are by their own index."""
        self.findings = findings
        counts = [
            fmt.plural(sum(finding.level == level for finding in findings), word)
            for level, word in (("warning", "warning"), ("note", "note"))
            if any(finding.level == level for finding in findings)
        ]
        title = f"Findings · {', '.join(counts)}" if counts else "Findings"
        self.frame.show(title, "{list.activate} layer" if findings else "")
        self.set_lines(FindingRows(findings, names))

    def finding_at_cursor(self) -> PlanFinding | None:
        """Return the finding under the cursor."""
        return self.findings[self.cursor] if self.cursor < len(self.findings) else None


_SHOWN = tuple(view for view in VIEWS if view != "layers")


def special_tables(plan: EnginePlan) -> list[Table[Any]]:
    """Return the tables of a plan that have rows, what takes longest first."""
    tables = []
    for view in _SHOWN:
        table = make_table(plan, view)
        if view == "memory":
            table = table.sorted_by("footprint")
        elif "time_ms" in table.keys:
            table = table.sorted_by("time_ms")
        if table.rows:
            tables.append(table.telling())
    return tables


class SpecialView(TableView):
    """The rows of the table that is chosen."""

    FITTED = True
    HELP = (
        "Layers of one kind with their specific figures. {plan.table} shows the next kind, "
        "{table.sort} sorts by the next column, {list.activate} shows the layer in the layer "
        "table."
    )


class SpecialNames(Rows):
    """The names of the tables, the chosen one marked."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: Sequence[Table[Any]] = ()
        self.at = 0

    def content(self, width: int) -> list[Line]:
        """Return the row; it begins where the chosen name can be seen."""
        names = [f" {table.title.lower()} " for table in self.tables]
        first = 0
        while sum(map(len, names[first : self.at + 1])) > width and first < self.at:
            first += 1
        shown = enumerate(names[first:], first)
        return [[(name, "current" if at == self.at else "dim") for at, name in shown]]


class SpecialPane(Framed, Vertical):
    """One special table, and the names of all."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, classes="frame")
        self.tables: Sequence[Table[Any]] = ()
        self.at = 0
        self._rows: Mapping[int, int] = {}

    def compose(self) -> ComposeResult:
        yield SpecialNames()
        yield SpecialView(empty="The file does not say.", id="special-table")

    @property
    def view(self) -> SpecialView:
        """The table."""
        return self.query_one(SpecialView)

    def set_tables(self, plan: EnginePlan, tables: Sequence[Table[Any]]) -> None:
        """Show the first of the tables of a plan, or the one that was shown before."""
        before = self.view.table.name
        self.tables = tables
        self._rows = {layer.index: place for place, layer in enumerate(plan.layers)}
        self.show_table(next((at for at, table in enumerate(tables) if table.name == before), 0))

    def next_table(self) -> None:
        """Show the next table."""
        if self.tables:
            self.show_table((self.at + 1) % len(self.tables))

    def show_table(self, at: int) -> None:
        """Show a table by its place."""
        self.at = at
        if not self.tables:
            self.frame.show("Special tables")
            return
        table = self.tables[at]
        is_same = table.name == self.view.table.name
        if not is_same:
            self.view.sort_column = None
        self.view.set_table(table, keep=is_same)
        names = self.query_one(SpecialNames)
        names.tables, names.at = self.tables, at
        names.refresh()
        self.frame.show(
            f"{table.title} · {fmt.count(len(table.rows))}",
            "{plan.table} next table  {table.sort} sort",
        )

    def shown_table(self) -> Table[Any] | None:
        """Return the table that is seen, sorted as it is."""
        return replace(self.view.table, rows=self.view.shown_rows()) if self.tables else None

    def layer_at_cursor(self) -> int | None:
        """Return the layer of the row under the cursor, by its place among the plan's."""
        row = self.view.row_at_cursor()
        if row is None or not self.tables:
            return None
        of = layers_of_row(self.tables[self.at].rows[row])
        return self._rows.get(of[0]) if of else None

    @on(MarksChanged)
    def _marked(self, event: MarksChanged) -> None:
        event.stop()


class PlanGraphModel(ViewedGraph):
    """The graph of an engine; vertices stand for its layers and bindings."""

    noun = "layer"
    memory_name = "memory"

    def __init__(self, plan: EnginePlan, drawn: PlanGraph) -> None:
        super().__init__(drawn.graph, drawn.subjects)
        self.plan = plan
        self.drawn = drawn
        self._rows = {layer.index: row for row, layer in enumerate(plan.layers)}
        if not drawn.graph.nets:
            self.set_view(GraphView.RAIL)

    def content(self, title: str) -> Content:
        return plan_content(self.plan, drawn=self.drawn)

    def is_same(self, other: ViewedGraph) -> bool:
        """Return whether another graph is of the same engine."""
        return isinstance(other, PlanGraphModel) and other.plan is self.plan

    def holds(self, subject: Hashable) -> bool:
        """Return whether a layer belongs to the engine."""
        return isinstance(subject, LayerVertex) and subject.row < len(self.plan.layers)

    def node_at(self, vertex: int) -> Hashable | None:
        """Return the layer of a vertex; None for a binding."""
        subject = self.drawn.subjects[vertex]
        return subject if isinstance(subject, LayerVertex) else None

    def vertex(self, subject: Hashable) -> int | None:
        """Return the vertex of a layer, or of a binding by its name."""
        if isinstance(subject, LayerVertex):
            return self.drawn.vertex(subject.row)
        names = self.drawn.subjects
        return names.index(subject) if isinstance(subject, str) and subject in names else None

    def style(self, vertex: int) -> str:
        """Return the style class of a vertex: its kind of work."""
        if self.graph.kinds[vertex] != Kind.NODE:
            return "io"
        return f"op-{colour_class_of(self.graph.classes[vertex], self.graph.labels[vertex])}"

    def type_of(self, vertex: int) -> str:
        """Return the type of what a vertex makes first; empty when it is not known."""
        nets = self.graph.outputs[vertex] or self.graph.inputs[vertex][:1]
        return visible(self.graph.nets[nets[0]].label) if nets else ""

    def badge(self, vertex: int) -> Piece:
        """Return the precision of a layer."""
        precision = self.precision(vertex)
        return ("", "") if precision is None else (precision[0][:4], precision[1])

    def precision(self, vertex: int) -> Piece | None:
        """Return the precision that a layer takes; None when it is not known."""
        subject = self.drawn.subjects[vertex]
        if not isinstance(subject, LayerVertex):
            return None
        precision = self.plan.layers[subject.row].precision
        return (visible(precision), precision_style(precision)) if precision else None

    def levels(self, findings: Iterable[PlanFinding]) -> Iterable[tuple[str, int]]:
        """Yield (level, vertex) of the findings of layers."""
        for finding in findings:
            row = None if finding.layer is None else self._rows.get(finding.layer)
            if row is not None:
                yield finding.level, self.drawn.vertex(row)

    def row_times(self, times: Mapping[LayerVertex, float]) -> list[float]:
        """Return milliseconds by row, of times by layer."""
        rows = self.overview.rails.rows
        own = [0.0] * len(rows)
        for layer, time in times.items():
            own[rows[self.drawn.vertex(layer.row)]] = time
        return own

    def memory(self) -> tuple[Sequence[float], Sequence[float]] | None:
        """Return the bytes that each layer touches: weights, inputs and outputs."""
        rows = self.overview.rails.rows
        own = [0.0] * len(rows)
        for row, layer in enumerate(self.plan.layers):
            own[rows[self.drawn.vertex(row)]] = float(layer.footprint or 0)
        return (own, own) if any(own) else None


class PlanGraphPane(GraphPane):
    """The pane; what the cursor is on goes out as :class:`PlanGraphPane.LayerReached`."""

    @dataclass
    class LayerReached(Message):
        """The cursor is on a layer."""

        row: int

    @dataclass
    class LayerOpened(Message):
        """Enter on the box of a layer."""

        row: int

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave out what changes a model's metadata: boxes of an engine stay where they are."""
        if action in ("move_box", "arrange"):
            return False
        return super().check_action(action, parameters)

    @property
    def row_at_cursor(self) -> int | None:
        """The layer under the cursor, by its place among the plan's."""
        subject = self.subject_at_cursor
        return subject.row if isinstance(subject, LayerVertex) else None

    def say_marked(self, marks: Iterable[Hashable]) -> None:
        """Keep the marks to the graph."""

    def say_selected(self, subject: Hashable | None) -> None:
        """Post that the cursor has reached a layer."""
        if isinstance(subject, LayerVertex):
            self.post_message(self.LayerReached(subject.row))

    def say_opened(self) -> None:
        """Post that the layer under the cursor was opened."""
        row = self.row_at_cursor
        if row is not None:
            self.post_message(self.LayerOpened(row))
