"""The screen of a comparison."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from dld_tui.app import DldApp
from dld_tui.core.compare.diff import ModelDiff
from dld_tui.core.errors import CancelledError
from dld_tui.core.settings.config import Config
from dld_tui.core.settings.state import State
from dld_tui.screens.results import diff as module
from dld_tui.screens.results.diff import DiffScreen, DiffView
from dld_tui.screens.workspace.page import WorkspaceScreen
from dld_tui.widgets.dialogs.dialogs import ErrorDialog
from dld_tui.widgets.dialogs.search import PickDialog
from tests.support import models
from tests.support.pages import running
from tests.support.tui import ESCAPE, HOSTILE, front, rows_of, screen_text, until


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    text = (
        models.BRANCHES.replace("[inner] h = Neg(a)", "[inner] h = Abs(a)")
        .replace("[pre] a = Relu(x)", "[first] a = Relu(x)\n[extra] q = Tanh(a)")
        .replace("[shadow]", "[dark]")
    )
    old = models.write(tmp_path, models.BRANCHES, "old.onnx")
    return old, models.write(tmp_path, text, "new.onnx")


@asynccontextmanager
async def opened(
    old: Path, new: Path, size: tuple[int, int] = (120, 40)
) -> AsyncIterator[tuple[Pilot[Any], DiffScreen]]:
    app = DldApp([], Config())
    app.first_comparison = (old, new, True)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: isinstance(app.screen, DiffScreen) and app.screen.diff)
        screen = app.screen
        assert isinstance(screen, DiffScreen)
        await until(pilot, lambda: view(screen).frame.title)
        yield pilot, screen


def view(screen: DiffScreen) -> DiffView:
    return screen.query_one(DiffView)


def texts(screen: DiffScreen) -> list[str]:
    lines = view(screen).lines
    return [lines.text(index) for index in range(len(lines))]


@pytest.mark.parametrize("is_gone", [False, True])
async def test_enter_goes_to_the_node_in_the_model_that_has_it(
    pair: tuple[Path, Path], is_gone: bool
) -> None:
    old, new = reversed(pair) if is_gone else pair
    async with opened(old, new) as (pilot, screen):
        row = "extra  Tanh(a) -> q" if is_gone else "inner  Neg(a) -> h | inner  Abs(a) -> h"
        view(screen).cursor = texts(screen).index(row)
        await pilot.pause()
        assert ("new_node" in screen.conditions()) is not is_gone
        await pilot.press("enter")
        assert (await front(pilot, WorkspaceScreen)).path == pair[1]


async def test_same_models(pair: tuple[Path, Path]) -> None:
    async with opened(pair[0], pair[0]) as (pilot, screen):
        await until(pilot, lambda: "The models are the same" in screen_text(screen.app))


async def test_again_reads_the_files_anew(pair: tuple[Path, Path]) -> None:
    async with opened(*pair) as (pilot, screen):
        first = screen.diff
        screen.new.write_bytes(screen.old.read_bytes())
        await pilot.press("f5")
        await until(pilot, lambda: screen.diff is not None and screen.diff is not first)
        assert screen.diff is not None
        assert screen.diff.same


async def test_hostile_names(tmp_path: Path) -> None:
    model = models.parse(models.CHAIN)
    old = models.write(tmp_path, models.CHAIN, "old[b].onnx")
    model.graph.node[0].name = HOSTILE + ESCAPE
    model.graph.node[1].doc_string = f"[red]{ESCAPE}"
    new = tmp_path / "new[b].onnx"
    new.write_bytes(model.SerializeToString())
    async with opened(old, new) as (pilot, screen):
        await pilot.press("down", "down")
        shown = screen_text(screen.app)
        assert HOSTILE in shown
        assert "\x1b" not in shown


async def test_file_that_is_no_model(pair: tuple[Path, Path]) -> None:
    pair[1].write_bytes(b"PK\x03\x04")
    app = DldApp([], Config())
    app.first_comparison = (*pair, True)
    async with app.run_test() as pilot:
        await front(pilot, ErrorDialog)
        assert app.pages == []


async def test_escape_stops(pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    entered = []

    def endless(*_: object, cancelled: Any, **__: object) -> ModelDiff:
        entered.append(True)
        while not cancelled():
            time.sleep(0.001)
        raise CancelledError

    monkeypatch.setattr(module, "diff_documents", endless)
    app = DldApp([], Config())
    app.first_comparison = (*pair, True)
    async with app.run_test() as pilot:
        await until(pilot, lambda: entered)
        await pilot.press("escape")
        await until(pilot, lambda: not app.pages)
        assert not isinstance(app.screen, ErrorDialog)


async def test_models_are_compared_with_those_beside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    new = models.write(tmp_path, models.CHAIN, "new.onnx")
    models.write(tmp_path, models.CHAIN, "old.onnx")
    (tmp_path / "notes.json").write_text("{}")
    (tmp_path / "apart").mkdir()
    state = State()
    state.opened(str(models.write(tmp_path / "apart", models.CHAIN, "far.onnx")), "ONNX")
    async with running(DldApp([new], Config(), state), size=(100, 30)) as run:
        await run.until(lambda: run.app.page.edited_document)
        run.app.action_compare()
        await run.front(PickDialog)
        await run.shows("another file")
        shown = [row for row in rows_of(run.app) if "old.onnx" in row]
        assert len(shown) == 1
        assert "now" in shown[0]
        assert "notes.json" not in run.text
        assert re.search(r"far\.onnx +apart ", run.text)
        await run.press("enter")
        await run.until(lambda: isinstance(run.app.page, DiffScreen))
