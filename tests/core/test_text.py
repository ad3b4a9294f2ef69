"""Untrusted text cannot reach a terminal raw, and takes exactly the room it is given."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dld_tui.core import fmt
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


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0, "0 B"), (999, "999 B"), (1000, "1 kB"), (1_812_000_000, "1.81 GB"),
     (999_600, "1 MB"), (2**126, "8.51e+37 B")],
)  # fmt: skip
def test_size(value: int | None, text: str) -> None:
    assert fmt.size(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (12, "12"), (25_600_000, "25.6 M"), (999_900, "1000 k"), (7_000, "7 k")],
)
def test_short_count(value: float | None, text: str) -> None:
    assert fmt.short_count(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "–"), (0.0421, "42 ms"), (12.34, "12.3 s"), (59.96, "60.0 s"), (185, "3 min 5 s"),
     (7440, "2 h 4 min")],
)  # fmt: skip
def test_duration(seconds: float | None, text: str) -> None:
    assert fmt.duration(seconds) == text


@pytest.mark.parametrize(
    ("parts", "texts"),
    [
        ((1.0, 1.0, 1.0), ["34", "33", "33"]),
        ((66.6, 16.7, 16.7), ["66", "17", "17"]),
        ((99.6, 0.2, 0.2), ["100", "below 1", "below 1"]),
        ((50.5, 49.5), ["51", "49"]),
        ((3.0, 0.0), ["100", "0"]),
    ],
)
def test_whole_percents_of_all_parts_sum_to_100(parts: tuple[float, ...], texts: list[str]) -> None:
    assert fmt.whole_percents(parts, sum(parts)) == texts


def test_whole_percents_leave_room_for_what_is_not_listed() -> None:
    assert fmt.whole_percents((1.0, 1.0), 3.0) == ["34", "33"]
    assert fmt.whole_percents((50.5, 49.5), 200.0) == ["25", "25"]


def test_shapes_counts_times_and_percentages() -> None:
    assert fmt.shape(("N", 3, None)) == "[N, 3, ?]"
    assert (fmt.shape(()), fmt.shape(None)) == ("[]", "[…]")
    assert (fmt.count(10565), fmt.count(None)) == ("10,565", "–")
    assert (fmt.milliseconds(1234.5678), fmt.milliseconds(None)) == ("1,234.568", "–")
    assert (fmt.percent(12.34), fmt.percent(None)) == ("12.3", "–")
    assert [fmt.percent(one) for one in (99.94, 99.96, 459.8, 1234.5)] == [
        "99.9", "100", "460", "1,234",
    ]  # fmt: skip
    assert [fmt.whole_percent(one) for one in (0.0, 0.01, 0.5, 0.51, 1.4, 99.6)] == [
        "0", "below 1", "below 1", "1", "1", "100",
    ]  # fmt: skip


def test_of_many_texts_the_first_ones_and_how_many_more() -> None:
    assert fmt.listed([], 2) == ""
    assert fmt.listed(["a", "b"], 2) == "a, b"
    assert fmt.listed([*"abcd"], 2) == "a, b and 2 more"
