"""Elements of every ONNX type go through bytes and JSON without loss."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from onnx import numpy_helper
from onnx.reference.ops.op_cast import cast_to

from dld_tui.core.errors import CancelledError, EditError
from dld_tui.core.files.external import element_bits
from dld_tui.core.model.document import Document
from dld_tui.core.model.tensors.elements import (
    Array,
    cast_values,
    encode_elements,
    float_limit,
    from_json,
    integer_limits,
    is_float,
    native_type,
    payload_bytes,
    plan_conversion,
    prepare_conversion,
    require_convertible,
    require_dims,
    require_dtype,
    to_json,
)
from dld_tui.core.model.tensors.tensor import Tensor
from tests.support import models
from tests.support.elements import DTYPES, tensor_of
from tests.support.sessions import tensor_in


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


REAL = [dtype for dtype in DTYPES if not dtype.startswith("complex")]
FLOATS = [dtype for dtype in REAL if is_float(dtype)]
COUNT = 1000


def sample(dtype: str, seed: int) -> Array:
    """Return a thousand native elements of all magnitudes, with NaN and infinities."""
    generator = np.random.default_rng(seed)
    if dtype in FLOATS:
        wide = generator.normal(0, 1, COUNT) * 2.0 ** generator.integers(-30, 30, COUNT)
        wide[:3] = np.nan, np.inf, -np.inf
        with np.errstate(all="ignore"):
            return np.asarray(wide.astype(native_type(dtype)))
    bits = bytes(generator.integers(0, 2 if dtype == "bool" else 256, 8 * COUNT, dtype=np.uint8))
    proto = onnx.TensorProto(data_type=require_dtype(dtype), dims=[COUNT])
    proto.raw_data = bits[: math.ceil(COUNT * (Tensor(proto, None).bits or 8) / 8)]
    return Tensor(proto, None).read()


@settings(max_examples=150)
@given(
    source=st.sampled_from(REAL),
    target=st.sampled_from(REAL),
    seed=st.integers(0, 1000),
    saturate=st.booleans(),
)
def test_a_thousand_elements_as_the_reference_casts_them(
    source: str, target: str, seed: int, saturate: bool
) -> None:
    values = sample(source, seed)
    found = cast_values(values, source, target, saturate=saturate)
    if source == target:
        assert found is values
        return
    # Integers narrower than a byte have a type of their own in the reference.
    narrow = source in ("int4", "uint4", "int2", "uint2")
    given_values = values.astype(getattr(ml_dtypes, source)) if narrow else values
    number: Any = require_dtype(target)
    defined = np.ones(COUNT, np.bool_)
    if source in FLOATS and target not in FLOATS and target != "bool":
        # ONNX leaves open what floats out of an integer's range become.
        bits = {"int4": 4, "uint4": 4, "int2": 2, "uint2": 2}.get(target)
        bits = bits or np.dtype(target).itemsize * 8
        low, high = (
            (0.0, 2.0**bits) if target[0] == "u" else (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1))
        )
        whole = np.trunc(values.astype(np.float64))
        defined = (whole >= low) & (whole < high)
    with np.errstate(all="ignore"):
        try:
            expected = cast_to(given_values, number, saturate, "up")
        except TypeError:  # two types of ml_dtypes that do not know each other
            between = np.int8 if narrow else np.float32
            expected = cast_to(given_values.astype(between), number, saturate, "up")
        first = found.astype(np.float64)[defined]
        second = np.asarray(expected).astype(np.float64)[defined]
    assert np.array_equal(first, second, equal_nan=True)


@settings(max_examples=60)
@given(source=st.sampled_from(REAL), target=st.sampled_from(REAL), seed=st.integers(0, 99))
@example(source="bool", target="uint64", seed=0)
def test_the_report_counts_each_element_once_and_lossless_means_it(
    source: str, target: str, seed: int
) -> None:
    values = sample(source, seed)
    report = plan_conversion(tensor_of(values, source), target)
    assert report.count == COUNT
    wide = values.astype(np.longdouble) if values.dtype.kind in "fiub" else values.astype(float)
    result = cast_values(values, source, target)
    after = result.astype(np.longdouble) if result.dtype.kind in "fiub" else result.astype(float)
    changed = int((~((wide == after) | (np.isnan(wide) & np.isnan(after)))).sum())
    lost = report.overflow + report.underflow + report.rounded
    assert lost + report.nan_lost + report.infinite_lost == changed
    assert report.lossless == (changed == 0)
    assert report.nan == int(np.isnan(wide).sum())


def counts(values: list[float], source: str, target: str) -> tuple[int, ...]:
    native = np.array(values, np.float64).astype(native_type(source))
    report = plan_conversion(tensor_of(native, source), target)
    return report.overflow, report.underflow, report.rounded, report.nan_lost, report.infinite_lost


def test_each_kind_of_loss_is_told_apart() -> None:
    assert counts([1, 70000, 1e-9, 0.1, np.nan, np.inf], "float32", "float16") == (1, 1, 1, 0, 0)
    assert counts([500, np.inf, 0.25], "float32", "float8e4m3fn") == (1, 0, 0, 0, 1)
    assert counts([1.5, 300, np.nan, np.inf, -7], "float32", "uint8") == (2, 0, 1, 1, 1)
    assert counts([-9, 8, 7], "int64", "int4") == (2, 0, 0, 0, 0)
    assert counts([2.0**24 + 1], "int64", "float32") == (0, 0, 1, 0, 0)
    assert counts([7, 7.1, 0.1], "float32", "float4e2m1") == (1, 1, 1, 0, 0)
    assert counts([-2, 3, 4], "float32", "float8e8m0") == (1, 0, 1, 0, 0)


@pytest.mark.parametrize(
    ("values", "source", "target", "error"),
    [
        ([2**62 + 1, 5], "int64", "float64", 1.0),  # exact for 64 bits
        ([2**63 + 2**10, 5], "uint64", "int64", 2.0**64),
        ([-9, 7], "int64", "int4", 16.0),
        ([2, 300], "int64", "uint8", 256.0),
        ([3, 0, 1], "int8", "bool", 2.0),
        ([1.75, 300.0], "float32", "uint8", 45.0),
        ([0.25, -0.5], "float64", "float4e2m1", 0.25),
        ([7, 1], "int8", "int64", 0.0),
    ],
)
def test_the_largest_error_is_told(
    values: list[float], source: str, target: str, error: float
) -> None:
    native = np.array(values, native_type(source))
    assert plan_conversion(tensor_of(native, source), target).max_error == error


@pytest.mark.parametrize(
    ("source", "target"), [("float32", "string"), ("complex64", "float32"), ("float32", "real")]
)
def test_senseless_conversions_are_refused(source: str, target: str) -> None:
    with pytest.raises(EditError):
        plan_conversion(tensor_of(np.zeros(2, source), source), target)


def test_complex_numbers() -> None:
    values = np.array([1 + 2j, 1e300])
    report = plan_conversion(tensor_of(values, "complex128"), "complex64")
    assert (report.overflow, report.rounded) == (1, 0)
    assert cast_values(np.array([3], np.int8), "int8", "complex64").tolist() == [3 + 0j]


def test_progress_cancelling_and_preparing(tmp_path: Path) -> None:
    document = Document.open(models.write(tmp_path, models.CHAIN))
    size = 600_000
    document.apply(
        "add_initializer", scope=[], name="n", dtype="float32", dims=[size],
        fill={"kind": "normal", "seed": 5},
    )  # fmt: skip
    tensor = tensor_in(document, "n")
    heard: list[tuple[int, int]] = []
    report = prepare_conversion(tensor, "bfloat16", progress=lambda *done: heard.append(done))
    assert heard[-1] == (size, size)
    assert report.rounded > size / 2
    with pytest.raises(CancelledError):
        plan_conversion(tensor, "bfloat16", cancelled=lambda: True)
    before = tensor.read()
    assert len(document.prepared) == 1
    document.apply("convert_tensor", scope=[], tensor={"initializer": "n"}, dtype="bfloat16")
    assert document.prepared == {}
    assert np.array_equal(tensor_in(document, "n").read(), before.astype(ml_dtypes.bfloat16))


@pytest.mark.parametrize(
    ("source", "target", "fits"),
    [
        ("float32", "int8", True), ("float32", "complex64", True),
        ("complex64", "complex128", True),
        ("complex64", "float32", False), ("string", "string", False), ("string", "int8", False),
        ("int8", "string", False), ("float99", "int8", False), ("int8", "float99", False),
    ],
)  # fmt: skip
def test_what_can_be_converted_into_what(source: str, target: str, fits: bool) -> None:
    if fits:
        require_convertible(source, target)
    else:
        with pytest.raises(EditError):
            require_convertible(source, target)
