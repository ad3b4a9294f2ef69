"""Reading what is compared from a report."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dld_tui.core.compare.comparison import Comparison, open_subject
from dld_tui.core.errors import InputError
from tests.support.profiles import kernel, run, write_profile
from tests.support.report_files import make_report


def test_a_report(tmp_path: Path) -> None:
    path = make_report(tmp_path / "a.dldprof", layers=4, passes=6)
    found = open_subject(path)
    assert (found.title, found.path) == ("a.dldprof", str(path))
    assert found.times is not None
    assert found.times.shape == (4, 6)
    fastest = np.sort(found.times, axis=1)[:, :2].mean(axis=1)  # a quarter of 6, rounded up
    assert fastest == pytest.approx([layer.time_ms for layer in found.layers])
    assert (len(found.latencies_ms), len(found.profiled_ms)) == (20, 6)
    assert found.gpu_times is None
    assert found.settings["provider"] == "CPU"
    assert found.facts["status"] == "complete"


def test_a_profile_of_onnx_runtime(tmp_path: Path) -> None:
    events = []
    for start in (0, 1000):
        events += [kernel("a", "Conv", start, 100), kernel("b", "Relu", start + 100, 50)]
        events.append(run(start, 200))
    found = open_subject(write_profile(tmp_path / "p.json", events))
    assert [layer.name for layer in found.layers] == ["a", "b"]
    assert found.times is not None
    assert found.times.shape[0] == 2
    assert not found.latencies_ms


def test_something_else(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("nothing")
    with pytest.raises(InputError):
        open_subject(tmp_path / "x.txt")


def test_a_report_that_is_still_written(tmp_path: Path) -> None:
    partial = open_subject(make_report(tmp_path / "p.dldprof", finish=False))
    whole = open_subject(make_report(tmp_path / "w.dldprof"))
    comparison = Comparison([whole, partial])
    assert any("partial" in line for line in comparison.doubts)
    assert all(row.cells[1].noise for row in comparison.rows())
