"""Tables, drawings and frames of pages as a whole, compared with ``whole_tables.txt``."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from dld_tui.core.tables import html_page, table
from dld_tui.core.tables.html_page import SCRIPT, STYLE, Bar, Section, Tile, digest
from dld_tui.core.tables.rendering import (
    csv_of,
    fitted_lines,
    html_of,
    markdown_of,
    markdown_plain,
    text_lines,
)
from dld_tui.core.tables.table import Column, Estimate, IntervalUnit, Table, json_of, sort_places
from tests.support.recorded import Recorded

HOSTILE = '<b>|*"\x1b[31m\u202e'


class Row(NamedTuple):
    name: str
    kind: str = ""
    number: int | None = None
    ms: float | None = None
    size: int | None = None
    tags: tuple[Any, ...] | None = ()
    is_good: bool | None = None


COLUMNS: tuple[Column[Row], ...] = (
    Column("name", "layer", lambda row: row.name, keep="end"),
    Column("kind", "type", lambda row: row.kind, width=12, priority=3),
    Column("count", "count", lambda row: row.number, table.COUNT, priority=1),
    Column("ms", "ms", lambda row: row.ms, table.MS, heat=True),
    Column("size", "size", lambda row: row.size, table.SIZE, priority=2, descending=False),
    Column("tags", "tags", lambda row: row.tags, table.NAMES, priority=3),
    Column("good", "good", lambda row: row.is_good, table.FLAG, align="right"),
    Column(
        "place", "#", lambda row: row.number, table.PLACE, align="left", priority=9,
        text=lambda row: f"no. {row.number}", order=lambda row: -(row.number or 0),
    ),
)  # fmt: skip
ROWS = [
    Row("/model/block.0/attention/MatMul_of_query", "MatMul", 1200, 3.25, 2_000_000, ("b", "a")),
    Row("/model/block.1/attention/MatMul_of_query", "matmul", 3, 0.5, 0, ("A",), is_good=True),
    Row("relu", "Relu", None, None, None, None, is_good=False),
    Row(HOSTILE, "=1+1", -2, float("inf"), 10, ("<i>", 7), is_good=True),
    Row("卷积层卷积层", "a long type of many words in it", 3, 0.0015, None),
]
UNITS: dict[str, tuple[table.Unit, Sequence[Any]]] = {
    "text": (table.TEXT, [None, "", "a"]),
    "note": (table.NOTE, [None, "", "a"]),
    "names": (table.NAMES, [None, (), ("a", 2)]),
    "count": (table.COUNT, [None, 0, 12345]),
    "mean": (table.MEAN, [2.0, 2.346, 12345.5]),
    "ms": (table.MS, [0.0, 1234.5678]),
    "fine": (table.FINE_MS, [0.00012, 1.5]),
    "percent": (table.PERCENT, [12.34, 100.0]),
    "joules": (table.JOULES, [0.25, 12.0]),
    "bytes": (table.BYTES, [0, 1500]),
    "size": (table.SIZE, [0, 1500, None]),
    "short": (table.SHORT, [12, 25_600_000]),
    "ratio": (table.RATIO, [0.012345, 99.96, 100.0, -100.4, 1234.5]),
    "flag": (table.FLAG, [True, False, None]),
    "bar": (table.BAR, [1.0, None]),
    "interval": (IntervalUnit("x", lambda value: f"{value.value:.1f}"), [Estimate(1.0, 0.5, 2.0)]),
}


def units() -> str:
    lines = []
    for name, (unit, values) in UNITS.items():
        sides = "right" if unit.is_number else "left"
        shown = [(unit.shown(value), unit.plain(value), unit.json(value), unit.arrow(value))
                 for value in values]  # fmt: skip
        lines.append(f"{name} {sides} {shown}")
    return "\n".join(lines)


def tables() -> str:
    """Return the order, the keys and the cells of a table, and of the parts of it."""
    whole = Table(COLUMNS, ROWS, row_key=lambda row: row.name)
    lines = []
    for column in COLUMNS:
        orders = [column.order_of(row) for row in ROWS]
        rising = sort_places(whole, column.key, False, [4, 2, 1, 0])
        ordered = [*whole.sorted_by(column.key).rows]
        lines.append(
            f"{column.key}: {column.is_right} {column.falls} {column.least_cells} {orders} {rising}"
            f" {[ROWS.index(row) for row in ordered]}"
        )
    lines += [whole.text(at).encode("unicode_escape").decode() for at in range(len(whole))]
    lines += [str(whole.keys), str(whole.key(2)), str(Table(COLUMNS, ROWS).key(2))]
    lines.append(str(whole.values(ROWS[0])))
    few = whole.pick(["size", "kind"])
    lines += [str(few.keys), str(Table(COLUMNS, ROWS[2:3]).telling().keys)]
    return "\n".join(lines)


def terminal() -> str:
    lines = []
    for room in (None, 110, 80, 50, 20, 3):
        whole = Table(COLUMNS, ROWS)
        shown, left_out = fitted_lines(whole, room)
        lines += [f"-- {room}, without {left_out}", *shown]
        lines += ["--", *text_lines(whole.pick(["name", "ms", "tags", "kind"]), room)]
    lines += ["-- one of two", *fitted_lines(Table(COLUMNS[:2], ROWS), 20)[0]]
    lines += [
        "-- nothing",
        *text_lines(Table(COLUMNS, [])),
        *fitted_lines(Table(COLUMNS, []), 30)[0],
    ]
    long = Table(COLUMNS[:2], [Row("n" * 300, "k" * 300)])
    lines += [f"{len(line)}" for room in (None, 400) for line in fitted_lines(long, room)[0]]
    return "\n".join(lines)


def formats() -> str:
    whole = Table(COLUMNS, ROWS, sort="ms")
    falling = Table(COLUMNS[:5], ROWS[:1], sort="size")
    many = Table(COLUMNS[:2], [Row(f"n{at}", "a type of 21 letters"[: at + 2]) for at in range(20)])
    parts = [csv_of(whole), markdown_of(whole), html_of("a", whole), html_of("b", falling),
             html_of("many", many)[:700], html_of("few", Table(many.columns, many.rows[:19]))[:60],
             html_of("brief", Table(many.columns, many.rows[:18]))[-90:],
             html_of("c", Table(COLUMNS, [])),
             markdown_plain("\\`*_[]<>&|~$@#a.-\n")]  # fmt: skip
    parts += [json.dumps(record) for record in json_of(whole)]
    return re.sub(r"\n?(?=<(?:tr|th|tbody)[ >])", "\n", "\n".join(parts).replace("\r\n", "\n"))


def frames() -> str:
    sections = [
        Section("one", "One & two", "<p>body</p>"),
        Section("none", "None", ""),
        Section("three", "Three", html_page.definitions([("a<", "b&"), ("c", "d")])),
    ]
    made = html_page.page(HOSTILE, ["a line <", "", "another"], "TOP", sections, "b { x: y }")
    plain = html_page.page("t", [], "", [])
    for text in (STYLE, SCRIPT):
        made = made.replace(text, "OURS").replace(digest(text), "sha256-OURS")
        plain = plain.replace(text, "OURS").replace(digest(text), "sha256-OURS")
    lines = [("first", "warning"), ("second <", "inner"), ("third", "info")]
    boxes = html_page.tiles([Tile("title <", "1 & 2"), Tile("t", "v")])
    marks = html_page.attributes(data_v='a"', class_="x", id=None, n=0)
    return "\n".join([made, plain, html_page.paragraphs(lines), boxes, marks])


def drawings() -> str:
    dice = random.Random(3)
    long = [f"a rather long name of an engine {at} <" for at in range(11)]
    rows = [
        Bar("/model/block.0/conv <first>", (4.0, None, 0.0), ("4 ms", "–", "0 <")),
        Bar("none", (None, None, None), ("–", "–", "–")),
        Bar("x" * 60, (1.0, 0.001, 2.5), ("1", "least", "2.5")),
    ]
    spread = [5 + sum(dice.randrange(100) for _ in range(6)) / 300 for at in range(400)]
    marks = [("least", 5.0), ("median", 5.7), ("high <", 6.3), ("beyond", 99.0)]
    histograms = [
        (spread, marks, "ms"), ([*spread, 50.0, 60.0], marks, "<s>"), ([1.0, 2.0], [], "ms"),
        ([*spread[:150], 8.0], marks[2:], "ms"), ([*spread[:199], 60.0], [], "ms"),
        ([*spread[:198], 60.0], [], "ms"), ([3.0] * 5, [("all", 3.0)], "ms"),
        ([0.0, 0.0], [], "ms"), ([1.0], [], "ms"),
        ([1e-9, 1e9], [], "ms"), ([-1.0, 1.0], [("low", -1.0)], "ms"),
        ([float("nan"), 1.0, 2.0, 4.0, float("inf")], [], "ms"),
    ]  # fmt: skip
    parts = [
        html_page.bars(rows, ["base", "n <", "third"]),
        html_page.bars([Bar("all", tuple(map(float, range(11))), tuple("abcdefghijk"))], long),
        html_page.bars(rows[:1], ["l" * 130, "s" * 20, "t" * 90]),
        html_page.bars([Bar("one", (1.0,), ("1",))], ["only"]),
        html_page.bars(rows[1:2]) + html_page.bars([Bar("zero", (0.0,), ("0",))]),
        html_page.time_bars([("a", 1.5, 60.0), ("b", None, None), ("c", 0.25, 1.0)]),
        *(html_page.histogram(*about) for about in histograms),
        *(str(html_page.ticks(*ends)) for ends in (
            (0, 10), (0.3, 1.1, 4), (1, 1), (0, float("inf")), (-3, 7.5), (2e-7, 9e-7), (0, 1e6),
            (0, 21), (0, 100, 9),
        )),
        str([html_page.scale(low, high, 10, 20).at(at) for low, high in ((0, 4), (2, 2))
             for at in (-1, 0, 1, 2.5, 9)]),
        html_page.svg(3.14159, ["a", "b"], "label <"),
        str([html_page.short("/block.0/MatMul\n", most) for most in (2, 8, 16, 17)]),
    ]  # fmt: skip
    return re.sub(r"\n?(?=<(?:rect|line|text)[ >])", "\n", "\n".join(parts))


def test_whole_tables(recorded: Recorded) -> None:
    made = (units, tables, terminal, formats, frames, drawings)
    recorded("whole_tables", {one.__name__: one() for one in made})


def test_the_policy_allows_only_what_the_page_holds() -> None:
    made = html_page.page("t", [], "", [])
    policy = html_page.policy()
    assert f'content="{policy}"' in made
    for kind, ours in (("script", SCRIPT), ("style", STYLE)):
        assert re.findall(f"<{kind}>(.*)</{kind}>", made, re.DOTALL) == [ours]
        assert digest(ours) in policy
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
