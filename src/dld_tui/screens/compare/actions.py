"""What one can do with a comparison: choose what is compared, go to a layer, filter, save."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from dld_tui.core.compare.comparison import MISMATCH
from dld_tui.core.compare.engines import PLACE
from dld_tui.core.compare.export import comparison_csv
from dld_tui.core.compare.model import Row
from dld_tui.core.files.writer import write_text
from dld_tui.core.paths import apart, near
from dld_tui.core.report.records import Layer, NodeLink
from dld_tui.core.text import visible
from dld_tui.screens.files import ask_where
from dld_tui.screens.home.welcome import OpenPathDialog
from dld_tui.screens.openers import OPENERS
from dld_tui.widgets.dialogs.search import PickDialog, PickItem
from dld_tui.widgets.report.compare import ComparePane
from dld_tui.widgets.shell.host import Host, host
from dld_tui.widgets.tasks import task

_SCOPES = ("report", "plan")
"""Pages whose files can be compared."""
_OTHER = ""
"""The key of the row that asks for a path."""


async def ask_reports(services: Host, first: Path | None) -> None:
    """Ask for two reports, or for one to compare `first` with, and compare them."""
    from dld_tui.screens.compare.page import CompareScreen

    one = first or await ask_report(services, "Compare: the first report", [])
    if one is None:
        return
    other = await ask_report(services, f"Compare {visible(one.name)} with", [one])
    if other is not None:
        services.add_page(CompareScreen([one, other]))


async def ask_report(services: Host, title: str, but: Collection[Path]) -> Path | None:
    """Ask for a report: one that is open or was, or any by its path.

    Args:
        services: Know what is open, and ask.
        title: The question.
        but: Reports that are not offered.
    """
    known = {os.path.abspath(path) for path in but}
    offered = [path for path in dict.fromkeys(_known(services)) if path not in known]
    if offered:
        names = apart([os.path.basename(path) for path in offered], offered)
        items = [_item(path, name) for path, name in zip(offered, names, strict=True)]
        other = PickItem(_OTHER, [("another file …", "key")], "")
        pick = PickDialog(title, lambda: items, placeholder="name of a report", last=[other])
        key = await services.tasks.ask(pick)
        if key != _OTHER:
            return None if key is None else Path(str(key))
    about = "path of a report or of layer information"
    return await services.tasks.ask(OpenPathDialog(title, placeholder=about))


def _known(host: Host) -> Iterator[str]:
    openers = (OPENERS["REPORT"], OPENERS["ENGINE_LAYERS"])
    for page in host.pages:
        if page.SCOPE in _SCOPES and page.path is not None:
            yield os.path.abspath(page.path)
    for file in host.state.recent():
        if OPENERS.get(file.kind) in openers and os.path.lexists(file.path):
            yield file.path


def _item(path: str, name: str) -> PickItem:
    folder = near(os.path.dirname(path))
    return PickItem(path, [(visible(name), "strong"), (f"  {visible(folder)}", "dim")], path)


if TYPE_CHECKING:
    from dld_tui.core.compare.comparison import Comparison
    from dld_tui.core.compare.subject import Subject
    from dld_tui.widgets.shell.page import Page

    class _Base(Page):
        paths: list[Path]
        model: Path | None
        subjects: list[Subject]
        comparison: Comparison | None

        def read(self) -> None: ...
        def group_by(self, by: str) -> None: ...
else:
    _Base = object

_Place: TypeAlias = "tuple[int, Layer]"
"""(report, layer)."""


class CompareActions(_Base):
    """A mixin: the commands of the comparison."""

    def row(self) -> Row | None:
        """Return the row under the cursor."""
        if not self.is_mounted or self.comparison is None:
            return None
        return self.query_one(ComparePane).row_at_cursor()

    # To a layer and to a node

    def _places(self) -> Iterator[_Place]:
        """Yield the layers of the row at the cursor, those of the compared report first."""
        row, comparison = self.row(), self.comparison
        if row is None or comparison is None:
            return
        order = [comparison.target, comparison.base, *range(len(self.subjects))]
        for report in dict.fromkeys(order):
            layers = [self.subjects[report].layers[index] for index in row.cells[report].layers]
            for layer in sorted(layers, key=lambda layer: -(layer.time_ms or 0.0)):
                yield report, layer

    def layer_place(self) -> _Place | None:
        """Return the layer to show for the row at the cursor: the longest, or None."""
        return next(self._places(), None)

    def node_place(self) -> tuple[Path, NodeLink] | None:
        """Return the model and the node to show for the row at the cursor, or None."""
        by = self.query_one(ComparePane).by if self.is_mounted else ""
        row = self.row()
        if row is None or by not in ("layer", "node", MISMATCH):
            return None
        for report, layer in self._places():
            path = self.subjects[report].model.get("path")
            links = [link for link in layer.nodes if by != "node" or link.label == row.key]
            if isinstance(path, str) and path and links:
                return Path(path), links[0]
        return None

    def activate(self) -> None:
        """Go to the node or the layer of a row, or show the layers of a group."""
        pane, row = self.query_one(ComparePane), self.row()
        if row is None:
            return
        if pane.by not in ("layer", "node", MISMATCH):
            pane.open_group(row)
        elif self.node_place() is not None:
            self.action_go_to_node()
        else:
            self.action_show_layer()

    def action_show_layer(self) -> None:
        """Show the layer in the compared report, or in the base when only that has it."""
        place = self.layer_place()
        if place is not None:
            report, layer = place
            index = layer.details.get(PLACE, layer.index)
            assert isinstance(index, int)
            host(self).reveal_layer(self.paths[report], index)

    def action_go_to_node(self) -> None:
        """Show the ONNX node in the model."""
        found = self.node_place()
        if found is None:
            return
        path, link = found
        if os.path.lexists(path):
            host(self).reveal(path, link.scope, link.node)
        else:
            self.notify("The model is no longer where the report says", severity="warning")

    # Rows

    def action_filter(self) -> None:
        """Filter the rows while one types."""
        self.query_one(ComparePane).open_filter()

    def action_sure(self) -> None:
        """Show only what changed by more than noise, or all again."""
        pane = self.query_one(ComparePane)
        pane.sure_only = not pane.sure_only
        pane.fill()

    def action_clear(self) -> None:
        """Take back the filter, the noise, the group; stop reading."""
        if self.comparison is None:
            self.tasks.cancel("load")
            return
        pane = self.query_one(ComparePane)
        by = pane.take_back()
        if by == pane.by:
            pane.fill()
        elif by is not None:
            self.group_by(by)

    def action_save_csv(self) -> None:
        """Ask for a path and write the shown rows, filtered and sorted as they are."""
        comparison = self.comparison
        if comparison is None:
            return
        pane = self.query_one(ComparePane)
        rows = pane.shown_rows()
        text = comparison_csv(comparison, rows, pane.by)
        about = f"{len(rows):,} rows as they are shown, all columns. Relative to {os.getcwd()}."
        ask_where(
            self,
            "Save as CSV",
            about,
            f"compare-by-{pane.by}.csv",
            lambda path, overwrite: write_text(path, text, overwrite=overwrite),
        )

    def action_export(self) -> None:
        """Ask for a path and write the whole comparison as one HTML page."""
        comparison = self.comparison
        if comparison is None:
            return

        about = f"One HTML page that needs nothing else. Relative to {os.getcwd()}."
        ask_where(self, "Export the comparison", about, "compare.html", partial(_write, comparison))

    # Reports

    @task()
    async def action_add_report(self) -> None:
        """Compare with one more report."""
        path = await ask_report(host(self), "Compare with", self.paths)
        if path is not None:
            self.paths.append(path)
            self.read()

    @task()
    async def action_choose_model(self) -> None:
        """Ask for the model that the engines were built from, and find their nodes in it."""
        from dld_tui.screens.home.welcome import OpenPathDialog

        dialog = OpenPathDialog("The model of the engines", placeholder="path of an ONNX model")
        path = await self.tasks.ask(dialog)
        if path is not None:
            self.model = path
            self.read()

    def action_again(self) -> None:
        """Read the reports once more, as they are now."""
        self.read()


def _write(comparison: Comparison, path: Path, overwrite: bool) -> list[str]:
    from dld_tui.core.compare.export import comparison_page

    return write_text(path, comparison_page(comparison), overwrite=overwrite)
