from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from dld_tui.app import DldApp
from dld_tui.core.errors import CancelledError
from dld_tui.core.reading.story import NextStep
from dld_tui.core.report import schema
from dld_tui.core.report.records import NodeLink
from dld_tui.core.report.report import Report
from dld_tui.core.settings.config import Config
from dld_tui.screens.results import report as module
from dld_tui.screens.results import report as report_page
from dld_tui.screens.results import views
from dld_tui.screens.results.report import ReportScreen, load
from dld_tui.screens.results.results_page import progress_text
from dld_tui.widgets.dialogs.dialogs import ChoiceDialog, ErrorDialog, PromptDialog
from dld_tui.widgets.results.layers import LayerPane
from dld_tui.widgets.results.report_views import (
    EnvironmentView,
    environment_lines,
    flat,
)
from dld_tui.widgets.results.summary import AdviceView, AnswerText
from dld_tui.widgets.timeline.timeline import TimelineView
from tests.support.gpu_reports import as_version_1, make_gpu_report
from tests.support.pages import running
from tests.support.profiles import kernel, run, write_profile
from tests.support.report_files import HOSTILE, make_nested_report, make_report, writer
from tests.support.report_screen import (
    LARGE,
    SMALL,
    all_text,
    opened,
    pane,
    text_of,
    timeline,
)
from tests.support.tui import front, told, until
from tests.support.work import steps_in


@pytest.fixture
def report(tmp_path: Path) -> Path:
    return make_report(tmp_path / "tiny.dldprof", layers=25)


def test_a_report_knows_times_once_it_is_read(report: Path) -> None:
    page = ReportScreen(report)
    before = page.knows_times
    page.loaded = page.load(lambda done, total: None, lambda: False)
    assert (before, page.knows_times) == (False, True)
    page.loaded.report.close()


async def test_enter_goes_to_the_node_of_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "tiny.onnx"
    model.write_bytes(b"model")
    path = make_report(tmp_path / "a.dldprof", layers=3, model=model)
    revealed: list[object] = []
    monkeypatch.setattr(DldApp, "reveal", lambda self, *place: revealed.append(place))
    async with opened(path) as (pilot, screen):
        layer = pane(screen).layer_at_cursor()
        assert layer is not None
        await pilot.press("enter")
        await until(pilot, lambda: revealed)
        assert revealed == [(model, (), layer.nodes[0].node)]
        assert not told(pilot.app)
        model.write_bytes(b"another model")
        await pilot.press("s")
        await until(pilot, lambda: len(revealed) == 2)
        assert "changed" in told(pilot.app)[0]
        model.unlink()
        await pilot.press("s")
        await until(pilot, lambda: len(told(pilot.app)) == 2)
        assert len(revealed) == 2
        assert "no longer exists" in told(pilot.app)[-1]


async def test_without_colours_the_timeline_uses_glyphs(tmp_path: Path) -> None:
    path = make_nested_report(tmp_path / "n.dldprof")
    async with opened(path, LARGE, Config(theme="no-colour")) as (_, screen):
        text = text_of(timeline(screen))
        assert "▚" in text
        assert "░" in text or "▒" in text


@pytest.mark.broad
async def test_many_layers_are_filtered_with_little_work_for_each(tmp_path: Path) -> None:
    path = make_report(tmp_path / "big.dldprof", layers=500, passes=2)
    async with opened(path, LARGE) as (pilot, screen):
        pane(screen).set_filter("relu")  # what is made once for all filters
        assert steps_in(pane(screen).set_filter, "conv") < 100 * 500
        assert len(pane(screen).table.order) == 100
        await pilot.press("G")
        assert pane(screen).table.cursor == 99


def test_settings_of_the_report_are_listed(tmp_path: Path) -> None:
    nested: Any = json.loads('{"a": {"b": true, "c": [1, null]}, "d": {}}')
    assert flat(nested) == [("a.b", "yes"), ("a.c", "1, –"), ("d", "–")]
    with Report.open(make_report(tmp_path / "a.dldprof")) as report:
        text = "\n".join(
            "".join(part for part, _ in line) for line in environment_lines(report, "gone")
        )
    assert "clocks.locked" in text
    assert "iterations" in text
    assert "gone" in text


@pytest.mark.broad
async def test_advice_by_rules_is_measured_or_previewed_where_the_model_is_known(
    report: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = NextStep("GELU in one operator", "Erf", ("fused-gelu",), ("gelu-onnxruntime",))
    asked: list[Any] = []
    monkeypatch.setattr(report_page, "next_steps", lambda report: [step])
    monkeypatch.setattr(report_page, "offer_rules", lambda host, path, rules: asked.append(rules))
    monkeypatch.setattr(
        views, "run_activity", lambda host, name, values: asked.append((name, values["only"]))
    )
    async with opened(report, SMALL) as (pilot, screen):
        assert "GELU in one operator" in text_of(screen.query_one(AdviceView))
        monkeypatch.setattr(screen, "model_path", lambda: None)
        await pilot.press("3", "1", "enter")
        await until(pilot, lambda: told(pilot.app))
        assert pilot.app.screen is screen
        monkeypatch.setattr(screen, "model_path", lambda: Path("m.onnx"))
        for key in ("m", "p", "escape"):
            await pilot.press("enter")
            await front(pilot, ChoiceDialog)
            await pilot.press(key)
            await until(pilot, lambda: pilot.app.screen is screen)
    assert asked == [("tune", ["fused-gelu"]), ("gelu-onnxruntime",)]


async def test_a_report_without_layers(tmp_path: Path) -> None:
    path = tmp_path / "empty.dldprof"
    writer(path).finish()
    async with opened(path) as (pilot, screen):
        await pilot.press(
            *"12345bbts", "space", *"+0%", "2", "left", "right", "down", "space", "enter"
        )
        assert "no timeline" in text_of(timeline(screen))


async def test_one_pass_and_no_durations(tmp_path: Path) -> None:
    path = make_report(tmp_path / "z.dldprof", layers=4, passes=1, latencies=1, zero=True)
    async with opened(path) as (pilot, screen):
        await pilot.press("2", "right", "+", "+", "space", "right", "space", "-", "G")
        assert timeline(screen).key_at_cursor() == 3
        await pilot.press("]", "3", "b", "4", "%")


async def test_hostile_names(tmp_path: Path) -> None:
    names = [HOSTILE, "x" * 100_000, "[bold]", "[/]", "", "\x00\n\t"]
    path = make_report(
        tmp_path / "h.dldprof", layers=6, names=names, network=HOSTILE, device=HOSTILE
    )
    async with opened(path) as (pilot, screen):
        shown = ""
        for key in "12345":
            await pilot.press(key)
            shown += "".join(
                text_of(widget)
                for widget in screen.query("*")
                if not widget.children and widget.region.area > 0
            )
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        assert "/blk[0]/Conv [/weight]\\x1b" in shown
        await pilot.press("3", "space", "b", "b", "enter", "t", "+")


@pytest.mark.broad
def test_a_profile_is_read_with_progress_and_can_be_stopped(tmp_path: Path) -> None:
    events = [event for n in range(3000) for event in (kernel("a", "Conv", n, 1), run(n, 2))]
    path = write_profile(tmp_path / "p.json", events)
    with load(path).report as report:
        assert len(report.passes) == 3000
    with pytest.raises(CancelledError):
        load(path, lambda: True)


@pytest.mark.parametrize("key", ["escape", "ctrl+q"])
async def test_reading_ends_with_its_page_or_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    started = threading.Event()

    def slow(path: Path, cancelled: Callable[[], bool], tell: Callable[[int, int], None]) -> Any:
        started.set()
        tell(1, 2)
        while not cancelled():
            time.sleep(0.01)
        raise CancelledError

    monkeypatch.setattr(module, "load", slow)
    async with running(DldApp([make_report(tmp_path / "a.dldprof")], Config())) as run:
        await run.until(started.is_set)
        await run.front(ReportScreen)
        await run.press(key)
        if key == "escape":
            await run.until(lambda: not run.app.pages)
    assert run.app.return_code == (None if key == "escape" else 0)


@pytest.fixture
def gpu_report(tmp_path: Path) -> Path:
    return make_gpu_report(tmp_path / "g.dldprof", layers=20)


async def test_a_lost_gpu_and_missing_permission_are_said(tmp_path: Path) -> None:
    why = "add the user to the group debug"
    path = make_gpu_report(
        tmp_path / "a.dldprof", absent="libcupti is missing", no_counters=why, finish=False
    )
    async with opened(path) as (pilot, screen):
        assert "Partial: " in text_of(screen.query_one(AnswerText))
        await pilot.press("5")
        notes = all_text(screen.query_one(EnvironmentView))
        assert "the GPU is lost" in notes
        assert "libcupti is missing" in " ".join(notes.split())
        await pilot.press("2")
        assert why in text_of(timeline(screen))
        assert not screen.query(TimelineView).first().timeline.has_gpu
        assert screen.has_class("-gpu")  # why there are no counters takes rows, too


async def test_a_report_of_version_1_is_shown_as_ever(gpu_report: Path) -> None:
    async with opened(as_version_1(gpu_report), LARGE) as (_, screen):
        assert "GPU works" not in text_of(screen.query_one(AnswerText))
        assert "GPU ms" not in text_of(screen.query_one(LayerPane).table)
        assert "SM active" not in text_of(timeline(screen))


async def test_a_report_of_a_newer_program_is_one_clear_line(gpu_report: Path) -> None:
    database = sqlite3.connect(gpu_report)
    database.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    database.close()
    async with running(DldApp([gpu_report], Config())) as run:
        await run.until(lambda: isinstance(run.app.screen, ErrorDialog) and not run.app.pages)
        shown = "".join(
            text_of(widget) for widget in run.app.screen.query("*") if not widget.children
        )
        assert "newer than this program" in shown
        await run.press("escape")
        assert not isinstance(run.app.screen, ReportScreen)


async def test_ascii_glyphs_only(gpu_report: Path) -> None:
    async with opened(gpu_report, LARGE, Config(glyphs="ascii")) as (pilot, screen):
        await pilot.press("2", "space", "end", "X", "3", "space", "space")
        names = "AnswerText, AdviceView, TimelineView, LayerTable, BarChart, PassesChart, #sums"
        for _ in range(4):
            await pilot.press("v")
            for widget in screen.query(names):
                text = text_of(widget).translate(dict.fromkeys(map(ord, "µ–…×°±"), "?"))
                assert text.isascii(), ascii(text)


async def test_the_heat_of_nodes_is_their_time_on_the_gpu(
    gpu_report: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it takes to launch a kernel says little about its work."""

    class Model:
        path = Path("m.onnx")

        @staticmethod
        def find_node(scope: tuple[str, ...], node: str) -> str:
            return node

    async with opened(gpu_report, LARGE) as (_, screen):
        assert screen.report is not None
        link = NodeLink((), "", "", "Conv", share=0.5)
        layers = [
            replace(layer, nodes=(replace(link, node=f"{layer.index}"),))
            for layer in screen.report.layers
        ]
        screen.report.layers = tuple(layers)
        monkeypatch.setattr(screen, "model_path", Model.path.absolute)
        found: Any = screen.node_times(Model())  # type: ignore[arg-type]
        expected = {
            f"{layer.index}": 0.5 * time
            for layer in layers
            if (time := layer.gpu_time_ms if layer.gpu_time_ms is not None
                else layer.time_ms if layer.provider == "CPUExecutionProvider" else None)
        }  # fmt: skip
        assert len(expected) > 5
        assert found[0] == pytest.approx(expected)


PROFILE = '[\n  { "count" : 4 }\n, { "name" : "Conv_0", "timeMs" : 8, "averageMs" : 2 }\n]\n'
TIMES = '[ { "startComputeMs" : 1, "endComputeMs" : 3.5, "computeMs" : 2.5 } ]'
TRACE = '{"traceEvents": [{"ph": "X", "name": "aten::mm", "ts": 1, "dur": 2000}]}'


async def ask(pilot: Pilot[Any], name: str) -> PromptDialog:
    await pilot.press("W")
    dialog = await front(pilot, PromptDialog)
    assert dialog.query_one(Input).value == "tiny.html"
    if name:
        dialog.query_one(Input).value = name
    await pilot.press("enter")
    return dialog


async def test_the_ending_says_what_is_written(
    report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened(report, SMALL) as (pilot, screen):
        for name, start in (
            ("", "<!DOCTYPE html>"), ("x.trace.json", '{"displayTimeUnit"'), ("x.csv", "index,")
        ):  # fmt: skip
            await ask(pilot, name)
            target = tmp_path / (name or "tiny.html")
            await until(pilot, target.exists)
            assert target.read_text().startswith(start)
        target = tmp_path / "tiny.html"
        target.write_text("keep me")
        await ask(pilot, "")
        await front(pilot, ChoiceDialog)
        assert target.read_text() == "keep me"
        await pilot.press("o")
        await until(pilot, lambda: pilot.app.screen is screen)
        await until(pilot, lambda: target.read_text().startswith("<!DOCTYPE"))
        await ask(pilot, "tiny.pdf")
        await front(pilot, ErrorDialog)


@pytest.mark.broad
async def test_files_of_other_programs_open_as_reports(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.json" for number in range(4)]
    for path, content in zip(paths, (PROFILE, TIMES, TRACE), strict=False):
        path.write_text(content)
    write_profile(paths[3], [kernel("a", "Conv", 0, 50), kernel("b", "Relu", 60, 20), run(0, 90)])
    async with DldApp(paths, Config()).run_test(size=LARGE) as pilot:
        app = cast("DldApp", pilot.app)
        await until(pilot, lambda: len(app.pages) == 4)
        for page, word in zip(app.pages, ("Conv_0", "GPU compute", "aten::mm", "b"), strict=True):
            assert isinstance(page, ReportScreen)
            app.show_page(page)
            await until(pilot, lambda: app.screen is page and page.report)  # noqa: B023
            assert word in text_of(page.query_one("#layers").query_one("LayerTable"))
            assert timeline(page).key_at_cursor() == 0


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
