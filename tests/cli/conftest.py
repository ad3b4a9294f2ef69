from __future__ import annotations

import pytest

from tests.support.cli import Dld
from tests.support.ssh_fixtures import forks, shared_sshd, sshd

__all__ = ["dld", "forks", "shared_sshd", "sshd"]


@pytest.fixture
def dld(capsys: pytest.CaptureFixture[str]) -> Dld:
    """Return what runs ``dld`` in this process."""
    return Dld(capsys)
