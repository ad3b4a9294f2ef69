from __future__ import annotations

import re
from operator import itemgetter
from xml.etree import ElementTree

from dld_tui.core.fmt import number
from dld_tui.core.tables.html_page import (
    SCRIPT,
    STYLE,
    Section,
    Tile,
    attributes,
    definitions,
    digest,
    page,
    paragraphs,
    policy,
    short,
    text,
    tiles,
)
from dld_tui.core.tables.rendering import FILTER_FROM, html_of
from dld_tui.core.tables.table import MS, Column, Table
from tests.support.known import known

HOSTILE = '</script><img src=x onerror="alert(1)">&\x1b[31m\u202e'


def test_foreign_text_is_text() -> None:
    shown = text(HOSTILE)
    assert not set(shown) & set('<>"\x1b\u202e')
    assert "&lt;/script&gt;" in shown
    assert "\\x1b[31m\\u202e" in shown
    assert "<img" not in tiles([Tile(HOSTILE, HOSTILE)])
    made = paragraphs([(HOSTILE, "warning"), ("fine", "info")])
    assert "<img" not in made
    assert made.count("<li") == 2
    assert made.count('class="warning"') == 1
    assert paragraphs([]) == ""
    assert definitions([("<i>", "a&b")]).count("&lt;i&gt;") == 1
    assert "a&amp;b" in definitions([("<i>", "a&b")])
    assert definitions([]) == ""
    assert attributes(data_v='a"b', class_="x", id=None) == ' data-v="a&quot;b" class="x"'


def test_numbers_and_names_are_short() -> None:
    assert [number(value) for value in (1.0, 0.126, -0.001, 100.5)] == ["1", "0.13", "0", "100.5"]
    assert short("/block.0/attention/MatMul", 8) == "…/MatMul"
    assert [short("short", most) for most in (4, 5, 8)] == ["…ort", "short", "short"]


def test_the_policy_allows_only_what_the_page_holds() -> None:
    made = page("t", [], "", [])
    assert f'content="{policy()}"' in made
    assert policy().startswith("default-src 'none'; ")
    script = known(re.search(r"<script>(.*)</script>", made, re.DOTALL))
    style = known(re.search(r"<style>(.*)</style>", made, re.DOTALL))
    assert (script[1], style[1]) == (SCRIPT, STYLE)
    assert digest(script[1]) in policy()
    assert digest(style[1]) in policy()
    assert "unsafe" not in policy()


def test_sections_without_a_body_are_left_out() -> None:
    made = page(HOSTILE, [HOSTILE], "", [Section("a", "A", "<p>x</p>"), Section("b", "B", "")])
    assert '<section id="a">' in made
    assert '<a href="#a">A</a>' in made
    assert "<h2>B</h2>" not in made
    assert "<img" not in made


COLUMNS: tuple[Column[tuple[str, float | None]], ...] = (
    Column("name", "name", itemgetter(0)),
    Column("ms", "ms", itemgetter(1), MS),
)


def table(count: int, sort: str = "") -> Table[tuple[str, float | None]]:
    return Table(COLUMNS, [(f"<b>{n}</b>", n / 7) for n in range(count)], sort=sort)


def test_tables_are_cells_with_values_to_sort_by() -> None:
    made = ElementTree.fromstring(html_of("t", table(2, "ms")))
    cells = made.findall(".//td")
    assert [cell.text for cell in cells] == ["<b>0</b>", "0.000", "<b>1</b>", "0.143"]
    assert [cell.get("data-v") for cell in cells] == [None, "0", None, "0.142857143"]
    heads = made.findall(".//th")
    assert [head.get("aria-sort") for head in heads] == [None, "descending"]
    assert [head.find("button") is not None for head in heads] == [True, True]
    odd = Table(COLUMNS, [("a", None), ("b", float("inf"))])
    made = ElementTree.fromstring(html_of("t", odd))
    assert [cell.get("data-v") for cell in made.findall(".//td[@class='n']")] == ["", ""]
    assert "<input" not in html_of("t", table(FILTER_FROM - 1))
    assert 'data-table="t"' in html_of("t", table(FILTER_FROM))
    assert html_of("t", table(0)) == ""
