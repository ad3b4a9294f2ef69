from __future__ import annotations

from operator import itemgetter
from xml.etree import ElementTree

from dld_tui.core.tables.html_page import facts
from dld_tui.core.tables.rendering import FILTER_FROM, html_of
from dld_tui.core.tables.table import COUNT, MEAN, MS, PERCENT, Column, Table

COLUMNS: tuple[Column[tuple[str, float | None]], ...] = (
    Column("name", "name", itemgetter(0)),
    Column("ms", "ms", itemgetter(1), MS),
)


def table(count: int, sort: str = "") -> Table[tuple[str, float | None]]:
    return Table(COLUMNS, [(f"<b>{n}</b>", n / 7) for n in range(count)], sort=sort)


def test_cells_are_escaped_and_carry_their_value() -> None:
    made = ElementTree.fromstring(html_of("t", table(2, "ms")))
    cells = made.findall(".//td")
    assert [cell.text for cell in cells] == ["<b>0</b>", "0.000", "<b>1</b>", "0.143"]
    assert [cell.get("data-v") for cell in cells] == [None, "0", None, "0.142857143"]
    heads = made.findall(".//th")
    assert [head.get("aria-sort") for head in heads] == [None, "descending"]
    assert [head.find("button") is not None for head in heads] == [True, True]


def test_unknown_and_endless_values_have_none_to_sort_by() -> None:
    odd = Table(COLUMNS, [("a", None), ("b", float("inf"))])
    made = ElementTree.fromstring(html_of("t", odd))
    assert [cell.get("data-v") for cell in made.findall(".//td[@class='n']")] == ["", ""]


def test_large_tables_have_a_filter_and_empty_ones_are_nothing() -> None:
    assert "<input" not in html_of("t", table(FILTER_FROM - 1))
    assert 'data-table="t"' in html_of("t", table(FILTER_FROM))
    assert html_of("t", table(0)) == ""


def test_figures() -> None:
    assert COUNT.shown(1234) == "1,234"
    assert MEAN.shown(2.5) == "2.5"
    assert PERCENT.shown(None) == "–"


def test_facts_escape() -> None:
    assert facts([("<i>", "a&b")]).count("&lt;i&gt;") == 1
    assert "a&amp;b" in facts([("<i>", "a&b")])
    assert facts([]) == ""
