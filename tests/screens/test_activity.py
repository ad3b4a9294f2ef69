from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from dld_tui.activities import registry
from dld_tui.activities.registry import load
from dld_tui.app import DldApp
from dld_tui.core.params import settings_of
from dld_tui.core.settings import state as form_memory
from dld_tui.core.settings.state import State
from dld_tui.core.types import JSON
from dld_tui.screens.activity.form import ActivityScreen, Libraries, untrusted_engine
from dld_tui.widgets.dialogs.dialogs import ChoiceDialog, QuestionDialog
from dld_tui.widgets.forms.param_form import ParamForm
from tests.support import models
from tests.support.decoders import grouped
from tests.support.tiers import first
from tests.support.tui import flat_text, front, screen_text, until
from tests.support.workspace import opened as opened_model

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
    opened: list[Any] = []
    app.open_path = lambda path, then=None: opened.append(path)  # type: ignore[method-assign]
    async with app.run_test(size=(80, 24)) as pilot:
        # It does not run with an error.
        app.start_activity(PROFILE, {})
        await pilot.pause()
        await pilot.press("f5")
        assert runs.calls == []
        assert app.screen.query(ParamForm)
        await pilot.press("escape")
        # Its command is what runs, whichever page is shown.
        app.start_activity(PROFILE, {"model": "m.onnx"})
        await pilot.pause()
        text = screen_text(app)
        assert "Profile with ONNX Runtime" in text
        assert "dld profile onnxruntime m.onnx" in text
        form = app.screen.query_one(ParamForm)
        form.set_values({"iterations": 7})
        await pilot.pause()
        assert "--iterations 7" in screen_text(app)
        await pilot.press("ctrl+pagedown")
        assert form.page == form.pages[1]
        await pilot.click("PageRow", offset=(2, 0))
        assert form.page == form.pages[0]
        await pilot.press("f5")
        ((activity, request, on_result, target),) = runs.calls
        assert (activity, request["model"], request["iterations"]) == (PROFILE, "m.onnx", 7)
        assert target == "local"
        assert state.get("forms", PROFILE)["iterations"] == 7
        # The result is opened instead of it.
        on_result({"report": "r.dldprof", "summary": {}})
        await pilot.pause()
        assert opened == [Path("r.dldprof")]
        assert not app.screen.query(ParamForm)
        # What was typed is there again, F8 resets it, and what exists is not replaced unasked.
        app.start_activity(PROFILE, {"model": "m.onnx"})
        await pilot.pause()
        form = app.screen.query_one(ParamForm)
        assert form.values()["iterations"] == 7
        await pilot.press("ctrl+pagedown", "ctrl+pageup", "f8")
        assert form.page == form.pages[0]
        assert (form.values()["iterations"], form.values()["model"]) == (None, "m.onnx")
        (tmp_path / "r.dldprof").write_text("")
        form.set_values({"output": str(tmp_path / "r.dldprof")})
        await pilot.press("f5")
        assert isinstance(app.screen, ChoiceDialog)
        assert len(runs.calls) == 1
        await pilot.press("o")
        assert len(runs.calls) == 2


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
        values = form.values()
        assert values["model"] == f"{old}x"
        assert (values["shape"], values["dim"], values["iterations"]) == ([], ["n=3"], 3)


@pytest.mark.parametrize(
    ("values", "engine"),
    [
        ({"model": "a.onnx", "engine": None, "trust": False}, ""),
        ({"model": "a.onnx", "engine": "a.plan", "trust": False}, "a.plan"),
        ({"model": "a.engine", "engine": None, "trust": False}, "a.engine"),
        ({"model": "a.engine", "engine": None, "trust": True}, ""),
        ({"model": "a.engine"}, ""),
        ({"model": "a.onnx", "against": "a.engine", "trust": False}, "a.engine"),
        ({"model": "a.onnx", "against": "b.onnx", "trust": False}, ""),
        ({"model": "a.trt", "against": "b.plan", "trust": False}, "a.trt and b.plan"),
    ],
)
def test_what_is_asked_for(values: dict[str, JSON], engine: str) -> None:
    assert untrusted_engine(values) == engine


async def test_the_answer_is_for_this_run(tmp_path: Path) -> None:
    requests: list[dict[str, Any]] = []

    def run_job(activity: str, request: dict[str, JSON], on_result: Any, **more: Any) -> None:
        requests.append(request)

    state = State(tmp_path)
    app = DldApp(state=state)
    app.run_job = run_job  # type: ignore[method-assign, assignment]
    async with app.run_test(size=(80, 24)) as pilot:
        app.start_activity("refit", {"engine": "a.engine", "model": "a.onnx"})
        await pilot.pause()
        await pilot.press("f5")
        assert isinstance(app.screen, ChoiceDialog)
        assert "trust who made it" in " ".join(screen_text(app).split())
        await pilot.press("escape")
        assert not requests
        await pilot.press("f5")
        await pilot.press("l")
    assert requests[0]["trust"] is True
    assert "trust" not in state.get("forms", "refit")


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


class Replacing:
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
    app, runs = DldApp(), Replacing()
    app.run_job = runs  # type: ignore[method-assign]
    async with app.run_test(size=(100, 30)) as pilot:
        for number, (name, typed) in enumerate(cases(activity)):
            (tmp_path / name).write_text("mine")
            app.state = State(tmp_path / "state" / str(number))  # nothing is typed before
            app.start_activity(activity, base | typed)
            await front(pilot, ActivityScreen)
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
            assert runs.replaces == [[str(tmp_path / name)]], (activity, name)
            runs.replaces.clear()
            app.screen.dismiss(None)
            await pilot.pause()
            (tmp_path / name).unlink()


@pytest.mark.parametrize("activity", first(2, NUMBERED, pytest.mark.slow))
async def test_a_numbered_result_needs_no_question(
    activity: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = NUMBERED[activity]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ActivityScreen, "missing", "")
    models.write(tmp_path, models.CHAIN, "m.onnx")
    (tmp_path / name).write_text("mine")
    app, runs = DldApp(), Replacing()
    app.run_job = runs  # type: ignore[method-assign]
    async with app.run_test(size=(100, 30)) as pilot:
        app.start_activity(activity, {"model": "m.onnx"})
        await front(pilot, ActivityScreen)
        await pilot.pause()
        assert isinstance(app.screen, ActivityScreen)
        assert tmp_path / name not in [path.absolute() for path in app.screen.written()]
        await pilot.press("f5")
        await until(pilot, lambda: bool(runs.replaces))  # the library may answer first
        assert runs.replaces == [[]]


async def test_f5_on_a_decoder_offers_the_profile_of_its_kind(tmp_path: Path) -> None:
    path = grouped(tmp_path / "decoder.onnx")
    async with opened_model(path) as session:
        await session.press("f5")
        session.in_front(ChoiceDialog)
        await session.press("enter")
        form = await session.front(ActivityScreen)
        assert (form.activity.id, form.given["model"]) == ("profile_llm", str(path))
        await session.press("escape")
        session.app.action_start("path")
        await session.until(lambda: session.told)
        assert session.told == ["There is no profile of this model yet: F5 makes one"]
