from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dld_tui.core.errors import InputError
from dld_tui.core.report.report import open_report
from dld_tui.core.report.schema import moved_paths, relocate
from dld_tui.core.types import JSON
from tests.support.report_files import make_report


def test_paths_are_replaced_wherever_they_stand() -> None:
    value: JSON = {"a": ["/job/x", 1, {"b": "in /job/x: no"}], "c": None}
    assert moved_paths(value, {"/job/x": "y"}) == {"a": ["y", 1, {"b": "in y: no"}], "c": None}


def test_only_reports_are_relocated(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"no report")
    assert not relocate(other, {"/a": "/b"})
    assert other.read_bytes() == b"no report"
    path = make_report(tmp_path / "r.dldprof")
    old = str(open_report(path).model["path"])
    assert relocate(path, {old: "/here/model.onnx"}, "board")
    report = open_report(path)
    assert report.model["path"] == "/here/model.onnx"
    assert len(report.layers) == 10
    assert "command" not in report.properties


@pytest.mark.parametrize(
    ("stored", "kept"),
    [
        ('["/job/m", ["/job/m.onnx"], {"/job/m": "a /job/m b", "n": [null, 1]}]',
         '["/here", ["/here.onnx"], {"/job/m": "a /here b", "n": [null, 1]}]'),
        ('"/job/other"', '"/job/other"'), ('["/job/m"', '["/job/m"'), ("7", "7"),
        (b"/job/m", b"/job/m"), ("[]", "[]"),
    ],
)  # fmt: skip
def test_only_sound_values_with_a_path_are_changed(
    stored: object, kept: object, tmp_path: Path
) -> None:
    path = make_report(tmp_path / "r.dldprof")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("INSERT INTO settings VALUES ('n', ?), ('o', '\"/job/m\"')", (stored,))
        database.execute("INSERT INTO report VALUES ('command', ?)", (stored,))
    relocate(path, {"/job/m": "/here"}, "board")
    with closing(sqlite3.connect(path)) as database:
        (found,) = database.execute("SELECT value FROM settings WHERE name = 'n'").fetchone()
        (words,) = database.execute("SELECT value FROM report WHERE key = 'command'").fetchone()
        (last,) = database.execute("SELECT value FROM settings WHERE name = 'o'").fetchone()
    assert (found, last) == (kept, '"/here"')
    is_command = isinstance(kept, str) and kept.endswith("]") and kept != "[]"
    assert words == (f'{str(kept)[:-1]}, "--target", "board"]' if is_command else kept)


def test_a_report_with_a_trigger_is_left_alone(tmp_path: Path) -> None:
    path = make_report(tmp_path / "r.dldprof")
    with sqlite3.connect(path) as database:
        database.execute("CREATE TRIGGER t AFTER UPDATE ON report BEGIN DELETE FROM layers; END")
    database.close()
    with pytest.raises(InputError):
        relocate(path, {"model": "other"})
