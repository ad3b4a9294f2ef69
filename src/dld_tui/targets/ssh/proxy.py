"""A ``ProxyCommand``: a process whose standard input and output are the line.

asyncssh can start one too, but takes what it prints to standard error for data of the line.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Sequence

_LAST = 400
"""Bytes of its standard error that are kept for a message."""
_LEAVE_S = 1.0


class Proxy:
    """One running command.

    Args:
        arguments: The program and its arguments.

    Raises:
        OSError: It cannot be started.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        self.socket, theirs = socket.socketpair()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        try:
            self._process = subprocess.Popen(
                list(arguments),
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=self._errors.fileno(),
                start_new_session=True,  # Ctrl+C is for us
            )
        except OSError:
            self.socket.close()
            self._errors.close()
            raise
        finally:
            theirs.close()

    def last_words(self) -> str:
        """Return the last line that it printed to standard error; foreign text."""
        if self._errors.closed:
            return ""
        size = os.fstat(self._errors.fileno()).st_size
        data = os.pread(self._errors.fileno(), _LAST, max(0, size - _LAST))
        lines = data.decode("utf-8", "surrogateescape").strip().splitlines()
        return lines[-1] if lines else ""

    def close(self) -> None:
        """End it; waits a moment at most. Safe to call twice."""
        self.socket.close()  # the transport that used it may have closed it before
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self._process.poll() is None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._process.pid, number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(_LEAVE_S)
        self._errors.close()
