from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from dld_tui.app import DldApp
from dld_tui.core.settings.config import Config
from dld_tui.screens.results.plan import PlanScreen, narrowings
from dld_tui.widgets.dialogs.dialogs import ChoiceDialog, PromptDialog
from dld_tui.widgets.graph.state import GraphView
from dld_tui.widgets.results.plan import PlanDetails, SpecialPane
from tests.support.engine_files import HOSTILE, write_engine, write_model
from tests.support.tui import front, screen_text, until

SMALL, LARGE = (80, 24), (200, 50)


@asynccontextmanager
async def opened(
    path: Path, size: tuple[int, int] = LARGE
) -> AsyncIterator[tuple[Pilot[Any], PlanScreen]]:
    app = DldApp([path], Config())
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: isinstance(app.screen, PlanScreen) and app.screen.loaded)
        screen = app.screen
        assert isinstance(screen, PlanScreen)
        await pilot.pause()
        yield pilot, screen


def text(pilot: Pilot[Any]) -> str:
    return screen_text(pilot.app)


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    return write_engine(tmp_path, timing=True)


async def test_limits_of_the_filter_know_bytes_and_findings(engine: Path) -> None:
    async with opened(engine) as (_, screen):
        pane = screen.layer_pane
        pane.set_filter("bytes>2e6 ms>0.02")
        assert {layer.index for layer in pane.shown_layers()} == {3}
        pane.set_filter("tactic:half")
        assert [layer.index for layer in pane.shown_layers()] == [2]
        pane.set_filter("findings>0")
        assert 2 in {layer.index for layer in pane.shown_layers()}
        items, filters = narrowings(pane.all_layers)
        at = [str(item.key) for item in items if "finding" in str(item.key)]
        assert [filters[key] for key in at] == [("findings>0", None)]
        others = narrowings([replace(layer, engine=None) for layer in pane.all_layers])[0]
        assert {item.text.split()[0] for item in others} == {"type", "precision"}


async def test_a_layer_of_several_nodes_asks_which(tmp_path: Path) -> None:
    engine = write_engine(tmp_path)
    write_model(tmp_path)
    async with opened(engine, SMALL) as (pilot, _):
        await pilot.press("2", "s")
        assert isinstance(pilot.app.screen, ChoiceDialog)


async def test_without_a_model_it_is_asked_for_and_joined(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    model = write_model(folder)
    async with opened(write_engine(tmp_path), SMALL) as (pilot, screen):
        assert screen.loaded is not None
        assert screen.loaded.model is None
        await pilot.press("2", "o", "G", "k")
        table, row = screen.layer_pane.table, screen.row
        order = table.sort_column
        screen.query_one(SpecialPane).next_table()
        special = screen.query_one(SpecialPane).at
        assert row is not None
        assert row == table.key_at_cursor() != 0
        screen.model = model
        screen.read()
        await until(pilot, lambda: screen.loaded is not None and screen.loaded.model == model)
        assert screen.loaded.layers[1].nodes[0].op_type == "Conv"
        assert (screen.row, table.key_at_cursor(), table.sort_column) == (row, row, order)
        assert screen.query_one(SpecialPane).at == special
        details = screen.query_one(PlanDetails)
        said = "".join(details.lines.text(at) for at in range(len(details.lines)))
        assert screen.loaded.layers[row].nodes[0].op_type in said


@pytest.mark.broad
async def test_names_alone_and_no_times(tmp_path: Path) -> None:
    engine = write_engine(tmp_path, names_only=True, profile=False)
    async with opened(engine, SMALL) as (pilot, screen):
        assert "--profilingVerbosity=detailed" in text(pilot)
        for key in "23456":
            await pilot.press(key, "j")
        await pilot.press("4", "v", "v", "v", "t")
        assert screen.graph.model is not None
        assert screen.graph.model.view is not GraphView.FOLDED


@pytest.mark.broad
async def test_hostile_names_are_text(tmp_path: Path) -> None:
    async with opened(write_engine(tmp_path, hostile=True), SMALL) as (pilot, screen):
        for key in "123456":
            await pilot.press(key)
            assert "\x1b" not in text(pilot)
            assert "\u202e" not in text(pilot)
        await pilot.press("2")
        assert "\\x1b[31m" in text(pilot)
        details = screen.query_one(PlanDetails)
        assert "\\u202e" in details.lines.text(0)
        assert HOSTILE.startswith("/blk/Conv")


@pytest.mark.broad
async def test_what_is_shown_is_written(engine: Path, tmp_path: Path) -> None:
    async with opened(engine, SMALL) as (pilot, screen):
        for keys, name, expected in (
            (("2", "w"), "layers.csv", ("Convolution", "conv1", "tactic", "\n2,")),  # by time
            (("6", "v", "w"), "second.csv", ("macs",)),
            (("2", "W"), "out.html", ("Convolution", "conv1")),
            ((), "out.svg", ("Convolution", "conv1")),
            ((), "out.txt", ("Convolution",)),
        ):
            out = tmp_path / name
            await pilot.press(*keys)
            if not keys:
                screen.action_save_picture()
            (await front(pilot, PromptDialog)).dismiss(str(out))
            await until(pilot, lambda out=out: out.exists() and out.stat().st_size)
            await until(pilot, lambda: pilot.app.screen is screen)
            written = out.read_text(encoding="utf-8")
            assert [part for part in expected if part not in written] == [], name
