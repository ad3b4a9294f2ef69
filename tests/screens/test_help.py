from __future__ import annotations

import pytest

from dld_tui.app import DldApp
from dld_tui.commands import all_commands
from dld_tui.core.settings.config import Config
from dld_tui.core.tables.table import Column, Table
from dld_tui.core.text import cell_width
from dld_tui.screens.home.help import _SCOPES, HelpScreen, _scope_rows
from dld_tui.screens.settings import SettingsScreen
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.table_view import TableView
from tests.support.pages import TextPage, open_pages
from tests.support.tui import screen_text


@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
async def test_help_tells_the_pane_its_keys_and_why_not(size: tuple[int, int]) -> None:
    app = DldApp(config=Config(keys={"app.settings": "f6"}))
    async with app.run_test(size=size) as pilot:
        await open_pages(app, pilot, TextPage("model"))
        await pilot.press("question_mark")
        await pilot.pause()
        assert isinstance(app.screen, HelpScreen)
        assert "A page for tests." in screen_text(app)
        lines = app.screen.query_one(LineView).lines
        text = "\n".join(lines.text(index) for index in range(len(lines)))
        assert "only one file is open" in text
        assert "F6" in text
        assert "First steps" in text
        assert "Search in this list." in text
        await pilot.press("escape")
        await pilot.pause()
        assert not isinstance(app.screen, HelpScreen)


def test_every_place_has_a_title_and_every_word_of_the_help_is_seen() -> None:
    assert {command.scope for command in all_commands()} <= {*_SCOPES}
    view = TableView(Table([Column("name", "Name", str)], ()))
    rows = _scope_rows("table", view, 76, {})
    words = " ".join("".join(part for part, _ in row) for row, _ in rows).split()
    for command in all_commands():
        if command.scope == "table" and command.unavailable(view.conditions()) is None:
            assert [word for word in command.help.split() if word not in words] == []
    assert max(sum(map(cell_width, (part for part, _ in row))) for row, _ in rows) <= 76


def test_a_table_shows_its_own_keys_in_place_of_those_of_lists() -> None:
    view = TableView(Table([Column("name", "Name", str)], ()))
    shown = _scope_rows("table", view, 110, {}) + _scope_rows("list", view, 110, {})
    text = ["".join(part for part, _ in row) for row, _ in shown]
    assert any("Sort by the next column." in row for row in text)
    assert any("Show the columns to the left." in row for row in text)
    assert any("Move up." in row for row in text)
    assert not any("Scroll left, or fold." in row for row in text)


@pytest.mark.broad
async def test_help_runs_what_it_shows() -> None:
    app = DldApp()
    async with app.run_test(size=(100, 40)) as pilot:
        await open_pages(app, pilot, TextPage("model"))
        await pilot.press("question_mark")
        await pilot.pause()
        view = app.screen.query_one(LineView)
        texts = [view.lines.text(index) for index in range(len(view.lines))]
        view.cursor = next(at for at, text in enumerate(texts) if "only one file is open" in text)
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(app.screen, HelpScreen)  # it says why not, and stays
        view.cursor = next(at for at, text in enumerate(texts) if "Change theme" in text)
        await pilot.press("enter")
        await pilot.pause()
        await pilot.pause()
        assert isinstance(app.screen, SettingsScreen)
