"""Shapes as people write them: ``NAME:1x3x224x224``, or ``NAME:[1,3,224,224]`` as Polygraphy does.

Several in one text are separated by commas, as trtexec takes them. Names may hold colons, slashes
and commas.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

from dld_tui.core.errors import UsageError
from dld_tui.core.text import clip, comma_separated

Shape: TypeAlias = "tuple[int, ...]"
"""Dimensions, or the values of an input that holds a shape."""


def _entry(number: str) -> re.Pattern[str]:
    # As few characters as possible for the name, then dimensions that something can follow.
    return re.compile(
        r"(?P<name>.+?):(?:\[(?P<list>[^\[\]]*)\]"
        rf"|(?P<dims>{number}(?:[xX]{number})*)|(?P<none>scalar|))(?:,|$)"
    )


_DIMENSIONS, _VALUES = _entry(r"\d+"), _entry(r"-?\d+")
_MOST = 2**31


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
    while at < len(text):
        match = pattern.match(text, at)
        if match is None:
            raise UsageError(
                f"{flag} {clip(text, 80)!r} is not a shape", hint="Write NAME:1x3x224x224"
            )
        shape = _shape(match, are_values=are_values)
        if shape is None:
            raise UsageError(
                f"{flag} {clip(match.group(), 80)!r} has a dimension that is not a number",
                hint="Write NAME:[1,3,224,224]",
            )
        yield match["name"], shape
        at = match.end()


def _shape(match: re.Match[str], *, are_values: bool) -> Shape | None:
    if match["list"] is not None:
        parts = comma_separated(match["list"])
    else:
        parts = re.split("[xX]", match["dims"]) if match["dims"] else []
    if not are_values and not all(part.isdecimal() for part in parts):
        return None
    try:
        shape = tuple(map(int, parts))
    except ValueError:
        return None
    return None if are_values and any(not -_MOST < size < _MOST for size in shape) else shape
