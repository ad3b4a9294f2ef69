"""Loads run on one session: as many at once as there are clients, each arrival answered once."""

from __future__ import annotations

import time
from array import array
from pathlib import Path
from threading import Lock
from typing import Any

import pytest

from dld_tui.activities.load import Request, run
from dld_tui.backends.onnxruntime.clients import closed_loop, open_loop
from dld_tui.core.errors import UsageError
from dld_tui.core.events import Finished
from dld_tui.core.report.load import LoadResult, point_of
from tests.support.models import PLAIN_BRANCHES, write

pytest.importorskip("onnxruntime")


class Server:
    """A session that sleeps, and counts who is inside."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.inside, self.most, self.calls = seconds, 0, 0, 0
        self.lock = Lock()

    def timer(self, first: int, durations: array[int], most: int, until: int) -> int:
        for slot in range(most):
            begin = time.perf_counter_ns()
            with self.lock:
                self.inside += 1
                self.calls += 1
                self.most = max(self.most, self.inside)
            time.sleep(self.seconds)
            with self.lock:
                self.inside -= 1
            durations[slot] = time.perf_counter_ns() - begin
            if time.perf_counter_ns() >= until:
                return slot + 1
        return most


def test_a_closed_loop_keeps_every_client_busy() -> None:
    server = Server(0.01)
    found = closed_loop([server.timer] * 3, 0.3)
    assert (server.most, len(found.ended)) == (3, server.calls)
    point = point_of(3, None, found)
    assert point.throughput is not None
    assert point.compute_ms is not None
    # Little's law: with three clients always inside, throughput times latency is three.
    assert point.throughput * point.compute_ms / 1000 == pytest.approx(3, rel=0.25)
    assert min(found.begun) >= 0


def test_an_open_loop_answers_each_arrival_once_and_tells_waiting() -> None:
    server = Server(0.02)
    found = open_loop([server.timer] * 2, 200.0, 0.3, seed=1)  # twice what two clients can do
    assert server.calls == len(found.ended) == 60
    assert server.most == 2
    assert all(a <= b < e for a, b, e in zip(found.arrived, found.begun, found.ended, strict=True))
    point = point_of(2, 200.0, found)
    assert not point.keeps_up
    assert point.queue_ms is not None
    assert point.queue_ms > 50  # thirty wait in front of the last ones, on average
    assert open_loop([server.timer], 200.0, 0.0, seed=1).arrived == (0.0,)


def load(path: Path, **asked: Any) -> LoadResult:
    events = list(run(Request(path, shape=("x:3x4",), **asked)))
    assert isinstance(events[-1], Finished)
    assert isinstance(events[-1].result, LoadResult)
    return events[-1].result


def test_a_model_under_load(tmp_path: Path) -> None:
    path = write(tmp_path, PLAIN_BRANCHES)
    found = load(path, clients="1,3", duration=0.05)
    assert [(point.clients, point.offered) for point in found.points] == [(1, None), (3, None)]
    assert all(point.requests and point.throughput for point in found.points)
    found = load(path, rate="50,100", duration=0.2)
    assert [(p.clients, p.offered, p.requests) for p in found.points] == [(8, 50, 10), (8, 100, 20)]


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"clients": "0"}, "not a size"),
        ({"clients": "1,1000"}, "more than 256"),
        ({"rate": "x"}, "not a rate"),
        ({"rate": "inf"}, "not a rate"),
        ({"rate": "10", "clients": "1,2"}, "one number of clients"),
    ],
)
def test_what_does_not_fit_is_refused(asked: dict[str, Any], why: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=why):
        load(write(tmp_path, PLAIN_BRANCHES), **asked)
