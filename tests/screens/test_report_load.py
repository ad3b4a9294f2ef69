from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.errors import CancelledError, InputError
from dld_tui.screens.report.page import load
from tests.support.profiles import kernel, run, write_profile
from tests.support.report_files import make_report


def test_a_report_comes_with_what_the_screen_needs(tmp_path: Path) -> None:
    loaded = load(make_report(tmp_path / "a.dldprof", layers=5, finish=False))
    with loaded.report as report:
        assert report.status == "partial"
        assert loaded.timeline.find(0) is not None
        assert [group.key for group in loaded.types] == [g.key for g in report.groups("type")]
    assert loaded.model_problem == "the model is no longer there"
    texts = [one.text for one in loaded.advice]
    assert "made by a test" in texts
    assert "killed by a test" in texts
    warnings = [one for one in loaded.advice if one.level == "warning"]
    assert any("p99 of 20 passes" in one.text for one in warnings)


def test_a_profile_is_read_with_progress_and_can_be_stopped(tmp_path: Path) -> None:
    events = [event for n in range(3000) for event in (kernel("a", "Conv", n, 1), run(n, 2))]
    path = write_profile(tmp_path / "p.json", events)
    with load(path).report as report:
        assert len(report.passes) == 3000
    with pytest.raises(CancelledError):
        load(path, lambda: True)


@pytest.mark.parametrize(
    "content", [b"", b"SQLite format 3\x00 and no more", b"[1, 2", b"\x00" * 99]
)
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.dldprof"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        load(path)
    assert "x.dldprof" in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load(tmp_path / "gone.dldprof")
    assert "gone.dldprof" in str(caught.value)
