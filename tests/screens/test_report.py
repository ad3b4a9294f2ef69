from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from dld_tui.app import DldApp
from dld_tui.core.reading.story import NextStep
from dld_tui.core.report.report import Report
from dld_tui.core.settings.config import Config
from dld_tui.screens.results import report as report_page
from dld_tui.screens.results import views
from dld_tui.screens.results.report import ReportScreen
from dld_tui.widgets.dialogs.dialogs import ChoiceDialog
from dld_tui.widgets.results.report_views import (
    ChartPane,
    EnvironmentView,
    environment_lines,
    flat,
)
from dld_tui.widgets.results.summary import AdviceView, AnswerText, SummaryPane
from tests.support.report_files import make_nested_report, make_report
from tests.support.report_screen import LARGE, SMALL, opened, pane, seen, text_of, timeline
from tests.support.tui import until
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


async def test_one_pane_at_a_time_on_a_small_terminal(report: Path) -> None:
    async with opened(report, SMALL) as (pilot, screen):
        assert seen(screen) == {"summary"}
        for key, name in zip("2345", ("timeline", "layers", "charts", "environment"), strict=True):
            await pilot.press(key)
            assert seen(screen) == {name}
            assert screen.focused is not None
            assert any(node.id == name for node in screen.focused.ancestors_with_self)


async def layers_have_a_third_of_the_rows(pilot: Pilot[Any], screen: ReportScreen) -> None:
    sizes = [
        (80, 24), (99, 34), *((100, rows) for rows in range(31, 38)), (149, 40),
        *((150, rows) for rows in range(39, 46)), (200, 50),
    ]  # fmt: skip
    before = pilot.app.size
    for on_gpu in (True, False):
        screen.set_class(on_gpu, "-gpu")
        for columns, rows in sizes:
            await pilot.resize_terminal(columns, rows)
            for key in ("1", "3"):
                await pilot.press(key)
                await pilot.pause()
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


async def test_a_layer_is_shown_in_the_timeline_and_back(report: Path) -> None:
    async with opened(report, SMALL) as (pilot, screen):
        await pilot.press("3", "G", "t")
        assert seen(screen) == {"timeline"}
        assert timeline(screen).scale.zoom > 1
        key = timeline(screen).key_at_cursor()
        await pilot.press("enter")
        assert seen(screen) == {"layers"}
        assert pane(screen).table.key_at_cursor() == key


async def show_in_table_gives_up_a_filter_that_hides_the_layer(
    pilot: Pilot[Any], screen: ReportScreen
) -> None:
    await pilot.press("slash", *"relu", "enter")
    await pilot.press("2", "g", "enter")
    assert pane(screen).filter == ""
    assert pane(screen).table.key_at_cursor() == 0


async def filter_while_typing(pilot: Pilot[Any], screen: ReportScreen) -> None:
    table = pane(screen).table
    await pilot.press("slash", *"type:conv")
    assert len(table.order) == 5
    await pilot.press("enter")
    assert screen.focused is table
    assert "5 of 25" in str(pane(screen).border_title)
    await pilot.press("slash", "escape")
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


@pytest.mark.broad
async def test_filter_from_any_pane(report: Path) -> None:
    async with opened(report, SMALL) as (pilot, screen):
        await pilot.press("2", "slash", *"softmax", "enter")
        assert seen(screen) == {"layers"}
        assert len(pane(screen).table.order) == 5
        await pilot.press("escape")
        assert len(pane(screen).table.order) == 25


async def nothing_passes_the_filter(pilot: Pilot[Any], screen: ReportScreen) -> None:
    await pilot.press("slash", *"zzz", "enter")
    assert "Esc" in text_of(pane(screen).table)


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
        assert not pilot.app._notifications

        model.write_bytes(b"another model")
        await pilot.press("s")
        await until(pilot, lambda: len(revealed) == 2)
        assert "changed" in next(iter(pilot.app._notifications)).message

        model.unlink()
        await pilot.press("s")
        await until(pilot, lambda: len(pilot.app._notifications) == 2)
        assert len(revealed) == 2
        assert "no longer exists" in list(pilot.app._notifications)[-1].message


async def test_nested_bodies_are_drawn_below_their_parent(tmp_path: Path) -> None:
    async with opened(make_nested_report(tmp_path / "n.dldprof")) as (pilot, screen):
        view = timeline(screen)
        assert [lane.title for lane in view.timeline.lanes] == ["thread 1", "", "thread 2"]
        await pilot.press("2", "g")
        view.move_to(0, 1)
        await pilot.press("down")
        assert view.key_at_cursor() == 2
        await pilot.press("up")
        assert view.key_at_cursor() == 1
        assert "If_0" in text_of(view)


@pytest.mark.broad
async def test_measure_between_two_marks(tmp_path: Path) -> None:
    async with opened(make_nested_report(tmp_path / "n.dldprof"), SMALL) as (pilot, screen):
        view = timeline(screen)
        await pilot.press("2")
        view.move_to(0, 0)
        await pilot.press("space", "right")
        assert "0.800 ms: 6 layers" in text_of(view)
        await pilot.press("space", "right")
        assert "0.800 ms: 6 layers" in text_of(view)
        await pilot.press("escape")
        assert "6 layers" not in text_of(view)


async def other_passes_can_be_drawn(pilot: Pilot[Any], screen: ReportScreen) -> None:
    assert timeline(screen).shown_pass == 2
    assert "typical pass 3 of 5" in str(timeline(screen).border_title)
    before = timeline(screen).timeline.total_us
    await pilot.press("right_square_bracket")
    await until(pilot, lambda: "pass 4 of 5" in str(timeline(screen).border_title))
    assert timeline(screen).timeline.total_us > before
    assert timeline(screen).key_at_cursor() == pane(screen).table.key_at_cursor()


async def a_bar_of_the_chart_filters_the_layers(pilot: Pilot[Any], screen: ReportScreen) -> None:
    await pilot.press("4")
    chart = screen.query_one(ChartPane)
    assert " ms" in text_of(screen.query_one("#type-chart"))
    await pilot.press("percent_sign")
    assert " %" in text_of(screen.query_one("#type-chart"))
    assert chart.percent
    await pilot.press("enter")
    assert len({layer.type for layer in pane(screen).shown_layers()}) == 1
    assert screen.pane == "layers"


@pytest.mark.broad
async def test_layers_and_timeline(report: Path) -> None:
    async with opened(report) as (pilot, screen):
        for check in (
            the_answer_is_seen_at_once_on_a_large_terminal,
            the_costliest_layer_is_on_top_and_under_both_cursors,
            cursors_of_table_and_timeline_go_together,
            show_in_table_gives_up_a_filter_that_hides_the_layer,
            filter_while_typing,
            nothing_passes_the_filter,
            group_and_drill_in_and_out,
            every_grouping_shows_the_same_total,
            marked_layers_are_added_up,
            other_passes_can_be_drawn,
            a_bar_of_the_chart_filters_the_layers,
            layers_have_a_third_of_the_rows,
            maximise_and_resize,
        ):
            await check(pilot, screen)
            await pilot.press("3", "escape", "escape", "escape", "home")


@pytest.mark.broad
async def test_ascii_glyphs_only(tmp_path: Path) -> None:
    path = make_nested_report(tmp_path / "n.dldprof")
    async with opened(path, LARGE, Config(glyphs="ascii")) as (pilot, screen):
        await pilot.press("2", "plus", "space", "right", "3", "space")
        names = "AnswerText, AdviceView, TimelineView, LayerTable, BarChart, PassesChart"
        for widget in screen.query(names):
            text = text_of(widget).replace("µs", "us").replace("–", "-").replace("…", "~")
            text = text.replace("×", "x").replace("±", "+-")
            assert text.isascii(), ascii(text)


async def test_without_colours_the_timeline_uses_glyphs(tmp_path: Path) -> None:
    path = make_nested_report(tmp_path / "n.dldprof")
    async with opened(path, LARGE, Config(theme="no-colour")) as (_, screen):
        text = text_of(timeline(screen))
        assert "▚" in text
        assert "░" in text or "▒" in text


@pytest.mark.broad
async def test_many_layers_are_filtered_with_little_work_for_each(tmp_path: Path) -> None:
    path = make_report(tmp_path / "big.dldprof", layers=2000, passes=2)
    async with opened(path, LARGE) as (pilot, screen):
        pane(screen).set_filter("relu")  # what is made once for all filters
        assert steps_in(pane(screen).set_filter, "conv") < 100 * 2000
        assert len(pane(screen).table.order) == 400
        await pilot.press("G")
        assert pane(screen).table.cursor == 399


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


async def test_advice_for_a_model_of_unknown_place_is_not_taken(report: Path) -> None:
    async with opened(report, SMALL) as (pilot, screen):
        screen.model_path = lambda: None  # type: ignore[method-assign]
        before = len(pilot.app._notifications)
        screen._try(NextStep("GELU in one operator", "Erf", ("fused-gelu",), ()))
        await until(pilot, lambda: len(pilot.app._notifications) > before)
        assert pilot.app.screen is screen


@pytest.mark.broad
@pytest.mark.parametrize(("key", "way"), [("m", "tune"), ("p", "preview"), ("escape", None)])
async def test_advice_by_rules_is_measured_or_previewed(
    report: Path, monkeypatch: pytest.MonkeyPatch, key: str, way: str | None
) -> None:
    step = NextStep("GELU in one operator", "Erf", ("fused-gelu",), ("gelu-onnxruntime",))
    asked: list[Any] = []
    monkeypatch.setattr(report_page, "next_steps", lambda report: [step])
    monkeypatch.setattr(
        report_page, "offer_rules", lambda host, path, rules: asked.append(("preview", rules))
    )
    monkeypatch.setattr(
        views,
        "run_activity",
        lambda host, name, values: asked.append((name, values["only"])),
    )
    async with opened(report, SMALL) as (pilot, screen):
        monkeypatch.setattr(screen, "model_path", lambda: Path("m.onnx"))
        assert "GELU in one operator" in text_of(screen.query_one(AdviceView))
        await pilot.press("3", "1", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ChoiceDialog))
        await pilot.press(key)
        await until(pilot, lambda: not isinstance(pilot.app.screen, ChoiceDialog))
        await pilot.pause()
    names = {"tune": ["fused-gelu"], "preview": ("gelu-onnxruntime",)}
    assert asked == ([] if way is None else [(way, names[way])])
