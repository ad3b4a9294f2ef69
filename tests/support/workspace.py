"""Open a model in the real app and wait for what happens on threads."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import onnx
from onnx import helper
from typing_extensions import Self

from dld_tui.app import DldApp
from dld_tui.core.model.document import Document, Node
from dld_tui.core.model.document.transactions import Edit
from dld_tui.core.process.paths import journal_dir
from dld_tui.screens.workspace.page import WorkspaceScreen
from dld_tui.widgets.parameters.edit_bar import EditBar
from tests.support.pages import Running
from tests.support.tui import until

NARROW, WIDE = (80, 24), (200, 50)


@dataclass
class Session(Running):
    """One model in the app."""

    screen: WorkspaceScreen

    async def press(self, *keys: str) -> None:
        """Press keys, and let the details follow the cursor."""
        await self.pilot.press(*keys)
        await self.settle()

    async def settle(self) -> None:
        """Wait until the pane of details has followed the cursor."""
        await self.until(lambda: not self.screen.is_open or self.screen.navigation.follows)

    def edit(self, made: Edit) -> None:
        """Edit the model, as a command does."""
        self.screen.history.edit(made)

    async def go(self, name: str, *keys: str) -> Node:
        """Put the explorer's cursor on a node, and press keys."""
        scopes = self.screen.document.scopes()
        node = next(node for scope in scopes for node in scope.nodes if node.name == name)
        self.screen.explorer.list.focus()
        assert self.screen.explorer.reveal(node)
        await self.pilot.pause()
        await self.settle()
        if keys:
            await self.press(*keys)
        return node

    async def row(self, label: str, *keys: str) -> None:
        """Put the cursor of the parameters pane on the row with a label or value; press keys."""
        rows = self.screen.parameters.list
        for at in range(len(rows.lines)):
            if label in rows.lines.text(at):
                self.screen.panes.focus("parameters")
                rows.cursor = at
                await self.pilot.pause()
                if keys:
                    await self.press(*keys)
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

    async def in_turn(self, *checks: Callable[[Self], Awaitable[None]]) -> None:
        """Make checks, each as if the model was just opened."""
        for check in checks:
            await check(self)
            await self.reset()

    @property
    def at(self) -> str:
        """The name of the node at the explorer's cursor."""
        assert self.screen.explorer.node is not None
        return self.screen.explorer.node.name

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


def write_long(folder: Path, count: int, name: str = "n{}") -> Path:
    """Write a model of so many Relu nodes, one behind the other, from `v0` of two elements on."""
    nodes = [
        helper.make_node("Relu", [f"v{at}"], [f"v{at + 1}"], name=name.format(at))
        for at in range(count)
    ]
    ends = [helper.make_tensor_value_info(f"v{at}", 1, [2]) for at in (0, count)]
    graph = helper.make_graph(nodes, "long", ends[:1], ends[1:])
    path = folder / "long.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), path)
    return path


def leave_journal(path: Path) -> None:
    """Leave the journal of one edit, and of one that was undone, as a killed program does."""
    before = {*journal_dir().glob("*")}
    document = Document.open(path, journaled=True)
    document.apply("rename_node", scope=[], node="second", name="renamed")
    document.apply("set_attribute", scope=[], node="renamed", attribute="a", kind="int", value=1)
    document.undo()
    (journal,) = {*journal_dir().glob("*.jsonl")} - before
    kept = journal.read_bytes()
    document.close()
    for discarded in {*journal_dir().iterdir()} - before:
        discarded.unlink()
    journal.write_bytes(kept)


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
