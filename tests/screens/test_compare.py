"""The screen that compares reports."""

from __future__ import annotations

import csv
import re
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
from dld_tui.widgets.results.report_compare import CompareAbout
from tests.support import models
from tests.support.compare_screen import opened, pane
from tests.support.profiles import start_report
from tests.support.tui import screen_text, until

SMALL, LARGE = (80, 24), (200, 50)
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


@pytest.mark.parametrize("size", [SMALL, pytest.param(LARGE, marks=pytest.mark.broad)])
async def test_what_differs_is_above_the_rows(
    pair: tuple[Path, Path], size: tuple[int, int]
) -> None:
    async with opened(*pair, size=size) as (pilot, screen):
        await until(pilot, lambda: "threads  1 / 4" in screen_text(screen.app))
        await until(pilot, lambda: "reorder" in screen_text(screen.app))
        shown = screen_text(screen.app)
        assert "B is faster than A" in shown
        assert re.search(r"A +7\.0\d+ ms +●", shown)
        assert "0.64× (-2.5" in shown
        assert shown.index("threads  1 / 4") < shown.index("B-A ms")
        assert keys(screen) == ["one", "reorder", "same"]
        assert "2>1" in shown
        assert "only B" in shown
        assert "noise" in shown
        about = screen.query_one(CompareAbout).lines
        text = [about.text(index) for index in range(len(about))]
        assert any("Fused in B, not in A" in line for line in text)
        assert any("Efron" in line for line in text)


async def test_what_differs_is_shown_without_a_word_of_the_size(
    pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CompareAbout, "on_resize", lambda self: None)  # it may not be told
    async with opened(*pair, size=SMALL) as (_, screen):
        assert len(screen.query_one(CompareAbout).lines) > 1


async def test_the_runs_are_drawn_over_each_other(pair: tuple[Path, Path]) -> None:
    async with opened(*pair, size=SMALL) as (pilot, screen):
        about = screen.query_one(CompareAbout)
        await pilot.press("v")
        await until(pilot, lambda: "median" in screen_text(pilot.app))
        assert [len(values) for _, values in about.runs] == [PASSES, PASSES]
        await pilot.press("v")
        await until(pilot, lambda: "end to end" in screen_text(pilot.app))


async def test_groups_and_into_one(pair: tuple[Path, Path]) -> None:
    async with opened(*pair) as (pilot, screen):
        for by in ("node", "type"):
            await pilot.press("b")
            await until(pilot, lambda by=by: pane(screen).by == by)
        assert keys(screen) == ["Relu", "Fused", "Sigmoid", "ReorderOutput", "Add"]
        await pilot.press("down", "enter")
        await until(pilot, lambda: pane(screen).by == "layer")
        assert keys(screen) == ["one"]  # the row of the layer of type Fused
        await pilot.press("equals_sign")
        await until(pilot, lambda: screen.comparison is not None and screen.comparison.base == 1)
        assert keys(screen) == ["both"]
        await pilot.press("escape")
        await until(pilot, lambda: pane(screen).by == "type")
        row = screen.row()
        assert row is not None
        assert row.key == "Fused"
        await pilot.press("escape")
        await until(pilot, lambda: pane(screen).by == "layer")
        assert keys(screen) == ["both", "reorder", "same"]


async def test_filter_noise_and_sort(pair: tuple[Path, Path]) -> None:
    async with opened(*pair) as (pilot, screen):
        await pilot.press("f")
        await pilot.pause()
        assert keys(screen) == ["one", "reorder"]
        await pilot.press("slash", *"eor")
        await pilot.pause()
        assert keys(screen) == ["reorder"]
        await pilot.press("enter")
        await pilot.pause()
        assert pane(screen).table.has_focus
        assert "1 of 3, more than noise" in pane(screen).frame.title
        await pilot.press("escape", "escape")
        await pilot.pause()
        assert keys(screen) == ["one", "reorder", "same"]
        await pilot.press("o")
        await pilot.pause()
        assert keys(screen) == ["one", "reorder", "same"]  # by name
        await pilot.press("tilde")
        await pilot.pause()
        assert keys(screen) == ["same", "reorder", "one"]


async def test_the_other_base(pair: tuple[Path, Path]) -> None:
    async with opened(*pair) as (pilot, screen):
        await pilot.press("o", "G")
        go_to(screen, "same")
        await pilot.press("equals_sign")
        await until(pilot, lambda: screen.comparison is not None and screen.comparison.base == 1)
        await until(pilot, lambda: "A-B ms" in screen_text(screen.app))
        assert "only B" in screen_text(screen.app)
        assert keys(screen) == ["both", "reorder", "same"]  # by name, as before
        assert pane(screen).table.cursor == 2
        go_to(screen, "both")
        before = screen.comparison
        await pilot.press("equals_sign")
        await until(pilot, lambda: screen.comparison is not before)
        row = screen.row()
        assert row is not None
        assert row.key == "one"  # what the other report calls that layer
        assert pane(screen).table.has_focus


@pytest.mark.broad
async def test_enter_goes_to_the_node_and_t_to_the_layer(pair: tuple[Path, Path]) -> None:
    async with opened(*pair) as (pilot, screen):
        await pilot.press("t")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReportScreen))
        report = pilot.app.screen
        assert isinstance(report, ReportScreen)
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
        await until(pilot, lambda: isinstance(pilot.app.screen, WorkspaceScreen))
        await until(pilot, lambda: "first" in screen_text(pilot.app))


async def test_a_layer_that_only_the_base_has_is_shown_there(pair: tuple[Path, Path]) -> None:
    async with opened(pair[1], pair[0]) as (pilot, screen):
        go_to(screen, "reorder")
        await pilot.pause()
        assert "compared_node" not in screen.conditions()
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReportScreen))
        report = pilot.app.screen
        assert isinstance(report, ReportScreen)
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
        await until(pilot, lambda: isinstance(pilot.app.screen, ChoiceDialog))
        await pilot.press("escape")
        await until(pilot, lambda: pilot.app.screen is screen)
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as lines:
        assert [row["key"] for row in csv.DictReader(lines)] == ["one", "reorder"]


@pytest.mark.broad
async def test_from_a_report_with_an_open_one(pair: tuple[Path, Path]) -> None:
    app = DldApp(pair, Config(), State())
    async with app.run_test(size=SMALL) as pilot:
        await until(pilot, lambda: isinstance(app.screen, ReportScreen) and app.screen.report)
        await pilot.press("equals_sign")
        await until(pilot, lambda: isinstance(app.screen, PickDialog))
        await until(pilot, lambda: "b.dldprof" in screen_text(app))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, CompareScreen) and app.screen.comparison)
        screen = app.screen
        assert isinstance(screen, CompareScreen)
        assert screen.paths == list(pair)


@pytest.mark.broad
async def test_from_the_start_page_by_paths(pair: tuple[Path, Path]) -> None:
    app = DldApp([], Config(), State())
    async with app.run_test(size=SMALL) as pilot:
        await pilot.pause()
        app.action_compare_reports()
        await answer(pilot, OpenPathDialog, pair[0])
        await until(pilot, lambda: isinstance(app.screen, PickDialog))
        await until(pilot, lambda: "b.dldprof  now  same model" in screen_text(app))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, CompareScreen) and app.screen.comparison)


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
    app = DldApp([], Config())
    async with app.run_test(size=SMALL) as pilot:
        app.add_page(CompareScreen([pair[0], tmp_path / "bad.dldprof"]))
        await until(pilot, lambda: isinstance(app.screen, ErrorDialog))
        assert not app.pages


async def test_reading_can_be_stopped(
    pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def endless(path: Path, progress: ProgressCallback, cancelled: CancelCheck) -> None:
        while not cancelled():
            pass
        raise CancelledError("stopped")

    monkeypatch.setattr(module, "open_subject", endless)
    app = DldApp([], Config())
    async with app.run_test(size=SMALL) as pilot:
        app.add_page(CompareScreen(pair))
        await until(pilot, lambda: isinstance(app.screen, CompareScreen))
        await pilot.press("escape")
        await until(pilot, lambda: not app.pages)


async def test_foreign_names_stay_text(tmp_path: Path) -> None:
    evil = "/blk[0]/Conv [/weight]\x1b[31m"
    paths = [
        write(tmp_path / f"{n}.dldprof", tmp_path / "m.onnx", n, [(layer(evil, "Conv"), 1.0 + n)])
        for n in range(2)
    ]
    async with opened(*paths) as (pilot, screen):
        shown = "/blk[0]/Conv [/weight]\\x1b[31m"
        await until(pilot, lambda: shown in screen_text(screen.app))
