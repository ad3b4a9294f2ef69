"""Previews by a child process: what reads a model would stay in the memory of the program.

The child answers one question after another, gives one up when the next one comes, and ends when
nothing was asked for some seconds, or when the program has ended.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from threading import Lock, Thread
from time import monotonic
from typing import Any

from dld_tui.core.errors import CancelledError
from dld_tui.core.files.preview import Preview, preview
from dld_tui.core.types import CancelCheck

_IDLE_S = 5.0
"""A child that was not asked anything for so long ends."""
_STUCK_S = 3.0
"""One that has worked on another question for so long is left alone, and another one started."""
_LOOK_S = 0.05
_CHUNK = 1 << 16
# Isolated, so that no file of the folder that is browsed is taken for a module.
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop()); "
    "from dld_tui.core.files.previewer import main; main()"
)


class Previewer:
    """Asks the child; may be used by several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._number = 0
        self._asked_at = 0.0
        """When the question was asked that has no answer yet; 0 for none."""
        self._closed = False
        self._received = b""
        """The beginning of a line that the child has not sent to its end."""

    def preview(
        self, path: str, kind: str, cancelled: CancelCheck, reports: Iterable[str] = ()
    ) -> Preview:
        """Return what is in a file, as :func:`~dld_tui.core.files.preview.preview` does.

        Raises:
            CancelledError: `cancelled` said so, or this was closed.
        """
        while not self._lock.acquire(timeout=_LOOK_S):
            if cancelled():
                raise CancelledError
        try:
            return self._ask(path, kind, cancelled, list(reports))
        finally:
            self._lock.release()

    def _ask(self, path: str, kind: str, cancelled: CancelCheck, reports: list[str]) -> Preview:
        if self._asked_at and monotonic() - self._asked_at > _STUCK_S:
            self._end()
        self._number += 1
        question = json.dumps([self._number, path, kind, reports]).encode() + b"\n"
        try:
            process = self._send(question)
        except OSError:  # no process can be started
            return preview(path, kind, cancelled, reports)
        self._asked_at = monotonic()
        answer = self._answer(process, cancelled)
        self._asked_at = 0.0
        if answer is None:
            self._end()
            return Preview(problem="it cannot be read")
        _, lines, parts, problem = answer
        return Preview([(a, b) for a, b in lines], [(a, b, c) for a, b, c in parts], problem)

    def _send(self, question: bytes) -> subprocess.Popen[bytes]:
        """Send a question to the child, or to a new one where it has ended.

        Raises:
            OSError: There is none, and none can be started.
            CancelledError: This was closed, which another thread may do at any time.
        """
        for is_last in (False, True):
            if self._process is None or self._process.poll() is not None:
                self._end()
                self._process = _started()
            if self._closed:
                self._end()
                raise CancelledError
            assert self._process.stdin is not None  # a pipe
            try:
                self._process.stdin.write(question)
            except BrokenPipeError:  # it has just ended
                if is_last:
                    raise
                self._end()
            else:
                break
        assert self._process is not None
        return self._process

    def _answer(self, process: subprocess.Popen[bytes], cancelled: CancelCheck) -> Any:
        """Return the answer to the newest question; None when the child has ended without it.

        Raises:
            CancelledError: `cancelled` said so; the child goes on until the next question.
        """
        assert process.stdout is not None  # a pipe
        with DefaultSelector() as selector:
            selector.register(process.stdout, EVENT_READ)
            while not cancelled():
                if not selector.select(_LOOK_S):
                    continue
                part = os.read(process.stdout.fileno(), _CHUNK)
                if not part:
                    return None
                *lines, self._received = (self._received + part).split(b"\n")
                for answer in map(json.loads, lines):
                    if answer[0] == self._number:
                        return answer
        raise CancelledError

    def close(self) -> None:
        """End the child, whatever it is doing; none is started any more."""
        self._closed = True
        self._end()

    def _end(self) -> None:
        process, self._process, self._asked_at = self._process, None, 0.0
        self._received = b""
        if process is None:
            return
        process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        with suppress(subprocess.TimeoutExpired):  # on a drive that does not answer
            process.wait(_LOOK_S)


def _started() -> subprocess.Popen[bytes]:
    paths = [str(Path(__file__).parents[3]), *filter(os.path.isabs, sys.path)]
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _START, json.dumps(paths)],
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl+C in the terminal is not for it
    )
    # It ends by itself: without somebody who waits for that it would stay as a zombie.
    Thread(target=process.wait, daemon=True, name="preview child").start()
    return process


def main() -> None:
    """Answer the questions on standard input."""
    received = b""
    with DefaultSelector() as selector:
        selector.register(0, EVENT_READ)
        while selector.select(_IDLE_S):
            part = os.read(0, _CHUNK)
            if not part:
                return
            *questions, received = (received + part).split(b"\n")
            if not questions or received:
                continue  # there is a newer one
            number, path, kind, reports = json.loads(questions[-1])
            try:
                found = preview(path, kind, lambda: bool(selector.select(0)), reports)
            except CancelledError:
                continue
            answer = [number, list(found.lines), list(found.parts), found.problem]
            data = json.dumps(answer).encode() + b"\n"
            while data:
                data = data[os.write(1, data) :]
