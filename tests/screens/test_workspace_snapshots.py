"""Pictures of the workspace; ``make snap`` writes them again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import textual
from textual.pilot import Pilot

from dld_tui.app import DldApp
from dld_tui.core.settings.config import Config
from dld_tui.screens.workspace.page import WorkspaceScreen
from tests.support import models
from tests.support.tui import until
from tests.support.workspace import NARROW, WIDE, Session

pytestmark = pytest.mark.skipif(
    textual.__version__ != "8.2.8", reason="the pictures were taken with Textual 8.2.8"
)


async def ready(pilot: Pilot[Any]) -> Session:
    """Wait until the model is open and everything is found."""
    app = pilot.app
    assert isinstance(app, DldApp)
    await until(pilot, lambda: app.pages)
    screen = app.pages[0]
    assert isinstance(screen, WorkspaceScreen)
    await until(pilot, lambda: screen.is_open and screen.focused is not None)
    await until(pilot, lambda: screen.checks.is_checked)
    screen.panes.focus("explorer")
    await pilot.pause()
    return Session(app, pilot, screen)


@pytest.mark.broad
def test_a_captured_value_side_by_side(snap_compare: Any, tmp_path: Path) -> None:
    """The tree with both branches, and an input that comes from outside of its graph."""
    path = models.write(tmp_path, models.BRANCHES)

    async def walk(pilot: Pilot[Any]) -> None:
        session = await ready(pilot)
        await session.go("inner")

    assert snap_compare(DldApp([path]), terminal_size=WIDE, run_before=walk)


@pytest.mark.broad
def test_a_filter_and_a_finding_stacked(snap_compare: Any, tmp_path: Path) -> None:
    """The filter line and its count, the parameters below, the worst finding in one row."""
    path = models.write(tmp_path, models.CHAIN.replace("Sigmoid", "Sigmoidd"))

    async def walk(pilot: Pilot[Any]) -> None:
        session = await ready(pilot)
        await session.press("slash")
        await session.type("ir")
        await session.press("enter", "down")

    assert snap_compare(DldApp([path]), terminal_size=NARROW, run_before=walk)


@pytest.mark.broad
def test_an_error_while_editing_in_ascii(snap_compare: Any, tmp_path: Path) -> None:
    """The literal that was typed, and below it what is wrong with it."""
    model = models.CHAIN.replace("Sigmoid(c)", "Softmax <axis = -1> (c)")
    path = models.write(tmp_path, model)

    async def walk(pilot: Pilot[Any]) -> None:
        session = await ready(pilot)
        await session.go("last")
        await session.press("e", "e")
        await session.type(", x")
        await session.press("enter")

    app = DldApp([path], config=Config(glyphs="ascii", theme="light"))
    assert snap_compare(app, terminal_size=(120, 30), run_before=walk)
