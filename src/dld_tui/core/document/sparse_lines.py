"""A sparse tensor as lines of text: its type and dimensions, then one element a line.

::

    float32 [3, 4]
    0, 2 = 1.5
    2, 3 = -1
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from dld_tui.core import protos as onnx
from dld_tui.core.document.edits.sparse import sparse_elements
from dld_tui.core.document.tensor import Tensor
from dld_tui.core.errors import EditError, UsageError
from dld_tui.core.tensors.elements import element_type, from_json, to_json
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document

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
