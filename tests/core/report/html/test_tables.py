from __future__ import annotations

from xml.etree import ElementTree

from dld_tui.core.report.html import tables
from dld_tui.core.report.html.tables import Column, facts, table

COLUMNS = [Column("name", name=True), Column("ms", numeric=True)]


def rows(count: int) -> list[list[tables.Cell]]:
    return [[f"<b>{n}</b>", tables.milliseconds(n / 7)] for n in range(count)]


def test_cells_are_escaped_and_carry_their_value() -> None:
    made = ElementTree.fromstring(table("t", COLUMNS, rows(2), sorted_by=1))
    cells = made.findall(".//td")
    assert [cell.text for cell in cells] == ["<b>0</b>", "0.000", "<b>1</b>", "0.143"]
    assert [cell.get("data-v") for cell in cells] == [None, "0", None, "0.142857143"]
    heads = made.findall(".//th")
    assert [head.get("aria-sort") for head in heads] == [None, "descending"]
    assert [head.find("button") is not None for head in heads] == [True, True]


def test_unknown_and_endless_values_have_none_to_sort_by() -> None:
    cells: list[list[tables.Cell]] = [
        ["a", tables.milliseconds(None)],
        ["b", tables.percent(float("inf"))],
    ]
    made = ElementTree.fromstring(table("t", COLUMNS, cells))
    assert [cell.get("data-v") for cell in made.findall(".//td[@class='n']")] == ["", ""]


def test_large_tables_have_a_filter_and_empty_ones_are_nothing() -> None:
    assert "<input" not in table("t", COLUMNS, rows(tables.FILTER_FROM - 1))
    assert 'data-table="t"' in table("t", COLUMNS, rows(tables.FILTER_FROM))
    assert table("t", COLUMNS, []) == ""


def test_counts() -> None:
    assert tables.count(1234).shown == "1,234"
    assert tables.count(2.5).shown == "2.5"
    assert tables.count(None).shown == "–"


def test_facts_escape() -> None:
    assert facts([("<i>", "a&b")]).count("&lt;i&gt;") == 1
    assert "a&amp;b" in facts([("<i>", "a&b")])
    assert facts([]) == ""
