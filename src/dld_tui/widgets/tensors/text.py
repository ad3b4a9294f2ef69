"""Elements of a tensor as text: with a number of digits for the grid, exact for editing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dld_tui.core.document.literal_scanner import format_string
from dld_tui.core.document.tensor_literals import element_text
from dld_tui.core.text import clip, visible

_LONGEST_STRING = 24
_HEX_BITS = {"int2": 2, "uint2": 2, "int4": 4, "uint4": 4}
MOST_DIGITS = 17


@dataclass(frozen=True)
class NumberFormat:
    """How elements are shown."""

    digits: int = 5
    """Significant digits of a floating point number."""
    hexadecimal: bool = False
    """Integers by their bits."""

    def text(self, value: Any, dtype: str) -> str:
        """Return one element in a few cells; `value` is what ``array.tolist()`` gives."""
        if isinstance(value, bytes | str):
            return clip(visible(format_string(value[: 4 * _LONGEST_STRING])), _LONGEST_STRING)
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int):
            return _hex(value, dtype) if self.hexadecimal else str(value)
        if isinstance(value, complex):
            return f"{value:.{self.digits}g}"
        return f"{float(value):.{self.digits}g}"


def _hex(value: int, dtype: str) -> str:
    bits = _HEX_BITS.get(dtype) or int("".join(filter(str.isdigit, dtype)) or "64")
    return f"{value % (1 << bits):0{bits // 4 or 1}x}"


def style_of(value: Any) -> str:
    """Return the style class of an element: zeros are quiet, NaN and infinities stand out."""
    if isinstance(value, float | complex | np.floating) or hasattr(value, "dtype"):
        number = abs(complex(value)) if isinstance(value, complex) else float(value)
        if not math.isfinite(number):
            return "bad"
        return "faint" if number == 0 else "number"
    if isinstance(value, int):
        return "number" if value else "faint"
    return ""


def exact_text(array: np.ndarray[Any, Any], dtype: str) -> str:
    """Return the first element of an array as it is typed; reading it back gives the same value."""
    return element_text(array[0] if array.dtype.kind in "OV" else array[:1].tolist()[0], dtype)
