"""All that the capture of a GPU writes into a report, and notes: gpu_capture.txt."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dld_tui.backends.machine import capture
from dld_tui.backends.machine.capture import (
    GpuCapture,
    GpuPlan,
    Meter,
)
from dld_tui.backends.machine.nvml import Nvml
from dld_tui.core.errors import UnavailableError
from dld_tui.core.report.gpu_kernels import (
    Activity,
    ActivityLog,
    CounterSpec,
    LayerSpan,
    NamedRange,
    PassSpan,
    SamplingPlan,
    Series,
    TimedPass,
)
from dld_tui.core.report.records import Layer
from dld_tui.core.report.report import Report
from tests.support import fake_pynvml
from tests.support.profiles import start_report
from tests.support.recorded import Recorded

US = 1000
ORIGIN = 10**9


def log(start_us: int, names: str, *, calls: bool, dropped: int = 0) -> ActivityLog:
    """Return work of 10 us each, a kernel for each letter and a copy for each digit."""
    found = ActivityLog(ranges=[NamedRange("range", ORIGIN, ORIGIN + 5 * US)], dropped=dropped)
    for number, name in enumerate(names):
        if name == " ":
            continue
        begin = ORIGIN + (start_us + 20 * number) * US
        kind: Any = "memcpy" if name.isdigit() else "kernel"
        size = 64 if name.isdigit() else None
        found.work.append(
            Activity(kind, f"k_{name}", begin + 5 * US, begin + 15 * US, number, "7", size)
        )
        if calls:
            found.launched(number, begin)
    return found


LOGS = {
    "joined": {False: log(0, "a1b a1b", calls=False), True: log(1000, "a1b a1b", calls=True)},
    "other kernels": {False: log(0, "axb a1b", calls=False),
                      True: log(1000, "a1b a1b", calls=True, dropped=3)},
    "dropped calls": {False: log(0, "a1b a1b", calls=False),
                      True: log(1000, "a1b a1b", calls=True, dropped=2)},
    "another warm-up": {False: log(0, "a1b a1b", calls=False),
                        True: log(1000, "axb a1b", calls=True)},
    "kernels alone": {False: log(0, "a1b a1b", calls=False, dropped=1)},
    "calls alone": {True: log(1000, "a1b a1b", calls=True)},
    "no kernel": {False: ActivityLog(), True: ActivityLog()},
    "nothing": {},
}  # fmt: skip
PASSES = [TimedPass(0, ORIGIN, ORIGIN + 75 * US), TimedPass(1, ORIGIN + 80 * US, ORIGIN + 155 * US)]
SPANS = [
    PassSpan(2, 1000, 75, [LayerSpan(0, 1000, 30), LayerSpan(1, 1030, 25)]),
    PassSpan(3, 1080, 75, [LayerSpan(0, 1080, 30), LayerSpan(1, 1110, 25)]),
]


class Tracer:
    """Gives the logs of a case; where one is missing it cannot start, or stop."""

    logs: dict[bool, ActivityLog]

    def __init__(self, device: int, *, calls: bool, ranges: bool) -> None:
        self.calls = calls
        assert (device, ranges) == (1, calls)
        if not self.logs:
            raise UnavailableError("no CUPTI", hint="Install it")

    def start(self) -> None: ...

    def flush(self) -> None: ...

    def stop(self) -> ActivityLog:
        if self.calls not in self.logs:
            raise UnavailableError("the records are lost")
        return self.logs[self.calls]


class Sampler:
    """Hardware counters of two rows."""

    refuses = False
    fails = False

    def __init__(self, device: int, interval_us: float, expected: int) -> None:
        assert (device, interval_us, expected) == (1, 20.0, 100)
        if self.refuses:
            raise UnavailableError("no rights", hint="Ask for them")

    def start(self) -> None: ...

    def stop(self) -> list[Series]:
        if self.fails:
            raise UnavailableError("the samples are lost", hint="Try again")
        samples = [(ORIGIN + 10 * US, 50.0), (ORIGIN + 30 * US, 25.0)]
        return [
            Series(CounterSpec("sm", "SM active", "%", 100.0), "cupti-pm", samples),
            Series(CounterSpec("", "PCIe"), "cupti-pm", absent="no such counter"),
            Series(CounterSpec("dram", "DRAM"), "cupti-pm"),
        ]


class Polling:
    """Coarse counters of a meter."""

    def __init__(self, meter: Meter) -> None:
        self.meter = meter

    def start(self) -> None: ...

    def stop(self) -> list[Series]:
        self.meter.close()
        spec = CounterSpec("sm", "SM active", "%", 100.0)
        return [Series(spec, self.meter.source, [(ORIGIN + 10 * US, 50.0)])]


class Lock:
    mhz: int | None = 1590
    problem: str | None = "they were not given back"
    released = 0

    def __init__(self, device: object) -> None:
        assert device == "00000000:01:00.0"

    def release(self) -> None:
        Lock.released += 1


@pytest.fixture(autouse=True)
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(capture, "ActivityTracer", Tracer)
    monkeypatch.setattr(capture, "HardwareSampler", Sampler)
    monkeypatch.setattr(capture, "PollingSampler", Polling)
    monkeypatch.setattr(capture, "ClockLock", Lock)
    monkeypatch.setattr(Lock, "released", 0)


def shown(path: Path) -> Iterator[str]:
    with Report.open(path) as report:
        yield json.dumps(dict(report.environment), sort_keys=True)
        yield from (f"{note.kind}: {note.text}" for note in report.notes)
        for name in ("gpu_check", "gpu_timeline", "gpu_absent"):
            yield f"{name}: {json.dumps(report.properties.get(name))}"
        for one in report.passes:
            yield f"pass {one.index} at {one.start_us:g} for {one.duration_us:g} {one.state}"
            yield from (f"  {event}" for event in report.gpu_events(one.index))
        for counter in report.counters:
            yield f"{counter}"
            if counter.samples:
                yield f"  {report.counter_series(counter.id, 0, 100, 10)}"


def captured(folder: Path, plan: GpuPlan, unordered: str = "", *, calls: bool = True) -> str:
    """Run a whole capture; return the report, and what was yielded on the way."""
    board: Any = SimpleNamespace(board=None, state=dict, read=dict)
    run = GpuCapture(plan, board, fake_pynvml)
    fake_pynvml.CALLS.clear()
    run.open()
    lines = [repr(run.environment), repr([*run.metrics()]), repr((run.energy_mj(), run.memory()))]
    with start_report(folder / "r.dldprof") as writer:
        for name in ("first", "second"):
            writer.add_layer(Layer(name, "Op"))
        lines.append(f"tracing {run.start_trace()}")
        sampling = run.plan_samples(1.0, 50)
        lines.append(f"sampling {sampling}")
        if sampling is not None:
            run.start_samples(SamplingPlan(1, 20.0, 100))
        run.between_passes()
        run.stop_samples()
        run.stop_trace()
        run.write_passes(writer, ORIGIN, PASSES)
        if calls:
            run.start_trace(calls=True, ranges=True)
            run.between_passes()
            run.stop_trace()
        for span in SPANS:
            writer.add_pass(span.index, span.start_us, span.duration_us)
        run.write_layers(writer, ORIGIN, SPANS, unordered)
        lines.append(f"ranges {run.ranges}")
        run.write_notes(writer)
        run.close()
        run.close()
        run.write_notes(writer)
    lines += [*shown(folder / "r.dldprof"), f"clocks released {Lock.released}"]
    lines.append(f"of the driver: {', '.join(fake_pynvml.CALLS)}")
    return "\n".join(lines)


def test_all_that_is_captured(
    recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: dict[str, str] = {}

    def add(name: str, plan: GpuPlan, logs: str = "joined", **more: Any) -> None:
        monkeypatch.setattr(Tracer, "logs", LOGS[logs], raising=False)
        folder = tmp_path / str(len(found))
        folder.mkdir()
        found[name] = captured(folder, plan, **more)

    for name in LOGS:
        add(name, GpuPlan(1, counters="hardware"), name)
    add("in no order", GpuPlan(1, counter_passes=3, lock_clocks=True), unordered="two streams")
    add("no layers", GpuPlan(1), "kernels alone", calls=False)
    monkeypatch.setattr(
        fake_pynvml, "nvmlDeviceGetTotalEnergyConsumption", lambda handle: 77, raising=False
    )
    add("switched off", GpuPlan(1, timeline=False, counters="off"))
    add("no passes to sample", GpuPlan(1, counter_passes=0))
    monkeypatch.setattr(Sampler, "fails", True)
    add("counters that are lost", GpuPlan(1, counters="hardware"))
    monkeypatch.setattr(Sampler, "refuses", True)
    add("no rights for counters", GpuPlan(1, counters="hardware"))
    add("no rights for those of the hardware", GpuPlan(1))
    add("counters of the driver", GpuPlan(1, counters="nvml"))
    add("a counter of a board", GpuPlan(1, counters="sysfs"))

    monkeypatch.setattr(Lock, "mhz", None)
    monkeypatch.setattr(Lock, "problem", None)
    add("clocks of an unknown speed", GpuPlan(1, counters="off", lock_clocks=True))

    def refuse(device: object) -> Lock:
        raise UnavailableError("the clocks could not be locked")

    monkeypatch.setattr(capture, "ClockLock", refuse)
    monkeypatch.setattr(Nvml, "used_memory", lambda self: None)
    add("clocks that cannot be locked", GpuPlan(1, counters="off", lock_clocks=True))
    recorded("gpu_capture", found)


def test_memory_without_numbers_of_processes_is_what_was_added(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = GpuCapture(GpuPlan(0), SimpleNamespace(board=None, state=dict, read=dict), fake_pynvml)  # type: ignore[arg-type]
    assert run.memory() is None
    used = iter((3 << 20, 10 << 20, 1 << 20, None))
    monkeypatch.setattr(Nvml, "used_memory", lambda self: None)
    monkeypatch.setattr(Nvml, "device_memory", lambda self: next(used))
    run.open()
    assert [run.memory() for _ in range(3)] == [7 << 20, 0, None]
    run.close()


def test_closing_ends_what_was_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []

    def end(name: str) -> Any:
        ended.append(name)
        raise UnavailableError("it is lost")

    monkeypatch.setattr(Tracer, "logs", LOGS["joined"], raising=False)
    monkeypatch.setattr(Tracer, "stop", lambda self: end("trace"))
    monkeypatch.setattr(Sampler, "stop", lambda self: end("samples"))
    board: Any = SimpleNamespace(board=None, state=dict, read=dict)
    run = GpuCapture(GpuPlan(1, counters="hardware", lock_clocks=True), board, fake_pynvml)
    run.open()
    assert run.start_trace()
    run.start_samples(SamplingPlan(1, 20.0, 100))
    for _ in range(2):
        run.close()
    assert ended == ["samples", "trace"]
    assert Lock.released == 1
