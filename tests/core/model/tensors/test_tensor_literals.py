"""Literals of small tensors."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dld_tui.core.model.tensors.literals import (
    TENSOR_LITERAL_LIMIT,
    LiteralError,
    LiteralRangeError,
    format_literal,
    parse_literal,
)

SMALL_TYPES = (
    "int2",
    "int4",
    "uint2",
    "uint4",
    "float4_e2m1fn",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
)


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
        "uint8 [256]",
        "uint8 [-1]",
        "int4 [8]",
        "bool [2]",
        "float16 [65536]",
        "float16 [1e-10]",
        "float4_e2m1fn [8]",
        "float4_e2m1fn [nan]",
        "float8_e4m3fn [inf]",
        "float8_e8m0fnu [-1]",
        "complex64 [1e39]",
        "float32 [1e39]",
    ],
)
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


@given(st.lists(st.binary(max_size=6), min_size=1, max_size=6))
def test_string_tensors_round_trip(values: list[bytes]) -> None:
    array = np.array(values, object)
    assert parse(format_literal(array, "tensor")).tolist() == values
