"""Elements of every ONNX type: as numpy arrays, as the bytes of ``raw_data``, and as text.

*Native* arrays are what :meth:`Tensor.read` gives: the numpy type of the element type (ml_dtypes
for bfloat16, float8 and the like), int8 or uint8 for narrower integers, bytes objects for strings.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import CancelledError, EditError, InputError
from dld_tui.core.files.blobs import Blob, SpillFile
from dld_tui.core.files.external import element_bits
from dld_tui.core.model.tensors.literals import LiteralError, element_text, parse_element
from dld_tui.core.model.tensors.numpy_types import numpy_type
from dld_tui.core.model.tensors.tensor import Tensor
from dld_tui.core.model.tensors.value_types import dtype_name, dtype_number
from dld_tui.core.types import JSON, CancelCheck, ProgressCallback

Array: TypeAlias = "np.ndarray[Any, Any]"

NARROW_INTEGERS = {"int4": np.int8, "uint4": np.uint8, "int2": np.int8, "uint2": np.uint8}
PART_ELEMENTS = 1 << 18
"""Elements that are worked on at a time: with temporary arrays of float64 some 20 MB."""


def require_dtype(dtype: str) -> int:
    """Return the ``TensorProto.DataType`` of an element type.

    Raises:
        EditError: There is none of this name.
    """
    number = dtype_number(dtype) if isinstance(dtype, str) else None
    if not number:
        raise EditError(f"there is no element type {dtype!r:.40}")
    return number


def element_type(name: str) -> str:
    """Return this program's name of an element type: ``double`` and ``FLOAT64`` are ``float64``.

    Args:
        name: The name that ONNX or numpy has for it, in any case.

    Raises:
        EditError: There is none of this name.
    """
    return dtype_name(require_dtype(name))


def require_dims(dims: object) -> tuple[int, ...]:
    """Return dimensions that a tensor can have.

    Raises:
        EditError: They are no list of whole numbers from 0, or too many elements.
    """
    if not isinstance(dims, (list, tuple)):
        raise EditError("dims must be a list of whole numbers")
    for dim in dims:
        if isinstance(dim, bool) or not isinstance(dim, int) or dim < 0:
            raise EditError(f"{dim!r:.40} is not a dimension of a tensor")
    if math.prod(dims) > 2**48 or any(dim >= 2**63 for dim in dims):
        raise EditError("the tensor would have too many elements")
    return tuple(dims)


def payload_bytes(dtype: str, count: int) -> int | None:
    """Return the bytes that elements take; None for strings."""
    bits = element_bits(require_dtype(dtype))
    return None if bits is None else (count * bits + 7) // 8


def native_type(dtype: str) -> np.dtype[Any]:
    """Return the type of native arrays.

    Raises:
        EditError: There is no such element type.
    """
    if dtype in NARROW_INTEGERS:
        return np.dtype(NARROW_INTEGERS[dtype])
    kind = numpy_type(dtype_name(require_dtype(dtype)))
    if kind is None:
        raise EditError(f"elements of type {dtype} need a newer ml_dtypes")
    return kind


def is_numpy_type(kind: np.dtype[Any]) -> bool:
    """Return whether a type is numpy's own; those of ml_dtypes do not tell by their kind."""
    return kind.num < 256


def is_float(dtype: str) -> bool:
    """Return whether an element type is of floating point; complex ones are not."""
    return "float" in dtype


def integer_limits(dtype: str) -> tuple[int, int]:
    """Return the least and the largest number of an integer type or bool."""
    if dtype == "bool":
        return 0, 1
    bits = int(dtype.removeprefix("u").removeprefix("int"))
    return (0, 2**bits - 1) if dtype.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def float_limit(dtype: str) -> float:
    """Return the largest finite number of a floating point type."""
    import ml_dtypes

    kind = native_type(dtype)
    module: Any = np if is_numpy_type(kind) else ml_dtypes
    return float(module.finfo(kind).max)


def encode_elements(values: Array, dtype: str) -> bytes:
    """Return native elements as ``raw_data`` has them.

    Elements narrower than a byte are packed from the low bits up; a last byte is filled with zeros.
    """
    bits = element_bits(require_dtype(dtype)) or 8
    values = np.ascontiguousarray(values, native_type(dtype))
    if bits >= 8:
        little = values.astype(values.dtype.newbyteorder("<"), copy=False)
        return little.tobytes()
    codes = values.view(np.uint8) & np.uint8((1 << bits) - 1)
    rows = np.unpackbits(codes.reshape(-1, 1), axis=1, bitorder="little")[:, :bits]
    return np.packbits(rows.reshape(-1), bitorder="little").tobytes()


def raw_payload(tensor: Tensor) -> bytes | Blob:
    """Return the values of a tensor as ``raw_data`` has them; not for strings.

    Raises:
        InputError: They cannot be read.
    """
    try:
        return tensor.payload()
    except InputError:  # a few varints in the message itself
        return encode_elements(tensor.read(), tensor.dtype)


def from_json(values: Sequence[JSON], dtype: str) -> Array:
    """Return JSON values as native elements.

    Numbers are numbers; those that JSON has not (``nan``, ``inf``, ``1+2j``) are text, and so are
    strings.

    Raises:
        EditError: A value is not of the type or out of its range; says which.
    """
    kind = native_type(dtype)
    plain = _plain(values, dtype, kind)
    if plain is not None:
        return plain
    elements = np.empty(len(values), kind)
    for index, value in enumerate(values):
        try:
            elements[index] = _one(value, dtype)
        except LiteralError as error:
            raise EditError(f"value {index}: {error}") from None
    return elements


def _plain(values: Sequence[JSON], dtype: str, kind: np.dtype[Any]) -> Array | None:
    """Return the values when all are numbers that the type surely holds; quick for long lists."""
    if dtype not in ("float32", "float64") or not all(type(v) in (int, float) for v in values):
        return None
    with np.errstate(all="ignore"):
        try:
            wide = np.array(values, np.float64)
        except OverflowError:
            return None
        narrow = wide.astype(kind)
    same = (np.isfinite(wide) == np.isfinite(narrow)) & ((wide == 0) == (narrow == 0))
    return narrow if bool(same.all()) else None


def _one(value: JSON, dtype: str) -> Any:
    if dtype == "string":
        if not isinstance(value, str):
            raise LiteralError("a string is expected")
        return value.encode("utf-8", "surrogateescape")
    if isinstance(value, bool):
        value = int(value)
    if isinstance(value, (int, float, str)):
        text = value if isinstance(value, str) else repr(value)
        if isinstance(value, float) and value.is_integer() and not is_float(dtype):
            text = str(int(value))
        return parse_element(text, dtype)
    raise LiteralError("a number is expected")


def to_json(values: Array, dtype: str) -> list[JSON]:
    """Return native elements as :func:`from_json` reads them, without loss."""
    if dtype == "string":
        return [value.decode("utf-8", "surrogateescape") for value in values]
    if dtype == "bool" or not (is_float(dtype) or dtype.startswith("complex")):
        return [int(value) for value in values]
    if dtype.startswith("complex"):
        return [element_text(value, dtype) for value in values.tolist()]
    numbers = [float(value) for value in values]
    return [n if math.isfinite(n) else element_text(n, dtype) for n in numbers]


# The rules are those of ONNX's Cast: floats are rounded to the nearest, ties to even; float8 types
# hold their largest number for what is larger (`saturate`), float8e8m0 rounds up; numbers lose
# their fraction in integer types; integers that do not fit lose their high bits. Where ONNX leaves
# the result open, a float that does not fit an integer type gives the nearest number that does, NaN
# 0.

SATURATING = ("float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz")
"""Types for which `saturate` makes a difference."""


@dataclass
class ConversionReport:
    """What a conversion loses: counts of changed values, and the largest error."""

    count: int = 0
    """All elements."""
    overflow: int = 0
    """Finite numbers out of the new type's range."""
    underflow: int = 0
    """Numbers other than zero that become zero in a floating point type."""
    rounded: int = 0
    """Numbers in range that become another number, other than by underflow."""
    nan: int = 0
    """NaN before."""
    nan_lost: int = 0
    """NaN before that the new type cannot hold."""
    infinite_lost: int = 0
    """Infinite before that the new type cannot hold."""
    max_error: float = 0.0
    """The largest difference between finite numbers before and after."""

    @property
    def lossless(self) -> bool:
        """True when every element keeps its value."""
        lost = (self.overflow, self.underflow, self.rounded, self.nan_lost, self.infinite_lost)
        return not any(lost)


def plan_conversion(
    tensor: Tensor,
    dtype: str,
    *,
    cancelled: CancelCheck | None = None,
) -> ConversionReport:
    """Return what converting a tensor would lose; nothing is changed.

    Args:
        dtype: The element type to convert to.
        cancelled: Asked before each part.

    Raises:
        EditError: There is no such conversion.
        InputError: The values cannot be read.
        CancelledError: `cancelled` said so.
    """
    report = ConversionReport()
    for _ in _converted(tensor, dtype, True, report, None, cancelled):
        pass
    return report


def prepare_conversion(
    tensor: Tensor,
    dtype: str,
    *,
    progress: ProgressCallback | None = None,
    cancelled: CancelCheck | None = None,
) -> ConversionReport:
    """Convert a tensor ahead of the edit ``convert_tensor``, which then takes no time.

    For large tensors: it may run in a thread while the document is shown. See
    :func:`plan_conversion` for the arguments and errors.

    Raises:
        SaveError: There is no room for the result.
    """
    assert tensor.document is not None
    report = ConversionReport()
    parts = _converted(tensor, dtype, True, report, progress, cancelled)
    # A file of its own: edits may be writing to the document's meanwhile.
    blob = SpillFile().append(encode_elements(part, dtype) for part in parts)
    tensor.document.prepared[conversion_key(tensor, dtype, saturate=True)] = blob
    return report


def conversion_key(tensor: Tensor, dtype: str, *, saturate: bool) -> str:
    """Return a key of a conversion of the present state of a tensor."""
    payload = tensor.payload_key()
    return json.dumps(["convert", payload, tensor.dtype, list(tensor.shape), dtype, saturate])


def converted_payload(
    tensor: Tensor, dtype: str, *, saturate: bool = True
) -> Iterator[bytes] | Blob:
    """Return the payload of a tensor in another type: prepared, or made as it is iterated.

    Raises:
        EditError: There is no such conversion.
    """
    require_convertible(tensor.dtype, dtype)
    if tensor.document is not None and tensor.document.prepared:
        known = tensor.document.prepared.pop(conversion_key(tensor, dtype, saturate=saturate), None)
        if known is not None:
            return known
    parts = _converted(tensor, dtype, saturate, None, None, None)
    return (encode_elements(part, dtype) for part in parts)


def require_convertible(source: str, target: str) -> None:
    """Refuse types that cannot be converted into one another.

    Raises:
        EditError: One is of strings, or only one of complex numbers, or unknown.
    """
    require_dtype(target)
    require_dtype(source)
    if "string" in (source, target):
        raise EditError("strings and numbers cannot be converted into one another")
    if source.startswith("complex") and not target.startswith("complex"):
        raise EditError(f"complex numbers cannot be converted to {target}")


def _converted(
    tensor: Tensor,
    dtype: str,
    saturate: bool,
    report: ConversionReport | None,
    progress: ProgressCallback | None,
    cancelled: CancelCheck | None,
) -> Iterator[Array]:
    require_convertible(tensor.dtype, dtype)
    total = tensor.element_count
    if report is not None:
        report.count = total
    for start in range(0, total, PART_ELEMENTS):
        if cancelled is not None and cancelled():
            raise CancelledError
        values = tensor.read(start, PART_ELEMENTS)
        result = cast_values(values, tensor.dtype, dtype, saturate=saturate)
        if report is not None:
            _tally(report, values, result, tensor.dtype, dtype)
        if progress is not None:
            progress(min(start + PART_ELEMENTS, total), total)
        yield result


def cast_values(values: Array, source: str, target: str, *, saturate: bool = True) -> Array:
    """Return native elements of one type as native elements of another, by the rules above."""
    with np.errstate(all="ignore"):
        if source == target:
            return values
        if target == "bool":
            return values.astype(np.bool_)
        if is_float(target):
            return _to_float(values, target, saturate)
        if target.startswith("complex"):
            return _real(values, source).astype(native_type(target))
        if is_float(source):
            return _float_to_integer(values, target)
        return _wrapped(values, target)


def _real(values: Array, source: str) -> Array:
    return values if source.startswith("complex") else values.astype(np.float64)


def _to_float(values: Array, target: str, saturate: bool) -> Array:
    kind = native_type(target)
    if not is_numpy_type(values.dtype):
        # The types of ml_dtypes do not all know each other; float32 holds all of them exactly.
        values = values.astype(np.float32)
    if target == "float8e8m0":
        converted = onnx.numpy_helper.to_float8e8m0(values, saturate, "up")
        return np.asarray(converted).astype(kind)
    if target in SATURATING and saturate:
        limit = float_limit(target)
        wide = values if values.dtype.kind == "f" else values.astype(np.float64)
        return np.clip(wide, -limit, limit).astype(kind)
    return values.astype(kind)


def _float_to_integer(values: Array, target: str) -> Array:
    low, high = integer_limits(target)
    whole = np.trunc(values.astype(np.float64))
    above, below = whole >= float(high + 1), whole < float(low)
    fits = ~(above | below | np.isnan(whole))
    result = np.zeros(values.shape, native_type(target))
    result[fits] = whole[fits].astype(result.dtype)
    result[above], result[below] = high, low
    return result


def _wrapped(values: Array, target: str) -> Array:
    if target not in NARROW_INTEGERS:
        return values.astype(native_type(target))
    bits = int(target.removeprefix("u").removeprefix("int"))
    codes: Array = values.astype(np.uint8) & np.uint8((1 << bits) - 1)
    if target.startswith("u"):
        return codes
    sign = 1 << (bits - 1)
    signed: Array = (codes ^ np.uint8(sign)).astype(np.int8) - np.int8(sign)
    return signed


def _tally(
    report: ConversionReport, values: Array, result: Array, source: str, target: str
) -> None:
    if not (is_float(source) or is_float(target) or target.startswith("complex")):
        _tally_integers(report, values, result, target)
        return
    before, after = _wide(values, source, target), _wide(result, source, target)
    with np.errstate(all="ignore"):
        error = np.abs(after - before)
    finite, nan = np.isfinite(before), np.isnan(before)
    overflow = finite & _out_of_range(values, before, after, source, target)
    changed = finite & ~overflow & (before != after)
    zero = changed & (after == 0) if not _is_integer(target) else np.zeros_like(changed)
    report.overflow += int(overflow.sum())
    report.underflow += int(zero.sum())
    report.rounded += int((changed & ~zero).sum())
    report.nan += int(nan.sum())
    report.nan_lost += int((nan & ~np.isnan(after)).sum())
    report.infinite_lost += int((~finite & ~nan & (before != after)).sum())
    known = error[finite & np.isfinite(after)]
    if len(known):
        report.max_error = max(report.max_error, float(known.max()))


def _tally_integers(report: ConversionReport, values: Array, result: Array, target: str) -> None:
    if target == "bool":
        changed = (values != 0) & (values != 1)
        report.rounded += int(changed.sum())
        overflow = np.zeros(values.shape, np.bool_)
    else:
        low, high = integer_limits(target)
        # numpy compares booleans with no number beyond its own long.
        whole = values.view(np.uint8) if values.dtype == np.bool_ else values
        overflow = changed = (whole < low) | (whole > high)
        report.overflow += int(overflow.sum())
    if changed.any():
        wide = np.longdouble
        error = np.abs(result[changed].astype(wide) - values[changed].astype(wide))
        report.max_error = max(report.max_error, float(error.max()))


def _is_integer(dtype: str) -> bool:
    return not is_float(dtype) and not dtype.startswith("complex")


def _wide(values: Array, source: str, target: str) -> Array:
    """Return values in a type that holds all of both types exactly."""
    if "complex" in source or "complex" in target:
        return values.astype(np.complex128)
    # 64-bit integers need more digits than float64 has.
    exact = any(dtype in ("int64", "uint64") for dtype in (source, target))
    wide: Any = np.longdouble if exact else np.float64
    if is_numpy_type(values.dtype):
        return values.astype(wide)
    return values.astype(np.float64).astype(wide)


def _out_of_range(values: Array, before: Array, after: Array, source: str, target: str) -> Array:
    if _is_integer(target):
        if target == "bool":
            return np.zeros(before.shape, np.bool_)
        low, high = integer_limits(target)
        whole = np.trunc(before)
        return np.asarray((whole < float(low)) | (whole >= float(high + 1)))
    if target == "float8e8m0":
        return np.asarray((before < 0) | ~np.isfinite(after))
    if target in SATURATING:
        # The conversion without saturation tells which numbers are out of range.
        free = cast_values(values, source, target, saturate=False).astype(np.float64)
        return ~np.isfinite(free)
    if target.startswith(("float4e", "float6e")):
        # These have neither infinity nor NaN, so the ends of the range are all there is.
        return np.asarray(np.abs(before) > _rounding_end(target))
    return ~np.isfinite(after)


def _rounding_end(dtype: str) -> float:
    """Return the largest number that is rounded to the largest of a type."""
    import ml_dtypes

    info: Any = ml_dtypes.finfo(native_type(dtype))  # type: ignore[no-untyped-call]
    limit = float(info.max)
    return limit + float(info.eps) * 2.0 ** math.floor(math.log2(limit)) / 2
