"""What the cursor of a workspace points at, and the context menu for it."""

from __future__ import annotations

from textual import on

from dld_tui.core.document import Node, Scope
from dld_tui.core.text import visible
from dld_tui.core.types import JSON
from dld_tui.screens.context_menu import open_menu
from dld_tui.screens.workspace_base import WorkspaceBase
from dld_tui.screens.workspace_terminals import Terminals
from dld_tui.widgets.explorer_items import Branch
from dld_tui.widgets.line_view import LineView


class Pointing(Terminals):
    """The part of the workspace that knows what is under the cursor."""

    def facts(self) -> set[str]:
        """Return whether the context menu has something to be about."""
        facts = super().facts()
        if not self.is_open:
            return facts
        place, _ = self.place_under_cursor
        facts |= {"cursor"} if place else set()
        return facts | {"finding"} if place == "finding" else facts

    @property
    def place_under_cursor(self) -> tuple[str, str]:
        """What kind of thing the cursor is on (``""`` for none), and what it is called."""
        if self.in_parameters:
            return self._parameters_place()
        if self.findings.list.has_focus:
            finding = self.findings.current
            return ("finding", finding.rule) if finding is not None else ("", "")
        marked = len(self.explorer.list.marks)
        if self.graph.has_focus_within:
            node = self.graph.node
            if node is None:
                return "", ""
            return "node", f"{marked:,} marked nodes" if marked else _node_title(node)
        item = self.explorer.item
        if isinstance(item, Branch):
            return "scope", item.label or "(no name)"
        if item is None:
            return "", ""
        return "node", f"{marked:,} marked nodes" if marked else _node_title(item.node)

    def _parameters_place(self) -> tuple[str, str]:
        row, subject, terminal = self.parameters.row, self.subject, self.terminal
        if row is None or subject is None:
            return "", ""
        kind = row.key[0] if isinstance(row.key, tuple) and row.key else ""
        if terminal is not None:
            return ("boundary" if terminal.node is None else terminal.side), terminal.label
        if row.attribute or kind == "attribute":
            return "attribute", row.attribute or row.copied
        if kind == "initializer":
            return "initializer", row.copied
        if kind in ("metadata", "doc_string") or isinstance(kind, tuple):
            return "metadata", row.label or "doc string"
        return _subject_place(subject)

    def action_context_menu(self) -> None:
        """Show the commands for what is under the cursor."""
        place, title = self.place_under_cursor
        if not place or not open_menu(self.app, self, place, title):
            self.notify("There is nothing to do here", timeout=3)

    @on(LineView.MenuAsked)
    def menu_asked(self, event: LineView.MenuAsked) -> None:
        """Show the menu on a right click, once the details have followed the cursor."""
        event.stop()
        if self.is_open:
            self.call_after_refresh(self.action_context_menu)


def _subject_place(subject: Node | Scope) -> tuple[str, str]:
    if isinstance(subject, Node):
        return "node", _node_title(subject)
    return "scope", visible(subject.title)


def _node_title(node: Node) -> str:
    name = node.name or next(filter(None, node.outputs), "")
    return f"{visible(node.op_type)} {visible(name)}"


def chosen_nodes(screen: WorkspaceBase) -> list[Node]:
    """Return the marked nodes, or the one that commands act on."""
    marked = screen.explorer.marked if not screen.in_parameters else []
    node = screen.node
    return marked or ([node] if node is not None else [])


def by_scope(nodes: list[Node]) -> dict[Scope, list[JSON]]:
    """Return the refs of nodes by their scope."""
    found: dict[Scope, list[JSON]] = {}
    for node in nodes:
        found.setdefault(node.scope, []).append(node.ref)
    return found
