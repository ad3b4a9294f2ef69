from __future__ import annotations

import re
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from dld_tui.app import DldApp
from dld_tui.core.report import schema
from dld_tui.core.report.records import NodeLink
from dld_tui.core.settings.config import Config
from dld_tui.screens.results.report import ReportScreen
from dld_tui.widgets.dialogs.dialogs import ErrorDialog
from dld_tui.widgets.results.layers import LayerPane
from dld_tui.widgets.results.report_views import (
    ChartPane,
    EnvironmentView,
)
from dld_tui.widgets.results.summary import AnswerText
from dld_tui.widgets.timeline.timeline import TimelineView
from tests.support.gpu_reports import as_version_1, make_gpu_report
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
from tests.support.tui import until


@pytest.fixture
def report(tmp_path: Path) -> Path:
    return make_gpu_report(tmp_path / "g.dldprof", layers=20)


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
    await pilot.press("enter", "s", "t", "X", "right_square_bracket")
    await until(pilot, lambda: "pass 3 of 3" in str(timeline(screen).border_title))


@pytest.mark.broad
async def test_counters_are_under_the_lanes_at_every_size(report: Path) -> None:
    for size in (SMALL, (120, 36), LARGE):
        async with opened(report, size) as (pilot, screen):
            await pilot.press("2")
            text = text_of(timeline(screen))
            assert "stream 7" in text
            assert "SM active" in text
            if size != (120, 36):
                assert "PCIe read" in text


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
        await pilot.press("percent_sign")
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
async def test_layers_of_a_gpu(report: Path) -> None:
    async with opened(report, LARGE) as (pilot, screen):
        for check in (
            layers_are_ranked_by_their_time_on_the_gpu,
            groups_have_their_time_on_the_gpu,
            marked_layers_are_summed_up_with_their_distinct_values,
            enter_on_a_precision_shows_the_layers_of_the_type,
            a_copy_belongs_to_no_layer,
            the_share_of_the_pass_is_a_column,
        ):
            await check(pilot, screen)
            await pilot.press("3", "escape", "escape", "escape", "home")


async def the_environment_has_clocks_and_throttling(
    pilot: Pilot[Any], screen: ReportScreen
) -> None:
    await pilot.press("5")
    text = all_text(screen.query_one(EnvironmentView))
    assert "GPU, clocks and power" in text
    assert "580.95.05" in text
    assert "power cap" in text


@pytest.mark.broad
async def test_panes_of_a_gpu_one_at_a_time(report: Path) -> None:
    async with opened(report, SMALL) as (pilot, screen):
        for check in (
            the_environment_has_clocks_and_throttling,
            from_the_table_to_the_kernel_and_back,
            charts_go_round,
        ):
            await check(pilot, screen)
            await pilot.press("3", "escape", "escape", "escape", "home")


@pytest.mark.parametrize("size", [SMALL, pytest.param(LARGE, marks=pytest.mark.broad)])
async def test_a_lost_gpu_and_missing_permission_are_said(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    why = "add the user to the group debug"
    path = make_gpu_report(
        tmp_path / "a.dldprof", absent="libcupti is missing", no_counters=why, finish=False
    )
    async with opened(path, size) as (pilot, screen):
        assert "Partial: " in text_of(screen.query_one(AnswerText))
        await pilot.press("5")
        notes = all_text(screen.query_one(EnvironmentView))
        assert "the GPU is lost" in notes
        assert "libcupti is missing" in " ".join(notes.split())
        await pilot.press("2")
        assert why in text_of(timeline(screen))
        assert not screen.query(TimelineView).first().timeline.has_gpu


async def test_a_report_of_version_1_is_shown_as_ever(report: Path) -> None:
    async with opened(as_version_1(report), LARGE) as (_, screen):
        assert "GPU works" not in text_of(screen.query_one(AnswerText))
        assert "GPU ms" not in text_of(screen.query_one(LayerPane).table)
        assert "SM active" not in text_of(timeline(screen))


async def test_a_report_of_a_newer_program_is_one_clear_line(report: Path) -> None:
    database = sqlite3.connect(report)
    database.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    database.close()
    app = DldApp([report], Config())
    async with app.run_test(size=SMALL) as pilot:
        await until(pilot, lambda: isinstance(app.screen, ErrorDialog) and not app.pages)
        shown = "".join(text_of(widget) for widget in app.screen.query("*") if not widget.children)
        assert "newer than this program" in shown
        await pilot.press("escape")
        assert not isinstance(app.screen, ReportScreen)


async def test_ascii_glyphs_only(report: Path) -> None:
    async with opened(report, LARGE, Config(glyphs="ascii")) as (pilot, screen):
        await pilot.press("2", "space", "end", "X", "3", "space", "space")
        for _ in range(4):
            await pilot.press("v")
            for widget in screen.query("AnswerText, TimelineView, LayerTable, BarChart, #sums"):
                text = (
                    text_of(widget)
                    .replace("µs", "us")
                    .replace("…", "~")
                    .replace("°", "")
                    .replace("×", "x")
                )
                assert text.replace("–", "-").isascii(), ascii(text)


async def test_the_heat_of_nodes_is_their_time_on_the_gpu(
    report: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it takes to launch a kernel says little about its work."""

    class Model:
        path = Path("m.onnx")

        @staticmethod
        def find_node(scope: tuple[str, ...], node: str) -> str:
            return node

    async with opened(report, LARGE) as (_, screen):
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
