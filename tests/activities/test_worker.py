"""The worker refuses bad requests in one event, and says how an activity failed."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from dld_tui.core.events import Event, Failed, Finished, Log, event_from_line
from tests.support.jobs import fake_target, start

pytestmark = pytest.mark.real_workers


def serve(first_line: bytes) -> tuple[list[Event | None], str, int]:
    """Run ``python -m dld_tui.activities.worker``; return its events, narration and status."""
    done = subprocess.run(
        [sys.executable, "-m", "dld_tui.activities.worker"],
        input=first_line,
        capture_output=True,
        timeout=60,
        check=False,
    )
    lines = done.stdout.decode().splitlines()
    return [event_from_line(line) for line in lines], done.stderr.decode(), done.returncode


def last_of(*steps: list[Any]) -> Failed:
    with start(*steps) as job:
        event = job.wait()
    assert isinstance(event, Failed)
    return event


@pytest.mark.parametrize(
    "line",
    [
        b"not json\n",
        b"[]\n",
        b"{}\n",
        b'{"activity": 1, "request": {}}\n',
        b'{"activity": "infer_shapes", "request": []}\n',
        b"[" * 100_000 + b"\n",
        b"\xff\n",
    ],
)
def test_a_bad_request_is_refused_in_one_event(line: bytes) -> None:
    events, narration, status = serve(line)

    assert status == 2
    assert narration == ""
    (event,) = events
    assert isinstance(event, Failed)
    assert event.status == 2
    assert event.message == "the first line is not a request"


def test_no_request_at_all_is_a_cancel() -> None:
    events, _, status = serve(b"")

    assert [type(event).__name__ for event in events] == ["Cancelled"]
    assert status == 130


def test_settings_are_checked_before_anything_runs() -> None:
    request = {"activity": "infer_shapes", "request": {"model": "x.onnx", "wrong": 1}}
    events, _, status = serve(json.dumps(request).encode() + b"\n")

    (event,) = events
    assert isinstance(event, Failed)
    assert (status, event.status) == (2, 2)
    assert "unknown setting 'wrong'" in event.message


def test_limits_of_settings_are_checked() -> None:
    with start(["finish"], times=0) as job:
        event = job.wait()
    assert isinstance(event, Failed)
    assert (event.status, event.message) == (2, "--times is 0; the least is 1")


def test_an_activity_that_cannot_be_imported_is_unavailable() -> None:
    with fake_target().start("broken", {}) as job:
        event = job.wait()
    assert isinstance(event, Failed)
    assert event.status == 4
    assert "absent" in event.message


@pytest.mark.parametrize(
    ("steps", "status", "message"),
    [
        ([["raise", "input", "the file is torn"]], 3, "the file is torn"),
        ([["raise", "space", "No space left on device"]], 5, "the disk is full"),
        ([], 5, "the activity ended without a result"),
        ([["finish_badly"]], 5, "not JSON"),
    ],
    ids=["an error of the activity", "a full disk", "no end", "a result that is not JSON"],
)
def test_a_failure_is_told_in_a_line(steps: list[Any], status: int, message: str) -> None:
    failure = last_of(*steps)
    assert message in failure.message
    assert (failure.status, failure.details) == (status, None)


def test_an_unexpected_error_is_reported_with_its_traceback() -> None:
    failure = last_of(["raise", "value", "surprise " * 1000])
    assert (failure.status, failure.where) == (5, "fake")
    assert failure.message.startswith("unexpected ValueError: surprise")
    assert len(failure.message) <= 500
    assert "Traceback" in (failure.details or "")
    assert "fake_activity.py" in (failure.details or "")


def test_nothing_comes_after_the_terminal_event() -> None:
    with start(["finish", {"first": 1}], ["event", '{"event": "log", "text": "late"}']) as job:
        events = list(job.events())
    assert events[-1] == Finished({"first": 1})
    assert not any(isinstance(event, Log) for event in events)
