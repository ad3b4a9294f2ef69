"""Find the tensors of a serialised model and move their payloads to external data."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator

from dld_tui.core.files import protos as onnx
from dld_tui.core.files.blobs import FIXED_WIDTH_FIELDS, SENTINEL_LENGTH, Blob, BlobTable
from dld_tui.core.files.wire import TENSOR, splice

_PAYLOAD_FIELDS = (
    "raw_data",
    "float_data",
    "int32_data",
    "int64_data",
    "double_data",
    "uint64_data",
)
_FLOATS, _DOUBLES = f"<{SENTINEL_LENGTH // 4}f", f"<{SENTINEL_LENGTH // 8}d"


def dense_tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Yield every tensor that may have external data: initializers and attributes at all levels.

    The parts of sparse tensors are left out: other tools read those from the model only.
    """
    graphs = [model.graph]
    for training in model.training_info:
        graphs += (training.initialization, training.algorithm)
    nodes: list[Iterable[onnx.NodeProto]] = [function.node for function in model.functions]
    for function in model.functions:
        for attribute in function.attribute_proto:
            yield from _of_attribute(attribute, graphs)
    while graphs or nodes:
        if graphs:
            graph = graphs.pop()
            yield from graph.initializer
            nodes.append(graph.node)
        for node in nodes.pop():
            for attribute in node.attribute:
                yield from _of_attribute(attribute, graphs)


def _of_attribute(
    attribute: onnx.AttributeProto, graphs: list[onnx.GraphProto]
) -> Iterator[onnx.TensorProto]:
    if attribute.HasField("t"):
        yield attribute.t
    if attribute.HasField("g"):
        graphs.append(attribute.g)
    yield from attribute.tensors
    graphs += attribute.graphs


def has_external(skeleton: bytes) -> bool:
    """Return whether a serialised model may have external data: True is a maybe, False is sure."""
    return b"\x70\x01" in skeleton  # data_location: EXTERNAL


def is_external(tensor: onnx.TensorProto) -> bool:
    """Return whether a tensor's payload is in a file of its own."""
    return tensor.data_location == onnx.TensorProto.EXTERNAL


def entries_of(tensor: onnx.TensorProto) -> dict[str, str]:
    """Return the ``external_data`` entries. Foreign text."""
    return {_text(entry.key): _text(entry.value) for entry in tensor.external_data}


def _text(value: str | bytes) -> str:
    # protobuf hands out text that is not UTF-8 as bytes.
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


def set_external(tensor: onnx.TensorProto, location: str, offset: int, length: int) -> None:
    """Make a tensor's payload external; what it held inline is removed."""
    for field in (*_PAYLOAD_FIELDS, "external_data"):
        tensor.ClearField(field)
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", str(offset)), ("length", str(length))):
        tensor.external_data.add(key=key, value=value)


PENDING = "dld.pending"
"""Marks external data that is still to be written: the payload is in ``raw_data`` until then."""


def is_pending(tensor: onnx.TensorProto) -> bool:
    """Return whether a tensor's data is to go to a data file when the model is saved."""
    return is_external(tensor) and any(entry.key == PENDING for entry in tensor.external_data)


def set_pending(tensor: onnx.TensorProto, location: str, payload: bytes) -> None:
    """Make a tensor's payload external as soon as the model is saved.

    Args:
        tensor: The tensor.
        location: The data file, relative to the model; empty for one named after the model.
        payload: The payload or, better, a sentinel that stands for it.
    """
    set_inline(tensor, payload)
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", location), (PENDING, "1")):
        tensor.external_data.add(key=key, value=value)


def make_plain(tensor: onnx.TensorProto) -> None:
    """Make a tensor inline whose data was to go to a data file; others stay as they are."""
    if is_pending(tensor):
        tensor.ClearField("external_data")
        tensor.ClearField("data_location")


def set_inline(tensor: onnx.TensorProto, payload: bytes) -> None:
    """Make a tensor's payload inline."""
    for field in (*_PAYLOAD_FIELDS, "external_data", "data_location"):
        tensor.ClearField(field)
    tensor.raw_data = payload


def inline_blob(tensor: onnx.TensorProto, blobs: BlobTable) -> Blob | None:
    """Return the payload that was cut out of a tensor when that is all it has, else None.

    None for a payload of several chunks, too.
    """
    found: Blob | None = None
    for field in _PAYLOAD_FIELDS:
        values = getattr(tensor, field)
        if not values:
            continue
        if found is not None:
            return None
        found = blobs.get(_sentinel(field, values))
        if found is None:
            return None
    return found


def _sentinel(field: str, values: bytes | list[float] | list[int]) -> bytes:
    """Return the field's content as bytes if it may be a sentinel, else nothing."""
    if isinstance(values, bytes):
        return values
    if field == "float_data":
        return struct.pack(_FLOATS, *values) if len(values) * 4 == SENTINEL_LENGTH else b""
    if field == "double_data":
        return struct.pack(_DOUBLES, *values) if len(values) * 8 == SENTINEL_LENGTH else b""
    if len(values) == SENTINEL_LENGTH and all(0 <= value < 0x80 for value in values):
        return bytes(int(value) for value in values)
    return b""


def has_values_as_stored(blob: Blob) -> bool:
    """Return whether a payload is what ``raw_data`` or a data file holds: little-endian values."""
    return blob.field in FIXED_WIDTH_FIELDS


def decoded(tensor: onnx.TensorProto, blobs: BlobTable) -> bytes:
    """Return the payload of a tensor with varints in the form of ``raw_data``. Reads it all.

    Raises:
        DecodeError: The payload is no list of varints.
        ValueError: Its length does not fit the dimensions.
    """
    from onnx import numpy_helper

    pieces = splice(tensor.SerializeToString(), blobs, kind=TENSOR)
    data = b"".join(piece if isinstance(piece, bytes) else piece.read() for piece in pieces)
    return numpy_helper.from_array(
        numpy_helper.to_array(onnx.TensorProto.FromString(data))
    ).raw_data


NARROW_BITS = {
    "UINT4": 4,
    "INT4": 4,
    "FLOAT4E2M1": 4,
    "UINT2": 2,
    "INT2": 2,
    "FLOAT6E2M3": 6,
    "FLOAT6E3M2": 6,
}
"""Element types that are packed without regard to bytes. By name: older onnx packages lack some."""
_BITS = {
    **NARROW_BITS,
    **dict.fromkeys(("BOOL", "INT8", "UINT8"), 8),
    **dict.fromkeys(("FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ"), 8),
    "FLOAT8E8M0": 8,
    **dict.fromkeys(("INT16", "UINT16", "FLOAT16", "BFLOAT16"), 16),
    **dict.fromkeys(("INT32", "UINT32", "FLOAT"), 32),
    **dict.fromkeys(("INT64", "UINT64", "DOUBLE", "COMPLEX64"), 64),
    "COMPLEX128": 128,
}


def element_bits(data_type: int) -> int | None:
    """Return the bits of an element of a ``TensorProto.DataType``; None for strings and unknown."""
    try:
        return _BITS.get(onnx.TensorProto.DataType.Name(data_type))
    except (ValueError, TypeError):
        return None


def payload_length(tensor: onnx.TensorProto) -> int | None:
    """Return the bytes that the values of a tensor take; None when its type or shape is odd."""
    bits = element_bits(tensor.data_type)
    if bits is None or any(dim < 0 for dim in tensor.dims):
        return None
    return (math.prod(tensor.dims) * bits + 7) // 8
