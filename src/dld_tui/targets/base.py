"""What every target and every running job can do, wherever the job runs."""

from __future__ import annotations

import types
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol, TypeVar, overload

from dld_tui.core.codec import decode
from dld_tui.core.errors import CancelledError
from dld_tui.core.events import TERMINAL, Cancelled, Event, Failed, Finished
from dld_tui.core.types import JSON

AnyJob = TypeVar("AnyJob", bound="Job")
T = TypeVar("T")


class Job(ABC):
    """One activity that runs elsewhere, seen as its events.

    One thread iterates over :meth:`events`; :meth:`cancel` may be called from any thread. A job
    that is not read does not go on for long: its output backs up and it waits. Use it as a context
    manager, or call :meth:`close`, so that nothing of it is left.
    """

    @abstractmethod
    def events(self) -> Iterator[Event]:
        """Yield events until the terminal one, which is always the last.

        Blocks while nothing happens. An iteration that was interrupted, by Ctrl+C for instance,
        can be taken up again by a second call.
        """

    @abstractmethod
    def cancel(self) -> None:
        """Ask the job to stop and see to it that it does; returns at once."""

    @abstractmethod
    def close(self) -> None:
        """End the job now, whatever it does, and free what it holds. Safe to call twice."""

    @property
    def can_leave(self) -> bool:
        """Whether :meth:`leave` would let it go on."""
        return False

    def leave(self) -> bool:
        """Let the job go on without this program, to be found again later.

        Returns:
            False where a job ends with this program: nothing was done then.
        """
        return False

    def wait(self) -> Finished | Failed | Cancelled:
        """Throw the events away and return the terminal one."""
        last: Event = Cancelled()
        for event in self.events():
            last = event
        return last if isinstance(last, TERMINAL) else Cancelled()

    @overload
    def result(self, on_event: Callable[[Event], None] | None = None, *, kind: type[T]) -> T: ...
    @overload
    def result(self, on_event: Callable[[Event], None] | None = None) -> Any: ...
    def result(self, on_event: Callable[[Event], None] | None = None, *, kind: Any = None) -> Any:
        """Run to the end and return the result. Ctrl+C cancels, a second one ends it at once.

        Args:
            on_event: Called with every event but the terminal one.
            kind: What the result is; JSON data without.

        Raises:
            DldError: The job failed or was cancelled; of the class for its exit status.
        """
        asked = False
        while True:
            try:
                found = self._result(on_event)
                return found if kind is None else decode(kind, found)
            except KeyboardInterrupt:
                if asked:
                    self.close()
                    raise CancelledError from None
                asked = True
                self.cancel()

    def _result(self, on_event: Callable[[Event], None] | None) -> JSON:
        for event in self.events():
            if isinstance(event, Finished):
                found: JSON = event.result
                return found
            if isinstance(event, Failed):
                raise event.to_error()
            if isinstance(event, Cancelled):
                raise CancelledError(hint=event.left or None)
            if on_event is not None:
                on_event(event)
        raise CancelledError

    def __enter__(self: AnyJob) -> AnyJob:
        """Return the job."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: types.TracebackType | None,
    ) -> None:
        """Close the job."""
        self.close()


class Target(Protocol):
    """A place where jobs run."""

    @property
    def name(self) -> str:
        """How users call it, e.g. in ``--target NAME``."""

    def start(self, activity_id: str, request: Mapping[str, JSON]) -> Job:
        """Start an activity; what goes wrong later comes as an event.

        Args:
            activity_id: As in :data:`dld_tui.activities.registry.ACTIVITIES`.
            request: The request as JSON data (:func:`dld_tui.core.params.to_json`).

        Raises:
            UnavailableError: The target cannot run anything.
        """
