from __future__ import annotations

import pytest

from dld_tui.core.errors import (
    ActivityError,
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


def test_the_rate_is_that_of_the_last_seconds() -> None:
    times = iter([0.0, 1.0, 5.0, 5.5, 7.0])
    meter, rates = RateMeter(lambda: next(times)), []
    for done in (0, 50, 54, 58, 60):
        meter.add(Progress(done, 100))
        rates.append(meter.rate)
    assert rates[0] is None
    assert rates[1:] == pytest.approx([50.0, 10.8, 8 / 4.5, 3.0])
