"""One open model: explorer, graph, parameters and findings, and all that can be done with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual import events, on
from textual.message import Message
from textual.screen import ModalScreen
from textual.widget import Widget

from dld_tui.commands import Command
from dld_tui.commands.command import in_order, table
from dld_tui.core.errors import CancelledError, DldError
from dld_tui.core.model.document import Document, DocumentChange, Node
from dld_tui.core.types import JSON, CancelCheck, ProgressCallback
from dld_tui.screens.workspace.activities import Activities
from dld_tui.screens.workspace.checks import Checks
from dld_tui.screens.workspace.controller import Controller, listeners
from dld_tui.screens.workspace.conversion import Conversion
from dld_tui.screens.workspace.editing import Editing
from dld_tui.screens.workspace.functions import Functions
from dld_tui.screens.workspace.graphs import Graphs
from dld_tui.screens.workspace.history import EditHistory
from dld_tui.screens.workspace.inference import Inference
from dld_tui.screens.workspace.jobs import Jobs
from dld_tui.screens.workspace.navigation import Navigation
from dld_tui.screens.workspace.node_list import STATE, NodeList, recall_arrangement
from dld_tui.screens.workspace.opening import OpenedModel, open_model
from dld_tui.screens.workspace.panes import Area, Panes
from dld_tui.screens.workspace.saving import Saving, kept_text
from dld_tui.screens.workspace.selection import NodeSelection
from dld_tui.screens.workspace.split_view import Split, SplitView
from dld_tui.screens.workspace.state import WorkspaceModel
from dld_tui.screens.workspace.wiring import Wiring
from dld_tui.styles import STYLES
from dld_tui.widgets.explorer.findings import Findings, NoticeLine
from dld_tui.widgets.explorer.pane import Explorer
from dld_tui.widgets.graph.pane import GraphPane
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.parameters.pane import Parameters
from dld_tui.widgets.shell.page import Page, host
from dld_tui.widgets.shell.progress import Work, WorkPanel
from dld_tui.widgets.tasks import on_thread

if TYPE_CHECKING:
    from dld_tui.core.model.document.new_model import NewModel
    from dld_tui.core.settings.custom_tools import Tool

_PAINTED_S = 0.05
"""So long the terminal has for what it was sent, before other work begins."""


CONTROLLERS: tuple[type[Controller], ...] = (
    Activities, Saving, EditHistory, Editing, Panes, Navigation, Graphs, NodeList, SplitView,
    Wiring, NodeSelection, Conversion, Functions, Checks, Inference, Jobs,
)  # fmt: skip
"""In the order in which palette, help and menus list their commands."""
_LISTENERS = listeners(CONTROLLERS)


class WorkspaceScreen(Page):
    """The page of a model; a new model when there is no path.

    It creates the controllers, each with the others that it needs, and connects them to edits,
    messages of the panes, and commands (a row ``("edit.change", "editing.edit", …)`` names the
    controller and its method).
    """

    SCOPE = "workspace"
    COMMAND_TABLE = in_order(
        *(controller.COMMAND_TABLE for controller in CONTROLLERS),
        table(
            "workspace",
            ("work.stop", "stop", "escape", "", "stop", "Cancel opening or saving."),
            palette=False,
        ),
        table(
            "workspace",
            ("menu.open", "context_menu", "full_stop", "cursor", "more",
             "Show the commands for the item at the cursor, with their keys."),
            common="document", palette=False, footer="menu.open",
        ),
    )  # fmt: skip
    SHOWS_PANES = True
    AUTO_FOCUS = ""  # the pane that is seen first takes the keys, once the model is open
    CSS_PATH = STYLES / "workspace.tcss"
    HELP = (
        "The model as a list of nodes, the parameters of the node at the cursor, and the findings. "
        "{pane.1} {pane.3} {pane.4} focus a pane, {view.maximise} maximises it, {view.shrink} and "
        "{view.grow} change its size."
    )

    def __init__(self, path: Path | str | None = None, *, new: NewModel | None = None) -> None:
        super().__init__()
        self.path = Path(path) if path is not None else None
        self._new = new
        self.tab_title = self.path.name if self.path is not None else "new model"
        self.model = WorkspaceModel()
        self.work = Work(self)
        base = (self, self.model, self.work)
        self.panes = Panes(*base)
        self.navigation = Navigation(*base, self.panes)
        both = (self.panes, self.navigation)
        self.split_view = SplitView(*base, *both)
        self.node_list = NodeList(*base, *both)
        self.history = EditHistory(*base, self.navigation, self.node_list)
        self.jobs = Jobs(*base)
        self.checks = Checks(*base, self.panes, self.history, self.jobs)
        self.inference = Inference(*base, self.panes, self.jobs, self.checks)
        self.saving = Saving(*base, self.node_list, self.checks, self.inference)
        self.activities = Activities(*base, self.panes, self.jobs, self.saving)
        self.wiring = Wiring(*base, *both, self.history, self.inference)
        self.editing = Editing(*base, *both, self.history, self.inference, self.wiring)
        self.selection = NodeSelection(*base, *both, self.history, self.inference, self.editing)
        self.functions = Functions(*base, *both, self.history)
        self.conversion = Conversion(*base, self.history, self.jobs, self.inference, self.saving)
        self.graphs = Graphs(*base, *both, self.history, self.activities)
        self.controllers: Sequence[Controller] = [
            part for part in vars(self).values() if isinstance(part, Controller)
        ]
        self._connect()

    def _connect(self) -> None:
        """Connect listeners and handlers; their order matters."""
        self.model.around_changes = self.history.returning
        self.model.changed.listeners = (
            self.inference.invalidate,
            self.checks.note,
            self.node_list.show_change,
            self._show_dirty,
            self.history.say_edit,
            self.checks.check_changed,
            self.graphs.redraw,
            self.activities.show_change,
            self.split_view.show_change,
        )
        self.model.subject_shown.listeners = (self.graphs.reveal, self.split_view.follow)
        self.checks.offer_rules = self.offer_rules
        self.model.redone.listeners = (self.conversion.show_again,)

    def pane_message(self, event: Message) -> None:
        """Pass a pane's message to the controllers that hear it."""
        event.stop()
        if self.model.is_open:
            for kind, name in _LISTENERS[type(event)]:
                controller = next(part for part in self.controllers if type(part) is kind)
                getattr(controller, name)(event)

    for _heard in _LISTENERS:
        pane_message = on(_heard)(pane_message)

    @property
    def document(self) -> Document:
        """The open document."""
        return self.model.document

    @property
    def explorer(self) -> Explorer:
        """The pane of nodes."""
        return self.panes.explorer

    @property
    def graph(self) -> GraphPane:
        """The pane of the graph."""
        return self.panes.graph

    @property
    def parameters(self) -> Parameters:
        """The pane with the details of one node or scope."""
        return self.panes.parameters

    @property
    def findings(self) -> Findings:
        """The pane of what is wrong."""
        return self.panes.findings

    @property
    def is_open(self) -> bool:
        """Whether the model is shown."""
        return self.model.is_open

    @property
    def is_opening(self) -> bool:
        """Whether the model is still being read."""
        return not self.model.is_open

    @property
    def edited_document(self) -> Document | None:
        """The open document."""
        return self.model.document if self.model.is_open else None

    def body(self) -> Iterable[Widget]:
        yield Split(Area())
        yield NoticeLine()

    def on_mount(self) -> None:
        """Open the model on a thread."""
        self.panes.recall_layout()
        opened: list[OpenedModel] = []
        listed = host(self).state.get(*STATE)

        def task(progress: ProgressCallback, cancelled: CancelCheck) -> None:
            arrange = partial(
                recall_arrangement, listed, host(self).config.constants, path=self.path
            )
            opened.append(open_model(self.path, progress, cancelled, self._new, arrange))

        def ended(error: DldError | None) -> None:
            if error is None:
                self.graphs.begin(opened[0])
                self.tasks.start(self._opened(opened[0]), "opened")
                return
            host(self).close_page(self)
            if not isinstance(error, CancelledError):
                host(self).show_error(error, "Not opened")

        title = f"Opening {self.tab_title}"
        self.work.run(title, task, ended, panel=WorkPanel(title))

    async def _opened(self, opened: OpenedModel) -> None:
        """Show the model."""
        document = self.model.document = opened.document
        with self.app.batch_update():  # each pane on its own would paint the whole screen
            await self.panes.show(opened.explorer, host(self).config.preview_bytes)
            if not self.is_attached:  # closed meanwhile
                document.close()
                return
            self.parameters.summary = opened.summary
            self.model.view = self.navigation
            self.model.is_open = True
            self.tab_title = document.title
            self.tab_dirty = document.dirty
            self.tab_changed()
            self.panes.lay_out()
            self.panes.focus_first()
            self.navigation.show_subject(document.main)
            self.graphs.show_begun()
        document.on_change.append(self.model.tell_change)
        self.navigation.reveal_waiting()
        if opened.left:
            self.saving.offer(opened.left[0])
        self.call_after_refresh(self._painted, opened)

    def _painted(self, opened: OpenedModel) -> None:
        """Begin the rest a moment after the first rows, however long these took."""
        if self.is_attached:
            self.set_timer(_PAINTED_S, partial(self._prepare, opened))

    def _prepare(self, opened: OpenedModel) -> None:
        """Start what the first rows and the first picture of the graph do not need."""
        if self.model.is_arranging or self.awaits_paint:
            self._painted(opened)
            return
        self.checks.check()
        self.inference.infer()
        self.graphs.look_for_profile()
        self.tasks.start(self.wiring.warm_up(), "schemas")
        self.tasks.start(on_thread(opened.clean_up), "clean up")

    def on_unmount(self) -> None:
        """Stop what runs for this model, and close it."""
        self.model.is_closed = True
        self._cancel()
        for controller in self.controllers:
            controller.close()
        if self.model.is_open:
            # Unless the user let the edits go, the next session offers them again.
            app = host(self)
            self.document.close(keep_journal=self in app.pages and not app.has_quit)

    def conditions(self) -> set[str]:
        """Return what holds for commands: what the cursor is on, and what the controllers say."""
        conditions = super().conditions()
        if not self.model.is_open or self.split_view.has_keys:
            return conditions
        cursor = self.model.cursor
        of_controllers = (controller.conditions(cursor) for controller in self.controllers)
        return conditions.union({"document"}, cursor.conditions(), *of_controllers)

    def own_commands(self) -> Sequence[Command]:
        """Return a command for each batch modification and each custom tool."""
        from dld_tui.screens.home.palette import conversion_commands

        return (*conversion_commands(), *self.activities.commands())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Ignore Esc when nothing runs."""
        if action == "stop":
            return self.work.is_running or self.jobs.is_running
        return super().check_action(action, parameters)

    def action_stop(self) -> None:
        self._cancel()

    def _cancel(self) -> bool:
        return self.work.cancel() or self.jobs.cancel()

    def action_context_menu(self) -> None:
        from dld_tui.screens.home.palette import open_menu

        place, title = self.model.cursor.place
        if not place or not open_menu(self.app, self, place, title):
            self.notify("No command fits here", timeout=3)

    @on(GraphPane.MenuAsked)
    @on(LineView.MenuAsked)
    def menu_asked(self, event: Message) -> None:
        """Show the menu on a right click, once the details have followed the cursor."""
        event.stop()
        self.call_after_refresh(self.action_context_menu)

    def on_descendant_focus(self) -> None:
        """Draw the keys again: the model beside this one has other ones."""
        self.conditions_changed()

    def reveal(self, scope_path: Sequence[str], node_ref: str) -> None:
        """Go to a node that a report or a finding names; waits until the model is open."""
        self.navigation.reveal(scope_path, node_ref)

    def when_open(self, then: Callable[[], None]) -> None:
        """Call `then` once the model is open and the question about unsaved edits is answered."""
        self.tasks.start(self._call_when_open(then), "opened")

    async def _call_when_open(self, then: Callable[[], None]) -> None:
        while not self.model.is_open or isinstance(self.app.screen, ModalScreen):
            await asyncio.sleep(_PAINTED_S)
        then()

    def show_split(self, other: Page) -> None:
        """Show another open model beside this one, where there is room."""
        self.split_view.show_opened(other)

    def offer_rules(self, names: str) -> None:
        """Show what rules of ``dld rewrite`` would change, to be carried out or not."""
        self.selection.offer(names)

    @property
    def node_at_cursor(self) -> Node | None:
        """The node that commands act on."""
        return self.model.cursor.node

    def run_tool(self, tool: Tool) -> None:
        """Run a custom tool on the edited model."""
        self.activities.run_tool(tool)

    def apply_steps(self, title: str, steps: list[JSON], done: Callable[[], None]) -> None:
        """Make edits as one step of the document."""
        from dld_tui.core.model.edits import repairs

        apply = partial(self.document.apply, repairs.repair(steps=steps, title=title))
        self.history.change(title, [apply], large=True, done=done)

    def show_conversion_form(self, activity: str, given: Mapping[str, JSON]) -> None:
        """Show the form of a conversion, with some values."""
        self.conversion.ask_settings(activity, given)

    def show_pane_of(self, widget: Widget) -> None:
        """Show the pane that a widget is in, and give it the keys."""
        self.panes.show_pane_of(widget)

    @property
    def has_report(self) -> bool:
        """Whether there may be one of this file."""
        return self.model.is_open and self.document.path is not None

    def show_activity(self, activity: str) -> bool:
        """Show the form of an activity for the open model; False when it has none."""
        return self.activities.show_activity(activity)

    def catch_up(self) -> bool:
        """Let the other panes follow the cursor now."""
        return self.navigation.catch_up()

    def unsaved(self) -> list[str]:
        """Return what closing would lose."""
        return self.saving.unsaved()

    def tab_closed(self, page: Page) -> None:
        """Give up what is shown of another tab, which was closed."""
        self.split_view.tab_closed(page)

    def when_saved(self, action: Callable[[], None]) -> None:
        self.saving.when_saved(action)

    def kept_when_discarded(self) -> list[str]:
        """Return where discarded edits are; those of a model without a file are nowhere."""
        return [kept_text()] if self.model.is_open and self.document.path is not None else []

    def save_then(self, done: Callable[[], None]) -> None:
        """Save, and call `done` when it is saved."""
        self.saving.save(done)

    def _show_dirty(self, change: DocumentChange) -> None:
        """Mark the tab while there is something to save."""
        if self.tab_dirty != self.document.dirty:
            self.tab_dirty = self.document.dirty
            self.tab_changed()
        self.conditions_changed()

    def on_screen_resume(self, event: Any) -> None:
        """Check whether the file, or comparisons and verdicts of the model, have changed."""
        self.saving.look_at_disk()
        if self.model.is_open:
            self.activities.follow_errors()
            self.graphs.show_times()
            self.parameters.show_verdicts()

    def terminal_focused(self) -> None:
        """Check whether the file has changed."""
        self.saving.look_at_disk()

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Take hold of the border between two panes."""
        self.panes.take_border(event)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Move the border that is held."""
        self.panes.move_border(event)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """Let go of the border."""
        self.panes.leave_border()
