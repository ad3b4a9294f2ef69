"""Pictures of the pages that are the same on every machine; ``make snap`` writes them again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import textual
from textual.pilot import Pilot

from dld_tui.app import DldApp
from dld_tui.core.events import Failed, Log, Progress
from dld_tui.core.notes import NoteKind
from dld_tui.core.settings.config import Config
from dld_tui.screens.activity.jobs import JobScreen
from dld_tui.screens.home import welcome
from dld_tui.screens.workspace.page import WorkspaceScreen
from tests.support import models
from tests.support.pages import ScriptedJob
from tests.support.tui import HOSTILE, until
from tests.support.workspace import NARROW, WIDE, Session

pytestmark = pytest.mark.skipif(
    textual.__version__ != "8.2.8", reason="the pictures were taken with Textual 8.2.8"
)


@pytest.fixture(autouse=True)
def no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(welcome, "__version__", "0")


@pytest.mark.parametrize("size", [(80, 24), (200, 50)], ids=["80x24", "200x50"])
def test_start_page(
    snap_compare: Any, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Open, recent files and what to start; the first steps where there is room."""
    (tmp_path / "models").mkdir()
    monkeypatch.chdir(tmp_path / "models")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert snap_compare(DldApp(), terminal_size=size)


@pytest.mark.broad
def test_activity_in_the_light_theme(snap_compare: Any) -> None:
    """The form made from the request, with an error beside its field."""

    async def fill(pilot: Pilot[Any]) -> None:
        assert isinstance(pilot.app, DldApp)
        pilot.app.start_activity("profile_onnxruntime", {"model": f"{HOSTILE}.onnx"})
        await pilot.pause()

    app = DldApp(config=Config(theme="light"))
    assert snap_compare(app, terminal_size=(80, 24), run_before=fill)


def test_failed_job_in_ascii(snap_compare: Any) -> None:
    """The error is loud, its details are in the log; every glyph is ASCII."""
    job = ScriptedJob(
        [
            Progress(40, 100, "passes", "Measuring latency"),
            Log("a library says something", NoteKind.WARNING),
            Failed("out of memory", HOSTILE, "Use a smaller batch", "Traceback …\n  line 2"),
        ]
    )

    async def run(pilot: Pilot[Any]) -> None:
        screen = JobScreen("x", {}, lambda _: None, title="Measure", start=lambda: job)
        pilot.app.push_screen(screen)
        await until(pilot, lambda: screen.end is not None)
        await pilot.pause()

    app = DldApp(config=Config(glyphs="ascii"))
    assert snap_compare(app, terminal_size=(80, 24), run_before=run)


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
        await session.press("/")
        await session.type("ir", "enter", "down")

    assert snap_compare(DldApp([path]), terminal_size=NARROW, run_before=walk)


@pytest.mark.broad
def test_an_error_while_editing_in_ascii(snap_compare: Any, tmp_path: Path) -> None:
    """The literal that was typed, and below it what is wrong with it."""
    model = models.CHAIN.replace("Sigmoid(c)", "Softmax <axis = -1> (c)")
    path = models.write(tmp_path, model)

    async def walk(pilot: Pilot[Any]) -> None:
        session = await ready(pilot)
        await session.go("last", "e", "e")
        await session.type(", x", "enter")

    app = DldApp([path], config=Config(glyphs="ascii", theme="light"))
    assert snap_compare(app, terminal_size=(120, 30), run_before=walk)
