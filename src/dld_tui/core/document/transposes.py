"""The axes of Transpose nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dld_tui.core.document.node import Node


def permutation(node: Node) -> list[int] | None:
    """Return which axis of its input each axis of a Transpose is; None when that is not known."""
    attribute = node.attribute("perm")
    if attribute is None:
        known = node.scope.value_type(node.inputs[0]) if node.inputs else None
        dims = known.dims if known is not None else None
        return None if dims is None else list(range(len(dims)))[::-1]
    axes = attribute.value
    if not isinstance(axes, list) or sorted(axes) != list(range(len(axes))):
        return None
    return axes
