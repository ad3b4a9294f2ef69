"""A job whose input is written first, on the job's thread, and removed with its page."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dld_tui.core.errors import CancelledError, ExitStatus, SaveError
from dld_tui.core.events import Cancelled, Event, Failed
from dld_tui.core.types import JSON, CancelCheck
from dld_tui.screens.activity.job import JobScreen
from dld_tui.targets.base import Job


class PreparedJob(JobScreen):
    """Runs one job after its input is written.

    Args:
        activity: As in the registry of activities.
        request: Its settings; `prepare` may add to :attr:`request`.
        on_result: Takes the result.
        title: What runs.
        target: Where; this machine by default.
        prepare: Writes the input, once; None when there is nothing to write.
        tidy: Removes what was written; may be called more than once.
    """

    def __init__(
        self,
        activity: str,
        request: Mapping[str, JSON],
        on_result: Callable[[Any], None],
        *,
        title: str,
        target: str | None = None,
        prepare: Callable[[CancelCheck], None] | None = None,
        tidy: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(
            activity, request, on_result, title=title, target=target, start=self._begin
        )
        self._prepare = prepare
        self._tidy = tidy
        self._prepared = False
        self._stop = threading.Event()
        self._gone = threading.Event()

    def _begin(self) -> Job:
        if self._prepare is not None and not self._prepared:
            try:
                self._prepare(self._stop.is_set)
            except OSError as error:
                raise SaveError(f"the model cannot be written for this: {error}") from None
            self._prepared = True
        if self._gone.is_set():
            self._clear()
        if self._stop.is_set():
            raise CancelledError
        return self._start_on_target()

    def _clear(self) -> None:
        if self._tidy is not None:
            self._tidy()

    def take(self, events: Sequence[Event]) -> None:
        """Show a batch of events; a stop while the input is written is no failure."""
        stopped = int(ExitStatus.CANCELLED)
        super().take([
            Cancelled() if isinstance(event, Failed) and event.status == stopped else event
            for event in events
        ])  # fmt: skip

    def action_again(self) -> None:
        """Run it again."""
        self._stop.clear()
        super().action_again()

    def _cancel(self, answer: str | None) -> None:
        if answer == "stop":
            self._stop.set()
        super()._cancel(answer)

    def on_unmount(self) -> None:
        """Leave nothing running here, and nothing that was written."""
        self._gone.set()
        self._stop.set()
        super().on_unmount()
        self._clear()
