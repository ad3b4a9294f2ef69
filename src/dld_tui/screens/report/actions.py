"""What one can do with a report beside looking: go to the model, save a table, compare."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core.files.writer import write_text
from dld_tui.core.report.export import groups_csv, layers_csv
from dld_tui.core.report.export_file import FORMATS, export_report
from dld_tui.core.text import visible
from dld_tui.core.types import JSON
from dld_tui.screens.compare.actions import ask_reports
from dld_tui.screens.context_menu import open_menu
from dld_tui.screens.files import ask_where
from dld_tui.screens.report.panes import ColumnsDialog
from dld_tui.widgets.dialogs.dialogs import Choice, ChoiceDialog
from dld_tui.widgets.layers.table import LayerPane
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.report.views import ChartPane
from dld_tui.widgets.shell.host import host
from dld_tui.widgets.tasks import on_thread, task
from dld_tui.widgets.timeline.timeline import TimelineView

if TYPE_CHECKING:
    from dld_tui.core.report.model import Report
    from dld_tui.core.report.records import Layer
    from dld_tui.widgets.shell.page import Page

    class _Base(Page):
        path: Path | None
        report: Report | None
        pane: str

        def layer_at_cursor(self) -> Layer | None: ...
        def show_in_timeline(self, index: int) -> None: ...
        def show_in_table(self, index: int | None) -> None: ...
        def show_pane(self, name: str) -> None: ...
else:
    _Base = object

_LETTERS = "123456789"


class ReportActions(_Base):
    """A mixin: the commands of the report screen."""

    @task()
    async def action_compare_with(self) -> None:
        """Choose another report and compare this one with it."""
        await ask_reports(host(self), self.path)

    def model_path(self) -> Path | None:
        """Return where the report says its model is."""
        path = self.report.model.get("path") if self.report is not None else None
        return Path(path) if isinstance(path, str) and path else None

    def optimized_path(self) -> Path | None:
        """Return where the run saved the model as the runtime optimised it."""
        path = self.report.facts.get("optimized_model") if self.report is not None else None
        return Path(path) if isinstance(path, str) and path else None

    def action_open_optimized(self) -> None:
        """Open the model as the runtime optimised it."""
        path = self.optimized_path()
        if path is not None:
            host(self).open_path(path)

    # The context menu

    def action_context_menu(self) -> None:
        """Show the commands for the layer under the cursor."""
        layer = self.layer_at_cursor()
        if layer is not None:
            open_menu(self.app, self, "layer", layer.name)

    def on_line_view_menu_asked(self, event: LineView.MenuAsked) -> None:
        """Show the menu on a right click."""
        event.stop()
        self.call_after_refresh(self.action_context_menu)

    # To the model

    @task()
    async def action_go_to_node(self) -> None:
        """Show the layer's ONNX node in the model; asks which one when there are several."""
        layer = self.layer_at_cursor()
        path, report = self.model_path(), self.report
        if layer is None or not layer.nodes or path is None or report is None:
            return
        link = layer.nodes[0]
        if len(layer.nodes) > 1:
            links = layer.nodes[: len(_LETTERS)]
            choices = [
                Choice(_LETTERS[n], f"{visible(link.op_type)}  {visible(link.label)}", str(n))
                for n, link in enumerate(links)
            ]
            about = f"{visible(layer.name)} computes {len(layer.nodes)} ONNX nodes."
            answer = await self.tasks.ask(ChoiceDialog("Which node?", about, choices))
            if answer is None:
                return
            link = links[int(answer)]
        problem = await on_thread(report.model_problem)
        if problem is not None:
            gone = not os.path.lexists(path)
            text = f"{visible(str(path))}: {problem}. The report's figures are as they were."
            self.notify(text, severity="warning", timeout=8, markup=False)
            if gone:
                return
        host(self).reveal(path, link.scope, link.node)

    def action_profile(self) -> None:
        """Open the form of the profile, filled as it was."""
        path = self.model_path()
        if path is None or self.report is None:
            return
        values: dict[str, JSON] = {**self.report.settings, "model": str(path)}
        values.pop("output", None)
        host(self).start_activity("profile_onnxruntime", values)

    # Tables

    def action_filter(self) -> None:
        """Filter the layers while one types."""
        self.show_pane("layers")
        self.query_one(LayerPane).open_filter()

    def action_group(self) -> None:
        """Group the layers by the next thing."""
        self.show_pane("layers")
        self.query_one(LayerPane).next_grouping()

    @task()
    async def action_columns(self) -> None:
        """Choose the columns of the layer table."""
        pane = self.query_one(LayerPane)
        keys = await self.tasks.ask(ColumnsDialog(pane.columns, pane.known))
        if keys is not None and keys != pane.columns:
            pane.set_columns(keys)
            host(self).state.put("layouts", "report.columns", {"keys": list(keys)})

    def restore_columns(self) -> None:
        """Take the columns that the user chose before."""
        keys = host(self).state.get("layouts", "report.columns").get("keys")
        if isinstance(keys, list):
            self.query_one(LayerPane).set_columns([str(key) for key in keys])

    def action_show_other(self) -> None:
        """Show the layer in the timeline, or the timeline's layer in the table."""
        layer = self.layer_at_cursor()
        if layer is None:
            return
        if self.pane == "timeline":
            self.show_in_table(layer.index)
        else:
            self.show_in_timeline(layer.index)

    def action_clear(self) -> None:
        """Take back marks, the filter, the group, the measure; stop loading."""
        if self.report is None:
            self.tasks.cancel("load")
        elif not (self.pane == "timeline" and self.query_one(TimelineView).clear_measure()):
            self.query_one(LayerPane).clear()

    def action_save_csv(self) -> None:
        """Ask for a path and write the shown table, filtered and sorted as it is."""
        pane = self.query_one(LayerPane)
        plain = pane.by == "layer"
        text = layers_csv(pane.shown_layers()) if plain else groups_csv(pane.shown_groups())
        stem = visible((self.path or Path("report")).stem)
        name = f"{stem}.csv" if plain else f"{stem}-by-{pane.by}.csv"
        rows = len(pane.table.order)
        about = f"{rows:,} rows as they are shown, all columns. Relative to {os.getcwd()}."
        ask_where(
            self,
            "Save as CSV",
            about,
            name,
            lambda path, over: write_text(path, text, overwrite=over),
        )

    def action_export(self) -> None:
        """Ask for a path, whose ending says what to write of the whole report."""
        report = self.report
        if report is None:
            return
        stem = visible((self.path or Path("report")).stem)
        kinds = "; ".join(f"{ending}: {title}" for ending, (title, _) in FORMATS.items())
        about = f"The ending says what: {kinds}. Relative to {os.getcwd()}."
        ask_where(
            self,
            "Export the report",
            about,
            f"{stem}.html",
            lambda path, over: export_report(report, path, overwrite=over),
        )

    # Timeline and chart

    def action_unit(self) -> None:
        """Switch the chart between milliseconds and percent."""
        self.query_one(ChartPane).toggle_unit()

    def action_chart(self) -> None:
        """Show the next chart."""
        self.show_pane("charts")
        self.query_one(ChartPane).next_chart()

    def action_zoom_in(self) -> None:
        """Show less of the timeline, larger."""
        self.query_one(TimelineView).action_zoom_in()

    def action_zoom_out(self) -> None:
        """Show more of the timeline."""
        self.query_one(TimelineView).action_zoom_out()

    def action_zoom_reset(self) -> None:
        """Show the whole pass."""
        self.query_one(TimelineView).action_zoom_reset()
