"""Text fields of protobuf messages whose bytes may not be UTF-8.

The format allows any bytes in a name (ONNX is proto2) and protobuf hands such a name over as
``bytes`` and refuses to set it. Here every name is a ``str`` whose odd bytes are kept by Python's
surrogateescape, and writing it back goes through the wire format, so that an undo is exact.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import Any

from dld_tui.core.files.varints import tag_of, varint


def text_of(value: str | bytes) -> str:
    """Return a name as str, with bytes that are not UTF-8 as surrogates."""
    return value if value.__class__ is str else value.decode("utf-8", "surrogateescape")  # type: ignore[union-attr]


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
