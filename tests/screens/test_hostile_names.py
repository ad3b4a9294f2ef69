"""One walk through every page with names that are markup, escapes, too long or wide."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dld_tui.app import DldApp
from dld_tui.core.errors import InputError
from dld_tui.core.events import Event, Failed, Log, Metric, Progress
from dld_tui.core.settings.state import State
from dld_tui.screens.activity.jobs import JobScreen
from dld_tui.widgets.dialogs.dialogs import Choice, ChoiceDialog, PromptDialog
from tests.screens.test_job import ScriptedJob
from tests.support.pages import TextPage, open_pages
from tests.support.tui import ESCAPE, HOSTILE, rows_of, until

NAMES = [
    HOSTILE,
    ESCAPE,
    "漢字 (é) 👩‍👩‍👧",
    "[b]x[/b] [@click=app.quit]y[/]",
    "n" * 100_000,
    "\udcff\u202e",
]


def check(app: DldApp) -> None:
    """Nothing raw reached the screen, and every line is as wide as the screen."""
    from rich.cells import cell_len

    for row in rows_of(app):
        assert not set(row) & set("\x1b\x07\x9b\u202e\n"), row
        assert cell_len(row) == app.size.width


@pytest.mark.parametrize(
    ("name", "size"),
    [
        (HOSTILE, (80, 24)),
        *(pytest.param(name, (80, 24), marks=pytest.mark.broad) for name in NAMES[1:]),
        pytest.param(HOSTILE, (200, 50), marks=pytest.mark.broad),
        ("漢字" * 200, (121, 31)),
    ],
    ids=["markup", "escape", "wide", "tags", "long", "bytes", "markup-large", "wide-long"],
)
async def test_every_page(name: str, size: tuple[int, int], tmp_path: Path) -> None:
    state = State(tmp_path)
    state.opened(f"/models/{name[:200]}.onnx".replace("\0", ""), "ONNX")
    state.put("forms", "profile_onnxruntime", {"model": name, "shape": [name]})
    app = DldApp(state=state)
    async with app.run_test(size=size) as pilot:
        check(app)
        page = TextPage(name, lost=[name])
        await open_pages(app, pilot, page)
        page.crumb(name)
        page.tab_status = name
        page.tab_changed()
        await pilot.pause()
        check(app)
        for key in ("question_mark", "f2", "f4", "ctrl+o", "ctrl+p", "ctrl+w"):
            await pilot.press(key)
            await pilot.pause()
            check(app)
            await pilot.press("escape")
        await _screens(app, pilot, name)


async def _screens(app: DldApp, pilot: Any, name: str) -> None:
    app.start_activity("profile_onnxruntime", {})
    await pilot.pause()
    check(app)
    app.pop_screen()
    error = InputError(name, where=name, hint=name, details=name)
    dialogs: list[Any] = [
        ChoiceDialog(name, name, [Choice("a", name, name)]),
        PromptDialog(name, name, name[:500], check=lambda text: text),
    ]
    app.show_error(error, name)
    await pilot.pause()
    check(app)
    app.pop_screen()
    for dialog in dialogs:
        app.push_screen(dialog)
        await pilot.pause()
        await pilot.press("end", "x")
        check(app)
        app.pop_screen()
    events: list[Event] = [
        Progress(1, 2, name, name),
        Metric(name, 1.0, name),
        Log(name),
        Failed(name, name),
    ]
    job = JobScreen("x", {}, lambda _: None, title=name, start=lambda: ScriptedJob(events))
    app.push_screen(job)
    await until(pilot, lambda: job.end is not None)
    await pilot.pause()
    check(app)
    app.notify(name, markup=False)
    await pilot.pause()
