"""The whole app without the screens of other rooms: pages that show a text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from textual.pilot import Pilot
from textual.widget import Widget

from dld_tui.app import DldApp
from dld_tui.widgets.lists.line_view import LineView, ListSource
from dld_tui.widgets.shell.page import Page


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
