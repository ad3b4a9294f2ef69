r"""Attribute values as people type and read them, on one line or a value a line.

::

    int      3   -7   0x10   true            ints     [1, 2, 3]   []
    float    0.5   1e-05   inf   nan         floats   [0.5, 1.0]
    string   'same'   "it's"   'it\'s'        strings  ['a', 'b']
    tensor   float32 [[1.0, 2.0], [3.0, 4.0]]   int64 7   float32[0, 3] []

Strings are bytes in a model and need not be UTF-8: ``\xNN`` is one byte, ``\uNNNN`` one
character. What :func:`format_literal` prints, :func:`parse_literal` reads back to the same value.

What is read is more than what is written: numbers may be separated by commas and blanks and be in
brackets, as other programs print them. A text needs quotes only where it begins with one, is
empty, or has characters that no line can hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from dld_tui.core.document.literal_scanner import (
    LiteralError,
    LiteralRangeError,
    Scanner,
    format_float,
    format_string,
    scan_float32,
    scan_int64,
    scan_list,
    scan_one,
    scan_string,
)
from dld_tui.core.document.tensor_literals import format_tensor, scan_tensor
from dld_tui.core.errors import UsageError
from dld_tui.core.text import visible

if TYPE_CHECKING:
    import numpy as np

LiteralValue: TypeAlias = (
    "int | float | bytes | list[int] | list[float] | list[bytes] | np.ndarray[Any, Any]"
)

KINDS = ("int", "float", "string", "ints", "floats", "strings", "tensor")
"""Attribute kinds that have a literal; graphs, types and sparse tensors have none."""


def parse_literal(text: str, kind: str, *, dtype: str | None = None) -> LiteralValue:
    """Return the value that a literal stands for.

    Args:
        text: What was typed.
        kind: One of :data:`KINDS`.
        dtype: The element type of a tensor literal that does not begin with one.

    Raises:
        LiteralError: The text is no literal of this kind, or the value is out of range.
    """
    scanner = Scanner(text)
    if kind == "tensor":
        return scan_tensor(scanner, dtype)
    if kind not in _ELEMENTS:
        raise LiteralError(f"an attribute of kind {visible(kind)!r} cannot be typed as text")
    element = _ELEMENTS[kind]
    value = scan_list(scanner, element) if kind.endswith("s") else scan_one(scanner, element)
    scanner.end()
    return value


def infer_kind(text: str) -> str:
    """Return the kind that a literal has by its own look, for an attribute of unknown kind.

    Raises:
        LiteralError: The text fits no kind, or is an empty list, which fits several.
    """
    scanner = Scanner(text)
    is_list = scanner.take("[")
    if is_list and scanner.take("]"):
        raise LiteralError("an empty list could be of several kinds; choose one")
    errors: list[LiteralError] = []
    for kind in ("ints", "floats", "strings") if is_list else ("int", "float", "string", "tensor"):
        try:
            parse_literal(text, kind)
        except LiteralRangeError:
            raise
        except LiteralError as error:
            errors.append(error)
        else:
            return kind
    raise max(reversed(errors), key=lambda error: error.column)


def format_literal(value: Any, kind: str) -> str:
    """Return the literal of a value, on one line and without any control character.

    Args:
        value: An int, a float, bytes or str, a sequence of these, or a numpy array.
        kind: One of :data:`KINDS`.

    Raises:
        LiteralError: This kind has no literal, or the tensor is too large for one.
    """
    if kind == "tensor":
        return format_tensor(value)
    if kind not in _PRINTERS:
        raise LiteralError(f"an attribute of kind {visible(kind)!r} has no literal")
    printer = _PRINTERS[kind]
    if kind.endswith("s"):
        return "[" + ", ".join(printer(item) for item in value) + "]"
    return printer(value)


_ELEMENTS: dict[str, Callable[[Scanner], Any]] = {
    "int": scan_int64,
    "ints": scan_int64,
    "float": scan_float32,
    "floats": scan_float32,
    "string": scan_string,
    "strings": scan_string,
}

_PRINTERS: dict[str, Callable[[Any], str]] = {
    "int": lambda value: str(int(value)),
    "ints": lambda value: str(int(value)),
    "float": format_float,
    "floats": format_float,
    "string": format_string,
    "strings": format_string,
}


LISTS = {"ints": "int", "floats": "float", "strings": "string"}
"""The kinds of attributes that are lists, and the kind of one item."""
_BETWEEN = re.compile(r"[\s,;]+")


def list_lines(value: LiteralValue, kind: str) -> str:
    """Return the values of a list, one a line."""
    assert isinstance(value, list)
    return "\n".join(format_literal(item, LISTS[kind]) for item in value)


def lines_literal(text: str, kind: str) -> str:
    """Return the literal of the list that lines of text stand for.

    Raises:
        UsageError: A line has no value of this kind; says which.
    """
    item_kind = LISTS[kind]
    items: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        for word in _words(line, item_kind):
            try:
                items.append(format_literal(parse_literal(word, item_kind), item_kind))
            except UsageError as error:
                raise UsageError(f"line {number}: {error.message}") from None
    return f"[{', '.join(items)}]"


def _words(line: str, kind: str) -> list[str]:
    stripped = line.strip()
    if kind != "string":
        return [word for word in _BETWEEN.split(stripped.strip("[](),; \t")) if word]
    if not stripped:
        return []
    if stripped[0] in "'\"":
        return [stripped.rstrip(",").rstrip()]
    return [format_literal(line.encode("utf-8", "surrogateescape"), "string")]


__all__ = [
    "KINDS",
    "LiteralError",
    "LiteralRangeError",
    "LiteralValue",
    "format_literal",
    "infer_kind",
    "parse_literal",
]
