"""The page of a report: summary, timeline, layers, charts, environment, each on a key.

On a large terminal all but the environment are seen at once; on a smaller one summary, timeline
and one other; on 80x24 one at a time. The cursors of table and timeline go together.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual import on

from dld_tui.commands.command import table
from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.document import Document, Node
from dld_tui.core.notes import Note
from dld_tui.core.reading.card import card_lines, write_card
from dld_tui.core.reading.export import export_report, formats
from dld_tui.core.reading.story import NextStep, next_steps, request_of
from dld_tui.core.report.groups import costliest
from dld_tui.core.report.layer_table import short_provider
from dld_tui.core.report.records import Group, Layer, NodeLink
from dld_tui.core.report.report import Report, open_report
from dld_tui.core.report.reports_of_model import times_by_node
from dld_tui.core.report.triage import notes_of
from dld_tui.core.text import visible
from dld_tui.core.types import JSON, CancelCheck, ProgressCallback
from dld_tui.screens.results.pages import ask_where, in_folder
from dld_tui.screens.results.results_page import Pane, ResultsPage
from dld_tui.widgets.dialogs.dialogs import Choice, ChoiceDialog
from dld_tui.widgets.results.layers import LayerPane
from dld_tui.widgets.results.passes import PassTimeline
from dld_tui.widgets.results.report_views import ChartPane, EnvironmentView
from dld_tui.widgets.results.summary import AdviceView, SummaryPane
from dld_tui.widgets.shell.command_dispatch import holding
from dld_tui.widgets.shell.page import host, offer_rules
from dld_tui.widgets.tasks import on_thread, task
from dld_tui.widgets.timeline.lanes import Timeline, timeline_of


@dataclass(frozen=True)
class Loaded:
    """A report with what takes time to find out."""

    report: Report
    notes: tuple[Note, ...]
    timeline: Timeline
    """Of the typical pass; empty when there is none."""
    types: tuple[Group, ...]
    """What the layers cost, by type."""
    model_problem: str | None
    steps: Sequence[NextStep]
    """What may help."""


def load(
    path: Path,
    cancelled: CancelCheck | None = None,
    progress: ProgressCallback | None = None,
) -> Loaded:
    """Open a report, or what another profiler wrote as one.

    Args:
        path: The file.
        cancelled: Asked while a profile is read.
        progress: Told the bytes that are read, and all of them.

    Raises:
        InputError: The file cannot be read or is not a report or profile.
        CancelledError: `cancelled` returned True.
    """
    report = open_report(path, progress, cancelled)
    try:
        return complete(report)
    except BaseException:
        report.close()
        raise


def complete(report: Report) -> Loaded:
    """Find out the rest about an open report."""
    typical = report.typical_pass
    return Loaded(
        report,
        tuple(notes_of(report)),
        Timeline([], 0.0) if typical is None else timeline_of(report, typical),
        tuple(report.groups("type")),
        report.model_problem(),
        next_steps(report),
    )


class ReportScreen(ResultsPage[Loaded]):
    """One report."""

    SCOPE = "report"
    COMMAND_TABLE = (
        *table(
            "report",
            ("report.menu", "layer_commands.open_menu", "full_stop", "layer", "more",
             "Show the commands for the layer at the cursor, with their keys."),
            ("report.pane.1", "pane 1", "1", "", "pane 1", "Focus the summary."),
            ("report.pane.2", "pane 2", "2", "", "pane 2", "Focus the timeline."),
            ("report.pane.3", "pane 3", "3", "", "pane 3", "Focus the layers."),
            ("report.pane.4", "pane 4", "4", "", "pane 4", "Focus the charts."),
            ("report.pane.5", "pane 5", "5", "", "pane 5", "Focus the environment and settings."),
            ("report.clear", "clear", "escape", "", "clear",
             "Clear marks, filter, group or measurement; stop loading."),
            palette=False, footer="report.menu",
        ),
        *table(
            "report",
            ("report.node", "layer_commands.go_to_node", "s", "linked", "go to node",
             "Show the layer's ONNX node in the model."),
            ("report.show", "show_other", "t", "layer_row", "timeline",
             "Show the layer in the timeline, or the timeline's layer in the table."),
            ("report.again", "profile", "f5", "model", "again", "Profile the same model again."),
            ("report.card", "card", "y", "report", "share",
             "Copy a short summary, or write it as text or a picture to share."),
            ("report.compare", "compare_with", "c,equals_sign", "report", "compare",
             "Compare this report with another one."),
            ("report.improve", "pane 1", "", "report", "advice",
             "Go to the changes that may reduce the latency.",
             "what may help, recommendations, hints, make faster"),
            ("report.filter", "layer_commands.filter", "slash", "report", "filter",
             "Filter the layers as you type."),
            ("report.group", "layer_commands.group", "b", "report", "group",
             "Group the layers by type, node, operator, scope, provider or precision."),
            ("report.csv", "save_csv", "w", "report", "save csv",
             "Write the shown table as a CSV file."),
            ("report.export", "export", "W", "report", "export",
             "Write the whole report as HTML, Chrome trace, CSV, JSON or Parquet."),
            ("report.optimized", "open_optimized", "", "optimized", "open optimised model",
             "Open the optimised model that the run saved."),
            ("report.columns", "layer_commands.columns", "C", "report", "columns",
             "Choose the columns of the layer table."),
            ("report.chart", "chart", "v", "report", "next chart",
             "Show the next chart: by type, precision, distribution, time against memory."),
            ("report.unit", "charts.toggle_unit", "percent_sign", "report", "ms or percent",
             "Switch the chart between milliseconds and percent."),
            ("report.zoom_in", "timeline.action_zoom_in", "plus", "report", "zoom in",
             "Zoom in on the timeline."),
            ("report.zoom_out", "timeline.action_zoom_out", "minus", "report", "zoom out",
             "Zoom out of the timeline."),
            ("report.zoom_reset", "timeline.action_zoom_reset", "0", "report", "zoom all",
             "Show the whole pass."),
            ("report.previous_pass", "timeline.step_pass -1", "left_square_bracket", "report",
             "previous pass", "Show the previous pass in the timeline."),
            ("report.next_pass", "timeline.step_pass 1", "right_square_bracket", "report",
             "next pass", "Show the next pass in the timeline."),
            ("report.maximise", "maximise_pane", "m", "report", "maximise",
             "Maximise or restore the pane."),
            footer="report.node report.show report.again report.card report.compare",
        ),
    )  # fmt: skip
    HELP = (
        "{report.pane.1} to {report.pane.5} focus the panes: the summary, the timeline of one "
        "pass, the layers, the charts, and the environment. {timeline.open} on a layer goes to its "
        "ONNX node."
    )
    panes: Sequence[Pane] = (
        Pane("summary", partial(SummaryPane, id="summary"), stays=("large", "medium"),
             focus="#advice"),
        Pane("timeline", partial(PassTimeline, id="timeline"), stays=("large", "medium")),
        Pane("layers", partial(LayerPane, id="layers"), "main", ("large",), "#layer-table"),
        Pane("charts", partial(ChartPane, id="charts"), "side", focus="#type-chart"),
        Pane("environment", partial(EnvironmentView, id="environment"), "side"),
    )  # fmt: skip
    FIRST: ClassVar[tuple[str, str]] = ("summary", "layers")
    EXPORT: ClassVar[tuple[str, str]] = (
        "Export the report",
        "The file name's ending chooses the format: "
        f"{'; '.join(f'{ending}: {title}' for ending, (title, _) in formats().items())}.",
    )
    path: Path

    @property
    def report(self) -> Report | None:
        """The report; None while it is being read."""
        return None if self.loaded is None else self.loaded.report

    def load(self, progress: ProgressCallback, cancelled: CancelCheck) -> Loaded:
        """Read the report."""
        return load(self.path, cancelled, progress)

    def on_unmount(self) -> None:
        """Close the file."""
        if self.report is not None:
            self.report.close()

    def fill(self, loaded: Loaded) -> None:
        """Show the report, the cursors on the costliest layer."""
        report = loaded.report
        provider = short_provider(report.execution_provider) if report.execution_provider else ""
        self.tab_status = " · ".join(visible(part) for part in (provider, report.device) if part)
        self.set_class(report.has_gpu_events or bool(report.counters), "-gpu")
        self.query_one(SummaryPane).set_report(report, loaded.steps)
        self.layer_pane.set_layers(report.layers, report.measurement, report.wording)
        self.charts.set_report(report, loaded.types)
        self.query_one(EnvironmentView).set_report(report, loaded.model_problem, loaded.notes)
        self.timeline.set_report(report, loaded.timeline)
        for layer in costliest(report.layers, 1):
            self.timeline.go_to(layer.index)

    @property
    def timeline(self) -> PassTimeline:
        """The timeline."""
        return self.query_one(PassTimeline)

    def layer_at_cursor(self) -> Layer | None:
        """Return the layer under the cursor of the pane with the focus."""
        if self.report is None:
            return None
        if self.pane == "timeline":
            key = self.timeline.key_at_cursor()
            return None if key is None else self.report.layers[key]
        return self.layer_pane.layer_at_cursor()

    def conditions(self) -> set[str]:
        """Return what holds now."""
        layer = self.layer_at_cursor() if self.is_mounted else None
        path = self.model_path()
        return super().conditions() | holding(
            report=self.report is not None,
            layer=layer is not None,
            layer_row=layer is not None and self.pane in ("layers", "timeline"),
            linked=layer is not None and bool(layer.nodes) and path is not None,
            model=path is not None,
            optimized=self.optimized_path() is not None,
        )

    # Messages may be late: the pane with the focus leads, and its current cursor counts.

    @on(LayerPane.LayerMoved)
    def _table_moved(self) -> None:
        layer = self.layer_pane.layer_at_cursor()
        is_other = layer is not None and self.timeline.key_at_cursor() != layer.index
        if self.pane != "timeline" and layer is not None and is_other:
            self.timeline.go_to(layer.index)
        self.conditions_changed()

    @on(PassTimeline.CursorMoved)
    def _timeline_moved(self) -> None:
        key = self.timeline.key_at_cursor()
        if self.pane == "timeline" and key is not None:
            self.layer_pane.go_to(key)
        self.conditions_changed()

    @on(LayerPane.LayerChosen)
    def _layer_chosen(self, event: LayerPane.LayerChosen) -> None:
        if "linked" in self.conditions():
            self.layer_commands.go_to_node()
        else:
            self.show_in_timeline(event.index)

    @on(PassTimeline.Activated)
    def _span_chosen(self, event: PassTimeline.Activated) -> None:
        self.layer_commands.show(event.key)

    @on(ChartPane.PassChosen)
    def _pass_chosen(self, event: ChartPane.PassChosen) -> None:
        self.timeline.open_pass(event.index)
        self.show_pane("timeline")

    def show_in_timeline(self, index: int) -> None:
        """Go to a layer in the timeline, near enough to see it."""
        if self.timeline.go_to(index, frame=True):
            self.show_pane("timeline")
        else:
            self.notify("The layer did not run in this pass", timeout=3)

    def action_show_other(self) -> None:
        """Show the layer in the timeline, or the timeline's layer in the table."""
        layer = self.layer_at_cursor()
        if layer is not None and self.pane == "timeline":
            self.layer_commands.show(layer.index)
        elif layer is not None:
            self.show_in_timeline(layer.index)

    def action_clear(self) -> None:
        """Take back the measure, marks, the filter, the group; stop reading."""
        if not (self.pane == "timeline" and self.timeline.clear_measure()):
            self.layer_commands.clear()

    def model_path(self) -> Path | None:
        """Return where the report says its model is."""
        return None if self.report is None else _path(self.report.model.get("path"))

    def optimized_path(self) -> Path | None:
        """Return where the run saved the model as the runtime optimised it."""
        return None if self.report is None else _path(self.report.properties.get("optimized_model"))

    def action_open_optimized(self) -> None:
        """Open the model as the runtime optimised it."""
        path = self.optimized_path()
        if path is not None:
            host(self).open_path(path)

    def node_times(self, document: Document) -> tuple[Mapping[Node, float], str] | None:
        """Return the milliseconds of the nodes of the model that was measured."""
        path = document.path
        if self.report is None or path is None or self.model_path() != path.absolute():
            return None
        return times_by_node(self.report.layers, document), self.tab_title

    async def show_node(self, link: NodeLink) -> None:
        """Show an ONNX node in the model, and say what is wrong with the model."""
        path, report = self.model_path(), self.report
        if path is None or report is None:
            return
        problem = await on_thread(report.model_problem)
        if problem is not None:
            text = f"{visible(str(path))}: {problem}. The report's figures are as they were."
            self.notify(text, severity="warning", timeout=8, markup=False)
        if os.path.lexists(path):
            host(self).reveal(path, link.scope, link.node)

    def action_profile(self) -> None:
        """Open the form of the profile, filled as it was."""
        path = self.model_path()
        if path is None or self.report is None:
            return
        values: dict[str, JSON] = {**self.report.settings, "model": str(path)}
        values.pop("output", None)
        host(self).start_activity("profile_onnxruntime", values)

    @property
    def has_report(self) -> bool:
        """Whether this report says where its model is."""
        return self.model_path() is not None

    def show_activity(self, activity: str) -> bool:
        """Run an activity that takes a report, with this one; False for others."""
        from dld_tui.activities import registry

        path = self.model_path()
        if path is None or not registry.find(activity).of_report:
            return False
        self._run(activity, {"report": str(self.path), "model": str(path)})
        return True

    def _run(self, activity: str, values: Mapping[str, JSON]) -> None:
        from dld_tui.screens.results.views import run_activity  # lazy: few need it

        run_activity(host(self), activity, values)

    @on(AdviceView.Activated, "#advice")
    def _advice_chosen(self, event: AdviceView.Activated) -> None:
        if self.loaded is not None and isinstance(event.key, int):
            self._try(self.loaded.steps[event.key])

    @task()
    async def _try(self, step: NextStep) -> None:
        """Do what may help to the model."""
        report, path = self.report, self.model_path()
        if report is None or path is None:
            self.notify("The report does not say where its model is", severity="warning")
            return
        if step.rules:
            ways = [
                Choice("m", "measure it, and keep it if it is significantly faster", "measure"),
                Choice("p", "preview it in the model, and apply it", "preview"),
            ]
            way = await self.tasks.ask(ChoiceDialog(step.text, step.about, ways))
            if way == "preview":
                offer_rules(host(self), path, step.rules)
            if way != "measure":
                return
        activity, values = request_of(report, step, path)
        if activity == "tune":
            self._run(activity, values)
        else:
            host(self).start_activity(activity, values)

    @task()
    async def action_card(self) -> None:
        """Copy the report in a few lines, or ask where to write them."""
        report = self.report
        if report is None:
            return
        lines = await on_thread(card_lines, report)
        choices = [
            Choice("c", "copy the text", "copy"),
            Choice("s", "write a picture (SVG)", ".svg"),
            Choice("p", "write a picture (PNG)", ".png"),
            Choice("t", "write the text", ".txt"),
        ]
        answer = await self.tasks.ask(ChoiceDialog("Share", "\n".join(lines), choices))
        if answer == "copy":
            self.app.copy_to_clipboard("\n".join(lines))
        elif answer is not None:
            name = self.stem + answer
            about = "A name ending in .svg or .png gives a picture, any other gives text."
            ask_where(
                self, "Write the card", in_folder(about), name,
                lambda path, over: write_card(report, path, over),
            )  # fmt: skip

    def export(self, path: Path, overwrite: bool) -> Sequence[str]:
        """Write the whole report, in the format of the name's ending."""
        assert self.report is not None  # the caller has it
        return export_report(self.report, path, overwrite=overwrite)

    def action_chart(self) -> None:
        """Show the next chart."""
        self.show_pane("charts")
        self.charts.next_chart()


def _path(value: JSON) -> Path | None:
    return Path(value) if isinstance(value, str) and value else None
