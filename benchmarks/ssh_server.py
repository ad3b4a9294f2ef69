"""A real OpenSSH server for the benchmarks: that of the tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.sshd import Sshd


@contextmanager
def server(folder: Path) -> Iterator[Sshd]:
    """Yield a server that takes the key of the caller."""
    sshd = Sshd(folder).start()
    try:
        yield sshd
    finally:
        sshd.kill()


def connection_to(sshd: Sshd, folder: Path) -> dict[str, object]:
    """Return the fields of a connection to a server, as JSON data."""
    return {
        "name": "bench",
        "host": sshd.host,
        "port": sshd.port,
        "user": sshd.user,
        "auth": "key",
        "key": str(sshd.user_key),
        "known_hosts": str(sshd.known_hosts()),
        "config": False,
        "directory": str(folder / "deployed"),
        "python": sys.executable,
    }
