"""Inputs made from a seed, so that two runs feed the same."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from dld_tui.core.errors import ActivityError
from dld_tui.core.inputs.dtypes import AnyArray, numpy_dtype
from dld_tui.core.inputs.fills import Fill
from dld_tui.core.inputs.shapes import InputSpec, Shape

_WORDS = ("the", "quick", "brown", "fox", "jumps", "over", "lazy", "dog")
_MOST_ELEMENTS = 1 << 40
"""Of an input: more than any memory holds."""


def random_inputs(
    specs: Sequence[InputSpec],
    shapes: Mapping[str, Shape],
    seed: int,
    fills: Mapping[str, Fill] | None = None,
) -> dict[str, AnyArray]:
    """Return an array for every input.

    Without a fill, floating point numbers are uniform in [0, 1). Integers are 0 or 1, which suit as
    indices, segments and masks; those of 8 bits, mostly images and quantised data, are 0 to 127.
    Strings are words.

    Args:
        specs: The inputs.
        shapes: Of each.
        seed: Of what is random.
        fills: What to fill inputs with, by name.

    Raises:
        ActivityError: An input is not a tensor, of a type that cannot be made, or absurdly large.
    """
    generator = np.random.default_rng(seed)
    made = {}
    for spec in specs:
        if spec.container:
            raise ActivityError(
                f"input {spec.text} is not a tensor: no random data can be made for it",
                hint="Give data with --inputs DIR",
            )
        high = 127.0 if spec.dtype in ("int8", "uint8") else 1.0
        fill = (fills or {}).get(spec.name) or Fill("uniform", "", 0.0, high)
        shape = shapes[spec.name]
        if math.prod(shape) > _MOST_ELEMENTS:
            raise ActivityError(f"input {spec.text} has too many elements to be made")
        made[spec.name] = _array(spec.dtype, shape, generator, fill)
    return made


def _array(dtype: str, shape: Shape, generator: np.random.Generator, fill: Fill) -> AnyArray:
    kind = numpy_dtype(dtype)
    if dtype == "string":
        return generator.choice(np.array(_WORDS, dtype=object), size=shape)
    if fill.kind == "constant":
        return np.full(shape, fill.low).astype(kind)
    if fill.kind == "listed":
        count = math.prod(shape)
        padded = (*fill.numbers, *(1.0,) * max(0, count - len(fill.numbers)))
        return np.array(padded[:count]).reshape(shape).astype(kind)
    if fill.kind == "counting":
        numbers = np.arange(shape[-1] if shape else 1) + int(fill.low)
        return np.array(np.broadcast_to(numbers if shape else numbers[0], shape)).astype(kind)
    if dtype == "bool" or kind.kind in "iu":
        low, high = (0, 1) if dtype == "bool" else (int(fill.low), int(fill.high))
        wide = np.uint64 if kind == np.uint64 else np.int64
        return generator.integers(low, high, size=shape, dtype=wide, endpoint=True).astype(kind)
    if kind.kind == "c":
        parts = generator.random((2, *shape))
        return np.asarray(parts[0] + 1j * parts[1]).astype(kind)
    # In place of a float64 array of twice the size, where that is possible.
    single = generator.random(shape, dtype=np.float32 if kind.itemsize <= 4 else np.float64)
    if (fill.low, fill.high) != (0.0, 1.0):
        single = single * (fill.high - fill.low) + fill.low
    return np.asarray(single).astype(kind, copy=False)
