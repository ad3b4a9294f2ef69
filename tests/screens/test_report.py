from __future__ import annotations

import csv
import json
import re
import sqlite3
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Input

from dld_tui.app import DldApp
from dld_tui.core.errors import CancelledError, InputError
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
from dld_tui.widgets.dialogs.dialogs import ChoiceDialog, ErrorDialog, PromptDialog, QuestionDialog
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.results.layers import ColumnsDialog, LayerPane
from dld_tui.widgets.results.report_views import (
    ChartPane,
    EnvironmentView,
    environment_lines,
    flat,
)
from dld_tui.widgets.results.summary import AdviceView, AnswerText, SummaryPane
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
    seen,
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


Check = Callable[[Pilot[Any], ReportScreen], Awaitable[None]]


async def in_turn(pilot: Pilot[Any], screen: ReportScreen, *checks: Check) -> None:
    """Make checks, each from the top of the layers, all of which are shown."""
    for check in checks:
        await check(pilot, screen)
        await pilot.press("3", "escape", "escape", "escape", "home")


async def the_answer_is_seen_at_once_on_a_large_terminal(
    pilot: Pilot[Any], screen: ReportScreen
) -> None:
    assert seen(screen) == {"summary", "timeline", "layers", "charts"}
    assert screen.focused is pane(screen).table
    assert "Summary" in str(screen.query_one(SummaryPane).border_title)
    assert "median" in text_of(screen.query_one(AnswerText))
    assert "Conv" in text_of(screen.query_one("#type-chart"))
    await pilot.press("5")
    assert seen(screen) == {"summary", "timeline", "layers", "environment"}
    assert "made by a test" in text_of(screen.query_one(EnvironmentView))
    await pilot.press("4", "3")


async def layers_have_a_third_of_the_rows(pilot: Pilot[Any], screen: ReportScreen) -> None:
    sizes = [
        (80, 24), (99, 34), (100, 31), (100, 34), (100, 37), (149, 40), (150, 39), (150, 42),
        (150, 45), (200, 50),
    ]  # fmt: skip
    before = pilot.app.size
    for on_gpu in (True, False):
        screen.set_class(on_gpu, "-gpu")
        for columns, rows in sizes:
            await pilot.resize_terminal(columns, rows)
            for key in ("1", "3"):
                await pilot.press(key)
                if "layers" in seen(screen):
                    height = pane(screen).outer_size.height
                    assert 3 * height >= rows, (columns, rows, on_gpu, key)
            assert "layers" in seen(screen)
    await pilot.resize_terminal(*before)
    await pilot.pause()


async def maximise_and_resize(pilot: Pilot[Any], screen: ReportScreen) -> None:
    await pilot.press("2", "m")
    assert seen(screen) == {"timeline"}
    await pilot.press("m")
    assert len(seen(screen)) == 4
    await pilot.resize_terminal(120, 36)
    await pilot.pause()
    assert seen(screen) == {"summary", "timeline", "layers"}


async def the_costliest_layer_is_on_top_and_under_both_cursors(
    pilot: Pilot[Any], screen: ReportScreen
) -> None:
    assert screen.report is not None
    top = max(screen.report.layers, key=lambda layer: layer.time_ms or 0)
    layer = pane(screen).layer_at_cursor()
    assert layer is not None
    assert layer.index == top.index == timeline(screen).key_at_cursor()
    await pilot.press("o", "o")
    assert pane(screen).table.sort_column != "time"
    assert pane(screen).table.key_at_cursor() == top.index


async def cursors_of_table_and_timeline_go_together(
    pilot: Pilot[Any], screen: ReportScreen
) -> None:
    await pilot.press("down", "down")
    layer = pane(screen).layer_at_cursor()
    assert layer is not None
    assert timeline(screen).key_at_cursor() == layer.index
    await pilot.press("2", "g", "right")
    assert timeline(screen).key_at_cursor() == 1
    assert pane(screen).table.key_at_cursor() == 1


async def test_one_pane_at_a_time_on_a_small_terminal(report: Path) -> None:
    async with opened(report, SMALL) as (pilot, screen):
        assert seen(screen) == {"summary"}
        for number, name in zip(
            "2345", ("timeline", "layers", "charts", "environment"), strict=True
        ):
            await pilot.press(number)
            assert seen(screen) == {name}
            assert screen.focused is not None
            assert any(node.id == name for node in screen.focused.ancestors_with_self)
        await pilot.press("3", "G", "t")
        assert seen(screen) == {"timeline"}
        assert timeline(screen).scale.zoom > 1
        key = timeline(screen).key_at_cursor()
        await pilot.press("enter")
        assert seen(screen) == {"layers"}
        assert pane(screen).table.key_at_cursor() == key
        await pilot.press("2", "/", *"softmax", "enter")
        assert seen(screen) == {"layers"}
        assert len(pane(screen).table.order) == 5
        await pilot.press("escape")
        assert len(pane(screen).table.order) == 25


async def show_in_table_gives_up_a_filter_that_hides_the_layer(
    pilot: Pilot[Any], screen: ReportScreen
) -> None:
    await pilot.press("/", *"relu", "enter")
    await pilot.press("2", "g", "enter")
    assert pane(screen).filter == ""
    assert pane(screen).table.key_at_cursor() == 0


async def filter_while_typing(pilot: Pilot[Any], screen: ReportScreen) -> None:
    table = pane(screen).table
    await pilot.press("/", *"type:conv")
    assert len(table.order) == 5
    await pilot.press("enter")
    assert screen.focused is table
    assert "5 of 25" in str(pane(screen).border_title)
    await pilot.press("/", *"zzz")
    assert "Esc" in text_of(table)
    await pilot.press("escape")
    assert len(table.order) == 25
    assert screen.focused is table


async def test_the_advice_is_first_and_the_layer_of_the_timeline_in_its_border(
    report: Path,
) -> None:
    async with opened(report, (120, 35)) as (_, screen):
        assert screen.focused is screen.query_one(AdviceView)
        view = timeline(screen)
        layer = pane(screen).layer_at_cursor()
        assert layer is not None
        assert view.size.height == 3
        assert f"{layer.time_ms:.3f} ms" in str(view.border_title)  # there is no row for it


async def group_and_drill_in_and_out(pilot: Pilot[Any], screen: ReportScreen) -> None:
    table = pane(screen).table
    await pilot.press("b")
    assert pane(screen).by == "type"
    assert len(table.order) == 5
    key = str(table.key_at_cursor())
    await pilot.press("enter")
    assert {layer.type for layer in pane(screen).shown_layers()} == {key}
    await pilot.press("escape")
    assert (pane(screen).by, table.key_at_cursor()) == ("type", key)
    await pilot.press("escape")
    assert pane(screen).by == "layer"


async def every_grouping_shows_the_same_total(pilot: Pilot[Any], screen: ReportScreen) -> None:
    for _ in range(6):
        await pilot.press("b")
        total = sum(group.time_ms for group in pane(screen).shown_groups())
        assert total == pytest.approx(sum(one.time_ms or 0 for one in pane(screen).all_layers))
    await pilot.press("b")
    assert pane(screen).by == "layer"


async def marked_layers_are_added_up(pilot: Pilot[Any], screen: ReportScreen) -> None:
    layers = pane(screen).shown_layers()[:3]
    await pilot.press("space", "space", "space")
    line = text_of(screen.query_one("#sums"))
    assert "3 marked" in line
    assert f"total {sum(layer.time_ms or 0 for layer in layers):.3f} ms" in line
    await pilot.press("escape")
    assert not screen.query_one("#sums").display


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


async def test_nested_bodies_are_drawn_below_their_parent_and_measured(tmp_path: Path) -> None:
    async with opened(make_nested_report(tmp_path / "n.dldprof")) as (pilot, screen):
        view = timeline(screen)
        assert [lane.title for lane in view.timeline.lanes] == ["thread 1", "", "thread 2"]
        await pilot.press("2", "g")
        view.move_to(0, 1)
        for key, layer in (("down", 2), ("up", 1)):
            await pilot.press(key)
            assert view.key_at_cursor() == layer
        assert "If_0" in text_of(view)
        view.move_to(0, 0)
        for _ in range(2):
            await pilot.press("space", "right")
            assert "0.800 ms: 6 layers" in text_of(view)
        await pilot.press("escape")
        assert "6 layers" not in text_of(view)


async def other_passes_can_be_drawn(pilot: Pilot[Any], screen: ReportScreen) -> None:
    assert timeline(screen).shown_pass == 2
    assert "typical pass 3 of 5" in str(timeline(screen).border_title)
    before = timeline(screen).timeline.total_us
    await pilot.press("]")
    await until(pilot, lambda: "pass 4 of 5" in str(timeline(screen).border_title))
    assert timeline(screen).timeline.total_us > before
    assert timeline(screen).key_at_cursor() == pane(screen).table.key_at_cursor()


async def a_bar_of_the_chart_filters_the_layers(pilot: Pilot[Any], screen: ReportScreen) -> None:
    await pilot.press("4")
    chart = screen.query_one(ChartPane)
    assert " ms" in text_of(screen.query_one("#type-chart"))
    await pilot.press("%")
    assert " %" in text_of(screen.query_one("#type-chart"))
    assert chart.percent
    await pilot.press("enter")
    assert len({layer.type for layer in pane(screen).shown_layers()}) == 1
    assert screen.pane == "layers"


@pytest.mark.broad
async def test_layers_and_timeline(report: Path) -> None:
    async with opened(report) as (pilot, screen):
        await in_turn(
            pilot,
            screen,
            the_answer_is_seen_at_once_on_a_large_terminal,
            the_costliest_layer_is_on_top_and_under_both_cursors,
            cursors_of_table_and_timeline_go_together,
            show_in_table_gives_up_a_filter_that_hides_the_layer,
            filter_while_typing,
            group_and_drill_in_and_out,
            every_grouping_shows_the_same_total,
            marked_layers_are_added_up,
            other_passes_can_be_drawn,
            a_bar_of_the_chart_filters_the_layers,
            layers_have_a_third_of_the_rows,
            maximise_and_resize,
        )


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


def _is_seen(app: App[Any]) -> bool:
    """Return whether the question is there and takes keys."""
    return isinstance(app.screen, QuestionDialog) and cast("DldApp", app).keys.at_rest


@pytest.mark.broad
async def test_csv_is_what_is_shown(
    report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened(report) as (pilot, screen):
        await pilot.press("/", *"type:relu", "enter", "w")
        await front(pilot, PromptDialog)
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
        await front(pilot, PromptDialog)
        await pilot.press("escape")
        await until(pilot, lambda: pilot.app.screen is screen)
        assert target.read_text() == "keep me"
        await pilot.press("w", "enter")
        await until(pilot, lambda: _is_seen(pilot.app))
        await pilot.press("o")
        await until(pilot, lambda: target.read_text() != "keep me")


@pytest.mark.broad
async def test_columns_are_chosen_and_remembered(report: Path) -> None:
    async with opened(report) as (pilot, screen):
        assert "output shapes" in text_of(pane(screen).table)
        await pilot.press("C")
        await front(pilot, ColumnsDialog)
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
    "content", [None, b"", b"SQLite format 3\x00 and no more", b"[1, 2", b"\x00" * 99]
)
def test_other_files_are_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "x.dldprof"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        load(path)
    assert "x.dldprof" in str(caught.value)


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


@pytest.mark.broad
async def test_how_busy_the_gpu_is(tmp_path: Path) -> None:
    path = make_gpu_report(tmp_path / "alone.dldprof", layers=20, alone=2)
    async with opened(path, LARGE) as (pilot, screen):
        answer = text_of(screen.query_one(AnswerText))
        assert "kernels alone" in str(timeline(screen).border_title)
        [share] = re.findall(r"the GPU works (\d+) % of a pass", answer)
        await pilot.press("5")
        text = all_text(screen.query_one(EnvironmentView))
        found = re.search(r"GPU busy [\d.]+ ms of [\d.]+ \(([\d.]+) %\)", " ".join(text.split()))
        assert found is not None
        assert round(float(found[1])) == int(share)
        for name in ("launch gaps", "copies", "kernels"):
            assert name in text
        assert "Fallback: 1 of 20 layers" in " ".join(text.split())


async def layers_are_ranked_by_their_time_on_the_gpu(
    pilot: Pilot[Any], screen: ReportScreen
) -> None:
    assert screen.report is not None
    # The layer on the processor has no kernels, and its own time among those of the others.
    costs = [layer.gpu_time_ms or layer.time_ms or 0 for layer in pane(screen).shown_layers()]
    assert costs == sorted(costs, reverse=True)
    top = pane(screen).layer_at_cursor()
    assert top is not None
    assert top.gpu_time_ms == costs[0]
    assert top.percent == pytest.approx(100 * costs[0] / sum(costs))
    assert timeline(screen).key_at_cursor() == top.index
    assert "GPU ms" in text_of(pane(screen).table)
    assert "GPU %" in text_of(pane(screen).table)


async def groups_have_their_time_on_the_gpu(pilot: Pilot[Any], screen: ReportScreen) -> None:
    await pilot.press("b")
    assert "GPU ms" in text_of(pane(screen).table)
    total = sum(group.gpu_time_ms or 0.0 for group in pane(screen).shown_groups())
    layers = screen.report.layers if screen.report else ()
    assert total == pytest.approx(sum(layer.gpu_time_ms or 0.0 for layer in layers))


async def from_the_table_to_the_kernel_and_back(pilot: Pilot[Any], screen: ReportScreen) -> None:
    await pilot.press("3", "t", "X")
    assert seen(screen) == {"timeline"}
    event = timeline(screen).event_at_cursor()
    layer = pane(screen).layer_at_cursor()
    assert event is not None
    assert layer is not None
    assert event.layer == layer.index
    assert "kernel" in text_of(timeline(screen))
    await pilot.press("enter")
    assert seen(screen) == {"layers"}
    assert pane(screen).table.key_at_cursor() == event.layer


async def a_copy_belongs_to_no_layer(pilot: Pilot[Any], screen: ReportScreen) -> None:
    await pilot.press("2", "down", "home")
    assert screen.layer_at_cursor() is None
    assert "memcpy" in text_of(timeline(screen))
    await pilot.press("enter", "s", "t", "X", "]")
    await until(pilot, lambda: "pass 3 of 3" in str(timeline(screen).border_title))


@pytest.mark.broad
async def test_counters_are_under_the_lanes_at_every_size(gpu_report: Path) -> None:
    async with opened(gpu_report, SMALL) as (pilot, screen):
        for size in (SMALL, (120, 36), LARGE):
            await pilot.resize_terminal(*size)
            await pilot.press("2")
            text = text_of(timeline(screen))
            assert "stream 7" in text
            assert "SM active" in text
            assert "PCIe read" in text or size == (120, 36)


async def marked_layers_are_summed_up_with_their_distinct_values(
    pilot: Pilot[Any], screen: ReportScreen
) -> None:
    await pilot.press("3", "space", "space", "space")
    text = text_of(screen.query_one("#sums"))
    assert "3 marked" in text
    assert "% of all layers" in " ".join(text.split())
    assert "GPU " in text
    assert "precision fp32×3" in text
    assert "provider CUDA×3" in text
    assert "output 1x8x16x16×3" in text


async def the_share_of_the_pass_is_a_column(pilot: Pilot[Any], screen: ReportScreen) -> None:
    pane(screen).set_columns(["name", "time", "of_pass"])
    layer = pane(screen).shown_layers()[0]
    profiled = screen.report.profiled_latency if screen.report else None
    assert profiled is not None
    share = 100 * (layer.time_ms or 0.0) / profiled.median
    text = text_of(pane(screen).table)
    assert "% pass" in text
    assert f"{share:.1f}" in text


async def charts_go_round(pilot: Pilot[Any], screen: ReportScreen) -> None:
    found = []
    chart, view = screen.query_one(ChartPane), screen.query_one("#type-chart")
    for _ in range(7):
        await pilot.press("v")
        await until(pilot, lambda: "Drawing" not in text_of(view))
        found.append(chart.chart)
        assert text_of(view).strip()
        if chart.chart == "passes":
            await until(pilot, lambda: "run 1 " in text_of(view))
            await pilot.press("right")
            assert "run 2 " in text_of(view)
        elif chart.chart == "memory":
            await until(pilot, lambda: "1 of " in text_of(view))
            await pilot.press("enter")
            assert screen.pane == "layers"
            costliest = max(pane(screen).all_layers, key=lambda one: one.gpu_time_ms or 0.0)
            assert pane(screen).layer_at_cursor() == costliest
        await pilot.press("%")
    assert found == [
        "precision", "passes", "distribution", "memory", "roofline", "type", "precision",
    ]  # fmt: skip


async def enter_on_a_precision_shows_the_layers_of_the_type(
    pilot: Pilot[Any], screen: ReportScreen
) -> None:
    await pilot.press("v", "down", "enter")
    assert len({layer.type for layer in pane(screen).shown_layers()}) == 1
    assert screen.pane == "layers"


@pytest.mark.broad
async def test_layers_of_a_gpu(gpu_report: Path) -> None:
    async with opened(gpu_report, LARGE) as (pilot, screen):
        await in_turn(
            pilot,
            screen,
            layers_are_ranked_by_their_time_on_the_gpu,
            groups_have_their_time_on_the_gpu,
            marked_layers_are_summed_up_with_their_distinct_values,
            enter_on_a_precision_shows_the_layers_of_the_type,
            a_copy_belongs_to_no_layer,
            the_share_of_the_pass_is_a_column,
        )


async def the_environment_has_clocks_and_throttling(
    pilot: Pilot[Any], screen: ReportScreen
) -> None:
    await pilot.press("5")
    text = all_text(screen.query_one(EnvironmentView))
    assert "GPU, clocks and power" in text
    assert "580.95.05" in text
    assert "power cap" in text


@pytest.mark.broad
async def test_panes_of_a_gpu_one_at_a_time(gpu_report: Path) -> None:
    async with opened(gpu_report, SMALL) as (pilot, screen):
        await in_turn(
            pilot,
            screen,
            the_environment_has_clocks_and_throttling,
            from_the_table_to_the_kernel_and_back,
            charts_go_round,
        )


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
