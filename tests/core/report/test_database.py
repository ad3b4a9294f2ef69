from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from dld_tui.core.errors import CorruptFileError, InputError
from dld_tui.core.report import schema
from dld_tui.core.report.records import Layer, NodeLink
from dld_tui.core.report.report import Report
from dld_tui.core.report.schema import is_report
from tests.support.profiles import write_report
from tests.support.recorded import Recorded, settled


@pytest.fixture
def report(tmp_path: Path) -> Path:
    layer = Layer("a", "Conv", ((1, 2),), nodes=(NodeLink((), "a", "a", "Conv"),))
    return write_report(tmp_path / "r.dldprof", [(layer, [1.0, 2.0, 3.0])])


def change(path: Path, *statements: str) -> None:
    database = sqlite3.connect(path)
    for statement in statements:
        database.execute(statement)
    database.commit()
    database.close()


def refused(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        Report.open(path)
    line = str(caught.value)
    assert line.startswith(str(path))
    assert "\n" not in line
    return line


def test_newer_report(report: Path) -> None:
    change(report, f"PRAGMA user_version = {schema.VERSION + 1}")
    line = refused(report)
    assert "newer than this program knows" in line
    assert "Update dld-tui" in line


def test_what_a_later_version_added_does_not_matter(report: Path) -> None:
    change(
        report, "CREATE TABLE frobs (a)", "ALTER TABLE layers ADD COLUMN tactic TEXT",
        "ALTER TABLE samples ADD COLUMN stream INTEGER",
    )  # fmt: skip
    assert Report.open(report).layers[0].time_ms == 1.0
    change(
        report, "UPDATE layers SET confidence = 'metadata'",
        "INSERT INTO passes VALUES (9, 0, 1, 'replayed', NULL)",
        "INSERT INTO tracks VALUES (5, 'stream', '7')",
    )  # fmt: skip
    found = Report.open(report)
    assert found.layers[0].confidence == "rule"
    assert (found.passes[-1].state, len(found.counted_passes)) == ("incomplete", 3)


def test_folders_other_databases_and_cut_reports(tmp_path: Path, report: Path) -> None:
    refused(tmp_path)
    change(tmp_path / "places.sqlite", "CREATE TABLE t (a)")
    assert "not a profile report" in refused(tmp_path / "places.sqlite")
    whole = report.read_bytes()
    assert is_report(whole[:100])
    assert not is_report(whole[:99])
    report.write_bytes(whole[:5000])
    assert "damaged" in refused(report)


WRONG = (
    "UPDATE layers SET name = x'ff'", "UPDATE layers SET time_ms = 'long'",
    "UPDATE layers SET time_ms = 9e999", "UPDATE layers SET input_dims = '[[[['",
    "UPDATE layers SET id = 7", "UPDATE layer_nodes SET scope = '7'",
    "UPDATE passes SET duration_us = 'x'",
    "UPDATE report SET value = 'no json' WHERE key = 'network'",
    "INSERT INTO latencies VALUES (0, 'x')", "DROP TABLE samples",
    "ALTER TABLE layers RENAME COLUMN precision TO p", "PRAGMA user_version = 0",
    "PRAGMA application_id = 7",
)  # fmt: skip


def test_wrong_contents(report: Path, recorded: Recorded) -> None:
    whole, told = report.read_bytes(), {}
    for statement in WRONG:
        report.write_bytes(whole)
        change(report, statement)
        told[statement] = settled(refused(report), report.parent)
    recorded("whole_wrong_reports", told)


def test_a_report_that_is_being_written_is_told(report: Path) -> None:
    with pytest.raises(InputError, match="is being written"), schema.reading(report):
        raise sqlite3.OperationalError("database is locked")
    with pytest.raises(CorruptFileError, match="the report is damaged: 7"), schema.reading(report):
        raise OverflowError(7)


def test_wrong_samples_are_found_when_they_are_read(report: Path) -> None:
    change(report, "UPDATE samples SET layer = 99 WHERE pass = 1")
    found = Report.open(report)
    assert found.pass_events(0)
    with pytest.raises(CorruptFileError, match="layer 99"):
        found.pass_events(1)


def test_nothing_in_the_file_is_run(report: Path) -> None:
    change(
        report, "DROP TABLE latencies",
        "CREATE VIEW latencies AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"
        " SELECT x AS pass, 1.0 AS ms FROM c",
    )  # fmt: skip
    assert "no table 'latencies'" in refused(report)
    change(
        report, "DROP VIEW latencies",
        "CREATE TABLE latencies (pass INTEGER PRIMARY KEY, ms REAL AS (length(zeroblob(1e9))))",
    )  # fmt: skip
    assert "no column 'ms'" in refused(report)
