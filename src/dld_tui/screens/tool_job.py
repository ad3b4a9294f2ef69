"""A custom tool that runs: its log stays, as it is often the result."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from dld_tui.core.errors import CancelledError, ExitStatus, SaveError
from dld_tui.core.events import Cancelled, Event, Failed
from dld_tui.core.types import JSON, CancelCheck
from dld_tui.screens.job import JobScreen
from dld_tui.targets.base import Job
from dld_tui.targets.local import LocalTarget


class ToolJobScreen(JobScreen):
    """Runs a tool on this machine.

    Args:
        request: The request of the activity.
        opened: Opens the output; None when it is not to be opened.
        title: What runs.
        prepare: Writes the model that the tool gets, on the thread of the job; None when there is
            nothing to write.
        folder: A temporary folder that is removed with the page.
    """

    HELP = "Esc stops the tool and what it started. When it has ended, Esc goes back."

    def __init__(
        self,
        request: Mapping[str, JSON],
        opened: Callable[[dict[str, JSON]], None] | None,
        *,
        title: str,
        prepare: Callable[[CancelCheck], None] | None = None,
        folder: Path | None = None,
    ) -> None:
        super().__init__("run_tool", request, opened or _nothing, title=title, start=self._begin)
        self._opens = opened is not None
        self._prepare = prepare
        self._prepared = False
        self._folder = folder
        self._stop = threading.Event()

    def _begin(self) -> Job:
        if self._prepare is not None and not self._prepared:
            try:
                self._prepare(self._stop.is_set)
            except OSError as error:
                raise SaveError(f"the model cannot be written for the tool: {error}") from None
            self._prepared = True
        if self._stop.is_set():
            raise CancelledError
        return LocalTarget().start("run_tool", dict(self.request))

    def facts(self) -> set[str]:
        """Return the facts of a job; there is a result only where one is opened."""
        facts = super().facts()
        return facts if self._opens else facts - {"result"}

    def take(self, events: Sequence[Event]) -> None:
        """Show a batch of events; a stop while the model is written is no failure."""
        stopped = int(ExitStatus.CANCELLED)
        super().take([
            Cancelled() if isinstance(event, Failed) and event.status == stopped else event
            for event in events
        ])  # fmt: skip

    def action_result(self) -> None:
        """Close the page and open what the tool wrote; without that, its log stays."""
        if self._opens:
            super().action_result()

    def action_again(self) -> None:
        """Run the tool again."""
        self._stop.clear()
        super().action_again()

    def _cancel(self, answer: str | None) -> None:
        if answer == "stop":
            self._stop.set()
        super()._cancel(answer)

    def on_unmount(self) -> None:
        """Leave nothing running, and no copy of the model."""
        self._stop.set()
        super().on_unmount()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def _nothing(_: dict[str, JSON]) -> None:
    """Open nothing."""
