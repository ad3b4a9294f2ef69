from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input

from dld_tui.app import DldApp
from dld_tui.core.reading.preview import ago
from dld_tui.core.settings.state import State
from dld_tui.screens.home import welcome
from dld_tui.screens.home.welcome import (
    HereTable,
    RecentList,
    StartList,
    StartSource,
    WelcomeScreen,
)
from tests.support import models
from tests.support.tui import ESCAPE, HOSTILE, rows_of, screen_text, until


@pytest.fixture
def state(tmp_path: Path) -> State:
    state = State(tmp_path / "state")
    model = tmp_path / f"{HOSTILE.replace('/', '_')}{ESCAPE}.onnx"
    model.write_bytes(b"x" * 2_000_000)
    (tmp_path / "other.dldprof").write_bytes(b"x")
    state.opened(tmp_path / "other.dldprof", "REPORT")
    state.opened(model, "ONNX")
    return state


@pytest.mark.parametrize("size", [(80, 24), (200, 50), (60, 16)])
async def test_recent_files_with_kind_size_and_age(state: State, size: tuple[int, int]) -> None:
    app = DldApp(state=state)
    async with app.run_test(size=size) as pilot:
        assert isinstance(app.screen, WelcomeScreen)
        assert isinstance(app.focused, RecentList)
        await until(pilot, lambda: "_blk[0]" in screen_text(app))
        if size[0] >= 80:
            await until(pilot, lambda: "2 MB" in screen_text(app))
            text = screen_text(app)
            assert "just now" in text
            assert "report" in text


async def test_files_that_are_gone_take_no_rows(state: State, tmp_path: Path) -> None:
    for number in range(3):
        state.opened(tmp_path / f"gone{number}.onnx", "ONNX")
    app = DldApp(state=state)
    async with app.run_test(size=(120, 24)) as pilot:
        await until(pilot, lambda: "3 gone" in screen_text(app))
        assert "other.dldprof" in screen_text(app)
        assert not any("gone0" in row for row in rows_of(app))


async def test_a_folder_with_models_only_below_is_listed(tmp_path: Path) -> None:
    (tmp_path / "deep" / "a").mkdir(parents=True)
    for name in ("one.onnx", "two.onnx"):
        models.write(tmp_path / "deep" / "a", models.CHAIN, name)
    app = DldApp([tmp_path / "deep"], state=State())
    async with app.run_test(size=(120, 30)) as pilot:
        await until(pilot, lambda: isinstance(app.focused, HereTable))
        shown = "".join(rows_of(app))
        assert "a/one.onnx" in shown
        assert "a/two.onnx" in shown
        await pilot.press("enter")
        await until(pilot, lambda: app.page.edited_document)
        assert app.page.path is not None
        assert app.page.path.parent == tmp_path / "deep" / "a"


async def test_forgetting_a_file(state: State) -> None:
    app = DldApp(state=state)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("j", "d")
        await pilot.pause()
        assert [Path(file.path).suffix for file in state.recent()] == [".onnx"]
        assert "other.dldprof" not in screen_text(app)


@pytest.mark.broad
async def test_the_focus_stays_in_the_list_that_files_are_forgotten_from(
    state: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models.write(tmp_path, models.CHAIN, "chain.onnx")
    monkeypatch.setattr(welcome, "this_folder", lambda: str(tmp_path))
    app = DldApp(state=state)
    async with app.run_test(size=(80, 40)) as pilot:
        await until(pilot, lambda: isinstance(app.focused, HereTable))
        recent = app.screen.query_one(RecentList)
        recent.focus()
        for left in (1, 0):
            await pilot.press("d")
            await until(pilot, lambda left=left: len(state.recent()) == left)
            await until(pilot, lambda: not app.screen.workers)
            await pilot.pause()
            assert isinstance(app.focused, RecentList if left else HereTable)


async def test_enter_opens_the_file_at_the_cursor(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Any] = []
    app = DldApp(state=state)
    monkeypatch.setattr(app, "open_path", opened.append)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("enter")
        await pilot.pause()
        assert opened == [state.recent()[0].path]


async def test_a_model_at_the_cursor_can_be_measured_and_a_report_not(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = DldApp(state=state)
    asked: list[Any] = []
    monkeypatch.setattr(app, "start_activity", lambda activity, values: asked.append(values))
    async with app.run_test(size=(80, 24)) as pilot:
        assert "Enter open  F5 profile" in screen_text(app)
        await pilot.press("f5", "j")
        await until(pilot, lambda: "F5 profile" not in screen_text(app))
        await pilot.press("f5")
        await pilot.pause()
    assert asked == [{"model": state.recent()[0].path}]


async def test_without_recent_files_the_first_key_is_useful() -> None:
    app = DldApp()
    async with app.run_test(size=(80, 24)) as pilot:
        assert isinstance(app.focused, StartList)
        assert "No file has been opened yet" in screen_text(app)
        await pilot.press("G", "enter")
        await pilot.pause()
        assert "First steps" in screen_text(app) or "Help" in screen_text(app)


async def test_a_typed_path_is_opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    opened: list[Any] = []
    app = DldApp()
    monkeypatch.setattr(app, "open_path", opened.append)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("colon")
        app.screen.query_one(Input).insert_text_at_cursor(str(tmp_path / "x.onnx"))
        await pilot.press("enter")
        await pilot.pause()
        assert opened == [tmp_path / "x.onnx"]


async def test_the_demo_models_are_written_and_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Path] = []
    app = DldApp()
    monkeypatch.setattr(app, "open_all", opened.extend)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("enter")
        await until(pilot, lambda: len(opened) == 2)
    assert all(path.is_file() for path in opened)


def test_ages() -> None:
    assert ago(5) == "just now"
    assert ago(300) == "5 min ago"
    assert ago(3 * 3600) == "3 h ago"
    assert ago(2 * 86400) == "2 d ago"
    assert ago(86400 * 65) == "2 mo ago"
    assert ago(time.time()) == f"{int(time.time() // (86400 * 365))} y ago"


@pytest.mark.broad
async def test_the_files_of_this_folder_are_browsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models.write(tmp_path, models.CHAIN, "chain.onnx")
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "bad.onnx").write_bytes(b"<html>")
    monkeypatch.setattr(welcome, "this_folder", lambda: str(tmp_path))
    opened: list[Any] = []
    app = DldApp()
    monkeypatch.setattr(app, "open_path", opened.append)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.focused, HereTable))
        await until(pilot, lambda: "below/bad.onnx" in screen_text(app))
        assert screen_text(app).splitlines()[0].split() == ["dld", str(tmp_path), "2", "models"]
        app.screen.query_one(HereTable).go_to_key(str(tmp_path / "chain.onnx"))
        await until(pilot, lambda: "weights" in screen_text(app))
        await pilot.press("slash", *"bad", "enter")
        await until(pilot, lambda: opened == [str(tmp_path / "below" / "bad.onnx")])
        await until(pilot, lambda: "HTML" in screen_text(app))


async def test_files_that_lie_only_below_this_folder_are_browsed_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    below = tmp_path / "below"
    below.mkdir()
    models.write(below, models.CHAIN, "chain.onnx")
    monkeypatch.setattr(welcome, "this_folder", lambda: str(tmp_path))
    app = DldApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.focused, HereTable))
        await until(pilot, lambda: "weights" in screen_text(app))


def test_nothing_is_called_read_where_no_file_is_at_the_cursor() -> None:
    assert welcome.PreviewRows().content(40) == []


@pytest.mark.broad
async def test_the_path_field_takes_rows_from_the_files_only_while_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = models.write(tmp_path, models.CHAIN, "chain.onnx")
    monkeypatch.setattr(welcome, "this_folder", lambda: str(tmp_path))
    opened: list[Any] = []
    app = DldApp()
    monkeypatch.setattr(app, "open_path", opened.append)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.focused, HereTable))
        field = app.screen.query_one("#open")
        await until(pilot, lambda: not field.display)
        await pilot.press("colon", *"chain.onnx")
        await until(pilot, lambda: field.display)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.focused, HereTable) and not field.display)
        await pilot.press("colon", "ctrl+u", *str(path), "enter")
        await until(pilot, lambda: [*map(str, opened)] == [str(path)])
        await pilot.resize_terminal(80, 50)
        await until(pilot, lambda: field.display)


def test_no_sentence_of_what_to_start_is_cut_in_a_narrow_list() -> None:
    source = StartSource({})
    helps = [help for *_, help in source.rows]
    for width in (24, 50, 88, 110):  # 110: at 200 columns
        shown = [source.line(index, width)[-1][0] for index in range(len(source))]
        assert shown in (helps, [""] * len(source))
    assert source.line(0, 110)[-1][0]


async def test_what_is_under_the_cursor_is_explained_below_where_rows_have_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(welcome, "this_folder", lambda: str(tmp_path))
    app = DldApp()
    async with app.run_test(size=(80, 24)) as pilot:
        start = app.screen.query_one(StartList)
        helps = [help for *_, help in StartSource({}).rows]
        await until(pilot, lambda: start.has_focus)
        assert helps[0] in screen_text(app)
        await pilot.press("j")
        await until(pilot, lambda: helps[1] in screen_text(app))
        longest = max(range(len(helps)), key=lambda index: len(helps[index]))
        await pilot.press(*"j" * (longest - 1))
        await until(pilot, lambda: not start.border_subtitle)  # too long
        assert helps[0] not in screen_text(app)
        await pilot.resize_terminal(200, 50)
        await until(pilot, lambda: helps[0] in screen_text(app) and not start.border_subtitle)
