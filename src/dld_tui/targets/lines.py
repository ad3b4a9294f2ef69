"""What a worker process says beside its events: its lines, and how it ended."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator

_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
_LEVEL = re.compile(r"\[([VIWEF])(?:[:\]])")
_CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)
_LEVELS = {"V": "debug", "I": "info", "W": "warning", "E": "error", "F": "error"}


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
        """Yield what came after the last newline, if anything did."""
        if self._line:
            yield self._take()

    def _keep(self, part: bytes) -> None:
        self._line += part[: self._limit - len(self._line)]

    def _take(self) -> bytes:
        line = bytes(self._line)
        self._line.clear()
        return line


def log_text(line: bytes, limit: int = 4000) -> tuple[str, str]:
    """Return the text and the level of a line that a library printed; no text for a harmless one.

    Colours are taken out; of a progress bar that redraws itself the last state stays. The level is
    that of the marks of ONNX Runtime, TensorRT and Polygraphy, such as ``[W:`` and ``[E]``.
    """
    text = line.decode("utf-8", "surrogateescape").rstrip("\r")
    text = _COLOUR.sub("", text.rsplit("\r", 1)[-1]).rstrip()
    if len(text) > limit:
        text = text[:limit] + "…"
    if any(harmless.search(text) for harmless in _HARMLESS):
        return "", "debug"
    mark = _LEVEL.search(text[:200])
    return text, _LEVELS[mark.group(1)] if mark else "info"


def describe_end(code: int | None) -> tuple[str, str | None]:
    """Return what happened and what to do, for a process that ended without saying.

    Args:
        code: As :attr:`subprocess.Popen.returncode`: the negative number of a signal, or the exit
            status; None when the process does not end.
    """
    if code is None:
        return "the worker process does not end, not even on SIGKILL", "A device or disk may hang"
    if code >= 0:
        return f"the worker process ended with exit status {code} and without a result", None
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    if -code == signal.SIGKILL:
        return f"the worker process was killed ({name})", "The machine may have run out of memory"
    if -code in _CRASHES:
        return f"the worker process crashed ({name})", "The fault is in a native library"
    return f"the worker process was ended by {name}", None
