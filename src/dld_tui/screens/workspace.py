"""One open model: explorer, parameters and findings, and all that can be done with it."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from textual import on
from textual.widget import Widget
from textual.worker import Worker

from dld_tui.core import fmt
from dld_tui.core.checks import Finding
from dld_tui.core.document import Change
from dld_tui.core.document.journal import LeftJournal, discard
from dld_tui.core.document.scripts import ReplayResult, replay
from dld_tui.core.errors import CancelledError, DldError
from dld_tui.core.graph.build import constants_of
from dld_tui.core.new_model import NewModel
from dld_tui.core.types import CancelCheck, ProgressCallback
from dld_tui.screens.workspace_accuracy import Accuracy
from dld_tui.screens.workspace_findings import Checking
from dld_tui.screens.workspace_functions import Functions
from dld_tui.screens.workspace_graph import Graphs
from dld_tui.screens.workspace_links import Linking
from dld_tui.screens.workspace_metadata import Metadata
from dld_tui.screens.workspace_opening import OpenedModel, open_model
from dld_tui.screens.workspace_panes import Area
from dld_tui.screens.workspace_save import Saving
from dld_tui.screens.workspace_selection import Selecting
from dld_tui.screens.workspace_tensors import Tensors
from dld_tui.screens.workspace_tools import Tooling
from dld_tui.screens.workspace_types import Typing
from dld_tui.widgets.dialogs import Choice, ChoiceDialog
from dld_tui.widgets.explorer import Explorer
from dld_tui.widgets.explorer_items import Sort, View
from dld_tui.widgets.explorer_model import ExplorerModel
from dld_tui.widgets.filter_dialog import FilterDialog
from dld_tui.widgets.findings import Findings, NoticeLine
from dld_tui.widgets.graph_pane import GraphPane
from dld_tui.widgets.host import host
from dld_tui.widgets.node_filter import NodeFilter
from dld_tui.widgets.parameters import Parameters

_EXPLORER_STATE = ("layouts", "explorer")


class WorkspaceScreen(
    Saving,
    Linking,
    Selecting,
    Functions,
    Tensors,
    Metadata,
    Typing,
    Tooling,
    Accuracy,
    Checking,
    Graphs,
):
    """The screen; a new model when there is no path."""

    CSS_PATH = "../styles/workspace.tcss"
    HELP = (
        "The model as a list of nodes, what is known of the node under the cursor, and what was "
        "found to be wrong. 1 3 4 go to a pane, m gives one all the room, < and > change its size."
    )

    def __init__(self, path: Path | str | None = None, *, new: NewModel | None = None) -> None:
        super().__init__(path)
        self._new = new
        self.tab_title = self.path.name if self.path is not None else "new model"

    def body(self) -> Iterable[Widget]:
        """Return the area of the panes, empty until the model is open."""
        yield Area()
        yield NoticeLine()

    # --- opening --------------------------------------------------------------------------------

    def on_mount(self) -> None:
        """Open the model on a thread."""
        self.recall_layout()
        opened: list[OpenedModel] = []
        listed = host(self).state.get(*_EXPLORER_STATE)

        def task(progress: ProgressCallback, cancelled: CancelCheck) -> None:
            arrange = partial(_recall_explorer, listed)
            opened.append(open_model(self.path, progress, cancelled, self._new, arrange))

        async def show() -> None:
            await self._opened(opened[0])

        def ended(error: DldError | None) -> None:
            if error is None:
                self.begin_graph(opened[0])
                _: Worker[None] = self.run_worker(show, group="opened", name="show the model")
                return
            host(self).close_page(self)
            if not isinstance(error, CancelledError):
                host(self).show_error(error, "Not opened")

        self.work(f"Opening {self.tab_title}", task, ended, line=False)

    async def _opened(self, opened: OpenedModel) -> None:
        """Show the model."""
        self.document = opened.document
        self.explorer = Explorer(opened.explorer, id="explorer")
        self.graph = GraphPane(id="graph")
        self.parameters = Parameters(preview_bytes=host(self).config.preview_bytes, id="parameters")
        self.parameters.summary = opened.summary
        self.findings = Findings(id="findings")
        with self.app.batch_update():  # each pane on its own would paint the whole screen
            await self.area.mount(self.explorer, self.graph, self.parameters, self.findings)
            if not self.is_attached:  # closed meanwhile
                self.document.close()
                return
            self.is_open = True
            self.tab_title = self.document.title
            self.tab_dirty = self.document.dirty
            self.tab_changed()
            self.lay_out()
            self.focus_first()
            self.show_subject(self.document.main)
            self.show_begun_graph()
        self.document.on_change.append(self.document_changed)
        self.reveal_waiting()
        if opened.left:
            self._ask_restore(opened.left[0])
        self.check()
        self.infer()
        _: Worker[None] = self.run_worker(opened.clean_up, thread=True, group="clean up")

    def on_unmount(self) -> None:
        """Stop what runs for this model, and close it."""
        self.cancel_work()
        if self.is_open:
            gc.unfreeze()
            # After a crash the next session offers the edits again.
            self.document.close(keep_journal=bool(self.app.return_code))

    # --- journals -------------------------------------------------------------------------------

    def _ask_restore(self, left: LeftJournal) -> None:
        steps = fmt.plural(len(left.lines), "edit")
        message = f"The last session ended without saving this model: {steps} can be made again."
        if not left.matches:
            message += " The file has changed since then: edits that no longer fit are left out."

        def answered(answer: str | None) -> None:
            if answer == "restore":
                self._restore(left)
            elif answer == "discard":
                discard(left)

        choices = [
            Choice("r", "make them again", "restore"),
            Choice("d", "throw them away", "discard"),
            Choice("l", "ask me the next time", ""),
        ]
        self.app.push_screen(ChoiceDialog("Unsaved edits were found", message, choices), answered)

    def _restore(self, left: LeftJournal) -> None:
        document = self.document
        results: list[ReplayResult] = []
        document.on_change.remove(self.document_changed)

        def task(progress: ProgressCallback, cancelled: CancelCheck) -> None:
            results.append(replay(document, left.lines))
            self.read_anew()

        def ended(error: DldError | None) -> None:
            document.on_change.append(self.document_changed)
            self.document_changed(Change("reset", None))
            if error is not None:
                host(self).show_error(error)
                return
            discard(left)
            self._say_restored(results[0])

        self.work("Making the edits again", task, ended)

    def _say_restored(self, result: ReplayResult) -> None:
        self.notify(f"{result.applied} of the journal's lines were made again", timeout=4)
        self.notices += [
            Finding("warning", "journal", f"line {number} no longer applies: {why}")
            for number, why in result.refused
        ]
        self.check()

    # --- the explorer's commands ----------------------------------------------------------------

    @on(Explorer.Arranged)
    def explorer_arranged(self, event: Explorer.Arranged) -> None:
        """Keep how nodes are listed for the next time."""
        event.stop()
        data: dict[str, Any] = {"view": event.view.name, "sort": event.sort.name}
        data["descending"] = event.descending
        host(self).state.put(*_EXPLORER_STATE, {**data, "constants": event.show_constants})

    def action_cycle_by(self) -> None:
        """List the nodes in the next way."""
        self.explorer.cycle_view()

    def action_toggle_constants(self) -> None:
        """Show or hide the Constant nodes."""
        self.explorer.toggle_constants()

    def action_toggle_constant(self) -> None:
        """Show or hide the constants of the node at the cursor, or the constant that it is on."""
        node = self.node
        constants = constants_of(node) if node is not None else []
        if not constants:
            self.notify("Nothing here is a constant or gets one", timeout=3)
            return
        shows = self.explorer.model.shows_constant
        shown = not all(shows(constant) for constant in constants)
        self.explorer.set_constants(constants, shown)
        did = "shown" if shown else "hidden"
        self.notify(f"{fmt.plural(len(constants), 'constant')} {did}", timeout=2)

    def action_filter(self) -> None:
        """Choose operator types and conditions."""
        nodes = [node for scope in self.document.scopes() for node in scope.nodes]

        def chosen(found: NodeFilter | None) -> None:
            if found is not None:
                self.explorer.set_filter(found)

        counts = self.explorer.model.count_kinds()
        self.app.push_screen(FilterDialog(nodes, counts, self.explorer.node_filter), chosen)

    def action_clear_filters(self) -> None:
        """Show all nodes again."""
        self.explorer.clear_filters()

    def action_documentation(self) -> None:
        """Show or hide the operator's documentation."""
        node = self.node
        if node is None:
            return
        self.show_subject(node)
        if not self.parameters.display:
            self.focus_pane("parameters")
        self.parameters.toggle_documentation()

    # --- the rest -------------------------------------------------------------------------------

    def action_stop(self) -> None:
        """Stop opening or saving."""
        self.cancel_work()

    def action_allow_links(self) -> None:
        """Read external data through links that leave the model's folder."""
        self.document.external.allow_linked = True
        self.parameters.rebuild()
        self.check()
        self.notify("Linked data is read now, and never written", timeout=4)

    def on_screen_resume(self, event: Any) -> None:
        """Look whether the file is still the same."""
        self.look_at_disk()

    def terminal_focused(self) -> None:
        """Look whether the file is still the same."""
        self.look_at_disk()


def _recall_explorer(data: Mapping[str, Any], model: ExplorerModel) -> None:
    """List the nodes as they were listed the last time."""
    model.view = next((view for view in View if view.name == data.get("view")), model.view)
    model.sort = next((sort for sort in Sort if sort.name == data.get("sort")), model.sort)
    model.descending = data.get("descending") is True
    model.set_show_constants(data.get("constants") is True)
