"""Untrusted text cannot reach a terminal raw, and takes exactly the room it is given."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dld_tui.core.text import (
    cell_width,
    clip,
    comma_separated,
    common_prefix,
    encodable,
    fit,
    quoted,
    visible,
    without_escapes,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain [bold]", "plain [bold]"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\x1b]52;c;aGk=\x07", "\\x1b]52;c;aGk=\\x07"),
        ("\x9b31m", "\\x9b31m"),
        ("a\u202egnp.exe", "a\\u202egnp.exe"),
        ("\udcff\udcfe", "\\xff\\xfe"),
        (b"\xffa", "\\xffa"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
        ("\udc80\udc7f\udd00", "\\x80\\udc7f\\udd00"),
        ("\uffff\xad\xff\u0100\uffff", "\\uffff\\xadÿĀ\\uffff"),
        ("卷积/é", "卷积/é"),
    ],
)
def test_visible(text: str | bytes, shown: str) -> None:
    assert visible(text) == shown


@given(st.text())
def test_visible_text_holds_no_control_and_stays_so(text: str) -> None:
    shown = visible(text)
    assert all(ord(char) >= 0x20 and not 0x7F <= ord(char) <= 0x9F for char in shown)
    assert not any(0xD800 <= ord(char) <= 0xDFFF for char in shown)
    assert visible(shown) == shown


@pytest.mark.parametrize(
    ("text", "keep", "shown"),
    [
        ("abcde", "start", ["", "…", "a…", "ab…", "abc…", "abcde", "abcde"]),
        ("abcde", "end", ["", "…", "…e", "…de", "…cde", "abcde", "abcde"]),
        ("abcde", "middle", ["", "…", "a…", "a…e", "ab…e", "abcde", "abcde"]),
        ("卷积a层", "start", ["", "…", "…", "卷…", "卷…", "卷积…", "卷积a…", "卷积a层"]),
        ("卷积a层", "end", ["", "…", "…", "…层", "…a层", "…a层", "…积a层", "卷积a层"]),
        ("卷积a层", "middle", ["", "…", "…", "…", "卷…", "卷…层", "卷…层", "卷积a层"]),
        ("e\u0301" * 3, "start", ["", "…", "e\u0301…", "e\u0301e…"]),
    ],
)
def test_clip_says_where_something_is_missing(text: str, keep: str, shown: list[str]) -> None:
    assert [clip(text, cells, keep=keep) for cells in range(len(shown))] == shown


def test_foreign_text_of_other_programs() -> None:
    assert without_escapes("\x1b[31mred\x1b[0m \x1b]x \x1b[?25h\x1b[2 q.") == "red \x1b]x ."
    assert without_escapes("plain") == "plain"
    assert [encodable("Größe"), encodable("a\udcff"), encodable("a")] == ["Größe", "a\\udcff", "a"]
    assert quoted("a\n" * 30) == "'" + "a\\n" * 10 + "…" + "\\na" * 9 + "\\n'"
    assert quoted("a" * 61) == f"'{'a' * 30}…{'a' * 29}'"
    assert quoted("a" * 60) == f"'{'a' * 60}'"
    assert comma_separated(" a,b , ,", "", "c") == ["a", "b", "c"]
    assert [fit("ab", 4), fit("ab", 4, align="right"), fit("卷ab", 3)] == ["ab  ", "  ab", "卷…"]
    assert [common_prefix(["ab", "abc", "abd"]), common_prefix(["xa", "xb"])] == ["ab", "x"]


@given(
    st.text(alphabet=st.sampled_from("ab卷é\u0301"), max_size=30),
    st.integers(0, 20),
    st.sampled_from(["start", "end", "middle"]),
    st.sampled_from(["left", "right"]),
)
def test_fit_takes_exactly_its_cells(text: str, cells: int, keep: str, align: str) -> None:
    assert cell_width(fit(text, cells, keep=keep, align=align)) == cells


def test_a_name_of_many_megabytes_is_cut_without_being_measured() -> None:
    assert clip("卷" * 5_000_000, 7) == "卷卷卷…"
