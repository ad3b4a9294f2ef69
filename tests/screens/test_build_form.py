"""The form of a build: greyed settings, the equal trtexec command, presets, from the workspace."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event as Flag
from types import SimpleNamespace
from typing import Any

import pytest
import textual
from textual.pilot import Pilot

from dld_tui.activities import build
from dld_tui.activities.build import Result
from dld_tui.activities.profile import onnxruntime, tensorrt
from dld_tui.app import DldApp
from dld_tui.core.codec import encode
from dld_tui.core.errors import UnavailableError
from dld_tui.core.events import Event, Finished
from dld_tui.core.settings import saved_targets
from dld_tui.core.settings.saved_targets import Connection
from dld_tui.core.settings.state import State
from dld_tui.core.tensorrt.capabilities import LibraryCapabilities
from dld_tui.core.types import JSON
from dld_tui.screens.activity.form import ActivityScreen, trtexec_line
from dld_tui.targets import registry as targets
from dld_tui.targets.base import Job, Target
from dld_tui.targets.process import LocalTarget
from dld_tui.widgets.forms.param_form import ChoiceField, ParamForm
from tests.support.pages import running
from tests.support.recorded import Recorded, settled
from tests.support.tui import until
from tests.support.walks import Steps, walked

BUILD = "build"
MEMBERS = frozenset(("IBuilderConfig.builder_optimization_level",))
WEAK = LibraryCapabilities(
    "tensorrt", "tensorrt", "10.13.0", world="weak", flags=frozenset(("FP16", "TF32")), has=MEMBERS
)
STRONG = LibraryCapabilities(
    "tensorrt_rtx", "tensorrt_rtx", "1.7.1", world="strong", flags=frozenset(("TF32",)), has=MEMBERS
)
ABSENT = LibraryCapabilities("tensorrt", "tensorrt", why="not installed")


class FakeJob(Job):
    """Waits until it may end, then tells of the libraries."""

    def __init__(self, libraries: list[LibraryCapabilities], may_end: Flag) -> None:
        self.libraries = libraries
        self.may_end = may_end
        self.cancelled = Flag()

    def events(self) -> Iterator[Event]:
        self.may_end.wait(60)
        found = encode(self.libraries)
        yield Finished({"libraries": found})

    def cancel(self) -> None:
        self.cancelled.set()
        self.may_end.set()

    def close(self) -> None:
        pass


class FakeTarget(Target):
    """A machine with some libraries."""

    name = "fake"

    def __init__(self) -> None:
        self.libraries = [ABSENT, STRONG]
        self.may_end = Flag()
        self.may_end.set()
        self.job: FakeJob | None = None
        self.broken = False
        self.asked: list[JSON] = []
        """The folders of each request for libraries."""

    def start(self, activity_id: str, request: Any) -> Job:
        if activity_id != "tensorrt_libraries":
            return LocalTarget().start(activity_id, request)
        if self.broken:
            raise UnavailableError("the target is gone")
        self.asked.append(request["paths"])
        self.job = FakeJob(self.libraries, self.may_end)
        return self.job


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch) -> FakeTarget:
    found = FakeTarget()
    monkeypatch.setattr(targets, "get", lambda name=None: found)
    return found


async def opened(app: DldApp, pilot: Pilot[int], **values: JSON) -> ParamForm:
    app.start_activity(BUILD, {"model": "m.onnx", **values})
    await pilot.pause()
    await app.workers.wait_for_complete()
    await pilot.pause()
    return app.screen.query_one(ParamForm)


def reasons(form: ParamForm) -> dict[str, str]:
    return {name: row.why_not for name, row in form.rows.items() if row.why_not}


async def test_another_target_is_asked_for_its_libraries_and_named_in_the_command(
    target: FakeTarget,
) -> None:
    saved_targets.save(Connection("orin", "one"))
    target.libraries = [WEAK]
    async with running(size=(120, 30)) as run:
        form = await opened(run.app, run.pilot, fp16=True)
        field = run.app.screen.query_one("#target ChoiceField", ChoiceField)
        assert field.choices == ("local", "orin")
        assert "fp16" not in reasons(form)
        target.libraries = [ABSENT, STRONG]
        field.value = "orin"
        await run.shows("--target orin")
        await run.until(lambda: reasons(form).get("fp16") == "types come from the model")
        assert "--fp16" not in run.text


@pytest.mark.broad
async def test_a_folder_is_asked_for_its_library_once(target: FakeTarget, tmp_path: Path) -> None:
    async with running() as run:
        form = await opened(run.app, run.pilot)
        assert target.asked == [[]]
        for library in ("tensorrt", str(tmp_path / "absent"), str(tmp_path), "", str(tmp_path)):
            form.set_values({"library": library})
            await run.pilot.pause()
            await run.app.workers.wait_for_complete()
        assert target.asked == [[], [str(tmp_path)]]


async def test_the_form_is_there_while_libraries_are_looked_for(target: FakeTarget) -> None:
    target.may_end.clear()
    async with running() as run:
        run.app.start_activity(BUILD, {"model": "m.onnx"})
        await run.pilot.pause()
        assert "looking" in run.text
        assert reasons(run.app.screen.query_one(ParamForm)) == {}
        await run.press("escape")
        await run.app.workers.wait_for_complete()
    assert target.job is not None
    assert target.job.cancelled.wait(60)


async def test_what_runs_does_not_depend_on_how_soon_the_key_comes(
    target: FakeTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ActivityScreen, "missing", "")
    target.may_end.clear()
    app, runs = DldApp(), []
    monkeypatch.setattr(app, "run_job", lambda _, values, *rest, **__: runs.append(values["fp16"]))
    async with app.run_test(size=(80, 24)) as pilot:
        app.start_activity(BUILD, {"model": "m.onnx", "fp16": True})
        await pilot.pause()
        await pilot.press("f5")
        await until(pilot, lambda: app._notifications)
        assert runs == []
        target.may_end.set()
        await until(pilot, lambda: runs)
    assert runs == [False], "strongly typed: the setting does not apply"


@pytest.mark.broad
async def test_a_built_engine_is_told_or_its_layers_opened(target: FakeTarget) -> None:
    app = DldApp()
    calls: list[Any] = []
    shown: list[Any] = []
    app.run_job = lambda *a, **k: calls.append(a)  # type: ignore[method-assign]
    app.open_path = shown.append  # type: ignore[method-assign, assignment]
    result = Result(
        Path("m.engine"), 1, 1.0, "TensorRT", Path("m.trt.json"), "", Path("r"), Path("l"), None, 0,
        [], None,
    )  # fmt: skip
    async with app.run_test(size=(80, 24)) as pilot:
        for is_open in (False, True):
            await opened(app, pilot, open_metadata=is_open)
            await pilot.press("f5")
            activity, _, on_result = calls[-1]
            assert activity == BUILD
            on_result(result)
            await pilot.pause()
            assert not isinstance(app.screen, ActivityScreen)
            assert shown == ([Path("m.trt.json")] if is_open else [])


@pytest.mark.broad
@pytest.mark.skipif(textual.__version__ != "8.2.8", reason="as Textual 8.2.8 draws")
async def test_a_walk_through_the_form(
    target: FakeTarget, tmp_path: Path, recorded: Recorded
) -> None:
    target.libraries = [WEAK, STRONG]
    app = DldApp(state=State(tmp_path))
    async with app.run_test(size=(100, 34)) as pilot:
        form = await opened(app, pilot, fp16=True, optimization_level=4)
        steps: Steps = {
            "ctrl+s": None, "f a s t enter": None,
            "rtx ~": lambda: form.set_values({"library": "tensorrt_rtx"}),
            "ctrl+pagedown": None, "ctrl+pagedown ~": None, "ctrl+pagedown ": None,
            "back ~": lambda: form.set_values({"library": "tensorrt"}), "f7": None, "f9": None,
            "shapes": lambda: form.set_values({"opt_shapes": ["x:1x3"], "fp16": False}),
            "bad shapes": lambda: form.set_values({"opt_shapes": ["x:one"]}), "f7 ": None,
            "f5": None, "escape": None, "f8": None, "f4": None, "enter": None, "60x20": None,
            "gone": lambda: setattr(target, "broken", True),
            "elsewhere": lambda: form.set_values({"library": str(tmp_path)}),
        }  # fmt: skip
        texts = await walked(app, pilot, steps)
        texts["copied"] = app.clipboard
        shown = {name: settled(text, tmp_path) for name, text in texts.items()}
    recorded("walk_of_build_form", shown)


def test_the_command_of_trtexec_is_that_of_the_library(recorded: Recorded) -> None:
    """None is told of what cannot be read, and of what builds nothing."""
    libraries: Any = SimpleNamespace(chosen=lambda choice: {
        "tensorrt": WEAK, "tensorrt_rtx": STRONG, "absent": ABSENT,
    }.get(choice))  # fmt: skip
    values: dict[str, JSON] = {"model": "m.onnx", "output": "m.engine", "optimization_level": 3}
    texts = {}
    for library in ("", "auto", "tensorrt", "tensorrt_rtx", "absent", "/a/folder"):
        told = trtexec_line(build.Request, values | {"library": library, "log": None}, libraries)
        texts[library or "none"] = told
    assert trtexec_line(build.Request, {**values, "optimization_level": "x"}, libraries) == ""
    assert trtexec_line(build.Request, {}, libraries) == ""
    assert trtexec_line(onnxruntime.Request, {"model": "m.onnx"}, libraries) == ""
    texts["a profile"] = trtexec_line(tensorrt.Request, {"model": "m.engine"}, libraries)
    recorded("commands_of_libraries", texts)
