"""Keys wait for what the one before them caused."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dld_tui.app import DldApp
from dld_tui.screens.home.help import HelpScreen
from dld_tui.widgets.dialogs.dialogs import ChoiceDialog
from dld_tui.widgets.shell import key_queue
from tests.support import models
from tests.support.pages import TextPage, open_pages
from tests.support.tui import type_at, until
from tests.support.workspace import opened


@pytest.mark.broad
async def test_keys_of_one_read_go_where_slow_typing_sends_them(tmp_path: Path) -> None:
    async with opened(models.write(tmp_path, models.CHAIN)) as session:
        type_at(session.app, "slash", "a", "d", "d", "enter", "d")
        await session.until(lambda: session.app.keys.at_rest)
        assert len(session.app.screen_stack) == 2
        assert session.screen.explorer.model.text == "add"
        assert session.screen.model.cursor.node is not None
        assert session.screen.model.cursor.node.name == "second"
        type_at(session.app, "enter", "enter")
        await session.until(lambda: session.app.keys.at_rest)
        assert session.app.screen is session.screen
        assert [node.name for node in session.screen.document.main.nodes] == [
            "first", "third", "last",
        ]  # fmt: skip


@pytest.mark.broad
async def test_esc_and_commands_of_the_program_pass_keys_that_are_held() -> None:
    app = DldApp()
    async with app.run_test() as pilot:
        page = TextPage("one", lost=["all of it"])
        await open_pages(app, pilot, page)
        going = asyncio.Event()
        page.run_worker(going.wait(), group="load")
        type_at(app, "ctrl+w", "s")
        await asyncio.sleep(0.02)
        assert app.screen is page
        app.keys._held_since -= 2 * key_queue._AT_ONCE_S
        type_at(app, "ctrl+q")
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        assert app.keys.is_empty or not app.keys._waiting  # what was typed before is forgotten
        going.set()
        await until(pilot, lambda: app.keys.at_rest)
        assert app.pages == [page]


@pytest.mark.broad
async def test_when_keys_are_lost_none_behind_them_is_used_and_it_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(key_queue, "MOST", 100)
    app = DldApp()
    async with app.run_test() as pilot:
        going = asyncio.Event()
        app.run_worker(going.wait(), group="open")
        told: list[str] = []
        monkeypatch.setattr(app, "notify", lambda message, **_: told.append(message))
        type_at(app, *["j"] * 100, *["Z"] * 50)
        await until(pilot, lambda: app.keys._lost == 50)
        app.keys._waiting.popleft()
        type_at(app, "j")  # there is room, but not for what came after others
        await until(pilot, lambda: app.keys._lost == 51)
        going.set()
        await until(pilot, lambda: app.keys.at_rest)
        assert told == ["51 keys came too fast and were dropped"]
        type_at(app, "question_mark")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))


@pytest.mark.broad
async def test_work_that_takes_long_does_not_hold_keys_for_ever() -> None:
    app = DldApp()
    async with app.run_test() as pilot:
        page = TextPage("one")
        await open_pages(app, pilot, page)
        going = asyncio.Event()
        worker = page.run_worker(going.wait(), group="save")
        assert not app.keys.at_rest
        worker._created_time -= 2 * key_queue._PATIENCE_S
        await until(pilot, lambda: app.keys.at_rest)
        going.set()
        page.run_worker(asyncio.Event().wait(), group="check")
        await until(pilot, lambda: app.keys.at_rest)
