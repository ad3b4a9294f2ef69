"""The elements of sparse tensors: checked, read, and as text; they belong to no list here."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dld_tui.core.errors import EditError, InputError, UsageError
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.external import element_bits
from dld_tui.core.model.tensors.elements import (
    PART_ELEMENTS,
    Array,
    element_type,
    encode_elements,
    from_json,
    native_type,
    require_dims,
    require_dtype,
    to_json,
)
from dld_tui.core.model.tensors.payloads import PayloadOwner
from dld_tui.core.model.tensors.tensor import Tensor
from dld_tui.core.text import quoted
from dld_tui.core.types import JSON

MOST_ELEMENTS = 20_000
"""Elements of a sparse tensor that can be edited as text."""
_HEAD = re.compile(r"(\w+)\s*\[([\d\s,]*)\]")


def sparse_parts(
    dtype: str, dims: Sequence[int], indices: Sequence[JSON], values: Sequence[JSON]
) -> tuple[tuple[int, ...], Array, Array]:
    """Return the shape of a sparse tensor, where its elements are in row order, and they.

    Raises:
        EditError: They do not fit together.
    """
    bits = element_bits(require_dtype(dtype))
    if bits is None or bits < 8:
        raise EditError(f"{dtype} elements cannot be sparse")
    shape = require_dims(dims)
    if not shape:
        raise EditError("a scalar cannot be sparse")
    places = _places(indices, shape)
    if len(places) != len(values):
        raise EditError(f"{len(places):,} indices and {len(values):,} values are given")
    order = np.argsort(places, kind="stable")
    places = places[order]
    if bool((places[1:] == places[:-1]).any()):
        raise EditError("an index is given twice")
    return shape, places, from_json(values, dtype)[order]


def sparse_value(value: JSON) -> onnx.SparseTensorProto:
    """Return the sparse tensor of an attribute, its elements in the message.

    Args:
        value: ``{"dtype", "dims", "indices", "values"}`` as the edit ``set_sparse`` takes them.

    Raises:
        EditError: They do not fit together.
        TypeError: Something is missing.
    """
    fields = ("dtype", "dims", "indices", "values")
    given: Any = [value.get(field) if isinstance(value, dict) else None for field in fields]
    if not isinstance(given[0], str) or not all(isinstance(one, list) for one in given[1:]):
        raise TypeError
    dtype = element_type(given[0])
    shape, places, elements = sparse_parts(dtype, *given[1:])
    sparse = onnx.SparseTensorProto(dims=shape)
    sparse.values.data_type = require_dtype(dtype)
    sparse.values.raw_data = encode_elements(elements, dtype)
    sparse.indices.data_type = onnx.TensorProto.INT64
    sparse.indices.raw_data = encode_elements(places, "int64")
    for part in (sparse.values, sparse.indices):
        part.dims.append(len(places))
    return sparse


def _places(indices: Sequence[JSON], shape: tuple[int, ...]) -> Array:
    """Return where elements are in row order."""
    total, places = math.prod(shape), []
    for index in indices:
        given = index if isinstance(index, list) else [index]
        sizes = shape if isinstance(index, list) else (total,)
        if len(given) != len(sizes):
            raise EditError(f"an index has {len(given)} numbers, the tensor {len(sizes)} axes")
        place = 0
        for number, size in zip(given, sizes, strict=True):
            if isinstance(number, bool) or not isinstance(number, int):
                raise EditError("an index is a whole number, or a list of them")
            if not 0 <= number < size:
                raise EditError(f"index {number} is not below {size}")
            place = place * size + number
        places.append(place)
    return np.array(places, np.int64)


def sparse_elements(document: PayloadOwner, record: onnx.SparseTensorProto) -> tuple[Array, Array]:
    """Return where the elements of a sparse tensor are in row order, and their values.

    Raises:
        EditError: They cannot be read.
    """
    require_dims(list(record.dims))
    parts = list(sparse_entries(document, record, quoted(Tensor(record.values, document).name)))
    if not parts:
        return np.empty(0, np.int64), np.empty(
            0, native_type(Tensor(record.values, document).dtype)
        )
    places, values = zip(*parts, strict=True)
    return np.concatenate(places), np.concatenate(values)


def sparse_entries(
    document: PayloadOwner, record: onnx.SparseTensorProto, title: str
) -> Iterator[tuple[Array, Array]]:
    """Yield the places in row order and the values of a sparse tensor, in parts.

    Raises:
        EditError: They cannot be read, or are not in order.
    """
    values, indices = Tensor(record.values, document), Tensor(record.indices, document)
    dims = tuple(record.dims)
    count = values.element_count
    rank = len(dims) if len(indices.shape) == 2 else 1
    try:
        if indices.dtype != "int64" or indices.element_count != count * rank:
            raise EditError(f"the indices of {title} do not fit its values")
        last = -1
        for start in range(0, count, PART_ELEMENTS):
            part = indices.read(start * rank, PART_ELEMENTS * rank)
            places = _flat(part.reshape(-1, rank), dims) if len(indices.shape) == 2 else part
            before = np.concatenate(([last], places[:-1]))
            if bool((places <= before).any()) or int(places[-1]) >= math.prod(dims):
                raise EditError(f"the indices of {title} are not in order or out of range")
            last = int(places[-1])
            yield places, values.read(start, PART_ELEMENTS)
    except InputError as error:
        if isinstance(error, EditError):
            raise
        raise EditError(f"the values of {title} cannot be read: {error.message}") from None


def _flat(indices: Array, dims: tuple[int, ...]) -> Array:
    sizes = np.array(dims, np.int64)
    if bool(((indices < 0) | (indices >= sizes)).any()):
        return np.array([-1])
    strides = np.array([math.prod(dims[axis + 1 :]) for axis in range(len(dims))], np.int64)
    flat: Array = (indices * strides).sum(axis=1)
    return flat


def sparse_lines(document: PayloadOwner, record: onnx.SparseTensorProto) -> str:
    """Return a sparse tensor as text.

    Raises:
        EditError: Its elements cannot be read, or are too many.
    """
    tensor = Tensor(record.values, document)
    if tensor.element_count > MOST_ELEMENTS:
        raise EditError(
            f"{tensor.element_count:,} elements are too many to edit as text",
            hint="Make it dense first",
        )
    places, values = sparse_elements(document, record)
    dims = tuple(record.dims)
    lines = [f"{tensor.dtype} [{', '.join(map(str, dims))}]"]
    axes = np.unravel_index(places, dims) if len(places) else ()
    indices = zip(*(axis.tolist() for axis in axes), strict=True)
    for index, value in zip(indices, to_json(values, tensor.dtype), strict=True):
        lines.append(f"{', '.join(map(str, index))} = {_text(value)}")
    return "\n".join(lines)


def read_sparse_lines(text: str) -> dict[str, Any]:
    """Return the arguments of the edit ``set_sparse`` that text stands for.

    Raises:
        UsageError: A line is malformed; says which.
    """
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
    lines = [(number, line) for number, line in lines if line]
    head = _HEAD.fullmatch(lines[0][1]) if lines else None
    if head is None:
        raise UsageError("the first line is the type and the dimensions, such as float32 [3, 4]")
    dtype = element_type(head[1])
    dims = [int(word) for word in head[2].replace(",", " ").split()]
    indices: list[JSON] = []
    values: list[JSON] = []
    for number, line in lines[1:]:
        index, equals, value = line.partition("=")
        words = index.strip(" \t[]()").replace(",", " ").split()
        if not equals or len(words) != len(dims) or not all(map(str.isdecimal, words)):
            raise UsageError(f"line {number}: an element is {len(dims)} indices = its value")
        position: list[JSON] = [int(word) for word in words]
        for place, size in zip(position, dims, strict=True):
            if not isinstance(place, int) or place >= size:
                raise UsageError(f"line {number}: index {place} is not below {size}")
        parsed = _value(value.strip())
        try:
            from_json([parsed], dtype)
        except EditError as error:
            raise UsageError(f"line {number}: {error.message}") from None
        indices.append(position)
        values.append(parsed)
    return {"dtype": dtype, "dims": dims, "indices": indices, "values": values}


def _text(value: JSON) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _value(text: str) -> JSON:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        if isinstance(number, int) or np.isfinite(number):
            return number
    return text
