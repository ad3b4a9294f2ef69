"""Screens of the app: what all share, and pages, each an open file or task in its tab."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.screen import Screen
from textual.widget import Widget

from dld_tui.commands import Command
from dld_tui.widgets.shell.bars import KeyBar, TabStrip
from dld_tui.widgets.shell.command_dispatch import is_greyed, run_command
from dld_tui.widgets.shell.host import host
from dld_tui.widgets.tasks import Tasks

if TYPE_CHECKING:
    from dld_tui.core.document import Document, Node
    from dld_tui.core.settings.custom_tools import Tool
    from dld_tui.core.types import JSON


if TYPE_CHECKING:
    from textual.screen import Screen
    from textual.timer import Timer

    _Base = Screen[Any]
else:
    _Base = object


class Front(_Base):
    """A mixin for screens, put before the screen class.

    Textual's ``dismiss`` takes away whatever is on top: said twice, it takes the page below the
    dialog, too, and of the last page it ends the program.
    """

    _hold: Timer | None = None

    tasks = cached_property(Tasks)
    """Its long work and its dialogs."""

    # --- commands, as those of widgets ----------------------------------------------------------

    SCOPE: ClassVar[str] = ""

    def facts(self) -> set[str]:
        """Return the facts that hold now: keys of ``commands.FACTS``."""
        return set()

    def own_commands(self) -> Sequence[Command]:
        """Return what the palette offers here besides the commands of the table."""
        return ()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Grey a command (None) while one of its needs does not hold."""
        return (
            None
            if is_greyed(self, action, parameters)
            else super().check_action(action, parameters)
        )

    async def action_command(self, target: str, *arguments: str) -> None:
        await run_command(self, target, arguments)

    # --- painting -------------------------------------------------------------------------------

    def hold_paint(self, seconds: float) -> None:
        """Paint nothing for a while, or until :meth:`release_paint`: what was there stays.

        For a page that is filled step by step: each step would be sent to the terminal.
        """
        if self._hold is not None:
            self._hold.stop()
        self._hold = self.set_timer(seconds, self.release_paint)

    def release_paint_when_laid_out(self) -> None:
        """Paint again when what has just been filled has found its size."""
        self.call_after_refresh(self.call_after_refresh, self.release_paint)

    def release_paint(self) -> None:
        """Paint again."""
        if self._hold is not None:
            self._hold.stop()
            self._hold = None
            self.refresh()

    def _compositor_refresh(self) -> None:
        if self._hold is None:
            self._spoil_between()
            super()._compositor_refresh()

    def _spoil_between(self) -> None:
        """Have dialogs that are over this screen, and under another, paint it again.

        Each paints what is below it; Textual notifies only the top one.
        """
        below, regions = self.app._background_screens, self._compositor._dirty_regions
        if regions and self in below:
            for screen in below[below.index(self) + 1 :]:
                screen._set_dirty(*regions)

    def _on_timer_update(self) -> None:
        # Keys wait for a layout, and for what waits for it, but for no paint.
        keys: Any = getattr(self.app, "keys", None)
        if self._layout_required or self._callbacks or keys is None or not keys.defers_paint():
            super()._on_timer_update()
        else:
            self._update_timer.pause()

    # --- leaving --------------------------------------------------------------------------------

    def dismiss(self, result: Any = None) -> AwaitComplete:
        """Leave with a result, also from under a dialog or in a tab that is not seen.

        A screen that has left already, or that is a tab, is not touched.
        """
        app = self.app
        if self is app.screen and len(app.screen_stack) > 1:
            pop: AwaitComplete = super().dismiss(result)
            return pop
        stack = next((stack for stack in app._screen_stacks.values() if self in stack), [self])
        if stack[0] is self:
            return AwaitComplete()
        if self._result_callbacks:
            self._result_callbacks[-1](result)
        stack.remove(self)
        self._pop_result_callback()
        return AwaitComplete(app._replace_screen(self)).call_next(app)


@dataclass(frozen=True)
class NodeErrors:
    """The errors of a model's nodes that a page shows."""

    page: Page
    title: str
    is_outdated: bool
    """Whether the model was edited since."""
    values: Callable[[], Mapping[Node, float]] = field(compare=False)
    """Works them out."""


class Page(Front, Screen[None]):
    """Base of the screens that are tabs; override :meth:`body`, and what else applies.

    Set ``tab_title``, ``tab_dirty`` and ``tab_status`` and call :meth:`tab_changed`; set the place
    in the model that the bar below shows with :meth:`crumb`.
    """

    tab_title: str = ""
    """The name of the open thing: foreign text."""
    tab_status: str = ""
    """Shown at the right of the tabs, e.g. the target."""
    tab_dirty: bool = False
    tab_place: str = ""
    """What a page is about that shows no file, such as a folder: foreign text."""
    mode: str = ""
    """The name the app gives it."""
    path: Path | None = None
    """The file that is shown; opening it again shows this tab."""
    HELP = ""
    """A paragraph for the help screen when no focused widget has one."""

    def __init__(self) -> None:
        super().__init__()
        self.made_at = monotonic()
        self._shown_facts: set[str] = set()

    def compose(self) -> ComposeResult:
        """Lay out the tabs, the body and the keys."""
        yield TabStrip()
        yield from self.body()
        yield KeyBar()

    def body(self) -> Iterable[Widget]:
        """Return the widgets between the two bars."""
        return ()

    MORE_SCOPES: ClassVar[tuple[str, ...]] = ()
    """Scopes besides ``SCOPE`` whose bindings it has: ``page`` where it is over a tab, as help or a
    job is, and Esc goes back to that."""

    def action_close(self) -> None:
        self.go_back()

    def go_back(self) -> None:
        """Answer Esc; a page that has something to stop or to take back first overrides it."""
        self.dismiss(None)

    SHOWS_PANES: ClassVar[bool] = False
    """Whether :meth:`show_pane_of` does something."""

    def show_pane_of(self, widget: Widget) -> None:
        """Show the pane that a widget is in, which is not seen."""

    def show_activity(self, activity: str) -> bool:
        """Show the form of an activity for this page; False if it has none."""
        return False

    @property
    def is_opening(self) -> bool:
        """Whether there is nothing yet that a key could be meant for."""
        return False

    def terminal_focused(self) -> None:
        """Do what is due when the terminal has the focus again; asked of the page that is seen."""

    def catch_up(self) -> bool:
        """Do now what waits for the cursor to rest; False when nothing waits."""
        return False

    def unsaved(self) -> list[str]:
        """Return what would be lost by closing, one line each."""
        return []

    def save_then(self, done: Callable[[], None]) -> None:
        """Save everything, and call `done` when it is saved; not when that fails."""
        done()

    def when_saved(self, action: Callable[[], None]) -> None:
        """Do something once the running save has ended well; at once when none runs."""
        action()

    def tab_closed(self, page: Page) -> None:
        """Give up what is kept of another tab, which was closed."""

    def job_ended(self) -> None:
        """Show that a job has ended."""

    def reveal(self, scope_path: Sequence[str], node_ref: str) -> None:
        """Go to a node of the model that is shown; pages without a model stay as they are."""

    def when_open(self, then: Callable[[], None]) -> None:
        """Call `then` once the page's file is open."""
        then()

    def show_beside(self, other: Page) -> None:
        """Show another open model beside the one that is shown; other pages stay as they are."""

    def offer_rules(self, names: str) -> None:
        """Show what rules would change in the model that is shown; others stay as they are."""

    def reveal_layer(self, index: int) -> None:
        """Go to a layer of the report that is shown; other pages stay as they are."""

    # --- what pages ask each other --------------------------------------------------------------

    @property
    def edited_document(self) -> Document | None:
        """The open document that is edited here; None where none is."""
        return None

    @property
    def node_at_cursor(self) -> Node | None:
        """The node of the document that is edited here; None without one."""
        return None

    def run_tool(self, tool: Tool) -> None:
        """Run a custom tool on the document that is edited here."""

    def apply_steps(self, title: str, steps: list[JSON], done: Callable[[], None]) -> None:
        """Make edits as one step of the document that is edited here.

        Args:
            title: What they do.
            steps: The name and the arguments of each edit.
            done: Called when they are made.
        """

    def show_conversion_form(self, activity: str, given: Mapping[str, JSON]) -> None:
        """Show the form of a conversion of the model that is edited here, with some values."""

    @property
    def knows_times(self) -> bool:
        """Whether :meth:`node_times` may know something: asked often."""
        return False

    def node_times(self, document: Document) -> tuple[Mapping[Node, float], str] | None:
        """Return the milliseconds of a model's nodes and what they are called.

        None when nothing is known of that model here. May be called on a thread.
        """
        return None

    def node_errors(self, document: Document) -> NodeErrors | None:
        """Return the errors of a model's nodes; None when nothing is known of it here."""
        return None

    # --- facts ----------------------------------------------------------------------------------

    def facts(self) -> set[str]:
        """Return the facts that hold for every tab: for the one below, where it is over one."""
        tab = host(self).page if "page" in self.MORE_SCOPES else self
        return {"tab"} if tab in host(self).pages else set()

    def facts_changed(self) -> None:
        """Draw the keys again when other ones work now."""
        facts = self.facts()
        if facts != self._shown_facts:
            self._shown_facts = facts
            self.refresh_bindings()

    def tab_changed(self) -> None:
        """Draw the tabs again."""
        if self.is_attached:
            host(self).page_changed()

    def crumb(self, text: str) -> None:
        """Show where in the model the cursor is, at the right of the keys."""
        if self.is_mounted:
            self.query_one(KeyBar).crumb = text

    def on_screen_resume(self, event: Any) -> None:
        """Draw the tabs as they are now."""
        for strip in self.query(TabStrip):
            strip.refresh()
