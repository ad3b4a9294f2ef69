"""Runs of activities in the process of the test."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dld_tui.core.events import Event, Finished, Progress

_LONGEST_S = 240


def finished(events: Iterable[Event]) -> Any:
    """Run an activity to its end; return its result.

    Of a stage that counts nothing and has no known end nothing is done, and no time that a result
    says can be longer than a test.
    """
    last = None
    for last in events:
        if isinstance(last, Progress) and last.total is None and not last.unit:
            assert last.done == 0, last
    assert isinstance(last, Finished)
    took = getattr(last.result, "seconds", 0.0)
    if isinstance(took, float):
        assert 0 <= took < _LONGEST_S
    return last.result
