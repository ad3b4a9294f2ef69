"""Real SSH servers for tests: two for a whole run, others for a test that hurts them.

A conftest imports the fixtures that its tests want.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.sshd import Sshd


@pytest.fixture(scope="session")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """Return a server that all tests share; do not stop it."""
    server = Sshd(tmp_path_factory.mktemp("sshd")).start()
    yield server
    server.kill()


@pytest.fixture(scope="session")
def jump(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """Return a second server that all tests share, to go through."""
    server = Sshd(tmp_path_factory.mktemp("jump")).start()
    yield server
    server.kill()


@pytest.fixture
def own_sshd(tmp_path: Path) -> Iterator[Callable[..., Sshd]]:
    """Return a function that starts a server for one test, which may stop and kill it."""
    servers: list[Sshd] = []

    def start(**settings: str) -> Sshd:
        server = Sshd(tmp_path / f"sshd{len(servers)}", settings)
        servers.append(server)
        return server.start()

    yield start
    for server in servers:
        server.kill()
