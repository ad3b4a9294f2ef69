"""What commands and charts of a page of results do with its table of layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dld_tui.core import fmt
from dld_tui.core.text import visible
from dld_tui.screens.home.palette import open_menu
from dld_tui.widgets.dialogs.dialogs import Choice, ChoiceDialog
from dld_tui.widgets.shell.page import host
from dld_tui.widgets.tasks import task

if TYPE_CHECKING:
    from dld_tui.screens.results.results_page import ResultsPage

_LETTERS = "123456789"


class LayerCommands:
    """The commands of the pane ``layers`` of a page; those of the layer at its cursor, too."""

    def __init__(self, page: ResultsPage[Any]) -> None:
        self.page = page
        self.tasks = page.tasks
        self._awaited: int | None = None
        """The layer to go to when the file is read."""

    def filter(self) -> None:
        """Filter the layers while one types."""
        self.page.show_pane("layers")
        self.page.layer_pane.open_filter()

    def group(self) -> None:
        """Group the layers by the next thing."""
        self.page.show_pane("layers")
        self.page.layer_pane.next_grouping()

    def clear(self) -> None:
        """Take back marks, the filter, the group; stop reading."""
        if not self.page.stop_reading():
            self.page.layer_pane.clear()

    @task()
    async def columns(self) -> None:
        """Choose the columns of the table."""
        from dld_tui.widgets.results.layers import ColumnsDialog  # lazy: many pages have no layers

        page, pane = self.page, self.page.layer_pane
        keys = await self.tasks.ask(ColumnsDialog(pane.columns, pane.known))
        if keys is not None and keys != pane.columns:
            pane.set_columns(keys)
            host(page).state.put("layouts", f"{page.SCOPE}.columns", {"keys": list(keys)})

    def recall_columns(self) -> None:
        """Take the columns that the user chose before."""
        page = self.page
        keys = host(page).state.get("layouts", f"{page.SCOPE}.columns").get("keys")
        if isinstance(keys, list):
            page.layer_pane.set_columns([str(key) for key in keys])

    def reveal(self, index: int) -> None:
        """Go to a layer in the table, as soon as the file is read."""
        self._awaited = index
        self.show_awaited()

    def show_awaited(self) -> None:
        """Go to the layer that was asked for, if the file is read."""
        index = self._awaited
        if index is not None and self.page.loaded is not None:
            self._awaited = None
            if 0 <= index < len(self.page.layer_pane.all_layers):
                self.show(index)

    def show(self, index: int | None) -> None:
        """Go to a layer in the table, without a filter that hides it."""
        if index is None:
            self.page.notify("This is about the whole engine", timeout=3)
            return
        self.page.layer_pane.go_to(index, clear=True)
        self.page.show_pane("layers")

    def show_type(self, type_: str) -> None:
        """Show the layers of a type."""
        self.page.layer_pane.set_filter("", ("type", type_))
        self.page.show_pane("layers")

    @task()
    async def go_to_node(self) -> None:
        """Show the layer's ONNX node in the model; asks which one when there are several."""
        layer = self.page.layer_at_cursor()
        if layer is None or not layer.nodes:
            return
        place = 0
        if len(layer.nodes) > 1:
            about = f"{visible(layer.name)} computes {fmt.plural(len(layer.nodes), 'ONNX node')}."
            choices = [
                Choice(letter, f"{visible(link.op_type)}  {visible(link.label)}".strip(), str(at))
                for at, (letter, link) in enumerate(zip(_LETTERS, layer.nodes, strict=False))
            ]
            answer = await self.tasks.ask(ChoiceDialog("Which node?", about, choices))
            if answer is None:
                return
            place = int(answer)
        await self.page.show_node(layer.nodes[place])

    def open_menu(self) -> None:
        """Show the menu of the layer."""
        layer = self.page.layer_at_cursor()
        if layer is not None:
            open_menu(self.page.app, self.page, "layer", layer.name)
