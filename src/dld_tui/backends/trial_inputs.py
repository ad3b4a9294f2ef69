"""Random inputs that a model can be run with, whatever its free dimensions stand for."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from dld_tui.core.errors import ActivityError
from dld_tui.core.inputs.generate import random_inputs
from dld_tui.core.inputs.shapes import (
    InputSpec,
    Shape,
    guessed_inputs,
    is_fixed,
    parse_shapes,
    resolve_shapes,
)

T = TypeVar("T")
_SIZES = (1, 32, 512)
"""What free dimensions are taken for, one after the other: many models cannot do with 1."""
_MOST = 1 << 22
"""Elements of an input beyond which no larger size is tried."""


def with_sizes(
    specs: Sequence[InputSpec], shapes: Sequence[str], run: Callable[[Mapping[str, Any]], T]
) -> T:
    """Run a model with the first inputs that it takes.

    Args:
        specs: Its inputs.
        shapes: What is given, as ``NAME:1x3``; other dimensions that are open are guessed.
        run: Runs it with inputs by name.

    Raises:
        UsageError: A shape does not fit.
        ActivityError: It cannot be run; says why not with open dimensions of 1.
    """
    given = parse_shapes(shapes, [spec.name for spec in specs])
    shaped = resolve_shapes(specs, given)
    open_ones = {spec.name: spec.dims or () for spec in guessed_inputs(specs, given)}
    first: ActivityError | None = None
    for size in _SIZES if any(open_ones.values()) else _SIZES[:1]:
        sized = {
            name: _sized(open_ones.get(name, ()), shape, size) for name, shape in shaped.items()
        }
        if size > 1 and max(map(math.prod, sized.values())) > _MOST:
            break
        try:
            return run(random_inputs(specs, sized, 0))
        except ActivityError as error:
            first = first or error
    assert first is not None
    raise first


def _sized(dims: Sequence[int | str | None], shape: Shape, size: int) -> Shape:
    """Return a shape with what is open, and not known from elsewhere, of another size."""
    if not dims:
        return shape
    pairs = zip(dims, shape, strict=True)
    return tuple(size if known == 1 and not is_fixed(dim) else known for dim, known in pairs)
