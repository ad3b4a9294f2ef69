from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.css.query import NoMatches
from textual.geometry import Size
from textual.screen import Screen
from textual.widgets import Input

from dld_tui.app import DldApp
from dld_tui.core.errors import ExitStatus, InputError
from dld_tui.core.process import terminal
from dld_tui.core.process.paths import short
from dld_tui.core.settings.config import Config
from dld_tui.core.settings.state import State
from dld_tui.screens.home.welcome import WelcomeScreen
from dld_tui.widgets.dialogs.dialogs import ChoiceDialog, ErrorDialog
from dld_tui.widgets.shell.page import MOST, KeyBar
from tests.support.pages import TextPage, open_pages
from tests.support.tui import ESCAPE, HOSTILE, flat_text, rows_of, screen_text, until


async def test_it_begins_on_the_start_page() -> None:
    app = DldApp()
    async with app.run_test(size=(80, 24)):
        assert isinstance(app.screen, WelcomeScreen)
        assert app.animation_level == "none"


async def test_tasks_begin_in_turn_on_every_version_of_python() -> None:
    loop = asyncio.get_running_loop()
    # Textual sets that of eager tasks, from 3.12 on.
    loop.set_task_factory(lambda loop, work, **kwargs: asyncio.Task(work, loop=loop, **kwargs))
    async with DldApp().run_test(size=(80, 24)):
        assert loop.get_task_factory() is None


async def test_tabs_are_shown_switched_and_closed() -> None:
    app = DldApp()
    first, second = TextPage("first"), TextPage("second")
    async with app.run_test(size=(80, 24)) as pilot:
        await open_pages(app, pilot, first, second)
        assert app.page is second
        assert "this is second" in screen_text(app)
        assert rows_of(app)[0].startswith(" first │ second ")
        await pilot.press("right_curly_bracket")
        assert app.page is first
        await pilot.press("ctrl+pageup")
        assert app.page is second
        await pilot.press("ctrl+w")
        await pilot.pause()
        assert app.page is first
        assert app.pages == [first]
        await pilot.press("ctrl+t")
        assert isinstance(app.screen, WelcomeScreen)
        await pilot.press("ctrl+pagedown")
        assert app.page is first
        await pilot.press("ctrl+w")
        await pilot.pause()
        assert isinstance(app.screen, WelcomeScreen)


async def test_a_dialog_stays_with_its_tab() -> None:
    app = DldApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await open_pages(app, pilot, TextPage("first"), TextPage("second"))
        app.show_error(InputError("went wrong"))
        await pilot.pause()
        app.action_previous_tab()
        await pilot.pause()
        assert "went wrong" not in screen_text(app)
        app.action_next_tab()
        await pilot.pause()
        assert "went wrong" in screen_text(app)


async def test_what_failed_outlives_the_tab_that_closes_for_it() -> None:
    app = DldApp()
    async with app.run_test(size=(80, 24)) as pilot:
        page = TextPage("first")
        await open_pages(app, pilot, page)
        app.show_error(InputError("went wrong"), "Not read")
        await pilot.pause()
        app.close_page(page)
        await until(pilot, lambda: "went wrong" in screen_text(app))
        assert "Not read" in screen_text(app)
        await pilot.press("escape")
        assert isinstance(app.screen, WelcomeScreen)


async def test_no_tab_comes_or_goes_while_the_program_ends() -> None:
    class Late(TextPage):
        def on_unmount(self) -> None:
            app.add_page(TextPage("late"))
            app.close_page(other)

    app = DldApp()
    other = TextPage("other")
    async with app.run_test(size=(80, 24)) as pilot:
        await open_pages(app, pilot, other, Late("first"), TextPage("second"))
    assert [page.tab_title for page in app.pages] == ["other", "first", "second"]


@pytest.mark.parametrize(
    ("key", "open_pages_left", "saved"), [("s", 0, 1), ("d", 0, 0), ("k", 1, 0), ("escape", 1, 0)]
)
async def test_closing_asks_for_unsaved_edits(key: str, open_pages_left: int, saved: int) -> None:
    app = DldApp()
    page = TextPage("model", lost=[f"{HOSTILE}: 3 edits"])
    async with app.run_test(size=(80, 24)) as pilot:
        await open_pages(app, pilot, page)
        await pilot.press("ctrl+w")
        await pilot.pause()
        assert HOSTILE in screen_text(app)
        await pilot.press(key)
        await pilot.pause()
        assert (len(app.pages), page.saved) == (open_pages_left, saved)


@pytest.mark.broad
async def test_quitting_asks_for_unsaved_edits_of_all_tabs() -> None:
    app = DldApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await open_pages(app, pilot, TextPage("a", lost=["a: 1 edit"]), TextPage("b"))
        await pilot.press("ctrl+q")
        await pilot.pause()
        assert isinstance(app.screen, ChoiceDialog)
        assert "a: 1 edit" in screen_text(app)
        await pilot.press("escape", "ctrl+q")
        await pilot.pause()
        await pilot.press("d")
        await pilot.pause()
    assert app.return_code == 0


@pytest.mark.parametrize(
    ("keys", "saved", "is_left"), [("a", (1, 1), True), ("sk", (0, 1), False), ("ss", (1, 1), True)]
)
async def test_quitting_saves_all_or_the_shown_one(
    keys: str, saved: tuple[int, int], is_left: bool
) -> None:
    app = DldApp()
    async with app.run_test(size=(80, 24)) as pilot:
        first, second = TextPage("a", lost=["a: 1 edit"]), TextPage("b", lost=["b: 2 edits"])
        await open_pages(app, pilot, first, second)
        await pilot.press("ctrl+q")
        for key in keys:
            await pilot.press(key)
            await pilot.pause()
        assert (first.saved, second.saved) == saved
        assert (app.return_code == 0) == is_left


async def test_a_file_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    (tmp_path / "empty.onnx").write_bytes(b"")
    missing = tmp_path / f"no{ESCAPE}.onnx"
    app = DldApp([tmp_path / "empty.onnx", missing])
    async with app.run_test(size=(100, 24)) as pilot:
        await until(pilot, lambda: "\\x1b]0;x\\x07" in flat_text(app))
        assert isinstance(app.screen, ErrorDialog)
        await pilot.press("escape")
        assert "empty.onnx" in flat_text(app)
        await pilot.press("escape")
        assert app.pages == []


async def test_opening_the_same_file_twice_shows_its_tab(tmp_path: Path) -> None:
    app = DldApp()
    first, second = TextPage("first", path=tmp_path / "a.onnx"), TextPage("second")
    async with app.run_test(size=(80, 24)) as pilot:
        await open_pages(app, pilot, first, second)
        app.open_path(str(tmp_path) + "/./a.onnx")
        await pilot.pause()
        assert app.page is first


async def test_an_error_of_a_worker_is_shown_and_logged_and_the_app_goes_on() -> None:
    def fail() -> None:
        raise RuntimeError("the worker's reason")

    app = DldApp()
    async with app.run_test(size=(80, 24)) as pilot:
        app.run_worker(fail, thread=True)
        await until(pilot, lambda: "the worker's reason" in screen_text(app))
        assert isinstance(app.screen, ErrorDialog)
        assert "the worker's reason" in terminal.log_path().read_text()
        await pilot.press("escape")
        assert isinstance(app.screen, WelcomeScreen)


async def test_a_crash_ends_with_one_line_and_a_log() -> None:
    app = DldApp()

    def fail() -> None:
        raise RuntimeError(f"broken {ESCAPE}")

    async def run() -> None:
        async with app.run_test(size=(80, 24)) as pilot:
            app.call_later(fail)
            await until(pilot, lambda: not app.is_running)

    with pytest.raises(RuntimeError, match="broken"):
        await run()
    assert "broken" in terminal.log_path().read_text()
    assert app.ending.error is not None
    assert app.ending.error.status == ExitStatus.FAILED
    assert str(app.ending.error).startswith("internal error: RuntimeError: broken")
    assert str(short(terminal.log_path())) in str(app.ending.error)


async def test_a_page_that_is_left_before_it_is_filled_ends_nothing() -> None:
    app, page = DldApp(), TextPage("first")
    async with app.run_test(size=(80, 24)) as pilot:
        await open_pages(app, pilot, page)
        with page._context():
            page._pruning = True  # as by Esc in the same moment
            app._handle_exception(NoMatches("no form"))
            page._pruning = False
        await pilot.pause()
        assert app.is_running
        assert app.ending.error is None


@pytest.mark.parametrize("place", ["page", "below a dialog", "another tab", "start page"])
async def test_two_sizes_of_a_busy_page_are_one(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A screen whose queue holds two sizes must not lay out both, for ever."""
    layouts: list[tuple[str, Size]] = []
    refresh = Screen._refresh_layout

    def count(self: Screen[Any], size: Size | None = None, scroll: bool = False) -> None:
        layouts.append((type(self).__name__, size or self.outer_size))
        refresh(self, size, scroll)

    app, gate = DldApp(), asyncio.Event()
    first, second = TextPage("first"), TextPage("second")
    async with app.run_test(size=(80, 24)) as pilot:
        await open_pages(app, pilot, first, second)
        if place == "start page":
            await pilot.press("ctrl+t")
        busy = app.screen
        if place == "below a dialog":
            app.show_error(InputError("went wrong"))
            await pilot.pause()
        elif place == "another tab":
            busy.call_later(gate.wait)
            app.action_previous_tab()
        busy.call_later(gate.wait)
        others = 2 * [200]

        def keep_busy(number: int) -> None:
            others[number] -= 1
            if others[number]:
                busy.call_later(keep_busy, number)

        monkeypatch.setattr(Screen, "_refresh_layout", count)
        for number, size in enumerate((Size(100, 30), Size(90, 28))):
            assert app._driver is not None
            app._driver._size = size
            app.post_message(events.Resize(size, size))
            while app.size != size:
                await asyncio.sleep(0)
            busy.post_message(events.Resize(size, size))
            keep_busy(number)  # messages between the sizes, else the first one is dropped
        gate.set()
        while not app.keys.at_rest or any(others):
            await asyncio.sleep(0.001)
        await pilot.pause()
        if place == "another tab":
            app.action_next_tab()
            await pilot.pause()
        assert len(layouts) < 30
        assert {size for _, size in layouts} == {Size(90, 28)}
        assert busy.outer_size == (90, 28)
        assert len(rows_of(app)) == 28


async def test_keys_are_remapped_and_mistakes_are_told() -> None:
    config = Config(keys={"app.settings": "f6", "no.such": "x", "tab.close": "ctrl+o"})
    app = DldApp(config=config)
    async with app.run_test(size=(80, 24)) as pilot:
        told = " ".join(notice.message for notice in app._notifications)
        assert "no command 'no.such'" in told
        assert "ctrl+o is both tab.close and file.open" in told
        await pilot.press("f6")
        await pilot.pause()
        assert "Settings" in screen_text(app)
        await pilot.press("escape", "f2")
        await pilot.pause()
        assert isinstance(app.screen, WelcomeScreen)


async def test_a_greyed_command_says_why() -> None:
    app = DldApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("ctrl+w")
        await pilot.pause()
        assert [notice.message for notice in app._notifications] == ["close tab: no file is open"]


async def test_the_footer_shows_few_keys_of_here() -> None:
    app = DldApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        bar = app.screen.query_one(KeyBar)
        assert 2 <= len(bar._keys) <= MOST + bar._last
        assert bar._keys[-1][1] in ("help", "commands")
        await pilot.press("colon")
        await pilot.pause()
        assert isinstance(app.focused, Input)
        assert ("F1", "help") in bar._keys  # a question mark is text there


async def test_the_clipboard_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMUX", "x")
    app = DldApp()
    async with app.run_test(size=(80, 24)) as pilot:
        app.copy_to_clipboard("x" * 80_000)
        app.copy_to_clipboard("name \udcff")
        await pilot.pause()
        told = [notice.message for notice in app._notifications]
        assert "Too long" in told[0]
        assert "set -g set-clipboard on" in told[1]
        assert app.clipboard == "name ?"


async def test_no_color_means_the_terminals_own_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = DldApp()
    assert app.theme == "no-colour"
    async with app.run_test(size=(80, 24)):
        strips = app.screen._compositor.render_strips()
        colours = {
            str(colour)
            for strip in strips
            for segment in strip
            if segment.style
            for colour in (segment.style.color, segment.style.bgcolor)
            if colour is not None and not colour.is_default
        }
        assert colours == set()


async def test_animations_are_off_over_ssh(monkeypatch: pytest.MonkeyPatch) -> None:
    assert DldApp(config=Config(animations="on")).animation_level == "full"
    monkeypatch.setenv("SSH_CONNECTION", "1.2.3.4 5 6.7.8.9 22")
    assert DldApp(config=Config(animations="on")).animation_level == "none"


async def test_recent_files_are_remembered(tmp_path: Path, real_files: Path) -> None:
    state = State(tmp_path)
    model = real_files / "bad" / "00_good_control.onnx"
    app = DldApp([model], state=state)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: bool(app.pages))
    assert [file.path for file in state.recent()] == [str(model)]
