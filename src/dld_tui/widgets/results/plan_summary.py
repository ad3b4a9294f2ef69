"""The summary of an engine plan and its charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.notes import Note, NoteKind, plain_notes
from dld_tui.core.report.groups import group_layers
from dld_tui.core.report.layer_table import short_precision
from dld_tui.core.report.records import Group, Layer
from dld_tui.core.report.roofline import Limiter, limits_text
from dld_tui.core.statistics import share_percent, trtexec_summary
from dld_tui.core.tensorrt.plan.engine_plan import EnginePlan, missing
from dld_tui.core.tensorrt.plan.file_set import device_name
from dld_tui.core.tensorrt.plan.layer_records import shown_names
from dld_tui.core.tensorrt.plan.layer_work import (
    peaks_of,
    placement,
    points_under_roofs,
    unknown_device,
)
from dld_tui.core.tensorrt.plan.lint import PlanFinding
from dld_tui.core.tensorrt.plan.summary import is_slowed, left_out, summary_of
from dld_tui.core.text import cell_width, clip, fit, visible
from dld_tui.core.text.names import ListedNames, cut_names
from dld_tui.core.types import precision_style
from dld_tui.widgets.charts.bars import Block, Line, bar, bar_ramp, block, fitted, flow, width_of
from dld_tui.widgets.charts.plots import Plot
from dld_tui.widgets.charts.report_charts import Chart, distribution_plot, roofline_plot
from dld_tui.widgets.explorer.findings import level_glyph
from dld_tui.widgets.lists.line_view import LaidOutView
from dld_tui.widgets.lists.styled import layer_style
from dld_tui.widgets.results.report_views import (
    ChartPane,
    advice_lines,
    distribution_block,
    figure_block,
)
from dld_tui.widgets.results.summary import slowest_lines
from dld_tui.widgets.shell import glyphs

_WIDE = 150
_TOP = 5
_TALL = 3
"""Rows of figures in a column, on a narrow screen."""
_GAP = 3
_BAR, _SHORT_BAR = 12, 5
_Figures: TypeAlias = "list[tuple[str, float | None]]"
NAME_STEP = 8
"""Lists cut the names of layers to a multiple of so many cells."""
LEVEL_STYLES = {"warning": "warn", "note": "info"}


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
    whole = sum(_amount(group, timed) for group in groups)
    names = [_name(by, group) for group in groups[:_TOP]]
    wide = min(max(map(cell_width, names), default=4), 22)
    lines: list[Line] = []
    for name, group in zip(cut_names(names, wide), groups[:_TOP], strict=True):
        share = share_percent(_amount(group, timed), whole) or 0.0
        style = precision_style(group.key) if by == "precision" else layer_style(group.key)
        value = f"{fmt.milliseconds(group.time_ms)} ms" if timed else ""
        lines.append([
            (fit(name, wide) + " ", style),
            (bar(share / 100, cells, bar_ramp()), style),
            (f" {fmt.percent(share):>5} %", ""),
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
    listed = ListedNames(shown_first, NAME_STEP)
    for finding, name in zip(findings[:3], shown_first, strict=True):
        share = "" if finding.percent is None else f"{fmt.percent(finding.percent)} % "
        style = LEVEL_STYLES.get(finding.level, "info")
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
                    [layer.time_ms for layer in data.layers if layer.time_ms is not None],
                    data.width,
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
    if limits := limits_text(known, plan.total_ms or 0.0):
        lines.insert(2, [(clip(f"of the time {limits}", width), "")])
    return [*lines, *rows]


def layers_text(finding: PlanFinding, names: Mapping[int, str]) -> str:
    """Return the layers of a finding: ``Conv_0 and 1 more``; empty if it is about none."""
    concerned = [index for index in finding.concerned if index in names]
    return fmt.listed(concerned, 1, names.__getitem__)
