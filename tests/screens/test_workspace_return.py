"""After undo, cursor and marks are where they were before the edit; after redo, where they were
when it was taken back."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import onnx
import pytest

from dld_tui.core.errors import DldError
from dld_tui.core.types import JSON
from tests.core.model.edits.properties import PROPERTIES
from tests.support import models
from tests.support.drawn_models import drawn_model
from tests.support.workspace import Session, opened

WIDE = (180, 50)


def place(session: Session) -> dict[str, Any]:
    """Return what a user sees of cursor and marks, by the public state of the panes."""
    screen = session.screen
    cursor = screen.model.cursor
    return {
        "pane": screen.panes.focused(), "root": screen.model.listing.root,
        "row": screen.explorer.list.key_at_cursor(), "marks": set(screen.explorer.list.marks),
        "subject": screen.parameters.subject, "parameter": screen.parameters.list.key_at_cursor(),
        "node": cursor.node, "link": cursor.link, "terminal": cursor.terminal,
        "graph": screen.graph.subject_at_cursor, "drawn marks": set(screen.graph.list.marks),
        "finding": cursor.finding,
    }  # fmt: skip


async def check(session: Session, edit: Callable[[], Awaitable[None]]) -> None:
    """Make an edit, take it back, make it again and take it back."""
    document = session.screen.document
    before, count = place(session), len(document.history.done)
    await edit()
    await session.until(lambda: len(document.history.done) == count + 1)
    for _ in range(2):
        await session.press("ctrl+z")
        await session.until(lambda: len(document.history.done) == count)
        await session.until(lambda: not session.screen.findings.is_behind)
        after = place(session)
        assert {key: value for key, value in after.items() if value != before[key]} == {}
        await session.press("ctrl+y")
        await session.until(lambda: len(document.history.done) == count + 1)
    await session.press("ctrl+z")
    await session.until(lambda: len(document.history.done) == count)


@pytest.mark.broad
async def test_nodes_that_come_back_are_marked_again(tmp_path: Path) -> None:
    async with opened(models.write(tmp_path, models.CHAIN), WIDE) as session:
        await session.press("1", "home", "down", "space", "space")
        marked = session.screen.model.chosen_nodes
        assert [node.name for node in marked] == ["first", "second"]

        async def edit() -> None:
            names: list[JSON] = [node.name for node in marked]
            session.screen.document.apply("delete_nodes", scope=[], nodes=names)

        await check(session, edit)


@pytest.mark.broad
async def test_drawn_edits(tmp_path: Path) -> None:
    dice = random.Random(41)
    drawn = drawn_model(41_007)
    path = tmp_path / "drawn.onnx"
    onnx.save(drawn, path)
    properties = [one for one in PROPERTIES if one.edit != "fold_nodes"]
    made = 0
    async with opened(path, WIDE) as session:
        document = session.screen.document
        while made < 5:
            for _ in range(dice.randint(1, 4)):
                await session.press(dice.choice(_WAYS))
            prop = dice.choice(properties)
            arguments = prop.draw(document, dice, dice.choice([1, 2, 5]))
            if arguments is None:
                continue

            async def edit(name: str = prop.edit, arguments: Any = arguments) -> None:
                document.apply(name, **arguments)

            try:
                tried = document.apply(prop.edit, **arguments)
            except DldError:
                continue
            if not tried.primitives:
                continue
            document.undo()
            await session.settle()
            await check(session, edit)
            made += 1


_WAYS = ("1", "2", "3", "j", "j", "k", "space", "down", "v", "end", "home", "pagedown", "o")
