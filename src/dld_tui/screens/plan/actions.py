"""What one can do with an engine beside looking: go to the model, filter, save, compare."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core.errors import DldError
from dld_tui.core.files.writer import write_bytes, write_text
from dld_tui.core.graph.pictures import style
from dld_tui.core.graph.pictures.drawing import Picture, kind_of, picture_of
from dld_tui.core.report.export import groups_csv
from dld_tui.core.report.layer_table import layer_table
from dld_tui.core.tables.as_csv import csv_of
from dld_tui.core.text import visible
from dld_tui.screens.compare.actions import ask_reports
from dld_tui.screens.context_menu import open_menu
from dld_tui.screens.files import Write, ask_where
from dld_tui.screens.home.welcome import OpenPathDialog
from dld_tui.screens.model.graph_picture import shown_in
from dld_tui.screens.plan.panes import narrowings
from dld_tui.screens.report.panes import ColumnsDialog
from dld_tui.widgets.dialogs.dialogs import Choice, ChoiceDialog
from dld_tui.widgets.dialogs.search import PickDialog
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.plan.details import PlanDetails
from dld_tui.widgets.plan.findings import PlanFindings
from dld_tui.widgets.plan.tables import SpecialPane
from dld_tui.widgets.plan.views import PlanCharts
from dld_tui.widgets.shell.host import host
from dld_tui.widgets.tasks import task

if TYPE_CHECKING:
    from dld_tui.core.report.records import Layer
    from dld_tui.screens.plan.loading import Loaded
    from dld_tui.widgets.layers.table import LayerPane
    from dld_tui.widgets.plan.graph import PlanGraphPane
    from dld_tui.widgets.shell.page import Page

    class _Base(Page):
        loaded: Loaded | None
        pane: str
        row: int | None

        @property
        def layer_pane(self) -> LayerPane: ...
        @property
        def graph(self) -> PlanGraphPane: ...
        def layer_at_cursor(self) -> Layer | None: ...
        def show_pane(self, name: str) -> None: ...
        def show_in_table(self, index: int | None) -> None: ...
        def read(self, model: Path | None = None) -> None: ...
else:
    _Base = object

_LETTERS = "123456789"
_LAYOUT = "plan.columns"


class PlanActions(_Base):
    """A mixin: the commands of the plan screen."""

    # --- to the model ---------------------------------------------------------------------------

    @task()
    async def action_go_to_node(self) -> None:
        """Show the layer's ONNX node in the model; asks which one when there are several."""
        layer = self.layer_at_cursor()
        if layer is None or not layer.nodes:
            return
        if len(layer.nodes) == 1:
            self.go_to_node(0)
            return
        more = len(layer.nodes) - len(_LETTERS)
        about = f"This layer computes {len(layer.nodes)} ONNX nodes."
        about += " The details list the others, too." if more > 0 else ""
        choices = [
            Choice(_LETTERS[n], f"{visible(link.op_type)}  {visible(link.label)}".strip(), str(n))
            for n, link in enumerate(layer.nodes[: len(_LETTERS)])
        ]
        answer = await self.tasks.ask(ChoiceDialog("Which node?", about, choices))
        if answer is not None:
            self.go_to_node(int(answer))

    def go_to_node(self, place: int) -> None:
        """Show one of the nodes of the layer in the model, which is asked for when not known."""
        loaded, layer = self.loaded, self.layer_at_cursor()
        if loaded is None or layer is None or place >= len(layer.nodes):
            return
        if loaded.model is None:
            self.action_choose_model()
            return
        link = layer.nodes[place]
        host(self).reveal(loaded.model, link.scope, link.node)

    @task()
    async def action_choose_model(self) -> None:
        """Ask for the ONNX model and look the nodes up in it."""
        start = str(self.path.parent) + os.sep if self.path is not None else ""
        hint = "path of the ONNX model that the engine was built from"
        path = await self.tasks.ask(OpenPathDialog("The model of the engine", start, hint))
        if path is not None:
            self.read(path)

    def action_again(self) -> None:
        """Read the files once more, as they are now."""
        self.read()

    # --- the table ------------------------------------------------------------------------------

    def action_filter(self) -> None:
        """Filter the layers while one types."""
        self.show_pane("layers")
        self.layer_pane.open_filter()

    @task()
    async def action_narrow(self) -> None:
        """Ask for a value that the shown layers have in common."""
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

    def action_group(self) -> None:
        """Group the layers by the next thing."""
        self.show_pane("layers")
        self.layer_pane.next_grouping()

    @task()
    async def action_columns(self) -> None:
        """Choose the columns of the layer table."""
        pane = self.layer_pane
        keys = await self.tasks.ask(ColumnsDialog(pane.columns, pane.known))
        if keys is not None and keys != pane.columns:
            pane.set_columns(keys)
            host(self).state.put("layouts", _LAYOUT, {"keys": list(keys)})

    def restore_columns(self) -> None:
        """Take the columns that the user chose before."""
        keys = host(self).state.get("layouts", _LAYOUT).get("keys")
        if isinstance(keys, list):
            self.layer_pane.set_columns([str(key) for key in keys])

    def action_clear(self) -> None:
        """Take back marks, the filter, the group; stop reading."""
        if self.loaded is None:
            self.tasks.cancel("load")
        else:
            self.layer_pane.clear()

    # --- panes ----------------------------------------------------------------------------------

    def action_show_other(self) -> None:
        """Show the layer in the graph, or the layer of another pane in the table."""
        if self.pane == "layers":
            self.show_pane("graph")
        else:
            self.show_in_table(self.row)

    def action_details(self) -> None:
        """Go to the details of the layer."""
        details = self.query_one(PlanDetails)
        if not details.display or not details.region.area:
            self.show_pane("layers")
        self.call_after_refresh(details.focus)

    def action_next_table(self) -> None:
        """Show the next chart, or the next special table."""
        if self.pane == "tables":
            self.query_one(SpecialPane).next_table()
        else:
            self.show_pane("charts")
            self.query_one(PlanCharts).next_chart()

    def action_unit(self) -> None:
        """Switch the chart between milliseconds and percent."""
        self.query_one(PlanCharts).toggle_unit()

    def row_of_finding(self) -> int | None:
        """Return the layer of the finding under the cursor; None when it is of the engine."""
        finding = self.query_one(PlanFindings).finding_at_cursor()
        if self.loaded is None or finding is None:
            return None
        index = finding.layer if finding.layer is not None else next(iter(finding.layers), None)
        layers = enumerate(self.loaded.plan.layers)
        return next((row for row, layer in layers if layer.index == index), None)

    def action_context_menu(self) -> None:
        """Show the commands for the layer under the cursor."""
        layer = self.layer_at_cursor()
        if layer is not None:
            open_menu(self.app, self, "layer", layer.name)

    def on_line_view_menu_asked(self, event: LineView.MenuAsked) -> None:
        """Show the menu on a right click."""
        event.stop()
        self.call_after_refresh(self.action_context_menu)

    # --- files ----------------------------------------------------------------------------------

    def _stem(self) -> str:
        return visible((self.path or Path("engine")).name.partition(".")[0]) or "engine"

    def _ask(self, title: str, name: str, write: Write) -> None:
        ask_where(self, title, f"Relative to {os.getcwd()}.", name, write)

    def action_save_csv(self) -> None:
        """Ask for a path and write the shown table, filtered and sorted as it is."""
        found = self._shown_csv()
        if found is None:
            return
        name, text = found

        self._ask(
            "Save as CSV",
            f"{self._stem()}{name}.csv",
            lambda path, over: write_text(path, text, overwrite=over),
        )

    def _shown_csv(self) -> tuple[str, str] | None:
        """Return what the shown table adds to the name of a file, and its rows as CSV."""
        loaded, pane = self.loaded, self.layer_pane
        if loaded is None:
            return None
        if self.pane == "tables":
            special = self.query_one(SpecialPane).shown_table()
            return None if special is None else (f"-{special.name}", csv_of(special))
        if pane.by != "layer":
            return f"-by-{pane.by}", groups_csv(pane.shown_groups())
        return "", csv_of(layer_table(pane.shown_layers(), "engine csv"))

    def action_export(self) -> None:
        """Ask for a path and write the whole engine as one HTML page."""
        loaded = self.loaded
        if loaded is None:
            return

        self._ask(
            "Export the engine as a page",
            f"{self._stem()}.html",
            lambda path, over: _write_page(loaded, path, over),
        )

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
            seen = shown_in(pane, title, as_rows=kind == "text")
            picture = seen if isinstance(seen, Picture) else picture_of(seen, kind, look)
            return list(write_bytes(path, picture.data, overwrite=overwrite))

        self._ask("Save picture: .svg, .png, .jpg or .txt", f"{self._stem()}.svg", write)

    @task()
    async def action_compare_with(self) -> None:
        """Choose another engine or report and compare this one with it."""
        await ask_reports(host(self), self.path)

    def complain(self, error: DldError) -> None:
        """Say what could not be done."""
        self.notify(visible(str(error)), severity="warning", timeout=6, markup=False)


def _write_page(loaded: Loaded, path: Path, overwrite: bool) -> Sequence[str]:
    from dld_tui.core.plan.html import write_page

    return write_page(loaded.plan, loaded.findings, loaded.mapping, path, overwrite=overwrite)
