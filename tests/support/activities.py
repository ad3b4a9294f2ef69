"""Runs of activities in the process of the test."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dld_tui.core.events import TERMINAL, Event, Finished, Log, Metric, Part, Progress

_LONGEST_S = 240


def finished(events: Iterable[Event]) -> Any:
    """Run an activity to its end; return its result.

    Nothing comes after the result. What is done is part of all; of a stage that counts nothing and
    has no known end nothing is done. No time that a result says can be longer than a test.
    """
    last, events = None, iter(events)
    for last in events:
        assert isinstance(last, (Progress, Log, Metric, Part, *TERMINAL)), last
        if isinstance(last, Progress):
            if last.total is not None:
                assert 0 <= last.done <= last.total, last
            elif not last.unit:
                assert last.done == 0, last
        if isinstance(last, TERMINAL):
            break
    assert isinstance(last, Finished)
    assert next(events, None) is None
    took = getattr(last.result, "seconds", 0.0)
    if isinstance(took, float):
        assert 0 <= took < _LONGEST_S
    return last.result
