"""Count the work of a call: unlike its time, it is the same on any machine and under any load."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


def steps_in(work: Callable[..., object], *arguments: object) -> int:
    """Return how many lines of Python a call runs in this thread, those of its callees included.

    A loop inside a C function (``list.index``, a regular expression) is one step: show by size that
    such a loop ends.
    """
    steps = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        nonlocal steps
        steps += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work(*arguments)
    finally:
        sys.settrace(before)
    return steps


@contextmanager
def database_work(connection: sqlite3.Connection) -> Iterator[list[int]]:
    """Count what a database does inside; the only item of the list is in thousands of steps."""
    count = [0]

    def note() -> None:
        count[0] += 1

    connection.set_progress_handler(note, 1000)
    try:
        yield count
    finally:
        connection.set_progress_handler(None, 0)
