"""Shapes and element types of a model's inputs: free dimensions, and shapes that the user gives."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError, UsageError
from dld_tui.core.model.inputs.shape_texts import Shape, shapes_in
from dld_tui.core.model.tensors.numpy_types import EXTENDED, numpy_type
from dld_tui.core.model.tensors.value_types import PLACEHOLDERS, ValueType
from dld_tui.core.text import visible

AnyArray: TypeAlias = "npt.NDArray[np.generic]"

_EXTENDED = frozenset(
    ("bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz")
)
"""Types that NumPy lacks, of values that can be given to a model and are not packed."""


def numpy_dtype(dtype: str) -> np.dtype[np.generic]:
    """Return the NumPy type of an ONNX element type such as ``bfloat16``.

    Raises:
        ActivityError: There is none that arrays can be made of.
    """
    kind = numpy_type(dtype)
    if kind is None or (dtype in EXTENDED and not is_extended(dtype)):
        raise ActivityError(f"inputs of type {dtype} cannot be generated")
    return kind


def is_extended(dtype: str) -> bool:
    """Return whether NumPy itself does not know the type, so that libraries take it as bytes."""
    return dtype in _EXTENDED


def check_dimensions(names: Collection[str], types: Iterable[ValueType | None]) -> None:
    """Check that the inputs have the dimensions that sizes are given for.

    Args:
        names: Of the dimensions with a size.
        types: Of the inputs.

    Raises:
        UsageError: No input has such a dimension; the hint lists those that there are.
    """
    free = dict.fromkeys(
        dim for kind in types if kind is not None for dim in kind.dims or () if isinstance(dim, str)
    )
    for name in names:
        if name not in free:
            listed = ", ".join(visible(dim) for dim in free if dim) or "none"
            raise UsageError(
                f"--dim names {name!r}, which is not a dynamic dimension of an input",
                hint=f"Dynamic dimensions: {listed}",
            )


_FREE = (None, -1, *PLACEHOLDERS)
"""Free dimensions without a distinct name: two of them need not be equal."""


@dataclass(frozen=True)
class InputSpec:
    """An input of a model that must be fed."""

    name: str
    """Untrusted text."""
    dtype: str
    """Element type such as ``float32``."""
    dims: tuple[int | str | None, ...] | None
    """Numbers, names of free dimensions, None for nameless ones; None when the rank is unknown."""
    container: str = ""
    """``sequence``, ``optional``, ``map``, … around it; empty for a tensor."""

    @property
    def text(self) -> str:
        """The input for people, e.g. ``x float32[N, 3]``."""
        inner = f"{self.dtype}{visible(fmt.shape(self.dims))}"
        return f"{visible(self.name)} {f'{self.container}({inner})' if self.container else inner}"

    @property
    def option(self) -> str:
        """What to fill in to give its shape, e.g. ``x:<N>x3``."""
        dims = (str(d) if is_fixed(d) else f"<{'?' if d in _FREE else d}>" for d in self.dims or ())
        return visible(f"{self.name}:{'x'.join(dims)}")


def parse_shapes(texts: Iterable[str], names: Collection[str]) -> dict[str, Shape]:
    """Return the shapes that the user gives, by input name.

    Raises:
        UsageError: A text is not a shape, a name is not one of `names`, or comes twice.
    """
    shapes: dict[str, Shape] = {}
    for text in texts:
        for written, shape in shapes_in(text, "--shape"):
            name = _known(written, names)
            if name in shapes:
                raise UsageError(f"--shape gives input {name!r} twice")
            shapes[name] = shape
    return shapes


_MOST_LISTED = 10
"""Inputs that an error names: old models list every weight as one."""


def _known(name: str, names: Collection[str]) -> str:
    for candidate in (name, name.strip().strip("'\"")):
        if candidate in names:
            return candidate
    listed = fmt.listed(names, _MOST_LISTED, visible) or "none"
    raise UsageError(
        f"--shape names {name!r}, which is not an input of the model",
        hint=f"Its inputs: {listed}",
    )


def check_given(
    specs: Sequence[InputSpec], given: Mapping[str, Shape], sizes: Mapping[str, int] | None = None
) -> None:
    """Check that given shapes fit the model and each other.

    Args:
        specs: The inputs of the model.
        given: Shapes by input.
        sizes: Sizes given for free dimensions by their names.

    Raises:
        UsageError: A given shape does not fit the model's, or two given shapes disagree.
    """
    symbols = dict(sizes or {})
    for spec in specs:
        if spec.name in given:
            _check(spec, given[spec.name], symbols)


def _check(spec: InputSpec, shape: Shape, symbols: dict[str, int]) -> None:
    wanted = spec.dims
    if wanted is None:
        return
    if len(wanted) != len(shape) or any(
        is_fixed(dim) and dim != size for dim, size in zip(wanted, shape, strict=True)
    ):
        raise UsageError(f"--shape {fmt.shape(shape)} does not fit input {spec.text}")
    for dim, size in zip(wanted, shape, strict=True):
        if isinstance(dim, str) and dim not in _FREE and symbols.setdefault(dim, size) != size:
            raise UsageError(
                f"--shape gives dimension {dim!r} as {symbols[dim]} and as {size}",
                where=f"input {visible(spec.name)}",
            )


def is_fixed(dim: int | str | None) -> bool:
    """Return whether a dimension is a size; files hold -1 for free ones, too."""
    return isinstance(dim, int) and dim >= 0
