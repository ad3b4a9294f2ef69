"""Navigation in a model: jumps, their history, opening subgraphs and function bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING

from textual.timer import Timer

from dld_tui.commands.command import table
from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.document.local_functions import function_of
from dld_tui.core.errors import EditError
from dld_tui.core.text import clip, visible
from dld_tui.screens.workspace.controller import Controller
from dld_tui.screens.workspace.panes import Panes
from dld_tui.screens.workspace.state import Cursor, is_alive
from dld_tui.widgets.explorer.findings import Findings
from dld_tui.widgets.explorer.pane import Explorer
from dld_tui.widgets.parameters.descriptions import place_text
from dld_tui.widgets.shell.command_dispatch import holding

if TYPE_CHECKING:
    from dld_tui.core.document import Node, Scope


_REST_S = 0.1
"""The other panes follow the cursor when it has rested so long: holding a key down stays quick, and
a move sends two rows."""
_MOST_CHOICES = 9
_MOST_PLACES = 200


@dataclass(frozen=True)
class Place:
    """A place in the history of jumps."""

    root: Scope
    node: Node | None


@dataclass(eq=False)
class Navigation(Controller):
    """Moves the cursor, and lets the other panes follow."""

    COMMAND_TABLE = table(
        "workspace",
        ("go.back", "navigation.go_back", "backspace", "history", "back",
         "Go back to the place before the last jump.", "previous place, jump back"),
        ("go.forward", "navigation.go_forward", "shift+backspace,B", "forward", "forward",
         "Go forward again."),
        ("go.source", "navigation.go_source", "left_square_bracket", "node", "to source",
         "Go to the producer of the first input.", "producer, what makes this"),
        ("go.destination", "navigation.go_destination", "right_square_bracket", "node",
         "to destination", "Go to a consumer of the output.", "consumer, user, what uses this"),
        ("go.body", "navigation.open_body", "s", "body", "open subgraph",
         "Open the node's subgraph or function.", "open body, subgraph body, enter, go into"),
        common="document", menus={"go.body": "scope"},
    )  # fmt: skip

    panes: Panes
    _rest_timer: Timer | None = None
    _when_rested: Callable[[], None] = field(default=lambda: None, init=False)
    _back: list[Place] = field(default_factory=list)
    _forward: list[Place] = field(default_factory=list)
    _waiting: tuple[Sequence[str], str] | None = None

    def facts(self, cursor: Cursor) -> set[str]:
        """Return whether the node has a body, and whether there are places to go back to."""
        node = cursor.node
        return holding(
            body=node is not None and self.body_of(node) is not None,
            history=bool(self._back),
            forward=bool(self._forward),
        )

    def follow_cursor(self, event: Explorer.Selected) -> None:
        """Show what the cursor is on, once it rests."""
        subject = event.node if event.node is not None else event.scope
        self.when_rested(lambda: self._rested(subject))

    def when_rested(self, action: Callable[[], None]) -> None:
        """Do something when no cursor has moved for a moment; only the last one asked for."""
        if self._rest_timer is not None:
            self._rest_timer.stop()
        self._when_rested = action
        self._rest_timer = self.page.set_timer(_REST_S, self.catch_up)

    def catch_up(self) -> bool:
        """Let the other panes follow the cursor now."""
        if self._rest_timer is None:
            return False
        self._rest_timer.stop()
        self._rest_timer = None
        self._when_rested()
        return True

    def _rested(self, subject: Node | Scope) -> None:
        if is_alive(subject):
            self.show_subject(subject)

    @property
    def follows(self) -> bool:
        """Whether the parameters pane shows what the cursor is on."""
        return self._rest_timer is None

    def show_subject(self, subject: Node | Scope) -> None:
        """Show a node or a scope in the parameters pane."""
        from dld_tui.core.document import Node

        self.panes.parameters.show(subject)
        scope = subject.scope if isinstance(subject, Node) else subject
        self.page.crumb(place_text(scope))
        self.page.facts_changed()
        self.model.subject_shown.send(subject)

    def place(self) -> Place:
        """Return the current place."""
        return Place(self.model.listing.root, self.panes.explorer.node)

    def remember(self) -> None:
        """Remember the current place, before a jump."""
        here = self.place()
        if not self._back or self._back[-1] != here:
            self._back.append(here)
            del self._back[:-_MOST_PLACES]
        self._forward.clear()

    def go_to(self, node: Node, *, remember: bool = True) -> None:
        """Move the explorer's cursor to a node, wherever it is in the model."""
        if remember and node is not self.panes.explorer.node:
            self.remember()
        root = self.model.listing.root
        if not _is_within(node.scope, root):
            self.panes.explorer.show_root(_outermost(node.scope))
        if not self.panes.explorer.reveal(node):
            self.panes.explorer.clear_filters()
            self.say("The filter hid the node, so it was cleared")
            self.panes.explorer.reveal(node)
        self.show_subject(node)
        if self.panes.graph.has_keys:  # it does not follow the others then
            self.panes.graph.reveal(node)

    def open_scope(self, scope: Scope, *, remember: bool = True) -> None:
        """Show the nodes of a scope alone."""
        if remember:
            self.remember()
        self.panes.explorer.show_root(scope)
        self.show_subject(self.panes.explorer.node or scope)

    def reveal(self, scope_path: Sequence[str], node_ref: str) -> None:
        """Go to a node that a report or a finding names; waits until the model is open."""
        if not self.model.is_open:
            self._waiting = (scope_path, node_ref)
            return
        try:
            scope = self.document.scope_at(scope_path)
        except EditError as error:
            self.complain(error)
            return
        node = scope.find(node_ref)
        if node is None:
            name = clip(visible(node_ref), 60, keep="middle")
            self.say(f"Node {name} no longer exists", warning=True)
        else:
            self.go_to(node)

    def reveal_waiting(self) -> None:
        """Go where somebody wanted to go before the model was open."""
        if self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            self.reveal(*waiting)

    def go_back(self) -> None:
        """Go back to before the last jump."""
        self._travel(self._back, self._forward)

    def go_forward(self) -> None:
        """Go forward again."""
        self._travel(self._forward, self._back)

    def _travel(self, source: list[Place], other: list[Place]) -> None:
        here = self.place()
        while source:
            place = source.pop()
            if place == here or not self._exists(place):
                continue
            other.append(here)
            if place.root is not self.model.listing.root:
                self.panes.explorer.show_root(place.root)
            if place.node is not None:
                self.go_to(place.node, remember=False)
            else:
                self.panes.explorer.list.go_to_key(("scope", place.root))
                self.show_subject(place.root)
            break
        self.page.facts_changed()

    @staticmethod
    def _exists(place: Place) -> bool:
        return is_alive(place.root) and (place.node is None or is_alive(place.node))

    def go_source(self) -> None:
        """Go to the node that makes an input; asks which when there are several."""
        cursor = self.cursor
        names = cursor.node.inputs if cursor.node is not None else ()
        if cursor.pointed is not None:
            names = (cursor.pointed.value,)
        if cursor.scope is None:
            return
        definitions = [cursor.scope.resolve(name) for name in names if name]
        sources = [definition.node for definition in definitions if definition is not None]
        self._go_one_of("Source", [source for source in sources if source is not None])

    def go_destination(self) -> None:
        """Go to a node that uses an output; asks which when there are several."""
        cursor, node = self.cursor, self.cursor.node
        if cursor.link is not None:
            self._go_one_of("Destination", [node] if node is not None else [])
            return
        scope = cursor.scope
        if scope is None:
            return
        names = node.outputs if node is not None else (cursor.value,)
        uses = [use.node for name in names if name for use in scope.users(name)]
        self._go_one_of("Destination", uses)

    def _go_one_of(self, title: str, nodes: Sequence[Node]) -> None:
        nodes = list(dict.fromkeys(nodes))
        if not nodes:
            self.say("Nothing is connected here")
        elif len(nodes) == 1:
            self.go_to(nodes[0])
        else:
            self._choose_one(
                title, [(_node_label(node), partial(self.go_to, node)) for node in nodes]
            )

    def _choose_one(self, title: str, places: Sequence[tuple[str, Callable[[], None]]]) -> None:
        shown = places[:_MOST_CHOICES]
        more = len(places) - len(shown)
        message = f"{len(places)} nodes" + (f", the first {len(shown)} of them" if more else "")
        options = [(str(at), label, go) for at, (label, go) in enumerate(shown, 1)]
        self.ask_which(title, message, options)

    @staticmethod
    def body_of(node: Node) -> Scope | None:
        """Return the first subgraph of a node, or the function that it calls; None without one."""
        bodies = node.subgraphs()
        return bodies[0] if bodies else function_of(node)

    def open_body(self) -> None:
        """Open the node's subgraph or function; asks which when there are several."""
        row = self.cursor.row
        node = self.cursor.node
        if row is not None and row.scope is not None:
            self.open_scope(row.scope)
        elif node is not None and len(node.subgraphs()) > 1:
            options = [
                (
                    f"{visible(body.title)}  {fmt.plural(len(body.nodes), 'node')}",
                    partial(self.open_scope, body),
                )
                for body in node.subgraphs()
            ]
            self._choose_one("Open which body?", options)
        elif node is not None and (body := self.body_of(node)) is not None:
            self.open_scope(body)

    def open_node(self, event: Explorer.Opened) -> None:
        """Go to the node's parameters."""
        self.show_subject(event.node)
        self.panes.focus("parameters")

    def go_to_finding(self, event: Findings.Chosen) -> None:
        """Go to the node or scope of a finding."""
        finding = event.finding
        if finding.node is not None and is_alive(finding.node):
            self.go_to(finding.node)
        elif finding.scope is not None and is_alive(finding.scope):
            self.open_scope(finding.scope)


def _is_within(scope: Scope, root: Scope) -> bool:
    """Return whether the explorer lists the nodes of a scope when it shows `root`."""
    if root.kind == "graph" and _outermost(scope).kind == "function":
        return True
    inner: Scope | None = scope
    while inner is not None:
        if inner is root:
            return True
        inner = inner.parent
    return False


def _outermost(scope: Scope) -> Scope:
    while scope.parent is not None:
        scope = scope.parent
    return scope


def _node_label(node: Node) -> str:
    label = visible(node.name or next(filter(None, node.outputs), ""))
    return f"{visible(node.op_type)}  {clip(label, 50, keep='middle')}"
