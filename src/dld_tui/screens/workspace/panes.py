"""The panes of a workspace: which are seen, how large, their cursors, and jumps between places."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from textual import events
from textual.containers import Container
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget

from dld_tui.commands.command import table
from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.document.local_functions import function_of
from dld_tui.core.errors import EditError
from dld_tui.core.text import clip, visible
from dld_tui.screens.workspace import layout
from dld_tui.screens.workspace.controller import Answer, Controller, hears
from dld_tui.screens.workspace.state import Cursor, is_alive
from dld_tui.widgets.explorer.findings import Findings, NoticeLine
from dld_tui.widgets.explorer.pane import Explorer
from dld_tui.widgets.explorer.state import Branch, ExplorerModel
from dld_tui.widgets.graph.pane import GraphPane, GraphPlace
from dld_tui.widgets.lists.line_view import LineView, ListPlace
from dld_tui.widgets.parameters.descriptions import place_text
from dld_tui.widgets.parameters.pane import Parameters, ParametersPlace
from dld_tui.widgets.shell.command_dispatch import holding
from dld_tui.widgets.shell.frame import CHOICE, Framed
from dld_tui.widgets.shell.page import host
from dld_tui.widgets.tasks import task

if TYPE_CHECKING:
    from dld_tui.core.document import Node, Scope
    from dld_tui.widgets.parameters.edit_bar import EditBar


_STEP_COLUMNS, _STEP_ROWS = 4, 2
_SECTION, _LAST, _NAMED = "layouts", "workspace", "workspace named"
_REST_S = 0.1
"""The other panes follow the cursor when it has rested so long: holding a key down stays quick, and
a move sends two rows."""
_MOST_CHOICES = 9
_MOST_PLACES = 200


class Area(Container):
    """Where the panes are."""

    class Resized(Message):
        """There is another number of cells."""

    def on_resize(self) -> None:
        """Post the message."""
        self.post_message(self.Resized())


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


@dataclass(eq=False)
class Panes(Controller):
    """Lays out the panes, moves their cursors, and lets the other panes follow."""

    COMMAND_TABLE = (
        *table(
            "workspace",
            ("view.maximise", "panes.maximise", "m", "", "maximise",
             "Maximise or restore the pane.", "maximize, full screen, fullscreen, zoom pane"),
            ("view.reset", "panes.reset_layout", "", "", "reset layout",
             "Restore the default order and sizes of the panes.", "default layout"),
            ("view.hide_pane", "panes.hide", "underscore", "", "hide pane",
             "Hide the pane; its number shows it again."),
            ("view.show_panes", "panes.show_all", "", "", "show panes", "Show all hidden panes."),
            ("view.move_left", "panes.move -1", "ctrl+left", "", "move pane left",
             "Swap the pane with its left or upper neighbour."),
            ("view.move_right", "panes.move 1", "ctrl+right", "", "move pane right",
             "Swap the pane with its right or lower neighbour."),
            ("view.grow", "panes.grow", "greater_than_sign", "", "larger pane",
             "Make the pane larger.", "bigger pane, wider pane, wider, bigger, enlarge, resize"),
            ("view.shrink", "panes.shrink", "less_than_sign", "", "smaller pane",
             "Make the pane smaller.", "narrower, resize pane, less room"),
            ("view.save_layout", "panes.save_layout", "", "", "save layout",
             "Save the layout of the panes under a name."),
            ("view.choose_layout", "panes.choose_layout", "", "", "choose layout",
             "Restore a saved layout of the panes."),
            ("go.back", "panes.go_back", "backspace", "history", "back",
             "Go back to the place before the last jump.", "previous place, jump back"),
            ("go.forward", "panes.go_forward", "shift+backspace,B", "forward", "forward",
             "Go forward again."),
            ("go.source", "panes.go_source", "left_square_bracket", "node", "to source",
             "Go to the producer of the first input.", "producer, what makes this"),
            ("go.destination", "panes.go_destination", "right_square_bracket", "node",
             "to destination", "Go to a consumer of the output.", "consumer, user, what uses this"),
            ("go.body", "panes.open_body", "s", "body", "open subgraph",
             "Open the node's subgraph or function.", "open body, subgraph body, enter, go into"),
            common="document",
            menus={"go.body": "scope"},
        ),
        *table(
            "workspace",
            ("pane.1", "panes.go_to_pane 1", "1", "", "nodes", "Focus the list of nodes.",
             "nodes, explorer, tree, list of nodes"),
            ("pane.2", "panes.go_to_pane 2", "2", "", "graph", "Focus the graph.",
             "network, show graph, canvas"),
            ("pane.3", "panes.go_to_pane 3", "3", "", "node", "Focus the parameters of the node.",
             "details, properties of the node, node details"),
            ("pane.next", "panes.next 1", "tab", "", "next pane",
             "Focus the next pane, even a hidden one."),
            ("pane.previous", "panes.next -1", "shift+tab", "", "previous pane",
             "Focus the previous pane, even a hidden one."),

        ),
    )  # fmt: skip

    chosen: layout.Layout = field(default_factory=layout.Layout, init=False)
    explorer: Explorer = field(init=False)
    """Only there once the model is open, as the other panes."""
    graph: GraphPane = field(init=False)
    parameters: Parameters = field(init=False)
    findings: Findings = field(init=False)
    _dragging: str = field(default="", init=False)
    _columns: Mapping[str, int] = field(default_factory=dict, init=False)
    """Columns of the panes that are side by side, from the left."""
    _rest_timer: Timer | None = None
    _when_rested: Callable[[], None] = field(default=lambda: None, init=False)
    _back: list[Place] = field(default_factory=list)
    _forward: list[Place] = field(default_factory=list)
    _waiting: tuple[Sequence[str], str] | None = None

    async def show(self, listing: ExplorerModel, preview_bytes: int) -> None:
        """Make the panes of a model that has been read.

        Args:
            listing: The nodes as the first pane lists them.
            preview_bytes: Tensors up to this size are read as soon as they are unfolded.
        """
        self.explorer = Explorer(listing, id="explorer")
        self.graph = GraphPane(id="graph")
        self.parameters = Parameters(preview_bytes=preview_bytes, id="parameters")
        self.findings = Findings(id="findings")
        for number, name in layout.NUMBERS.items():
            pane = self.pane(name)
            if isinstance(pane, (Framed, LineView)):
                pane.frame.number = number
        # Now, as later all that is in it would be given its styles once more.
        self.area.set_class(self.area.size.width < layout.WIDE, "-narrow")
        await self.area.mount(self.explorer, self.graph, self.parameters, self.findings)

    @property
    def listing(self) -> ExplorerModel:
        """The scope that is listed, its order and its filters."""
        return self.explorer.model

    @property
    def cursor(self) -> Cursor:
        """What the cursor is on."""
        from dld_tui.core.document import Node

        subject, item = self.parameters.subject, self.explorer.item
        in_parameters = self.parameters.list.has_focus
        in_graph = self.graph.has_focus_within
        in_findings = self.findings.list.has_focus
        node = self.graph.node if in_graph else self.explorer.node
        link = self.graph.terminal if in_graph else None
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
            row=self.parameters.row if in_parameters else None,
            branch=item if isinstance(item, Branch) else None,
            finding=self.findings.current if in_findings else None,
            marks=self.explorer.list.marks if link is None else frozenset(),
            link=link,
            boundary=self.graph.boundary if in_graph else None,
        )

    def bookmark(self) -> Bookmark:
        """Return where the cursor and the marks of all panes are."""
        return Bookmark(
            self.listing.root, self.explorer.list.place, self.parameters.place, self.graph.place,
            self.findings.list.key_at_cursor(), self.focused(),
        )  # fmt: skip

    def return_to(self, bookmark: Bookmark, show: Callable[[Node | Scope], None]) -> None:
        """Put cursor and marks back where they were, as far as that is there.

        Args:
            bookmark: Where.
            show: Shows a node or scope in the other panes.
        """
        from dld_tui.core.document import Node

        explorer, subject = self.explorer, bookmark.parameters.subject
        if not is_alive(bookmark.root):
            return
        if self.listing.root is not bookmark.root:
            explorer.show_root(bookmark.root)
        node = bookmark.row.key
        if isinstance(node, Node) and is_alive(node):
            explorer.reveal(node)
        explorer.list.return_to(bookmark.row)
        if subject is not None and is_alive(subject):
            show(subject)
            self.parameters.return_to(bookmark.parameters)
        if bookmark.graph is not None:
            self.graph.return_to(bookmark.graph)
        focused = self.page.focused

        def keys() -> None:  # unless another pane has got them since
            name = bookmark.pane
            if self.page.focused is focused and self.focused() != name and name in self.present:
                self.focus(name)

        if bookmark.pane == layout.FINDINGS:
            self.findings.return_to(bookmark.finding, keys)
        else:
            keys()

    @property
    def area(self) -> Area:
        """The container of the panes."""
        return self.page.query_one(Area)

    def pane(self, name: str) -> Widget:
        """Return a pane by its name."""
        panes: dict[str, Widget] = {
            layout.EXPLORER: self.explorer,
            layout.GRAPH: self.graph,
            layout.PARAMETERS: self.parameters,
            layout.FINDINGS: self.findings,
        }
        return panes[name]

    @property
    def present(self) -> set[str]:
        """The panes that have something to show."""
        panes = {layout.EXPLORER, layout.GRAPH, layout.PARAMETERS}
        return panes | {layout.FINDINGS} if self.findings.findings else panes

    def lay_out(self) -> None:
        """Give every pane its place for the present size."""
        notices = self.page.query(NoticeLine)
        if not self.model.is_open or not notices:  # the tab is being closed, and work for it ended
            return
        width, height = self.area.size
        if not (width and height):
            return
        needed = len(self.findings.findings) + 2
        arrangement = layout.arrange(self.chosen, width, height, self.present, needed)
        self._columns = arrangement.columns
        self._order_panes()
        focused = next((name for name in layout.TITLES if self.pane(name).has_focus_within), "")
        self.area.set_class(not arrangement.wide, "-narrow")
        for name in layout.TITLES:
            pane = self.pane(name)
            pane.display = name in arrangement.shown
            if name in arrangement.columns:
                pane.styles.width = arrangement.columns[name]
                pane.styles.height = "1fr"
            elif name in arrangement.rows:
                pane.styles.width = "100%"
                pane.styles.height = arrangement.rows[name]
        if focused and focused not in arrangement.shown:
            self.focus_first()
        findings = self.findings.findings
        notice = notices.first()
        notice.display = layout.FINDINGS not in arrangement.shown and any(
            finding.level != "info" for finding in findings
        )
        notice.show(findings)
        self._say_panes()

    @hears(Area.Resized)
    def fit(self, event: Area.Resized) -> None:
        """Lay out for another size; the pane that has the keys is still seen where it was."""
        focused = [name for name in layout.TITLES if self.pane(name).has_focus_within]
        self.lay_out()
        for name in focused:
            if not self.pane(name).display and name in self.present - self.chosen.hidden:
                self.focus(name)

    def _order_panes(self) -> None:
        """Put the panes into their order, which Tab goes by, too."""
        panes = [self.pane(name) for name in (*self.chosen.order, layout.FINDINGS)]
        if [pane for pane in self.area.children if pane in panes] != panes:
            places = {pane: at for at, pane in enumerate(panes)}
            self.area.sort_children(key=lambda pane: places.get(pane, len(panes)))

    def _say_panes(self) -> None:
        """Say in the row of tabs which panes there are, and on which key."""
        parts = []
        hidden = self.chosen.hidden & self.present
        for number, name in layout.NUMBERS.items():
            if name in self.present:
                mark = "×" if name in hidden else " "
                parts.append(f"{number}{mark}{layout.TITLES[name]}")
        status = " ".join(parts)
        if status != self.page.tab_status:
            self.page.tab_status = status
            self.page.tab_changed()

    def focused(self) -> str:
        """Return the name of the pane that has the keys."""
        for name in layout.TITLES:
            if self.model.is_open and self.pane(name).has_focus_within:
                return name
        return layout.EXPLORER

    def focus(self, name: str) -> None:
        """Give a pane the keys; one that is hidden, or under another one, is shown."""
        if name not in self.present:
            self.say("The checks found nothing in this model")
            return
        if name in self.chosen.hidden:
            self.chosen.hidden.discard(name)
            self.remember_layout()
        self.chosen.bring_forward(name)
        self.lay_out()
        self._give_keys(name)

    def show_pane_of(self, widget: Widget) -> None:
        """Show the pane that a widget is in, and give it the keys."""
        for name in layout.TITLES:
            if self.pane(name) in widget.ancestors_with_self:
                self.focus(name)

    def _give_keys(self, name: str) -> None:
        if name == layout.GRAPH:
            self.graph.focus_view()
        else:
            self.pane(name).query_one(LineView).focus()

    def mount_bar(self, bar: EditBar) -> None:
        """Show a line to type into at the bottom of the focused pane."""
        self.pane(self.focused()).mount(bar)

    def go_to_pane(self, number: str) -> None:
        """Go to a pane by its number."""
        self.focus(layout.NUMBERS[int(number)])

    def next(self, step: str) -> None:
        """Go to the next pane (1) or the one before (-1), also to one that is not seen."""
        names = [
            name
            for name in layout.NUMBERS.values()
            if name in self.present and name not in self.chosen.hidden
        ]
        if self.page.query("BesidePane") or all(self.pane(name).display for name in names):
            screen = self.page
            (screen.focus_next if int(step) > 0 else screen.focus_previous)()
            return
        here = self.focused()
        at = names.index(here) if here in names else 0
        self.focus(names[(at + int(step)) % len(names)])

    def maximise(self) -> None:
        """Give the focused pane all the room, or take it back."""
        self.chosen.maximised = None if self.chosen.maximised else self.focused()
        self.lay_out()

    def focus_first(self) -> None:
        """Give the keys to the graph, or to another pane that is seen where it is not."""
        names = (self.chosen.upper, layout.GRAPH, layout.EXPLORER, layout.PARAMETERS)
        self._give_keys(next((name for name in names if self.pane(name).display), layout.FINDINGS))

    def hide(self) -> None:
        """Hide the focused pane; its number brings it back."""
        name = self.focused()
        if not self.chosen.hide(name):
            self.say("The last pane cannot be hidden")
            return
        self.lay_out()
        self.focus_first()
        self.remember_layout()
        number = next(number for number, pane in layout.NUMBERS.items() if pane == name)
        self.say(f"{layout.TITLES[name]} is hidden: {number} shows it")

    def show_all(self) -> None:
        """Show the hidden panes again."""
        self.chosen.hidden.clear()
        self.chosen.maximised = None
        self.lay_out()
        self.remember_layout()

    def move(self, step: str) -> None:
        """Let the focused pane and its neighbour change places."""
        name = self.focused()
        shown = [pane for pane in self.chosen.order if self.pane(pane).display]
        if self.chosen.move(name, int(step), shown):
            self.lay_out()
            self.remember_layout()
        elif name == layout.FINDINGS:
            self.say("The findings stay at the bottom")
        else:
            self.say("There is no pane on that side")

    def grow(self) -> None:
        """Make the focused pane larger."""
        self._grow(1)

    def shrink(self) -> None:
        """Make the focused pane smaller."""
        self._grow(-1)

    def _grow(self, sign: int) -> None:
        width, height = self.area.size
        pane = self.focused()
        sideways = width >= layout.WIDE and pane != layout.FINDINGS
        step = _STEP_COLUMNS if sideways else _STEP_ROWS
        layout.grow(self.chosen, pane, sign * step, width, height, self.present)
        self.chosen.maximised = None
        self.lay_out()
        self.remember_layout()

    def take_border(self, event: events.MouseDown) -> None:
        """Take hold of the border between two panes."""
        if not self.model.is_open or self.chosen.maximised or CHOICE in event.style.meta:
            return
        y, area = event.screen_y, self.area.region
        if area.width < layout.WIDE:
            top = self._top_pane
            if top is not None and y in (top.region.bottom - 1, top.region.bottom):
                self._dragging = "rows"
        elif self.findings.display and y == self.findings.region.y:
            self._dragging = layout.FINDINGS
        else:
            x = event.screen_x - area.x
            self._dragging = layout.border_at(self._columns, area.width, x)
        if self._dragging:
            self.page.capture_mouse()

    def move_border(self, event: events.MouseMove) -> None:
        """Move the border that is held."""
        if not self._dragging:
            return
        region = self.area.region
        width, height = region.size
        if self._dragging == "rows":
            self._drag_rows("upper rows", (event.screen_y - region.y) / height)
        elif self._dragging == layout.FINDINGS:
            self._drag_rows("findings rows", (region.bottom - event.screen_y) / height)
        else:
            x = event.screen_x - region.x
            layout.drag(self.chosen, self._columns, width, self._dragging, x)
        self.lay_out()

    def _drag_rows(self, name: str, share: float) -> None:
        self.chosen.shares[name] = min(0.9, max(0.1, share))

    @property
    def _top_pane(self) -> Widget | None:
        """The upper of two stacked panes."""
        panes = [self.pane(name) for name in layout.TITLES]
        shown = [pane for pane in panes if pane.display]
        return min(shown, key=lambda pane: pane.region.y) if len(shown) > 1 else None

    def leave_border(self) -> None:
        """Let go of the border."""
        if self._dragging:
            self._dragging = ""
            self.page.release_mouse()
            self.remember_layout()

    def remember_layout(self) -> None:
        """Keep order, sizes and what is hidden for the next time."""
        host(self.page).state.put(_SECTION, _LAST, self.chosen.to_json())

    def recall_layout(self) -> None:
        """Take the layout of the last time."""
        self.chosen.load(host(self.page).state.get(_SECTION, _LAST))

    def reset_layout(self) -> None:
        """Show all panes in their first order and sizes."""
        self.chosen.reset()
        host(self.page).state.put(_SECTION, _LAST, {})
        self.lay_out()

    @task()
    async def save_layout(self) -> None:
        """Keep the present layout under a name."""
        from dld_tui.widgets.dialogs.dialogs import PromptDialog

        dialog = PromptDialog("Save layout", "A name for this layout of the panes.")
        name = (await self.ask(dialog) or "").strip()
        if name:
            state = host(self.page).state
            known = state.get(_SECTION, _NAMED)
            state.put(_SECTION, _NAMED, {**known, name: self.chosen.to_json()})

    @task()
    async def choose_layout(self) -> None:
        """Take a layout that was kept under a name."""
        known = host(self.page).state.get(_SECTION, _NAMED)
        if not known:
            self.say("No layout is saved yet")
            return

        options = [(str(at), name, name) for at, name in enumerate(list(known)[:9], 1)]
        name = await self.pick("Layout", "Which one?", options)
        data = known[name] if name is not None else None
        if isinstance(data, dict):
            self.chosen.load(data)
            self.lay_out()
            if not self.pane(self.focused()).display:
                self.focus_first()
            self.remember_layout()

    def facts(self, cursor: Cursor) -> set[str]:
        """Return whether the node has a body, and whether there are places to go back to."""
        node = cursor.node
        return holding(
            body=node is not None and self.body_of(node) is not None,
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
        from dld_tui.core.document import Node

        self.parameters.show(subject)
        scope = subject.scope if isinstance(subject, Node) else subject
        self.page.crumb(place_text(scope))
        self.page.facts_changed()
        self.model.subject_shown.send(subject)

    def place(self) -> Place:
        """Return the current place."""
        return Place(self.model.listing.root, self.explorer.node)

    def remember(self) -> None:
        """Remember the current place, before a jump."""
        here = self.place()
        if not self._back or self._back[-1] != here:
            self._back.append(here)
            del self._back[:-_MOST_PLACES]
        self._forward.clear()

    def go_to(self, node: Node, *, remember: bool = True) -> None:
        """Move the explorer's cursor to a node, wherever it is in the model."""
        if remember and node is not self.explorer.node:
            self.remember()
        root = self.model.listing.root
        if not _is_within(node.scope, root):
            self.explorer.show_root(_outermost(node.scope))
        if not self.explorer.reveal(node):
            self.explorer.clear_filters()
            self.say("The filter hid the node, so it was cleared")
            self.explorer.reveal(node)
        self.show_subject(node)
        if self.graph.has_keys:  # it does not follow the others then
            self.graph.reveal(node)

    def open_scope(self, scope: Scope, *, remember: bool = True) -> None:
        """Show the nodes of a scope alone."""
        if remember:
            self.remember()
        self.explorer.show_root(scope)
        self.show_subject(self.explorer.node or scope)

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
                self.explorer.show_root(place.root)
            if place.node is not None:
                self.go_to(place.node, remember=False)
            else:
                self.explorer.list.go_to_key(("scope", place.root))
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

    @task()
    async def _go_one_of(self, title: str, nodes: Sequence[Node]) -> None:
        nodes = list(dict.fromkeys(nodes))
        if not nodes:
            self.say("Nothing is connected here")
        elif len(nodes) == 1:
            self.go_to(nodes[0])
        else:
            node = await self._pick_one(title, [(_node_label(node), node) for node in nodes])
            if node is not None:
                self.go_to(node)

    async def _pick_one(self, title: str, places: Sequence[tuple[str, Answer]]) -> Answer | None:
        shown = places[:_MOST_CHOICES]
        more = len(places) - len(shown)
        message = f"{len(places)} nodes" + (f", the first {len(shown)} of them" if more else "")
        options = [(str(at), label, place) for at, (label, place) in enumerate(shown, 1)]
        return await self.pick(title, message, options)

    @staticmethod
    def body_of(node: Node) -> Scope | None:
        """Return the first subgraph of a node, or the function that it calls; None without one."""
        bodies = node.subgraphs()
        return bodies[0] if bodies else function_of(node)

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
            chosen = await self._pick_one("Open which body?", options)
            if chosen is not None:
                self.open_scope(chosen)
        elif node is not None and (body := self.body_of(node)) is not None:
            self.open_scope(body)

    @hears(Parameters.Left)
    def leave_parameters(self, event: Parameters.Left) -> None:
        """Go back to the list of nodes."""
        self.focus(layout.EXPLORER)

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
        self.page.facts_changed()

    @hears(Explorer.Opened)
    def open_node(self, event: Explorer.Opened) -> None:
        """Go to the node's parameters."""
        self.show_subject(event.node)
        self.focus("parameters")

    @hears(Findings.Chosen)
    def go_to_finding(self, event: Findings.Chosen) -> None:
        """Go to the node or scope of a finding."""
        finding = event.finding
        if finding.node is not None and is_alive(finding.node):
            self.go_to(finding.node)
        elif finding.scope is not None and is_alive(finding.scope):
            self.open_scope(finding.scope)


@dataclass(frozen=True)
class Place:
    """A place in the history of jumps."""

    root: Scope
    node: Node | None


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
