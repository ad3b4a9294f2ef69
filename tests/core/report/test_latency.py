from __future__ import annotations

import contextlib
import gc
import time
from array import array
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from dld_tui.core.errors import UsageError
from dld_tui.core.process.paths import report_path
from dld_tui.core.report import latency
from dld_tui.core.report.latency import (
    StopCondition,
    latency_summary,
    measure,
    measure_in_turns,
    parse_percentiles,
    settle,
    settled_s,
)
from tests.support.known import known


class Clock:
    """Time that passes only when a call is made, or when told to."""

    def __init__(self) -> None:
        self.now = 0

    def perf_counter_ns(self) -> int:
        return self.now


class Calls:
    """A loop of calls that take a known time each."""

    def __init__(self, clock: Clock, milliseconds: float) -> None:
        self.clock = clock
        self.nanoseconds = int(milliseconds * 1e6)
        self.firsts: list[int] = []
        self.collecting: list[bool] = []

    def __call__(self, first: int, durations: array[int], most: int, until: int) -> int:
        self.firsts.append(first)
        self.collecting.append(gc.isenabled())
        for slot in range(most):
            self.clock.now += self.nanoseconds
            durations[slot] = self.nanoseconds
            if self.clock.now >= until:
                return slot + 1
        return most


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    clock = Clock()
    monkeypatch.setattr(time, "perf_counter_ns", clock.perf_counter_ns)
    yield clock
    monkeypatch.undo()


@pytest.mark.parametrize(
    ("stop", "milliseconds", "calls"),
    [
        (StopCondition(1), 1, 1),
        (StopCondition(250), 1, 250),
        (StopCondition(3), 500, 3),
        (StopCondition(0, 1.0), 1, 1000),
        (StopCondition(10, 1.0), 500, 10),
        (StopCondition(10, 1.0), 1, 1000),
        (StopCondition(2000, 1.0), 1, 2000),
        (StopCondition(10, 3.0, 100), 1, 100),
        (StopCondition(0, 0.0), 1, 0),
        (StopCondition(50_000), 0.001, 50_000),
    ],
)
def test_it_goes_on_until_both_are_reached_and_no_further(
    clock: Clock, stop: StopCondition, milliseconds: float, calls: int
) -> None:
    bursts = list(measure(Calls(clock, milliseconds), stop))

    durations = [one for burst in bursts for one in burst.milliseconds]
    assert durations == [milliseconds] * calls
    assert [burst.calls for burst in bursts][-1:] == ([calls] if calls else [])


@pytest.mark.parametrize(
    ("stop", "calls", "seconds", "progress"),
    [
        (StopCondition(100), 25, 9.0, (25, 100, "passes")),
        (StopCondition(10), 25, 9.0, (10, 10, "passes")),
        (StopCondition(10, 4.0), 9, 1.0, (1.0, 4.0, "s")),
        (StopCondition(100, 4.0), 10, 3.0, (10, 100, "passes")),
        (StopCondition(0, 4.0), 9, 5.0, (4.0, 4.0, "s")),
        (StopCondition(0, 0.0), 0, 0.0, (0, 1, "passes")),
    ],
)
def test_progress_is_that_of_what_takes_longer(
    stop: StopCondition, calls: int, seconds: float, progress: tuple[float, float, str]
) -> None:
    assert stop.progress(calls, seconds) == progress


@pytest.mark.parametrize(("spun_s", "waited_s"), [(0.0, 0.006), (0.03, 0.036), (9.0, 0.1)])
def test_threads_that_spin_are_waited_for_a_tenth_of_a_second_at_most(
    spun_s: float, waited_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    sleeping = SimpleNamespace(
        perf_counter=lambda: clock.now / 1e9,
        perf_counter_ns=lambda: clock.now,
        process_time_ns=lambda: min(clock.now, int(spun_s * 1e9)),
        sleep=lambda seconds: setattr(clock, "now", clock.now + round(seconds * 1e9)),
    )
    monkeypatch.setattr(latency, "time", sleeping)
    before = settled_s()
    settle()
    assert clock.now / 1e9 == pytest.approx(waited_s)
    assert settled_s() - before == pytest.approx(waited_s)


@pytest.mark.parametrize(("spins", "passes"), [(False, 5), (True, 30)])
def test_turns_begin_when_the_threads_of_the_other_version_sleep(
    spins: bool, passes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    clock = Clock()
    monkeypatch.setattr(latency, "settle", lambda: order.append("settle"))
    monkeypatch.setattr(time, "perf_counter_ns", clock.perf_counter_ns)
    monkeypatch.setattr(time, "perf_counter", lambda: clock.now / 1e9)

    def timer(name: str) -> Calls:
        class Named(Calls):
            def __call__(self, *arguments: object) -> int:
                order.append(name)
                return super().__call__(*arguments)  # type: ignore[arg-type]

        return Named(clock, 1)

    turns = measure_in_turns(timer("base"), timer("new"), StopCondition(2 * passes), spins=spins)
    with contextlib.closing(turns):
        (first, second) = turns
    assert len(first.base_ms) == len(second.new_ms) == passes - 1
    waits = ["settle"] if spins else []
    assert order == [*waits, "base", *waits, "new", *waits, "new", *waits, "base"]


def test_percentiles_are_numbers_up_to_100() -> None:
    assert parse_percentiles("0, 50, 99.9, 100,") == [0.0, 50.0, 99.9, 100.0]


@pytest.mark.parametrize("text", ["most", "101", "-1", "nan"])
def test_other_percentiles_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="numbers from 0 to 100"):
        parse_percentiles(text)


def test_the_summary_has_the_percentiles_by_name() -> None:
    summary = known(latency_summary([3.0, 1.0, 2.0], [50, 99.5]))
    assert summary.passes == 3
    assert summary.percentiles_ms == {"50": 2.0, "99.5": pytest.approx(2.99)}
    assert latency_summary([], [50]) is None


def test_a_report_gets_a_name_that_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.dldprof").touch()

    assert report_path(None, Path("models/net.onnx")) == Path("net-2.dldprof")
    assert report_path(Path("mine"), Path("net.onnx")) == Path("mine")
