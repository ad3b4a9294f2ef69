"""The self-test: its steps on the CPU and on the fake of TensorRT, and what a bad machine says."""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dld_tui.activities import registry
from dld_tui.activities import separate_process as apart
from dld_tui.activities.machine import selftest
from dld_tui.activities.machine.selftest import Request, run
from dld_tui.backends.tensorrt import cuda, library, outputs, profiling
from dld_tui.backends.tensorrt.library import use
from dld_tui.cli.jobs.results import show_selftest
from dld_tui.core.errors import ActivityError, DldError, UnavailableError, UsageError
from dld_tui.core.events import Finished, Progress
from dld_tui.core.machine.health import (
    FAILED,
    PASSED,
    SKIPPED,
    UNAVAILABLE,
    SelfTest,
    selftest_lines,
)
from dld_tui.core.params import from_json
from tests.support.fake_tensorrt import fake_tensorrt

pytest.importorskip("onnxruntime")


def tried(**settings: Any) -> SelfTest:
    *_, last = run(Request(**settings))
    assert isinstance(last, Finished)
    assert isinstance(last.result, SelfTest)
    return last.result


def here(
    self: Any, activity: str, **settings: Any
) -> Generator[Progress, None, Any]:  # without a process, which knows no fake
    loaded = registry.load(activity)
    if activity.startswith("profile_"):  # neither is faster when it is warm
        settings = {"duration": 0.05, "warm_up_ms": 5.0, **settings}
    *_, last = loaded.run(from_json(loaded.request, settings))
    yield Progress(0)
    assert isinstance(last, Finished)
    return last.result


@pytest.fixture
def trt(monkeypatch: pytest.MonkeyPatch) -> Any:
    fake = fake_tensorrt()
    fake.fake.values = lambda name, value: value
    monkeypatch.setattr(selftest._Bench, "ask", here)
    monkeypatch.setattr(library, "find_library", lambda choice: use(fake))
    for module in (cuda, outputs):
        monkeypatch.setattr(module, "Cuda", lambda device: fake.fake.cuda)
    monkeypatch.setattr(profiling, "Cuda", lambda device, spin=False: fake.fake.cuda)
    return fake


@pytest.mark.slow
def test_steps_on_the_cpu(tmp_path: Path) -> None:
    report = tmp_path / "selftest.json"
    result = tried(backend="cpu", output=report)
    assert [(step.step, step.detail) for step in result.rows if step.status != PASSED] == []
    found = {step.step: step.detail for step in result.rows}
    # How many depends on the processor: layouts with blocks of channels take reorderings.
    layers = re.search(r"(\d+) of \1 layers on CPU$", found["profile"])
    assert layers is not None
    assert found["profile again and compare"].startswith(f"{layers[1]} layers matched")
    written = json.loads(report.read_text())
    assert [step["status"] for step in written["rows"]] == [PASSED] * 6
    assert written["machine"]["onnx"]
    assert "onnxruntime" in [check["name"] for check in written["checks"]]


@pytest.mark.broad
def test_a_simplifier_that_folds_nothing_is_missing(
    trt: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(self: Any, activity: str, **settings: Any) -> Generator[Progress, None, Any]:
        if activity == "convert_sanitize":
            return SimpleNamespace(before=SimpleNamespace(nodes=3), after=SimpleNamespace(nodes=3))
        return (yield from here(self, activity, **settings))

    monkeypatch.setattr(selftest._Bench, "ask", ask)
    states = {step.step: (step.status, step.detail) for step in tried(backend="cpu").rows}
    missing = [detail for status, detail in states.values() if status == UNAVAILABLE]
    assert [detail.split(" of")[0] for detail in missing] == [
        "no simplifier that is installed folds anything"
    ]
    assert {status for status, _ in states.values()} == {PASSED, UNAVAILABLE}


@pytest.mark.broad
def test_steps_with_the_fake_of_tensorrt(trt: Any) -> None:
    result = tried(backend="tensorrt")
    assert [(step.step, step.detail) for step in result.rows if step.status != PASSED] == []
    assert trt.fake.cuda.live == 0


@pytest.mark.broad
def test_wrong_values_of_an_engine_are_a_failure(trt: Any) -> None:
    trt.fake.values = lambda name, value: value + 1
    result = tried(backend="tensorrt")
    states = {step.step: step.status for step in result.rows}
    assert states["profile"] == PASSED
    assert states["values beside ONNX Runtime's"] == FAILED
    assert states["values after the refit"] == FAILED
    assert show_selftest(result, True) == 1


def test_a_step_that_needs_another(trt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    errors: dict[str, DldError] = {"build": ActivityError("it broke", hint="mend it")}

    def ask(self: Any, activity: str, **settings: Any) -> Generator[Progress, None, Any]:
        if error := errors.get(activity):
            raise error
        return (yield from here(self, activity, **settings))

    monkeypatch.setattr(selftest._Bench, "ask", ask)
    states = [step.status for step in tried(backend="tensorrt").rows]
    assert states == [FAILED, *[SKIPPED] * 5]
    errors["build"] = UnavailableError("no library", hint="install it")
    result = tried(backend="tensorrt")
    assert {step.status for step in result.rows} == {UNAVAILABLE}
    assert "tensorrt, build: install it." in selftest_lines(result)
    assert show_selftest(result, True) == 4


def test_a_result_that_is_none_is_a_failure_with_its_traceback(
    trt: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selftest._Bench, "_build", lambda self: iter(int("x") for _ in "x"))
    step = tried(backend="tensorrt").rows[0]
    assert (step.status, step.detail[:21]) == (FAILED, "unexpected ValueError")
    assert "Traceback" in step.log


def asked(folder: Path, activity: str, limit: float = 60, **settings: Any) -> Any:
    work = selftest._Bench(Request(limit=limit), folder, folder / "m.onnx").ask(
        activity, **settings
    )
    while True:
        try:
            next(work)
        except StopIteration as stop:
            return stop.value


@pytest.mark.broad
def test_an_activity_in_a_process_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert asked(tmp_path, "doctor").checks
    with pytest.raises(UsageError, match="unknown activity 'nothing'"):
        asked(tmp_path, "nothing")
    monkeypatch.setattr(apart, "__name__", "tests.support.endless")
    with pytest.raises(ActivityError, match="took too long"):
        asked(tmp_path, "doctor", limit=1)
    monkeypatch.setattr(apart, "__name__", "tests.support.crash")
    with pytest.raises(ActivityError, match="crashed: SIGABRT"):
        asked(tmp_path, "doctor")
