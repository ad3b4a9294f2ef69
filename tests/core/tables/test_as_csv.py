from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dld_tui.core.tables.rendering import csv_text

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
