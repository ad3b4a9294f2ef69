"""The list of nodes: how it is arranged, filtered, and kept in step with the document."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dld_tui.commands.command import table
from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.document.summary import summarise
from dld_tui.core.model.graph.build import constants_of
from dld_tui.core.process.interpreter import collector_paused
from dld_tui.screens.workspace.controller import Controller, hears
from dld_tui.screens.workspace.navigation import Navigation
from dld_tui.screens.workspace.panes import Panes
from dld_tui.screens.workspace.state import Cursor, is_alive
from dld_tui.widgets.explorer.branches import Sort, View
from dld_tui.widgets.explorer.pane import Explorer
from dld_tui.widgets.explorer.state import ExplorerModel
from dld_tui.widgets.shell.command_dispatch import hint
from dld_tui.widgets.shell.page import host
from dld_tui.widgets.tasks import task

if TYPE_CHECKING:
    from dld_tui.core.model.document import DocumentChange, Node


STATE = ("layouts", "explorer")


@dataclass(eq=False)
class NodeList(Controller):
    """Arranges the nodes, and lists them again after edits."""

    COMMAND_TABLE = table(
        "workspace",
        ("view.filter", "node_list.filter", "f", "", "filter",
         "Filter by operator type and attributes."),
        ("view.constants", "node_list.toggle_constants", "C", "", "constants",
         "Show or hide all constant nodes."),
        ("view.constant", "node_list.toggle_constant", "", "named", "its constants",
         "Show or hide the constants of the node at the cursor, or this constant."),
        ("view.by", "node_list.cycle_view", "b", "", "list by", "List by type, name or name scope.",
         "group, by type, sort nodes"),
        ("view.documentation", "node_list.documentation", "D", "node", "documentation",
         "Show the operator's documentation.", "docs, operator documentation, what does this do"),
        ("view.clear_filters", "node_list.clear_filters", "", "", "clear filters",
         "Clear all filters and show every node.", "show all, reset filters"),
        common="document", menus={"view.filter": "scope"},
    )  # fmt: skip

    panes: Panes
    navigation: Navigation

    _anew: ExplorerModel | None = None
    """The rows of a model that has just taken the place of the document's."""

    def conditions(self, cursor: Cursor) -> set[str]:
        return {"filtered"} if self.model.listing.filtering else set()

    def cycle_view(self) -> None:
        """List the nodes in the next way."""
        self.panes.explorer.cycle_view()

    def toggle_constants(self) -> None:
        """Show or hide the Constant nodes and what is computed from them, in this model."""
        self.panes.explorer.toggle_constants()
        did = (
            "shown" if self.model.listing.show_constants else "folded into the nodes that use them"
        )
        self.say(hint(f"Constants of this model are {did}; {{view.constants}} toggles them"))

    def toggle_constant(self) -> None:
        """Show or hide the constants of the node at the cursor, or the constant that it is on."""
        node = self.cursor.node
        constants = constants_of(node) if node is not None else []
        if not constants:
            self.say("Nothing here is or uses a constant")
            return
        shown = not all(map(self.model.listing.shows_constant, constants))
        self.panes.explorer.set_constants(constants, shown)
        did = "shown" if shown else "hidden"
        self.say(f"{fmt.plural(len(constants), 'constant')} {did}", 2)

    @task()
    async def filter(self) -> None:
        """Choose operator types and conditions."""
        from dld_tui.widgets.explorer.node_filter import FilterDialog

        nodes = [node for scope in self.document.scopes() for node in scope.nodes]

        explorer = self.panes.explorer
        before = explorer.node_filter

        counts = self.model.listing.count_kinds()
        live = partial(explorer.set_filter, is_typed=True)
        answer = await self.ask(FilterDialog(nodes, counts, before, live))
        explorer.set_filter(before if answer is None else answer)

    def clear_filters(self) -> None:
        """Show all nodes again."""
        self.panes.explorer.clear_filters()

    def documentation(self) -> None:
        """Show or hide the operator's documentation."""
        node = self.cursor.node
        if node is None:
            return
        self.navigation.show_subject(node)
        if not self.panes.parameters.display:
            self.panes.focus("parameters")
        self.panes.parameters.toggle_documentation()

    @hears(Explorer.Arranged)
    def remember_arrangement(self, event: Explorer.Arranged) -> None:
        """Keep how nodes are listed for the next time that this model is open."""
        data: dict[str, Any] = {"view": event.view.name, "sort": event.sort.name}
        data |= {"descending": event.descending, "model": _key(self.document.path)}
        host(self.page).state.put(*STATE, data)

    def show_change(self, change: DocumentChange) -> None:
        """List what an edit, undo or redo changed, and show it in the parameters pane."""
        explorer, parameters = self.panes.explorer, self.panes.parameters
        before = explorer.node
        if not is_alive(explorer.model.root):
            explorer.model.set_root(self.document.main)
        explorer.apply_change(change, self._anew if change.is_everything else None)
        if change.is_everything:
            self._show_all_changed(before)
        if parameters.subject is not None and not is_alive(parameters.subject):
            self.navigation.show_subject(explorer.node or explorer.model.root)
        else:
            parameters.rebuild()

    def _show_all_changed(self, before: Node | None) -> None:
        """Leave nothing on the screen that is of the former model but the place in it."""
        explorer = self.panes.explorer
        self._anew = None
        explorer.list.set_marks(set())
        if not (explorer.model.filtering or explorer.model.unfolded):
            explorer.show_root(explorer.model.root)  # unfolds what there is room for
        if before is not None and before.scope is self.document.main and not is_alive(before):
            same = before.scope.nodes_named(before.name)
            if len(same) == 1:
                explorer.reveal(same[0])

    def reindex(self) -> None:
        """Index the whole model again; may run on a thread, before listeners are called.

        Large models would hold the event loop up.
        """
        from dld_tui.widgets.explorer.state import model_anew

        with collector_paused():
            anew = model_anew(self.model.listing)
            if not is_alive(anew.root):
                anew.set_root(self.document.main)
            texts = [(scope, scope.texts()) for scope in self.document.scopes()]
            for scope, read in texts:
                scope.index(read)
            anew.index(texts)
            self._anew = anew
            op_types = Counter(op_type for _, read in texts for _, op_type in read.kinds)
            self.panes.parameters.summary = summarise(self.document, op_types, constants=False)


def _key(path: Path | None) -> str:
    return os.path.abspath(path) if path is not None else ""


def recall_arrangement(
    data: Mapping[str, Any], constants: bool, listing: ExplorerModel, path: Path | None
) -> None:
    """List the nodes as they were listed the last time, with constants where the user wants it.

    Another model than the one of the last time is listed as every model is at first.
    """
    listing.set_show_constants(constants)
    if not path or data.get("model") != _key(path):
        return
    listing.view = next((view for view in View if view.name == data.get("view")), listing.view)
    listing.sort = next((sort for sort in Sort if sort.name == data.get("sort")), listing.sort)
    listing.descending = data.get("descending") is True
