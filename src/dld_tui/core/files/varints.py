"""Numbers and tags of the protobuf wire format."""

from __future__ import annotations

from typing import Final

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
