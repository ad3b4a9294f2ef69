"""Shapes as people write them: ``1x3x224x224`` or ``[1, 3, 224, 224]``, after ``NAME:`` in options.

Several in one text are separated by commas, as trtexec takes them. Names may hold colons, slashes
and commas.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from dld_tui.core.errors import UsageError
from dld_tui.core.text import clip

Shape: TypeAlias = "tuple[int, ...]"
"""Dimensions, or the values of an input that holds a shape."""
MOST = 2**31 - 1
"""The largest dimension that TensorRT takes."""
_LARGEST = 2**63 - 1
"""The largest dimension that a model can have."""


def shape_text(shape: Iterable[int]) -> str:
    """Return ``1x3x224x224``; ``scalar`` where there are no dimensions."""
    return "x".join(map(str, shape)) or "scalar"


def shape_of(text: str, *, least: int = 0, most: int = _LARGEST) -> Shape:
    """Return the shape that a text means: ``1x3``, ``1, 3``, ``[1, 3]``, ``(1 3)``, ``scalar``.

    Args:
        text: What the user gave. Nothing is a scalar.
        least: The smallest number.
        most: The largest one.

    Raises:
        UsageError: It is no shape.
    """
    words = re.sub("[xX,]", " ", text.strip("[]() ")).split()
    try:
        shape = () if text.strip() == "scalar" else tuple(map(int, words))
    except ValueError:
        shape = (least - 1,)
    if not all(least <= size <= most for size in shape):
        raise UsageError(f"{clip(text, 80)!r} is not a shape", hint="Write 1x3x224x224")
    return shape


def _entry(number: str) -> re.Pattern[str]:
    # As few characters as possible for the name, then dimensions that something can follow.
    return re.compile(
        r"(?P<name>.+?):(?P<shape>\[[^\[\]]*\]|\([^()]*\)"
        rf"|{number}(?:[xX]{number})*|scalar|)(?:,|$)"
    )


_DIMENSIONS, _VALUES = _entry(r"\d+"), _entry(r"-?\d+")


def shapes_in(text: str, flag: str, *, are_values: bool = False) -> Iterator[tuple[str, Shape]]:
    """Yield the names and shapes of a text. The names are as written, also with quotes.

    Args:
        text: What the user gave.
        flag: The option, for errors.
        are_values: The numbers may also be values, of 32 bits and below zero.

    Raises:
        UsageError: It is not of this form.
    """
    pattern, at = _VALUES if are_values else _DIMENSIONS, 0
    least, most = (-MOST, MOST) if are_values else (0, _LARGEST)
    while at < len(text):
        match = pattern.match(text, at)
        try:
            if match is None:
                raise UsageError("no name, or no shape after it")
            shape = shape_of(match["shape"], least=least, most=most)
        except UsageError:
            wrong = match.group() if match else text
            raise UsageError(
                f"{flag} {clip(wrong, 80)!r} is not a shape", hint="Write NAME:1x3x224x224"
            ) from None
        yield match["name"], shape
        at = match.end()
