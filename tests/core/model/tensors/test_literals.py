"""Attribute literals: what people type, and what they are shown."""

from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dld_tui.core.errors import ExitStatus
from dld_tui.core.model.tensors.literals import (
    KINDS,
    LiteralError,
    LiteralRangeError,
    format_literal,
    infer_kind,
    parse_literal,
    split_list,
)
from dld_tui.core.text import visible

FLOAT32 = st.floats(width=32)


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("3", "int", 3),
        (" -7 ", "int", -7),
        ("0x10", "int", 16),
        ("true", "int", 1),
        ("False", "int", 0),
        ("9223372036854775807", "int", 2**63 - 1),
        ("-9223372036854775808", "int", -(2**63)),
        ("0.5", "float", 0.5),
        ("2", "float", 2.0),
        ("1e-2", "float", 0.009999999776482582),
        ("-inf", "float", -math.inf),
        ("'text'", "string", b"text"),
        (r"'it\'s'", "string", b"it's"),
        ('"it\'s"', "string", b"it's"),
        (r"'a\\b\n\t\xff'", "string", b"a\\b\n\t\xff"),
        (r"'\u00e9\U0001F600'", "string", "é😀".encode()),
        ("'é'", "string", "é".encode()),
        ("SAME_UPPER", "string", b"SAME_UPPER"),
        ("''", "string", b""),
        ("[1, 2,3 ]", "ints", [1, 2, 3]),
        ("[1, 2,]", "ints", [1, 2]),
        ("[]", "ints", []),
        ("1,1", "ints", [1, 1]),
        ("1 1", "ints", [1, 1]),
        ("3", "ints", [3]),
        ("0.5, 1 ,", "floats", [0.5, 1.0]),
        ("[]", "floats", []),
        ("[]", "strings", []),
        ("[1, 0.5]", "floats", [1.0, 0.5]),
        ("['a', b, \"c\"]", "strings", [b"a", b"b", b"c"]),
        ("['a, ]b']", "strings", [b"a, ]b"]),
    ],
)
def test_a_literal_has_a_value(text: str, kind: str, value: object) -> None:
    assert parse_literal(text, kind) == value


@pytest.mark.parametrize(
    ("text", "kind", "column", "message"),
    [
        ("", "int", 1, "a whole number is expected"),
        ("1.5", "int", 1, "1.5 is not a whole number"),
        ("1_000", "int", 1, "not a whole number"),
        ("1 2", "int", 3, "should end here"),
        ("[1]", "int", 1, "not a list"),
        ("", "ints", 1, "a list is expected"),
        ("3 x", "ints", 3, "whole number"),
        ("[1, 2", "ints", 1, "not closed"),
        ("[1 2]", "ints", 4, "a comma or ]"),
        ("[1, [2]]", "ints", 5, "not a list"),
        ("[,]", "ints", 2, "a whole number is expected"),
        ("1.0.0", "float", 1, "is not a number"),
        ("1_0", "float", 1, "is not a number"),
        ("'abc", "string", 1, "not closed"),
        (r"'abc\'", "string", 1, "not closed"),
        (r"'a\q'", "string", 3, "unknown escape"),
        (r"'\xf'", "string", 2, "unknown escape"),
        (r"'\ud800'", "string", 2, "is not a character"),
        ("two words", "string", 5, "should end here"),
        ("9lives", "string", 1, "in quotes"),
        ("'a' 'b'", "string", 5, "should end here"),
        ("{}", "graph", 1, "cannot be typed"),
    ],
)
def test_a_malformed_literal_is_refused_with_its_column(
    text: str, kind: str, column: int, message: str
) -> None:
    with pytest.raises(LiteralError, match=message.replace("]", r"\]")) as caught:
        parse_literal(text, kind)
    assert caught.value.column == column
    assert caught.value.status is ExitStatus.USAGE
    assert str(caught.value).startswith(f"column {column}: ")


@pytest.mark.parametrize(
    ("text", "kind", "column"),
    [
        ("9223372036854775808", "int", 1),
        ("[0, -9223372036854775809]", "ints", 5),
        ("9" * 5000, "int", 1),
        ("3.5e38", "float", 1),
        ("1" * 400, "float", 1),
        ("[1.0, 1e-60]", "floats", 7),
    ],
)
def test_a_number_out_of_range_is_refused(text: str, kind: str, column: int) -> None:
    with pytest.raises(LiteralRangeError) as caught:
        parse_literal(text, kind)
    assert caught.value.column == column


def test_an_error_shows_no_more_than_a_little_foreign_text() -> None:
    with pytest.raises(LiteralError) as caught:
        parse_literal("\x1b[31m" + "x" * 100_000, "float")
    assert len(str(caught.value)) < 200
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.10000000149011612, "0.1"),
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (9.999999747378752e-06, "1e-05"),
        (3.4028234663852886e38, "3.4028235e+38"),
        (16777216.0, "16777216.0"),
        (math.nan, "nan"),
        (math.inf, "inf"),
    ],
)
def test_a_float_is_shown_as_the_shortest_decimal(value: float, shown: str) -> None:
    assert format_literal(value, "float") == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (b"it's", r"'it\'s'"),
        (b"a\\n\n", r"'a\\n\n'"),
        (b"\xff\x00", r"'\xff\x00'"),
        ("é\u0085\u00ad\u202e".encode(), r"'é\u0085\u00ad\u202e'"),
        ("text", "'text'"),
    ],
)
def test_a_string_is_shown_in_single_quotes(value: bytes | str, shown: str) -> None:
    assert format_literal(value, "string") == shown


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_integers_round_trip(values: list[int]) -> None:
    assert parse_literal(format_literal(values, "ints"), "ints") == values


@given(st.lists(FLOAT32))
def test_floats_round_trip_bit_for_bit(values: list[float]) -> None:
    back = parse_literal(format_literal(values, "floats"), "floats")
    assert isinstance(back, list)
    assert [_bits(value) for value in back if isinstance(value, float)] == [
        _bits(value) for value in values
    ]


@given(st.one_of(st.binary(), st.text().map(str.encode)))
def test_strings_round_trip_and_never_carry_control_characters(value: bytes) -> None:
    shown = format_literal(value, "string")
    assert parse_literal(shown, "string") == value
    assert visible(shown) == shown


@given(st.lists(st.binary(max_size=8)))
def test_string_lists_round_trip(values: list[bytes]) -> None:
    assert parse_literal(format_literal(values, "strings"), "strings") == values


@given(st.text(alphabet="[]'\"\\ ,.-+0123456789abefinqxu\x00\ud800", max_size=12))
def test_no_text_makes_the_parser_fail_in_another_way(text: str) -> None:
    for kind in KINDS:
        column = 1
        try:
            shown = format_literal(parse_literal(text, kind), kind)
        except LiteralError as error:
            column = error.column
        else:
            assert format_literal(parse_literal(shown, kind), kind) == shown
        assert 1 <= column <= len(text) + 1


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("3", "int"),
        ("3.0", "float"),
        ("inf", "float"),
        ("true", "int"),
        ("'3'", "string"),
        ("LINEAR", "string"),
        ("[1, 2]", "ints"),
        ("[1, 2.0]", "floats"),
        ("['1']", "strings"),
        ("float32 [1]", "tensor"),
    ],
)
def test_the_kind_is_inferred_from_the_look(text: str, kind: str) -> None:
    assert infer_kind(text) == kind


@pytest.mark.parametrize("text", ["[]", "[ ]", "", "[1, 'a']", "9" * 30, "[[1]]", "float32 [1,"])
def test_no_kind_is_inferred_where_none_or_several_fit(text: str) -> None:
    with pytest.raises(LiteralError):
        infer_kind(text)


def _bits(value: float) -> bytes:
    return b"nan" if math.isnan(value) else struct.pack("<f", value)


def test_lists_are_split_outside_of_brackets_and_quotes() -> None:
    assert split_list(" a=1, b=[1, [2, 3]],c='x, y' ,, d=\"]\"") == [
        "a=1", "b=[1, [2, 3]]", "c='x, y'", 'd="]"'
    ]  # fmt: skip
    assert split_list(" ") == []
    with pytest.raises(LiteralError, match="column 3: this list is not closed"):
        split_list("a=[1, 2")
