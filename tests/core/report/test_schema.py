from __future__ import annotations

import json
import math
import os
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from dld_tui.core.errors import SaveError
from dld_tui.core.report import schema
from dld_tui.core.report.queries import read_properties
from dld_tui.core.report.schema import as_json, as_list, saving
from dld_tui.core.text import encodable

DOCUMENTATION = Path(__file__).parents[3] / "docs/reference/report-format.md"


def test_names_of_columns_by_version() -> None:
    database = sqlite3.connect(":memory:")
    schema.create(database)
    for table in schema.TABLES:
        rows = database.execute(f"PRAGMA table_info({table})").fetchall()
        assert [row[1] for row in rows] == schema.column_names(table)
        marks = schema.insertion(table).count("?")
        assert marks == len(rows)
    database.close()
    assert "gpu_events" not in schema.table_names(1)
    assert set(schema.table_names(schema.VERSION)) == set(schema.TABLES)
    assert "gpu_time_ms" in schema.column_names("layers")
    assert "gpu_time_ms" not in schema.column_names("layers", 1)


def test_every_table_column_and_number_is_documented() -> None:
    text = DOCUMENTATION.read_text(encoding="utf-8")
    words = set(re.findall(r"`(\w+)`", text))
    for table in schema.TABLES:
        assert {table, *schema.column_names(table)} - {"id"} <= words
    text = DOCUMENTATION.read_text(encoding="utf-8")
    assert f"`0x{schema.APPLICATION_ID:08X}`" in text
    assert re.search(rf"the version of\s+the tables, {schema.VERSION}\.", text)
    assert schema.APPLICATION_ID.to_bytes(4, "big") == b"DLDP"


@pytest.mark.parametrize(
    ("check", "value"),
    [
        (schema.text_of, b"bytes"),
        (schema.text_of, None),
        (schema.number_of, "1.5"),
        (schema.number_of, math.inf),
        (schema.number_of, None),
        (schema.whole_of, 1.5),
        (schema.json_of, "{"),
        (schema.json_of, "NaN"),
        (schema.json_of, "[" * 100_000),
        (schema.texts_of, '{"a": 1}'),
        (schema.texts_of, "[1]"),
        (schema.shapes_of, "[1]"),
        (schema.shapes_of, "[[true]]"),
        (schema.shapes_of, "[[1.5]]"),
        (schema.shapes_of, "{}"),
    ],
)
def test_wrong_types_are_refused(check: Callable[[object, str], object], value: object) -> None:
    with pytest.raises(schema.WrongValue, match="the column"):
        check(value, "the column")


def test_what_json_and_utf8_cannot_hold() -> None:
    text = as_json({"a": [1.5, math.nan], "b": {"c": math.inf}})
    assert json.loads(text) == {"a": [1.5, None], "b": {"c": None}}
    name = os.fsdecode(b"a\xff\xfeb")
    database = sqlite3.connect(":memory:")
    assert database.execute("SELECT ?", (encodable(name),)).fetchone() == ("a\\udcff\\udcfeb",)
    database.close()
    assert encodable("Größe") == "Größe"
    assert json.loads(as_json(name)) == name
    assert as_list(None) is None
    assert as_list((1, "N", None)) == [1, "N", None]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), sqlite3.Error("full")])
def test_failures_name_the_file(error: Exception) -> None:
    with (
        pytest.raises(SaveError, match=r"^/x/r: cannot write the report: (No space|full)"),
        saving(Path("/x/r")),
    ):
        raise error


def test_facts_are_data() -> None:
    def query(sql: str, *values: object) -> list[tuple[object, ...]]:
        return [("a", "[1, null]"), ("b", '"x"')]

    assert read_properties(query, "settings", "name") == {"a": [1, None], "b": "x"}
