from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from dld_tui.core.errors import InputError
from dld_tui.core.report.model import open_report
from dld_tui.core.report.schema import moved_paths, relocate
from dld_tui.core.types import JSON
from tests.support.report_files import make_report


def test_paths_of_another_machine_become_those_of_this_one(tmp_path: Path) -> None:
    path = make_report(tmp_path / "r.dldprof")
    old = str(open_report(path).model["path"])
    assert relocate(path, {old: "/here/model.onnx"})
    report = open_report(path)
    assert report.model["path"] == "/here/model.onnx"
    assert len(report.layers) == 10


def test_paths_are_replaced_wherever_they_stand() -> None:
    value: JSON = {"a": ["/job/x", 1, {"b": "in /job/x: no"}], "c": None}
    assert moved_paths(value, {"/job/x": "y"}) == {"a": ["y", 1, {"b": "in y: no"}], "c": None}


def test_only_reports_are_relocated(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"no report")
    assert not relocate(other, {"/a": "/b"})
    assert other.read_bytes() == b"no report"


def test_a_report_with_a_trigger_is_left_alone(tmp_path: Path) -> None:
    path = make_report(tmp_path / "r.dldprof")
    with sqlite3.connect(path) as database:
        database.execute("CREATE TRIGGER t AFTER UPDATE ON report BEGIN DELETE FROM layers; END")
    database.close()
    with pytest.raises(InputError):
        relocate(path, {"model": "other"})
