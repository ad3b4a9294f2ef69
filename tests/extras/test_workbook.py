"""Workbooks: read back from their XML, as the standard says it is."""

from __future__ import annotations

import io
import math
import re
import sys
import zipfile
from operator import itemgetter
from typing import Any
from xml.etree import ElementTree

import pytest

from dld_tui.core.errors import UnavailableError
from dld_tui.core.tables.table import COUNT, MS, Column, Table
from dld_tui.extras.workbook import content

SPACE = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
COLUMNS: tuple[Column[tuple[Any, ...]], ...] = (
    Column("name", "layer", itemgetter(0)),
    Column("ms", "time ms", itemgetter(1), MS),
    Column("count", "count", itemgetter(2), COUNT),
)
ROWS = [
    ('conv1 <&> "x"', 0.1 + 0.2, 3), ("=cmd()\x1b[31m\ufffe", None, 2**40),
    (None, float("inf"), True), (" \u00e9\n" + "y" * 40_000, -1e-300, 0),
]  # fmt: skip


def read(data: bytes) -> dict[str, list[list[Any]]]:
    """Return the values of all sheets by name."""
    found: dict[str, list[list[Any]]] = {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in archive.namelist():
            ElementTree.fromstring(archive.read(name))
        assert archive.testzip() is None
        book = ElementTree.fromstring(archive.read("xl/workbook.xml"))
        shared = ElementTree.fromstring(archive.read("xl/sharedStrings.xml"))
        texts = ["".join(item.itertext()) for item in shared]
        for number, sheet in enumerate(book.iter(f"{SPACE}sheet"), start=1):
            tree = ElementTree.fromstring(archive.read(f"xl/worksheets/sheet{number}.xml"))
            rows = [cells(row, texts) for row in tree.iter(f"{SPACE}row")]
            found[sheet.attrib["name"]] = rows
    return found


def cells(row: ElementTree.Element, texts: list[str]) -> list[Any]:
    """Return the values of a row; cells that are not there are empty."""
    found = {ord(cell.attrib["r"][0]) - ord("A"): value(cell, texts) for cell in row}
    return [found.get(place) for place in range(len(COLUMNS))]


def value(cell: ElementTree.Element, texts: list[str]) -> Any:
    kind, number = cell.get("t"), cell.findtext(f"{SPACE}v")
    if kind == "s":
        return texts[int(number or "")]
    return bool(int(number or "")) if kind == "b" else None if number is None else float(number)


def test_cells_keep_their_values() -> None:
    sheets = read(content([("Layers", Table(COLUMNS, ROWS))], {}))
    head, *rows = sheets["Layers"]
    assert head == ["layer", "time ms", "count"]
    assert rows[0] == [ROWS[0][0], pytest.approx(0.3, rel=1e-15), 3.0]
    assert rows[1][0].startswith("=cmd()")
    assert "\x1b" not in rows[1][0]
    assert rows[1][1:] == [None, 2.0**40]
    assert rows[2] == [None, "inf", True]
    assert len(rows[3][0]) == 32_767
    assert rows[3][1:] == [-1e-300, 0.0]


def test_heads_alone_are_bold() -> None:
    with zipfile.ZipFile(io.BytesIO(content([("Layers", Table(COLUMNS, ROWS))], {}))) as archive:
        styles = ElementTree.fromstring(archive.read("xl/styles.xml"))
        sheet = ElementTree.fromstring(archive.read("xl/worksheets/sheet1.xml"))
    fonts = [font.find(f"{SPACE}b") is not None for font in styles.iter(f"{SPACE}font")]
    formats = styles.find(f"{SPACE}cellXfs")
    assert formats is not None
    bold = [fonts[int(one.attrib["fontId"])] for one in formats]
    rows = [[bold[int(cell.get("s", 0))] for cell in row] for row in sheet.iter(f"{SPACE}row")]
    assert all(rows[0])
    assert not any(map(any, rows[1:]))


def test_names_of_sheets_and_odd_contents() -> None:
    # Names of sheets.
    table = Table(COLUMNS, ROWS[:1])
    names = ["By type", "by TYPE", "a/b:c[d]", "x" * 40, "x" * 41, ""]
    found = list(read(content([(name, table) for name in names], {})))
    assert found == ["By type", "by TYPE 2", "a b c d", "x" * 31, f"{'x' * 29} 2", "Table"]
    # A number that no cell can hold is text.
    most, more = 9.99999999999999e307, math.nextafter(9.99999999999999e307, math.inf)
    rows = [("x", most, 10**400), ("y", -more, sys.float_info.max)]
    sheets = read(content([("Layers", Table(COLUMNS, rows))], {}))
    assert [row[1:] for row in sheets["Layers"][1:]] == [
        [most, str(10**400)], [str(-more), str(sys.float_info.max)]
    ]  # fmt: skip
    # The same tables are the same bytes.
    tables = [("Layers", Table(COLUMNS, ROWS))]
    book = content(tables, {})
    assert book == content(tables, {})
    with zipfile.ZipFile(io.BytesIO(book)) as archive:  # also in another second
        dates = re.findall(r">(\d{4}-\d\d-\d\dT.*?)<", archive.read("docProps/core.xml").decode())
        assert {*dates} == {"1980-01-01T00:00:00Z"}
        assert {one.date_time[0] for one in archive.infolist()} == {1980}


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    with pytest.raises(UnavailableError, match="XlsxWriter"):
        content([], {})


def test_columns_are_as_wide_as_their_longest_text_up_to_a_limit() -> None:
    for name, widest in (("x" * 20, 20), ("x" * 500, 0)):
        book = content([("Layers", Table(COLUMNS, [(name, 0.5, 3)]))], {})
        with zipfile.ZipFile(io.BytesIO(book)) as archive:
            sheet = ElementTree.fromstring(archive.read("xl/worksheets/sheet1.xml"))
        widths = [float(one.attrib["width"]) for one in sheet.iter(f"{SPACE}col")]
        assert widths[0] > widest
        assert widths[0] < 100
        assert widths[1] > len("time ms")
