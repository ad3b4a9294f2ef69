"""Small tensors as text: an element type, a shape where the lists do not tell it, nested lists.

::

    float32 [[1.0, 2.0], [3.0, 4.0]]     int64 7     string ['a', 'b']     float32[0, 3] []
    int64[2, 2] [1, 2, 3, 4]             the values in row order, folded to the shape
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dld_tui.core.document.literal_scanner import (
    LiteralError,
    Scanner,
    format_float,
    format_string,
    round_to_float32,
    scan_integer,
    scan_list,
    scan_number,
    scan_string,
    shown,
)

if TYPE_CHECKING:
    import numpy as np

TENSOR_LITERAL_LIMIT = 10_000
"""Elements of the largest tensor that is printed; larger ones belong in a file."""

_DEPTH_LIMIT = 32
_HEAD = re.compile(r"\s*([A-Za-z][A-Za-z0-9_]*)")
_NUMPY = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
_ML_DTYPES = {
    **{name: name for name in ("bfloat16", "int2", "int4", "uint2", "uint4")},
    "float4e2m1": "float4_e2m1fn",
    "float6e2m3": "float6_e2m3fn",
    "float6e3m2": "float6_e3m2fn",
    "float8e4m3fn": "float8_e4m3fn",
    "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2",
    "float8e5m2fnuz": "float8_e5m2fnuz",
    "float8e8m0": "float8_e8m0fnu",
}
"""ONNX's names, which literals use, and those of the ml_dtypes package."""

_NAMES = {
    **{name: name for name in (*_NUMPY, *_ML_DTYPES, "string")},
    **{other: name for name, other in _ML_DTYPES.items()},
    **{"float": "float32", "double": "float64", "half": "float16", "object": "string"},
}
"""Every accepted spelling, and the one that is printed."""


def scan_tensor(scanner: Scanner, dtype: str | None) -> np.ndarray[Any, Any]:
    """Read a whole tensor literal; `dtype` is used where the text names none.

    Raises:
        LiteralError: The text is no tensor, its lists are ragged, or a value does not fit.
    """
    import numpy as np

    name, shape = _scan_head(scanner, dtype)
    start = scanner.position
    flat: list[Any] = []
    found = _scan_nested(scanner, _element_reader(name), flat, 0)
    scanner.end()
    if shape is not None and math.prod(shape) != len(flat):
        raise scanner.error(f"{len(flat)} values do not fill the shape {list(shape)}", start)
    array = np.empty(len(flat), dtype=_numpy_type(name))
    for index, value in enumerate(flat):
        array[index] = value
    return array.reshape(found if shape is None else shape)


def format_tensor(array: np.ndarray[Any, Any]) -> str:
    """Return the literal of a small tensor.

    Raises:
        LiteralError: The tensor has more than :data:`TENSOR_LITERAL_LIMIT` elements, or an
            element type that no literal has.
    """
    if array.size > TENSOR_LITERAL_LIMIT:
        raise LiteralError(f"a tensor of {array.size:,} elements is too large for a literal")
    name = "string" if array.dtype.kind in "OSU" else _NAMES.get(array.dtype.name)
    if name is None:
        raise LiteralError(f"elements of type {array.dtype.name} have no literal")
    if array.size == 0:
        return f"{name}[{', '.join(map(str, array.shape))}] []"
    return f"{name} {_nested(array.tolist(), array.ndim, element_printer(name))}"


def parse_element(text: str, dtype: str) -> Any:
    """Return the value of one element that was typed: a string in quotes, else a number.

    Args:
        text: What was typed.
        dtype: The element type, such as ``float16``.

    Raises:
        LiteralError: It is none, or the element type cannot hold it.
    """
    name = _NAMES.get(dtype)
    if name is None:
        raise LiteralError(f"elements of type {dtype} have no literal")
    scanner = Scanner(text)
    value = _element_reader(name)(scanner)
    scanner.end()
    return value


def element_text(value: Any, dtype: str) -> str:
    """Return the literal of one element.

    Args:
        value: A number, or bytes for a string.
        dtype: The element type.

    Raises:
        LiteralError: The element type has no literals.
    """
    name = _NAMES.get(dtype)
    if name is None:
        raise LiteralError(f"elements of type {dtype} have no literal")
    return element_printer(name)(value)


def _scan_head(scanner: Scanner, dtype: str | None) -> tuple[str, tuple[int, ...] | None]:
    match = _HEAD.match(scanner.text)
    word = match.group(1) if match else ""
    known = _NAMES.get(word.lower())
    if known is None:
        if dtype not in _NAMES:
            raise scanner.error("a tensor begins with its element type, such as float32")
        return _NAMES[dtype], None
    assert match is not None
    scanner.position = match.end()
    # A bracket right after the type is the shape; after a space it is the value.
    if scanner.text[scanner.position : scanner.position + 1] != "[":
        return known, None
    start = scanner.position
    shape = tuple(scan_list(scanner, scan_integer))
    if len(shape) > _DEPTH_LIMIT or any(dim < 0 for dim in shape):
        raise scanner.error("this is no shape", start)
    return known, shape


def _scan_nested(
    scanner: Scanner, element: Callable[[Scanner], Any], flat: list[Any], depth: int
) -> tuple[int, ...]:
    """Append the values to `flat`, row by row, and return their shape."""
    if scanner.peek() != "[":
        flat.append(element(scanner))
        return ()
    start = scanner.position
    if depth == _DEPTH_LIMIT:
        raise scanner.error(f"a tensor has at most {_DEPTH_LIMIT} dimensions", start)
    scanner.take("[")
    inner: tuple[int, ...] | None = None
    length = 0
    while not scanner.take("]"):
        if not scanner.peek():
            raise scanner.error("this list is not closed", start)
        item_start = scanner.position
        shape = _scan_nested(scanner, element, flat, depth + 1)
        if inner is not None and shape != inner:
            raise scanner.error("this row has another shape than the first one", item_start)
        inner = shape
        length += 1
        if not scanner.take(",") and scanner.peek() not in ("]", ""):
            raise scanner.error("a comma or ] is expected here")
    return (length, *(inner or ()))


def _nested(value: Any, depth: int, printer: Callable[[Any], str]) -> str:
    if depth == 0:
        return printer(value)
    return "[" + ", ".join(_nested(item, depth - 1, printer) for item in value) + "]"


def _numpy_type(name: str) -> Any:
    import numpy as np

    if name == "string":
        return np.dtype(object)
    if name not in _ML_DTYPES:
        return np.dtype(name)
    import ml_dtypes

    kind = getattr(ml_dtypes, _ML_DTYPES[name], None)
    if kind is None:
        raise LiteralError(f"elements of type {name} need a newer ml_dtypes")
    return np.dtype(kind)


def _limits(name: str) -> Any:
    """Return numpy's ``iinfo`` or ``finfo`` of an element type, or ml_dtypes' form of it."""
    import numpy as np

    module: Any = np
    if name in _ML_DTYPES:
        import ml_dtypes as module
    return (module.finfo if "float" in name else module.iinfo)(_numpy_type(name))


@lru_cache(maxsize=64)
def _element_reader(name: str) -> Callable[[Scanner], Any]:
    if name == "string":
        return scan_string
    if name == "complex64":
        return _scan_complex64
    if name == "complex128":
        return _scan_complex
    if "float" in name:
        return _float_reader(name)
    return _integer_reader(name)


def _integer_reader(name: str) -> Callable[[Scanner], Any]:
    low, high = 0, 1
    if name != "bool":
        limits = _limits(name)
        low, high = int(limits.min), int(limits.max)

    def read(scanner: Scanner) -> int:
        scanner.peek()
        start = scanner.position
        value = scan_integer(scanner)
        if not low <= value <= high:
            raise scanner.range_error(f"{name} holds {low} to {high}", start)
        return value

    return read


def _float_reader(name: str) -> Callable[[Scanner], Any]:
    kind = _numpy_type(name)
    limits = _limits(name)
    largest = float(limits.max)
    # The shortest decimal of the largest number may lie above it, by less than half a step.
    ceiling = largest + largest * float(limits.eps) / 2

    def read(scanner: Scanner) -> Any:
        scanner.peek()
        start = scanner.position
        value = scan_number(scanner)
        if math.isfinite(value) and abs(value) > ceiling:
            raise scanner.range_error(f"{name} holds at most {largest:g}", start)
        rounded = _cast(kind, value)
        result = float(rounded)
        if math.isnan(value) != math.isnan(result) or math.isinf(value) != math.isinf(result):
            raise scanner.range_error(f"{name} cannot hold {value:g}", start)
        if (value == 0) != (result == 0) or (value < 0) != (result < 0):
            raise scanner.range_error(f"{name} cannot hold {value:g}", start)
        return rounded

    return read


def _cast(kind: np.dtype[Any], value: float) -> Any:
    import numpy as np

    with np.errstate(all="ignore"):
        return kind.type(value)


def _scan_complex(scanner: Scanner) -> complex:
    word = scanner.word("a number such as 1+2j")
    try:
        return complex(word)
    except ValueError:
        start = scanner.position - len(word)
        raise scanner.error(f"{shown(word)} is not a complex number", start) from None


def _scan_complex64(scanner: Scanner) -> complex:
    scanner.peek()
    start = scanner.position
    value = _scan_complex(scanner)
    try:
        return complex(round_to_float32(value.real), round_to_float32(value.imag))
    except OverflowError:
        raise scanner.range_error("the number is too large for complex64", start) from None


def _complex_printer(part: Callable[[float], str]) -> Callable[[complex], str]:
    def show(value: complex) -> str:
        imaginary = part(value.imag)
        sign = "" if imaginary.startswith("-") else "+"
        return f"{part(value.real)}{sign}{imaginary}j"

    return show


@lru_cache(maxsize=64)
def element_printer(name: str) -> Callable[[Any], str]:
    """Return what prints elements of a type; by the name that literals have."""
    if name == "string":
        return format_string
    if name == "bool":
        return lambda value: "true" if value else "false"
    if name == "float32":
        return format_float
    if name.startswith("complex"):
        return _complex_printer(format_float if name == "complex64" else repr)
    if name == "float64" or "float" not in name:
        return str
    kind = _numpy_type(name)
    if kind.itemsize == 1:  # the exact decimals are short, and rounded ones mislead: 450 for 448
        return lambda value: repr(float(value))

    def shortest(value: Any) -> str:
        exact = float(value)
        for digits in range(1, 9):
            text = f"{exact:.{digits}g}"
            if float(_cast(kind, float(text))) == exact:
                return repr(float(text))
        return repr(exact)

    return shortest
