"""Every form asks before its job replaces a file: typed, proposed, or written beside an output."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from dld_tui.activities import registry
from dld_tui.app import DldApp
from dld_tui.core.params import settings_of
from dld_tui.core.settings.state import State
from dld_tui.core.types import JSON
from dld_tui.screens.activity.form import ActivityScreen, Libraries
from dld_tui.widgets.dialogs.dialogs import QuestionDialog
from tests.support import models
from tests.support.tiers import first
from tests.support.tui import flat_text, until

PROPOSED = {
    "build": ["m.engine", "m.trt.json", "m.build.json"],
    "tactics": ["m.tactics"],
    "profile_llm": ["m.prefill.dldprof"],
    "refit": ["e-refit.engine"],
    "tune": [
        "m.tune.onnx", "m.tune.onnx.data", "m.tune.py", "m.tune.before.dldprof",
        "m.tune.after.dldprof",
    ],
    "routes": ["m.engine"],
}  # fmt: skip
"""Files that a form writes without being told their names, and not under a free name."""
NUMBERED = {
    "profile_llm": "m.dldprof",
    "profile_onnxruntime": "m.dldprof",
    "profile_tensorrt": "m.dldprof",
    "tune": "m.tune.json",
}
"""Files beside which the result gets another name."""
WRITERS = [
    activity.id
    for activity in registry.activities()
    if activity.id != "tool"
    and any(s.param.kind == "output" for s in settings_of(registry.load(activity.id).request))
]  # fmt: skip


class Runs:
    """Stands in for ``run_job``: keeps what may be replaced."""

    def __init__(self) -> None:
        self.replaces: list[Sequence[str]] = []

    def __call__(self, *_: Any, replaces: Sequence[str] = (), **__: Any) -> None:
        self.replaces.append(replaces)


def cases(activity: str) -> Iterator[tuple[str, dict[str, JSON]]]:
    """Yield files that are there, and what is typed."""
    for setting in settings_of(registry.load(activity).request):
        if setting.param.kind == "output":
            name = f"typed{setting.param.suffix or '.x'}"
            yield name, {setting.name: name}
    for name in PROPOSED.get(activity, ()):
        yield name, {}


def asks(app: DldApp, *questions: str) -> bool:
    """Return whether one of these questions was seen: keys before that are not for it."""
    dialog = app.screen
    is_seen = isinstance(dialog, QuestionDialog) and dialog.seen_at < math.inf
    return is_seen and any(question in flat_text(app) for question in questions)


@pytest.mark.slow
@pytest.mark.parametrize("activity", WRITERS)
async def test_a_file_that_exists_is_asked_about(
    activity: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # Not every machine has every library, and some have settings that others lack.
    monkeypatch.setattr(ActivityScreen, "missing", "")
    monkeypatch.setattr(Libraries, "ask", lambda *_: None)
    for name in ("m.onnx", "n.onnx"):
        models.write(tmp_path, models.CHAIN, name)
    (tmp_path / "e.engine").write_bytes(b"engine")
    settings = settings_of(registry.load(activity).request)
    given: dict[str, JSON] = {
        "model": "m.onnx", "engine": "e.engine", "check": "false", "data": "d", "to": 13,
        "dim": ["N=1"], "others": ["n.onnx"], "node": ["first"], "calibration": "d",
    }  # fmt: skip
    base = {s.name: given[s.name] for s in settings if s.required and s.name in given}
    base |= {s.name: "free.x" for s in settings if s.required and s.param.kind == "output"}
    app, runs = DldApp(), Runs()
    app.run_job = runs  # type: ignore[method-assign]
    async with app.run_test(size=(100, 30)) as pilot:
        for number, (name, typed) in enumerate(cases(activity)):
            (tmp_path / name).write_text("mine")
            app.state = State(tmp_path / "state" / str(number))  # nothing is typed before
            app.start_activity(activity, base | typed)
            await until(pilot, lambda: isinstance(app.screen, ActivityScreen))
            await pilot.pause()
            for answer in ("enter", "o"):
                await pilot.press("f5")
                await until(pilot, lambda: asks(app, "Loadtheengine?", "Overwrite?"))
                if asks(app, "Loadtheengine?"):
                    await pilot.press("l")
                    await until(pilot, lambda: asks(app, "Overwrite?"))
                assert f"{name}exists." in flat_text(app), (activity, name)
                assert runs.replaces == []
                await pilot.press(answer)
                await pilot.pause()
            assert runs.replaces == [[str(tmp_path / name)]], (activity, name)
            runs.replaces.clear()
            app.screen.dismiss(None)
            await pilot.pause()
            (tmp_path / name).unlink()


@pytest.mark.parametrize("activity", first(1, NUMBERED, pytest.mark.broad))
async def test_a_numbered_result_needs_no_question(
    activity: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = NUMBERED[activity]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ActivityScreen, "missing", "")
    models.write(tmp_path, models.CHAIN, "m.onnx")
    (tmp_path / name).write_text("mine")
    app, runs = DldApp(), Runs()
    app.run_job = runs  # type: ignore[method-assign]
    async with app.run_test(size=(100, 30)) as pilot:
        app.start_activity(activity, {"model": "m.onnx"})
        await until(pilot, lambda: isinstance(app.screen, ActivityScreen))
        await pilot.pause()
        assert isinstance(app.screen, ActivityScreen)
        assert tmp_path / name not in [path.absolute() for path in app.screen.written()]
        await pilot.press("f5")
        await until(pilot, lambda: bool(runs.replaces))  # the library may answer first
        assert runs.replaces == [[]]
