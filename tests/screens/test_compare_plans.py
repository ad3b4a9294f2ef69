"""The screen that compares engines."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from dld_tui.app import DldApp
from dld_tui.core.settings.config import Config
from dld_tui.screens.results.compare import CompareScreen
from dld_tui.screens.results.plan import PlanScreen
from dld_tui.screens.workspace.page import WorkspaceScreen
from dld_tui.widgets.dialogs.dialogs import ErrorDialog, OpenPathDialog
from dld_tui.widgets.dialogs.search import PickDialog
from dld_tui.widgets.results.report_compare import CompareAbout
from tests.screens.test_compare import answer, go_to
from tests.support import models
from tests.support.compare_screen import opened, pane
from tests.support.plans import write_layers, write_profile
from tests.support.tui import screen_text, until

COPY = "Reformatting CopyNode for Input Tensor 0 to last"


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
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


async def show(pilot: Pilot[Any], screen: CompareScreen, by: str) -> None:
    """Press the key until the rows are by something."""
    while pane(screen).by != by:
        before = pane(screen).by
        await pilot.press("b")
        await until(pilot, lambda before=before: pane(screen).by != before)


@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
async def test_engines_side_by_side(pair: tuple[Path, Path], size: tuple[int, int]) -> None:
    async with opened(*pair, size=size) as (pilot, screen):
        await until(pilot, lambda: "By layer" in screen_text(screen.app))
        about = screen.query_one(CompareAbout).lines
        text = " ".join(about.text(index) for index in range(len(about)))
        assert "B has a speedup of 2.00×" in re.sub(r"\s+", " ", text)
        await show(pilot, screen, "mismatch")
        await until(pilot, lambda: "Other precision or tactic" in screen_text(screen.app))
        shown = screen_text(screen.app)
        assert re.search(r"first \+ second +fp32 +fp16 +-2.250", shown)
        assert "scudnn" in shown
        assert len(pane(screen).rows) == 1


async def test_the_same_tactics_everywhere(pair: tuple[Path, Path]) -> None:
    async with opened(pair[0], pair[0]) as (pilot, screen):
        await show(pilot, screen, "mismatch")
        await until(pilot, lambda: "same precision and tactic" in screen_text(screen.app))


async def test_to_the_layer_in_its_engine(pair: tuple[Path, Path]) -> None:
    async with opened(*pair) as (pilot, screen):
        go_to(screen, "last")
        await pilot.press("t")
        await until(pilot, lambda: isinstance(pilot.app.screen, PlanScreen))
        shown = pilot.app.screen
        assert isinstance(shown, PlanScreen)
        assert shown.path == pair[1]


@pytest.mark.broad
async def test_nodes_are_found_in_the_model(pair: tuple[Path, Path], tmp_path: Path) -> None:
    model = models.write(tmp_path, models.CHAIN)
    async with opened(*pair) as (pilot, screen):
        assert screen.node_place() is None
        before = screen.comparison
        await pilot.press("a")
        await answer(pilot, OpenPathDialog, model)
        await until(pilot, lambda: screen.comparison is not before)
        go_to(screen, "last")
        await until(pilot, lambda: screen.node_place() is not None)
        await pilot.press("s")
        await until(pilot, lambda: isinstance(pilot.app.screen, WorkspaceScreen))
        await until(pilot, lambda: "Sigmoid" in screen_text(pilot.app))


@pytest.mark.broad
async def test_without_times_rows_are_still_compared(tmp_path: Path) -> None:
    paths = [
        write_layers(tmp_path / f"{name}.json", [{"Name": "a", "of": of}, {"Name": name}])
        for name, of in (("x", "Float"), ("y", "Half"))
    ]
    async with opened(*paths) as (pilot, screen):
        await until(pilot, lambda: "there are no times" in screen_text(screen.app))
        for by in ("node", "type", "precision", "mismatch"):
            await show(pilot, screen, by)
        assert [row.key for row in pane(screen).rows] == ["a"]


@pytest.mark.broad
async def test_an_open_engine_is_offered(pair: tuple[Path, Path]) -> None:
    app = DldApp([str(path) for path in pair], Config())
    async with app.run_test(size=(200, 50)) as pilot:
        await until(pilot, lambda: len(app.pages) == 2)
        await pilot.press("equals_sign")
        await until(pilot, lambda: isinstance(app.screen, PickDialog))
        await until(pilot, lambda: "fast.graph.json" in screen_text(app))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, CompareScreen))
        compared = app.screen
        assert isinstance(compared, CompareScreen)
        await until(pilot, lambda: compared.comparison is not None)
        assert [path.name for path in compared.paths] == ["slow.graph.json", "fast.graph.json"]


async def test_the_graph_of_the_model_shows_the_times_of_an_open_engine(tmp_path: Path) -> None:
    model = models.write(tmp_path, models.CHAIN)
    layers = write_layers(tmp_path / "model.onnx.engine.graph.json", [
        {"Name": "first + second"}, {"Name": "last"},
    ])  # fmt: skip
    write_profile(
        tmp_path / "model.onnx.engine.profile.json", [("first + second", 4.0), ("last", 1.0)]
    )
    app = DldApp([str(layers), str(model)], Config())
    async with app.run_test(size=(200, 50)) as pilot:
        await until(pilot, lambda: len(app.pages) == 2)
        engine, shown = app.pages
        assert isinstance(engine, PlanScreen)
        assert isinstance(shown, WorkspaceScreen)
        app.show_page(shown)
        await until(pilot, lambda: engine.loaded is not None and shown.graph.model is not None)
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
    pair: tuple[Path, Path], tmp_path: Path
) -> None:
    async with opened(*pair) as (pilot, screen):
        title = screen.tab_title
        await pilot.press("c")
        await other_file(pilot)
        await answer(pilot, OpenPathDialog, tmp_path / "missing.json")
        await until(pilot, lambda: isinstance(pilot.app.screen, ErrorDialog))
        await pilot.press("escape")
        await until(pilot, lambda: pilot.app.screen is screen)
        assert screen.paths == list(pair)
        await pilot.press("equals_sign")
        await until(pilot, lambda: screen.comparison is not None and screen.comparison.base == 1)
        assert screen.tab_title == title
        await pilot.press("c")
        await other_file(pilot)
        await answer(pilot, OpenPathDialog, pair[0])
        await until(pilot, lambda: len(screen.subjects) == 3)
        assert screen.comparison is not None
        assert screen.comparison.base == 1
