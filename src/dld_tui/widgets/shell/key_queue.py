"""One key at a time: the next one is given out when all that the former one caused has been done.

Textual sends a key to the widget that has the focus when the key is read. Keys that arrive in one
read (a slow line, a paste, a macro) all go to the widget that had it before the first of them:
`/` opens a field, and the letters behind it run as commands. Here keys wait in a queue until
every message pump is at rest, dialogs and panes that are being mounted are there, and work that
answers a key (opening a file, a search, the matches of a path) has ended.

A key that finds the program at rest is not delayed. Work that takes longer than a person would
wait for does not hold keys for ever: see :data:`_PATIENCE_S` and :meth:`KeyQueue.admit`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Container, Iterable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any

from textual import events
from textual.app import App
from textual.message import Message
from textual.screen import Screen

from dld_tui.widgets.shell.page import CommandScreen, Page
from dld_tui.widgets.tasks import GROUPS, Keys, RestOfTask

if TYPE_CHECKING:
    from textual.message_pump import MessagePump
    from textual.widget import Widget
    from textual.worker import Worker

MOST = 20_000
"""Events that are kept: more than scripts type. Later ones are lost, and a message says so."""
_PATIENCE_S = 10.0
"""Keys wait at most so long for work that is not the opening of a page: on a machine that is busy
with something else each search takes a second, and a key that ran before it would miss its aim."""
_AT_ONCE_S = 1.0
"""When keys have been held so long, Esc and the commands of the whole program pass them."""
_ALWAYS = ("escape", "ctrl+c", "ctrl+q")
"""Keys that wait for no work: only for keys that were typed before them."""
_PAINT_S = 0.1
"""While keys wait the screen is painted so often."""
_USED_S = 0.15
"""So long after a key the next one is expected."""
_STUCK_S = 20.0
"""Something that never comes to rest does not hold keys for longer."""
Typed = events.Key | events.Paste | events.MouseEvent


class KeyQueue:
    """The keys of an app that wait, in their order, with pastes and clicks between them."""

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self._waiting: deque[tuple[Typed, float]] = deque()
        """Events, and when they came."""
        self._released: Typed | None = None
        """The event that is on its way through the app's own queue."""
        self._lost = 0
        """Events that were not kept; none is kept again before the others are given out."""
        self._feeder: asyncio.Task[None] | None = None
        self._moving: Widget | None = None
        """The list whose cursor the last event moved."""
        self._painted = 0.0
        self._last_came = 0.0
        self._busy_since = self._held_since = self._behind_since = 0.0
        """Since when a key waits for message pumps, for other work, for a pane; 0 is not at all."""

    def admit(self, event: events.Event) -> bool:
        """Return whether to handle an event now; if not, it is kept, and posted again later.

        Esc and Ctrl+Q wait for no work. When keys have been held for a second, these and commands
        of the whole program are let through at once, and what was typed before is forgotten.
        """
        if event is self._released:
            self._released = None
            return True
        if not isinstance(event, (events.Key, events.Paste, events.MouseEvent)):
            return True
        if event.is_forwarded:  # it comes back from a widget
            return True
        self._last_came = monotonic()
        if self._feeder is None and self._is_too_early(event):
            return False
        if isinstance(event, events.MouseMove) or (
            isinstance(event, events.MouseEvent) and self._feeder is None
        ):
            return True
        if self._feeder is None and (
            self._moves_on(event) or (self._at_rest(within_app=True) and self._caught_up(event))
        ):
            self._moving = self._moved_by(event)
            return True
        if isinstance(event, events.Key) and self._passes(event.key):
            self._waiting.clear()
            return not self._is_too_early(event)
        if self._lost or len(self._waiting) >= MOST:
            # The end of something typed must not run without its middle.
            self._lost += 1
            return False
        self._waiting.append((event, monotonic()))
        if self._feeder is None:
            self._feeder = asyncio.create_task(self._feed(), name="keys")
        return False

    @property
    def is_used(self) -> bool:
        """Whether the last key came a moment ago."""
        return monotonic() - self._last_came < _USED_S

    @property
    def is_empty(self) -> bool:
        """Whether no key waits."""
        return self._feeder is None

    @property
    def waiting(self) -> int:
        """How many keys, pastes and clicks wait."""
        return len(self._waiting)

    @property
    def at_rest(self) -> bool:
        """Whether nothing waits and the last key has had all its effects."""
        return self._feeder is None and self._at_rest()

    def busy_pumps(self) -> list[MessagePump]:
        """Return the app and those of its widgets that are not at rest."""
        return [pump for pump in (self._app, *self._app._registry) if not _is_idle(pump)]

    def defers_paint(self) -> bool:
        """Return whether more keys wait, so that painting can wait, too."""
        if not self._waiting or monotonic() - self._painted > _PAINT_S:
            self._painted = monotonic()
            return False
        return True

    async def _feed(self) -> None:
        try:
            while self._waiting:
                if not self._moves_on(self._waiting[0][0]):
                    await self._rest()
                    if not self._waiting:  # another key passed them
                        break
                    if not self._caught_up(self._waiting[0][0]):
                        continue
                if self._is_too_early(self._waiting[0][0]):
                    self._waiting.popleft()
                    continue
                self._released, _ = self._waiting.popleft()
                self._moving = self._moved_by(self._released)
                self._app.post_message(self._released)
                while self._released is not None and not self._app._closing:
                    await asyncio.sleep(0)
                self._paint()
            await self._rest()
        finally:
            self._feeder = None
            self._paint()
            self._say_lost()
            if self._waiting and not self._app._closing:
                self._feeder = asyncio.create_task(self._feed(), name="keys")

    def _is_too_early(self, event: Typed) -> bool:
        """Return whether an event came before the question was drawn that it would answer."""
        stack = self._app._screen_stack
        return (
            bool(stack) and isinstance(stack[-1], CommandScreen) and event.time < stack[-1].seen_at
        )

    def _paint(self) -> None:
        """Paint what was put off, also of the page that a dialog is over."""
        if not self._app._closing and self._app._screen_stack:
            for screen in self._app.screen_stack:
                if screen.is_running:
                    screen._update_timer.resume()

    def _say_lost(self) -> None:
        """Show how many events were lost, and keep events again."""
        if self._lost and not self._app._closing:
            message = f"{self._lost:,} keys came too fast and were dropped"
            self._app.notify(message, severity="warning", timeout=10)
        self._lost = 0

    async def _rest(self) -> None:
        """Wait until the app is at rest, for two rounds of the event loop."""
        rounds = calm = 0
        while calm < 2 and not self._app._closing and not self._stops():
            calm = calm + 1 if self._at_rest() else 0
            rounds += 1
            await asyncio.sleep(0 if rounds < 50 else 0.001)

    def _stops(self) -> bool:
        """Return whether the next key stops the work that is waited for, and came after it."""
        if not (self._held_since and self._waiting):
            return False
        event, came = self._waiting[0]
        return isinstance(event, events.Key) and event.key in _ALWAYS and came > self._held_since

    def _moves_on(self, event: events.Event) -> bool:
        """Return whether an event moves the same list cursor as the one before it.

        Such keys cannot miss anything, and a key that is held down stays quick.
        """
        return self._moving is not None and self._moved_by(event) is self._moving

    def _moved_by(self, event: events.Event) -> Widget | None:
        """Return the list whose cursor an event moves, when that is all that it does."""
        if not isinstance(event, events.Key) or not self._app._screen_stack:
            return None
        focused = self._app.focused
        actions: Container[str] = getattr(focused, "MOVES", ())
        is_move = focused is not None and any(
            binding.action in actions
            for binding in focused._bindings.key_to_bindings.get(event.key, ())
        )
        return focused if is_move else None

    def _caught_up(self, event: events.Event) -> bool:
        """Let what follows a resting cursor catch up before another key; False when it had to."""
        stack = self._app.screen_stack
        return not any([page.catch_up() for page in stack if isinstance(page, Page)])

    def _passes(self, key: str) -> bool:
        if key in _ALWAYS and not self._waiting and self._held_since:
            return True
        if not self._held_since or monotonic() - self._held_since < _AT_ONCE_S:
            return False
        return key in _ALWAYS or key in self._app._bindings.key_to_bindings

    def _at_rest(self, *, within_app: bool = False) -> bool:
        """Return whether a key may be given out.

        Args:
            within_app: Asked while the app itself handles a message, the key.
        """
        app = self._app
        if not app._running or not app._screen_stack:
            return False
        screen = app.screen
        if not self._is_idle_all(screen, within_app):
            self._busy_since = self._busy_since or monotonic()
            return monotonic() - self._busy_since > _STUCK_S
        self._busy_since = 0.0
        self._held_since = self._awaited_since(screen)
        return not self._held_since

    def _is_idle_all(self, screen: Screen[Any], within_app: bool) -> bool:
        app = self._app
        if not screen.is_mounted or screen._layout_required or screen._callbacks:
            return False
        if within_app:
            queued: Iterable[Message | None] = app._message_queue.values
            if not all(isinstance(message, events.InputEvent | events.Paste) for message in queued):
                return False
        elif not _is_idle(app):
            return False
        return all(_is_idle(widget) for widget in app._registry)

    def _awaited_since(self, screen: Screen[Any]) -> float:
        """Return since when work goes on that a key must know the result of; 0 for none."""
        focused = screen.focused
        ancestors: Sequence[object] = (
            focused.ancestors_with_self if focused is not None else (screen,)
        )
        begins = [
            _busy_since(worker)
            for worker in self._app.workers._workers
            if self._is_answer(worker, ancestors)
        ]
        if begins:
            return min(begins)
        if isinstance(screen, Page) and screen.is_opening:
            return screen.made_at
        if any(getattr(node, "is_behind", False) for node in ancestors):
            self._behind_since = self._behind_since or monotonic()
            if monotonic() - self._behind_since < _PATIENCE_S:
                return self._behind_since
        else:
            self._behind_since = 0.0
        return 0.0

    def _is_answer(self, worker: Worker[Any], ancestors: Sequence[object]) -> bool:
        keys = GROUPS.get(worker.group, Keys.WAIT_NEARBY)
        if worker.is_finished or keys is Keys.GO_ON:
            return False
        if isinstance(worker._work, RestOfTask) and worker._work.is_asking:
            return False
        node, stack = worker.node, self._app.screen_stack
        is_here = node is self._app or node in stack or node in ancestors
        if keys is Keys.WAIT:
            return is_here
        if monotonic() - _busy_since(worker) > _PATIENCE_S:
            return False
        if keys is Keys.WAIT_SHORTLY:
            return is_here or node.screen in stack
        return node in ancestors


def _busy_since(worker: Worker[Any]) -> float:
    work = worker._work
    return work.busy_since if isinstance(work, RestOfTask) else worker._created_time


def _is_idle(pump: MessagePump) -> bool:
    """Return whether a message pump waits for a message and has none."""
    if pump._closed or (pump._task is None and not pump._running):
        return True
    queue: Any = pump._message_queue
    # A pump that handles a message does not wait for the next one.
    return not queue.values and bool(queue.ready_event._waiters)
