"""Open a model in the real app and wait for what happens on threads."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from dld_tui.app import DldApp
from dld_tui.core.model.document import Node
from dld_tui.screens.workspace.page import WorkspaceScreen
from dld_tui.widgets.parameters.edit_bar import EditBar
from tests.support.tui import until

NARROW, WIDE = (80, 24), (200, 50)
SIZES = pytest.mark.parametrize(
    "size", [NARROW, pytest.param(WIDE, marks=pytest.mark.broad)], ids=["80x24", "200x50"]
)
"""Runs a test in both sizes; tests without it are in the wide one."""


@dataclass
class Session:
    """One model in the app."""

    app: DldApp
    pilot: Pilot[int]
    screen: WorkspaceScreen

    async def press(self, *keys: str) -> None:
        """Press keys, and let the details follow the cursor."""
        await self.pilot.press(*keys)
        await self.settle()

    async def type(self, text: str) -> None:
        """Type text into the focused field; all but the end of it at once, as by a paste.

        Textual's pilot waits for a tenth of a second after each key.
        """
        field = self.app.focused
        if isinstance(field, Input) and len(text) > 2:
            field.insert_text_at_cursor(text[:-1])
            text = text[-1]
        await self.pilot.press(*(_KEYS.get(char, char) for char in text))
        await self.settle()

    async def settle(self) -> None:
        """Wait until the pane of details has followed the cursor."""
        await self.until(lambda: not self.screen.is_open or self.screen.navigation.follows)

    async def until(self, holds: Callable[[], Any]) -> None:
        """Wait for a condition; fails after a time."""
        await until(self.pilot, holds)

    async def go(self, name: str) -> Node:
        """Put the explorer's cursor on a node."""
        scopes = self.screen.document.scopes()
        node = next(node for scope in scopes for node in scope.nodes if node.name == name)
        self.screen.explorer.list.focus()
        assert self.screen.explorer.reveal(node)
        await self.pilot.pause()
        await self.settle()
        return node

    async def row(self, label: str) -> None:
        """Put the cursor of the parameters pane on the row with a label or value."""
        rows = self.screen.parameters.list
        for at in range(len(rows.lines)):
            if label in rows.lines.text(at):
                self.screen.panes.focus("parameters")
                rows.cursor = at
                await self.pilot.pause()
                return
        raise AssertionError(f"no row {label!r} in {self.details}")

    async def reset(self) -> None:
        """Take back what one check did, so that the next begins as in a model just opened."""
        while self.app.screen is not self.screen:
            self.app.screen.dismiss(None)
            await self.pilot.pause()
        for bar in self.screen.query(EditBar):
            await bar.remove()
        await self.until(lambda: not self.screen.tasks.is_working)
        document, explorer = self.screen.document, self.screen.explorer
        while document.history.done:
            document.undo()
        explorer.clear_filters()
        explorer.list.set_marks(set())
        self.screen.navigation.open_scope(document.main, remember=False)
        explorer.list.focus()
        explorer.list.cursor = 0
        self.app.clear_notifications()
        await self.pilot.pause()
        await self.settle()

    @property
    def rows(self) -> list[str]:
        """The explorer's rows as text."""
        lines = self.screen.explorer.list.lines
        return [lines.text(at) for at in range(len(lines))]

    @property
    def details(self) -> list[str]:
        """The rows of the parameters pane as text."""
        lines = self.screen.parameters.list.lines
        return [lines.text(at) for at in range(len(lines))]

    @property
    def text(self) -> str:
        """Everything that is on the screen."""
        strips = self.app.screen._compositor.render_strips()  # the public ways give SVG only
        return "\n".join(strip.text for strip in strips)


_KEYS = {
    " ": "space", "[": "left_square_bracket", "]": "right_square_bracket", ",": "comma",
    "'": "apostrophe", "\\": "backslash", "/": "slash", "_": "underscore", "-": "minus",
    ".": "full_stop", "=": "equals_sign", ">": "greater_than_sign",
}  # fmt: skip


@asynccontextmanager
async def opened(
    path: Path | str, size: tuple[int, int] = WIDE, pane: str = "explorer"
) -> AsyncIterator[Session]:
    """Open a model, wait until it is there, and go to a pane; "" leaves the keys with the graph."""
    app = DldApp([path])
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: app.pages)
        screen = app.pages[0]
        assert isinstance(screen, WorkspaceScreen)
        await until(pilot, lambda: screen.is_open)
        session = Session(app, pilot, screen)
        await session.until(lambda: screen.focused is not None)
        if pane:
            screen.panes.focus(pane)
            await pilot.pause()
        await session.settle()
        yield session
