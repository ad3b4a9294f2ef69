"""What the form of a new tensor asks, and the arguments of the edit that it makes of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dld_tui.core.document import Document
from dld_tui.core.document.literals import parse_literal
from dld_tui.core.errors import UsageError
from dld_tui.core.params import param
from dld_tui.core.tensors.elements import payload_bytes, to_json
from dld_tui.core.tensors.generate import uniform_range
from dld_tui.core.tensors.npy import import_npy
from dld_tui.core.types import JSON, CancelCheck, ProgressCallback
from dld_tui.screens.tensors.conversion import DTYPES

FILLS = ("zeros", "values", "normal", "uniform", "positive", "negative", "npy", "external")
NEEDS = {
    "values": ("values",),
    "normal": ("mean", "deviation", "seed"),
    "uniform": ("low", "high", "seed"),
    "positive": ("seed",),
    "negative": ("seed",),
    "npy": ("file",),
    "external": ("file", "offset", "length"),
}
"""The settings that a fill uses, beyond those that all of them use."""
ALWAYS = ("name", "dtype", "dims", "fill", "sparse")


@dataclass(frozen=True)
class NewTensor:
    """A new initializer."""

    name: str = param(label="Name", help="The name of the value; nodes use it by this name.")
    dtype: str = param(
        "float32",
        label="Element type",
        choices=(*DTYPES, "string"),
        help="Left and right change it.",
    )
    dims: str = param(
        "", label="Dimensions", metavar="64, 3, 3",
        help="Whole numbers, such as 64, 3, 3. Nothing is a scalar, or what the values or the"
        " .npy file have.",
    )  # fmt: skip
    fill: str = param(
        "zeros", label="Values", choices=FILLS,
        help="zeros; values as typed below; normal or uniform random numbers, or uniform ones from"
        " 0 to 1 (positive) or -1 to 0 (negative); a .npy file; a place in a data file.",
    )  # fmt: skip
    values: str = param(
        "", label="As typed", help="A literal, such as [[1, 2], [3, 4]], 0.5 or ['a', 'b']."
    )
    mean: float = param(0.0, label="Mean", help="Of the normal distribution.")
    deviation: float = param(
        1.0, label="Deviation", minimum=0, help="The standard deviation of the normal distribution."
    )
    low: float = param(0.0, label="From", help="The least number of the uniform distribution.")
    high: float = param(1.0, label="To", help="The largest number of the uniform distribution.")
    seed: int = param(
        0, label="Seed", minimum=0, help="The same seed gives the same numbers everywhere."
    )
    file: Path | None = param(
        None, label="File", kind="file", metavar="FILE",
        help="The .npy file, or the data file that the values are in already.",
    )  # fmt: skip
    offset: int = param(
        0, label="Offset", unit="B", minimum=0, help="Where the values begin in the data file."
    )
    length: int | None = param(
        None, label="Length", unit="B", minimum=0,
        help="The bytes of the values; by default what type and dimensions need.",
    )  # fmt: skip
    sparse: bool = param(
        False,
        label="Sparse",
        help="Keep only the elements that are not zero, with their places."
        " They can be edited in the list of initializers.",
    )


@dataclass(frozen=True)
class NewValues:
    """The arguments of ``add_initializer`` beyond the name."""

    dtype: str
    dims: list[JSON]
    fill: dict[str, JSON]


def values_of(
    document: Document,
    asked: NewTensor,
    progress: ProgressCallback | None = None,
    cancelled: CancelCheck | None = None,
) -> NewValues:
    """Return the arguments of the edit. Reads the .npy file: call it on a thread.

    Raises:
        UsageError: Dimensions or values are malformed.
        InputError: The file is refused.
        CancelledError: `cancelled` said so.
    """
    dims = dims_of(asked.dims)
    if asked.fill == "npy":
        if asked.file is None:
            raise UsageError("choose the .npy file")
        wanted = dims if asked.dims.strip() else None
        found = import_npy(
            document, asked.file, dims=wanted, progress=progress, cancelled=cancelled
        )
        fill: dict[str, JSON] = {"kind": "payload", "payload": found.payload}
        if found.dtype == "string" and isinstance(found.payload, dict):
            fill = {"kind": "values", "values": found.payload.get("values")}
        return NewValues(found.dtype, list(found.dims), fill)
    if asked.fill == "values":
        return _typed(asked, dims)
    return NewValues(asked.dtype, list(dims), _fill(document, asked, dims))


def dims_of(text: str) -> list[int]:
    """Return the dimensions that were typed.

    Raises:
        UsageError: They are no whole numbers from 0.
    """
    words = text.strip().strip("[]()").replace(",", " ").replace("x", " ").split()
    try:
        dims = [int(word) for word in words]
    except ValueError:
        raise UsageError("dimensions are whole numbers, such as 64, 3, 3") from None
    if any(dim < 0 for dim in dims):
        raise UsageError("a dimension is 0 or more")
    return dims


def _typed(asked: NewTensor, dims: list[int]) -> NewValues:
    array = parse_literal(asked.values, "tensor", dtype=asked.dtype)
    assert isinstance(array, np.ndarray)
    shape = dims if asked.dims.strip() else list(array.shape)
    if math.prod(shape) != array.size:
        raise UsageError(f"{array.size} values do not fill the dimensions {shape}")
    values = to_json(array.reshape(-1), asked.dtype)
    return NewValues(asked.dtype, list(shape), {"kind": "values", "values": values})


def _fill(document: Document, asked: NewTensor, dims: list[int]) -> dict[str, JSON]:
    if asked.fill == "normal":
        mean, deviation = asked.mean, asked.deviation
        return {"kind": "normal", "mean": mean, "deviation": deviation, "seed": asked.seed}
    if asked.fill == "uniform":
        return {"kind": "uniform", "low": asked.low, "high": asked.high, "seed": asked.seed}
    if asked.fill in ("positive", "negative"):
        low, high = uniform_range(asked.dtype, 1 if asked.fill == "positive" else -1)
        return {"kind": "uniform", "low": low, "high": high, "seed": asked.seed}
    if asked.fill == "external":
        return _external(document, asked, dims)
    if asked.dtype == "string":
        return {"kind": "values", "values": [""] * math.prod(dims)}
    return {"kind": "zeros"}


def _external(document: Document, asked: NewTensor, dims: list[int]) -> dict[str, JSON]:
    if asked.file is None:
        raise UsageError("choose the data file")
    folder = (document.path or document.external.model_path).resolve().parent
    path = asked.file if asked.file.is_absolute() else folder / asked.file
    try:
        location = path.resolve().relative_to(folder)
    except ValueError:
        raise UsageError("the data file must be in the model's folder") from None
    length = asked.length
    if length is None:
        length = payload_bytes(asked.dtype, math.prod(dims))
    return {
        "kind": "external",
        "location": location.as_posix(),
        "offset": asked.offset,
        "length": length,
    }
