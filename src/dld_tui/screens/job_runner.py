"""A running job seen from the event loop: its events come in batches, at most 20 a second."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic

from textual.message import Message
from textual.widget import Widget

from dld_tui.core.errors import DldError
from dld_tui.core.events import Event, Failed
from dld_tui.targets.base import Job

_PERIOD_S = 0.05


class JobRunner:
    """Drains a job in one thread and gives its events, in order and in batches, to a widget.

    One message an event would stall the event loop for half a second in a burst of 4,000. The first
    event of a batch announces it; the widget's handler must call :meth:`take` and later
    :meth:`announced` again, as :meth:`drain_into` does.
    """

    @dataclass
    class Ready(Message):
        """There are events to take."""

        runner: JobRunner

    def __init__(self, start: Callable[[], Job]) -> None:
        self._start = start
        self._job: Job | None = None
        self._lock = threading.Lock()
        self._pending: list[Event] = []
        self._announced = False
        self._is_cancelled = False
        self._taken_at = 0.0

    def run(self, widget: Widget) -> None:
        """Run to the end; call it in a thread worker."""
        try:
            job = self._start()
        except DldError as error:
            return self._add(Failed.from_error(error), widget)
        with self._lock:
            self._job = job
            cancelled = self._is_cancelled
        if cancelled:
            job.cancel()
        with job:
            for event in job.events():
                self._add(event, widget)
        return None

    def _add(self, event: Event, widget: Widget) -> None:
        with self._lock:
            self._pending.append(event)
            announce, self._announced = not self._announced, True
        if announce:
            widget.post_message(self.Ready(self))

    def drain_into(self, widget: Widget, handle: Callable[[Sequence[Event]], None]) -> None:
        """Hand the waiting events over, now or when the last batch is old enough."""
        wait = self._taken_at + _PERIOD_S - monotonic()
        if wait > 0:
            widget.set_timer(wait, lambda: self.drain_into(widget, handle))
            return
        with self._lock:
            events, self._pending = self._pending, []
            self._announced = False
        self._taken_at = monotonic()
        if events:
            handle(events)

    def cancel(self) -> None:
        """Ask the job to stop; returns at once."""
        with self._lock:
            self._is_cancelled = True
            job = self._job
        if job is not None:
            job.cancel()

    @property
    def can_leave(self) -> bool:
        """Whether the job goes on when the program ends."""
        with self._lock:
            return self._job is not None and self._job.can_leave

    def leave(self) -> None:
        """Let the job go on elsewhere, or end it now where it cannot."""
        with self._lock:
            self._is_cancelled = self._job is None  # it starts just now
            job = self._job
        if job is not None and not job.leave():
            job.close()
