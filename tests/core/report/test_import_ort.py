from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.errors import InputError
from dld_tui.core.reading.first_lines import doubts
from dld_tui.core.report.formats.import_ort import report_from_ort_profile
from dld_tui.core.report.groups import time_title
from tests.support.profiles import Event, kernel, run, write_profile


def branch_runs(count: int) -> list[Event]:
    events: list[Event] = []
    for index in range(count):
        at = 1000 * index
        events += [
            kernel("pre", "Relu", at + 10, 20, index=0),
            kernel("inner", "Neg", at + 50, 30 + index, index=0),
            kernel("Add_1", "Add", at + 90, 10, index=1),
            kernel("choose", "If", at + 40, 100, index=1),
            run(at, 200),
        ]
    return events


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    return write_profile(tmp_path / "net_2026-11-21_14-02-03_123.json", branch_runs(4))


def test_a_run_that_failed_on_the_way_does_not_count(tmp_path: Path) -> None:
    events = branch_runs(3)
    failed = [e for e in branch_runs(4)[15:] if e["name"] != "choose_kernel_time"]
    failed = [e for e in failed if e["name"] not in ("Add_1_kernel_time", "inner_kernel_time")]
    profile = write_profile(tmp_path / "p.json", events + failed)
    report = report_from_ort_profile(profile)
    assert [p.state for p in report.passes] == ["measured"] * 3 + ["incomplete"]
    assert report.layers[0].passes == 3
    assert any("fewer kernels" in note.text for note in report.notes)


def test_nothing_is_left_in_the_temporary_folder(
    tmp_path: Path, profile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    report = report_from_ort_profile(profile)
    assert list(folder.iterdir()) == []
    assert report.pass_events(report.passes[0].index)
    profile.write_text("[]")
    with pytest.raises(InputError):
        report_from_ort_profile(profile)
    assert list(folder.iterdir()) == []


def test_gpu_launches_are_said_to_be_launches(tmp_path: Path) -> None:
    events = [kernel("a", "Conv", 10, 5, provider="CUDAExecutionProvider"), run(1, 50)]
    report = report_from_ort_profile(write_profile(tmp_path / "p.json", events))
    assert time_title(report.layers) == "launch ms"
    assert any("Launches of layers" in text for group in doubts(report) for text in group)
