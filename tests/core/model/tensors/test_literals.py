"""Attribute literals: what people type, and what they are shown."""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dld_tui.core.errors import UsageError
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
from tests.support.recorded import Answered

FLOAT32 = st.floats(width=32)


def test_literals_are_read_and_shown_as_the_record_says(answered: Answered) -> None:
    answered("literals", _told)


def _told(question: str) -> str:
    """Return what a text is as a kind of literal, and how it is shown, or why it is none."""
    word, _, quoted = question.partition(" ")
    text = json.loads(quoted)
    kind, _, more = word.partition(":")
    try:
        if kind == "look":
            return infer_kind(text)
        if kind == "lines":
            return lines_literal(text, more)
        if kind == "split":
            return str(split_list(text))
        value = parse_literal(text, kind, dtype=more or None)
    except UsageError as error:
        return f"! {type(error).__name__} {error}"
    about = f"{value.dtype.name}{[*value.shape]}" if isinstance(value, np.ndarray) else repr(value)
    return f"{about} is shown as {format_literal(value, kind)}"


def test_an_error_shows_no_more_than_a_little_foreign_text() -> None:
    with pytest.raises(LiteralError) as caught:
        parse_literal("\x1b[31m" + "x" * 100_000, "float")
    assert len(str(caught.value)) < 200
    with pytest.raises(LiteralRangeError):
        parse_literal("9" * 5000, "int")
    assert "\x1b" not in str(caught.value)


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


def _bits(value: float) -> bytes:
    return b"nan" if math.isnan(value) else struct.pack("<f", value)


SMALL_TYPES = (
    "int2", "int4", "uint2", "uint4", "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn",
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
)  # fmt: skip


def parse(text: str, dtype: str | None = None) -> np.ndarray[Any, Any]:
    array = parse_literal(text, "tensor", dtype=dtype)
    assert isinstance(array, np.ndarray)
    return array


def test_a_large_tensor_is_not_printed() -> None:
    with pytest.raises(LiteralError, match="too large"):
        format_literal(np.zeros(TENSOR_LITERAL_LIMIT + 1, np.float32), "tensor")
    assert (
        format_literal(np.zeros(TENSOR_LITERAL_LIMIT, np.bool_), "tensor").count("false") == 10_000
    )


def test_a_type_that_no_literal_has_is_refused() -> None:
    with pytest.raises(LiteralError, match="datetime64"):
        format_literal(np.zeros(1, "datetime64[s]"), "tensor")


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
