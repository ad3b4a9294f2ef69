"""Keeps what native libraries print away from the screen.

Textual draws on standard error, and libraries such as CUDA or onnxruntime write to descriptors 1
and 2 whenever they like. While the guard holds, the screen has a private descriptor and 1 and 2
lead to a log file.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from dld_tui.core.process import paths

_MOST = 2_000_000
"""Bytes of the log after which it starts again."""


def is_terminal(stream: IO[str] | None) -> bool:
    """Return whether a stream is a terminal that can move its cursor."""
    return stream is not None and stream.isatty() and os.environ.get("TERM", "") != "dumb"


def log_path() -> Path:
    """Return the file that takes stray output and the tracebacks of crashes."""
    return paths.state_dir() / "log"


def log(text: str) -> Path | None:
    """Add text to the log; returns its path, or None when it cannot be written."""
    try:
        with open(_open_log(), "a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text.rstrip("\n") + "\n")
    except OSError:
        return None
    return log_path()


def _open_log() -> int:
    path = log_path()
    paths.ensure(path.parent)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    if path.exists() and path.stat().st_size > _MOST:
        flags |= os.O_TRUNC
    return os.open(path, flags, 0o600)


@contextmanager
def guarded() -> Iterator[Callable[[], None]]:
    """Give the screen its own descriptor and send 1 and 2 to the log, until the block ends.

    When the log cannot be opened, stray output is thrown away. With standard error redirected
    (``2>file``) the screen is drawn where standard output goes.

    Yields:
        A function that gives 1 and 2 back before the block ends; any thread may call it.
    """
    screen = os.dup(2 if os.isatty(2) else 1)
    saved = {number: os.dup(number) for number in (1, 2)}
    files = (sys.__stdout__, sys.__stderr__, sys.stdout, sys.stderr)
    try:
        sink = _open_log()
    except OSError:
        sink = os.open(os.devnull, os.O_WRONLY)
    drawn = open(screen, "w", encoding="utf-8", errors="backslashreplace", newline="\n")  # noqa: SIM115
    try:
        for number in saved:
            os.dup2(sink, number)
        # Textual measures the terminal through the one and draws through the other.
        sys.__stdout__ = sys.__stderr__ = sys.stdout = sys.stderr = drawn  # type: ignore[misc]
        yield lambda: _give_back(saved)
    finally:
        sys.__stdout__, sys.__stderr__, sys.stdout, sys.stderr = files  # type: ignore[misc]
        _give_back(saved)
        for copy in saved.values():
            os.close(copy)
        os.close(sink)
        with suppress(OSError):  # the terminal may have gone
            drawn.close()


def _give_back(saved: Mapping[int, int]) -> None:
    for number, copy in saved.items():
        os.dup2(copy, number)
