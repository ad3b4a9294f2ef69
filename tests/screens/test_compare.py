"""The screen that compares reports."""

from __future__ import annotations

import csv
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from dld_tui.app import DldApp
from dld_tui.core.errors import CancelledError
from dld_tui.core.report.records import Layer, NodeLink
from dld_tui.core.settings.config import Config
from dld_tui.core.settings.state import State
from dld_tui.core.types import CancelCheck, ProgressCallback
from dld_tui.screens.results import compare as module
from dld_tui.screens.results.compare import CompareScreen
from dld_tui.screens.results.plan import PlanScreen
from dld_tui.screens.results.report import ReportScreen
from dld_tui.screens.workspace.page import WorkspaceScreen
from dld_tui.widgets.dialogs.dialogs import (
    ChoiceDialog,
    Dialog,
    ErrorDialog,
    OpenPathDialog,
    PromptDialog,
)
from dld_tui.widgets.dialogs.search import PickDialog
from dld_tui.widgets.results.report_compare import CompareAbout, ComparePane
from tests.support import models
from tests.support.pages import running
from tests.support.plans import write_layers, write_profile
from tests.support.profiles import start_report
from tests.support.tui import front, screen_text, until

SMALL = (80, 24)
PASSES = 12


def layer(name: str, type: str, *nodes: str) -> Layer:
    links = tuple(NodeLink((), node, node, type, share=1 / len(nodes)) for node in nodes)
    return Layer(name, type, provider="CPU", nodes=links, confidence="tensor")


def write(path: Path, model: Path, threads: int, layers: list[tuple[Layer, float]]) -> Path:
    """Write a report of a model whose layers take about so many milliseconds."""
    facts: dict[str, Any] = {
        "model": {"path": str(model), "sha256": "0" * 64},
        "settings": {"threads": threads},
    }
    with start_report(path, **facts) as report:
        numbers = [report.add_layer(layer) for layer, _ in layers]
        for index in range(PASSES):
            start, at = index * 1e6, index * 1e6
            rows = []
            for number, (_, ms) in zip(numbers, layers, strict=True):
                took = ms * 1000 * (1 + 0.002 * (index % 3))
                rows.append((number, at, took, took, 1))
                at += took
            report.add_pass(index, start, at - start)
            report.add_samples(index, rows)
    return path


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Return reports of a model with two layers, and with these fused and one inserted."""
    model = models.write(tmp_path, models.CHAIN)
    apart = [(layer("one", "Relu", "first"), 4.0), (layer("two", "Sigmoid", "last"), 2.0),
             (layer("same", "Add"), 1.0)]  # fmt: skip
    fused = [(layer("both", "Fused", "first", "last"), 3.0), (layer("same", "Add"), 1.0),
             (layer("reorder", "ReorderOutput"), 0.5)]  # fmt: skip
    return (
        write(tmp_path / "a.dldprof", model, 1, apart),
        write(tmp_path / "b.dldprof", model, 4, fused),
    )


def pane(screen: CompareScreen) -> ComparePane:
    return screen.query_one(ComparePane)


@asynccontextmanager
async def opened(
    *paths: Path, size: tuple[int, int] = (200, 50)
) -> AsyncIterator[tuple[Pilot[Any], CompareScreen]]:
    app = DldApp([], Config())
    async with app.run_test(size=size) as pilot:
        screen = CompareScreen(paths)
        app.add_page(screen)
        await until(pilot, lambda: screen.comparison is not None and pane(screen).rows)
        await until(pilot, lambda: len(screen.query_one(CompareAbout).lines))
        yield pilot, screen


async def answer(pilot: Pilot[Any], dialog: type[Dialog[Any]], path: Path | str) -> None:
    """Type a path into a dialog that comes up, and accept."""
    await until(
        pilot, lambda: isinstance(pilot.app.screen, dialog) and pilot.app.screen.query(Input)
    )
    shown = pilot.app.screen
    shown.query_one(Input).value = str(path)
    await pilot.press("enter")
    await until(pilot, lambda: pilot.app.screen is not shown)


def keys(screen: CompareScreen) -> list[str]:
    return [row.key for row in pane(screen).shown_rows()]


def go_to(screen: CompareScreen, key: str) -> None:
    pane(screen).table.cursor = keys(screen).index(key)


async def test_what_differs_is_shown_without_a_word_of_the_size(
    pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CompareAbout, "on_resize", lambda self: None)  # it may not be told
    async with opened(*pair, size=SMALL) as (_, screen):
        assert len(screen.query_one(CompareAbout).lines) > 1


@pytest.mark.broad
async def test_enter_goes_to_the_node_and_t_to_the_layer(pair: tuple[Path, Path]) -> None:
    async with opened(*pair) as (pilot, screen):
        await pilot.press("t")
        report = await front(pilot, ReportScreen)
        await until(pilot, lambda: report.layer_at_cursor() is not None)
        assert report.path == pair[1]
        assert report.pane == "layers"
        found = report.layer_at_cursor()
        assert found is not None
        assert found.name == "both"
        host = pilot.app
        assert isinstance(host, DldApp)
        host.show_page(screen)
        await until(pilot, lambda: pilot.app.screen is screen)
        await pilot.press("enter")
        await front(pilot, WorkspaceScreen)
        await until(pilot, lambda: "first" in screen_text(pilot.app))


async def test_a_layer_that_only_the_base_has_is_shown_there(pair: tuple[Path, Path]) -> None:
    async with opened(pair[1], pair[0]) as (pilot, screen):
        go_to(screen, "reorder")
        await pilot.pause()
        assert "compared_node" not in screen.conditions()
        await pilot.press("enter")
        report = await front(pilot, ReportScreen)
        await until(pilot, lambda: report.layer_at_cursor() is not None)
        assert report.path == pair[1]


async def test_csv_and_page(pair: tuple[Path, Path], tmp_path: Path) -> None:
    async with opened(*pair) as (pilot, screen):
        await pilot.press("f", "w")
        await answer(pilot, PromptDialog, tmp_path / "out.csv")
        await until(pilot, (tmp_path / "out.csv").exists)
        await pilot.press("W")
        await answer(pilot, PromptDialog, tmp_path / "out.html")
        await until(pilot, (tmp_path / "out.html").exists)
        assert b"both" in (tmp_path / "out.html").read_bytes()
        await pilot.press("w")
        await answer(pilot, PromptDialog, tmp_path / "out.csv")
        await front(pilot, ChoiceDialog)
        await pilot.press("escape")
        await until(pilot, lambda: pilot.app.screen is screen)
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as lines:
        assert [row["key"] for row in csv.DictReader(lines)] == ["one", "reorder"]


@pytest.mark.broad
async def test_from_the_start_page_by_paths(pair: tuple[Path, Path]) -> None:
    async with running(DldApp([], Config(), State())) as run:
        await run.pilot.pause()
        run.app.action_compare_reports()
        await answer(run.pilot, OpenPathDialog, pair[0])
        await run.front(PickDialog)
        await run.shows("b.dldprof  now  same model")
        await run.press("enter")
        await run.until(
            lambda: isinstance(run.app.screen, CompareScreen) and run.app.screen.comparison
        )


@pytest.mark.broad
async def test_one_more_report(pair: tuple[Path, Path], tmp_path: Path) -> None:
    third = write(tmp_path / "c.dldprof", tmp_path / "m.onnx", 8, [(layer("same", "Add"), 2.0)])
    async with opened(*pair) as (pilot, screen):
        screen.action_add_report()
        await answer(pilot, PickDialog, str(third))
        await until(pilot, lambda: len(screen.subjects) == 3)
        await until(pilot, lambda: "threads  1 / 4 / 8" in screen_text(screen.app))
        assert "C-A ms" in screen_text(screen.app)


async def test_a_file_that_cannot_be_read(pair: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "bad.dldprof").write_bytes(b"SQLite format 3\0 but not really")
    async with running(DldApp([], Config())) as run:
        run.app.add_page(CompareScreen([pair[0], tmp_path / "bad.dldprof"]))
        await run.front(ErrorDialog)
        assert not run.app.pages


async def test_reading_can_be_stopped(
    pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def endless(path: Path, progress: ProgressCallback, cancelled: CancelCheck, *_: Any) -> None:
        while not cancelled():
            time.sleep(0.001)
        raise CancelledError("stopped")

    monkeypatch.setattr(module, "open_subject", endless)
    async with running(DldApp([], Config())) as run:
        run.app.add_page(CompareScreen(pair))
        await run.front(CompareScreen)
        await run.press("escape")
        await run.until(lambda: not run.app.pages)


async def test_foreign_names_stay_text(tmp_path: Path) -> None:
    evil = "/blk[0]/Conv [/weight]\x1b[31m"
    paths = [
        write(tmp_path / f"{n}.dldprof", tmp_path / "m.onnx", n, [(layer(evil, "Conv"), 1.0 + n)])
        for n in range(2)
    ]
    async with opened(*paths) as (pilot, screen):
        shown = "/blk[0]/Conv [/weight]\\x1b[31m"
        await until(pilot, lambda: shown in screen_text(screen.app))


COPY = "Reformatting CopyNode for Input Tensor 0 to last"


@pytest.fixture
def engines(tmp_path: Path) -> tuple[Path, Path]:
    """Return an engine in fp32, and one in fp16 with other tactics and a copy."""
    slow = write_layers(tmp_path / "slow.graph.json", [
        {"Name": "first + second", "TacticName": "scudnn"}, {"Name": "last", "TacticName": "s"},
    ])  # fmt: skip
    fast = write_layers(tmp_path / "fast.graph.json", [
        {"Name": "first + second", "TacticName": "h1688", "of": "Half"},
        {"Name": COPY, "LayerType": "Reformat", "of": "Half", "to": "Float"},
        {"Name": "last", "TacticName": "s"},
    ])  # fmt: skip
    write_profile(tmp_path / "slow.profile.json", [("first + second", 3.0), ("last", 1.0)])
    write_profile(
        tmp_path / "fast.profile.json", [("first + second", 0.75), (COPY, 0.25), ("last", 1.0)]
    )
    return slow, fast


async def test_the_graph_of_the_model_shows_the_times_of_an_open_engine(tmp_path: Path) -> None:
    model = models.write(tmp_path, models.CHAIN)
    layers = write_layers(tmp_path / "model.onnx.engine.graph.json", [
        {"Name": "first + second"}, {"Name": "last"},
    ])  # fmt: skip
    write_profile(
        tmp_path / "model.onnx.engine.profile.json", [("first + second", 4.0), ("last", 1.0)]
    )
    async with running(DldApp([str(layers), str(model)], Config()), size=(200, 50)) as run:
        await run.until(lambda: len(run.app.pages) == 2)
        engine, shown = run.app.pages
        assert isinstance(engine, PlanScreen)
        assert isinstance(shown, WorkspaceScreen)
        run.app.show_page(shown)
        await run.until(lambda: engine.loaded is not None and shown.graph.model is not None)
        times, title = shown.graph.colours.ask_times()
        assert {node.name: time for node, time in times.items()} == {
            "first": 2.0, "second": 2.0, "last": 1.0,
        }  # fmt: skip
        assert "shared by cost" in title


async def other_file(pilot: Pilot[Any]) -> None:
    """Choose the row that asks for any path."""
    await until(pilot, lambda: "another file" in screen_text(pilot.app))
    await pilot.press("end", "pagedown", "pagedown", "enter")


async def test_a_path_that_cannot_be_read_is_not_kept(
    engines: tuple[Path, Path], tmp_path: Path
) -> None:
    async with opened(*engines) as (pilot, screen):
        title = screen.tab_title
        await pilot.press("c")
        await other_file(pilot)
        await answer(pilot, OpenPathDialog, tmp_path / "missing.json")
        await front(pilot, ErrorDialog)
        await pilot.press("escape")
        await until(pilot, lambda: pilot.app.screen is screen)
        assert screen.paths == list(engines)
        await pilot.press("=")
        await until(pilot, lambda: screen.comparison is not None and screen.comparison.base == 1)
        assert screen.tab_title == title
        await pilot.press("c")
        await other_file(pilot)
        await answer(pilot, OpenPathDialog, engines[0])
        await until(pilot, lambda: len(screen.subjects) == 3)
        assert screen.comparison is not None
        assert screen.comparison.base == 1
