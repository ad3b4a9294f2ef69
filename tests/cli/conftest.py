from __future__ import annotations

import pytest

from tests.support.cli import Dld
from tests.support.ssh_fixtures import sshd

__all__ = ["dld", "sshd"]


@pytest.fixture
def dld(capsys: pytest.CaptureFixture[str]) -> Dld:
    """Return what runs ``dld`` in this process."""
    return Dld(capsys)
