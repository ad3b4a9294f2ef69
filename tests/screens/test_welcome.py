from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from dld_tui.app import DldApp
from dld_tui.core.reading.preview import Preview, ago
from dld_tui.core.settings.state import State
from dld_tui.screens.home import welcome
from dld_tui.screens.home.welcome import (
    HereTable,
    PreviewRows,
    RecentList,
    StartSource,
)
from dld_tui.widgets.lists.styled import Piece
from tests.support import models
from tests.support.pages import running
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


async def test_files_that_are_gone_take_no_rows(state: State, tmp_path: Path) -> None:
    for number in range(3):
        state.opened(tmp_path / f"gone{number}.onnx", "ONNX")
    async with running(DldApp(state=state), size=(120, 24)) as run:
        await run.shows("3 gone")
        assert "other.dldprof" in run.text
        assert not any("gone0" in row for row in rows_of(run.app))


@pytest.mark.broad
async def test_the_focus_stays_in_the_list_that_files_are_forgotten_from(
    state: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models.write(tmp_path, models.CHAIN, "chain.onnx")
    monkeypatch.setattr(welcome, "this_folder", lambda: str(tmp_path))
    async with running(DldApp(state=state), size=(80, 40)) as run:
        await run.until(lambda: isinstance(run.app.focused, HereTable))
        recent = run.app.screen.query_one(RecentList)
        recent.focus()
        for left in (1, 0):
            await run.press("d")
            await run.until(lambda left=left: len(state.recent()) == left)  # type: ignore[misc]
            await run.until(lambda: not run.app.screen.workers)
            await run.pilot.pause()
            assert isinstance(run.app.focused, RecentList if left else HereTable)


async def test_a_model_at_the_cursor_can_be_measured_and_a_report_not(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = DldApp(state=state)
    asked: list[Any] = []
    monkeypatch.setattr(app, "start_activity", lambda activity, values: asked.append(values))
    monkeypatch.setattr(app, "open_path", asked.append)
    async with app.run_test(size=(80, 24)) as pilot:
        assert "Enter open  F5 profile" in screen_text(app)
        await pilot.press("enter")
        await pilot.press("f5", "j")
        await until(pilot, lambda: "F5 profile" not in screen_text(app))
        await pilot.press("f5")
    path = state.recent()[0].path
    assert asked == [path, {"model": path}]


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


def test_no_sentence_of_what_to_start_is_cut_in_a_narrow_list() -> None:
    source = StartSource({})
    helps = [help for *_, help in source.rows]
    for width in (24, 50, 88, 110):  # 110: at 200 columns
        shown = [source.line(index, width)[-1][0] for index in range(len(source))]
        assert shown in (helps, [""] * len(source))
    assert source.line(0, 110)[-1][0]


@pytest.mark.parametrize(
    ("preview", "wanted"),
    [
        (None, [[("reading", "dim")]]),
        (Preview(problem="too short"), [[("too short", "warn")]]),
        (
            Preview([("format", "one two three four"), ("profile", "2 ms: r.dldprof")]),
            [
                [("format  ", "dim"), ("one two three", "")],
                [("        ", "dim"), ("four", "")],
                [("profile ", "dim"), ("2 ms:", "strong")],
                [("        ", "dim"), ("r.dldprof", "strong")],
            ],
        ),
    ],
)
def test_a_preview_says_each_title_once_and_shows_the_last_time_strong(
    preview: Preview | None, wanted: list[list[Piece]]
) -> None:
    rows = PreviewRows()
    rows.preview = preview
    assert rows.content(21) == wanted
