from __future__ import annotations

from collections.abc import Hashable, Iterator

import pytest

from dld_tui.widgets.dialogs.search import MOST, PickDialog, PickItem
from tests.support.tui import HOSTILE, HostApp, screen_text, until


def numbered(count: int) -> Iterator[PickItem]:
    for number in range(count):
        name = HOSTILE if number == 7 else f"node_{number}"
        yield PickItem(number, [(name, "")], name)


@pytest.mark.broad
async def test_words_narrow_it_down_and_enter_chooses() -> None:
    chosen: list[Hashable] = []
    app = HostApp()
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(PickDialog("Which?", lambda: numbered(5000)), chosen.append)
        await until(pilot, lambda: f"{MOST} or more" in screen_text(app))
        await pilot.press(*"conv", "space", *"blk")
        await until(pilot, lambda: HOSTILE in screen_text(app))
        await until(pilot, lambda: "node_" not in screen_text(app))
        await pilot.press("enter")
        await until(pilot, lambda: chosen)
        assert chosen == [7]


async def test_arrows_move_while_one_types() -> None:
    chosen: list[Hashable] = []
    app = HostApp()
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(PickDialog("Which?", lambda: numbered(5), value=1), chosen.append)
        await until(pilot, lambda: "node_4" in screen_text(app))
        await pilot.press("down", "down", "up", "enter")
        await until(pilot, lambda: chosen)
        assert chosen == [2]


async def test_nothing_matches_and_escape_gives_none() -> None:
    chosen: list[Hashable] = []
    app = HostApp()
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(PickDialog("Which?", lambda: numbered(5)), chosen.append)
        await until(pilot, lambda: "node_4" in screen_text(app))
        await pilot.press(*"zzz")
        await until(pilot, lambda: "No match" in screen_text(app))
        await pilot.press("enter", "escape")
        await until(pilot, lambda: chosen)
        assert chosen == [None]


async def test_what_comes_last_stays_whatever_is_typed() -> None:
    chosen: list[Hashable] = []
    app = HostApp()
    last = [PickItem("other", [("another …", "key")], "")]
    async with app.run_test(size=(80, 24)) as pilot:
        dialog = PickDialog("Which?", lambda: numbered(5), last=last)
        app.push_screen(dialog, chosen.append)
        await until(pilot, lambda: "node_4" in screen_text(app))
        await pilot.press(*"de_3x")
        await until(pilot, lambda: "node_" not in screen_text(app))
        assert dialog.view.key_at_cursor() == "other"
        await pilot.press("backspace")
        await until(pilot, lambda: "node_3" in screen_text(app))
        assert dialog.view.key_at_cursor() == 3
        assert "another …" in screen_text(app)
        await pilot.press("down", "enter")
        await until(pilot, lambda: chosen)
        assert chosen == ["other"]
