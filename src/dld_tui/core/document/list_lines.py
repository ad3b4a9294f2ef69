"""Lists of numbers and texts as lines: one value a line, as a text area shows them.

What is read is more than what is written: numbers may be separated by commas and blanks and be in
brackets, as other programs print them. A text needs quotes only where it begins with one, is empty,
or has characters that no line can hold.
"""

from __future__ import annotations

import re

from dld_tui.core.document.literals import LiteralValue, format_literal, parse_literal
from dld_tui.core.errors import UsageError

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
