from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.errors import UsageError
from dld_tui.core.process.paths import report_path
from dld_tui.core.report.latency import latency_summary, parse_percentiles


def test_percentiles_are_numbers_up_to_100() -> None:
    assert parse_percentiles("50, 99.9,") == [50.0, 99.9]


@pytest.mark.parametrize("text", ["most", "101", "-1", "nan"])
def test_other_percentiles_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="numbers from 0 to 100"):
        parse_percentiles(text)


def test_the_summary_has_the_percentiles_by_name() -> None:
    summary = latency_summary([3.0, 1.0, 2.0], [50, 99.5])

    assert summary is not None
    assert summary.passes == 3
    assert summary.percentiles_ms == {"50": 2.0, "99.5": pytest.approx(2.99)}


def test_without_passes_there_are_no_figures() -> None:
    assert latency_summary([], [50]) is None


def test_a_report_gets_a_name_that_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.dldprof").touch()

    assert report_path(None, Path("models/net.onnx")) == Path("net-2.dldprof")
    assert report_path(Path("mine"), Path("net.onnx")) == Path("mine")
