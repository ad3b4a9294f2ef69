from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.css.query import NoMatches
from textual.geometry import Size
from textual.screen import Screen
from textual.widgets import Input

from dld_tui.app import DldApp
from dld_tui.commands import all_commands
from dld_tui.core.errors import ExitStatus, InputError
from dld_tui.core.process import terminal
from dld_tui.core.process.paths import short
from dld_tui.core.settings.config import Config
from dld_tui.core.settings.state import State
from dld_tui.core.tables.table import Column, Table
from dld_tui.core.text import cell_width
from dld_tui.screens.home.help import _SCOPES, HelpScreen, _scope_rows
from dld_tui.screens.home.palette import Palette
from dld_tui.screens.home.welcome import WelcomeScreen
from dld_tui.screens.settings import SettingsScreen
from dld_tui.widgets.dialogs.dialogs import ErrorDialog, QuitDialog
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.lists.table_view import TableView
from dld_tui.widgets.shell.page import MOST
from tests.support.pages import TextPage, open_pages, running
from tests.support.tui import ESCAPE, HOSTILE, flat_text, rows_of, screen_text, until


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
        await pilot.press("}")
        assert app.page is first
        await pilot.press("ctrl+pageup")
        assert app.page is second
        await pilot.press("ctrl+w")
        assert app.page is first
        assert app.pages == [first]
        await pilot.press("ctrl+t")
        assert isinstance(app.screen, WelcomeScreen)
        await pilot.press("ctrl+pagedown")
        assert app.page is first
        await pilot.press("ctrl+w")
        assert isinstance(app.screen, WelcomeScreen)


async def test_what_failed_outlives_the_tab_that_closes_for_it() -> None:
    async with running() as run:
        page = TextPage("first")
        await run.open(page)
        run.app.show_error(InputError("went wrong"), "Not read")
        await run.pilot.pause()
        run.app.close_page(page)
        await run.shows("went wrong")
        assert "Not read" in run.text
        await run.press("escape")
        assert isinstance(run.app.screen, WelcomeScreen)


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
        assert HOSTILE in screen_text(app)
        await pilot.press(key)
        assert (len(app.pages), page.saved) == (open_pages_left, saved)


@pytest.mark.parametrize(
    ("keys", "saved", "is_left"),
    [
        ("a", (1, 1), True),
        ("sk", (0, 1), False),
        ("ss", (1, 1), True),
        ("d", (0, 0), True),
        (("escape",), (0, 0), False),
    ],
)
async def test_quitting_saves_all_or_the_shown_one(
    keys: str, saved: tuple[int, int], is_left: bool
) -> None:
    async with running() as run:
        first, second = TextPage("a", lost=["a: 1 edit"]), TextPage("b", lost=["b: 2 edits"])
        await run.open(first, second)
        await run.press("ctrl+q")
        for key in keys:
            await run.press(key)
        assert (first.saved, second.saved) == saved
        assert (run.app.return_code == 0) == is_left


async def test_a_file_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    (tmp_path / "empty.onnx").write_bytes(b"")
    missing = tmp_path / f"no{ESCAPE}.onnx"
    async with running(DldApp([tmp_path / "empty.onnx", missing]), size=(100, 24)) as run:
        await run.until(lambda: "\\x1b]0;x\\x07" in flat_text(run.app))
        run.in_front(ErrorDialog)
        await run.press("escape")
        assert "empty.onnx" in flat_text(run.app)
        await run.press("escape")
        assert run.app.pages == []


async def test_an_error_of_a_worker_is_shown_and_logged_and_the_app_goes_on() -> None:
    def fail() -> None:
        raise RuntimeError("the worker's reason")

    async with running() as run:
        run.app.run_worker(fail, thread=True)
        await run.shows("the worker's reason")
        run.in_front(ErrorDialog)
        assert "the worker's reason" in terminal.log_path().read_text()
        await run.press("escape")
        assert isinstance(run.app.screen, WelcomeScreen)


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
        assert "Settings" in screen_text(app)
        await pilot.press("escape", "f2")
        assert isinstance(app.screen, WelcomeScreen)


async def test_a_greyed_command_says_why() -> None:
    async with running() as run:
        await run.press("ctrl+w")
        assert run.told == ["close tab: no file is open"]


async def test_the_footer_shows_few_keys_of_here() -> None:
    async with running() as run:
        keys = re.split(r" {2,}", run.text.splitlines()[-1].strip())
        assert 2 <= len(keys) <= MOST + 3
        assert keys[-1].endswith((" help", " commands"))
        await run.press(":")
        assert isinstance(run.app.focused, Input)
        assert "F1 help" in run.text.splitlines()[-1]  # a question mark is text there


async def test_the_clipboard_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMUX", "x")
    async with running() as run:
        run.app.copy_to_clipboard("x" * 80_000)
        run.app.copy_to_clipboard("name \udcff")
        await run.pilot.pause()
        told = run.told
        assert "Too long" in told[0]
        assert "set -g set-clipboard on" in told[1]
        assert run.app.clipboard == "name ?"


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
    async with running(DldApp([model], state=state)) as run:
        await run.until(lambda: bool(run.app.pages))
    assert [file.path for file in state.recent()] == [str(model)]


async def test_q_closes_what_is_in_front_and_then_leaves() -> None:
    async with running() as run:
        await run.open(TextPage("one"), TextPage("two"))
        await run.press("?")
        run.in_front(HelpScreen)
        await run.press("q")
        assert run.app.screen is run.app.pages[1]
        await run.press("q")
        assert [page.tab_title for page in run.app.pages] == ["one"]
        assert run.app.screen is run.app.pages[0]
        await run.press("ctrl+t", "q")  # the start page is in front of the tab
        await run.pilot.pause()
        assert run.app.screen is run.app.pages[0]
        await run.press("q")
    assert run.app.return_code == 0
    assert run.app._exit


async def test_ctrl_c_says_in_our_words_what_leaves() -> None:
    async with running() as run:
        await run.press("ctrl+c")
        assert run.told == ["^Q quits, q closes this page"]


async def test_q_asks_before_edits_are_lost_and_is_a_letter_in_a_field() -> None:
    async with running() as run:
        await run.open(TextPage("one", ["one: 2 edits"]))
        await run.press("q")
        run.in_front(QuitDialog)
        text = run.text
        assert all(answer in text for answer in ("save and quit", "quit and lose", "stay"))
        await run.press("q")
        assert run.app.page is run.app.pages[0]
        await run.press("ctrl+p", "q")
        assert run.in_front(Palette).query_text == "q"
        await run.press("escape")


async def test_a_click_on_a_key_runs_it() -> None:
    async with running() as run:
        await run.open(TextPage("one"))
        row = rows_of(run.app)[-1]
        await run.pilot.click("KeyBar", offset=(row.index("help"), 0))
        await run.pilot.pause()
        run.in_front(HelpScreen)
        row = rows_of(run.app)[-1]
        await run.pilot.click("KeyBar", offset=(row.index("close"), 0))
        await run.pilot.pause()
        assert run.app.screen is run.app.pages[0]
        assert not isinstance(run.app.screen, SettingsScreen)


@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
async def test_help_tells_the_pane_its_keys_and_why_not(size: tuple[int, int]) -> None:
    async with running(DldApp(config=Config(keys={"app.settings": "f6"})), size=size) as run:
        await run.open(TextPage("model"))
        await run.press("?")
        run.in_front(HelpScreen)
        assert "A page for tests." in run.text
        lines = run.app.screen.query_one(LineView).lines
        text = "\n".join(lines.text(index) for index in range(len(lines)))
        assert "only one file is open" in text
        assert "F6" in text
        assert "First steps" in text
        assert "Search in this list." in text
        await run.press("escape")
        assert not isinstance(run.app.screen, HelpScreen)


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
    async with running(size=(100, 40)) as run:
        await run.open(TextPage("model"))
        await run.press("?")
        view = run.app.screen.query_one(LineView)
        texts = [view.lines.text(index) for index in range(len(view.lines))]
        view.cursor = next(at for at, text in enumerate(texts) if "only one file is open" in text)
        await run.press("enter")
        assert isinstance(run.app.screen, HelpScreen)  # it says why not, and stays
        view.cursor = next(at for at, text in enumerate(texts) if "Change theme" in text)
        await run.press("enter")
        assert isinstance(run.app.screen, SettingsScreen)
