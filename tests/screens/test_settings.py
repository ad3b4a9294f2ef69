from __future__ import annotations

import pytest

from dld_tui.app import DldApp
from dld_tui.core.process import paths
from dld_tui.core.settings import config
from dld_tui.screens.settings import SettingsScreen
from dld_tui.widgets.forms.param_form import ParamForm
from tests.support.tui import screen_text


@pytest.mark.broad
async def test_a_change_shows_at_once_and_escape_takes_it_back() -> None:
    app = DldApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("f2")
        await pilot.pause()
        assert isinstance(app.screen, SettingsScreen)
        await pilot.press("right")
        await pilot.pause()
        assert app.theme == "light"
        await pilot.press("tab", "right")
        await pilot.pause()
        assert "( ) unicode" in screen_text(app)
        assert "+-" in screen_text(app)
        await pilot.press("escape")
        await pilot.pause()
        assert (app.theme, app.config.glyphs) == ("dark", "unicode")
        assert not paths.config_path().exists()


@pytest.mark.broad
async def test_saving_writes_only_what_changed() -> None:
    config.save({"recent": 7})
    app = DldApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("f2", "right", "f5")
        await pilot.pause()
        assert app.theme == "light"
    assert paths.config_path().read_text().split() == ["recent", "=", "7", "theme", "=", '"light"']


@pytest.mark.broad
async def test_a_wrong_value_cannot_be_saved() -> None:
    app = DldApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("f2")
        form = app.screen.query_one(ParamForm)
        form.show_page("Files")
        await pilot.press("9", "9", "9", "f5")
        await pilot.pause()
        assert isinstance(app.screen, SettingsScreen)
        assert "the most is 200" in screen_text(app)
        assert app.config.recent == 99  # the last value that was right
        assert not paths.config_path().exists()


@pytest.mark.broad
async def test_tab_reaches_every_field_of_every_page_and_back() -> None:
    app = DldApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("f2")
        await pilot.pause()
        form = app.screen.query_one(ParamForm)
        fields = [row.field for row in form.rows.values()]
        for key, order in (("tab", [*fields[1:], fields[0]]), ("shift+tab", fields[::-1])):
            for field in order:
                await pilot.press(key)
                await pilot.pause()
                assert app.focused is field
                assert field.region.height
