from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from dld_tui.app import DldApp
from dld_tui.core.settings.config import Config
from dld_tui.screens.results.trtexec_log import LogLines, LogScreen
from tests.support.engine_files import LOG
from tests.support.tui import screen_text, until


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[tuple[Pilot[Any], LogScreen]]:
    app = DldApp([path], Config())
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, LogScreen) and app.screen.loaded)
        await until(pilot, lambda: "15,374.3 qps" in screen_text(app))
        screen = app.screen
        assert isinstance(screen, LogScreen)
        yield pilot, screen


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "build.log"
    path.write_text(LOG, encoding="utf-8")
    return path


async def a_log_opens_with_its_summary_and_lines(pilot: Pilot[Any], screen: LogScreen) -> None:
    text = screen_text(pilot.app)
    assert "PASSED" in text
    assert "NVIDIA H100 PCIe" in text
    assert "trtexec --onnx=tiny.onnx --fp16" in text
    assert "15,374.3 qps" in text
    assert "1 warning" in text
    assert "1 error" in text
    assert screen.focused is screen.query_one(LogLines)


async def going_from_one_problem_to_the_next(pilot: Pilot[Any], screen: LogScreen) -> None:
    view = screen.query_one(LogLines)
    found = []
    for _ in range(3):
        await pilot.press("!")
        found.append(view.lines.text(view.cursor))
    assert "Int64 binding" in found[0]
    assert "tactic" in found[1]
    assert found[2] == found[0]


async def lines_are_never_markup_or_escapes(pilot: Pilot[Any], screen: LogScreen) -> None:
    text = screen_text(pilot.app)
    assert "[bold]no" in text
    assert "\x1b" not in text
    assert "\u202e" not in text


async def the_command_is_copied(pilot: Pilot[Any], screen: LogScreen) -> None:
    await pilot.press("y")
    assert pilot.app.clipboard == "trtexec --onnx=tiny.onnx --fp16"


async def test_a_log(log: Path) -> None:
    async with opened(log) as (pilot, screen):
        for check in (
            a_log_opens_with_its_summary_and_lines,
            lines_are_never_markup_or_escapes,
            the_command_is_copied,
            going_from_one_problem_to_the_next,
        ):
            await check(pilot, screen)
