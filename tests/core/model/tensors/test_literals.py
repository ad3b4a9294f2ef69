"""Attribute literals: what people type, and what they are shown."""

from __future__ import annotations

import math
import struct
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dld_tui.core.errors import ExitStatus, UsageError
from dld_tui.core.model.tensors.literals import (
    KINDS,
    TENSOR_LITERAL_LIMIT,
    LiteralError,
    LiteralRangeError,
    format_literal,
    infer_kind,
    lines_literal,
    list_lines,
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


LISTS: dict[str, st.SearchStrategy[Any]] = {
    "ints": st.integers(-(2**63), 2**63 - 1),
    "strings": st.binary(max_size=8) | st.text("a' ,\n[]\"\\", max_size=8).map(str.encode),
}


@pytest.mark.parametrize("kind", LISTS)
@given(st.data())
def test_lists_round_trip_in_one_line_and_in_a_line_each(kind: str, data: st.DataObject) -> None:
    values = data.draw(st.lists(LISTS[kind]))
    assert parse_literal(format_literal(values, kind), kind) == values
    text = list_lines(values, kind)
    assert len(text.splitlines()) == len(values)
    assert parse_literal(lines_literal(text, kind), kind) == values
    if kind == "strings" and values:
        array = np.array(values, object)
        assert parse(format_literal(array, "tensor")).tolist() == values


@given(st.lists(FLOAT32))
def test_floats_round_trip_bit_for_bit(values: list[float]) -> None:
    for text in (
        format_literal(values, "floats"),
        lines_literal(list_lines(values, "floats"), "floats"),
    ):
        back = parse_literal(text, "floats")
        assert isinstance(back, list)
        assert [_bits(value) for value in back if isinstance(value, float)] == [*map(_bits, values)]


@given(st.one_of(st.binary(), st.text().map(str.encode)))
def test_strings_round_trip_and_never_carry_control_characters(value: bytes) -> None:
    shown = format_literal(value, "string")
    assert parse_literal(shown, "string") == value
    assert visible(shown) == shown


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


@pytest.mark.parametrize(
    ("kind", "text", "literal"),
    [
        ("ints", "[1, 2,\n 3]\n\n4 5;6,", "[1, 2, 3, 4, 5, 6]"),
        ("ints", "", "[]"),
        ("floats", "1\t2.5\n-inf", "[1.0, 2.5, -inf]"),
        ("strings", "one\ntwo, more\n''\n'x',\n\n", "['one', 'two, more', '', 'x']"),
        ("strings", "C:\\temp", "['C:\\\\temp']"),
    ],
)  # fmt: skip
def test_what_other_programs_print_is_read(kind: str, text: str, literal: str) -> None:
    assert lines_literal(text, kind) == literal


@pytest.mark.parametrize(
    ("kind", "text"), [("ints", "1\n2.5"), ("floats", "1\nx"), ("strings", "a\n'b")]
)
def test_a_wrong_line_is_named(kind: str, text: str) -> None:
    with pytest.raises(UsageError, match=r"^line 2: "):
        lines_literal(text, kind)


SMALL_TYPES = (
    "int2", "int4", "uint2", "uint4", "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn",
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
)  # fmt: skip


def parse(text: str, dtype: str | None = None) -> np.ndarray[Any, Any]:
    array = parse_literal(text, "tensor", dtype=dtype)
    assert isinstance(array, np.ndarray)
    return array


@pytest.mark.parametrize(
    ("text", "dtype", "shape", "values"),
    [
        ("float32 [[1, 2], [3, 4.5]]", "float32", (2, 2), [[1, 2], [3, 4.5]]),
        ("int64 7", "int64", (), 7),
        ("float [1]", "float32", (1,), [1]),
        ("int64[2, 2] [1, 2, 3, 4]", "int64", (2, 2), [[1, 2], [3, 4]]),
        ("float32[0, 3] []", "float32", (0, 3), []),
        ("float32 [[], []]", "float32", (2, 0), [[], []]),
        ("int64 []", "int64", (0,), []),
        ("bool [true, 0]", "bool", (2,), [True, False]),
        ("uint8 [255]", "uint8", (1,), [255]),
        ("complex64 [1+2j, -1j]", "complex64", (2,), [1 + 2j, -1j]),
        ("FLOAT8E4M3FN [448]", "float8_e4m3fn", (1,), [448]),
        ("string [['a'], [b]]", "object", (2, 1), [[b"a"], [b"b"]]),
    ],
)
def test_a_tensor_literal_has_a_type_a_shape_and_values(
    text: str, dtype: str, shape: tuple[int, ...], values: object
) -> None:
    array = parse(text)
    assert array.dtype.name == dtype
    assert array.shape == shape
    assert array.tolist() == values


def test_the_wanted_type_is_used_when_the_text_names_none() -> None:
    assert parse("[1, 2]", "float16").dtype == np.float16
    assert parse("int8 [1, 2]", "float16").dtype == np.int8
    assert parse("[a]", "string").tolist() == [b"a"]
    assert parse("short", "string").tolist() == b"short", "a type alone is a text"


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("[1, 2]", 1, "element type"),
        ("flot32 [1]", 1, "element type"),
        ("float32 [1, [2]]", 13, "another shape"),
        ("float32 [[1], [2, 3]]", 15, "another shape"),
        ("float32 [1", 9, "not closed"),
        ("float32 [1 2]", 12, "a comma"),
        ("float32[2] [1]", 11, "1 values do not fill"),
        ("float32[-1] [1]", 8, "not a shape"),
        ("float32 1 2", 11, "should end"),
        ("float32 " + "[" * 40, 41, "dimensions"),
    ],
)
def test_a_malformed_tensor_is_refused(text: str, column: int, message: str) -> None:
    with pytest.raises(LiteralError, match=message) as caught:
        parse(text)
    assert caught.value.column == column


@pytest.mark.parametrize(
    "text",
    [
        "uint8 [256]", "uint8 [-1]", "int4 [8]", "bool [2]", "float16 [65536]", "float16 [1e-10]",
        "float4_e2m1fn [8]", "float4_e2m1fn [nan]", "float8_e4m3fn [inf]", "float8_e8m0fnu [-1]",
        "complex64 [1e39]", "float32 [1e39]",
    ],
)  # fmt: skip
def test_a_value_that_the_type_cannot_hold_is_refused(text: str) -> None:
    with pytest.raises(LiteralRangeError):
        parse(text)


def test_the_claimed_shape_allocates_nothing() -> None:
    with pytest.raises(LiteralError, match="do not fill"):
        parse("float32[1000000, 1000000] [1]")


def test_a_large_tensor_is_not_printed() -> None:
    with pytest.raises(LiteralError, match="too large"):
        format_literal(np.zeros(TENSOR_LITERAL_LIMIT + 1, np.float32), "tensor")


def test_a_type_that_no_literal_has_is_refused() -> None:
    with pytest.raises(LiteralError, match="datetime64"):
        format_literal(np.zeros(1, "datetime64[s]"), "tensor")


@pytest.mark.parametrize(
    ("array", "shown"),
    [
        (np.array([[1, 2]], np.float32), "float32 [[1.0, 2.0]]"),
        (np.array([0.1], np.float16), "float16 [0.1]"),
        (np.array([448], ml_dtypes.float8_e4m3fn), "float8e4m3fn [448.0]"),
        (np.array(True), "bool true"),
        (np.zeros((0, 2), np.int32), "int32[0, 2] []"),
        (np.array([0.1 + 1j], np.complex64), "complex64 [0.1+1.0j]"),
        (np.array([b"a'"], object), r"string ['a\'']"),
    ],
)
def test_a_tensor_is_shown_with_its_type(array: np.ndarray[Any, Any], shown: str) -> None:
    assert format_literal(array, "tensor") == shown


@pytest.mark.parametrize("dtype", SMALL_TYPES)
def test_every_number_of_a_small_type_round_trips(dtype: str) -> None:
    bits = {"2": 2, "4": 4, "6": 6}.get(next(c for c in dtype if c.isdigit()), 8)
    kind = np.dtype(getattr(ml_dtypes, dtype))
    array = np.arange(2**bits, dtype=np.uint8).view(kind)
    back = parse(format_literal(array, "tensor"))
    assert back.dtype == kind
    np.testing.assert_array_equal(back.astype(np.float64), array.astype(np.float64))


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)])
def test_every_half_number_round_trips(dtype: np.dtype[Any]) -> None:
    array = np.arange(0, 2**16, 7, dtype=np.uint16).view(dtype)
    back = parse(format_literal(array, "tensor"))
    assert [str(value) for value in back.tolist()] == [str(value) for value in array.tolist()]


@given(
    st.sampled_from(["float32", "float64", "complex64", "complex128"]),
    st.lists(st.floats(width=32), min_size=1, max_size=8),
)
def test_numbers_round_trip(dtype: str, values: list[float]) -> None:
    array = np.array(values, dtype)
    if array.dtype.kind == "c":
        array.imag = array.real[::-1]
    back = parse(format_literal(array, "tensor"))
    assert back.dtype == array.dtype
    np.testing.assert_array_equal(back, array)
    assert np.signbit(back.real).tolist() == [
        sign and not math.isnan(value)
        for sign, value in zip(np.signbit(array.real).tolist(), array.real.tolist(), strict=True)
    ]
