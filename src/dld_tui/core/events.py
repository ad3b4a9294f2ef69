"""The events of a job: one JSON object per line, and exactly one terminal event.

``started``, then any number of ``progress``, ``log``, ``metric`` and ``part``, then one of
``finished``, ``failed`` and ``cancelled``. The same lines come from a local child process and
from a remote one.
"""

from __future__ import annotations

import contextlib
import json
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import field
from time import monotonic
from typing import Any, TypeAlias, TypeVar

from dld_tui.core.codec import decode, encode, optional
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import (
    ActivityError,
    CancelledError,
    DldError,
    ExitStatus,
    InputError,
    UnavailableError,
    UsageError,
)
from dld_tui.core.notes import NoteKind
from dld_tui.core.types import NodePlace

E = TypeVar("E")
R = TypeVar("R")
S = TypeVar("S")


@dataclass(frozen=True)
class Started:
    """The worker has read its request and begins."""

    activity: str
    title: str = ""


@dataclass(frozen=True)
class Phase:
    """A current part of a stage."""

    name: str
    """Untrusted text."""
    depth: int
    done: float = 0
    total: float | None = None


@dataclass(frozen=True)
class Progress:
    """How far a stage is."""

    done: float
    total: float | None = None
    """None when unknown."""
    unit: str = ""
    stage: str = ""
    phases: list[Phase] = optional(factory=list)
    """The parts of the stage as a tree: each phase follows the one that contains it, and is one
    level deeper; the stage itself is not included."""


@dataclass(frozen=True)
class Log:
    """A note on its way from a job: a line for people.

    `text` may come from a library or a host: untrusted text.
    """

    text: str
    level: NoteKind = NoteKind.INFO


@dataclass(frozen=True)
class Metric:
    """A measured figure for live display."""

    name: str
    value: float
    unit: str = ""


@dataclass(frozen=True)
class Part:
    """A piece of a large result, so that no line takes long to read; the activity documents it."""

    data: Any
    """A dataclass of the activity; as read from a worker it is JSON data."""


@dataclass(frozen=True)
class Finished:
    """The work is done."""

    result: Any = field(default_factory=dict)
    """The result of the activity, a dataclass; as read from a worker it is JSON data."""


@dataclass(frozen=True)
class Failed:
    """The work failed; `status` is the exit status of the command that ran it."""

    message: str
    where: str | None = None
    hint: str | None = None
    details: str | None = None
    status: int = int(ExitStatus.FAILED)
    finding: NodePlace | None = optional()
    """Where in a model: see :attr:`DldError.finding`."""

    @classmethod
    def from_error(cls, error: DldError) -> Failed:
        """Turn an error into the event that carries it to the other process."""
        return cls(
            error.message,
            error.where,
            error.hint,
            error.details,
            int(error.status),
            error.finding,
        )

    def to_error(self) -> DldError:
        """Return the error again, of the class that has the same exit status."""
        kinds = (UsageError, InputError, UnavailableError, CancelledError)
        kind = next((k for k in kinds if int(k.status) == self.status), ActivityError)
        error = kind(self.message, where=self.where, hint=self.hint, details=self.details)
        error.finding = self.finding
        return error


@dataclass(frozen=True)
class Cancelled:
    """The work was stopped on request; nothing half-written is left."""

    left: str = optional("")
    """Completed work that is kept, for display. Untrusted text."""


Event: TypeAlias = "Started | Progress | Log | Metric | Part | Finished | Failed | Cancelled"
TERMINAL = (Finished, Failed, Cancelled)


_KINDS: dict[str, type[Event]] = {
    kind.__name__.lower(): kind
    for kind in (Started, Progress, Log, Metric, Part, Finished, Failed, Cancelled)
}


def event_to_line(event: Event) -> str:
    """Return one line of JSON, without its newline.

    Raises:
        TypeError: The event holds something that is not JSON data.
    """
    return json.dumps({"event": type(event).__name__.lower(), **encode(event)})


def event_from_line(line: str) -> Event | None:
    """Return the event of a line, or None when the line is not one (a library printed it)."""
    if not line.startswith("{"):
        return None
    try:
        data = json.loads(line)
        event = decode(_KINDS[data.pop("event")], data)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, ActivityError):
        return None  # not an event: the caller shows it as a line of the log
    if isinstance(event, Finished) and not isinstance(event.result, dict):
        return None
    return event


def events_of(steps: Generator[S, Any, R], event: Callable[[S], E | None]) -> Generator[E, None, R]:
    """Yield an event, or none, for each step of some work, and return what the work comes to.

    The work is closed when this is.
    """
    with contextlib.closing(steps):
        while True:
            try:
                step = next(steps)
            except StopIteration as end:
                result: R = end.value
                return result
            if (step_event := event(step)) is not None:
                yield step_event


def result_of(steps: Generator[Any, Any, R]) -> R:
    """Run a generator to its end and return its result; ignore its steps."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: R = end.value
            return result


_RATE_WINDOW_S = 5.0


class RateMeter:
    """How fast a stage goes, over its last seconds, and how long it will take."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._stage: tuple[str, str] | None = None
        self._points: deque[tuple[float, float]] = deque()

    def add(self, progress: Progress) -> None:
        """Note how far the stage is."""
        now = self._clock()
        if self._stage != (progress.stage, progress.unit):
            self._stage = (progress.stage, progress.unit)
            self._points.clear()
        self._points.append((now, progress.done))
        while len(self._points) > 2 and now - self._points[0][0] > _RATE_WINDOW_S:
            self._points.popleft()

    @property
    def rate(self) -> float | None:
        """Units per second; None while unknown."""
        if len(self._points) < 2:
            return None
        (start, first), (end, last) = self._points[0], self._points[-1]
        return (last - first) / (end - start) if end > start and last > first else None

    def left(self, progress: Progress) -> float | None:
        """Return the seconds that are left, or None while it is not known."""
        rate = self.rate
        if rate is None or progress.total is None:
            return None
        return max(0.0, progress.total - progress.done) / rate
