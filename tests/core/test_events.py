from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

import pytest

from dld_tui.core.errors import (
    ActivityError,
    CancelledError,
    DldError,
    InputError,
    UnavailableError,
    UsageError,
)
from dld_tui.core.events import (
    Cancelled,
    Event,
    Failed,
    Finished,
    Log,
    Metric,
    Part,
    Phase,
    Progress,
    RateMeter,
    Started,
    event_from_line,
    event_to_line,
    events_of,
    result_of,
)
from dld_tui.core.notes import NoteKind
from dld_tui.core.types import NodePlace

EVENTS: list[Event] = [
    Started("profile", "Profile"),
    Progress(1),
    Progress(0.5, 2, "s", "Measuring"),
    Log("é\x1b[0m\n", NoteKind.WARNING),
    Metric("latency", 1.25, "ms"),
    Part({"types": {"a": ["float32", None]}}),
    Finished({"report": "a", "list": [1, None, {"x": True}]}),
    Failed("no", "m.onnx", "try", "traceback", 3),
    Failed("no"),
    Cancelled(),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_is_one_ascii_line_and_comes_back_equal(event: Event) -> None:
    line = event_to_line(event)

    assert line.isascii()
    assert "\n" not in line
    assert event_from_line(line) == event


@pytest.mark.parametrize(
    "line",
    [
        "",
        "text",
        "[]",
        "{}",
        "{",
        '"started"',
        '{"event": "unknown"}',
        '{"event": ["log"]}',
        '{"event": "log"}',
        '{"event": "log", "text": 1}',
        '{"event": "progress", "done": "1"}',
        '{"event": "progress", "done": true}',
        '{"event": "progress", "done": null}',
        '{"event": "progress", "done": 1, "total": "2"}',
        '{"event": "metric", "name": "x", "value": []}',
        '{"event": "failed", "message": "x", "status": "5"}',
        '{"a":' * 100_000,
    ],
)
def test_what_is_not_an_event_is_none(line: str) -> None:
    assert event_from_line(line) is None


@pytest.mark.parametrize(
    "kind", [UsageError, InputError, UnavailableError, ActivityError, CancelledError]
)
def test_an_error_comes_back_with_its_status(kind: type[DldError]) -> None:
    error = kind("what", where="m.onnx", hint="next", details="more")
    back = Failed.from_error(error).to_error()

    assert type(back) is kind
    assert (str(back), back.details) == (str(error), "more")


def test_new_fields_are_left_out_while_they_are_empty_and_newer_ones_passed_over() -> None:
    assert "phases" not in event_to_line(Progress(1, 2))
    assert "finding" not in event_to_line(Failed("no"))
    phases = [Phase("costs", 0, 1)]
    finding = NodePlace("m.onnx", (), "conv1")
    for event in (Progress(1, 2, phases=phases), Failed("no", finding=finding)):
        assert event_from_line(event_to_line(event)) == event
    assert event_from_line('{"event": "progress", "done": 1, "phases": {}}') is None
    assert event_from_line('{"event": "log", "text": "x", "more": 1}') == Log("x")
    error = ActivityError("no operator")
    error.finding = finding
    assert Failed.from_error(error).to_error().finding == finding


def work(said: list[str]) -> Generator[int, None, str]:
    try:
        yield 1
        yield 2
        said.append("whole")
    finally:
        said.append("closed")
    return "result"


def test_the_steps_of_some_work_become_events_or_none() -> None:
    said: list[str] = []

    def both() -> Generator[Progress, None, str]:
        steps = work(said)
        return (yield from events_of(steps, lambda at: Progress(at) if at > 1 else None))

    events = both()
    assert next(events) == Progress(2)
    with pytest.raises(StopIteration, match="result"):
        next(events)
    assert said == ["whole", "closed"]
    assert result_of(work(said)) == "result"
    left = events_of(work(said), Progress)
    next(left)
    left.close()
    assert said[-2:] == ["closed", "closed"], "work is closed with its events"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def rate_of(meter: RateMeter) -> float | None:
    return meter.rate


@pytest.mark.parametrize(
    ("points", "rates", "left"),
    [  # When, how much was done then, and of which stage and unit.
        ([(0, 0), (2, 10), (4, 10), (5, 20)], [None, 5.0, 2.5, 4.0], 20.0),
        ([(0, 0), (1, 50), (5, 54), (5.5, 58), (7, 60)], [None, 50.0, 10.8, 8 / 4.5, 3.0], 40 / 3),
        ([(0, 0), (60, 6), (120, 12)], [None, 0.1, 0.1], 880.0),
        ([(1, 0), (1, 10), (2, 9), (3, 0)], [None, None, 9.0, None], None),
        ([(0, 0, "a"), (1, 10, "a"), (2, 0, "b"), (4, 4, "b")], [None, 10.0, None, 2.0], 48.0),
        ([(0, 0, "a"), (1, 10, "a"), (2, 0, "a", "s")], [None, 10.0, None], None),
        ([(0, 0), (2, 200)], [None, 100.0], 0.0),
    ],
)
def test_the_rate_is_that_of_the_last_seconds(
    points: list[tuple[Any, ...]], rates: list[float | None], left: float | None
) -> None:
    clock = Clock()
    meter = RateMeter(clock)
    found = []
    for now, done, *stage in points:
        clock.now = float(now)
        progress = Progress(done, 100, *reversed(["", *stage] if len(stage) < 2 else stage))
        meter.add(progress)
        found.append(rate_of(meter))
    assert found == [None if rate is None else pytest.approx(rate) for rate in rates]
    assert meter.left(progress) == (None if left is None else pytest.approx(left))
    assert meter.left(replace(progress, total=None)) is None
