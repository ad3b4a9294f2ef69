"""The shapes of all values of a document for shapes of its inputs, noted in the document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from dld_tui.core.model.shapes.evaluation import Evaluation
from dld_tui.core.model.shapes.value import Value
from dld_tui.core.model.tensors.value_types import ValueType

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.document.node import Node

Shape: TypeAlias = "tuple[int, ...]"


def sizes_of(dims: Sequence[int | str | None] | None, shape: Shape) -> dict[str, int]:
    """Return the numbers that symbolic dimensions have in a shape."""
    pairs = zip(dims or (), shape, strict=False)
    return {dim: size for dim, size in pairs if isinstance(dim, str)}


def follow_shapes(
    document: Document,
    shapes: Mapping[str, Shape],
    branches: dict[Node, str] | None = None,
) -> dict[str, int]:
    """Note the shapes that follow from those of the inputs where inference has no numbers.

    It knows what onnx does not: the elements of small tensors, which become sizes.

    Args:
        document: The model; nobody may save it.
        shapes: Of its inputs.
        branches: Is given the branch of each If that is always taken with these shapes.

    Returns:
        The numbers that symbolic dimensions have by that.
    """
    evaluation = Evaluation(document, {name: Value(shape) for name, shape in shapes.items()})
    sizes: dict[str, int] = {}
    for scope, variant, name, dims in evaluation.sizes():
        types = document.call_types.of(scope, variant)
        kind = scope.value_type(name) if variant is None else types.get(name)
        if kind is not None and kind.dims != dims and not kind.container:
            sizes.update(sizes_of(kind.dims, dims))
            types[name] = ValueType(kind.dtype, dims)
            if variant is None:
                scope.touched.add(name)
    if branches is not None:
        known = evaluation.branches.items()
        branches.update({node: taken for node, taken in known if taken is not None})
    return sizes
