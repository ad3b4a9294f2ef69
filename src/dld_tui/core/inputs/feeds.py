"""What a model is fed with: the sets of a folder, or seeded random ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dld_tui.core.errors import UsageError
from dld_tui.core.inputs.folder import load_input_sets
from dld_tui.core.inputs.generate import random_inputs
from dld_tui.core.inputs.shapes import InputSpec, parse_shapes, resolve_shapes


def input_feeds(
    specs: Sequence[InputSpec], folder: Path | None, shapes: Sequence[str], seeds: Iterable[int]
) -> list[Mapping[str, Any]]:
    """Return sets of inputs by name.

    Args:
        specs: What the model takes.
        folder: Where the data are; None for random ones.
        shapes: Shapes of random inputs, as ``NAME:1x3``.
        seeds: One for each random set.

    Raises:
        UsageError: Shapes are given for data of a folder, or do not fit.
        InputError: The data cannot be read, or do not fit the inputs.
        ActivityError: No random data can be made for an input.
    """
    if folder is not None:
        if shapes:
            raise UsageError("--shape does not go with --inputs, whose data have shapes")
        return [one.values for one in load_input_sets(folder, specs)]
    resolved = resolve_shapes(specs, parse_shapes(shapes, [spec.name for spec in specs]))
    return [random_inputs(specs, resolved, seed) for seed in seeds]
