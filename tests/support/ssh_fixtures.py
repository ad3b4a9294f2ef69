"""SSH servers for tests: two for a whole run, others for a test that hurts them.

The two are in the process of the tests, and commands of Python are forks of it
(:class:`ForkingSshd`). Tests with the mark ``real_workers`` have processes and a package there as
users do. A server of one test is a process. A conftest imports the fixtures that its tests want.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dld_tui.targets.ssh import bootstrap
from dld_tui.targets.ssh.remote import supervisor
from tests.support.forking_sshd import ForkingSshd
from tests.support.sshd import Sshd


@pytest.fixture(scope="session")
def shared_sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkingSshd]:
    """Return the server behind `sshd`."""
    server = ForkingSshd(tmp_path_factory.mktemp("sshd"))
    yield server.start()
    server.kill()


@pytest.fixture(scope="session")
def shared_jump(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkingSshd]:
    """Return the server behind `jump`."""
    server = ForkingSshd(tmp_path_factory.mktemp("jump"))
    yield server.start()
    server.kill()


@pytest.fixture
def forks(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, shared_sshd: ForkingSshd
) -> Iterator[bool]:
    """Say whether commands are forks: then a small package is sent to them, as it is not used."""
    forks = shared_sshd.forks = request.node.get_closest_marker("real_workers") is None
    if forks:
        monkeypatch.setattr(bootstrap, "package_files", lambda: {"dld_tui/__init__.py": b""})
        monkeypatch.setattr(supervisor, "ASK_S", 0.2)
    bootstrap.package_digest.cache_clear()
    yield forks
    bootstrap.package_digest.cache_clear()


@pytest.fixture
def sshd(shared_sshd: ForkingSshd, forks: bool) -> Sshd:
    """Return a server that all tests share; do not stop it."""
    return shared_sshd


@pytest.fixture
def jump(shared_jump: ForkingSshd) -> Sshd:
    """Return a second server that all tests share, to go through."""
    return shared_jump


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
