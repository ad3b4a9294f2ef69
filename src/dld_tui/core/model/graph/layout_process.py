"""Order, rails and folds of a large graph in a child process.

All of it is Python over many small objects: on a thread it would take the interpreter from the
event loop, which is drawing the first rows then. The child is started while the graph is still
being read, gets it once, answers, and ends.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector
from time import monotonic

from dld_tui.core.errors import CancelledError
from dld_tui.core.model.graph.folding import Arrangement
from dld_tui.core.model.graph.graph import Graph
from dld_tui.core.model.graph.layout_exchange import arranged_of, graph_bytes
from dld_tui.core.process.child import Child
from dld_tui.core.types import CancelCheck

_MOST_S = 60.0
"""When a child has not answered by then, it is ended, and the graph is arranged here."""
_LOOK_S = 0.1
_CHUNK = 1 << 20
"""Bytes that a pipe takes at a time: after each, this thread waits for the interpreter again."""
# Isolated, and without the packages of the site, none of which it needs: so it starts faster.
_START = (
    "import sys; sys.path.insert(0, sys.argv.pop()); "
    "from dld_tui.core.model.graph.layout_exchange import main; main()"
)


class LayoutProcess:
    """A child process that arranges one graph; without a process where none can be started.

    Close it, whatever happens.
    """

    def __init__(self) -> None:
        root = Path(__file__).parents[4]
        command = [sys.executable, "-I", "-S", "-c", _START, str(root)]
        self._process: Child | None = None
        try:
            self._process = Child(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except OSError:
            return
        if sys.platform == "linux":
            for pipe in (self._process.stdin, self._process.stdout):
                assert pipe is not None  # asked for above
                with suppress(OSError):  # more than this user may have
                    fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _CHUNK)

    def arrange(self, graph: Graph, cancelled: CancelCheck) -> Arrangement | None:
        """Return the arrangement of a graph; None when the process has failed.

        Raises:
            CancelledError: `cancelled` said so.
        """
        if self._process is None:
            return None
        answer = _answer(self._process, graph_bytes(graph), cancelled)
        if answer is None:
            return None
        try:
            return arranged_of(answer)
        except ValueError:  # it has failed before its end
            return None

    def close(self) -> None:
        """End the process, whatever it is doing."""
        if self._process is not None:
            self._process.close()


def _answer(process: Child, data: bytes, cancelled: CancelCheck) -> bytes | None:
    """Send data to a process and return all it says; None when it takes too long.

    Raises:
        CancelledError: `cancelled` said so.
    """
    assert process.stdin is not None  # both are pipes
    assert process.stdout is not None
    os.set_blocking(process.stdin.fileno(), False)
    waiting = memoryview(data)
    parts: list[bytes] = []
    deadline = monotonic() + _MOST_S
    with DefaultSelector() as selector:
        selector.register(process.stdin, EVENT_WRITE)
        selector.register(process.stdout, EVENT_READ)
        while monotonic() < deadline:
            if cancelled():
                raise CancelledError
            for key, _ in selector.select(_LOOK_S):
                if key.fileobj is process.stdout:
                    part = os.read(key.fd, _CHUNK)
                    if not part:
                        return b"".join(parts)
                    parts.append(part)
                    continue
                try:
                    waiting = waiting[os.write(key.fd, waiting[:_CHUNK]) :]
                except BrokenPipeError:  # it has failed, and its answer ends, too
                    waiting = waiting[:0]
                if not waiting:
                    selector.unregister(process.stdin)
                    process.stdin.close()
    return None
