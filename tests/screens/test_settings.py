from __future__ import annotations

import pytest

from dld_tui.core.process import paths
from dld_tui.core.settings import config
from dld_tui.screens.settings import SettingsScreen
from dld_tui.widgets.forms.param_form import ParamForm
from tests.support.pages import running


@pytest.mark.broad
async def test_saving_writes_only_what_changed() -> None:
    config.save({"recent": 7})
    async with running() as run:
        await run.press("f2", "right", "f5")
        assert run.app.theme == "light"
    assert paths.config_path().read_text().split() == ["recent", "=", "7", "theme", "=", '"light"']


@pytest.mark.broad
async def test_a_wrong_value_cannot_be_saved() -> None:
    async with running() as run:
        await run.press("f2")
        form = run.app.screen.query_one(ParamForm)
        form.show_page("Files")
        await run.press("9", "9", "9", "f5")
        run.in_front(SettingsScreen)
        assert "the most is 200" in run.text
        assert run.app.config.recent == 99  # the last value that was right
        assert not paths.config_path().exists()


@pytest.mark.broad
async def test_tab_reaches_every_field_of_every_page_and_back() -> None:
    async with running() as run:
        await run.press("f2")
        form = run.app.screen.query_one(ParamForm)
        fields = [row.field for row in form.rows.values()]
        for key, order in (("tab", [*fields[1:], fields[0]]), ("shift+tab", fields[:-4:-1])):
            for field in order:
                await run.press(key)
                assert run.app.focused is field
                assert field.region.height
