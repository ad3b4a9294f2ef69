"""The report screen: summary, timeline, layers, charts, environment, each on a key.

On a large terminal all are seen at once; on a smaller one summary, timeline and one other; on 80x24
one at a time. The cursors of table and timeline go together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from time import monotonic
from typing import ClassVar

from textual import on
from textual.binding import BindingType
from textual.containers import Container, Vertical
from textual.widget import Widget

from dld_tui.core import fmt
from dld_tui.core.document import Document, Node
from dld_tui.core.report.groups import priced
from dld_tui.core.report.layer_table import short_provider
from dld_tui.core.report.model import Report
from dld_tui.core.report.records import Layer
from dld_tui.core.text import visible
from dld_tui.screens.files import read_or_close
from dld_tui.screens.panes import PaneStrip
from dld_tui.screens.report.actions import ReportActions
from dld_tui.screens.report.loading import load
from dld_tui.screens.report.panes import PANES, ReportPanes
from dld_tui.styles import STYLES
from dld_tui.widgets.charts.bars import Line
from dld_tui.widgets.hints import hint
from dld_tui.widgets.layers.table import LayerPane
from dld_tui.widgets.lists.styled import Rows
from dld_tui.widgets.report.summary import costliest
from dld_tui.widgets.report.views import ChartPane, EnvironmentView, SummaryView
from dld_tui.widgets.shell.commands import bindings_for
from dld_tui.widgets.shell.page import Page
from dld_tui.widgets.tasks import on_thread, task
from dld_tui.widgets.timeline.details import span_lines
from dld_tui.widgets.timeline.model import Timeline, timeline_of
from dld_tui.widgets.timeline.timeline import TimelineView

_SHOW_S = 0.4
"""A report that is read sooner is painted once, in the place of what was there before."""
_FILL_S = 5.0
"""Its panes are painted when all of them are laid out; if that takes longer, one by one."""


class ReportScreen(ReportActions, ReportPanes, Page):
    """One report."""

    SCOPE = "report"
    BINDINGS: ClassVar[list[BindingType]] = bindings_for("report")
    CSS_PATH = STYLES / "report.tcss"
    AUTO_FOCUS = ""
    HELP = (
        "{report.pane.1} to {report.pane.5} go to the panes. The summary says what was measured; "
        "the timeline shows one pass; the layers say where the time goes; {timeline.open} on a "
        "layer goes to its ONNX node."
    )

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.tab_title = path.name
        self.report: Report | None = None
        self.shown_pass: int | None = None
        self.pane = "summary"
        self.maximised = False
        self._known_facts: set[str] = set()

    def body(self) -> Iterable[Widget]:
        """Return the panes."""
        return (
            PaneStrip(PANES),
            Rows([[(f" reading {visible(self.tab_title)} …", "dim")]], id="loading"),
            Container(
                SummaryView(id="summary"),
                TimelineView(empty=" No pass was profiled: no timeline.", id="timeline"),
                Container(
                    LayerPane(id="layers"),
                    Vertical(ChartPane(id="charts"), EnvironmentView(id="environment"), id="side"),
                    id="lower",
                ),
                id="panes",
            ),
        )

    def on_mount(self) -> None:
        """Read the report."""
        self.query_one("#panes").display = False
        self.tab_status = ""
        self.hold_paint(_SHOW_S)
        self._load()

    def on_unmount(self) -> None:
        """Close the file."""
        if self.report is not None:
            self.report.close()

    # Loading

    @task("load")
    async def _load(self) -> None:
        path, begin = self.path, monotonic()
        assert path is not None  # given to __init__
        loaded = await read_or_close(
            self,
            lambda progress, cancelled: load(path, cancelled, progress),
            lambda done, total: self._show_progress(done, total, monotonic() - begin),
        )
        report = loaded.report
        self.hold_paint(_FILL_S)  # again: reading may have taken longer
        self.report = report
        provider = short_provider(report.execution_provider) if report.execution_provider else ""
        self.tab_status = " · ".join(visible(part) for part in (provider, report.device) if part)
        self.set_class(report.has_gpu_events or bool(report.counters), "-gpu")
        self.query_one("#loading").display = False
        self.query_one("#panes").display = True
        self.query_one(SummaryView).set_report(report, loaded.advice, loaded.gpu)
        sum_ms = sum(layer.time_ms or 0.0 for layer in report.layers)
        self.query_one(LayerPane).set_layers(
            report.layers, sum_ms, report.by_pass, report.gpu_by_pass, report.wording
        )
        self.query_one(ChartPane).set_report(report, loaded.types)
        self.query_one(EnvironmentView).set_report(report, loaded.model_problem)
        self.query_one(TimelineView).describe = self._describe
        self.show_pass(report.median_pass, loaded.timeline)
        for layer in costliest(report.layers, 1):
            self.query_one(TimelineView).go_to(layer.index)
        self.restore_columns()
        self.show_pane("layers" if self.size_class == "large" else "summary")
        self.release_paint_when_laid_out()
        self.show_awaited_layer()
        self.tab_changed()

    def _show_progress(self, done: int, total: int, seconds: float) -> None:
        if not total or self.report is not None or not self.is_mounted:
            return
        progress = f"{100 * done / total:.0f} % of {fmt.size(total)}"
        rate = fmt.size(int(done / seconds)) if seconds else fmt.UNKNOWN
        text = f" reading {visible(self.tab_title)}: {progress}, {rate}/s"
        text += f"   {hint('{report.clear} stops')}"
        self.query_one("#loading", Rows).set_rows([[(text, "dim")]])

    # The pass that is drawn

    def show_pass(self, index: int | None, timeline: Timeline) -> None:
        """Draw a pass."""
        self.shown_pass = index
        view = self.query_one(TimelineView)
        view.set_timeline(timeline)
        view.frame(
            self._pass_title(index, timeline),
            "{report.zoom_in} {report.zoom_out} zoom  {timeline.measure} measure",
        )

    def _pass_title(self, index: int | None, timeline: Timeline) -> str:
        report = self.report
        if report is None or index is None:
            return "Timeline"
        kind = "median pass" if index == report.median_pass else "pass"
        found = next((one for one in report.passes if one.index == index), None)
        state = "" if found is None or found.state == "measured" else f" · {found.state}"
        length = fmt.milliseconds(timeline.total_us / 1000)
        return f"Timeline · {kind} {index + 1} of {len(report.passes)} · {length} ms{state}"

    def action_previous_pass(self) -> None:
        """Draw the pass before."""
        self._step_pass(-1)

    def action_next_pass(self) -> None:
        """Draw the pass after."""
        self._step_pass(1)

    @task("pass", replace=True)
    async def _step_pass(self, step: int) -> None:
        report = self.report
        if report is None or self.shown_pass is None:
            return
        numbers = [one.index for one in report.passes]
        at = numbers.index(self.shown_pass) + step
        if not 0 <= at < len(numbers):
            self.notify("No further pass", timeout=2)
            return
        wanted = self.shown_pass = numbers[at]

        timeline = await on_thread(timeline_of, report, wanted)
        self.show_pass(wanted, timeline)

    def _describe(self, room: int) -> list[Line]:
        view = self.query_one(TimelineView)
        if self.report is None or not view.timeline.lanes:
            return []
        return span_lines(view, self.report.layers, room)

    # Cursors in step

    def layer_at_cursor(self) -> Layer | None:
        """Return the layer under the cursor of the pane with the focus."""
        if self.report is None:
            return None
        if self.pane == "timeline":
            key = self.query_one(TimelineView).key_at_cursor()
            return None if key is None else self.report.layers[key]
        return self.query_one(LayerPane).layer_at_cursor()

    def facts(self) -> set[str]:
        """Return what holds now."""
        layer = self.layer_at_cursor() if self.is_mounted else None
        path = self.model_path()
        found = {
            "report": self.report is not None,
            "layer": layer is not None,
            "linked": layer is not None and bool(layer.nodes) and path is not None,
            "model": path is not None,
            "optimized": self.optimized_path() is not None,
        }
        return super().facts() | {name for name, holds in found.items() if holds}

    @property
    def knows_times(self) -> bool:
        """Whether it has been read."""
        return self.report is not None

    def node_times(self, document: Document) -> tuple[Mapping[Node, float], str] | None:
        """Return the milliseconds of the nodes of the model that was measured."""
        path = document.path
        if self.report is None or path is None or self.model_path() != path.absolute():
            return None
        times: dict[Node, float] = {}
        for layer in priced(self.report.layers):  # not what it takes to launch them on a GPU
            for link in layer.nodes:
                node = document.find_node(link.scope, link.node)
                if node is not None and layer.time_ms is not None:
                    times[node] = times.get(node, 0.0) + layer.time_ms * link.share
        return times, self.tab_title

    # Messages may be late: the pane with the focus leads, and its cursor counts as it is now.

    @on(LayerPane.LayerMoved)
    def _table_moved(self) -> None:
        layer = self.query_one(LayerPane).layer_at_cursor()
        view = self.query_one(TimelineView)
        if self.pane != "timeline" and layer is not None and view.key_at_cursor() != layer.index:
            view.go_to(layer.index)
        self.check_facts()

    @on(TimelineView.CursorMoved)
    def _timeline_moved(self) -> None:
        key = self.query_one(TimelineView).key_at_cursor()
        if self.pane == "timeline" and key is not None:
            self.query_one(LayerPane).go_to(key)
        self.check_facts()

    def check_facts(self) -> None:
        """Let the footer follow when other commands can run."""
        facts = self.facts()
        if facts != self._known_facts:
            self._known_facts = facts
            self.refresh_bindings()

    @on(LayerPane.LayerChosen)
    def _layer_chosen(self, event: LayerPane.LayerChosen) -> None:
        layer = self.layer_at_cursor()
        if layer is not None and layer.nodes and self.model_path() is not None:
            self.action_go_to_node()
        else:
            self.show_in_timeline(event.index)

    @on(TimelineView.Activated)
    def _span_chosen(self, event: TimelineView.Activated) -> None:
        self.show_in_table(event.key)

    @on(ChartPane.TypeChosen)
    def _type_chosen(self, event: ChartPane.TypeChosen) -> None:
        self.query_one(LayerPane).set_filter("", ("type", event.type))
        self.show_pane("layers")

    def show_in_timeline(self, index: int) -> None:
        """Go to a layer in the timeline, near enough to see it."""
        if self.query_one(TimelineView).go_to(index, frame=True):
            self.show_pane("timeline")
        else:
            self.notify("The layer did not run in this pass", timeout=3)

    def layer_count(self) -> int | None:
        """Return how many layers the report has; None while it is being read."""
        return None if self.report is None else len(self.report.layers)

    def show_in_table(self, index: int | None) -> None:
        """Go to a layer in the table, without a filter that hides it."""
        if index is None:
            return
        self.query_one(LayerPane).go_to(index, clear=True)
        self.show_pane("layers")
