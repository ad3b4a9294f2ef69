"""What an engine is fed with: values that are made, a folder of data, or files of raw bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dld_tui.backends.tensorrt_runtime import Binding
from dld_tui.core import fmt
from dld_tui.core.errors import InputError, UsageError
from dld_tui.core.inputs.dtypes import AnyArray
from dld_tui.core.inputs.folder import load_input_sets
from dld_tui.core.inputs.search import guess_inputs
from dld_tui.core.inputs.shapes import InputSpec, Shape, parse_shapes
from dld_tui.core.tensorrt.values import named_value
from dld_tui.core.text import visible

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document

Values = dict[str, "AnyArray | bytes"]
_RAW = ("int4", "float4e2m1", "float8e8m0")
"""Types that NumPy has no arrays of: random bytes do."""


def specs_of(bindings: Sequence[Binding]) -> list[InputSpec]:
    """Return the inputs as the readers of input data take them."""
    return [
        InputSpec(one.name, one.dtype, tuple(None if size < 0 else size for size in one.dims))
        for one in bindings
    ]


def engine_inputs(
    inputs: Sequence[Binding],
    shapes: Sequence[str] = (),
    folder: Path | None = None,
    files: Sequence[str] = (),
    seed: int = 0,
    profile: int = 0,
    document: Document | None = None,
) -> tuple[Values, dict[str, Shape]]:
    """Return values and shapes of all inputs.

    Args:
        inputs: Of the engine.
        shapes: As ``NAME:1x3x224x224``; for a shape tensor its values. By default a profile's
            optimum.
        folder: Of data, whose shapes count; its first set is used.
        files: ``NAME:FILE`` with the raw bytes of an input.
        seed: Of the values that are made.
        profile: Number of the optimization profile.
        document: The model that the engine was built from, where it is known: it tells what values
            its inputs are to have.

    Raises:
        UsageError: A text is malformed or names no input.
        InputError: Data cannot be read or do not fit.
    """
    names = [one.name for one in inputs]
    given = parse_shapes(shapes, names)
    found = {one.name: given.get(one.name, one.shape(profile)) for one in inputs if not one.on_host}
    values: Values = {}
    for one in inputs:
        if one.on_host:
            values[one.name] = _shape_values(one, given.get(one.name), profile)
            found[one.name] = one.shape(profile)
    raw = {name: _raw_bytes(path) for name, path in _files(files, names).items()}
    if folder is not None:
        data = load_input_sets(folder, specs_of(inputs))[0].values
        arrays = {name: value for name, value in data.items() if not isinstance(value, list)}
        values |= arrays
        found |= {name: tuple(value.shape) for name, value in arrays.items()}
    left = [one for one in inputs if one.name not in values and one.name not in raw]
    values |= _made(left, found, seed, document)
    return values | raw, found


def fitting_profile(inputs: Sequence[Binding], shapes: Mapping[str, Shape]) -> int:
    """Return the number of the first optimization profile that allows shapes; 0 when none does."""
    count = max((len(one.ranges) for one in inputs), default=0)
    for profile in range(count):
        if all(_allows(one, shapes.get(one.name), profile) for one in inputs):
            return profile
    return 0


def _allows(binding: Binding, shape: Shape | None, profile: int) -> bool:
    if binding.on_host or shape is None or profile >= len(binding.ranges):
        return True
    low, _, high = binding.ranges[profile]
    return len(shape) == len(low) and all(
        least <= size <= most for least, size, most in zip(low, shape, high, strict=True)
    )


def _made(
    inputs: Sequence[Binding], shapes: Mapping[str, Shape], seed: int, document: Document | None
) -> Values:
    made: Values = {}
    generator = np.random.default_rng(seed)
    plain = []
    for one in inputs:
        if one.dtype in _RAW:
            count = int(np.prod(shapes[one.name], dtype=np.int64))
            size = count if one.dtype == "float8e8m0" else (count + 1) // 2
            made[one.name] = generator.bytes(size)
        else:
            plain.append(one)
    given = {one.name: shapes[one.name] for one in plain}
    specs = [InputSpec(one.name, one.dtype, given[one.name]) for one in plain]
    made.update(guess_inputs(specs, document, given).values(seed))
    return made


def _shape_values(binding: Binding, given: Shape | None, profile: int) -> AnyArray:
    """Return the values of a shape tensor: those given, or the optimum of its profile."""
    values = given
    if values is None:
        if profile >= len(binding.ranges):
            raise UsageError(
                f"input {visible(binding.name)} is a shape: its values are needed",
                hint=f"Give them with --shape {visible(binding.name)}:1x3",
            )
        values = binding.ranges[profile][1]
    made: AnyArray = np.array(values, dtype=binding.dtype).reshape(
        () if binding.dims == () else (-1,)
    )
    return made


def _files(texts: Sequence[str], names: Sequence[str]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for text in texts:
        name, path = named_value(text)
        if name not in names:
            listed = ", ".join(map(visible, names)) or "none"
            raise UsageError(
                f"--load-input names {visible(name)!r}, which is not an input of the engine",
                hint=f"Its inputs: {listed}",
            )
        found[name] = Path(path)
    return found


def _raw_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(error.strerror or str(error), where=str(path)) from None


def shapes_text(shapes: Mapping[str, Shape]) -> str:
    """Return shapes for people, as ``x [1, 3], y [2]``."""
    return ", ".join(f"{visible(name)} {fmt.shape(shape)}" for name, shape in shapes.items())
