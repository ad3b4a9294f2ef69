"""What every target and every running job can do, wherever the job runs."""

from __future__ import annotations

import re
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol, TypeVar, overload

from dld_tui.core.codec import decode
from dld_tui.core.errors import CancelledError
from dld_tui.core.events import TERMINAL, Cancelled, Event, Failed, Finished
from dld_tui.core.notes import NoteKind
from dld_tui.core.text import without_escapes
from dld_tui.core.types import JSON

AnyJob = TypeVar("AnyJob", bound="Job")
T = TypeVar("T")


class Job(ABC):
    """One activity that runs elsewhere, seen as its events.

    One thread iterates over :meth:`events`; :meth:`cancel` may be called from any thread. A job
    that is not read does not go on for long: its output backs up and it waits. Use it as a context
    manager, or call :meth:`close`, so that nothing of it is left.
    """

    was_interrupted: bool = False
    """Whether Ctrl+C was pressed while its result was waited for, though it may have one."""

    @abstractmethod
    def events(self) -> Iterator[Event]:
        """Yield events up to the terminal one, which is always the last.

        Blocks until something happens. An iteration that was interrupted, by Ctrl+C for instance,
        can be continued by a second call.
        """

    @abstractmethod
    def cancel(self) -> None:
        """Ask the job to stop, and enforce it; returns immediately."""

    @abstractmethod
    def close(self) -> None:
        """End the job now, in any state, and free its resources. Safe to call twice."""

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
        """Run to the end and return the result. Ctrl+C cancels, a second one kills the job.

        One that comes too late to end the job is recorded: see :attr:`was_interrupted`.

        Args:
            on_event: Called with every event except the terminal one.
            kind: The type of the result; JSON data by default.

        Raises:
            DldError: The job failed or was cancelled; of the class for its exit status.
        """
        asked = False
        while True:
            try:
                data = self._result(on_event)
                return data if kind is None else decode(kind, data)
            except KeyboardInterrupt:
                if asked:
                    self.close()
                    raise CancelledError from None
                asked = self.was_interrupted = True
                self.cancel()

    def _result(self, on_event: Callable[[Event], None] | None) -> JSON:
        for event in self.events():
            if isinstance(event, Finished):
                data: JSON = event.result
                return data
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

    def __exit__(self, *_: object) -> None:
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


_LEVEL = re.compile(r"\[([VIWEF])(?:[:\]])")
_CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)
_LEVELS = {
    "V": NoteKind.DEBUG,
    "I": NoteKind.INFO,
    "W": NoteKind.WARNING,
    "E": NoteKind.ERROR,
    "F": NoteKind.ERROR,
}


_HARMLESS = tuple(
    re.compile(rf"\[W:onnxruntime:[^\]]*\] {text}")
    for text in (
        # CUDA becomes a plugin of ONNX Runtime; the one that is built in works without it.
        r"No registered plugin EP device found for '\w+'",
        # It looks for graphics cards in /sys/class/drm, which containers do not have.
        r"GPU device discovery failed: .*/sys/class/drm/",
        # What exporters leave behind: the result is the same, and dld check names it.
        r"Removing initializer '.*'\. It is not used by any node",
    )
)
"""Warnings of ONNX Runtime 1.23 to 1.31 that say nothing of the job; most come every time."""


class LineCutter:
    """Collects bytes and yields whole lines; the rest of a line beyond `limit` bytes is lost."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._line = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the lines that `data` completes, without their newline."""
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            self._keep(data[start:end])
            yield self._take()
            start = end + 1
        self._keep(data[start:])

    def rest(self) -> Iterator[bytes]:
        """Yield the text after the last newline, if any."""
        if self._line:
            yield self._take()

    def _keep(self, part: bytes) -> None:
        self._line += part[: self._limit - len(self._line)]

    def _take(self) -> bytes:
        line = bytes(self._line)
        self._line.clear()
        return line


def log_text(line: bytes, limit: int = 4000) -> tuple[str, NoteKind]:
    """Return the text and the level of a line that a library printed; no text for a harmless one.

    Colours are removed; a redrawn progress bar is reduced to its last state. The level is
    that of the marks of ONNX Runtime, TensorRT and Polygraphy, such as ``[W:`` and ``[E]``.
    """
    text = line.decode("utf-8", "surrogateescape").rstrip("\r")
    text = without_escapes(text.rsplit("\r", 1)[-1]).rstrip()
    if len(text) > limit:
        text = text[:limit] + "…"
    if any(harmless.search(text) for harmless in _HARMLESS):
        return "", NoteKind.DEBUG
    mark = _LEVEL.search(text[:200])
    return text, _LEVELS[mark.group(1)] if mark else NoteKind.INFO


_LIBRARIES = {"onnxruntime": "ONNX Runtime", "tensorrt": "TensorRT", "onnx": "onnx"}
_CRASHED_IN = re.compile(r'^Current thread [^\n]*\n\s*File "[^"\n]*-packages/(\w+)/', re.MULTILINE)
"""Where Python's fault handler says that a native library was called."""


def describe_end(code: int | None, log: str = "") -> tuple[str, str | None]:
    """Return the error and the hint for a process that ended without a terminal event.

    Args:
        code: As :attr:`subprocess.Popen.returncode`: the negative number of a signal, or the exit
            status; None if the process does not end.
        log: Its last lines of output.
    """
    if code is None:
        return "the worker process does not end, even on SIGKILL", "A device or disk may hang"
    if code >= 0:
        return f"the worker process ended with exit status {code} and without a result", None
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    if -code == signal.SIGKILL:
        return f"the worker process was killed ({name})", "The machine may have run out of memory"
    if -code in _CRASHES:
        place = _CRASHED_IN.search(log)
        library = _LIBRARIES.get(place[1]) if place is not None else None
        if library is not None:
            hint = f"The fault is in {library}; `dld check` may find the node"
            return f"{library} crashed ({name})", hint
        return f"the worker process crashed ({name})", "The fault is in a native library"
    return f"the worker process was ended by {name}", None
