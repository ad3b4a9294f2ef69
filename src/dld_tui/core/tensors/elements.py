"""Elements of every ONNX type: as numpy arrays, as the bytes of ``raw_data``, and as text.

*Native* arrays are what :meth:`Tensor.read` gives: the numpy type of the element type (ml_dtypes
for bfloat16, float8 and the like), int8 or uint8 for narrower integers, bytes objects for strings.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx

from dld_tui.core.document.literals import LiteralError, element_text, parse_element
from dld_tui.core.document.types.value_types import dtype_name, dtype_number
from dld_tui.core.errors import EditError
from dld_tui.core.files.tensors import element_bits
from dld_tui.core.types import JSON

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


def numpy_type(dtype: str) -> np.dtype[Any]:
    """Return the type of native arrays.

    Raises:
        EditError: There is no such element type.
    """
    if dtype in NARROW_INTEGERS:
        return np.dtype(NARROW_INTEGERS[dtype])
    try:
        return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(require_dtype(dtype)))
    except (KeyError, ValueError, TypeError):
        raise EditError(f"elements of type {dtype} need a newer onnx package") from None


def of_numpy(kind: np.dtype[Any]) -> bool:
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

    kind = numpy_type(dtype)
    module: Any = np if of_numpy(kind) else ml_dtypes
    return float(module.finfo(kind).max)


def encoded(values: Array, dtype: str) -> bytes:
    """Return native elements as ``raw_data`` has them.

    Elements narrower than a byte are packed from the low bits up; a last byte is filled with zeros.
    """
    bits = element_bits(require_dtype(dtype)) or 8
    values = np.ascontiguousarray(values, numpy_type(dtype))
    if bits >= 8:
        little = values.astype(values.dtype.newbyteorder("<"), copy=False)
        return little.tobytes()
    codes = values.view(np.uint8) & np.uint8((1 << bits) - 1)
    rows = np.unpackbits(codes.reshape(-1, 1), axis=1, bitorder="little")[:, :bits]
    return np.packbits(rows.reshape(-1), bitorder="little").tobytes()


def from_json(values: Sequence[JSON], dtype: str) -> Array:
    """Return JSON values as native elements.

    Numbers are numbers; those that JSON has not (``nan``, ``inf``, ``1+2j``) are text, and so are
    strings.

    Raises:
        EditError: A value is not of the type or out of its range; says which.
    """
    kind = numpy_type(dtype)
    plain = _plain(values, dtype, kind)
    if plain is not None:
        return plain
    found = np.empty(len(values), kind)
    for index, value in enumerate(values):
        try:
            found[index] = _one(value, dtype)
        except LiteralError as error:
            raise EditError(f"value {index}: {error}") from None
    return found


def _plain(values: Sequence[JSON], dtype: str, kind: np.dtype[Any]) -> Array | None:
    """Return the values when all are numbers that the type surely holds; quick for long lists."""
    if dtype not in ("float32", "float64") or not all(type(v) in (int, float) for v in values):
        return None
    with np.errstate(all="ignore"):
        try:
            wide = np.array(values, np.float64)
        except OverflowError:
            return None
        found = wide.astype(kind)
    same = (np.isfinite(wide) == np.isfinite(found)) & ((wide == 0) == (found == 0))
    return found if bool(same.all()) else None


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
