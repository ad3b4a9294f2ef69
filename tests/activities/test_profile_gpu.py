"""A run that believes it is on a GPU: the CPU computes, stand-ins say what a GPU did meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dld_tui.activities import time_pair
from dld_tui.activities.profile import onnxruntime as profile_onnxruntime
from dld_tui.activities.profile.onnxruntime import Request, run
from dld_tui.backends.machine import capture
from dld_tui.backends.onnxruntime import profiling
from dld_tui.backends.onnxruntime.session import Session
from dld_tui.backends.onnxruntime.session_options import SessionSettings
from dld_tui.core.errors import ActivityError, CancelledError, UnavailableError, UsageError
from dld_tui.core.events import Event, Progress
from dld_tui.core.report.gpu_kernels import CounterSpec, Series
from dld_tui.core.report.latency import TimeCalls, recording_spans
from dld_tui.core.report.report import Report
from tests.support import models
from tests.support.activities import finished
from tests.support.gpu_tracer import KERNELS, FakeTracer

pytest.importorskip("onnxruntime")


def noted(timer: Callable[..., TimeCalls]) -> Callable[..., TimeCalls]:
    """Return `Session.timer` with its calls noted for the tracer."""

    def make(session: Session, feeds: Any) -> TimeCalls:
        return recording_spans(timer(session, feeds), FakeTracer.calls)

    return make


class FakeSampler:
    def __init__(self, device: int, interval_us: float, expected: int) -> None:
        self.interval_ns = int(1000 * interval_us)
        assert expected > 0

    def start(self) -> None:
        self.started = time.time_ns()

    def stop(self) -> list[Series]:
        times = range(self.started, time.time_ns(), self.interval_ns)
        good = Series(CounterSpec("sm", "SM active"), "cupti-pm", [(when, 50.0) for when in times])
        return [good, Series(CounterSpec("", "PCIe"), "cupti-pm", absent="no such counter")]


@pytest.fixture(autouse=True)
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(SessionSettings, "uses_cuda", True)
    monkeypatch.setattr(capture, "ActivityTracer", FakeTracer)
    monkeypatch.setattr(capture, "HardwareSampler", FakeSampler)
    monkeypatch.setattr(Session, "timer", noted(Session.timer))
    monkeypatch.setattr(FakeTracer, "calls", [])


def profile(folder: Path, **more: Any) -> tuple[Report, list[Event]]:
    settings = {"iterations": 5, "warm_up": 1, "threads": 1, "layer_passes": 6, **more}
    events = list(run(Request(models.write(folder, models.CHAIN), **settings)))
    return Report.open(finished(events).report), events


def texts(report: Report) -> str:
    return "\n".join(note.text for note in report.notes)


@pytest.mark.broad
def test_kernels_that_cannot_be_joined_are_told_and_have_no_layers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report, _ = profile(tmp_path, inter_threads=2)  # operators at once
    with report:
        timeline: Any = report.properties["gpu_timeline"]
        assert timeline["attributed"] == 0
        assert "no fixed order" in texts(report)
    monkeypatch.setattr(FakeTracer, "names", {True: "k{}", False: "other{}"})
    report, _ = profile(tmp_path)
    with report:
        timeline = report.properties["gpu_timeline"]
        assert (timeline["joined_passes"], timeline["attributed"]) == (0, 0)
        said = texts(report)
        assert "In 6 of 6 passes without profiling, kernels cannot be joined to layers" in said
        assert "kernel 1 is other0, in the profiled run k" in said
        # What is known still is: times of layers are those of the profiled run.
        assert report.gpu_passes == {one.index for one in report.counted_passes}


def test_cuda_graphs_need_io_binding_and_layers_are_profiled_without_them(tmp_path: Path) -> None:
    model = models.write(tmp_path, models.CHAIN)
    request = Request(model, provider_option=("enable_cuda_graph=1",))
    with pytest.raises(UsageError, match="a CUDA graph needs inputs and outputs that") as caught:
        list(run(request))
    assert "--io-binding" in str(caught.value.hint)
    assert profile_onnxruntime.plan_of(replace(request, io_binding=True)).session.cuda_graph

    options = {"CUDA": {"enable_cuda_graph": "1", "arena_extend_strategy": "x"}}
    settings = SessionSettings(("CUDA",), options)
    assert settings.cuda_graph
    plain = settings.without_graph()
    assert not plain.cuda_graph
    assert plain.provider_options == {"CUDA": {"arena_extend_strategy": "x"}}
    assert not SessionSettings(("CUDA",), {"CUDA": {"enable_cuda_graph": "0"}}).cuda_graph


def test_a_crash_while_layers_are_profiled_leaves_the_timeline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*arguments: Any) -> Any:
        raise ActivityError("the profiled session crashed")

    monkeypatch.setattr(profiling, "profiled_session", crash)
    with pytest.raises(ActivityError) as caught:
        profile(tmp_path)
    assert "What was measured before is in" in str(caught.value.hint)
    with Report.open(next(tmp_path.glob("*.dldprof"))) as report:
        assert report.status == "partial"
        assert len(report.kernel_passes) == 6
        assert len(report.gpu_events(report.kernel_passes[0].index)) == KERNELS


def test_clocks_are_those_of_the_passes() -> None:
    states: list[dict[str, Any]] = [
        {"gpu_sm_mhz": mhz, "gpu_power_w": 100.0, "gpu_throttling": why}
        for mhz, why in ((1980, "none"), (1755, "power limit"), (1980, "none"))
    ]
    assert capture.during_passes(states) == {
        "gpu_sm_mhz": 1980.0,
        "gpu_sm_mhz_lowest": 1755.0,
        "gpu_sm_mhz_highest": 1980.0,
        "gpu_power_w": 100.0,
        "gpu_throttling": "power limit",
    }
    assert capture.during_passes([]) == {}


@pytest.mark.broad
def test_without_cupti_and_rights_the_rest_is_measured_and_the_reasons_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*arguments: Any, **more: Any) -> Any:
        raise UnavailableError("cupti-python is not installed", hint="Install it")

    def refuse(device: Any) -> Any:
        raise UnavailableError("the clocks could not be locked: no permission")

    monkeypatch.setattr(capture, "ActivityTracer", missing)
    monkeypatch.setattr(capture, "HardwareSampler", missing)
    monkeypatch.setattr(capture, "ClockLock", refuse)
    report, _ = profile(tmp_path, lock_clocks=True)
    with report:
        assert report.status == "complete"
        assert report.layers
        assert report.counters == ()
        said = texts(report)
        assert "No timeline of the GPU: cupti-python is not installed (Install it)." in said
        assert "No counters of the GPU: cupti-python is not installed" in said
        assert "gpu_check" not in report.properties
        assert report.environment["gpu_clocks_locked"] is False
        assert "The clocks could not be locked: no permission." in said


@pytest.fixture
def released(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what is added to when the locked clocks are given back."""
    noted: list[str] = []

    class Lock:
        mhz, problem = 1590, None

        def __init__(self, device: Any) -> None: ...

        def release(self) -> None:
            noted.append("released")

    monkeypatch.setattr(capture, "ClockLock", Lock)
    return noted


def test_clocks_are_given_back_after_a_failure_and_a_cancel(
    tmp_path: Path, released: list[str]
) -> None:
    bad = models.write(tmp_path, models.CHAIN.replace("Relu", "NoSuchOperator"), "bad.onnx")
    with pytest.raises(ActivityError):
        list(run(Request(bad, lock_clocks=True)))
    assert released == ["released"]
    events = run(Request(models.write(tmp_path, models.CHAIN), lock_clocks=True))
    while getattr(next(events), "stage", "") != "Measuring latency":
        assert len(released) == 1
    events.close()  # type: ignore[attr-defined]
    assert released == ["released"] * 2


def test_clocks_of_a_processor_are_not_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SessionSettings, "uses_cuda", False)
    with pytest.raises(UsageError, match="--lock-clocks needs"):
        profile(tmp_path, lock_clocks=True)


@pytest.mark.broad
def test_an_end_after_the_first_of_a_pair_is_told_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a GPU has to note goes into no report that was finished before."""
    monkeypatch.setattr(time_pair, "_MEMORY_SHARE", -1.0)  # one after the other, as on a GPU
    model = models.write(tmp_path, models.CHAIN)
    settings = {"iterations": 2, "warm_up": 1, "threads": 1, "layer_passes": 0}
    events = time_pair.run(time_pair.pairs_of(model, model, settings, {}, {})(0))
    next(one for one in events if isinstance(one, Progress) and str(one.stage).startswith("new"))
    with pytest.raises(CancelledError):
        events.throw(CancelledError())  # type: ignore[attr-defined]
