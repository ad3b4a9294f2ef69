"""Values of the expected type in JSON of other programs, where nothing is certain."""

from __future__ import annotations

import math
from collections.abc import Mapping

from dld_tui.core.types import JSON, Foreign

_LARGEST_DIM = 1 << 62


_LONGEST_MS = 1e12


def text_of(value: JSON) -> str:
    """Return text unchanged, a number as text, and an empty text for anything else."""
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    return ""


def whole_of(value: JSON) -> int | None:
    """Return an integer; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < _LARGEST_DIM else None
    return value if abs(value) < _LARGEST_DIM else None


def number_of(value: JSON) -> float | None:
    """Return a finite number; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def time_of(value: JSON) -> float | None:
    """Return a valid time in milliseconds; None for anything else."""
    if type(value) is float and 0 <= value <= _LONGEST_MS:  # nearly all of many
        return value
    time = number_of(value)
    return time if time is not None and 0 <= time <= _LONGEST_MS else None


def dims_of(value: JSON) -> tuple[int, ...] | None:
    """Return dimensions, those below 0 as -1; None when they are not whole numbers."""
    if not isinstance(value, list):
        return None
    dims = []
    for item in value:
        if type(item) is int and -1 <= item < _LARGEST_DIM:  # all of them, but in hostile files
            dims.append(item)
            continue
        dim = whole_of(item)
        if dim is None:
            return None
        dims.append(max(dim, -1))
    return tuple(dims)


def first(raw: Mapping[str, JSON], *keys: str) -> JSON:
    """Return the value of the first key that is there."""
    for key in keys:
        if key in raw:
            return raw[key]
    return None


def objects_of(value: JSON) -> list[Foreign]:
    """Return the objects of a list; empty for anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
