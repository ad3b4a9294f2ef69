"""Reports of all kinds in the app: partial, empty, hostile, foreign; and what is exported."""

from __future__ import annotations

import csv
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from textual.app import App
from textual.widget import Widget

from dld_tui.app import DldApp
from dld_tui.core.errors import CancelledError, InputError
from dld_tui.core.settings.config import Config
from dld_tui.screens.results import report as module
from dld_tui.screens.results.report import ReportScreen, load
from dld_tui.widgets.dialogs.dialogs import ErrorDialog, PromptDialog, QuestionDialog
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.results.layers import ColumnsDialog
from dld_tui.widgets.results.summary import AnswerText
from tests.support.profiles import kernel, run, write_profile
from tests.support.report_files import HOSTILE, make_report, writer
from tests.support.report_screen import LARGE, SMALL, all_text, opened, pane, text_of, timeline
from tests.support.tui import until


@pytest.fixture
def report(tmp_path: Path) -> Path:
    return make_report(tmp_path / "tiny.dldprof", layers=25)


def _is_seen(app: App[Any]) -> bool:
    """Return whether the question is there and takes keys."""
    return isinstance(app.screen, QuestionDialog) and cast("DldApp", app).keys.at_rest


@pytest.mark.broad
async def test_csv_is_what_is_shown(
    report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened(report) as (pilot, screen):
        await pilot.press("slash", *"type:relu", "enter", "w")
        await until(pilot, lambda: isinstance(pilot.app.screen, PromptDialog))
        await pilot.press("enter")
        target = tmp_path / "tiny.csv"
        await until(pilot, target.exists)
        rows = list(csv.DictReader(target.read_text().splitlines()))
        assert [row["type"] for row in rows] == ["Relu"] * 5
        times = [float(row["time_ms"]) for row in rows]
        assert times == sorted(times, reverse=True)

        target.write_text("keep me")
        await pilot.press("w", "enter")
        await until(pilot, lambda: _is_seen(pilot.app))
        await pilot.press("a")
        await until(pilot, lambda: isinstance(pilot.app.screen, PromptDialog))
        await pilot.press("escape")
        await until(pilot, lambda: pilot.app.screen is screen)
        assert target.read_text() == "keep me"
        await pilot.press("w", "enter")
        await until(pilot, lambda: _is_seen(pilot.app))
        await pilot.press("o")
        await until(pilot, lambda: target.read_text() != "keep me")


@pytest.mark.broad
async def test_csv_that_cannot_be_written_says_why(report: Path, tmp_path: Path) -> None:
    async with opened(report) as (pilot, _):
        await pilot.press("w")
        await until(pilot, lambda: isinstance(pilot.app.screen, PromptDialog))
        dialog = pilot.app.screen
        dialog.query_one("Input").value = str(tmp_path / "no" / "such" / "folder.csv")  # type: ignore[attr-defined]
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ErrorDialog))


@pytest.mark.broad
async def test_columns_are_chosen_and_remembered(report: Path) -> None:
    async with opened(report) as (pilot, screen):
        assert "output shapes" in text_of(pane(screen).table)
        await pilot.press("C")
        await until(pilot, lambda: isinstance(pilot.app.screen, ColumnsDialog))
        dialog = pilot.app.screen
        view = dialog.query_one("ColumnList", LineView)
        view.go_to_key("output_dims")
        before = all_text(view)
        await pilot.press("space")
        assert {"output", "shapes", "bar"} <= set(before.split())
        await until(pilot, lambda: all_text(view) != before)
        await pilot.press("escape")
        assert "output shapes" not in text_of(pane(screen).table)
    async with opened(report) as (_, screen):
        assert "output_dims" not in pane(screen).columns


async def test_a_partial_report_says_so(tmp_path: Path) -> None:
    path = make_report(tmp_path / "p.dldprof", finish=False)
    async with opened(path, SMALL) as (_, screen):
        assert "Partial: the run was stopped" in text_of(screen.query_one(AnswerText))


@pytest.mark.parametrize("size", [SMALL, pytest.param(LARGE, marks=pytest.mark.broad)])
async def test_a_report_without_layers(tmp_path: Path, size: tuple[int, int]) -> None:
    path = tmp_path / "empty.dldprof"
    writer(path).finish()
    async with opened(path, size) as (pilot, screen):
        for key in (
            "1",
            "2",
            "3",
            "4",
            "5",
            "b",
            "b",
            "t",
            "s",
            "space",
            "plus",
            "0",
            "percent_sign",
        ):
            await pilot.press(key)
        await pilot.press("2", "left", "right", "down", "space", "enter")
        assert "no timeline" in text_of(timeline(screen))


@pytest.mark.parametrize("size", [SMALL, pytest.param(LARGE, marks=pytest.mark.broad)])
async def test_one_pass_and_no_durations(tmp_path: Path, size: tuple[int, int]) -> None:
    path = make_report(tmp_path / "z.dldprof", layers=4, passes=1, latencies=1, zero=True)
    async with opened(path, size) as (pilot, screen):
        await pilot.press("2", "right", "plus", "plus", "space", "right", "space", "minus", "G")
        assert timeline(screen).key_at_cursor() == 3
        await pilot.press("right_square_bracket", "3", "b", "4", "percent_sign")


@pytest.mark.parametrize("size", [SMALL, pytest.param(LARGE, marks=pytest.mark.broad)])
async def test_hostile_names(tmp_path: Path, size: tuple[int, int]) -> None:
    names = [HOSTILE, "x" * 100_000, "[bold]", "[/]", "", "\x00\n\t"]
    path = make_report(
        tmp_path / "h.dldprof", layers=6, names=names, network=HOSTILE, device=HOSTILE
    )
    async with opened(path, size) as (pilot, screen):
        shown = ""
        for key in "12345":
            await pilot.press(key)
            shown += "".join(text_of(widget) for widget in screen.query("*") if seen_text(widget))
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        assert "/blk[0]/Conv [/weight]\\x1b" in shown
        await pilot.press("3", "space", "b", "b", "enter", "t", "plus")


def seen_text(widget: Widget) -> bool:
    return not widget.children and widget.region.area > 0


async def test_an_onnxruntime_profile_opens_as_a_report(tmp_path: Path) -> None:
    path = write_profile(
        tmp_path / "run_2026-01-02_03-04-05.json",
        [kernel("a", "Conv", 0, 50), kernel("b", "Relu", 60, 20), run(0, 90)],
    )
    async with opened(path) as (_, screen):
        assert screen.report is not None
        assert [layer.name for layer in screen.report.layers] == ["a", "b"]
        assert timeline(screen).key_at_cursor() == 0


async def test_a_file_that_is_no_report_is_refused_with_a_reason(tmp_path: Path) -> None:
    good = make_report(tmp_path / "good.dldprof").read_bytes()
    bad = tmp_path / "bad.dldprof"
    bad.write_bytes(good[:3000])
    app = DldApp([bad], Config())
    async with app.run_test(size=SMALL) as pilot:
        await until(pilot, lambda: isinstance(app.screen, ErrorDialog) and not app.pages)


def slow_loading(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Let reports be read until they are cancelled; the event says that one has begun."""
    started = threading.Event()

    def slow(path: Path, cancelled: Callable[[], bool], tell: Callable[[int, int], None]) -> Any:
        started.set()
        tell(1, 2)
        while not cancelled():
            time.sleep(0.01)
        raise CancelledError

    monkeypatch.setattr(module, "load", slow)
    return started


async def test_loading_can_be_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = slow_loading(monkeypatch)
    app = DldApp([make_report(tmp_path / "a.dldprof")], Config())
    async with app.run_test(size=SMALL) as pilot:
        await until(pilot, started.is_set)
        await until(pilot, lambda: isinstance(app.screen, ReportScreen))
        await pilot.press("escape")
        await until(pilot, lambda: not app.pages)


async def test_quitting_while_a_report_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = slow_loading(monkeypatch)
    app = DldApp([make_report(tmp_path / "a.dldprof")], Config())
    async with app.run_test(size=SMALL) as pilot:
        await until(pilot, started.is_set)
        await pilot.press("ctrl+q")
    assert app.return_code == 0


def test_a_report_comes_with_what_the_screen_needs(tmp_path: Path) -> None:
    loaded = load(make_report(tmp_path / "a.dldprof", layers=5, finish=False))
    with loaded.report as report:
        assert report.status == "partial"
        assert loaded.timeline.find(0) is not None
        assert [group.key for group in loaded.types] == [g.key for g in report.groups("type")]
    assert loaded.model_problem == "the model no longer exists"
    texts = [one.text for one in loaded.notes]
    assert "made by a test" in texts
    assert "killed by a test" in texts
    warnings = [one for one in loaded.notes if one.kind == "warning"]
    assert any("20 passes are too few for p99" in one.text for one in warnings)


@pytest.mark.broad
def test_a_profile_is_read_with_progress_and_can_be_stopped(tmp_path: Path) -> None:
    events = [event for n in range(3000) for event in (kernel("a", "Conv", n, 1), run(n, 2))]
    path = write_profile(tmp_path / "p.json", events)
    with load(path).report as report:
        assert len(report.passes) == 3000
    with pytest.raises(CancelledError):
        load(path, lambda: True)


@pytest.mark.parametrize(
    "content", [b"", b"SQLite format 3\x00 and no more", b"[1, 2", b"\x00" * 99]
)
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.dldprof"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        load(path)
    assert "x.dldprof" in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load(tmp_path / "gone.dldprof")
    assert "gone.dldprof" in str(caught.value)
