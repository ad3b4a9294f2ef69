"""Random inputs: seeded, so that two runs feed the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dld_tui.core.errors import ActivityError
from dld_tui.core.inputs.dtypes import AnyArray, numpy_dtype
from dld_tui.core.inputs.shapes import InputSpec, Shape

_WORDS = ("the", "quick", "brown", "fox", "jumps", "over", "lazy", "dog")


def random_inputs(
    specs: Sequence[InputSpec], shapes: Mapping[str, Shape], seed: int
) -> dict[str, AnyArray]:
    """Return an array for every input.

    Floating point numbers are uniform in [0, 1). Integers are 0 or 1, which suit as indices,
    segments and masks; those of 8 bits, mostly images and quantised data, are 0 to 127. Strings
    are words.

    Raises:
        ActivityError: An input is not a tensor, or of a type that cannot be made.
    """
    generator = np.random.default_rng(seed)
    made = {}
    for spec in specs:
        if spec.container:
            raise ActivityError(
                f"input {spec.text} is not a tensor: no random data can be made for it",
                hint="Give data with --inputs DIR",
            )
        made[spec.name] = _array(spec.dtype, shapes[spec.name], generator)
    return made


def _array(dtype: str, shape: Shape, generator: np.random.Generator) -> AnyArray:
    kind = numpy_dtype(dtype)
    if dtype == "string":
        return generator.choice(np.array(_WORDS, dtype=object), size=shape)
    if dtype == "bool" or dtype in ("int8", "uint8"):
        return generator.integers(0, 2 if dtype == "bool" else 128, size=shape).astype(kind)
    if kind.kind in "iu":
        return generator.integers(0, 2, size=shape, dtype=kind.type)
    if kind.kind == "c":
        parts = generator.random((2, *shape))
        return np.asarray(parts[0] + 1j * parts[1]).astype(kind)
    # In place of a float64 array of twice the size, where that is possible.
    single = generator.random(shape, dtype=np.float32)
    if kind.itemsize <= 4:
        return np.asarray(single).astype(kind, copy=False)
    return np.asarray(generator.random(shape))
