"""What all screens share, and pages: an open file or job in its tab, between two bars."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from functools import cached_property
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast

from textual import events
from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding
from textual.dom import DOMNode
from textual.geometry import Size
from textual.reactive import reactive
from textual.screen import Screen
from textual.widget import Widget

from dld_tui.commands.command import known, table
from dld_tui.commands.key_names import key_name
from dld_tui.core.dataclass import dataclass
from dld_tui.core.settings.config import Config
from dld_tui.core.settings.state import State
from dld_tui.core.text import cell_width, clip, fit, visible
from dld_tui.core.types import JSON
from dld_tui.widgets.lists.styled import Piece, Rows
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.command_dispatch import (
    bind,
    grey,
    no_conditions,
    no_own_commands,
    run_command,
    same_conditions,
)
from dld_tui.widgets.tasks import EndedJob, Tasks

if TYPE_CHECKING:
    from dld_tui.core.model.document import Document, Node
    from dld_tui.core.model.document.parts.fragment import Fragment
    from dld_tui.core.settings.custom_tools import Tool


MOST = 9
"""Commands before those at the end."""
_FIRST = ("edit.change", "edit.rename", "edit.delete", "go.around", "model.save")
"""Commands that begin the row: the verbs of the row at the cursor."""
_LAST = (
    "menu.open", "report.menu", "plan.menu", "page.close", "app.close", "app.palette", "app.help",
)  # fmt: skip
"""Commands that close the row, so that they are always found at the same place."""


class KeyBar(Rows):
    """Draws the footer commands of the focused widget, the screen and the app, in this order.

    A click runs the one that is clicked.
    """

    crumb: reactive[str] = reactive("", repaint=False)

    def __init__(self) -> None:
        super().__init__()
        self._keys: list[tuple[str, str]] = []
        self._last = 0
        """How many of them close the row."""
        self._run: dict[str, tuple[str, DOMNode]] = {}
        """What each of them runs, and on what."""
        self._spans: list[tuple[int, int, str]] = []
        """(first cell, end cell, key) of those drawn last."""
        self._is_behind = False

    def on_mount(self) -> None:
        """Follow the focus and the conditions."""
        self.screen.bindings_updated_signal.subscribe(self, self._bindings_updated)
        self._bindings_updated(self.screen)

    def _bindings_updated(self, screen: Screen[object]) -> None:
        """Find the keys when they are drawn: a key press may change them several times."""
        if self._is_in_front:
            self._is_behind = True
            self.refresh()

    @property
    def _is_in_front(self) -> bool:
        return self.is_attached and self.screen is self.app.screen

    def _follow(self) -> None:
        """Find the keys of what has the focus."""
        self._is_behind = False
        inner = self.screen.focused or self.screen
        depth = {id(node): number for number, node in enumerate(inner.ancestors_with_self)}
        places = {command_id: place for place, command_id in enumerate(known)}
        with same_conditions():
            bindings = self.screen.active_bindings.values()
        shown = [
            (
                _FIRST.index(id_) if (id_ := active.binding.id) in _FIRST else len(_FIRST),
                depth.get(id(active.node), 0),
                places.get(id_ or "", 0),
                active,
            )
            for active in bindings
            if active.binding.show and active.enabled
        ]
        first: dict[str, tuple[str, str]] = {}
        last: dict[str, tuple[str, str]] = {}
        ids: dict[str, str] = {}
        self._run = {}
        for *_, active in sorted(shown, key=lambda row: row[:3]):
            binding = active.binding
            row = last if binding.id in _LAST else first
            key = row.setdefault(binding.action, (key_name(binding.key), binding.description))
            self._run.setdefault(key[0], (binding.action, active.node))
            ids[binding.action] = binding.id or ""
        ends = sorted(last, key=lambda action: _LAST.index(ids[action]))
        self._keys = [*list(first.values())[:MOST], *(last[action] for action in ends)]
        self._last = len(last)

    def rest(self) -> None:
        """Show no keys: a dialog has them."""
        self._keys, self._run = [], {}
        self._is_behind = False
        self.refresh()

    def watch_crumb(self) -> None:
        """Draw the place at the right."""
        self.refresh()

    def content(self, width: int) -> Sequence[Sequence[Piece]]:
        """Return the row; without room the last keys lose their titles, then others go."""
        if self._is_behind and self._is_in_front:
            self._follow()
        pieces: list[Piece] = [(" ", "bar-row")]
        used = 1
        keys = list(self._keys)
        for at in range(len(keys) - 2, len(keys) - 1 - self._last, -1):
            if sum(map(_cells, keys)) >= width:
                keys[at] = keys[at][0], ""
        while sum(map(_cells, keys)) >= width and len(keys) > 2:
            del keys[-1 - self._last if len(keys) > self._last else 0]
        self._spans = []
        for key, title in keys:
            pieces += [(key, "bar-row key"), (f" {title}".rstrip() + "  ", "bar-row")]
            self._spans.append((used, used + _cells((key, title)) - 2, key))
            used += _cells((key, title))
        room = width - used - 1
        crumb = clip(visible(self.crumb), room, keep="end") if room > 8 else ""
        padding = width - used - cell_width(crumb) - 1
        return [[*pieces, (" " * max(0, padding), "bar-row"), (crumb, "bar-row"), (" ", "bar-row")]]

    async def on_click(self, event: events.Click) -> None:
        """Run what was clicked."""
        for start, end, key in self._spans:
            if start <= event.x < end and key in self._run:
                event.stop()
                action, node = self._run[key]
                await self.app.run_action(action, node)
                return


def _cells(key: tuple[str, str]) -> int:
    return cell_width(key[0]) + cell_width(key[1]) + 3


_LEAST = 14
"""A name is not cut below this many cells; tabs far from the shown one are left out instead."""


class TabStrip(Rows):
    """Draws ``host.pages``; a click shows a tab."""

    def __init__(self) -> None:
        super().__init__()
        self._spans: list[tuple[int, int, int]] = []
        """(first cell, end cell, index of the page) of the tabs drawn last."""

    def content(self, width: int) -> Sequence[Sequence[Piece]]:
        """Return the row: tabs at the left, the page's status at the right."""
        status = visible(getattr(self.screen, "tab_status", ""))
        pieces = self._tabs(width - min(cell_width(status) + 2, width // 3))
        room = width - sum(cell_width(text) for text, _ in pieces)
        shown = fit(status, room - 2, align="right") + " " if room > 3 else ""
        return [[*pieces, (" " * (room - cell_width(shown)), "bar-row"), (shown, "bar-row")]]

    def _tabs(self, room: int) -> list[Piece]:
        owner = host(self)
        self._spans = []
        if not owner.pages:
            path = getattr(self.screen, "path", None)
            name = clip(visible(path.name) if path else "dld", room - 2)
            place = "" if path else visible(getattr(self.screen, "tab_place", ""))
            rest = clip(place, max(room - cell_width(name) - 4, 0), keep="end")
            return [
                (f" {name} ", "bar-row strong accent"),
                (f" {rest} " if rest else "", "bar-row"),
            ]
        labels = [visible(page.tab_title[:200]) or "untitled" for page in owner.pages]
        current = owner.pages.index(owner.page) if owner.page in owner.pages else -1
        first, last, most = _shown(labels, max(current, 0), room)
        shown = glyphs.current()
        pieces: list[Piece] = []
        cell = 0
        if first:
            pieces.append((f" +{first} ", "bar-row"))
            cell = cell_width(pieces[0][0])
        for index in range(first, last + 1):
            page = owner.pages[index]
            mark = f" {shown.dirty}" if page.tab_dirty else ""
            text = f" {clip(labels[index], most, keep='middle')}"
            start = cell
            look = "bar-row current" if index == current else "bar-row"
            pieces += [(text, look), (mark, f"{look} warn"), (" ", look)]
            cell += cell_width(text) + cell_width(mark) + 1
            self._spans.append((start, cell, index))
            if index < last:
                pieces.append((shown.separator, "bar-row faint"))
                cell += 1
        if last < len(labels) - 1:
            pieces.append((f" +{len(labels) - 1 - last}", "bar-row"))
        return pieces

    def on_click(self, event: events.Click) -> None:
        """Show the tab that was clicked."""
        for start, end, index in self._spans:
            if start <= event.x < end:
                host(self).show_page(host(self).pages[index])
                return


def _shown(labels: list[str], current: int, room: int) -> tuple[int, int, int]:
    """Return the first and last tab to draw, and the most cells of a name."""
    extra = 5  # blanks, the unsaved mark and the separator
    most = max(_LEAST, room // max(1, len(labels)) - extra)
    widths = [min(cell_width(label), most) + extra for label in labels]
    if sum(min(cell_width(label), 60) + extra for label in labels) <= room:
        return 0, len(labels) - 1, 60
    first = last = current
    used = widths[current] + 10  # the counts of those left out
    while True:
        if last + 1 < len(labels) and used + widths[last + 1] <= room:
            last += 1
            used += widths[last]
        elif first > 0 and used + widths[first - 1] <= room:
            first -= 1
            used += widths[first]
        else:
            return first, last, min(most, max(1, room - 10))


if TYPE_CHECKING:
    from textual.timer import Timer, TimerCallback

    _Base = Screen[Any]
else:
    _Base = object


def _is_told_again(screen: Screen[Any]) -> bool:
    following = screen._peek_message()
    return isinstance(following, events.ScreenResume) and following.refresh_styles


class CommandScreen(_Base):
    """A mixin for screens, put before the screen class.

    Textual's ``dismiss`` takes away whatever is on top: said twice, it takes the page below the
    dialog, too, and of the last page it ends the program.
    """

    _hold: Timer | None = None

    tasks = cached_property(Tasks)
    """Its long work and its dialogs."""

    seen_at: float = 0.0
    """When it was drawn, on the clock of events, if keys that were typed before are not for it."""

    SCOPE: ClassVar[str] = ""
    MORE_SCOPES: ClassVar[tuple[str, ...]] = ()
    """Scopes besides ``SCOPE`` whose bindings it has: ``page`` where it is over a tab, as help or a
    job is, and Esc goes back to that."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        bind(cls)
        super().__init_subclass__(**kwargs)

    def take_key(self, key: str, action: str) -> None:
        """Let a key do this and nothing else, here and whatever has the focus.

        Textual's ``bind`` appends to lists that all screens of the class share, so that the letter
        of an answer would answer later questions, too.
        """
        bound = Binding(key, action, show=False, priority=True)
        self._bindings.key_to_bindings[key] = [bound]

    conditions = no_conditions
    own_commands = no_own_commands
    check_action = grey
    action_command = run_command

    async def on_event(self, event: events.Event) -> None:
        """Handle an event; a size that the terminal has no longer tells to take the present one.

        Of two events in a row that the screen is shown, each of which gives every widget its styles
        again, the first is left out: a new tab is told twice.
        A layout sends the screen its size again: with two sizes in the queue, each layout asks for
        the other one, for ever. And of two sizes that meet in the queue the former one is lost.
        """
        if isinstance(event, events.ScreenResume) and _is_told_again(self):
            return
        size = self.app.size
        if isinstance(event, events.Resize) and event.size != size:
            event = events.Resize(size, size)
        await super().on_event(event)

    def _screen_resized(self, size: Size) -> None:
        # Each layout tells the screen its size, for which Textual would lay it out once more.
        if size != self._size:
            super()._screen_resized(size)

    def _update_focus_styles(
        self, focused: Widget | None = None, blurred: Widget | None = None
    ) -> None:
        """Give new styles to the frames around what has the focus and what had it.

        Textual gives them to everything in these frames, which is a whole form for a step to its
        next field; here no style depends on whether something around it has the focus.
        """
        around = {
            widget
            for moved in (focused, blurred)
            if moved is not None
            for widget in moved.ancestors_with_self
            if widget._has_focus_within
        }
        self.app.stylesheet.update_nodes(around, animate=True)

    def set_timer(
        self,
        delay: float,
        callback: TimerCallback | None = None,
        *,
        name: str | None = None,
        pause: bool = False,
    ) -> Timer:
        """Call a function after a delay, however late the event loop is.

        Textual drops what it finds late as it begins to wait, as if it would come again.
        """
        timer = super().set_timer(delay, callback, name=name, pause=pause)
        timer._skip = False
        return timer

    @property
    def awaits_paint(self) -> bool:
        """Whether it is on top and something of it has not been painted yet.

        Textual paints nothing for a moment after a change of tabs, and calls what waits for a
        refresh meanwhile. What is under a dialog may stay unpainted as long as that is open.
        """
        held = self._hold is not None or self.app._batch_count
        unpainted = self._layout_required or self._repaint_required or self._dirty_widgets
        is_on_top = self.is_current and self is self.app.screen
        return is_on_top and bool(held or unpainted)

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
        # What cannot be shown yet is painted when it can be, and not before, too.
        can_show = self.app._running and not self.app._batch_count
        if self._hold is None and (can_show or self is not self.app.screen):
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


class Page(CommandScreen, Screen[None]):
    """Base of the screens that are tabs; override :meth:`body`, and what else applies.

    Set ``tab_title``, ``tab_dirty`` and ``tab_status`` and call :meth:`tab_changed`; set the place
    in the model that the bar below shows with :meth:`crumb`.
    """

    COMMAND_TABLE = table(
        "page",
        ("page.close", "close", "escape,q", "", "close", "Close this page."),
        palette=False, footer="page.close",
    )  # fmt: skip

    tab_title: str = ""
    """The name of the open thing: untrusted text."""
    tab_status: str = ""
    """Shown at the right of the tabs, e.g. the target."""
    tab_dirty: bool = False
    tab_place: str = ""
    """What a page is about that shows no file, such as a folder: untrusted text."""
    mode: str = ""
    """The name the app gives it."""
    path: Path | None = None
    """The file that is shown; opening it again shows this tab."""
    HELP = ""
    """A paragraph for the help screen when no focused widget has one."""

    def __init__(self) -> None:
        super().__init__()
        self.made_at = monotonic()
        self._shown_conditions: set[str] = set()

    def compose(self) -> ComposeResult:
        """Lay out the tabs, the body and the keys."""
        yield TabStrip()
        yield from self.body()
        yield KeyBar()

    def on_screen_suspend(self) -> None:
        """Promise no keys that a dialog has now."""
        for bar in self.query(KeyBar):
            bar.rest()

    def body(self) -> Iterable[Widget]:
        """Return the widgets between the two bars."""
        return ()

    def action_close(self) -> None:
        self.go_back()

    def go_back(self) -> None:
        """Answer Esc; a page that has something to stop or to take back first overrides it."""
        self.dismiss(None)

    SHOWS_PANES: ClassVar[bool] = False
    """Whether :meth:`show_pane_of` does something."""

    def show_pane_of(self, widget: Widget) -> None:
        """Show the pane that a widget is in, which is not seen."""

    @property
    def has_report(self) -> bool:
        """Whether activities that take a report can be started here."""
        return False

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

    def kept_when_discarded(self) -> list[str]:
        """Return where that can be got back from, one line each; nothing where it cannot."""
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

    def show_split(self, other: Page) -> None:
        """Show another open model beside the one that is shown; other pages stay as they are."""

    def offer_rules(self, names: str) -> None:
        """Show what rules would change in the model that is shown; others stay as they are."""

    def reveal_layer(self, index: int) -> None:
        """Go to a layer of the report that is shown; other pages stay as they are."""

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

    def conditions(self) -> set[str]:
        """Return those that hold for every tab: for the one below, where it is over one."""
        tab = host(self).page if "page" in self.MORE_SCOPES else self
        return {"tab"} if tab in host(self).pages else set()

    def conditions_changed(self) -> None:
        """Draw the keys again when other ones work now."""
        conditions = self.conditions()
        if conditions != self._shown_conditions:
            self._shown_conditions = conditions
            self.refresh_bindings()

    def tab_changed(self) -> None:
        """Draw the tabs again."""
        if self.is_attached:
            host(self).page_changed()

    def crumb(self, text: str) -> None:
        """Show where in the model the cursor is, at the right of the keys."""
        for bar in self.query(KeyBar):
            bar.crumb = text

    def on_screen_resume(self, event: Any) -> None:
        """Draw the tabs as they are now."""
        for strip in self.query(TabStrip):
            strip.refresh()


class AppServices(Protocol):
    """The app, as the rooms below it see it."""

    config: Config
    state: State
    copied_nodes: Fragment | None
    """What was copied last in any tab, to be pasted in any."""

    def use_config(self, config: Config) -> None:
        """Show the program with other settings."""

    @property
    def tasks(self) -> Tasks:
        """Long work and dialogs that belong to no screen."""

    @property
    def pages(self) -> Sequence[Page]:
        """The open tabs, in order."""

    @property
    def page(self) -> Page:
        """The tab that is seen, or the start page."""

    def open_path(self, path: Path | str, then: Callable[[Page], None] | None = None) -> None:
        """Recognise a file and open it in a tab; an error is shown in a dialog.

        Args:
            path: The file.
            then: Is told the page.
        """

    def open_all(self, paths: Sequence[Path | str]) -> None:
        """Open files in tabs, in their order, and show the first."""

    def reveal(self, path: Path | str, scope_path: Sequence[str], node_ref: str) -> None:
        """Show a node of a model, which is opened first when it is not."""

    def reveal_layer(self, path: Path | str, index: int) -> None:
        """Show a layer of a report, which is opened first when it is not."""

    def add_page(self, page: Page) -> None:
        """Open a new tab and show it."""

    def show_page(self, page: Page) -> None:
        """Show an open tab."""

    @property
    def has_quit(self) -> bool:
        """Whether the user has left, and been asked about what is not saved."""

    def close_page(self, page: Page) -> None:
        """Close a tab without asking, e.g. after its file could not be opened."""

    def page_changed(self) -> None:
        """Draw the tabs again after a title or an unsaved mark changed."""

    def show_error(self, error: BaseException, title: str = "") -> None:
        """Show an error in a dialog whose text can be copied."""

    def showing_errors(self) -> AbstractContextManager[None]:
        """Return what shows the errors of a command."""

    @property
    def is_used(self) -> bool:
        """Whether the user types or points just now, so that other work should wait."""

    @property
    def ended_jobs(self) -> Collection[EndedJob]:
        """The jobs that have ended in this session, the newest last."""

    def job_ended(self, job: EndedJob) -> None:
        """Keep what stays of a job."""

    def start_activity(self, activity: str, values: Mapping[str, JSON]) -> None:
        """Show the form of an activity, some of its fields filled."""

    def run_job(
        self,
        activity: str,
        request: Mapping[str, JSON],
        on_result: Callable[[Any], None],
        *,
        title: str = "",
        target: str | None = None,
        replaces: Sequence[str] = (),
    ) -> None:
        """Run an activity on a target, this machine by default, and show its progress."""


def offer_rules(owner: AppServices, model: Path, rules: Sequence[str]) -> None:
    """Open a model and show what rules of ``dld rewrite`` would change in it."""
    names = " ".join(rules)
    owner.open_path(model, lambda page: page.when_open(lambda: page.offer_rules(names)))


def host(node: Widget | Screen[object]) -> AppServices:
    """Return the app of a widget or screen."""
    return cast("AppServices", node.app)
