"""All outputs of a table show the same values, and what is added to one is in each of them."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dld_tui.core.errors import UsageError
from dld_tui.core.tables.rendering import GAP, csv_of, fitted_lines, html_of, text_lines
from dld_tui.core.tables.table import BYTES, COUNT, FLAG, MS, NAMES, PERCENT, Column, Table, json_of
from dld_tui.core.text import visible
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


@given(ROWS, st.sampled_from([column.key for column in ITEMS]))
def test_sorting_keeps_the_rows_and_puts_unknown_last(rows: list[Item], key: str) -> None:
    table = Table(ITEMS, rows).sorted_by(key)
    assert sorted(map(id, table.rows)) == sorted(map(id, rows))
    column = table.column(key)
    orders = [column.order_of(row) for row in table.rows]
    known: list[Any] = [order for order in orders if order is not None]
    assert orders[: len(known)] == known
    assert known == sorted(known, reverse=column.falls)


def test_an_unknown_column_to_sort_by_is_named() -> None:
    with pytest.raises(UsageError, match="--sort colour: this table has name, count"):
        Table(ITEMS, []).sorted_by("colour")


HOSTILE = Item("=cmd\x1b[31m\u202ex", None, None, None, None, ("<script>",), False)


def test_no_renderer_lets_foreign_text_through() -> None:
    table = Table(ITEMS, [HOSTILE])
    [_, line] = text_lines(table)
    assert visible(HOSTILE.name) in line
    for text in (line, csv_of(table), html_of("t", table)):
        assert not set(text) & set("\x1b\u202e")
    assert "<script>" not in html_of("t", table)
    assert "'=cmd" in csv_of(table)


def test_columns_that_say_nothing_give_their_room_on_a_terminal() -> None:
    table = Table(ITEMS, [Item("a" * 60, 1, 2.0, None, None, (), False)])
    [titles, line], left_out = fitted_lines(table, 40)
    assert titles.split() == ["name", "count", "ms"]
    assert len(line) <= 40
    assert left_out == []
    [titles, _], left_out = fitted_lines(table, 25)
    assert (titles.split(), left_out) == (["name"], ["count", "ms"])
    whole, _ = fitted_lines(table, None)
    assert "a" * 60 in whole[1]
    assert whole[0].split(GAP)[0] == "name"


def test_the_style_of_a_text_may_depend_on_its_row() -> None:
    plain = Column[int]("a", "a", str, style="dim")
    by_sign = Column[int]("a", "a", str, style=lambda row: "bad" if row < 0 else "good")
    assert [plain.style_of(row) for row in (-1, 1)] == ["dim", "dim"]
    assert [by_sign.style_of(row) for row in (-1, 1)] == ["bad", "good"]
