"""Where the cursor of a workspace is, what follows it, and jumps between places."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from textual.message import Message
from textual.timer import Timer

from dld_tui.commands.command import table
from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import EditError
from dld_tui.core.model.document.local_functions import body_of
from dld_tui.core.text import clip, visible
from dld_tui.screens.workspace import layout
from dld_tui.screens.workspace.controller import Answer, Controller, hears
from dld_tui.screens.workspace.panes import Panes
from dld_tui.screens.workspace.state import Cursor, is_alive
from dld_tui.widgets.explorer.branches import Branch
from dld_tui.widgets.explorer.findings import Findings
from dld_tui.widgets.explorer.pane import Explorer
from dld_tui.widgets.explorer.state import ExplorerModel
from dld_tui.widgets.graph.pane import GraphPane
from dld_tui.widgets.graph.places import GraphPlace
from dld_tui.widgets.lists.line_view import LineView, ListPlace
from dld_tui.widgets.parameters.descriptions import place_text
from dld_tui.widgets.parameters.pane import Parameters, ParametersPlace
from dld_tui.widgets.shell.command_dispatch import holding
from dld_tui.widgets.tasks import task

if TYPE_CHECKING:
    from dld_tui.core.model.document import Node, Scope


_REST_S = 0.1
"""The other panes follow the cursor when it has rested so long: holding a key down stays quick, and
a move sends two rows."""
_MOST_CHOICES = 9
_MOST_PLACES = 200


@dataclass(frozen=True)
class Bookmark:
    """Where the cursor and the marks were."""

    root: Scope
    """What the list of nodes showed."""
    row: ListPlace
    parameters: ParametersPlace
    graph: GraphPlace | None
    finding: Hashable
    pane: str
    """The name of the pane that had the keys."""


@dataclass(frozen=True)
class Place:
    """A place in the history of jumps."""

    root: Scope
    node: Node | None


@dataclass(eq=False)
class Navigation(Controller):
    """Moves the cursors of the panes, lets the other panes follow, and remembers places."""

    COMMAND_TABLE = (
        *table(
            "workspace",
            ("go.back", "navigation.go_back", "backspace", "history", "back",
             "Go back to the place before the last jump.", "previous place, jump back"),
            ("go.forward", "navigation.go_forward", "shift+backspace,B", "forward", "forward",
             "Go forward again."),
            ("go.source", "navigation.go_source", "left_square_bracket", "named", "to source",
             "Go to the producer of the first input.", "producer, what makes this"),
            ("go.destination", "navigation.go_destination", "right_square_bracket", "named",
             "to destination", "Go to a consumer of the output.", "consumer, user, what uses this"),
            ("go.body", "navigation.open_body", "s", "body", "open subgraph",
             "Open the node's subgraph or function.", "open body, subgraph body, enter, go into"),
            common="document",
            menus={"go.body": "scope"},
        ),
        *table(
            "workspace",
            ("pane.1", "navigation.go_to_pane 1", "1", "", "nodes", "Focus the list of nodes.",
             "nodes, explorer, tree, list of nodes"),
            ("pane.2", "navigation.go_to_pane 2", "2", "", "graph", "Focus the graph.",
             "network, show graph, canvas"),
            ("pane.3", "navigation.go_to_pane 3", "3", "", "node",
             "Focus the parameters of the node.", "details, properties of the node, node details"),
            ("pane.next", "navigation.next 1", "tab", "", "next pane",
             "Focus the next pane, even a hidden one."),
            ("pane.previous", "navigation.next -1", "shift+tab", "", "previous pane",
             "Focus the previous pane, even a hidden one."),
        ),
    )  # fmt: skip

    panes: Panes

    _rest_timer: Timer | None = None
    _when_rested: Callable[[], None] = field(default=lambda: None, init=False)
    _back: list[Place] = field(default_factory=list)
    _forward: list[Place] = field(default_factory=list)
    _waiting: tuple[Sequence[str], str] | None = None

    @property
    def listing(self) -> ExplorerModel:
        """The scope that is listed, its order and its filters."""
        return self.panes.explorer.model

    @property
    def cursor(self) -> Cursor:
        """What the cursor is on."""
        from dld_tui.core.model.document import Node

        subject, item = self.panes.parameters.subject, self.panes.explorer.item
        in_parameters = self.panes.parameters.list.has_focus
        in_graph = self.panes.graph.has_focus_within
        in_findings = self.panes.findings.list.has_focus
        node = self.panes.graph.node if in_graph else self.panes.explorer.node
        link = self.panes.graph.links.terminal if in_graph else None
        if link is not None:
            node = link.node
        if in_parameters:
            node = subject if isinstance(subject, Node) else None
        return Cursor(
            subject=subject,
            node=node,
            in_parameters=in_parameters,
            in_findings=in_findings,
            in_graph=in_graph,
            row=self.panes.parameters.row if in_parameters else None,
            branch=item if isinstance(item, Branch) else None,
            finding=self.panes.findings.current if in_findings else None,
            marks=self.panes.explorer.list.marks if link is None else frozenset(),
            link=link,
            boundary=self.panes.graph.boundary if in_graph else None,
        )

    def bookmark(self) -> Bookmark:
        """Return where the cursor and the marks of all panes are."""
        panes = self.panes
        return Bookmark(
            self.listing.root, panes.explorer.list.place, panes.parameters.place,
            panes.graph.place, panes.findings.list.key_at_cursor(), panes.focused(),
        )  # fmt: skip

    def return_to(self, bookmark: Bookmark) -> None:
        """Put cursor and marks back where they were, as far as that is there."""
        from dld_tui.core.model.document import Node

        explorer, subject = self.panes.explorer, bookmark.parameters.subject
        if not is_alive(bookmark.root):
            return
        if self.listing.root is not bookmark.root:
            explorer.show_root(bookmark.root)
        node = bookmark.row.key
        if isinstance(node, Node) and is_alive(node):
            explorer.reveal(node)
        explorer.list.return_to(bookmark.row)
        if subject is not None and is_alive(subject):
            self.show_subject(subject)
            self.panes.parameters.return_to(bookmark.parameters)
        if bookmark.graph is not None:
            self.panes.graph.return_to(bookmark.graph)
        panes, focused = self.panes, self.page.focused

        def keys() -> None:  # unless another pane has got them since
            name = bookmark.pane
            if self.page.focused is focused and panes.focused() != name and name in panes.present:
                panes.focus(name)

        if bookmark.pane == layout.FINDINGS:
            self.panes.findings.return_to(bookmark.finding, keys)
        else:
            keys()

    def go_to_pane(self, number: str) -> None:
        """Go to a pane by its number."""
        self.panes.focus(layout.NUMBERS[int(number)])

    def next(self, step: str) -> None:
        """Go to the next pane (1) or the one before (-1), also to one that is not seen."""
        names = [
            name
            for name in layout.NUMBERS.values()
            if name in self.panes.present and name not in self.panes.chosen.hidden
        ]
        if self.page.query("SplitViewPane") or all(self.panes.pane(name).display for name in names):
            screen = self.page
            (screen.focus_next if int(step) > 0 else screen.focus_previous)()
            return
        here = self.panes.focused()
        at = names.index(here) if here in names else 0
        self.panes.focus(names[(at + int(step)) % len(names)])

    def conditions(self, cursor: Cursor) -> set[str]:
        """Return whether the node has a body, and whether there are places to go back to."""
        node = cursor.node
        return holding(
            body=node is not None and body_of(node) is not None,
            history=bool(self._back),
            forward=bool(self._forward),
        )

    @hears(Explorer.Selected)
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
        from dld_tui.core.model.document import Node

        self.panes.parameters.show(subject)
        scope = subject.scope if isinstance(subject, Node) else subject
        self.page.crumb(place_text(scope))
        self.page.conditions_changed()
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
        self.page.conditions_changed()

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

    @task()
    async def _go_one_of(self, title: str, nodes: Sequence[Node]) -> None:
        nodes = list(dict.fromkeys(nodes))
        if not nodes:
            self.say("Nothing is connected here")
        elif len(nodes) == 1:
            self.go_to(nodes[0])
        else:
            places = [(_node_label(node), node) for node in nodes]
            node = await self._pick_one(title, "node", places)
            if node is not None:
                self.go_to(node)

    async def _pick_one(
        self, title: str, kind: str, places: Sequence[tuple[str, Answer]]
    ) -> Answer | None:
        shown = places[:_MOST_CHOICES]
        more = len(places) - len(shown)
        message = fmt.plural(len(places), kind)
        message += f", the first {len(shown)} of them" if more else ""
        options = [(str(at), label, place) for at, (label, place) in enumerate(shown, 1)]
        return await self.pick(title, message, options)

    @task()
    async def open_body(self) -> None:
        """Open the node's subgraph or function; asks which when there are several."""
        row = self.cursor.row
        node = self.cursor.node
        if row is not None and row.scope is not None:
            self.open_scope(row.scope)
        elif node is not None and len(node.subgraphs()) > 1:
            options = [
                (f"{visible(body.title)}  {fmt.plural(len(body.nodes), 'node')}", body)
                for body in node.subgraphs()
            ]
            chosen = await self._pick_one("Open which subgraph?", "subgraph", options)
            if chosen is not None:
                self.open_scope(chosen)
        elif node is not None and (body := body_of(node)) is not None:
            self.open_scope(body)

    @hears(Parameters.Left)
    def leave_parameters(self, event: Parameters.Left) -> None:
        """Go back to the list of nodes."""
        self.panes.focus(layout.EXPLORER)

    @hears(Parameters.Jumped)
    def jump(self, event: Parameters.Jumped) -> None:
        """Go to the node of a row."""
        self.go_to(event.node)

    @hears(Parameters.ScopeOpened)
    def open_scope_of_row(self, event: Parameters.ScopeOpened) -> None:
        """Show the nodes of the subgraph or function of a row."""
        self.open_scope(event.scope)

    @hears(Parameters.RowReached, GraphPane.LinkReached, LineView.MarksChanged)
    def show_keys(self, event: Message) -> None:
        """Show which keys work where the cursor is now."""
        self.page.conditions_changed()

    @hears(Explorer.Opened)
    def open_node(self, event: Explorer.Opened) -> None:
        """Go to the node's parameters."""
        self.show_subject(event.node)
        self.panes.focus("parameters")

    @hears(Findings.Chosen)
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
