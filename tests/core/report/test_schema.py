from __future__ import annotations

import re
import sqlite3
from pathlib import Path

from dld_tui.core.report import schema

DOCUMENTATION = Path(__file__).parents[3] / "docs/reference/report-format.md"


def test_column_names_are_those_of_the_tables() -> None:
    database = sqlite3.connect(":memory:")
    schema.create(database)
    for table in schema.TABLES:
        rows = database.execute(f"PRAGMA table_info({table})").fetchall()
        assert [row[1] for row in rows] == schema.column_names(table)
        marks = schema.insertion(table).count("?")
        assert marks == len(rows)
    database.close()


def test_every_table_and_column_is_documented() -> None:
    text = DOCUMENTATION.read_text(encoding="utf-8")
    words = set(re.findall(r"`(\w+)`", text))
    for table in schema.TABLES:
        assert {table, *schema.column_names(table)} - {"id"} <= words


def test_documented_numbers() -> None:
    text = DOCUMENTATION.read_text(encoding="utf-8")
    assert f"`0x{schema.APPLICATION_ID:08X}`" in text
    assert re.search(rf"the version of\s+the tables, {schema.VERSION}\.", text)
    assert schema.APPLICATION_ID.to_bytes(4, "big") == b"DLDP"


def test_what_a_later_version_added_is_not_looked_for_in_an_older_file() -> None:
    assert "gpu_events" not in schema.table_names(1)
    assert set(schema.table_names(schema.VERSION)) == set(schema.TABLES)
    assert "gpu_time_ms" in schema.column_names("layers")
    assert "gpu_time_ms" not in schema.column_names("layers", 1)
