"""A screen leaves itself, and nothing else."""

from __future__ import annotations

from typing import Any

from dld_tui.app import DldApp
from dld_tui.widgets.dialogs.dialogs import Choice, ChoiceDialog, PromptDialog
from tests.support.pages import TextPage, open_pages


async def test_a_dialog_that_is_left_twice_takes_nothing_with_it() -> None:
    app = DldApp()
    async with app.run_test() as pilot:
        page = TextPage("one")
        await open_pages(app, pilot, page)
        answers: list[Any] = []
        dialog = ChoiceDialog("Sure?", "", [Choice("y", "yes", "y")])
        app.push_screen(dialog, answers.append)
        await pilot.pause()
        dialog.dismiss("y")
        dialog.dismiss("y")
        page.dismiss(None)
        await pilot.pause()
        assert app.screen is page
        assert answers == ["y"]


async def test_a_dialog_leaves_from_under_another_and_from_a_tab_that_is_not_seen() -> None:
    app = DldApp()
    async with app.run_test() as pilot:
        first, second = TextPage("one"), TextPage("two")
        await open_pages(app, pilot, first)
        answers: list[Any] = []
        lower, upper = PromptDialog("Lower"), PromptDialog("Upper")
        app.push_screen(lower, answers.append)
        app.push_screen(upper, answers.append)
        await pilot.pause()
        lower.dismiss("a")
        await pilot.pause()
        assert app.screen_stack == [first, upper]
        await open_pages(app, pilot, second)
        upper.dismiss("b")
        await pilot.pause()
        assert app.screen_stack == [second]
        app.show_page(first)
        await pilot.pause()
        assert app.screen_stack == [first]
        assert answers == ["a", "b"]
