from __future__ import annotations

import sqlite3
from pathlib import Path

from dld_tui.core.report.queries import read_facts
from dld_tui.core.report.records import Layer
from dld_tui.core.report.report import Report
from tests.support.profiles import write_report


def test_statistics_of_a_partial_report_are_those_that_the_writer_would_store(
    tmp_path: Path,
) -> None:
    path = write_report(
        tmp_path / "r.dldprof",
        [(Layer("a", "Conv"), [1.0, 5.0, 3.0]), (Layer("b", "Relu"), [0.5, 0.5, 0.25])],
    )
    stored = Report.open(path).layers
    database = sqlite3.connect(path)
    database.execute("UPDATE report SET value = '\"partial\"' WHERE key = 'status'")
    database.execute("UPDATE layers SET time_ms = NULL, percent = NULL, passes = NULL")
    database.commit()
    database.close()
    found = Report.open(path)
    assert found.status == "partial"
    assert found.layers == stored


def test_facts_are_data() -> None:
    def query(sql: str, *values: object) -> list[tuple[object, ...]]:
        return [("a", "[1, null]"), ("b", '"x"')]

    assert read_facts(query, "settings", "name") == {"a": [1, None], "b": "x"}
