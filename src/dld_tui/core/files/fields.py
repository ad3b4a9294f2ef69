"""The parts of the protobuf wire format and of onnx.proto that cutting payloads out needs.

A message kind is the table of those of its length-delimited fields that lead to payloads: the key
is the field's tag, the value is another table to descend into or, for a payload, the field's name.
All other fields are copied as they are, so unknown ones survive.
"""

from __future__ import annotations

from typing import Final, TypeAlias

VARINT, FIXED64, DELIMITED, GROUP_START, GROUP_END, FIXED32 = range(6)
"""Wire types: the low three bits of a tag."""

MAX_DEPTH: Final = 100
"""Levels of messages that protobuf parses; deeper ones are refused by it."""

MAX_MESSAGE: Final = 2**31 - 1
"""Bytes of the largest message that protobuf reads or writes."""

MAX_TAG_LENGTH, MAX_VARINT_LENGTH = 5, 10

Kind: TypeAlias = "dict[int, Kind | str]"


def tag_of(number: int, wire_type: int = DELIMITED) -> int:
    """Return the tag of a field."""
    return number << 3 | wire_type


TENSOR: Final[Kind] = {
    tag_of(4): "float_data",
    tag_of(5): "int32_data",
    tag_of(7): "int64_data",
    tag_of(9): "raw_data",
    tag_of(10): "double_data",
    tag_of(11): "uint64_data",
}
SPARSE_TENSOR: Final[Kind] = {tag_of(1): TENSOR, tag_of(2): TENSOR}
ATTRIBUTE: Final[Kind] = {
    tag_of(4): "s",
    tag_of(5): TENSOR,
    tag_of(10): TENSOR,
    tag_of(22): SPARSE_TENSOR,
    tag_of(23): SPARSE_TENSOR,
}
NODE: Final[Kind] = {tag_of(5): ATTRIBUTE}
GRAPH: Final[Kind] = {tag_of(1): NODE, tag_of(5): TENSOR, tag_of(15): SPARSE_TENSOR}
ATTRIBUTE[tag_of(6)] = GRAPH
ATTRIBUTE[tag_of(11)] = GRAPH
FUNCTION: Final[Kind] = {tag_of(7): NODE, tag_of(11): ATTRIBUTE}
TRAINING: Final[Kind] = {tag_of(1): GRAPH, tag_of(2): GRAPH}
MODEL: Final[Kind] = {tag_of(7): GRAPH, tag_of(20): TRAINING, tag_of(25): FUNCTION}

MODEL_TAGS: Final = {
    **{number: tag_of(number, VARINT) for number in (1, 5)},
    **{number: tag_of(number) for number in (2, 3, 4, 6, 7, 8, 14, 20, 25, 26)},
}
"""The tag of each field of ModelProto by its number: what an ONNX file may start with."""

ELEMENT_WIDTH: Final = {"float_data": 4, "double_data": 8}
"""Bytes of one value in the packed fields of fixed width; protobuf refuses a length that is no
multiple."""


def varint(value: int) -> bytes:
    """Return the shortest encoding of a non-negative number."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def read_varint(data: bytes, start: int, max_length: int = MAX_VARINT_LENGTH) -> tuple[int, int]:
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
