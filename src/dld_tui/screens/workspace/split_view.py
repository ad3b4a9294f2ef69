"""Another open model beside the one of a tab: its nodes, and the details of the selected one.

The pane only looks, and copies: no key in it changes either model. While the cursors are coupled,
each of the two goes to the node that a comparison says belongs together with the other one's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol, cast

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Container, Vertical

from dld_tui.commands.command import table
from dld_tui.commands.key_names import with_keys
from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import CancelledError, DldError
from dld_tui.core.model.document import DocumentChange, Node, Scope
from dld_tui.core.model.document.local_functions import function_of
from dld_tui.core.text import cell_width, clip, fit, visible
from dld_tui.core.types import CancelCheck, ProgressCallback
from dld_tui.screens.workspace.controller import Controller
from dld_tui.screens.workspace.editing import outer_nodes
from dld_tui.screens.workspace.history import MANY
from dld_tui.screens.workspace.navigation import Navigation
from dld_tui.screens.workspace.panes import Panes
from dld_tui.screens.workspace.state import is_alive
from dld_tui.widgets.explorer.pane import Explorer
from dld_tui.widgets.explorer.state import ExplorerModel
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.styled import Piece, Rows
from dld_tui.widgets.parameters.pane import Parameters
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.command_dispatch import Commands, binding_of
from dld_tui.widgets.shell.page import Page, host

if TYPE_CHECKING:
    from dld_tui.core.model.document.parts.fragment import Fragment

COLUMNS, ROWS = 120, 40
"""Side by side from so many columns on, else one below the other from so many rows on."""
_KEYS = "{beside.leave} back  {beside.couple} couple  {beside.copy} copy  {beside.main} main"
_MOST_CHOICES = 9


class Split(Container):
    """The panes of a model, and beside or below them those of another one."""

    def on_mount(self) -> None:
        """Be as the terminal is, before there are panes that would be styled again."""
        self.set_class(self.app.size.width < COLUMNS, "-stacked")

    def on_resize(self) -> None:
        """Put the two side by side, or one below the other, where there is room for both."""
        self.set_class(self.app.size.width < COLUMNS, "-stacked")
        for pane in self.query(SplitViewPane):
            pane.show_if_it_fits()


class SplitViewTitle(Rows):
    """The row above: which model it is, and the keys."""

    title = ""

    def content(self, width: int) -> Sequence[Sequence[Piece]]:
        config = getattr(self.app, "config", None)
        keys = with_keys(_KEYS, config.keys if config is not None else {})
        title = clip(f" {self.title}", max(width - cell_width(keys) - 2, 20), keep="start")
        room = max(width - cell_width(title), 0)
        return [[(title, "bar-row strong"), (fit(f"{keys} ", room, align="right"), "bar-row")]]


class SplitViewPane(Commands, Vertical):
    """The pane.

    Args:
        split_view: The controller of the model that has the tab.
        other: The controller of the open model that is shown beside it; the same where it is a
            subgraph or function of that.
        model: The nodes of that.
    """

    SCOPE = "beside"
    COMMAND_TABLE = table(
        "beside",
        ("beside.leave", "leave", "vertical_line", "", "back", "Return to the model of this tab."),
        ("beside.couple", "couple", "equals_sign", "", "couple cursors",
         "Move both cursors together to corresponding nodes."),
        ("beside.copy", "copy", "y", "nodes", "copy nodes",
         "Copy the marked nodes of this model, or the node at the cursor."),
        ("beside.main", "main", "X", "", "swap",
         "Swap the model of this tab and the model beside it."),
        ("beside.close", "close", "escape", "", "close", "Close the model beside this one."),
        footer="beside.leave beside.couple beside.copy beside.main",
    )  # fmt: skip

    def __init__(self, split_view: SplitView, other: SplitView, model: ExplorerModel) -> None:
        super().__init__()
        self.split_view = split_view
        self.other = other
        self.document = other.document
        self.explorer = Explorer(model)
        preview_bytes = host(split_view.page).config.preview_bytes
        self.parameters = Parameters(preview_bytes=preview_bytes, editable=False)
        self.pairs: dict[Node, Node] | None = None
        """The node of the other model for each of both; None while the cursors are not coupled."""

    def compose(self) -> ComposeResult:
        yield SplitViewTitle()
        yield self.explorer
        yield self.parameters

    def on_mount(self) -> None:
        """Follow the edits of the other model; begin where its own tab is."""
        self.document.on_change.append(self._document_changed)
        self.parameters.summary = self.other.panes.parameters.summary
        self._say_title()
        self.show_if_it_fits()
        self.go_to(None if self.is_part else self.other.panes.explorer.node)
        self.explorer.list.focus()

    @property
    def is_part(self) -> bool:
        """Whether a subgraph or function of the model that has the tab is shown."""
        return self.other is self.split_view

    def on_unmount(self) -> None:
        """Follow them no longer."""
        if self._document_changed in self.document.on_change:
            self.document.on_change.remove(self._document_changed)

    def conditions(self) -> set[str]:
        return {"nodes"} if self._chosen else set()

    def show_if_it_fits(self) -> None:
        """Hide the pane while the terminal is too small for two models."""
        width, height = self.app.size
        self.display = width >= COLUMNS or height >= ROWS
        if not self.display and self.has_focus_within:
            self.split_view.panes.focus_first()

    def _say_title(self) -> None:
        shown = self.query_one(SplitViewTitle)
        coupled = "" if self.pairs is None else f" {glyphs.current().dot} coupled"
        what = self.explorer.model.root.title if self.is_part else self.document.title
        shown.title = visible(what) + coupled
        shown.refresh()

    def go_to(self, node: Node | None) -> None:
        """Move the cursor of this pane to a node of its model."""
        explorer = self.explorer
        if node is None or not is_alive(node):
            self.parameters.show(explorer.node or explorer.model.root)
            return
        if not explorer.reveal(node):
            scope = node.scope
            while scope.parent is not None:
                scope = scope.parent
            explorer.clear_filters()
            explorer.show_root(scope)
            explorer.reveal(node)
        self.parameters.show(node)

    def _document_changed(self, change: DocumentChange) -> None:
        model = self.explorer.model
        if not is_alive(model.root):
            if self.is_part:
                self.action_close()
                return
            model.set_root(self.document.main)
        self.explorer.apply_change(change)
        self.forget_pairs(change)
        subject = self.parameters.subject
        if subject is not None and not is_alive(subject):
            self.parameters.show(self.explorer.node or self.explorer.model.root)
        else:
            self.parameters.rebuild()

    def forget_pairs(self, change: DocumentChange) -> None:
        """Uncouple the cursors when one of the models has been exchanged as a whole."""
        if self.pairs is not None and change.is_everything:
            self.pairs = None
            self._say_title()

    def action_couple(self) -> None:
        from dld_tui.core.compare.diff.compare import diff_documents
        from dld_tui.core.compare.diff.model_diff import node_pairs

        if self.is_part:
            self.notify("This is a part of the model: there is nothing to match", timeout=3)
            return
        if self.pairs is not None:
            self.pairs = None
            self._say_title()
            return
        documents = self.split_view.document, self.document
        partners: dict[Node, Node] = {}

        def task(progress: ProgressCallback, cancelled: CancelCheck) -> None:
            pairs = node_pairs(diff_documents(*documents, weights=False, cancelled=cancelled))
            partners.update(pairs)
            partners.update((new, old) for old, new in pairs)

        def ended(error: DldError | None) -> None:
            if error is not None or not self.is_attached:
                if not isinstance(error, CancelledError) and error is not None:
                    self.split_view.complain(error)
                return
            self.pairs = partners
            self._say_title()
            count = fmt.plural(len(partners) // 2, "node")
            self.notify(f"The cursors are coupled: {count} matched", timeout=3)
            self.follow(self.split_view.cursor.node)

        self.split_view.work.run("Matching the two models", task, ended)

    def follow(self, subject: Node | Scope | None) -> None:
        """Go to the node that belongs together with one of the model that has the tab."""
        node = self._partner(subject)
        if node is not None and node is not self.explorer.node:
            self.go_to(node)

    def _lead(self) -> None:
        """Let the cursor of the model that has the tab follow this one."""
        node = self._partner(self.explorer.node)
        if node is not None and node is not self.split_view.panes.explorer.node:
            self.split_view.navigation.go_to(node, remember=False)

    def _partner(self, subject: Node | Scope | None) -> Node | None:
        if self.pairs is None or not isinstance(subject, Node):
            return None
        partner = self.pairs.get(subject)
        return partner if partner is not None and is_alive(partner) else None

    @property
    def _chosen(self) -> list[Node]:
        """The marked nodes, or the one at the cursor."""
        node = self.explorer.node
        return self.explorer.marked or ([node] if node is not None else [])

    def action_copy(self) -> None:
        """Copy nodes; they are pasted into the model that has the tab, or any other."""
        from dld_tui.core.model.document.parts.fragment import fragment_of

        nodes = outer_nodes(self._chosen)
        fragments: list[Fragment] = []

        def copied(error: DldError | None) -> None:
            if error is not None:
                self.split_view.complain(error)
                return
            host(self).copied_nodes = fragments[0]
            paste = with_keys("{edit.paste}", host(self).config.keys)
            self.notify(f"{fmt.plural(len(nodes), 'node')} copied: {paste} pastes", timeout=3)
            self.split_view.page.conditions_changed()

        def task(progress: ProgressCallback, cancelled: CancelCheck) -> None:
            fragments.append(fragment_of(nodes))

        if len(nodes) > MANY:
            self.split_view.work.run("Copying", task, copied)
            return
        try:
            task(lambda done, total: None, lambda: False)
        except DldError as error:
            copied(error)
        else:
            copied(None)

    def action_main(self) -> None:
        """Show this model in its own tab, at the same node, with the present one beside it."""
        node, other = self.explorer.node, self.other
        root = self.explorer.model.root
        self.action_close()
        if self.is_part:
            self.split_view.navigation.open_scope(root)
            return
        host(self).show_page(other.page)
        if node is not None and is_alive(node):
            other.navigation.go_to(node)
        if other.pane is None:
            other.show_page(self.split_view.page)

    def action_leave(self) -> None:
        self.split_view.panes.focus_first()

    def action_close(self) -> None:
        if self.has_focus_within:
            self.split_view.panes.focus_first()
        self.split_view.pane = None
        self.remove()
        self.split_view.page.conditions_changed()

    def on_key(self, event: events.Key) -> None:
        """Say where a key of the model that has the tab would work."""
        active = binding_of(self.screen, event.key)
        if active is not None and active.node is self.split_view.page and not active.enabled:
            event.stop()
            keys = with_keys("{beside.leave}", host(self).config.keys)
            title = visible(self.split_view.page.tab_title)
            self.notify(
                f"This model is read-only here. {keys} goes back to {title}",
                timeout=3,
                markup=False,
            )

    @on(Explorer.Selected)
    def cursor_selected(self, event: Explorer.Selected) -> None:
        """Show what the cursor is on."""
        event.stop()
        self.parameters.show(event.node if event.node is not None else event.scope)
        self.refresh_bindings()
        if self.has_focus_within:
            self._lead()

    @on(Explorer.Opened)
    def node_opened(self, event: Explorer.Opened) -> None:
        """Go to the details."""
        event.stop()
        self.parameters.list.focus()

    @on(Parameters.Left)
    def parameters_left(self, event: Parameters.Left) -> None:
        """Go back to the layers."""
        event.stop()
        self.explorer.list.focus()

    @on(Parameters.Jumped)
    def jumped(self, event: Parameters.Jumped) -> None:
        """Go to the node."""
        event.stop()
        self.go_to(event.node)

    @on(Parameters.ScopeOpened)
    def scope_opened(self, event: Parameters.ScopeOpened) -> None:
        """Show the nodes of a body or function."""
        event.stop()
        self.explorer.show_root(event.scope)

    @on(Explorer.Arranged)
    @on(LineView.MenuAsked)
    @on(Parameters.EditAsked)
    @on(Parameters.TensorAsked)
    def for_nobody(
        self,
        event: Explorer.Arranged
        | LineView.MenuAsked
        | Parameters.EditAsked
        | Parameters.TensorAsked,
    ) -> None:
        """Keep what would act on the model that has the tab."""
        event.stop()

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Keep it: the borders of the other panes are elsewhere."""
        event.stop()


class _OpenModel(Protocol):
    """The page of an open model."""

    split_view: SplitView


@dataclass(eq=False)
class SplitView(Controller):
    """Shows another open model, or a subgraph or function of this one, beside it."""

    COMMAND_TABLE = table(
        "workspace",
        ("view.beside", "split_view.show", "vertical_line", "", "beside",
         "Show another open model, or a subgraph of the node, beside this model, or focus it.",
         "split, side by side, second model"),
        common="document",
    )  # fmt: skip

    panes: Panes
    navigation: Navigation

    pane: SplitViewPane | None = None

    @property
    def has_keys(self) -> bool:
        """Whether the keys are with the other model: none of them changes this one then."""
        return self.pane is not None and self.pane.has_focus_within

    def follow(self, subject: Node | Scope) -> None:
        """Let a coupled cursor follow this one."""
        if self.pane is not None and not self.has_keys:
            self.pane.follow(subject)

    def show_change(self, change: DocumentChange) -> None:
        """Uncouple the cursors when the model was exchanged as a whole."""
        if self.pane is not None:
            self.pane.forget_pairs(change)

    def tab_closed(self, page: Page) -> None:
        """Take the pane of a model away whose tab was closed."""
        if self.pane is not None and self.pane.other.page is page:
            self.pane.action_close()

    def show(self) -> None:
        """Show another open model, or give its pane the keys; asks which when there are several."""
        if self.pane is not None:
            if self.pane.display:
                self.pane.explorer.list.focus()
            else:
                self.say("The terminal is too small to show the other model")
            return
        if not self._has_room():
            return
        node = self.cursor.node
        function = function_of(node) if node is not None else None
        parts = [*node.subgraphs(), *([function] if function else [])] if node is not None else []
        others = [
            page for page in host(self.page).pages
            if isinstance(page, type(self.page)) and page.edited_document and page is not self.page
        ]  # fmt: skip
        shows = [(visible(part.title), partial(self.show_part, part)) for part in parts]
        shows += [(visible(page.tab_title), partial(self.show_page, page)) for page in others]
        if not shows:
            self.say("No other model is open in a tab, and the node has no subgraph")
        elif len(shows) == 1:
            shows[0][1]()
        else:
            self._ask(shows)

    def show_opened(self, page: Page) -> None:
        """Show an open model beside this one, in the place of another that is there."""
        if isinstance(page, type(self.page)) and page is not self.page and self._has_room():
            if self.pane is not None:
                self.pane.action_close()
            self.show_page(page)

    def _has_room(self) -> bool:
        width, height = self.app.size
        if width >= COLUMNS or height >= ROWS:
            return True
        need = f"Two models need {COLUMNS} columns or {ROWS} rows"
        self.say(f"{need}; this terminal has {width} x {height}", 5, warning=True)
        return False

    def _ask(self, shows: Sequence[tuple[str, Callable[[], None]]]) -> None:
        shown = shows[:_MOST_CHOICES]
        options = [(str(number), title, show) for number, (title, show) in enumerate(shown, 1)]
        more = f" (the first {len(shown)} of {len(shows)})" if len(shows) > len(shown) else ""
        self.ask_which("Beside", f"Which open model, subgraph or function?{more}", options)

    def show_part(self, scope: Scope) -> None:
        """Show a subgraph or function of this model beside it."""
        self._mount(self, scope.title, scope)

    def show_page(self, page: Page) -> None:
        """Show an open model; its nodes are listed on a thread."""
        self._mount(cast("_OpenModel", page).split_view, page.tab_title, None)

    def _mount(self, other: SplitView, title: str, root: Scope | None) -> None:
        models: list[ExplorerModel] = []

        def task(progress: ProgressCallback, cancelled: CancelCheck) -> None:
            model = ExplorerModel(other.document)
            if root is not None:
                model.set_root(root)
            model.index()
            models.append(model)

        def ended(error: DldError | None) -> None:
            if error is None and other.page.is_attached and self.pane is None:
                self.pane = SplitViewPane(self, other, models[0])
                self.page.query_one(Split).mount(self.pane)
                self.page.conditions_changed()

        self.work.run(f"Listing {visible(title)}", task, ended)
