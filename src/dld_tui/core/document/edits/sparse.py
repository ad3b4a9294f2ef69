"""Initializers from dense to sparse and back."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import onnx

from dld_tui.core.document.edits.registry import edit, quoted, strings
from dld_tui.core.document.edits.tensor_targets import (
    emptied,
    initializer_at,
    place_of,
    put_payload,
)
from dld_tui.core.document.history import Transaction
from dld_tui.core.document.primitives import Splice
from dld_tui.core.document.tensor import Tensor
from dld_tui.core.errors import EditError, InputError
from dld_tui.core.files.tensors import element_bits
from dld_tui.core.tensors.elements import (
    PART_ELEMENTS,
    Array,
    encoded,
    numpy_type,
    payload_bytes,
    require_dims,
)
from dld_tui.core.tensors.generate import require_room

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document


@edit
def to_sparse(
    document: Document, transaction: Transaction, *, scope: Sequence[str], names: list[str]
) -> str:
    """Make initializers sparse: only elements whose bits are not all zero are kept.

    Args:
        document: The document.
        transaction: The transaction to make the change in.
        scope: The path of the graph.
        names: Their names.
    """
    home = document.scope_at(scope)
    for name in strings(names, "names"):
        target = initializer_at(home, name)
        tensor = target.tensor
        _require_sparse_type(tensor, target.title)
        sparse = _sparse(document, tensor)
        transaction.do(Splice(home, "initializer", target.position, [tensor.proto], []))
        end = len(home.records["sparse_initializer"])
        transaction.do(Splice(home, "sparse_initializer", end, [], [sparse]))
    return f"make {_subject(names)} sparse"


@edit
def to_dense(
    document: Document, transaction: Transaction, *, scope: Sequence[str], names: list[str]
) -> str:
    """Make sparse initializers dense.

    Args:
        document: The document.
        transaction: The transaction to make the change in.
        scope: The path of the graph.
        names: Their names.
    """
    home = document.scope_at(scope)
    for name in strings(names, "names"):
        record = home.named("sparse_initializer").first(name)
        if record is None:
            raise EditError(f"there is no sparse initializer {quoted(name)}")
        dense = emptied(record.values, dims=require_dims(list(record.dims)))
        length = payload_bytes(Tensor(record.values, document).dtype, math.prod(record.dims))
        if length is None:
            raise EditError(f"{quoted(name)} holds strings, which cannot be dense here")
        require_room(document, length)
        put_payload(document, dense, _dense_parts(document, record, quoted(name)))
        place = place_of(home, "sparse_initializer", record)
        transaction.do(Splice(home, "sparse_initializer", place, [record], []))
        end = len(home.records["initializer"])
        transaction.do(Splice(home, "initializer", end, [], [dense]))
    return f"make {_subject(names)} dense"


def _subject(names: Sequence[str]) -> str:
    return quoted(names[0]) if len(names) == 1 else f"{len(names)} initializers"


def _require_sparse_type(tensor: Tensor, title: str) -> None:
    bits = element_bits(tensor.proto.data_type)
    if bits is None or bits < 8:
        raise EditError(f"{title} is {tensor.dtype}, which cannot be sparse")
    if not tensor.shape:
        raise EditError(f"{title} is a scalar, which cannot be sparse")
    problem = tensor.problem
    if problem is not None:
        raise EditError(f"the values of {title} cannot be read: {problem}")


def _sparse(document: Document, tensor: Tensor) -> onnx.SparseTensorProto:
    sparse = onnx.SparseTensorProto()
    sparse.dims.extend(tensor.shape)
    count = sum(len(places) for places, _ in _present(tensor))
    values = emptied(tensor.proto, dims=[count])
    put_payload(document, values, (encoded(part, tensor.dtype) for _, part in _present(tensor)))
    indices = onnx.TensorProto(data_type=onnx.TensorProto.INT64)
    indices.dims.append(count)
    put_payload(document, indices, (encoded(places, "int64") for places, _ in _present(tensor)))
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
    places, found = next(entries, _NOTHING)
    for start in range(0, total, PART_ELEMENTS):
        end = min(start + PART_ELEMENTS, total)
        part = np.zeros(end - start, numpy_type(values.dtype))
        while len(places):
            fits = int(np.searchsorted(places, end))
            part[places[:fits] - start] = found[:fits]
            places, found = places[fits:], found[fits:]
            if len(places):
                break
            places, found = next(entries, _NOTHING)
        yield encoded(part, values.dtype)
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
    found: Array = (indices * strides).sum(axis=1)
    return found
