"""Values of tensors: which tensor an edit means, and how it gets another payload.

A tensor is named by ``{"initializer": NAME}`` or ``{"node": REF, "attribute": NAME}``. An attribute
that is a list of numbers or strings is a tensor of one dimension.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING

import numpy as np

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import EditError
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.blobs import PATCH_LIMIT, Blob, PatchedBlob, patched
from dld_tui.core.files.external import (
    element_bits,
    entries_of,
    is_pending,
    payload_length,
    set_inline,
    set_pending,
)
from dld_tui.core.files.proto_fields import VALUE_FIELDS, attribute_type, text_of
from dld_tui.core.files.wire import THRESHOLD
from dld_tui.core.model.document.edit_registry import edit, node_at
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.scope import Scope
from dld_tui.core.model.document.transactions import SetAttribute, Splice, Transaction
from dld_tui.core.model.edits.attributes import find_attribute
from dld_tui.core.model.tensors.elements import (
    Array,
    converted_payload,
    element_type,
    encode_elements,
    from_json,
    native_type,
    payload_bytes,
    raw_payload,
    require_dims,
)
from dld_tui.core.model.tensors.generate import referenced_payload, require_room, string_elements
from dld_tui.core.model.tensors.tensor import DATA_FIELDS, Tensor
from dld_tui.core.model.tensors.value_types import dtype_number
from dld_tui.core.text import quoted
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document

_TYPED_LISTS = ("input", "value_info", "output")


@dataclass(frozen=True)
class EditedTensor:
    """A tensor that is to be changed: an initializer, or the value of an attribute."""

    scope: Scope
    tensor: Tensor
    title: str
    """What to call it in messages. Untrusted text, escaped."""
    position: int
    """Its place in the list of initializers or of attributes."""
    node: Node | None = None
    """The node of the attribute."""

    def replace(self, transaction: Transaction, proto: onnx.TensorProto) -> None:
        """Put another tensor in its place; declared types of an initializer follow."""
        if self.node is None:
            old = self.tensor.proto
            transaction.do(Splice(self.scope, "initializer", self.position, [old], [proto]))
            _redeclare(transaction, self.scope, proto)
            return
        before = self.node.proto.attribute[self.position]
        after = deepcopy(before)
        if before.HasField("t"):
            after.t.CopyFrom(proto)
        else:
            self._put_list(after, Tensor(proto, self.node.scope.document))
        transaction.do(SetAttribute(self.node, self.position, before, after))

    def _put_list(self, attribute: onnx.AttributeProto, new: Tensor) -> None:
        if new.dtype != self.tensor.dtype or len(new.shape) != 1:
            kind = f"a list of {self.tensor.dtype}"
            raise EditError(f"{self.title} is {kind}, not {new.dtype}{list(new.shape)}")
        elements = getattr(attribute, VALUE_FIELDS[attribute_type(attribute)])
        del elements[:]
        elements.extend(new.read().tolist())


def target_at(document: Document, scope: Sequence[str], tensor: JSON) -> EditedTensor:
    """Return the tensor of an address.

    Args:
        scope: The path of the scope.
        tensor: ``{"initializer": NAME}`` or ``{"node": REF, "attribute": NAME}``.

    Raises:
        EditError: There is none, or it is sparse.
    """
    if isinstance(tensor, dict):
        name, ref, attribute = (tensor.get(key) for key in ("initializer", "node", "attribute"))
        if isinstance(name, str) and ref is None:
            return initializer_at(document.scope_at(scope), name)
        if isinstance(ref, str) and isinstance(attribute, str) and name is None:
            return _attribute_at(document, scope, ref, attribute)
    raise EditError("a tensor is named by {initializer} or by {node, attribute}")


def initializer_at(scope: Scope, name: str) -> EditedTensor:
    """Return a dense initializer of a scope.

    Raises:
        EditError: There is none, or it is sparse.
    """
    tensor = scope.initializer(name)
    if tensor is None:
        if name in scope.named("sparse_initializer"):
            raise EditError(f"{quoted(name)} is sparse", hint="Make it dense first")
        where = " › ".join(scope.path) or "main"
        raise EditError(f"there is no initializer {quoted(name)}", where=where)
    return EditedTensor(scope, tensor, quoted(name), scope.place_of("initializer", tensor.proto))


def _attribute_at(
    document: Document, scope: Sequence[str], ref: str, attribute: str
) -> EditedTensor:
    node = node_at(document, scope, ref)
    position, _ = find_attribute(node, attribute)
    found = node.attribute(attribute)
    tensor = found.tensor if found is not None else None
    if tensor is None:
        raise EditError(f"{quoted(ref)} has no tensor or list {quoted(attribute)}")
    title = f"{quoted(attribute)} of {quoted(ref)}"
    return EditedTensor(node.scope, tensor, title, position, node)


def without_values(
    old: onnx.TensorProto, dtype: str | None = None, dims: Sequence[int] | None = None
) -> onnx.TensorProto:
    """Return a tensor with all that another one has but its values.

    Args:
        old: The other tensor.
        dtype: Another element type.
        dims: Other dimensions.
    """
    proto = deepcopy(old)
    for field in (*DATA_FIELDS, "external_data", "data_location", "segment"):
        proto.ClearField(field)
    if dtype is not None:
        proto.data_type = dtype_number(dtype) or 0
    if dims is not None:
        del proto.dims[:]
        proto.dims.extend(dims)
    return proto


def put_payload(
    document: Document,
    proto: onnx.TensorProto,
    payload: bytes | Blob | Iterator[bytes],
    *,
    location: str | None = None,
) -> None:
    """Give a tensor its values, large ones by reference.

    Args:
        proto: A tensor without values.
        payload: As ``raw_data`` has them.
        location: The data file to go to when the model is saved, ``""`` for one that is named
            after the model; None keeps them in the model.

    Raises:
        SaveError: There is no room for them.
    """
    if not isinstance(payload, (bytes, Blob)):
        payload = document.spill.append(payload, length=payload_length(proto) or 0)
    # What goes to a data file is kept by reference, so that a later save finds it there.
    if isinstance(payload, bytes) and (len(payload) >= THRESHOLD or location is not None):
        payload = document.spill.append(payload)
    elif isinstance(payload, Blob) and payload.length < THRESHOLD and location is None:
        payload = payload.read()
    data = document.blobs.add(payload) if isinstance(payload, Blob) else payload
    if location is None:
        set_inline(proto, data)
    else:
        set_pending(proto, location, data)


SMALLEST_APART = 1024
"""Bytes from which no tensor of one dimension is a shape, axes, pads, steps or the like."""


def belongs_inside(tensor: Tensor) -> bool:
    """Return whether shapes may depend on a tensor, so that it must not be in a data file."""
    return len(tensor.shape) < 2 and (tensor.nbytes or 0) < SMALLEST_APART


def kept_inside(count: int) -> str:
    """Return why weights stay in the model."""
    return (
        f"{fmt.plural(count, 'list')} of less than {SMALLEST_APART} bytes"
        f" {'stays' if count == 1 else 'stay'} in the model: shapes may depend on them, and"
        " runtimes do not infer these from data files"
    )


def location_of(old: onnx.TensorProto) -> str | None:
    """Return where the new values of a tensor go: see :func:`put_payload`.

    External data stays external. Since other models may share its file, new values are
    written to a new one.
    """
    if old.data_location != onnx.TensorProto.EXTERNAL:
        return None
    return entries_of(old).get("location", "") if is_pending(old) else ""


def _redeclare(transaction: Transaction, scope: Scope, proto: onnx.TensorProto) -> None:
    """Make what inputs and value_info declare of an initializer right again."""
    name = text_of(proto.name)
    for list_name in _TYPED_LISTS:
        record = scope.named(list_name).first(name)
        if record is None or not record.HasField("type"):
            continue
        changed = deepcopy(record)
        declared = changed.type.tensor_type
        declared.elem_type = proto.data_type
        if declared.HasField("shape") and not _allows(declared.shape, proto.dims):
            del declared.shape.dim[:]
            for dim in proto.dims:
                declared.shape.dim.add(dim_value=dim)
        if changed != record:
            transaction.replace(scope, list_name, record, changed)


def _allows(shape: onnx.TensorShapeProto, dims: Sequence[int]) -> bool:
    return len(shape.dim) == len(dims) and all(
        not dim.HasField("dim_value") or dim.dim_value == size
        for dim, size in zip(shape.dim, dims, strict=True)
    )


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
        scope: The path of the scope.
        tensor: The tensor's address.
        saturate: Whether float8 types replace larger numbers by their largest one.
    """
    target = target_at(document, scope, tensor)
    old = target.tensor
    dtype = element_type(dtype)
    if old.dtype == dtype:
        return "convert nothing"
    require_readable(target)
    proto = without_values(old.proto, dtype)
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
    """Set consecutive elements of a tensor in row order.

    Only the changed bytes are kept, whatever the size of the tensor.

    Args:
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
    require_readable(target)
    new = from_json(values, old.dtype)
    if not values or _same(old.read(start, len(values)), new):
        return "set nothing"
    proto = without_values(old.proto)
    if old.dtype == "string":
        proto.string_data.extend(old.proto.string_data)
        for place, text in enumerate(new, start):
            proto.string_data[place] = text
    else:
        payload = _with_elements(document, old, start, new)
        put_payload(document, proto, payload, location=location_of(old.proto))
    target.replace(transaction, proto)
    subject_text = "an element" if len(values) == 1 else f"{len(values)} elements"
    return f"set {subject_text} of {target.title}"


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
    resize: bool = False,
) -> str:
    """Give a tensor another type, shape and values.

    Args:
        scope: The path of the scope.
        tensor: The tensor's address.
        dims: The dimensions.
        payload: A reference to the values, or ``{"values": [...]}`` in row order; null keeps the
            values, and then only the dimensions may change.
        resize: Without a payload, cut elements off at the end of each axis, and fill with zeros.
    """
    target = target_at(document, scope, tensor)
    old = target.tensor
    dtype = element_type(dtype)
    shape = require_dims(dims)
    if payload is None and resize and dtype == old.dtype and len(shape) == len(old.shape):
        return _resize(document, transaction, target, shape)
    if payload is None:
        return _reshape(transaction, target, dtype, shape)
    proto = without_values(old.proto, dtype, shape)
    if dtype == "string":
        texts = payload.get("values") if isinstance(payload, dict) else None
        proto.string_data.extend(string_elements(texts, shape))
    else:
        data = referenced_payload(document, payload, dtype, shape)
        put_payload(document, proto, data, location=location_of(old.proto))
    if proto == old.proto:
        return "replace nothing"
    target.replace(transaction, proto)
    return f"replace {target.title}"


def _resize(
    document: Document, transaction: Transaction, target: EditedTensor, dims: tuple[int, ...]
) -> str:
    old = target.tensor
    if dims == old.shape:
        return "resize nothing"
    require_readable(target)
    require_room(document, payload_bytes(old.dtype, math.prod(dims)) or 0)
    values = _zeros(dims, old.dtype)
    kept = tuple(slice(min(pair)) for pair in zip(dims, old.shape, strict=True))
    values[kept] = old.read().reshape(old.shape)[kept]
    _put_values(document, transaction, target, values)
    return f"resize {target.title} to {list(dims)}"


def _zeros(dims: Sequence[int], dtype: str) -> Array:
    return np.full(dims, b"" if dtype == "string" else 0, native_type(dtype))


def _put_values(
    document: Document, transaction: Transaction, target: EditedTensor, values: Array
) -> None:
    """Give a tensor values of another shape."""
    old = target.tensor
    proto = without_values(old.proto, dims=values.shape)
    if old.dtype == "string":
        proto.string_data.extend(values.reshape(-1).tolist())
    else:
        payload = encode_elements(values, old.dtype)
        put_payload(document, proto, payload, location=location_of(old.proto))
    target.replace(transaction, proto)


@edit
def splice_tensor(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    tensor: JSON,
    axis: int,
    start: int,
    delete: int = 0,
    insert: int = 0,
    values: list[JSON] | None = None,
) -> str:
    """Delete and insert rows of a tensor along an axis: elements of one dimension, rows of two.

    Args:
        scope: The path of the scope.
        tensor: The tensor's address.
        axis: The axis.
        start: The index along it at which rows are deleted and others inserted.
        delete: How many are deleted.
        insert: How many are inserted.
        values: Their elements in row order; zeros, or empty strings, when null.
    """
    target = target_at(document, scope, tensor)
    old = target.tensor
    numbers = (axis, start, delete, insert)
    if any(isinstance(n, bool) or not isinstance(n, int) or n < 0 for n in numbers):
        raise EditError("axis, start, delete and insert must be whole numbers from 0")
    if axis >= len(old.shape):
        raise EditError(f"{target.title} has {fmt.plural(len(old.shape), 'dimension')}")
    if start + delete > old.shape[axis]:
        raise EditError(
            f"axis {axis} of {target.title} has {old.shape[axis]} rows, not {start + delete}"
        )
    require_readable(target)
    dims = list(old.shape)
    dims[axis] = insert
    added = require_dims(dims)
    dims[axis] = old.shape[axis] - delete + insert
    require_room(document, payload_bytes(old.dtype, math.prod(require_dims(dims))) or 0)
    if values is None:
        new = _zeros(added, old.dtype)
    elif not isinstance(values, list) or len(values) != math.prod(added):
        raise EditError(f"values must be a list of {math.prod(added)}")
    else:
        new = from_json(values, old.dtype).reshape(added)
    if not delete and not insert:
        return "change nothing"
    before, _, after = np.split(old.read().reshape(old.shape), (start, start + delete), axis)
    _put_values(document, transaction, target, np.concatenate([before, new, after], axis))
    effects = [f"{verb} {fmt.plural(count, 'row')}"
            for verb, count in (("delete", delete), ("insert", insert)) if count]  # fmt: skip
    return f"{' and '.join(effects)} of {target.title}"


def _reshape(
    transaction: Transaction, target: EditedTensor, dtype: str, dims: tuple[int, ...]
) -> str:
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


def require_readable(target: EditedTensor) -> None:
    """Refuse a tensor whose values cannot be read.

    Raises:
        EditError: They cannot; the message says why.
    """
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
    payload = raw_payload(tensor)
    first, data = _whole_bytes(tensor, start, new)
    if isinstance(payload, bytes):
        return payload[:first] + data + payload[first + len(data) :]
    blob = patched(payload, [(first, data)])
    return _flattened(document, blob) if blob.patch_size > PATCH_LIMIT else blob


def _flattened(document: Document, blob: PatchedBlob) -> Blob:
    """Return a payload with many patches as a new copy."""
    return document.spill.append(blob.chunks(1 << 20))


def _whole_bytes(
    tensor: Tensor, start: int, new: np.ndarray[tuple[int, ...], np.dtype[np.generic]]
) -> tuple[int, bytes]:
    """Return where in the payload the elements go, and the bytes; their neighbours come along."""
    bits = element_bits(tensor.proto.data_type) or 8
    if bits >= 8:
        return start * bits // 8, encode_elements(new, tensor.dtype)
    group = 8 // np.gcd(bits, 8)  # elements that fill whole bytes
    first = start // group * group
    last = min(-(-(start + len(new)) // group) * group, tensor.element_count)
    around = tensor.read(first, last - first).astype(native_type(tensor.dtype))
    around[start - first : start - first + len(new)] = new
    return int(first * bits // 8), encode_elements(around, tensor.dtype)
