"""All outputs of a table show the same values, and what is added to one is in each of them."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dld_tui.core.errors import ActivityError, UsageError
from dld_tui.core.process import plugins
from dld_tui.core.tables import writers as module
from dld_tui.core.tables.rendering import csv_of, csv_text, html_of, text_lines
from dld_tui.core.tables.table import BYTES, COUNT, FLAG, MS, NAMES, PERCENT, Column, Table, json_of
from dld_tui.core.tables.writers import TableWriter, write_tables, writers
from dld_tui.extras.parquet import content


@dataclass(frozen=True)
class Item:
    name: str
    count: int | None
    time_ms: float | None
    percent: float | None
    size: int | None
    tags: tuple[str, ...]
    good: bool


ITEMS: tuple[Column[Item], ...] = (
    Column("name", "name", lambda item: item.name, keep="end"),
    Column("count", "count", lambda item: item.count, COUNT),
    Column("time_ms", "ms", lambda item: item.time_ms, MS),
    Column("percent", "%", lambda item: item.percent, PERCENT),
    Column("size", "size", lambda item: item.size, BYTES),
    Column("tags", "tags", lambda item: item.tags, NAMES),
    Column("good", "good", lambda item: item.good, FLAG),
)
# What is looked at is the values: the first draw, and loading pyarrow, may take a second.
WORD = st.text("abcxyz/._", min_size=1, max_size=12)
ROWS = st.lists(
    st.builds(
        Item,
        name=WORD,
        count=st.none() | st.integers(0, 10**12),
        time_ms=st.none() | st.floats(0, 1e6),
        percent=st.none() | st.floats(0, 100),
        size=st.none() | st.integers(0, 10**12),
        tags=st.lists(WORD, max_size=3).map(tuple),
        good=st.booleans(),
    ),
    min_size=1,
    max_size=4,
)


@given(ROWS)
def test_all_renderers_show_the_same_values(rows: list[Item]) -> None:
    table = Table(ITEMS, rows)
    records = json_of(table)
    assert [list(record) for record in records] == [table.keys] * len(rows)
    assert json.loads(json.dumps(records)) == records

    cells = list(csv.DictReader(io.StringIO(csv_of(table))))
    html = ElementTree.fromstring(html_of("t", table)).findall(".//tbody/tr")
    lines = text_lines(table)
    for row, record, cell, line, page in zip(rows, records, cells, lines[1:], html, strict=True):
        assert record["name"] == cell["name"] == row.name
        for key in ("count", "time_ms", "percent", "size"):
            assert cell[key] == ("" if record[key] is None else str(record[key]))
        assert cell["tags"] == "; ".join(row.tags)
        assert record["tags"] == list(row.tags)
        shown = [column.shown_text(row) for column in ITEMS]
        assert [found.text or "" for found in page.findall("td")] == shown
        assert "".join(line.split()) == "".join("".join(shown).split())
    titles = [column.title for column in ITEMS]
    assert lines[0].split() == titles
    assert [head[0].text for head in ElementTree.fromstring(html_of("t", table)).findall(".//th")] \
        == titles  # fmt: skip


@given(ROWS)
def test_parquet_has_the_values_of_json(rows: list[Item]) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    table = Table(ITEMS, rows)
    found = parquet.read_table(io.BytesIO(content([("x", table)], {"of": "test"})))
    assert found.to_pylist() == json_of(table)


def test_an_unknown_column_to_sort_by_is_named() -> None:
    with pytest.raises(UsageError, match="--sort colour: this table has name, count"):
        Table(ITEMS, []).sorted_by("colour")


def test_the_style_of_a_text_may_depend_on_its_row() -> None:
    plain = Column[int]("a", "a", str, style="dim")
    by_sign = Column[int]("a", "a", str, style=lambda row: "bad" if row < 0 else "good")
    assert [plain.style_of(row) for row in (-1, 1)] == ["dim", "dim"]
    assert [by_sign.style_of(row) for row in (-1, 1)] == ["bad", "good"]


HOSTILE = st.text(
    st.one_of(st.characters(), st.sampled_from("=+-@\t\r\n\x1b\x07\u202e\u2066\ud800\udcff\"',"))
)


def cells(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


@given(st.lists(st.tuples(HOSTILE, HOSTILE), max_size=5))
def test_any_text_is_one_harmless_cell(rows: list[tuple[str, str]]) -> None:
    text = csv_text(["a", "b"], rows)
    text.encode("utf-8")  # no surrogate is left
    found = cells(text)
    assert len(found) == len(rows) + 1
    for row in found:
        for cell in row:
            assert not set(cell) & set("\x1b\x07\u202e\u2066\x00")
            assert not cell.startswith(("=", "@", "＝", "\t", "\r"))
            if cell.startswith(("+", "-")):
                float(cell)


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=1+1", "'=1+1"), ("+x", "'+x"), ("-2+3", "'-2+3"), ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"), ("\n=1", "'\n=1"), (" =1", "' =1"), (" - a", "' - a"),
        ("\r=1", "'\r=1"), ("＝1", "'＝1"), ("-1.5e-3", "-1.5e-3"),
        (-1.5, "-1.5"),
        ("+7", "+7"), (None, ""), (True, "True"), ("a\x1b[31m\x07b", "a\\x1b[31m\\x07b"),
        ("\ud800", "\\ud800"), ("a\u202eb", "a\\u202eb"), ("conv,1", "conv,1"), ("a\nb", "a\nb"),
    ],
)  # fmt: skip
def test_cells(value: object, cell: str) -> None:
    assert cells(csv_text(["h"], [[value, "x"]]))[1] == [cell, "x"]


def test_lines_end_as_the_standard_says() -> None:
    assert csv_text(["a"], [[1]]) == "a\r\n1\r\n"


TABLE = Table((Column("name", "name", str),), ["a", "b"])


def test_ours_are_found() -> None:
    found = writers()
    assert {name: writer.ending for name, writer in found.items()} == {
        "parquet": ".parquet", "xlsx": ".xlsx"
    }  # fmt: skip
    assert [name for name, writer in found.items() if writer.several] == ["xlsx"]


def test_one_writes_a_file_and_a_bug_of_it_is_named(tmp_path: Path) -> None:
    plain = TableWriter(
        ".names", "names", lambda tables, facts: "".join(tables[0][1].rows).encode()
    )
    assert write_tables(plain, tmp_path / "x.names", [("T", TABLE)]) == []
    assert (tmp_path / "x.names").read_bytes() == b"ab"
    broken = TableWriter(".names", "names", lambda tables, facts: facts["x"].encode())
    with pytest.raises(ActivityError, match="the writer of names failed: KeyError: 'x'"):
        write_tables(broken, tmp_path / "y.names", [("T", TABLE)])
    assert not (tmp_path / "y.names").exists()


def test_a_wrong_name_or_ending_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    writer = TableWriter("names", "names", lambda tables, facts: b"")
    given = (plugins.Plugin("names", "toy", writer),)
    monkeypatch.setattr(module, "plugins", lambda group, kind: given)
    assert writers() == {}
    assert "its ending is not one as .xlsx" in plugins.skipped()[0].problem
