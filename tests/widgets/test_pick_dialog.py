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
async def test_what_is_typed_narrows_the_list_down() -> None:
    chosen: list[Hashable] = []
    app = HostApp()
    async with app.run_test(size=(80, 24)) as pilot:
        # Words narrow it down and enter chooses.
        app.push_screen(PickDialog("Which?", lambda: numbered(5000)), chosen.append)
        await until(pilot, lambda: f"{MOST} or more" in screen_text(app))
        await pilot.press(*"conv", "space", *"blk")
        await until(pilot, lambda: HOSTILE in screen_text(app))
        await until(pilot, lambda: "node_" not in screen_text(app))
        await pilot.press("enter")
        await until(pilot, lambda: chosen)
        assert chosen == [7]
        # Arrows move while one types.
        chosen = []
        app.push_screen(PickDialog("Which?", lambda: numbered(5), value=1), chosen.append)
        await until(pilot, lambda: "node_4" in screen_text(app))
        await pilot.press("down", "down", "up", "enter")
        await until(pilot, lambda: chosen)
        assert chosen == [2]
        # Nothing matches and escape gives none.
        chosen = []
        app.push_screen(PickDialog("Which?", lambda: numbered(5)), chosen.append)
        await until(pilot, lambda: "node_4" in screen_text(app))
        await pilot.press(*"zzz")
        await until(pilot, lambda: "No match" in screen_text(app))
        await pilot.press("enter", "escape")
        await until(pilot, lambda: chosen)
        assert chosen == [None]
        # What comes last stays whatever is typed.
        chosen = []
        last = [PickItem("other", [("another …", "key")], "")]
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
