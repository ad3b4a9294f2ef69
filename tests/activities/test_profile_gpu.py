"""A run that believes it is on a GPU: the CPU computes, stand-ins say what a GPU did meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dld_tui.activities.profile_onnxruntime import run
from dld_tui.activities.profile_onnxruntime_request import Request
from dld_tui.backends import gpu_capture
from dld_tui.backends.onnxruntime_options import SessionSettings
from dld_tui.core.errors import ActivityError, UnavailableError, UsageError
from dld_tui.core.events import Event, Finished
from dld_tui.core.gpu.activity import Activity, ActivityLog
from dld_tui.core.gpu.counters import CounterSpec, Series
from dld_tui.core.report.model import Report
from tests.support import models

pytest.importorskip("onnxruntime")

STEP_NS = 2_000


class FakeTracer:
    """Says that from its start to its stop a kernel was launched every two microseconds."""

    def __init__(self, device: int) -> None:
        assert device == 0

    def start(self) -> None:
        self.started = time.time_ns()

    def flush(self) -> None: ...

    def stop(self) -> ActivityLog:
        log = ActivityLog()
        for number, when in enumerate(range(self.started, time.time_ns(), STEP_NS)):
            log.launched(number, when)
            log.work.append(
                Activity("kernel", "gemm", when + 9_000, when + 10_000, number, "stream 7")
            )
        return log


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
    monkeypatch.setattr(gpu_capture, "ActivityTracer", FakeTracer)
    monkeypatch.setattr(gpu_capture, "HardwareSampler", FakeSampler)


def profile(folder: Path, **more: Any) -> tuple[Report, list[Event]]:
    settings = {"iterations": 5, "warm_up": 1, "threads": 1, "layer_passes": 6, **more}
    *events, last = run(Request(models.write(folder, models.CHAIN), **settings))
    assert isinstance(last, Finished)
    return Report.open(str(last.result["report"])), events


def texts(report: Report) -> str:
    return "\n".join(note.text for note in report.notes)


def test_kernels_counters_and_state_are_in_the_report(tmp_path: Path) -> None:
    report, _ = profile(tmp_path)

    with report:
        sums: Any = report.facts["gpu_check"]
        parts = sums["attributed_us"] + sums["unattributed_us"] + sums["outside_us"]
        assert parts == pytest.approx(sums["kernel_us"])
        assert sums["attributed"] > 0
        assert report.facts["peak_memory_bytes"] > 10**6  # type: ignore[operator]
        (counter, absent) = report.counters
        assert counter.title == "SM active"
        assert counter.samples > 0
        assert absent.absent == "no such counter"
        last = report.passes[-1]
        end = last.start_us + last.duration_us
        assert any(report.counter_series(counter.id, last.start_us - 50, end + 50, 4))
        # No NVML here: its figures are said to be unknown, not written as zero.
        assert "gpu_power_w" not in report.environment
        assert "clocks, power and temperature are not known" in texts(report)
        assert "No row PCIe: no such counter." in texts(report)


def test_without_cupti_the_rest_is_measured_and_the_reason_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*arguments: Any) -> Any:
        raise UnavailableError("cupti-python is not installed", hint="Install it")

    monkeypatch.setattr(gpu_capture, "ActivityTracer", missing)
    monkeypatch.setattr(gpu_capture, "HardwareSampler", missing)
    report, _ = profile(tmp_path)

    with report:
        assert report.status == "complete"
        assert report.layers
        assert report.counters == ()
        assert "No timeline of the GPU: cupti-python is not installed (Install it)." in texts(
            report
        )
        assert "No counters of the GPU: cupti-python is not installed" in texts(report)
        assert "gpu_check" not in report.facts


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"gpu_timeline": False}, "No timeline of the GPU: it was switched off"),
        ({"gpu_counters": "off"}, "No counters of the GPU: they were switched off"),
        ({"gpu_counters": "gpm"}, "No counters of the GPU: NVML does not work here"),
        ({"gpu_counters": "sysfs"}, "No counters of the GPU: there is no file"),
    ],
)
def test_what_is_switched_off_or_absent_is_said(
    tmp_path: Path, settings: dict[str, Any], said: str
) -> None:
    report, _ = profile(tmp_path, **settings)

    with report:
        assert said in texts(report)


def test_counters_of_some_passes_only(tmp_path: Path) -> None:
    report, _ = profile(tmp_path, counter_passes=2)

    with report:
        assert report.counters[0].first_us > report.passes[3].start_us
        assert len(report.passes) == 7


def test_clocks_that_cannot_be_locked_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(device: Any) -> Any:
        raise UnavailableError("the clocks could not be locked: no permission")

    monkeypatch.setattr(gpu_capture, "ClockLock", refuse)
    report, _ = profile(tmp_path, lock_clocks=True)

    with report:
        assert report.environment["gpu_clocks_locked"] is False
        assert "The clocks could not be locked: no permission." in texts(report)


def locking(released: list[str]) -> Callable[[Any], Any]:
    class Lock:
        mhz, problem = 1590, None

        def __init__(self, device: Any) -> None: ...

        def release(self) -> None:
            released.append("released")

    return Lock


def test_clocks_are_given_back_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    released: list[str] = []
    monkeypatch.setattr(gpu_capture, "ClockLock", locking(released))
    report, _ = profile(tmp_path, lock_clocks=True)

    with report:
        assert report.environment["gpu_clocks_locked"] == 1590
    assert released == ["released"]


def test_clocks_are_given_back_after_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    released: list[str] = []
    monkeypatch.setattr(gpu_capture, "ClockLock", locking(released))
    text = models.CHAIN.replace("Relu", "NoSuchOperator")
    model = models.write(tmp_path, text)
    assert text != models.CHAIN
    with pytest.raises(ActivityError):
        list(run(Request(model, lock_clocks=True)))
    assert released == ["released"]


def test_clocks_are_given_back_when_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    released: list[str] = []
    monkeypatch.setattr(gpu_capture, "ClockLock", locking(released))
    events = run(Request(models.write(tmp_path, models.CHAIN), lock_clocks=True))
    while not released:
        if getattr(next(events), "stage", "") == "Measuring latency":
            events.close()  # type: ignore[attr-defined]
            break
    assert released == ["released"]


def test_clocks_of_a_processor_are_not_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SessionSettings, "uses_cuda", False)
    with pytest.raises(UsageError, match="--lock-clocks needs"):
        profile(tmp_path, lock_clocks=True)
