"""The plan screen: an engine of TensorRT, from its files alone.

Report card, layers, findings, graph, charts and special tables, each on a key. The cursors of
table, graph and findings go together; the details below say all that is known of the layer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.binding import BindingType
from textual.containers import Container, Vertical
from textual.widget import Widget

from dld_tui.core.document import Document, Node
from dld_tui.core.plan.graph import LayerVertex
from dld_tui.core.plan.mapping import share_times
from dld_tui.core.report.records import Layer
from dld_tui.core.text import visible
from dld_tui.screens.files import read_or_close
from dld_tui.screens.panes import PaneStrip
from dld_tui.screens.plan.actions import PlanActions
from dld_tui.screens.plan.loading import Loaded, load
from dld_tui.screens.plan.panes import PANES, PlanPanes
from dld_tui.styles import STYLES
from dld_tui.widgets.layers.table import LayerPane
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.styled import Rows
from dld_tui.widgets.plan.details import PlanDetails
from dld_tui.widgets.plan.findings import PlanFindings
from dld_tui.widgets.plan.graph import PlanGraphPane
from dld_tui.widgets.plan.summary import PlanFacts
from dld_tui.widgets.plan.tables import SpecialPane, SpecialView
from dld_tui.widgets.plan.views import PlanCharts, PlanSummary
from dld_tui.widgets.report.views import ChartPane
from dld_tui.widgets.shell.commands import bindings_for
from dld_tui.widgets.shell.page import Page
from dld_tui.widgets.tasks import on_thread, task

_KEYS = (
    "{plan.filter} filter  {plan.narrow} by value  {table.sort} sort  {plan.group} group  "
    "{plan.csv} csv"
)


class PlanScreen(PlanActions, PlanPanes, Page):
    """One engine."""

    SCOPE = "plan"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("plan")
    CSS_PATH = STYLES / "plan.tcss"
    AUTO_FOCUS = ""
    HELP = (
        "{plan.pane.1} to {plan.pane.6} go to the panes. The report card says what the engine is "
        "and where its time goes; {list.activate} on a finding goes to its layer, {list.activate} "
        "on a layer to its ONNX node."
    )

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.tab_title = path.name
        self.loaded: Loaded | None = None
        self.pane = "summary"
        self.maximised = False
        self.row: int | None = None
        """The layer that the details are of, by its place among the plan's."""
        self._model: Path | None = None
        self._known_facts: set[str] = set()

    def body(self) -> Iterable[Widget]:
        """Return the panes."""
        return (
            PaneStrip(PANES),
            Rows([[(f" reading {visible(self.tab_title)} …", "dim")]], id="loading"),
            Container(
                PlanSummary(id="summary"),
                Container(
                    LayerPane(engine=True, keys=_KEYS, id="layers"),
                    Vertical(
                        PlanFindings(id="findings"),
                        PlanGraphPane(id="graph"),
                        PlanCharts(id="charts"),
                        SpecialPane(id="tables"),
                        PlanDetails(id="details"),
                        id="side",
                    ),
                    id="main",
                ),
                id="panes",
            ),
        )

    def on_mount(self) -> None:
        """Read the files."""
        self.query_one("#panes").display = False
        self.read()

    # --- reading --------------------------------------------------------------------------------

    @task("load", replace=True)
    async def read(self, model: Path | None = None) -> None:
        """Read the files, and look the nodes up in a model."""
        path = self.path
        assert path is not None  # given to __init__
        self._model = model = model or self._model
        if self.loaded is None:
            loaded = await read_or_close(self, lambda progress, cancelled: load(path, model))
        else:
            loaded = await on_thread(load, path, model)
        is_first = self.loaded is None
        self.loaded = loaded
        plan = loaded.plan
        self.tab_status = "TensorRT engine"
        self.query_one("#loading").display = False
        self.query_one("#panes").display = True
        mapped = sum(bool(layer.nodes) for layer in loaded.layers)
        self.query_one(PlanSummary).set_plan(
            PlanFacts(plan, loaded.layers, loaded.findings, mapped, loaded.model_problem)
        )
        self.layer_pane.set_layers(loaded.layers, plan.total_ms or 0.0)
        if plan.total_ms is None:
            self.layer_pane.table.sort_by(None)
        by_index = {layer.index: layer for layer in plan.layers}
        self.query_one(PlanFindings).show(loaded.findings, by_index)
        self.query_one(PlanCharts).set_plan(plan, loaded.layers, loaded.types)
        self.query_one(SpecialPane).set_tables(plan, loaded.tables)
        self._show_graph()
        if is_first:
            self.restore_columns()
            self.show_pane("layers" if self.size_class == "large" else "summary")
        self.show_awaited_layer()
        self._table_moved()
        self.tab_changed()

    def _show_graph(self) -> None:
        loaded = self.loaded
        assert loaded is not None  # the caller has it
        times = {
            LayerVertex(row): layer.time_ms
            for row, layer in enumerate(loaded.layers)
            if layer.time_ms is not None
        }
        self.graph.has_precisions = not loaded.plan.names_only
        self.graph.ask_times = lambda: (times, "the profile")
        self.graph.set_findings(loaded.findings)
        self.graph.show(loaded.graph)

    # --- panes ----------------------------------------------------------------------------------

    @property
    def layer_pane(self) -> LayerPane:
        """The layer table."""
        return self.query_one(LayerPane)

    @property
    def graph(self) -> PlanGraphPane:
        """The graph."""
        return self.query_one(PlanGraphPane)

    def focus_graph(self) -> None:
        """Put the focus into the graph."""
        self.graph.focus_view()

    # --- the layer under the cursor -------------------------------------------------------------

    def layer_at_cursor(self) -> Layer | None:
        """Return the layer that the details are of."""
        loaded, row = self.loaded, self.row
        return loaded.layers[row] if loaded is not None and row is not None else None

    def facts(self) -> set[str]:
        """Return what holds now."""
        layer = self.layer_at_cursor()
        found = {
            "plan": self.loaded is not None,
            "layer": layer is not None,
            "linked": layer is not None and bool(layer.nodes),
        }
        return super().facts() | {name for name, holds in found.items() if holds}

    @property
    def knows_times(self) -> bool:
        """Whether it has been read."""
        return self.loaded is not None

    def node_times(self, document: Document) -> tuple[Mapping[Node, float], str] | None:
        """Return the milliseconds of the nodes of the model that the engine is of."""
        loaded, path = self.loaded, document.path
        if loaded is None or loaded.model is None or path is None:
            return None
        if loaded.model.absolute() != path.absolute():
            return None
        times: dict[Node, float] = {}
        for time in share_times(loaded.plan, loaded.mapping):
            node = document.find_node(time.node.scope, time.node.ref) if time.node else None
            if node is not None:
                times[node] = times.get(node, 0.0) + time.time_ms
        title = f"{self.tab_title}, shared by cost in a layer (an estimate)"
        return (times, title) if times else None

    def check_facts(self) -> None:
        """Let the footer follow when other commands can run."""
        facts = self.facts()
        if facts != self._known_facts:
            self._known_facts = facts
            self.refresh_bindings()

    def show_layer(self, row: int | None) -> None:
        """Show a layer in the details, and put the other cursors on it."""
        loaded = self.loaded
        if loaded is None or row is None or not 0 <= row < len(loaded.layers):
            return
        if row != self.row:
            self.row = row
            layer = loaded.plan.layers[row]
            wrong = [
                found
                for found in loaded.findings
                if found.layer == layer.index or layer.index in found.layers
            ]
            self.query_one(PlanDetails).show(layer, loaded.mapping.get(layer.index), wrong)
            if not self.graph.has_focus_within:
                self.graph.reveal(LayerVertex(row))
            if self.pane not in ("layers",) and self.layer_pane.layer_at_cursor() is not None:
                self.layer_pane.go_to(row)
        self.check_facts()

    # Messages may be late: the pane with the focus leads, and its cursor counts as it is now.

    @on(LayerPane.LayerMoved)
    def _table_moved(self) -> None:
        if self.pane in ("layers", "summary", "charts"):
            layer = self.layer_pane.layer_at_cursor()
            self.show_layer(None if layer is None else layer.index)

    @on(PlanGraphPane.LayerReached)
    def _graph_moved(self) -> None:
        if self.pane == "graph":
            self.show_layer(self.graph.row_at_cursor)

    @on(LineView.CursorMoved, "#findings")
    def _finding_moved(self) -> None:
        if self.pane == "findings":
            self.show_layer(self.row_of_finding())

    @on(SpecialView.CursorMoved, "#special-table")
    def _special_moved(self) -> None:
        if self.pane == "tables":
            self.show_layer(self.query_one(SpecialPane).layer_at_cursor())

    @on(LayerPane.LayerChosen)
    def _layer_chosen(self, event: LayerPane.LayerChosen) -> None:
        self.show_layer(event.index)
        layer = self.layer_at_cursor()
        if layer is not None and layer.nodes:
            self.action_go_to_node()
        else:
            self.show_pane("graph")

    @on(PlanGraphPane.LayerOpened)
    def _box_opened(self, event: PlanGraphPane.LayerOpened) -> None:
        self.show_in_table(event.row)

    @on(LineView.Activated, "#findings")
    def _finding_chosen(self) -> None:
        self.show_in_table(self.row_of_finding())

    @on(SpecialView.Activated, "#special-table")
    def _special_chosen(self) -> None:
        self.show_in_table(self.query_one(SpecialPane).layer_at_cursor())

    @on(PlanDetails.NodeChosen)
    def _node_chosen(self, event: PlanDetails.NodeChosen) -> None:
        self.go_to_node(event.place)

    @on(ChartPane.TypeChosen)
    def _type_chosen(self, event: ChartPane.TypeChosen) -> None:
        self.layer_pane.set_filter("", ("type", event.type))
        self.show_pane("layers")

    def layer_count(self) -> int | None:
        """Return how many layers the engine has; None while its files are being read."""
        return None if self.loaded is None else len(self.loaded.layers)

    def show_in_table(self, index: int | None) -> None:
        """Go to a layer in the table, without a filter that hides it."""
        if index is None:
            self.notify("This is about the whole engine", timeout=3)
            return
        self.layer_pane.go_to(index, clear=True)
        self.show_pane("layers")
        self.show_layer(index)
