"""The export command of the report screen, and the files of other programs that it opens."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from dld_tui.screens.results.report import load
from dld_tui.screens.results.results_page import progress_text
from dld_tui.widgets.dialogs.dialogs import ChoiceDialog, ErrorDialog, PromptDialog
from tests.support.report_files import make_report
from tests.support.report_screen import opened, text_of
from tests.support.tui import until

PROFILE = '[\n  { "count" : 4 }\n, { "name" : "Conv_0", "timeMs" : 8, "averageMs" : 2 }\n]\n'
TIMES = '[ { "startComputeMs" : 1, "endComputeMs" : 3.5, "computeMs" : 2.5 } ]'
TRACE = '{"traceEvents": [{"ph": "X", "name": "aten::mm", "ts": 1, "dur": 2000}]}'


@pytest.fixture
def report(tmp_path: Path) -> Path:
    return make_report(tmp_path / "tiny.dldprof")


async def ask(pilot: Pilot[Any], name: str) -> PromptDialog:
    await pilot.press("W")
    await until(pilot, lambda: isinstance(pilot.app.screen, PromptDialog))
    dialog = pilot.app.screen
    assert isinstance(dialog, PromptDialog)
    assert dialog.query_one(Input).value == "tiny.html"
    if name:
        dialog.query_one(Input).value = name
    await pilot.press("enter")
    return dialog


@pytest.mark.parametrize(
    ("name", "start"),
    [("", "<!DOCTYPE html>"), ("x.trace.json", '{"displayTimeUnit"'), ("x.csv", "index,")],
)
async def test_the_ending_says_what_is_written(
    report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, start: str
) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened(report) as (pilot, _):
        await ask(pilot, name)
        target = tmp_path / (name or "tiny.html")
        await until(pilot, target.exists)
        assert target.read_text().startswith(start)


@pytest.mark.broad
async def test_a_file_that_is_there_is_asked_about(
    report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    target = tmp_path / "tiny.html"
    target.write_text("keep me")
    async with opened(report, (80, 24)) as (pilot, screen):
        await ask(pilot, "")
        await until(pilot, lambda: isinstance(pilot.app.screen, ChoiceDialog))
        assert target.read_text() == "keep me"
        await pilot.press("o")
        await until(pilot, lambda: pilot.app.screen is screen)
        await until(pilot, lambda: target.read_text().startswith("<!DOCTYPE"))


@pytest.mark.broad
async def test_an_ending_that_says_nothing_is_explained(report: Path) -> None:
    async with opened(report) as (pilot, _):
        await ask(pilot, "tiny.pdf")
        await until(pilot, lambda: isinstance(pilot.app.screen, ErrorDialog))


@pytest.mark.broad
@pytest.mark.parametrize(
    ("content", "word"), [(PROFILE, "Conv_0"), (TIMES, "GPU compute"), (TRACE, "aten::mm")]
)
async def test_files_of_other_programs_open_as_reports(
    tmp_path: Path, content: str, word: str
) -> None:
    path = tmp_path / "file.json"
    path.write_text(content)
    async with opened(path) as (_, screen):
        assert word in text_of(screen.query_one("#layers").query_one("LayerTable"))


def test_progress_has_a_rate(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(TRACE)
    told: list[tuple[int, int]] = []
    load(path, None, lambda done, total: told.append((done, total))).report.close()
    assert told[-1] == (72, 72)
    assert "50 % of 72 B, 72 B/s" in progress_text("t.json", 36, 72, 0.5)


@pytest.mark.broad
async def test_the_optimised_model_of_a_run_opens(
    report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(report) as (_, screen):
        assert "optimized" not in screen.conditions()
    database = sqlite3.connect(report)
    with database:
        database.execute(
            "insert into report (key, value) values ('optimized_model', ?)",
            (json.dumps(str(tmp_path / "fast.onnx")),),
        )
    database.close()
    async with opened(report) as (pilot, screen):
        chosen: list[Path] = []
        monkeypatch.setattr(pilot.app, "open_path", chosen.append)
        assert "optimized" in screen.conditions()
        screen.action_open_optimized()
        assert chosen == [tmp_path / "fast.onnx"]
