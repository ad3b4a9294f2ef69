"""The whole app without the screens of other rooms: pages that show a text, jobs without work."""

from __future__ import annotations

import builtins
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from textual.pilot import Pilot
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input

from dld_tui.app import DldApp
from dld_tui.core.events import Cancelled, Event
from dld_tui.targets.base import Job
from dld_tui.widgets.lists.line_view import LineView, ListSource
from dld_tui.widgets.shell.page import Page
from tests.support.tui import front, screen_text, told, until


class TextPage(Page):
    """A tab with one line; `lost` is what closing it would lose."""

    HELP = "A page for tests."

    def __init__(self, title: str, lost: Iterable[str] = (), path: Path | None = None) -> None:
        super().__init__()
        self.tab_title = title
        self.path = path
        self.lost = list(lost)
        self.saved = 0

    def body(self) -> Iterable[Widget]:
        yield LineView(ListSource([[(f"this is {self.tab_title}", "")]]))

    def unsaved(self) -> list[str]:
        return self.lost

    def save_then(self, done: Callable[[], None]) -> None:
        self.saved += 1
        self.lost = []
        done()


async def open_pages(app: DldApp, pilot: Pilot[Any], *pages: Page) -> None:
    """Add tabs and wait until the last one is shown."""
    for page in pages:
        app.add_page(page)
    await pilot.pause()


P = TypeVar("P", bound=Screen[Any])


@dataclass
class Running:
    """The app, as a user has it."""

    app: DldApp
    pilot: Pilot[Any]

    async def open(self, *pages: Page) -> None:
        """Add tabs and wait until the last one is shown."""
        await open_pages(self.app, self.pilot, *pages)

    async def press(self, *keys: str) -> None:
        """Press keys, and wait until the app is at rest."""
        await self.pilot.press(*keys)

    async def type(self, text: str, *keys: str) -> None:
        """Type text into the focused field, all but its end at once, as by a paste; then keys.

        Textual's pilot waits for a tenth of a second after each key.
        """
        field = self.app.focused
        if isinstance(field, Input) and len(text) > 2:
            field.insert_text_at_cursor(text[:-1])
            text = text[-1]
        await self.press(*("space" if char == " " else char for char in text), *keys)

    async def retype(self, text: str, *keys: str) -> None:
        """Replace the text of the focused field; then keys."""
        await self.pilot.press("ctrl+a", "ctrl+u", "ctrl+k")
        await self.type(text, *keys)

    async def until(self, holds: Callable[[], Any]) -> None:
        """Wait for a condition; fails after a time."""
        await until(self.pilot, holds)

    async def shows(self, text: str) -> None:
        """Wait until a text is on the screen."""
        await self.until(lambda: text in self.text)

    async def front(self, kind: builtins.type[P]) -> P:
        """Wait until a screen of a kind is in front."""
        return await front(self.pilot, kind)

    def in_front(self, kind: builtins.type[P]) -> P:
        """Return the screen in front, which is of a kind."""
        screen = self.app.screen
        assert isinstance(screen, kind)
        return screen

    @property
    def told(self) -> list[str]:
        """The notices that were shown."""
        return told(self.app)

    @property
    def text(self) -> str:
        """Everything that is on the screen."""
        return screen_text(self.app)


@asynccontextmanager
async def running(
    app: DldApp | None = None, size: tuple[int, int] = (80, 24)
) -> AsyncIterator[Running]:
    """Run an app, by default one without files."""
    shown = app or DldApp()
    async with shown.run_test(size=size) as pilot:
        yield Running(shown, pilot)


class ScriptedJob(Job):
    """Says what it is told; `hold` keeps it running until it is cancelled or closed."""

    def __init__(self, events: Sequence[Event], *, hold: bool = False) -> None:
        self.script = list(events)
        self.hold = hold
        self.told = threading.Event()
        self.asked = threading.Event()
        self.closed = threading.Event()

    def events(self) -> Iterator[Event]:
        yield from self.script
        self.told.set()
        if self.hold:
            while not self.asked.is_set() and not self.closed.is_set():
                self.asked.wait(0.01)
            yield Cancelled()

    def cancel(self) -> None:
        self.asked.set()

    def close(self) -> None:
        self.closed.set()
