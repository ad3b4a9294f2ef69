"""Small apps that host one widget, with the real style sheet and themes."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any, ClassVar, TypeVar

from textual import events
from textual.app import App
from textual.keys import _character_to_key
from textual.message import Message
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widget import Widget

import dld_tui
from dld_tui.core.settings.config import Config
from dld_tui.core.settings.state import State
from dld_tui.widgets.lists.styled import Piece
from dld_tui.widgets.shell.themes import THEMES

HOSTILE = "/blk[0]/Conv [/weight]"
ESCAPE = "\x1b]0;x\x07"
STYLES = Path(dld_tui.__file__).parent / "styles"


class HostApp(App[int]):
    """Shows some widgets; plays the app for widgets that ask their host."""

    CSS_PATH: ClassVar[Any] = STYLES / "base.tcss"
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, *shown: Widget | Callable[[], Widget]) -> None:
        super().__init__()
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = "dark"
        self.shown = shown
        self.config = Config()
        self.state = State()
        self.pages: Sequence[Any] = ()
        self.page: Any = None
        self.copied: list[str] = []
        self.messages: list[Message] = []
        self.notices: list[str] = []

    def notify(self, message: str, **about: Any) -> None:
        self.notices.append(message)
        super().notify(message, **about)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return dict(THEMES[0].variables)

    def compose(self) -> Iterable[Widget]:
        for shown in self.shown:
            yield shown if isinstance(shown, Widget) else shown()

    def copy_to_clipboard(self, text: str) -> None:
        self.copied.append(text)

    def note(self, message: Message) -> None:
        """Keep a message; give it as ``message_hook`` of ``run_test``."""
        self.messages.append(message)

    def of(self, kind: type[Message]) -> list[Any]:
        """Return the messages of a kind, each once."""
        found = {id(message): message for message in self.messages if isinstance(message, kind)}
        return list(found.values())


class Numbered:
    """A source of any length whose rows are made when asked for."""

    def __init__(self, count: int, texts: Mapping[int, str] | None = None) -> None:
        self.count = count
        self.texts = texts or {}
        self.asked: list[int] = []

    def __len__(self) -> int:
        return self.count

    def key(self, index: int) -> Hashable:
        return f"k{index}"

    def text(self, index: int) -> str:
        return self.texts.get(index, f"row {index}")

    def line(self, index: int, width: int) -> Sequence[Piece]:
        self.asked.append(index)
        return [(self.text(index), "")]


def rows_of(app: App[Any]) -> list[str]:
    """Return the text of the screen, line by line, as it is drawn."""
    return [
        "".join(segment.text for segment in strip)
        for strip in app.screen._compositor.render_strips()
    ]


def screen_text(app: App[Any]) -> str:
    return "\n".join(rows_of(app))


def flat_text(app: App[Any]) -> str:
    """Return the text of the screen without blanks and borders, however it was wrapped."""
    return re.sub(r"[\s┃│]", "", screen_text(app))


def told(app: App[Any]) -> list[str]:
    """Return the notices that were shown."""
    return [notice.message for notice in app._notifications]


def type_at(app: App[Any], *keys: str) -> None:
    """Put keys into the app's queue at once: characters, and names of keys such as ``enter``."""
    for key in keys:
        if len(key) == 1:
            app.post_message(events.Key(_character_to_key(key), key))
        else:
            app.post_message(events.Key(key, None))


LIMIT_S = 60.0
"""A condition that does not hold after so long fails the test."""


async def until(
    pilot: Pilot[Any],
    holds: Callable[..., object],
    why: Callable[[], object] = lambda: "the condition never held",
) -> None:
    """Wait until a condition holds, and until the app is at rest.

    After :data:`LIMIT_S` it fails, with what `why` returns then.
    """
    limit = monotonic() + LIMIT_S
    while not holds():
        assert monotonic() < limit, why()
        await asyncio.sleep(0.005)
    await pilot.pause()


P = TypeVar("P", bound=Screen[Any])


async def front(pilot: Pilot[Any], kind: type[P]) -> P:
    """Wait until a screen of a kind is in front."""
    await until(pilot, lambda: isinstance(pilot.app.screen, kind))
    screen = pilot.app.screen
    assert isinstance(screen, kind), screen_text(pilot.app)
    return screen
