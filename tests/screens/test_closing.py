"""`q` closes what is in front; the keys at the bottom take clicks."""

from __future__ import annotations

from dld_tui.app import DldApp
from dld_tui.screens.home.help import HelpScreen
from dld_tui.screens.home.palette import Palette
from dld_tui.screens.settings import SettingsScreen
from dld_tui.widgets.dialogs.dialogs import QuitDialog
from tests.support.pages import TextPage, open_pages
from tests.support.tui import rows_of, screen_text


async def test_q_closes_what_is_in_front_and_then_leaves() -> None:
    app = DldApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await open_pages(app, pilot, TextPage("one"), TextPage("two"))
        await pilot.press("question_mark")
        await pilot.pause()
        assert isinstance(app.screen, HelpScreen)
        await pilot.press("q")
        await pilot.pause()
        assert app.screen is app.pages[1]
        await pilot.press("q")
        await pilot.pause()
        assert [page.tab_title for page in app.pages] == ["one"]
        assert app.screen is app.pages[0]
        await pilot.press("ctrl+t", "q")  # the start page is in front of the tab
        await pilot.pause()
        assert app.screen is app.pages[0]
        await pilot.press("q")
        await pilot.pause()
    assert app.return_code == 0
    assert app._exit


async def test_ctrl_c_says_in_our_words_what_leaves() -> None:
    app = DldApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("ctrl+c")
        await pilot.pause()
        assert [one.message for one in app._notifications] == ["^Q quits, q closes this page"]


async def test_q_asks_before_edits_are_lost_and_is_a_letter_in_a_field() -> None:
    app = DldApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await open_pages(app, pilot, TextPage("one", ["one: 2 edits"]))
        await pilot.press("q")
        await pilot.pause()
        assert isinstance(app.screen, QuitDialog)
        text = screen_text(app)
        assert all(answer in text for answer in ("save and quit", "quit and lose", "stay"))
        await pilot.press("q")
        await pilot.pause()
        assert app.page is app.pages[0]
        await pilot.press("ctrl+p", "q")
        await pilot.pause()
        assert isinstance(app.screen, Palette)
        assert app.screen.query_text == "q"
        await pilot.press("escape")


async def test_a_click_on_a_key_runs_it() -> None:
    app = DldApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await open_pages(app, pilot, TextPage("one"))
        row = rows_of(app)[-1]
        await pilot.click("KeyBar", offset=(row.index("help"), 0))
        await pilot.pause()
        assert isinstance(app.screen, HelpScreen)
        row = rows_of(app)[-1]
        await pilot.click("KeyBar", offset=(row.index("close"), 0))
        await pilot.pause()
        assert app.screen is app.pages[0]
        assert not isinstance(app.screen, SettingsScreen)
