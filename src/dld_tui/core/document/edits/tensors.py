"""Changing the values of tensors: initializers and those in attributes.

A tensor is named by ``{"initializer": NAME}`` or ``{"node": REF, "attribute": NAME}``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dld_tui.core.document.edits.registry import edit
from dld_tui.core.document.edits.tensor_targets import (
    Target,
    emptied,
    location_of,
    put_payload,
    target_at,
)
from dld_tui.core.document.history import Transaction
from dld_tui.core.document.tensor import Tensor
from dld_tui.core.errors import EditError, InputError
from dld_tui.core.files.blobs import Blob
from dld_tui.core.files.patched import PATCH_LIMIT, PatchedBlob, patched
from dld_tui.core.files.tensors import element_bits
from dld_tui.core.tensors.conversion import converted_payload
from dld_tui.core.tensors.elements import (
    element_type,
    encoded,
    from_json,
    numpy_type,
    require_dims,
)
from dld_tui.core.tensors.generate import given, given_strings
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document


@edit
def convert_tensor(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    tensor: JSON,
    dtype: str,
    saturate: bool = True,
) -> str:
    """Convert a tensor to another element type, by the rules of ONNX's Cast.

    Args:
        document: The document.
        transaction: The transaction to make the change in.
        scope: The path of the scope.
        tensor: The tensor's address.
        dtype: The element type.
        saturate: Whether float8 types hold their largest number for what is larger.
    """
    target = target_at(document, scope, tensor)
    old = target.tensor
    dtype = element_type(dtype)
    if old.dtype == dtype:
        return "convert nothing"
    _require_readable(target)
    proto = emptied(old.proto, dtype)
    payload = converted_payload(old, dtype, saturate=saturate)
    put_payload(document, proto, payload, location=location_of(old.proto))
    target.replace(transaction, proto)
    return f"convert {target.title} to {dtype}"


@edit
def set_elements(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    tensor: JSON,
    start: int,
    values: list[JSON],
) -> str:
    """Set elements of a tensor that follow each other in row order.

    Only the changed bytes are kept, whatever the size of the tensor.

    Args:
        document: The document.
        transaction: The transaction to make the change in.
        scope: The path of the scope.
        tensor: The tensor's address.
        start: The place of the first in row order.
        values: Numbers, text for ``nan``, ``inf`` and complex numbers, or strings.
    """
    target = target_at(document, scope, tensor)
    old = target.tensor
    if isinstance(start, bool) or not isinstance(start, int) or not isinstance(values, list):
        raise EditError("start must be a whole number and values a list")
    if start < 0 or start + len(values) > old.element_count:
        raise EditError(
            f"{target.title} has {old.element_count} elements, not {start + len(values)}"
        )
    _require_readable(target)
    new = from_json(values, old.dtype)
    if not values or _same(old.read(start, len(values)), new):
        return "set nothing"
    proto = emptied(old.proto)
    if old.dtype == "string":
        proto.string_data.extend(old.proto.string_data)
        for place, text in enumerate(new, start):
            proto.string_data[place] = text
    else:
        payload = _with_elements(document, old, start, new)
        put_payload(document, proto, payload, location=location_of(old.proto))
    target.replace(transaction, proto)
    what = "an element" if len(values) == 1 else f"{len(values)} elements"
    return f"set {what} of {target.title}"


@edit
def replace_tensor(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    tensor: JSON,
    dtype: str,
    dims: Sequence[int],
    payload: JSON = None,
) -> str:
    """Give a tensor another type, shape and values.

    Args:
        document: The document.
        transaction: The transaction to make the change in.
        scope: The path of the scope.
        tensor: The tensor's address.
        dtype: The element type.
        dims: The dimensions.
        payload: A reference to the values, or ``{"values": [...]}`` in row order; null keeps the
            values, and then only the dimensions may change.
    """
    target = target_at(document, scope, tensor)
    old = target.tensor
    dtype = element_type(dtype)
    shape = require_dims(dims)
    if payload is None:
        return _reshape(transaction, target, dtype, shape)
    proto = emptied(old.proto, dtype, shape)
    if dtype == "string":
        texts = payload.get("values") if isinstance(payload, dict) else None
        proto.string_data.extend(given_strings(texts, shape))
    else:
        data = given(document, payload, dtype, shape)
        put_payload(document, proto, data, location=location_of(old.proto))
    if proto == old.proto:
        return "replace nothing"
    target.replace(transaction, proto)
    return f"replace {target.title}"


def _reshape(transaction: Transaction, target: Target, dtype: str, dims: tuple[int, ...]) -> str:
    old = target.tensor
    if dtype != old.dtype:
        raise EditError(f"{target.title} is {old.dtype}", hint="convert_tensor changes the type")
    count = int(np.prod(dims, dtype=object)) if dims else 1
    if count != old.element_count or any(dim < 0 for dim in old.shape):
        raise EditError(
            f"{target.title} has {old.element_count} elements, the new shape has {count}"
        )
    if dims == old.shape:
        return "reshape nothing"
    proto = type(old.proto)()
    proto.CopyFrom(old.proto)
    del proto.dims[:]
    proto.dims.extend(dims)
    target.replace(transaction, proto)
    return f"reshape {target.title}"


def _require_readable(target: Target) -> None:
    problem = target.tensor.problem
    if problem is not None:
        raise EditError(f"the values of {target.title} cannot be read: {problem}")


def _same(old: np.ndarray[tuple[int, ...], np.dtype[np.generic]], new: object) -> bool:
    if not isinstance(new, np.ndarray) or old.dtype == np.object_:
        return bool(np.array_equal(old, np.asarray(new)))
    return old.tobytes() == new.astype(old.dtype, copy=False).tobytes()


def _with_elements(
    document: Document,
    tensor: Tensor,
    start: int,
    new: np.ndarray[tuple[int, ...], np.dtype[np.generic]],
) -> bytes | Blob:
    """Return the payload of a tensor with some elements set, as ``raw_data`` has it."""
    try:
        payload = tensor.payload()
    except InputError:  # a few varints in the message itself
        payload = encoded(tensor.read(), tensor.dtype)
    first, data = _whole_bytes(tensor, start, new)
    if isinstance(payload, bytes):
        return payload[:first] + data + payload[first + len(data) :]
    blob = patched(payload, [(first, data)])
    return _flattened(document, blob) if blob.patch_size > PATCH_LIMIT else blob


def _flattened(document: Document, blob: PatchedBlob) -> Blob:
    """Return a payload with many patches written anew."""
    return document.spill.append(blob.chunks(1 << 20))


def _whole_bytes(
    tensor: Tensor, start: int, new: np.ndarray[tuple[int, ...], np.dtype[np.generic]]
) -> tuple[int, bytes]:
    """Return where in the payload the elements go, and the bytes; their neighbours come along."""
    bits = element_bits(tensor.proto.data_type) or 8
    if bits >= 8:
        return start * bits // 8, encoded(new, tensor.dtype)
    group = 8 // np.gcd(bits, 8)  # elements that fill whole bytes
    first = start // group * group
    last = min(-(-(start + len(new)) // group) * group, tensor.element_count)
    around = tensor.read(first, last - first).astype(numpy_type(tensor.dtype))
    around[start - first : start - first + len(new)] = new
    return int(first * bits // 8), encoded(around, tensor.dtype)
