from __future__ import annotations

import pytest

from tests.support.cli import Dld


@pytest.fixture
def dld(capsys: pytest.CaptureFixture[str]) -> Dld:
    """Return what runs ``dld`` in this process."""
    return Dld(capsys)
