"""Untrusted text cannot reach a terminal raw, and takes exactly the room it is given."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dld_tui.core.text import cell_width, clip, fit, visible


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
    ("keep", "shown"), [("start", "abcd…"), ("end", "…ghij"), ("middle", "ab…ij")]
)
def test_clip_says_where_something_is_missing(keep: str, shown: str) -> None:
    assert clip("abcdefghij", 5, keep=keep) == shown
    assert [clip("abc", cells, keep=keep) for cells in (0, 1, 3)] == ["", "…", "abc"]


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
