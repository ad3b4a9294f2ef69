from __future__ import annotations

from dld_tui.app import DldApp
from dld_tui.screens.home.palette import Palette, entries_for, ranked
from dld_tui.screens.settings import SettingsScreen
from tests.support.tui import rows_of, screen_text


async def test_typing_and_enter_runs_a_command() -> None:
    app = DldApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("ctrl+p")
        await pilot.pause()
        assert isinstance(app.screen, Palette)
        await pilot.press(*"setti")
        await pilot.pause()
        row = next(row for row in rows_of(app) if "settings" in row)
        assert "F2" in row
        await pilot.press("enter")
        await pilot.pause()
        await pilot.pause()
        assert isinstance(app.screen, SettingsScreen)


async def test_what_the_command_under_the_cursor_does_is_read_whole() -> None:
    app = DldApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("ctrl+p", *"recent files")
        await pilot.pause()
        assert isinstance(app.screen, Palette)
        for _ in range(3):
            told = " ".join(" ".join(screen_text(app).replace("┃", " ").split()).split())
            entry = app.screen._shown[app.screen.view.cursor]
            assert entry.command.help in told
            await pilot.press("down")
            await pilot.pause()


async def test_a_command_that_cannot_run_says_why_and_stays() -> None:
    app = DldApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("ctrl+p", *"close tab")
        await pilot.pause()
        assert "no file is open" in screen_text(app)
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(app.screen, Palette)
        await pilot.press("escape")
        await pilot.pause()
        assert "type a path" in rows_of(app)[-1]


async def test_commands_of_models_say_that_a_model_must_be_opened_first() -> None:
    app = DldApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("ctrl+p", *"quantize")
        await pilot.pause()
        place, row = next((at, row) for at, row in enumerate(rows_of(app)) if "Quantize " in row)
        assert "open a model first" in row
        first = next(at for at, row in enumerate(rows_of(app)) if "▌Place Q/DQ" in row)
        await pilot.press(*["down"] * (place - first), "enter")
        await pilot.pause()
        assert isinstance(app.screen, Palette)
        await pilot.press(*"zzzz")
        await pilot.pause()
        assert "No such command" in screen_text(app)


async def test_commands_of_the_place_come_and_those_that_can_run_first() -> None:
    app = DldApp()
    async with app.run_test(size=(80, 24)):
        entries = entries_for(app.screen)
        ids = {entry.command.id for entry in entries}
        assert {"file.open", "recent.forget"} <= ids
        assert not {"edit.undo", "report.csv", "list.up"} & ids
        order = [entry.why_not is not None for entry in ranked(entries, "")]
        assert order == sorted(order)
        assert ranked(entries, "open a model")[0].command.id == "file.open"
        assert ranked(entries, "zzzz") == []
