"""Elements of every ONNX type go through bytes and JSON without loss."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from dld_tui.core.errors import EditError
from dld_tui.core.files.external import element_bits
from dld_tui.core.tensors.elements import (
    encode_elements,
    float_limit,
    from_json,
    integer_limits,
    is_float,
    payload_bytes,
    require_dims,
    require_dtype,
    to_json,
)
from dld_tui.core.tensors.tensor import Tensor
from dld_tui.core.tensors.value_types import dtype_name

DTYPES = [
    dtype_name(number)
    for name, number in onnx.TensorProto.DataType.items()
    if name not in ("UNDEFINED", "STRING")
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_round_trips_and_agrees_with_onnx(dtype: str) -> None:
    number = require_dtype(dtype)
    generator = np.random.default_rng(1)
    length = payload_bytes(dtype, 24)
    assert length is not None
    raw = bytes(generator.integers(0, 2 if dtype == "bool" else 256, length, dtype=np.uint8))
    if dtype.startswith("complex"):
        raw = generator.normal(size=48).astype(f"f{length // 48}").tobytes()
    proto = onnx.TensorProto(data_type=number, dims=[24], raw_data=raw)
    values = Tensor(proto, None).read()
    assert encode_elements(values, dtype) == raw
    again = from_json(to_json(values, dtype), dtype)
    expected = numpy_helper.to_array(proto)
    if dtype.startswith("complex"):
        assert np.array_equal(again, expected)
        return
    wide = again.astype(np.float64)
    assert np.array_equal(wide, expected.astype(np.float64), equal_nan=True)


def test_odd_counts_fill_the_last_byte_with_zeros() -> None:
    assert encode_elements(np.array([-1, 7, 3], np.int8), "int4") == b"\x7f\x03"
    assert payload_bytes("int4", 3) == 2
    assert payload_bytes("uint2", 5) == 2
    assert element_bits(require_dtype("float6e2m3")) == 6


def test_strings_keep_bytes_that_are_not_utf8() -> None:
    values = np.array([b"a", b"\xff", "ü".encode()], dtype=object)
    assert from_json(to_json(values, "string"), "string").tolist() == values.tolist()


@pytest.mark.parametrize(
    ("dtype", "value", "why"),
    [
        ("int4", 8, "holds -8 to 7"),
        ("uint8", -1, "holds 0 to 255"),
        ("int8", 1.5, "not a whole number"),
        ("float16", 1e9, "at most 65504"),
        ("float32", 1e39, "at most"),
        ("float32", 10**400, ""),
        ("float16", 1e-30, "cannot hold"),
        ("bool", 2, "holds 0 to 1"),
        ("float32", "seven", "not a number"),
        ("float32", None, "a number is expected"),
        ("float32", [1], "a number is expected"),
        ("string", 7, "a string is expected"),
    ],
)
def test_values_that_do_not_fit_are_named(dtype: str, value: object, why: str) -> None:
    good: object = "a" if dtype == "string" else 1
    with pytest.raises(EditError, match=f"value 1: .*{why}"):
        from_json([good, value], dtype)  # type: ignore[list-item]


def test_whole_floats_fit_integer_types_and_text_is_exact() -> None:
    assert from_json([3.0, True], "int8").tolist() == [3, 1]
    assert from_json(["18446744073709551615"], "uint64").tolist() == [2**64 - 1]
    assert to_json(np.array([np.inf, np.nan, 0.5], np.float32), "float32") == ["inf", "nan", 0.5]


def test_limits() -> None:
    assert integer_limits("uint2") == (0, 3)
    assert float_limit("float8e4m3fn") == 448
    assert is_float("bfloat16")
    assert not is_float("complex64")


@pytest.mark.parametrize("dims", [7, [-1], [True], [1.0], [2**30, 2**30], [2**63, 0]])
def test_dimensions_that_no_tensor_has_are_refused(dims: object) -> None:
    with pytest.raises(EditError):
        require_dims(dims)


@pytest.mark.parametrize("dtype", ["undefined", "real", "type 99", 7])
def test_unknown_types_are_refused(dtype: str) -> None:
    with pytest.raises(EditError, match="no element type"):
        require_dtype(dtype)
