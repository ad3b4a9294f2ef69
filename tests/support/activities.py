"""Runs of activities in the process of the test."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dld_tui.core.events import Event, Finished, Progress


def finished(events: Iterable[Event]) -> Any:
    """Run an activity to its end; return its result.

    Of a stage that counts nothing and has no known end nothing is done.
    """
    last = None
    for last in events:
        if isinstance(last, Progress) and last.total is None and not last.unit:
            assert last.done == 0, last
    assert isinstance(last, Finished)
    return last.result
