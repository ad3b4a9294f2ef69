"""Which reports are of a model, and what its nodes took in them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dld_tui.core.report.reports_of_model import newest_profile
from tests.support import models
from tests.support.report_files import make_report


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    return models.write(tmp_path, models.CHAIN, "chain.onnx")


def _made(path: Path, model: Path, age: int) -> Path:
    path.parent.mkdir(exist_ok=True)
    made = make_report(path, 3, model=model)
    os.utime(made, (1_000_000 - age, 1_000_000 - age))
    return made


def test_what_was_measured_before_the_model_was_changed_does_not_count(
    chain: Path, tmp_path: Path
) -> None:
    _made(tmp_path / "a.dldprof", chain, 1)
    assert newest_profile(chain) is not None
    os.utime(chain, ns=(1, 1))
    assert newest_profile(chain) is None
