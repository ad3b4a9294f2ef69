"""Runs of activities in the process of the test."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dld_tui.core.events import Event, Finished


def finished(events: Iterable[Event]) -> Any:
    """Run an activity to its end; return its result."""
    *_, last = events
    assert isinstance(last, Finished)
    return last.result
