"""The page of an engine of TensorRT, from its files alone.

Report card, layers, findings, graph, charts and special tables, each on a key. The cursors of
table, graph and findings go together; the details below say all that is known of the layer.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from textual import on

from dld_tui.commands.command import table
from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import DldError
from dld_tui.core.files.writer import write_bytes
from dld_tui.core.llm.folder import open_document
from dld_tui.core.model.document import Document, Node
from dld_tui.core.model.graph.pictures import style
from dld_tui.core.model.graph.pictures.drawing import Picture, kind_of, picture_of
from dld_tui.core.process.interpreter import collector_paused, freeze
from dld_tui.core.report.groups import UNKNOWN, group_layers
from dld_tui.core.report.layer_table import short_precision
from dld_tui.core.report.records import Group, Layer, NodeLink
from dld_tui.core.report.reports_of_model import times_by_node
from dld_tui.core.tables.rendering import csv_of
from dld_tui.core.tables.table import Table
from dld_tui.core.tensorrt.plan.engine_plan import EnginePlan
from dld_tui.core.tensorrt.plan.graph import LayerVertex, PlanGraph, drawn_plan
from dld_tui.core.tensorrt.plan.layer_records import layer_records, shown_names
from dld_tui.core.tensorrt.plan.lint import PlanFinding, findings
from dld_tui.core.tensorrt.plan.mapping import LayerNodes, map_plan, node_paths
from dld_tui.core.tensorrt.plan.reader import open_plan
from dld_tui.core.text import visible
from dld_tui.core.types import CancelCheck, ProgressCallback, precision_style
from dld_tui.screens.model.graph_picture import shown_in
from dld_tui.screens.results.pages import ask_where, in_folder
from dld_tui.screens.results.results_page import Pane, ResultsPage
from dld_tui.widgets.dialogs.dialogs import MODELS, OpenPathDialog
from dld_tui.widgets.dialogs.search import PickDialog, PickItem
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.styled import layer_style
from dld_tui.widgets.results.layers import LayerPane
from dld_tui.widgets.results.plan import (
    PlanDetails,
    PlanFindings,
    SpecialPane,
    SpecialView,
    special_tables,
)
from dld_tui.widgets.results.plan_graph import PlanGraphModel, PlanGraphPane
from dld_tui.widgets.results.plan_summary import LoadedPlan, PlanCharts, PlanSummary
from dld_tui.widgets.shell.command_dispatch import hint, holding
from dld_tui.widgets.shell.page import host, offer_rules
from dld_tui.widgets.tasks import task

_Filter: TypeAlias = "tuple[str, tuple[str, str] | None]"
"""(text of the filter, (grouping, key) that the layers belong to)."""
_MOST_TACTICS = 200


def narrowings(layers: Sequence[Layer]) -> tuple[list[PickItem], dict[str, _Filter]]:
    """Return what to choose from, and the filter of each by its key."""
    items: list[PickItem] = []
    filters: dict[str, _Filter] = {}

    def add(kind: str, shown: str, style: str, count: int, chosen: _Filter) -> None:
        key = f"{kind} {len(items)}"
        row = [
            (f"{kind:<10} ", "dim"), (shown, style), (f"  {fmt.plural(count, 'layer')}", "dim"),
        ]  # fmt: skip
        items.append(PickItem(key, row, f"{kind} {shown}"))
        filters[key] = chosen

    wrong = sum(bool(layer.engine and layer.engine.findings) for layer in layers)
    if wrong:
        add("finding", "any", "warn", wrong, ("findings>0", None))
    for group in group_layers(layers, "type"):
        shown, style = visible(group.key), layer_style(group.key)
        add("type", shown, style, group.count, ("", ("type", group.key)))
    for group in group_layers(layers, "precision"):
        if group.key != UNKNOWN:
            shown, style = short_precision(group.key), precision_style(group.key)
            add("precision", shown, style, group.count, ("", ("precision", group.key)))
    tactics = Counter(
        layer.engine.tactic for layer in layers if layer.engine and layer.engine.tactic
    )
    for tactic, count in tactics.most_common(_MOST_TACTICS):
        add("tactic", visible(tactic), "", count, ("", ("tactic", tactic)))
    return items, filters


_MODEL_SUFFIXES = (".onnx", "")


@dataclass(frozen=True)
class Loaded:
    """An engine with what takes time to find out."""

    plan: EnginePlan
    layers: Sequence[Layer]
    """Records of ``plan.layers``."""
    findings: Sequence[PlanFinding]
    """The worst first, then the costliest."""
    mapping: Mapping[int, LayerNodes]
    """ONNX nodes by the index of a layer."""
    drawn: PlanGraph
    graph: PlanGraphModel
    types: Sequence[Group]
    tables: Sequence[Table[Any]]
    """Those of one kind of layer each."""
    model: Path | None
    """The ONNX model that the nodes were looked up in."""
    model_problem: str
    """Why the nodes are but names; empty when the model was read."""


def load(path: Path, model: Path | None = None) -> Loaded:
    """Open an engine plan.

    Args:
        path: Layer information, or an archive with it.
        model: The ONNX model; by default the one that the plan names, or that lies beside it.

    Raises:
        InputError: The file cannot be read or is something else.
    """
    with collector_paused():
        plan = open_plan(path)
        model_path = model or find_model(plan)
        mapping, problem = _mapped(plan, model_path)
        drawn = drawn_plan(plan, node_paths(mapping))
        graph = PlanGraphModel(plan, drawn)
        graph.prepare()
        wrong = findings(plan, mapping)
        layers = layer_records(plan, mapping, wrong)
        types = group_layers(layers, "type")
        tables = special_tables(plan)
        freeze()  # a walk over all layers would hold the screen, and find nothing
    known = model_path if not problem else None
    return Loaded(plan, layers, wrong, mapping, drawn, graph, types, tables, known, problem)


def find_model(plan: EnginePlan) -> Path | None:
    """Return the ONNX model that a plan names, or that lies beside it under its name."""
    folder = Path(plan.path).parent
    named = [Path(plan.model_path), folder / Path(plan.model_path).name] if plan.model_path else []
    stem = Path(plan.path).name
    while stem and not stem.endswith(".onnx"):
        shorter = stem.rpartition(".")[0]
        named += [folder / f"{shorter}{suffix}" for suffix in _MODEL_SUFFIXES if shorter]
        stem = shorter
    is_model = (path for path in named if path.name.endswith(".onnx") and os.path.isfile(path))
    return next(is_model, None)


def _mapped(plan: EnginePlan, path: Path | None) -> tuple[Mapping[int, LayerNodes], str]:
    """Return the nodes of the layers, and why they were not looked up in a model."""
    if path is None:
        return map_plan(plan), hint(
            "The ONNX model was not found, so nodes are only names; {plan.model} chooses it."
        )

    try:
        document = open_document(path)
    except DldError as error:
        return map_plan(plan), f"The ONNX model cannot be read, so nodes are only names: {error}"
    try:
        mapping = map_plan(plan, document)
    finally:
        document.close()
    return {index: _light(nodes) for index, nodes in mapping.items()}, ""


def _light(nodes: LayerNodes) -> LayerNodes:
    """Let go of the nodes themselves, which would keep the whole model in memory."""
    return replace(nodes, nodes=tuple(replace(node, node=None) for node in nodes.nodes))


_KEYS = (
    "{plan.filter} filter  {plan.narrow} by value  {table.sort} sort  {plan.group} group  "
    "{plan.csv} csv"
)


class PlanScreen(ResultsPage[Loaded]):
    """One engine."""

    SCOPE = "plan"
    COMMAND_TABLE = (
        *table(
            "plan",
            ("plan.filter", "layer_commands.filter", "slash", "plan", "filter",
             "Filter the layers as you type."),
            ("plan.narrow", "narrow", "f", "plan", "filter by",
             "Show only layers of one type or precision, or with a finding."),
            ("plan.group", "layer_commands.group", "b", "plan", "group",
             "Group the layers by type, precision, node, name scope, operator or tactic."),
            ("plan.node", "layer_commands.go_to_node", "s", "linked", "go to node",
             "Show the layer's ONNX node in the model."),
            ("plan.show", "show_other", "t", "layer", "graph",
             "Show the layer in the graph, or the layer of another pane in the table."),
            ("plan.details", "details", "i", "layer", "details", "Focus the details of the layer."),
            ("plan.improve", "improve", "Q", "ruled", "rewrite",
             "Preview the rewrite rules for this finding on the model."),
            ("plan.model", "choose_model", "a", "plan", "add model",
             "Choose the ONNX model, to map layers to its nodes."),
            ("plan.table", "next_table", "v", "plan", "next table",
             "Show the next chart or special table."),
            ("plan.unit", "charts.toggle_unit", "percent_sign", "plan", "ms or percent",
             "Switch the chart between milliseconds and percent."),
            ("plan.columns", "layer_commands.columns", "C", "plan", "columns",
             "Choose the columns of the layer table."),
            ("plan.compare", "compare_with", "c,equals_sign", "plan", "compare",
             "Compare this engine with another engine or a report."),
            ("plan.csv", "save_csv", "w", "plan", "save csv",
             "Write the shown table as a CSV file."),
            ("plan.export", "export", "W", "plan", "export",
             "Write the engine plan as one HTML page."),
            ("plan.picture", "save_picture", "", "plan", "save picture",
             "Write what the graph pane shows as SVG, PNG, JPEG or text."),
            ("plan.again", "again", "f5", "plan", "read again", "Read the files again."),
            ("plan.maximise", "maximise_pane", "m", "plan", "maximise",
             "Maximise or restore the pane."),
            footer="plan.filter plan.group plan.node plan.show plan.table plan.export",
        ),
        *table(
            "plan",
            ("plan.menu", "layer_commands.open_menu", "full_stop", "layer", "more",
             "Show the commands for the layer at the cursor, with their keys."),
            ("plan.pane.1", "pane 1", "1", "", "pane 1", "Focus the summary."),
            ("plan.pane.2", "pane 2", "2", "", "pane 2", "Focus the layers."),
            ("plan.pane.3", "pane 3", "3", "", "pane 3", "Focus the findings."),
            ("plan.pane.4", "pane 4", "4", "", "pane 4", "Focus the graph."),
            ("plan.pane.5", "pane 5", "5", "", "pane 5", "Focus the charts."),
            ("plan.pane.6", "pane 6", "6", "", "pane 6", "Focus the special tables."),
            ("plan.clear", "layer_commands.clear", "escape", "", "clear",
             "Clear marks, filter or group; stop reading."),
            palette=False, footer="plan.menu",
        ),
    )  # fmt: skip
    HELP = (
        "{plan.pane.1} to {plan.pane.6} focus the panes. The report card summarises the engine and "
        "its time. {list.activate} on a finding goes to its layer, {list.activate} on a layer goes "
        "to its ONNX node."
    )
    panes: Sequence[Pane] = (
        Pane("summary", partial(PlanSummary, id="summary"), stays=("large",)),
        Pane("layers", partial(LayerPane, engine=True, keys=_KEYS, id="layers"), "main",
             ("large",), "#layer-table"),
        Pane("findings", partial(PlanFindings, id="findings"), "side"),
        Pane("graph", partial(PlanGraphPane, id="graph"), "side"),
        Pane("charts", partial(PlanCharts, id="charts"), "side", focus="#type-chart"),
        Pane("tables", partial(SpecialPane, id="tables"), "side", focus="#special-table"),
        Pane("details", partial(PlanDetails, id="details"), "side",
             below=("layers", "findings", "graph", "tables")),
    )  # fmt: skip
    FIRST: ClassVar[tuple[str, str]] = ("summary", "layers")
    EXPORT: ClassVar[tuple[str, str]] = ("Export the engine as a page", "")
    _turn = "graph"
    path: Path
    row: int | None = None
    """The layer that the details are of, by its place among the plan's."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.model: Path | None = None
        """The model that the user chose."""

    def load(self, progress: ProgressCallback, cancelled: CancelCheck) -> Loaded:
        """Read the files, and look the nodes up in the model."""
        return load(self.path, self.model)

    def action_again(self) -> None:
        self.read()

    def fill(self, loaded: Loaded) -> None:
        """Show the engine; the cursors stay where layers were shown before."""
        plan, row = loaded.plan, self.row
        self.row = None  # the details know more of it now
        self.tab_status = "TensorRT engine"
        mapped = sum(bool(layer.nodes) for layer in loaded.layers)
        self.query_one(PlanSummary).set_plan(
            LoadedPlan(plan, loaded.layers, loaded.findings, mapped, loaded.model_problem)
        )
        is_first = not self.layer_pane.all_layers
        self.layer_pane.set_layers(loaded.layers)
        if is_first and plan.total_ms is None:
            self.layer_pane.table.sort_by(None)
        names = shown_names(plan, loaded.layers)
        self.query_one(PlanFindings).show(loaded.findings, names)
        self.query_one(PlanCharts).set_plan(plan, loaded.layers, loaded.types)
        self.query_one(SpecialPane).set_tables(plan, loaded.tables)
        self._show_graph(loaded)
        self.show_layer(row if row is not None else self._row_of("layers"))

    def _show_graph(self, loaded: Loaded) -> None:
        times = {
            LayerVertex(row): layer.time_ms
            for row, layer in enumerate(loaded.layers)
            if layer.time_ms is not None
        }
        self.graph.has_precisions = not loaded.plan.names_only
        self.graph.colours.ask_times = lambda: (times, "the profile")
        self.graph.set_findings(loaded.findings)
        self.graph.show(loaded.graph)

    @property
    def graph(self) -> PlanGraphPane:
        """The graph."""
        return self.query_one(PlanGraphPane)

    def focus_pane(self) -> None:
        """Put the focus into the chosen pane; of the graph, into the view that is seen."""
        if self.pane == "graph":
            self.graph.focus_view()
        else:
            super().focus_pane()

    def show_pane(self, name: str) -> None:
        """Show a pane and put the focus into it; the details are of the layer at its cursor."""
        super().show_pane(name)
        if name in ("layers", "findings", "tables"):
            self.show_layer(self._row_of(name))

    def layer_at_cursor(self) -> Layer | None:
        """Return the layer that the details are of."""
        loaded, row = self.loaded, self.row
        return loaded.layers[row] if loaded is not None and row is not None else None

    def conditions(self) -> set[str]:
        layer = self.layer_at_cursor()
        return super().conditions() | holding(
            plan=self.loaded is not None,
            layer=layer is not None,
            linked=layer is not None and bool(layer.nodes),
            ruled=self.pane == "findings" and bool(self._rules_at_cursor()),
        )

    def _rules_at_cursor(self) -> Sequence[str]:
        """Return the rules of ``dld rewrite`` that the finding at the cursor names."""
        finding = self.query_one(PlanFindings).finding_at_cursor()
        return finding.rules if finding is not None else ()

    def show_layer(self, row: int | None) -> None:
        """Show a layer in the details, and put the other cursors on it."""
        loaded = self.loaded
        if loaded is None or row is None or not 0 <= row < len(loaded.layers):
            return
        if row != self.row:
            self.row = row
            layer = loaded.plan.layers[row]
            wrong = [finding for finding in loaded.findings if layer.index in finding.concerned]
            self.query_one(PlanDetails).show(layer, loaded.mapping.get(layer.index), wrong)
            if not self.graph.has_focus_within:
                self.graph.reveal(LayerVertex(row))
            if self.pane not in ("layers",) and self.layer_pane.layer_at_cursor() is not None:
                self.layer_pane.go_to(row)
        self.conditions_changed()

    def _row_of(self, pane: str) -> int | None:
        """Return the layer at the cursor of a pane, by its place among the plan's."""
        if pane == "graph":
            return self.graph.row_at_cursor
        if pane == "findings":
            return self.row_of_finding()
        if pane == "tables":
            return self.query_one(SpecialPane).layer_at_cursor()
        layer = self.layer_pane.layer_at_cursor()
        return None if layer is None else layer.index

    # Messages may be late: the pane with the focus leads, and its current cursor counts.

    @on(LayerPane.LayerMoved)
    def _table_moved(self) -> None:
        if self.pane in ("layers", "summary", "charts"):
            self.show_layer(self._row_of("layers"))

    @on(PlanGraphPane.LayerReached)
    def _graph_moved(self) -> None:
        if self.pane == "graph":
            self.show_layer(self._row_of("graph"))

    @on(LineView.CursorMoved, "#findings")
    @on(SpecialView.CursorMoved, "#special-table")
    def _other_moved(self) -> None:
        if self.pane in ("findings", "tables"):
            self.show_layer(self._row_of(self.pane))

    @on(PlanGraphPane.LayerOpened)
    @on(LineView.Activated, "#findings")
    @on(SpecialView.Activated, "#special-table")
    def _other_chosen(self) -> None:
        self.layer_commands.show(self._row_of(self.pane))

    @on(LayerPane.LayerChosen)
    def _layer_chosen(self, event: LayerPane.LayerChosen) -> None:
        self.show_layer(event.index)
        if "linked" in self.conditions():
            self.layer_commands.go_to_node()
        else:
            self.show_pane("graph")

    def action_show_other(self) -> None:
        """Show the layer in the graph, or the layer of another pane in the table."""
        if self.pane == "layers":
            self.show_pane("graph")
        else:
            self.layer_commands.show(self.row)

    def action_details(self) -> None:
        details = self.query_one(PlanDetails)
        if not details.display or not details.region.area:
            self.show_pane("layers")
        self.call_after_refresh(details.focus)

    def row_of_finding(self) -> int | None:
        """Return the layer of the finding under the cursor; None when it is of the engine."""
        finding = self.query_one(PlanFindings).finding_at_cursor()
        if self.loaded is None or finding is None:
            return None
        index = next(iter(finding.concerned), None)
        layers = enumerate(self.loaded.plan.layers)
        return next((row for row, layer in layers if layer.index == index), None)

    def node_times(self, document: Document) -> tuple[Mapping[Node, float], str] | None:
        """Return the milliseconds of the nodes of the model that the engine is of."""
        loaded, path = self.loaded, document.path
        if loaded is None or loaded.model is None or path is None:
            return None
        if loaded.model.absolute() != path.absolute():
            return None
        times = times_by_node(loaded.layers, document)
        title = f"{self.tab_title}, shared by cost in a layer (an estimate)"
        return (times, title) if times else None

    @on(PlanDetails.NodeChosen)
    async def _node_chosen(self, event: PlanDetails.NodeChosen) -> None:
        layer = self.layer_at_cursor()
        if layer is not None and event.place < len(layer.nodes):
            await self.show_node(layer.nodes[event.place])

    async def show_node(self, link: NodeLink) -> None:
        """Show an ONNX node in the model, which is asked for when not known."""
        if self.loaded is not None and self.loaded.model is not None:
            host(self).reveal(self.loaded.model, link.scope, link.node)
        else:
            self.action_choose_model()

    def action_improve(self) -> None:
        """Show what the rules of a finding would change in the model."""
        if self.loaded is None or self.loaded.model is None:
            self.action_choose_model()
        else:
            offer_rules(host(self), self.loaded.model, self._rules_at_cursor())

    @task()
    async def action_choose_model(self) -> None:
        start = str(self.path.parent) + os.sep
        hint = "path of the ONNX model that the engine was built from"
        path = await self.tasks.ask(
            OpenPathDialog("The model of the engine", start, hint, endings=MODELS)
        )
        if path is not None:
            self.model = path
            self.read()

    @task()
    async def action_narrow(self) -> None:
        loaded = self.loaded
        if loaded is None:
            return
        items, filters = narrowings(loaded.layers)
        dialog = PickDialog("Layers with", lambda: items, placeholder="type, precision or finding")
        key = await self.tasks.ask(dialog)
        if key is not None:
            text, group = filters[str(key)]
            self.layer_pane.set_filter(text, group)
            self.show_pane("layers")

    def action_next_table(self) -> None:
        if self.pane == "tables":
            self.query_one(SpecialPane).next_table()
            self._other_moved()
        else:
            self.show_pane("charts")
            self.charts.next_chart()

    @property
    def stem(self) -> str:
        """What names of files that are written begin with: several suffixes go."""
        return visible(self.path.name.partition(".")[0]) or "engine"

    def shown_csv(self) -> tuple[str, int, str]:
        """Return the shown table, which may be a special one."""
        special = self.query_one(SpecialPane).shown_table() if self.pane == "tables" else None
        if special is None:
            return super().shown_csv()
        return f"-{special.name}", len(special.rows), csv_of(special)

    def export(self, path: Path, overwrite: bool) -> Sequence[str]:
        """Write the engine as a page."""
        from dld_tui.core.tensorrt.plan.html import write_page

        loaded = self.loaded
        assert loaded is not None  # the caller has it
        return write_page(loaded.plan, loaded.findings, loaded.mapping, path, overwrite=overwrite)

    def action_save_picture(self) -> None:
        """Ask for a path and write what the graph pane shows as a picture."""
        if self.loaded is None:
            return
        pane, title = self.graph, self.loaded.plan.title
        dark = self.app.current_theme.dark
        look = style.Look(style.SCHEMES["dark" if dark else "light"])

        def write(path: Path, overwrite: bool) -> list[str]:
            path = path if path.suffix else path.with_suffix(".svg")
            kind = kind_of(path)
            content = shown_in(pane, title, as_rows=kind == "text")
            picture = content if isinstance(content, Picture) else picture_of(content, kind, look)
            return list(write_bytes(path, picture.data, overwrite=overwrite))

        title_text = "Save picture: .svg, .png, .jpg or .txt"
        ask_where(self, title_text, in_folder(), f"{self.stem}.svg", write)
