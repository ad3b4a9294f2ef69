"""An engine as one HTML page that can be mailed, of the same parts as a report's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dld_tui.core import fmt
from dld_tui.core.files.writer import write_text
from dld_tui.core.graph.pictures import style
from dld_tui.core.graph.pictures.scene import make_scene
from dld_tui.core.graph.pictures.svg import svg_of
from dld_tui.core.plan.groups import PlanGroup, groups
from dld_tui.core.plan.html_charts import (
    convolution_chart,
    memory_chart,
    precision_chart,
    roofline_chart,
    scatter_chart,
)
from dld_tui.core.plan.lint_groups import FindingGroup, grouped
from dld_tui.core.plan.lint_model import LEVELS, PlanFinding
from dld_tui.core.plan.mapping import LayerNodes
from dld_tui.core.plan.metadata_files import device_name
from dld_tui.core.plan.missing import missing
from dld_tui.core.plan.model import EnginePlan
from dld_tui.core.plan.picture import plan_content
from dld_tui.core.plan.records import layer_records
from dld_tui.core.plan.roofline import peaks_of, unknown_device
from dld_tui.core.plan.summary import activations_text, summary_of, weights_text
from dld_tui.core.plan.tables import VIEWS, make_table
from dld_tui.core.report.html.charts import Bar, bars, histogram
from dld_tui.core.report.html.page import Section, Tile, page, paragraphs, tiles
from dld_tui.core.report.layer_table import layer_table
from dld_tui.core.tables.as_html import html_of
from dld_tui.core.tables.table import Column, Table
from dld_tui.core.tables.units import PERCENT

_TOP = 20
_MOST_BOXES = 600
"""Layers of the largest engine whose graph is drawn in the page."""
_GRAPH = "engine-graph"
_RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
_FINDING_LAYERS = 8


def write_page(
    plan: EnginePlan,
    findings: Sequence[PlanFinding],
    mapping: Mapping[int, LayerNodes],
    path: Path,
    *,
    overwrite: bool = True,
) -> list[str]:
    """Write the page of an engine in one step and return remarks on the writing.

    Raises:
        InputError: The file cannot be written, or is there and `overwrite` is False.
    """
    return list(write_text(path, plan_page(plan, findings, mapping), overwrite=overwrite))


def plan_page(
    plan: EnginePlan, findings: Sequence[PlanFinding], mapping: Mapping[int, LayerNodes]
) -> str:
    """Return the page of an engine. The same engine gives the same bytes."""
    about = [(text, "warning") for text in plan.notes] + [(text, "info") for text in missing(plan)]
    if peaks_of(plan.device) is None and plan.device:
        about.append((unknown_device(plan), "info"))
    drawing, rules = _graph(plan)
    timing = plan.timing.series if plan.timing is not None else {}
    sections = [
        Section("about", "What the files do not say", paragraphs(about)),
        Section("types", "By type", _bars(groups(plan, "type"))),
        Section("precisions", "By precision", _bars(groups(plan, "precision"))),
        Section("precision-types", "Precision by type", precision_chart(plan)),
        Section("top", f"The {_TOP} costliest layers", _top(plan)),
        Section("inferences", "Times of the inferences, GPU compute",
                histogram(timing.get("compute", ()))),
        Section("roofline", "Roofline", roofline_chart(plan)),
        Section("scatter", "Time against bytes moved", scatter_chart(plan)),
        Section("memory-chart", "The largest layers in memory", memory_chart(plan)),
        Section("convolution-chart", _convolution_title(plan), convolution_chart(plan)),
        Section("findings", f"Findings ({len(findings):,})", _findings(plan, findings)),
        Section("layers", f"Layers ({len(plan.layers):,})", _layers(plan, mapping)),
        *(_special(make_table(plan, view)) for view in VIEWS if view != "layers"),
        Section("graph", "Graph", drawing),
    ]  # fmt: skip
    subtitle = [device_name(plan.device), Path(plan.path).name]
    return page(plan.title or "Engine", subtitle, _tiles(plan), sections, rules)


def _convolution_title(plan: EnginePlan) -> str:
    roof = "" if peaks_of(plan.device) is None else ", and how near to their roof they come"
    return f"The slowest convolutions{roof}"


def _tiles(plan: EnginePlan) -> str:
    summary = summary_of(plan)
    found = []
    if plan.timing is not None and plan.timing.compute is not None:
        found.append(Tile("GPU compute, median, ms", fmt.milliseconds(plan.timing.compute.median)))
    if plan.timing is not None and plan.timing.throughput:
        found.append(Tile("inferences/s", f"{plan.timing.throughput:,.1f}"))
    if plan.total_ms is not None:
        found.append(Tile("sum of layers, ms", fmt.milliseconds(plan.total_ms)))
    found.append(Tile("layers", fmt.count(summary.layers)))
    if not plan.names_only:
        found.append(Tile("weights", weights_text(summary)))
        found.append(Tile("activations", activations_text(summary)))
    return tiles(found)


def _findings(plan: EnginePlan, findings: Sequence[PlanFinding]) -> str:
    columns: tuple[Column[FindingGroup], ...] = (
        Column("level", "", lambda group: "▲" if group.level == LEVELS[0] else "·", width=2),
        Column("percent", "% of time", lambda group: group.percent, PERCENT),
        Column("rule", "rule", lambda group: group.rule, width=20),
        Column("what", "what", lambda group: "; ".join(group.hazards)),
        Column("do", "what to do", lambda group: ". ".join(group.mitigations)),
        Column("layers", "layers", _named),
    )
    return html_of("finding-table", Table(columns, [*grouped(plan, findings)]))


def _named(group: FindingGroup) -> str:
    """Return the layers of a finding, those that take longest by name."""
    if not group.layers:
        return "the whole engine"
    shown = [
        f"{layer.name} ({fmt.percent(layer.percent)} %)" if layer.percent is not None
        else layer.name
        for layer in group.layers[:_FINDING_LAYERS]
    ]  # fmt: skip
    more = len(group.layers) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


def _bars(found: Iterable[PlanGroup]) -> str:
    return bars([
        Bar(
            f"{group.key} ({group.count:,})",
            (group.time_ms,),
            (f"{fmt.milliseconds(group.time_ms)} ms, {fmt.percent(group.percent)} %",),
        )
        for group in list(found)[:_TOP]
    ])  # fmt: skip


def _top(plan: EnginePlan) -> str:
    timed = sorted(plan.layers, key=lambda layer: -(layer.time_ms or 0.0))[:_TOP]
    return bars([
        Bar(
            layer.name,
            (layer.time_ms,),
            (f"{fmt.milliseconds(layer.time_ms)} ms, {fmt.percent(layer.percent)} %",),
        )
        for layer in timed
    ])  # fmt: skip


def _layers(plan: EnginePlan, mapping: Mapping[int, LayerNodes]) -> str:
    return html_of("layer-table", layer_table(layer_records(plan, mapping), "engine html"))


def _special(found: Table[Any]) -> Section:
    shown = found.telling()
    columns = tuple(column for column in shown.columns if column.key != "tactic")
    body = html_of(f"{found.name}-table", replace(shown, columns=columns))
    return Section(found.name, f"{found.title} ({len(found):,})", body)


def _graph(plan: EnginePlan) -> tuple[str, str]:
    """Return the drawing, and its rules, which hold for it alone."""
    if plan.names_only or not plan.layers or len(plan.layers) > _MOST_BOXES:
        return "", ""
    content = plan_content(plan, "precision")
    content.title = ""
    drawn = svg_of(make_scene(content), style.Look(style.SCHEMES["light"]))
    before, _, rest = drawn.partition("<style>")
    own, _, after = rest.partition("</style>")
    rules = [
        ",".join(f"#{_GRAPH} {part.strip()}" for part in selectors.split(",")) + f"{{{body}}}"
        for selectors, body in _RULE.findall(own)
    ]
    rules.append(f"#{_GRAPH} svg{{width:auto;max-width:none}}")
    return f'<div class="wide" id="{_GRAPH}">{before}{after}</div>', "".join(rules)
