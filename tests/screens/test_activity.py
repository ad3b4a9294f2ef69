from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dld_tui.activities.registry import load
from dld_tui.app import DldApp
from dld_tui.core.params import settings_of
from dld_tui.core.settings import state as form_memory
from dld_tui.core.settings.state import State
from dld_tui.core.types import JSON
from dld_tui.screens.activity.form import ActivityScreen
from dld_tui.widgets.dialogs.dialogs import ChoiceDialog
from dld_tui.widgets.forms.param_form import ParamForm
from tests.support import models
from tests.support.tui import HOSTILE, screen_text

PROFILE = "profile_onnxruntime"


class Runs:
    """Stands in for ``run_job``: keeps what it is given."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, JSON], Any, str | None]] = []

    def __call__(
        self, activity: str, request: dict[str, JSON], on_result: Any, *, title: str, target: str,
        replaces: Sequence[str],
    ) -> None:  # fmt: skip
        self.calls.append((activity, request, on_result, target))


@pytest.fixture
def runs() -> Runs:
    return Runs()


def app_with(runs: Runs, state: State | None = None) -> DldApp:
    app = DldApp(state=state)
    app.run_job = runs  # type: ignore[method-assign, assignment]
    return app


@pytest.mark.broad
async def test_the_form_is_filled_and_runs(runs: Runs, tmp_path: Path) -> None:
    state = State(tmp_path)
    app = app_with(runs, state)
    async with app.run_test(size=(80, 24)) as pilot:
        app.start_activity(PROFILE, {"model": "m.onnx"})
        await pilot.pause()
        text = screen_text(app)
        assert "Profile with ONNX Runtime" in text
        assert "dld profile onnxruntime m.onnx" in text
        app.screen.query_one(ParamForm).set_values({"iterations": 7})
        await pilot.pause()
        assert "--iterations 7" in screen_text(app)
        await pilot.press("f5")
        await pilot.pause()
    activity, request, _, target = runs.calls[0]
    assert (activity, request["model"], request["iterations"]) == (PROFILE, "m.onnx", 7)
    assert target == "local"
    assert state.get("forms", PROFILE)["iterations"] == 7


async def test_fields_are_remembered_and_the_given_ones_win(runs: Runs, tmp_path: Path) -> None:
    state = State(tmp_path)
    state.put("forms", PROFILE, {"model": "old.onnx", "iterations": 3, "no_such": 1})
    app = app_with(runs, state)
    async with app.run_test(size=(80, 24)) as pilot:
        app.start_activity(PROFILE, {"model": f"{HOSTILE}.onnx"})
        await pilot.pause()
        values = app.screen.query_one(ParamForm).values()
        assert (values["model"], values["iterations"]) == (f"{HOSTILE}.onnx", 3)


@pytest.mark.broad
async def test_what_belongs_to_a_model_leaves_with_it(runs: Runs, tmp_path: Path) -> None:
    state = State(tmp_path)
    (tmp_path / "old.onnx").touch()
    old = str(tmp_path / "old.onnx")
    kept: dict[str, JSON] = {"model": old, "iterations": 3, "shape": ["x:1"], "dim": ["n=2"]}
    form_memory.keep(state, PROFILE, settings_of(load(PROFILE).request), kept)
    app = app_with(runs, state)
    async with app.run_test(size=(80, 24)) as pilot:
        app.start_activity(PROFILE, {})
        await pilot.pause()
        form = app.screen.query_one(ParamForm)
        assert form.values()["shape"] == ["x:1"]
        form.set_values({"dim": ["n=3"]})  # typed for what comes
        await pilot.press("end", "x")
        await pilot.pause()
        values = form.values()
        assert values["model"] == f"{old}x"
        assert (values["shape"], values["dim"], values["iterations"]) == ([], ["n=3"], 3)


async def test_it_does_not_run_with_an_error(runs: Runs) -> None:
    app = app_with(runs)
    async with app.run_test(size=(80, 24)) as pilot:
        app.start_activity(PROFILE, {})
        await pilot.pause()
        await pilot.press("f5")
        await pilot.pause()
        assert runs.calls == []
        assert isinstance(app.screen, ActivityScreen)


@pytest.mark.broad
async def test_pages_are_a_key_away_and_f8_resets(runs: Runs) -> None:
    app = app_with(runs)
    async with app.run_test(size=(80, 24)) as pilot:
        app.start_activity(PROFILE, {"model": "m.onnx", "iterations": 3})
        await pilot.pause()
        form = app.screen.query_one(ParamForm)
        before = form.page
        await pilot.press("ctrl+pagedown")
        assert form.page != before
        await pilot.press("ctrl+pageup", "f8")
        assert form.page == before
        assert form.values()["iterations"] is None
        assert form.values()["model"] == "m.onnx"


@pytest.mark.broad
async def test_an_existing_output_is_asked_for(runs: Runs, tmp_path: Path) -> None:
    (tmp_path / "r.dldprof").write_text("")
    app = app_with(runs)
    async with app.run_test(size=(80, 24)) as pilot:
        app.start_activity(PROFILE, {"model": "m.onnx", "output": str(tmp_path / "r.dldprof")})
        await pilot.pause()
        await pilot.press("f5")
        await pilot.pause()
        assert isinstance(app.screen, ChoiceDialog)
        assert runs.calls == []
        await pilot.press("o")
        await pilot.pause()
        assert len(runs.calls) == 1


async def test_the_result_is_opened(runs: Runs) -> None:
    app = app_with(runs)
    opened: list[Any] = []
    app.open_path = lambda path, then=None: opened.append(path)  # type: ignore[method-assign]
    async with app.run_test(size=(80, 24)) as pilot:
        app.start_activity(PROFILE, {"model": "m.onnx"})
        await pilot.pause()
        await pilot.press("f5")
        await pilot.pause()
        runs.calls[0][2]({"report": "r.dldprof", "summary": {}})
        await pilot.pause()
        assert opened == [Path("r.dldprof")]
        assert not isinstance(app.screen, ActivityScreen)


@pytest.mark.broad
async def test_activities_are_chosen_from_a_list(runs: Runs) -> None:
    app = app_with(runs)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("f4")
        await pilot.pause()
        assert "Profile with ONNX Runtime" in screen_text(app)
        await pilot.press("1")
        await pilot.pause()
        assert isinstance(app.screen, ActivityScreen)


@pytest.mark.broad
async def test_the_guess_of_shapes_is_told_and_filled_in(runs: Runs, tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 18]>
        two (int64[batch, seq] ids, int64[batch, seq] mask) => (int64[batch, seq] y)
        { y = Add(ids, mask) }"""
    path = models.write(tmp_path, text)
    app = app_with(runs, State(tmp_path))
    async with app.run_test(size=(100, 30)) as pilot:
        app.start_activity(PROFILE, {"model": str(path)})
        await app.workers.wait_for_complete()
        await pilot.pause()
        shown = " ".join(screen_text(app).replace("┃", "").split())
        assert "ids → 1x128 (guessed: batch 1 by its name batch" in shown
        assert "Enter in Input shapes changes it" in shown
        form = app.screen.query_one(ParamForm)
        assert form.values()["shape"] == []
        form.rows["shape"].field.focus()
        await pilot.press("enter")
        assert form.values()["shape"] == ["ids:1x128"]
        form.set_values({"shape": ["ids:2x9"]})
        await pilot.pause()
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert "mask → 2x9 (follows from what is given)" in screen_text(app)
        form.set_values({"shape": ["ids:2x9x3"]})
        await pilot.pause()
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert "does not fit input ids int64[batch, seq]" in " ".join(
            screen_text(app).replace("┃", "").split()
        )
