"""Connections to real SSH servers; see tests/support/ssh_fixtures.py for those."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dld_tui.core.settings.saved_targets import Connection, changed
from dld_tui.core.settings.secrets import Secrets
from dld_tui.targets.ssh import loop
from dld_tui.targets.ssh.channel import Agent
from dld_tui.targets.ssh.link import Link
from tests.support.asker import Answers
from tests.support.ssh_fixtures import forks, jump, own_sshd, shared_jump, shared_sshd, sshd
from tests.support.ssh_jobs import Agents, Links, end_processes_of
from tests.support.sshd import Sshd
from tests.support.tiny_wheel import write_wheel

__all__ = [
    "connection", "forks", "jump", "link", "own_sshd", "shared_jump", "shared_sshd", "sshd",
]  # fmt: skip


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
def link() -> Iterator[Links]:
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


@pytest.fixture
def agent(connection: Connection) -> Iterator[Agents]:
    """Return a function that makes agents which are ready, with the Python of the tests."""
    made: list[Agent] = []

    def make(there: Connection = connection, *, ready: bool = True, **changes: Any) -> Agent:
        python = sys.executable if there.python == "python3" else there.python
        made.append(Agent(Link(changed(there, **{"python": python, **changes}), Answers())))
        if ready:
            loop.call(made[-1].make_ready(), 60)
        return made[-1]

    yield make
    for one in made:
        loop.call(one.link.close(), 60)


@pytest.fixture
def wheel_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels, the only place where the pip here looks."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    write_wheel(folder)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """Return a function that gives a file system of its own, of so many megabytes."""
    disks: list[Path] = []

    def mount(megabytes: int) -> Path:
        disk = tmp_path / f"disk{len(disks)}"
        disk.mkdir()
        command = f"mount -t tmpfs -o size={megabytes}m none '{disk}' 2>/dev/null"
        if os.geteuid() != 0 or os.system(command):
            pytest.skip("no file system can be mounted here")
        disks.append(disk)
        return disk

    yield mount
    for disk in disks:
        os.system(f"umount -l '{disk}'")
