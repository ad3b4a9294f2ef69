"""Which reports are of a model, and what its nodes took in them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dld_tui.core.report.reports_of_model import newest_profile, reports_of
from tests.support import models
from tests.support.known import known
from tests.support.report_files import make_report


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    return models.write(tmp_path, models.CHAIN, "chain.onnx")


def _made(path: Path, model: Path, age: int) -> Path:
    path.parent.mkdir(exist_ok=True)
    made = make_report(path, 3, model=model)
    os.utime(made, (1_000_000 - age, 1_000_000 - age))
    return made


def test_the_newest_of_the_reports_beside_a_model_and_of_others(
    chain: Path, tmp_path: Path
) -> None:
    assert newest_profile(chain) is None
    other = models.write(tmp_path, models.CHAIN, "other.onnx")
    old, new = (_made(tmp_path / f"{age}.dldprof", chain, age) for age in (9, 5))
    _made(tmp_path / "of_other.dldprof", other, 1)
    (tmp_path / "damaged.dldprof").write_bytes(b"x" * 500)
    found = known(newest_profile(chain, [str(tmp_path / "gone.dldprof")]))
    assert (found.title, len(found.layers)) == (new.name, 3)
    newest = _made(tmp_path / "elsewhere" / "newest.dldprof", chain, 2)
    copied = tmp_path / "cut.dldprof"  # the newest of all, and damaged behind its first page
    copied.write_bytes(newest.read_bytes()[:8192] + bytes(4096))
    asked = known(newest_profile(chain, [str(newest)]))
    assert asked.title == newest.name
    files = [str(old), str(tmp_path / "of_other.dldprof"), str(new)]
    assert [*reports_of(str(chain), files)] == [str(old), str(new)]


def test_what_was_measured_before_the_model_was_changed_does_not_count(
    chain: Path, tmp_path: Path
) -> None:
    _made(tmp_path / "a.dldprof", chain, 1)
    assert newest_profile(chain) is not None
    os.utime(chain, ns=(1, 1))
    assert newest_profile(chain) is None
