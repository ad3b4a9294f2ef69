"""Connections to real SSH servers; see tests/support/ssh_fixtures.py for those."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dld_tui.core.settings.saved_targets import Connection
from dld_tui.core.settings.secrets import Secrets
from dld_tui.targets.ssh import loop
from dld_tui.targets.ssh.link import Link
from tests.support.asker import Answers
from tests.support.ssh_fixtures import jump, own_sshd, sshd
from tests.support.ssh_jobs import end_processes_of
from tests.support.sshd import Sshd

__all__ = ["connection", "jump", "link", "own_sshd", "sshd"]


@pytest.fixture
def connection(sshd: Sshd, tmp_path: Path) -> Iterator[Connection]:
    """Give a connection to the shared server, with its key, a known host and a new directory."""
    known_hosts = tmp_path / "known_hosts"
    known_hosts.write_text(sshd.known_line)
    directory = str(tmp_path / "deployed")
    yield Connection(
        "box", sshd.host, sshd.port, sshd.user, "key", sshd.user_key, known_hosts,
        config=False, directory=directory,
    )  # fmt: skip
    end_processes_of(directory)  # jobs outlive a test that fails


@pytest.fixture
def link() -> Iterator[Callable[..., Link]]:
    """Return a function that makes links, which are closed at the end."""
    links: list[Link] = []

    def make(
        connection: Connection,
        asker: Answers | None = None,
        secrets: Secrets | None = None,
        on_step: Callable[[str, str], None] | None = None,
    ) -> Link:
        links.append(Link(connection, asker or Answers(), secrets or Secrets(), on_step))
        return links[-1]

    yield make
    for made in links:
        loop.call(made.close(), 60)
