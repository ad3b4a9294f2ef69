"""Fields of messages: numbers, tags, the value of an attribute, and texts that may not be UTF-8.

The format allows any bytes in a name (ONNX is proto2); protobuf returns such a name as ``bytes``
and refuses to set it. Here every name is a ``str`` that keeps invalid bytes by Python's
surrogateescape. Writing it back goes through the wire format, so that an undo is exact.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final

from dld_tui.core.files import protos as onnx
from dld_tui.core.types import plain_domain

if TYPE_CHECKING:
    from dld_tui.core.files.source import FileContent


VARINT, FIXED64, DELIMITED, GROUP_START, GROUP_END, FIXED32 = range(6)
"""Wire types: the low three bits of a tag."""

MAX_TAG_LENGTH, MAX_VARINT_LENGTH = 5, 10


def tag_of(number: int, wire_type: int = DELIMITED) -> int:
    """Return the tag of a field."""
    return number << 3 | wire_type


MODEL_TAGS: Final = {
    **{number: tag_of(number, VARINT) for number in (1, 5)},
    **{number: tag_of(number) for number in (2, 3, 4, 6, 7, 8, 14, 20, 25, 26)},
}
"""The tag of each field of ModelProto by its number: what an ONNX file may start with."""


def varint(value: int) -> bytes:
    """Return the shortest encoding of a non-negative number."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def read_varint(
    data: FileContent, start: int, max_length: int = MAX_VARINT_LENGTH
) -> tuple[int, int]:
    """Return the number at `start` and the position after it.

    Raises:
        ValueError: It is longer than `max_length` bytes.
        IndexError: The data ends within it.
    """
    value = shift = 0
    for position in range(start, start + max_length):
        byte = data[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, position + 1
        shift += 7
    raise ValueError(f"a number of more than {max_length} bytes")


MOST_PARTS: Final = 100_000
"""Attributes, inputs, outputs, or numbers in a list, that programs go through in a node; inputs,
outputs and functions of a model; dimensions of a tensor, and entries of its external data."""
LEAST_OF_A_CROWD: Final = 2 * MOST_PARTS
"""Bytes of a node with so many of them: each takes two or more. Of a tensor half as many."""


def crowd_of_model(model: Any) -> str:
    """Return what a ModelProto has too many of, such as ``1,000,000 functions``, or nothing."""
    for parts, what in (
        (model.functions, "local functions"),
        (model.graph.input, "graph inputs"),
        (model.graph.output, "graph outputs"),
    ):
        if len(parts) > MOST_PARTS:
            return f"{len(parts):,} {what}"
    for function in model.functions:
        if len(function.attribute) > MOST_PARTS:
            return f"{len(function.attribute):,} attributes of function {_shown(function)}"
    for record in (*model.graph.input, *model.graph.output):
        if crowd := crowd_of_value(record):
            return f"{crowd} of {_shown(record)}"
    return ""


def crowd_of_value(record: Any) -> str:
    """Return what a ValueInfoProto has too many of; empty if nothing."""
    if record.ByteSize() < MOST_PARTS:
        return ""
    kind = record.type
    most = max(len(one.shape.dim) for one in (kind.tensor_type, kind.sparse_tensor_type))
    return f"{most:,} dimensions" if most > MOST_PARTS else ""


def crowd_of_tensor(tensor: Any) -> str:
    """Return what a TensorProto has too many of; empty if nothing."""
    if tensor.ByteSize() < MOST_PARTS:
        return ""
    for parts, what in (
        (tensor.dims, "dimensions"), (tensor.external_data, "entries of external data"),
    ):  # fmt: skip
        if len(parts) > MOST_PARTS:
            return f"{len(parts):,} {what}"
    return ""


def _shown(item: Any) -> str:
    from dld_tui.core.text import visible  # lazy: nothing else here needs it

    return visible(text_of(item.name))


def crowd_of(node: Any) -> str:
    """Return what a NodeProto has too many of, such as ``1,000,000 attributes``; empty if nothing.

    Lists of a Constant and of operators outside of ai.onnx, such as tree ensembles, may be long.
    """
    if node.ByteSize() < LEAST_OF_A_CROWD:
        return ""
    for parts, what in (
        (node.attribute, "attributes"), (node.input, "inputs"), (node.output, "outputs"),
    ):  # fmt: skip
        if len(parts) > MOST_PARTS:
            return f"{len(parts):,} {what}"
    for attribute in node.attribute:
        if attribute.HasField("t") and (crowd := crowd_of_tensor(attribute.t)):
            return f"{crowd} in an attribute"
    if text_of(node.domain) not in ("", "ai.onnx") or text_of(node.op_type) == "Constant":
        return ""
    most = max(
        (max(len(one.ints), len(one.floats), len(one.strings)) for one in node.attribute), default=0
    )
    return f"{most:,} values in an attribute" if most > MOST_PARTS else ""


def text_of(value: str | bytes) -> str:
    """Return a name as str, with bytes that are not UTF-8 as surrogates."""
    return value if value.__class__ is str else value.decode("utf-8", "surrogateescape")  # type: ignore[union-attr]


def imported_versions(message: onnx.ModelProto | onnx.FunctionProto) -> dict[str, int]:
    """Return the versions of operator sets that a model or a function imports, by domain."""
    return {plain_domain(text_of(item.domain)): int(item.version) for item in message.opset_import}


def operator_key(item: onnx.FunctionProto | onnx.NodeProto) -> tuple[str, str, str]:
    """Return domain, name and overload of a function, or of what a node calls. Untrusted text."""
    name = item.op_type if isinstance(item, onnx.NodeProto) else item.name
    # A message that another version of onnx made may have no overload.
    overload = getattr(item, "overload", "")
    return plain_domain(text_of(item.domain)), text_of(name), text_of(overload)


def texts_of(values: Iterable[str | bytes]) -> tuple[str, ...]:
    """Return names as str, see :func:`text_of`."""
    names = tuple(values)
    for name in names:
        if name.__class__ is not str:
            return tuple(text_of(name) for name in names)
    return names  # type: ignore[return-value]


def get_text(message: Any, field: str) -> str | None:
    """Return a text field, or None when it is not set."""
    return text_of(getattr(message, field)) if message.HasField(field) else None


def set_text(message: Any, field: str, value: str | int | None) -> None:
    """Set a text or number field, or clear it when `value` is None."""
    if value is None:
        message.ClearField(field)
        return
    try:
        setattr(message, field, value)
    except UnicodeEncodeError:
        message.MergeFromString(_field_bytes(message, field, str(value)))


def set_texts(message: Any, field: str, values: Iterable[str]) -> None:
    """Replace a repeated text field."""
    values = tuple(values)
    container = getattr(message, field)
    del container[:]
    try:
        container.extend(values)
    except UnicodeEncodeError:
        del container[:]
        message.MergeFromString(b"".join(_field_bytes(message, field, value) for value in values))


def set_items(container: Any, messages: Iterable[Any]) -> None:
    """Replace the messages of a repeated field, by copies of others or of some of its own."""
    copies = [deepcopy(message) for message in messages]
    del container[:]
    container.extend(copies)


def _field_bytes(message: Any, field: str, value: str) -> bytes:
    number = message.DESCRIPTOR.fields_by_name[field].number
    data = value.encode("utf-8", "surrogateescape")
    return varint(tag_of(number)) + varint(len(data)) + data


_AttributeType = onnx.AttributeProto


VALUE_FIELDS: dict[int, str] = {
    _AttributeType.FLOAT: "f",
    _AttributeType.INT: "i",
    _AttributeType.STRING: "s",
    _AttributeType.TENSOR: "t",
    _AttributeType.GRAPH: "g",
    _AttributeType.SPARSE_TENSOR: "sparse_tensor",
    _AttributeType.TYPE_PROTO: "tp",
    _AttributeType.FLOATS: "floats",
    _AttributeType.INTS: "ints",
    _AttributeType.STRINGS: "strings",
    _AttributeType.TENSORS: "tensors",
    _AttributeType.GRAPHS: "graphs",
    _AttributeType.SPARSE_TENSORS: "sparse_tensors",
    _AttributeType.TYPE_PROTOS: "type_protos",
}
"""The field of AttributeProto that carries the value, by attribute type."""


def attribute_type(proto: onnx.AttributeProto) -> int:
    """Return the attribute's type, guessed from its value where an old exporter left it out."""
    if proto.type:
        return int(proto.type)
    for number, field in VALUE_FIELDS.items():
        descriptor = proto.DESCRIPTOR.fields_by_name[field]
        present = len(getattr(proto, field)) if descriptor.is_repeated else proto.HasField(field)
        if present:
            return number
    return 0
