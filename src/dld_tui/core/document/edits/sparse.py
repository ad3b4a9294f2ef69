"""Initializers from dense to sparse and back."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dld_tui.core.document.edits.initializers import require_new_initializer
from dld_tui.core.document.edits.registry import edit, strings, subject
from dld_tui.core.document.edits.tensors import (
    Target,
    initializer_at,
    put_payload,
    require_readable,
    without_values,
)
from dld_tui.core.document.tensor import Tensor
from dld_tui.core.document.transactions import Transaction
from dld_tui.core.errors import EditError, InputError, UsageError
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.external import element_bits
from dld_tui.core.files.proto_fields import set_text
from dld_tui.core.tensors.elements import (
    PART_ELEMENTS,
    Array,
    element_type,
    encode_elements,
    from_json,
    numpy_type,
    payload_bytes,
    require_dims,
    require_dtype,
    to_json,
)
from dld_tui.core.tensors.generate import require_room
from dld_tui.core.text import quoted
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document


@edit
def to_sparse(
    document: Document, transaction: Transaction, *, scope: Sequence[str], names: list[str]
) -> str:
    """Make initializers sparse: only elements whose bits are not all zero are kept.

    Args:
        scope: The path of the graph.
    """
    home = document.scope_at(scope)
    for name in strings(names, "names"):
        target = initializer_at(home, name)
        tensor = target.tensor
        _require_sparse_type(target)
        sparse = _sparse(document, tensor)
        transaction.replace(home, "initializer", tensor.proto)
        transaction.append(home, "sparse_initializer", sparse)
    return f"make {subject(names, 'initializer')} sparse"


@edit
def to_dense(
    document: Document, transaction: Transaction, *, scope: Sequence[str], names: list[str]
) -> str:
    """Make sparse initializers dense.

    Args:
        scope: The path of the graph.
    """
    home = document.scope_at(scope)
    for name in strings(names, "names"):
        record = home.named("sparse_initializer").first(name)
        if record is None:
            raise EditError(f"there is no sparse initializer {quoted(name)}")
        dense = without_values(record.values, dims=require_dims(list(record.dims)))
        length = payload_bytes(Tensor(record.values, document).dtype, math.prod(record.dims))
        if length is None:
            raise EditError(f"{quoted(name)} holds strings, which cannot be dense here")
        require_room(document, length)
        put_payload(document, dense, _dense_parts(document, record, quoted(name)))
        transaction.replace(home, "sparse_initializer", record)
        transaction.append(home, "initializer", dense)
    return f"make {subject(names, 'initializer')} dense"


@edit
def set_sparse(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    name: str,
    dims: Sequence[int],
    indices: Sequence[JSON],
    values: Sequence[JSON],
    dtype: str | None = None,
) -> str:
    """Make a sparse initializer, or give one that is there other elements.

    Args:
        scope: The path of the graph.
        name: Its name: that of a sparse initializer, or a new one.
        dims: The dimensions of the whole tensor.
        indices: Where the elements are, in any order: lists of one index an axis, or numbers that
            count the elements of the tensor in row order.
        values: The elements, as many.
        dtype: The element type; that of the present elements by default.
    """
    home = document.scope_at(scope)
    old = home.named("sparse_initializer").first(name)
    if old is None:
        require_new_initializer(home, name)
        values_proto = onnx.TensorProto()
        set_text(values_proto, "name", name)
        if dtype is None:
            raise EditError("a new initializer needs its element type", hint="Give dtype")
    else:
        values_proto = old.values
    kind = Tensor(values_proto, document).dtype if dtype is None else element_type(dtype)
    bits = element_bits(require_dtype(kind))
    if bits is None or bits < 8:
        raise EditError(f"{kind} elements cannot be sparse")
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
    sparse = onnx.SparseTensorProto(dims=shape)
    sparse.values.CopyFrom(without_values(values_proto, kind, [len(places)]))
    put_payload(document, sparse.values, encode_elements(from_json(values, kind)[order], kind))
    by_axis = old is not None and len(old.indices.dims) == 2
    if old is not None:
        sparse.indices.CopyFrom(without_values(old.indices))
        del sparse.indices.dims[:]
    sparse.indices.data_type = onnx.TensorProto.INT64
    sparse.indices.dims.extend([len(places), len(shape)] if by_axis else [len(places)])
    flat = np.stack(np.unravel_index(places, shape), 1) if by_axis and len(places) else places
    put_payload(
        document, sparse.indices, encode_elements(flat.reshape(-1).astype(np.int64), "int64")
    )
    if old is None:
        transaction.append(home, "sparse_initializer", sparse)
        return f"add sparse initializer {quoted(name)}"
    transaction.replace(home, "sparse_initializer", old, sparse)
    return f"set the elements of {quoted(name)}"


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


def sparse_elements(document: Document, record: onnx.SparseTensorProto) -> tuple[Array, Array]:
    """Return where the elements of a sparse tensor are in row order, and their values.

    Raises:
        EditError: They cannot be read.
    """
    require_dims(list(record.dims))
    parts = list(_entries(document, record, quoted(Tensor(record.values, document).name)))
    if not parts:
        return np.empty(0, np.int64), np.empty(0, numpy_type(Tensor(record.values, document).dtype))
    places, values = zip(*parts, strict=True)
    return np.concatenate(places), np.concatenate(values)


def _require_sparse_type(target: Target) -> None:
    tensor, title = target.tensor, target.title
    bits = element_bits(tensor.proto.data_type)
    if bits is None or bits < 8:
        raise EditError(f"{title} is {tensor.dtype}, which cannot be sparse")
    if not tensor.shape:
        raise EditError(f"{title} is a scalar, which cannot be sparse")
    require_readable(target)


def _sparse(document: Document, tensor: Tensor) -> onnx.SparseTensorProto:
    sparse = onnx.SparseTensorProto()
    sparse.dims.extend(tensor.shape)
    count = sum(len(places) for places, _ in _present(tensor))
    values = without_values(tensor.proto, dims=[count])
    put_payload(
        document, values, (encode_elements(part, tensor.dtype) for _, part in _present(tensor))
    )
    indices = onnx.TensorProto(data_type=onnx.TensorProto.INT64)
    indices.dims.append(count)
    put_payload(
        document, indices, (encode_elements(places, "int64") for places, _ in _present(tensor))
    )
    sparse.values.CopyFrom(values)
    sparse.indices.CopyFrom(indices)
    return sparse


def _present(tensor: Tensor) -> Iterator[tuple[Array, Array]]:
    """Yield the places and values of elements other than zero, in parts."""
    for start in range(0, tensor.element_count, PART_ELEMENTS):
        values = tensor.read(start, PART_ELEMENTS)
        codes = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), -1)
        places = np.flatnonzero(codes.any(axis=1))
        yield places.astype(np.int64) + start, values[places]


def _dense_parts(document: Document, record: onnx.SparseTensorProto, title: str) -> Iterator[bytes]:
    values = Tensor(record.values, document)
    total = math.prod(record.dims)
    entries = _entries(document, record, title)
    places, elements = next(entries, _NOTHING)
    for start in range(0, total, PART_ELEMENTS):
        end = min(start + PART_ELEMENTS, total)
        part = np.zeros(end - start, numpy_type(values.dtype))
        while len(places):
            fits = int(np.searchsorted(places, end))
            part[places[:fits] - start] = elements[:fits]
            places, elements = places[fits:], elements[fits:]
            if len(places):
                break
            places, elements = next(entries, _NOTHING)
        yield encode_elements(part, values.dtype)
    if total == 0:
        yield b""


_NOTHING: tuple[Array, Array] = (np.empty(0, np.int64), np.empty(0))


def _entries(
    document: Document, record: onnx.SparseTensorProto, title: str
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


MOST_ELEMENTS = 20_000
"""Elements of a sparse tensor that can be edited as text."""
_HEAD = re.compile(r"(\w+)\s*\[([\d\s,]*)\]")


def sparse_lines(document: Document, record: onnx.SparseTensorProto) -> str:
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
