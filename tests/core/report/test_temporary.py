from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from dld_tui.core.errors import InputError, SaveError
from dld_tui.core.report import report as model
from dld_tui.core.report.records import Layer
from dld_tui.core.report.report import temporary_report
from dld_tui.core.report.store import ReportWriter


def fill(writer: ReportWriter) -> None:
    layer = writer.add_layer(Layer("a", "Conv"))
    writer.add_pass(0, 0.0, 10.0)
    writer.add_samples(0, [(layer, 0.0, 8.0, 8.0, 1)])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = tmp_path / "spill"
    found.mkdir()
    monkeypatch.setattr(model, "spill_folder", lambda: found)
    return found


def test_nothing_is_left_when_the_file_is_bad_or_the_disk_is(tmp_path: Path, folder: Path) -> None:
    def fail(writer: ReportWriter) -> None:
        fill(writer)
        raise InputError("bad")

    def spoil(database: sqlite3.Connection) -> None:
        database.execute("UPDATE nothing SET x = 1")

    with pytest.raises(InputError, match="bad"):
        temporary_report(tmp_path / "x", fail, network="", backend="")
    with pytest.raises(SaveError, match="cannot write the report"):
        temporary_report(tmp_path / "x", fill, network="", backend="", amend=spoil)
    assert os.listdir(folder) == []
