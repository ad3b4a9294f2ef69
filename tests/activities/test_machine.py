"""What is told of a machine: the looks of the doctor, TensorRT's libraries, the self-test."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Generator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dld_tui.activities import registry
from dld_tui.activities import separate_process as apart
from dld_tui.activities.machine import selftest, tensorrt_libraries
from dld_tui.activities.machine.selftest import Request, run
from dld_tui.cli.jobs.results import show_selftest
from dld_tui.core.codec import decode, encode
from dld_tui.core.conversion.result import ComparedValues
from dld_tui.core.errors import ActivityError, UnavailableError, UsageError
from dld_tui.core.events import Progress, result_of
from dld_tui.core.machine.health import (
    FAILED,
    PASSED,
    SelfTest,
)
from dld_tui.core.params import from_json
from tests.support.activities import finished
from tests.support.fake_machine import install

pytest.importorskip("onnxruntime")


def tried(**settings: Any) -> SelfTest:
    begin = time.monotonic()
    result = finished(run(Request(**settings)))
    assert isinstance(result, SelfTest)
    assert 0 <= sum(step.seconds for step in result.rows) <= time.monotonic() - begin
    return result


def here(
    self: Any, activity: str, **settings: Any
) -> Generator[Progress, None, Any]:  # without a process, which knows no fake
    if activity == "doctor":  # it looks at this machine
        yield Progress(0)
        return SimpleNamespace(checks=())
    loaded = registry.load(activity)
    if activity.startswith("profile_"):  # neither is faster when it is warm
        settings = {"duration": 0.05, "warm_up_ms": 5.0, **settings}
    result = finished(loaded.run(from_json(loaded.request, settings)))
    yield Progress(0)
    return result


@pytest.fixture
def trt(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(selftest._Bench, "ask", here)
    return install(monkeypatch)


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


@pytest.mark.parametrize(("after", "said"), [(2, "3 nodes to 2, the same values"), (3, "")])
def test_a_simplifier_that_folds_nothing_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int, said: str
) -> None:
    def ask(self: Any, activity: str, **settings: Any) -> Generator[Progress, None, Any]:
        yield Progress(0)
        before, made = SimpleNamespace(nodes=3), SimpleNamespace(nodes=after)
        return SimpleNamespace(before=before, after=made, values=ComparedValues({}, True))

    monkeypatch.setattr(selftest._Bench, "ask", ask)
    bench = selftest._Bench(Request(), tmp_path, tmp_path / "m.onnx")
    if said:
        assert result_of(bench._simplified()) == said
        return
    with pytest.raises(UnavailableError, match="no simplifier that is installed folds anything"):
        result_of(bench._simplified())


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


def test_a_result_that_is_none_is_a_failure_with_its_traceback(
    trt: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selftest._Bench, "_build", lambda self: iter(int("x") for _ in "x"))
    step = tried(backend="tensorrt").rows[0]
    assert (step.status, step.detail[:21], step.fix) == (FAILED, "unexpected ValueError", "")
    assert "Traceback" in step.log


def asked(folder: Path, activity: str, limit: float = 60, **settings: Any) -> Any:
    bench = selftest._Bench(Request(limit=limit), folder, folder / "m.onnx")
    return result_of(bench.ask(activity, **settings))


@pytest.mark.broad
def test_an_activity_in_a_process_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert asked(tmp_path, "doctor").checks
    with pytest.raises(UsageError, match="unknown activity 'nothing'"):
        asked(tmp_path, "nothing")
    monkeypatch.setattr(apart, "__name__", "tests.support.endless")
    with pytest.raises(ActivityError, match="took too long"):
        asked(tmp_path, "doctor", limit=0.2)
    monkeypatch.setattr(apart, "__name__", "tests.support.crash")
    with pytest.raises(ActivityError, match="crashed: SIGABRT"):
        asked(tmp_path, "doctor")


def test_all_libraries_of_tensorrt_are_told_with_reasons(tmp_path: Path) -> None:
    module = tmp_path / "good" / "tensorrt_rtx"
    module.mkdir(parents=True)
    (module / "__init__.py").write_text(
        "__version__ = '9.9'\nclass Builder: pass\nclass BuilderFlag: TF32 = 1\n",
        encoding="utf-8",
    )
    folders = (str(module.parent), str(tmp_path / "gone"))
    *steps, last = tensorrt_libraries.run(tensorrt_libraries.Request(folders))
    assert all(isinstance(step, Progress) and step.total == 4 for step in steps)
    result = json.loads(json.dumps(encode(finished([last]))))
    found = decode(tensorrt_libraries.Result, result).libraries
    assert [facts.name for facts in found][:2] == ["tensorrt", "tensorrt_rtx"]
    assert (found[2].version, found[2].world, found[2].why) == ("9.9", "strong", "")
    assert found[2].flags == {"TF32"}
    assert found[3].why == "the folder does not exist"
