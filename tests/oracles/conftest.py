"""Engine plans that are not part of this repository."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ENGINES = os.environ.get("DLD_ENGINES")  # tests themselves see no variable of ours


@pytest.fixture
def engines() -> Path:
    """Return the folder of engine plans that ``DLD_ENGINES`` names."""
    if not ENGINES:
        pytest.skip("DLD_ENGINES names no folder of engine plans")
    return Path(ENGINES)
