"""A screen leaves itself, and nothing else."""

from __future__ import annotations

import asyncio
from asyncio import Event
from time import sleep
from typing import Any

import pytest
from textual import _time
from textual._compositor import Compositor
from textual._context import visible_screen_stack

from dld_tui.app import DldApp
from dld_tui.widgets.dialogs.dialogs import Choice, ChoiceDialog, PromptDialog
from dld_tui.widgets.shell.page import KeyBar
from tests.support.pages import TextPage, open_pages
from tests.support.tui import until


async def test_what_comes_later_comes_on_a_busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    app, page, came = DldApp(), TextPage("one"), Event()
    clock = _time.get_time

    def late() -> float:
        sleep(0.003)
        return clock()

    async with app.run_test() as pilot:
        await open_pages(app, pilot, page)
        monkeypatch.setattr(_time, "get_time", late)
        page.set_timer(0.001, came.set)
        await asyncio.wait_for(came.wait(), 5)


@pytest.mark.broad
async def test_a_dialog_leaves_alone_wherever_it_is() -> None:
    app = DldApp()
    async with app.run_test() as pilot:
        # A dialog that is left twice takes nothing with it.
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
        # A dialog leaves from under another and from a tab that is not seen.
        first, second = TextPage("one"), TextPage("two")
        await open_pages(app, pilot, first)
        answers.clear()
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
        # A page below two dialogs is seen as it is.
        page = TextPage("one")
        await open_pages(app, pilot, page)
        app.push_screen(PromptDialog("Lower"))
        app.push_screen(PromptDialog("Upper"))
        await pilot.pause()
        assert "after" not in _seen(app)
        page.query_one(KeyBar).crumb = "after"
        await until(pilot, lambda: "after" in _seen(app))  # painted when the page finds the time
        # What holds paint is not ended by the time of what held it before.
        page = TextPage("one")
        await open_pages(app, pilot, page)
        page.hold_paint(0.01)
        page.hold_paint(60)
        await pilot.pause(0.05)
        assert page._hold is not None
        page.release_paint()
        assert page._hold is None


def _seen(app: DldApp) -> str:
    visible_screen_stack.set(app._background_screens)
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


async def test_a_new_tab_is_shown_once(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[object] = []

    def on_screen_resume(self: TextPage, event: object) -> None:
        shown.append(self)

    monkeypatch.setattr(TextPage, "on_screen_resume", on_screen_resume, raising=False)
    app = DldApp()
    async with app.run_test() as pilot:
        first, second = TextPage("one"), TextPage("two")
        await open_pages(app, pilot, first, second)
        assert shown == [first, second]
        app.show_page(first)
        await pilot.pause()
        assert shown == [first, second, first]


async def test_nothing_is_painted_while_it_cannot_be_shown_and_all_of_it_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    painted: list[bool] = []
    paint = Compositor.render_update

    def render_update(self: Compositor, **options: Any) -> Any:
        painted.append(bool(app._running and not app._batch_count))
        return paint(self, **options)

    monkeypatch.setattr(Compositor, "render_update", render_update)
    app = DldApp()
    async with app.run_test() as pilot:
        page = TextPage("one")
        await open_pages(app, pilot, page)
        await until(pilot, lambda: painted)
        before = len(painted)
        with app.batch_update():
            page.query_one(KeyBar).display = False
            page._compositor_refresh()
            await pilot.pause()
            assert len(painted) == before
        page.refresh()
        await until(pilot, lambda: len(painted) > before)
        assert all(painted)
