"""The worker refuses bad requests in one event, and says how an activity failed."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import pytest

from dld_tui.activities import registry, worker
from dld_tui.core.errors import CancelledError
from dld_tui.core.events import Failed, Finished, Log, event_to_line
from tests.support.fake_worker import BROKEN, FAKE
from tests.support.jobs import start
from tests.support.recorded import Recorded


@pytest.mark.real_workers
def test_nothing_comes_after_the_terminal_event() -> None:
    with start(["finish", {"first": 1}], ["event", '{"event": "log", "text": "late"}']) as job:
        events = list(job.events())
    assert events[-1] == Finished({"first": 1})
    assert not any(isinstance(event, Log) for event in events)
    with start(["finish_badly"]) as job:
        event = job.wait()
    assert isinstance(event, Failed)
    assert (event.status, event.details) == (5, None)
    assert "not JSON" in event.message


def asked(*steps: list[Any], activity: Any = "fake", **more: Any) -> bytes:
    return json.dumps({"activity": activity, "request": {"steps": steps}, **more}).encode()


LOG = ["event", event_to_line(Log("said"))]
LINES = {
    "no JSON": b"not json", "no record": b"[]", "nothing": b"{}", "deep": b"[" * 100_000,
    "no UTF-8": b"\xff", "no name": asked(activity=1), "no list": asked(replaces="a"),
    "no settings": b'{"activity": "fake", "request": []}',
    "unknown": asked(activity="fly"), "absent": asked(activity="broken"),
    "a setting": asked(["finish"], request={"wrong": 1}),
    "a limit": asked(["finish"], request={"times": 0}),
    "a result": asked(LOG, ["finish", {"a": 1}], LOG, replaces=["a", "b"]), "no end": asked(LOG),
    "an error": asked(LOG, ["raise", "input", "the file is torn"]),
    "a full disk": asked(["raise", "space", "No space left on device"]),
    "no memory": asked(["raise", "activity", "std::bad_alloc"]),
    "out of memory": asked(["raise", "value", "std::bad_alloc"]),
    "out of memory within a limit": asked(["raise", "value", "std::bad_alloc"]),
    "a bug": asked(["raise", "value", "surprise " * 1000]),
    "a cancel": asked(LOG, ["finish"]),
}  # fmt: skip


def test_how_requests_end(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "ACTIVITIES", (FAKE, BROKEN))
    monkeypatch.setattr(registry, "activities", lambda: registry.ACTIVITIES)
    agreed: list[str] = []
    monkeypatch.setattr("dld_tui.core.files.permission.agree", agreed.extend)
    limited = "dld_tui.core.process.child.has_memory_limit"
    real, told = os.write, {}
    for name, line in LINES.items():
        reader, writer = os.pipe()
        monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:7]))
        monkeypatch.setattr(limited, lambda name=name: name.endswith("a limit"))
        control = worker.Control()
        control.cancelled = name == "a cancel"
        end = worker.run_request(line, worker.EventWriter(writer), control)
        monkeypatch.setattr(os, "write", real)
        os.close(writer)
        with open(reader, encoding="utf-8") as pipe:
            lines = [*pipe.read().splitlines(), event_to_line(end)]
        details = getattr(end, "details", None) or ""
        if details:
            assert "fake_activity.py" in details
            lines[-1] = lines[-1].replace(json.dumps(details)[1:-1], "a traceback")
        told[name] = "\n".join([*lines, f"status {worker.exit_status(end)}, replaces {agreed}"])
        agreed.clear()
    recorded("ends_of_requests", told)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_and_interrupts_once(number: signal.Signals) -> None:
    ignored = (signal.SIGINT, signal.SIGTERM)
    before = {one: signal.signal(one, signal.SIG_IGN) for one in ignored}
    control = worker.Control()
    try:
        control.handle_signals()
        signal.raise_signal(number)
        assert control.cancelled
        with control.interruptible():
            with pytest.raises(CancelledError):
                signal.raise_signal(number)
            signal.raise_signal(number)
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
