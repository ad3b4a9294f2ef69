"""Values in a few cells: literals of short attributes, the beginning of long ones, elements."""

from __future__ import annotations

import base64
import re
from typing import Any

from dld_tui.core import fmt
from dld_tui.core.document.literals import (
    LiteralError,
    format_literal,
    format_string,
    parse_literal,
)
from dld_tui.core.document.node import Attribute
from dld_tui.core.document.tensor import Tensor
from dld_tui.core.document.value_types import dtype_name, value_type_of
from dld_tui.core.errors import DldError
from dld_tui.core.text import visible
from dld_tui.core.types import JSON, is_array

MAX_ITEMS = 32
_MAX_BYTES = 400
_MAX_STRING = 60
_WORD = re.compile(r"\w+")
MAX_EDITABLE = 20_000
"""Characters of the longest literal that is offered for editing."""


def value_text(value: Any) -> str:
    """Return one value in a few cells."""
    if isinstance(value, bytes | str):
        more = "…" if len(value) > _MAX_STRING else ""
        return visible(format_string(value[:_MAX_STRING])) + more
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, complex):
        return f"{value:.4g}"
    return number(float(value))


def number(value: float | None) -> str:
    """Return a figure in four digits."""
    return fmt.UNKNOWN if value is None else f"{float(value):.4g}"


def attribute_text(attribute: Attribute) -> str:
    """Return what is shown of an attribute's value, cut where it is long."""
    if attribute.reference is not None:
        return f"@{visible(attribute.reference)} of the function"
    blob = attribute.blob
    if blob is None:
        return literal_text(attribute.value, attribute.kind)
    try:
        head = format_literal(blob.read(0, _MAX_BYTES), "string")
    except DldError as error:
        return visible(error.message)
    return f"{head[:-1]}… {blob.length:,} bytes'"


def literal_text(value: Any, kind: str) -> str:
    """Return what is shown of a value of a kind, cut where it is long."""
    if value is None:
        return fmt.UNKNOWN
    if isinstance(value, Tensor):
        return f"{value.dtype}{visible(fmt.shape(value.shape))}"
    if is_array(value):
        value_list = value.reshape(-1)[:MAX_ITEMS].tolist()
        return f"{value.dtype}{fmt.shape(value.shape)} {visible(str(value_list))}"
    if isinstance(value, list) and value and isinstance(value[0], Tensor):
        return f"{len(value)} tensors"
    try:
        return _literal_text(value, kind)
    except (LiteralError, TypeError):
        return _message_text(value, kind)


def _literal_text(value: Any, kind: str) -> str:
    if isinstance(value, list):
        cut = [_cut(item) for item in value[:MAX_ITEMS]]
        text = format_literal(cut, kind)
        return text if len(value) <= MAX_ITEMS else f"{text[:-1]}, … {len(value):,} values]"
    cut = _cut(value)
    text = format_literal(cut, kind)
    return text if cut is value else f"{text[:-1]}… {len(value):,} bytes'"


def _cut(value: Any) -> Any:
    return value[:_MAX_BYTES] if isinstance(value, bytes) and len(value) > _MAX_BYTES else value


def _message_text(value: Any, kind: str) -> str:
    if kind == "type_proto":
        value_type = value_type_of(value)
        return visible(value_type.text) if value_type is not None else fmt.UNKNOWN
    if hasattr(value, "__len__"):
        return f"{len(value)} {kind.replace('_', ' ')}"
    return kind.replace("_", " ")


def editable_text(attribute: Attribute) -> str | None:
    """Return the literal to edit, or None when the value has none or it is too long."""
    value = attribute.value
    if isinstance(value, Tensor):
        return _tensor_literal(value)
    blob = attribute.blob
    if blob is not None:
        if blob.length > MAX_EDITABLE // 2:
            return None
        try:
            value = blob.read()
        except DldError:  # the file got shorter: what is typed replaces the value
            return None
    if isinstance(value, list | bytes) and len(value) > MAX_EDITABLE // 2:
        return None
    try:
        text = format_literal(value, attribute.kind)
    except (LiteralError, TypeError):
        return None
    return text if len(text) <= MAX_EDITABLE else None


def _tensor_literal(tensor: Tensor) -> str | None:
    if tensor.dtype == "string" or tensor.element_count > MAX_ITEMS * MAX_ITEMS:
        return None
    try:
        text = format_literal(tensor.read().reshape(tensor.shape), "tensor")
    except (DldError, ValueError):
        return None
    # Narrow integers are read into int8: the literal keeps the tensor's own type.
    return tensor.dtype + text[len(_WORD.match(text).group()) :]  # type: ignore[union-attr]


def edit_value(text: str, kind: str, dtype: str | None = None) -> JSON:
    """Return what was typed as the value that the ``set_attribute`` edit takes.

    Args:
        text: The literal.
        kind: The attribute's kind.
        dtype: The element type of a tensor whose literal does not begin with one.

    Raises:
        LiteralError: The text is no literal of this kind.
    """
    return _json_value(parse_literal(text, kind, dtype=dtype))


def _json_value(value: Any) -> JSON:
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, list):
        return [_json_value(item) for item in value]
    if not is_array(value):
        plain: JSON = value
        return plain
    if value.dtype == object:
        raise LiteralError("a tensor of strings cannot be typed here")
    from onnx import numpy_helper

    proto = numpy_helper.from_array(value)
    return {
        "dtype": dtype_name(proto.data_type),
        "dims": list(proto.dims),
        "raw": base64.b64encode(proto.raw_data).decode("ascii"),
    }
