"""The shapes of a call whose work is counted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

from dld_tui.core.model.shapes.call import Call
from dld_tui.core.model.shapes.size import Count
from dld_tui.core.model.shapes.value import NOTHING, Value

Shape: TypeAlias = "tuple[Count, ...]"
Work: TypeAlias = "tuple[Count, Count]"
"""Multiply-accumulates, and operations besides them."""


class UnknownShape(Exception):
    """A shape, or a constant, that is needed is not known."""


def shape_in(call: Call, at: int) -> Shape:
    """Return the shape of an input.

    Raises:
        UnknownShape: It is not known.
    """
    return _known(call.inputs, at)


def shape_out(call: Call, at: int = 0) -> Shape:
    """Return the shape of an output.

    Raises:
        UnknownShape: It is not known.
    """
    return _known(call.results, at)


def _known(values: Sequence[Value], at: int) -> Shape:
    value = values[at] if at < len(values) else NOTHING
    if value.dims is None or not value.is_known:
        raise UnknownShape
    return value.dims


def elements(shape: Shape) -> Count:
    """Return how many elements a shape has."""
    return math.prod(shape)


def whole(count: Count) -> int:
    """Return a count that is a number.

    Raises:
        UnknownShape: It depends on a dimension without a number.
    """
    if not isinstance(count, int):
        raise UnknownShape
    return count
