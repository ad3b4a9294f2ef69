"""Values for new tensors: zeros, given ones, and random ones from a seed.

Random values come from numpy's default generator in parts of a fixed size, so that the same seed
gives the same tensor everywhere and any size fits in memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from dld_tui.core import fmt
from dld_tui.core.errors import EditError
from dld_tui.core.files.blobs import Blob
from dld_tui.core.model.tensors.elements import (
    PART_ELEMENTS,
    Array,
    cast_values,
    encode_elements,
    float_limit,
    from_json,
    integer_limits,
    is_float,
    payload_bytes,
    require_dtype,
)
from dld_tui.core.model.tensors.payloads import PayloadOwner, resolve
from dld_tui.core.types import JSON

_SMALL = 1 << 16
_ZEROS = bytes(1 << 20)


def random_kinds(dtype: str) -> tuple[str, ...]:
    """Return which of ``normal`` and ``uniform`` an element type can be filled with."""
    if dtype == "string":
        return ()
    if dtype in ("bool", "float8e8m0"):
        return ("uniform",)
    return ("normal", "uniform")


def uniform_range(dtype: str, sign: int) -> tuple[float, float]:
    """Return low and high for random numbers of one sign: 0 to 1, or what an integer type has.

    Args:
        sign: 1 for positive numbers, -1 for negative ones.

    Raises:
        EditError: The type has no negative numbers.
    """
    if is_float(dtype) or dtype.startswith("complex"):
        if dtype == "float8e8m0":
            if sign < 0:
                raise EditError("float8e8m0 has no negative numbers")
            return 2.0**-8, 1.0
        return (0.0, 1.0) if sign > 0 else (-1.0, 0.0)
    low, high = integer_limits(dtype)
    if sign < 0 and low == 0:
        raise EditError(f"{dtype} has no negative numbers")
    return (0, min(high, 127)) if sign > 0 else (max(low, -128), 0)


def fill_payload(
    document: PayloadOwner, dtype: str, dims: tuple[int, ...], fill: Mapping[str, JSON]
) -> bytes | Blob | Iterator[bytes]:
    """Return the payload that a ``fill`` describes, as ``raw_data`` has it; not for strings.

    ``{"kind": "zeros"}``, ``{"kind": "values", "values": [...]}`` in row order,
    ``{"kind": "normal", "mean", "deviation", "seed"}``,
    ``{"kind": "uniform", "low", "high", "seed"}`` (with both ends for integers), or
    ``{"kind": "payload", "payload": REFERENCE}``.

    Raises:
        EditError: It does not fit the type and dimensions; the message says why.
    """
    require_dtype(dtype)
    kind = fill.get("kind")
    count = math.prod(dims)
    length = payload_bytes(dtype, count)
    if length is None:
        raise EditError("strings are given as values")
    if kind in ("zeros", *random_kinds(dtype)):
        require_room(document, length)
    if kind == "zeros":
        return _zeros(length)
    if kind == "values":
        return encode_elements(_values(fill.get("values"), dtype, count), dtype)
    if kind == "payload":
        return referenced_payload(document, fill.get("payload"), dtype, dims)
    if kind in ("normal", "uniform"):
        if kind not in random_kinds(dtype):
            raise EditError(f"{dtype} cannot be filled from a {kind} distribution")
        parts = _random(dtype, count, fill)
        return b"".join(parts) if length <= _SMALL else parts
    raise EditError(f"a tensor cannot be filled with {kind!r:.40}")


def require_room(document: PayloadOwner, length: int) -> None:
    """Refuse to generate more values than the limit of the document allows.

    The values of all edits of a document count against its ``new_data_limit``.

    Args:
        length: Bytes to generate.

    Raises:
        EditError: The limit would be exceeded.
    """
    if document.new_data + length > document.new_data_limit:
        raise EditError(
            f"this would make {fmt.size(length)} of values; the limit for a model is "
            f"{fmt.size(document.new_data_limit)}",
            hint="`dld edit --new-data-limit` raises it",
        )
    document.new_data += length


def referenced_payload(
    document: PayloadOwner, payload: JSON, dtype: str, dims: tuple[int, ...]
) -> bytes | Blob:
    """Return the payload of a reference, or of ``{"values": [...]}``, for a type and dimensions.

    Raises:
        EditError: It has another length, or a value is not of the type.
    """
    count = math.prod(dims)
    if isinstance(payload, dict) and "values" in payload:
        return encode_elements(_values(payload["values"], dtype, count), dtype)
    data = resolve(document, payload)
    length = data.length if isinstance(data, Blob) else len(data)
    needed = payload_bytes(dtype, count)
    if length != needed:
        shape = "x".join(str(dim) for dim in dims) or "scalar"
        raise EditError(f"the data has {length} B, {shape} {dtype} needs {needed} B")
    return data


def string_elements(values: JSON, dims: tuple[int, ...]) -> list[bytes]:
    """Return the elements of a tensor of strings.

    Raises:
        EditError: They are no strings, or not as many as the dimensions say.
    """
    return list(_values(values, "string", math.prod(dims)))


def _values(values: JSON, dtype: str, count: int) -> Array:
    if not isinstance(values, list):
        raise EditError("values must be a list")
    if len(values) != count:
        raise EditError(f"{len(values)} values do not fill {count} elements")
    return from_json(values, dtype)


def _zeros(length: int) -> bytes | Iterator[bytes]:
    if length <= _SMALL:
        return bytes(length)
    return (_ZEROS[: length - done] for done in range(0, length, len(_ZEROS)))


def _random(dtype: str, count: int, fill: Mapping[str, JSON]) -> Iterator[bytes]:
    seed = fill.get("seed", 0)
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise EditError("a seed is a whole number from 0")
    generator = np.random.default_rng(seed)
    draw = (_normal if fill["kind"] == "normal" else _uniform)(generator, dtype, fill)
    return (
        encode_elements(draw(min(PART_ELEMENTS, count - start)), dtype)
        for start in range(0, count, PART_ELEMENTS)
    )


def _normal(
    generator: np.random.Generator, dtype: str, fill: Mapping[str, JSON]
) -> Callable[[int], Array]:
    mean, deviation = _number(fill, "mean", 0.0), _number(fill, "deviation", 1.0)
    if deviation < 0:
        raise EditError("a deviation is at least 0")
    _require_held(dtype, mean)
    return _drawn(dtype, lambda count: generator.normal(mean, deviation, count))


def _uniform(
    generator: np.random.Generator, dtype: str, fill: Mapping[str, JSON]
) -> Callable[[int], Array]:
    low, high = _number(fill, "low", 0.0), _number(fill, "high", 1.0)
    if low > high:
        raise EditError(f"low is {low:g}, more than high, {high:g}")
    _require_held(dtype, low)
    _require_held(dtype, high)
    if is_float(dtype) or dtype.startswith("complex"):
        return _drawn(dtype, lambda count: generator.uniform(low, high, count))
    first, last = math.ceil(low), math.floor(high)
    if first > last:
        raise EditError(f"there is no whole number from {low:g} to {high:g}")
    wide: Any = np.uint64 if last >= 2**63 else np.int64
    return lambda count: cast_values(
        generator.integers(first, last, count, dtype=wide, endpoint=True),
        "uint64" if wide is np.uint64 else "int64",
        dtype,
    )


def _drawn(dtype: str, draw: Callable[[int], Array]) -> Callable[[int], Array]:
    """Return what draws native elements of a type from a distribution of real numbers."""
    if dtype.startswith("complex"):
        return lambda count: cast_values(draw(count) + 1j * draw(count), "complex128", dtype)
    if is_float(dtype):
        return lambda count: cast_values(draw(count), "float64", dtype)
    return lambda count: cast_values(np.rint(draw(count)), "float64", dtype)


def _number(fill: Mapping[str, JSON], key: str, default: float) -> float:
    value = fill.get(key, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise EditError(f"{key} must be a number")
    if isinstance(value, float) and not math.isfinite(value):
        raise EditError(f"{key} must be a finite number")
    return value


def _require_held(dtype: str, value: float) -> None:
    if dtype == "float8e8m0" and value <= 0:
        raise EditError("float8e8m0 holds powers of two above 0 only")
    if is_float(dtype) or dtype.startswith("complex"):
        kind = {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)
        limit = float_limit(kind)
        if abs(value) > limit:
            raise EditError(f"{dtype} holds at most {limit:g}")
        return
    low, high = integer_limits(dtype)
    if not low <= value <= high:
        raise EditError(f"{dtype} holds {low} to {high}")
