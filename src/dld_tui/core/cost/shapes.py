"""The shapes of all values of a model for given shapes of its inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from dld_tui.core.document.value_types import ValueType
from dld_tui.core.inputs.propagation import Known, Propagation

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document

Shape: TypeAlias = "tuple[int, ...]"


def sizes_of(dims: Sequence[int | str | None] | None, shape: Shape) -> dict[str, int]:
    """Return the numbers that symbolic dimensions have in a shape."""
    pairs = zip(dims or (), shape, strict=False)
    return {dim: size for dim, size in pairs if isinstance(dim, str)}


def declare_inputs(document: Document, shapes: Mapping[str, Shape]) -> dict[str, int]:
    """Declare the shapes of inputs, in a document that nobody saves.

    Returns:
        The numbers that symbolic dimensions of these inputs have by that.

    Raises:
        EditError: A shape does not fit.
    """
    sizes: dict[str, int] = {}
    for name, shape in shapes.items():
        before = document.main.value_type(name)
        if before is None:
            continue
        sizes.update(sizes_of(before.dims, shape))
        document.apply("set_value_type", scope=[], value=name, dtype=before.dtype, dims=list(shape))
    return sizes


def follow_shapes(document: Document, shapes: Mapping[str, Shape]) -> dict[str, int]:
    """Note the shapes that follow from those of the inputs where inference has no numbers.

    It knows what onnx does not: values of small tensors, from which Reshape and its like get sizes.

    Returns:
        The numbers that symbolic dimensions have by that.
    """
    found = Propagation(document, {name: Known(shape) for name, shape in shapes.items()}, 1)
    sizes: dict[str, int] = {}
    for scope, name, dims in found.sizes():
        kind = scope.value_type(name)
        if kind is not None and kind.dims != dims and not kind.container:
            sizes.update(sizes_of(kind.dims, dims))
            scope.inferred[name] = ValueType(kind.dtype, dims)
            scope.touched.add(name)
    return sizes
