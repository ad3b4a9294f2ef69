"""Printing the numbers and strings of literals."""

from __future__ import annotations

import math

from dld_tui.core.document.literal_scanner import round_to_float32
from dld_tui.core.text import visible

_FLOAT32_LIMIT = 3.4028235677973364e38
"""Values from here on round to infinity."""


def format_float(value: float) -> str:
    """Return the shortest decimal that reads back as the same float32."""
    if not math.isfinite(value) or value == 0:
        return repr(float(value))
    try:
        exact = round_to_float32(value)
    except OverflowError:
        return repr(float(value))
    for digits in range(1, 9):
        # Rounding up the largest float32 overflows; more digits then help.
        text = f"{exact:.{digits}g}"
        if abs(float(text)) <= _FLOAT32_LIMIT and round_to_float32(float(text)) == exact:
            return repr(float(text))
    return repr(float(f"{exact:.9g}"))


def format_string(value: bytes | str) -> str:
    """Return a string in single quotes."""
    text = value if isinstance(value, str) else value.decode("utf-8", "surrogateescape")
    text = text.replace("\\", "\\\\").replace("'", "\\'")
    if visible(text) != text:
        text = "".join(map(_escaped, text))
    return f"'{text}'"


def _escaped(char: str) -> str:
    # \xNN is a byte here, so the characters U+0080 to U+00FF need the other form.
    shown_as = visible(char)
    return f"\\u{ord(char):04x}" if shown_as != char and 0x80 <= ord(char) <= 0xFF else shown_as
