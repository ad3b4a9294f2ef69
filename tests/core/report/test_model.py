from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.errors import InputError
from dld_tui.core.report.records import Layer
from dld_tui.core.report.report import Report, open_report
from tests.support import models
from tests.support.profiles import kernel, run, write_profile, write_report


def test_reports_and_profiles_are_told_apart_by_content(tmp_path: Path) -> None:
    stored = write_report(tmp_path / "odd.json", [(Layer("a", "Conv"), [1.0])])
    profile = write_profile(tmp_path / "odd.dldprof", [kernel("a", "Conv", 2, 5), run(1, 9)])
    with open_report(stored) as report:
        assert isinstance(report, Report)
        assert report.path == stored
    with open_report(profile) as report:
        assert report.layers[0].time_ms == 0.005
        assert report.path == profile


def test_other_files_are_named(tmp_path: Path) -> None:
    model = models.write(tmp_path, models.CHAIN)
    with pytest.raises(InputError, match="is an ONNX model, not a profile report"):
        open_report(model)
    with pytest.raises(InputError, match=r"none\.dldprof"):
        open_report(tmp_path / "none.dldprof")
