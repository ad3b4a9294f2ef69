"""What a node does and which weight it has, in a few words: for a row, or a box."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dld_tui.core.document.node import Node
from dld_tui.core.document.scope import Definition
from dld_tui.core.document.types.value_types import ValueType, dtype_name

_MOST_CHARS = 24
_MOST_SOURCES = 32
"""Nodes of a chain that are looked at for the tensor that is stored."""


def work_text(node: Node) -> str:
    """Return the window of a node, as ``7x7/2``, else its axis or permutation; mostly nothing.

    ``/2`` is the stride, ``d2`` the dilation, ``g32`` the number of groups.
    """
    known: dict[str, Any] = {
        one.name: one.value for one in node.attributes() if one.kind in ("int", "ints")
    }
    text = ""
    kernel = known.get("kernel_shape") or _kernel_of_weight(node)
    if kernel:
        text = _sizes(kernel)
        for name, sign in (("strides", "/"), ("dilations", " d")):
            steps = known.get(name, ())
            if any(step != 1 for step in steps):
                text += sign + (str(steps[0]) if len(set(steps)) == 1 else _sizes(steps))
        if known.get("group", 1) != 1:
            text += f" g{known['group']}"
    elif node.op_type == "Cast" and "to" in known:
        text = f"to {ValueType(dtype_name(known['to']), ()).short}"
    elif "axis" in known:
        text = f"axis {known['axis']}"
    elif known.get("perm") or known.get("axes"):
        text = ",".join(map(str, known.get("perm") or known["axes"]))
    return text if len(text) <= _MOST_CHARS else ""


def _sizes(numbers: Sequence[int]) -> str:
    return "x".join(map(str, numbers))


def _kernel_of_weight(node: Node) -> Sequence[int]:
    """Return the window of a convolution that does not say it; nothing for other nodes."""
    if not node.op_type.startswith("Conv") or len(node.inputs) < 2:
        return ()
    known = node.scope.value_type(node.inputs[1])
    dims = known.dims[2:] if known is not None and known.dims is not None else ()
    return [dim for dim in dims if isinstance(dim, int)]


def weight_text(node: Node, is_drawn: Callable[[Node], bool]) -> str:
    """Return the type of the first matrix, or larger, that a node always takes; empty without one.

    One that is computed from others says what is stored: ``i8 → f32[384,384]``.

    Args:
        is_drawn: Tells whether a node is drawn: if it is, what it makes is seen anyway.
    """
    for name in node.inputs:
        found = node.scope.resolve(name) if name else None
        if found is None or found.kind == "input" or (found.node and is_drawn(found.node)):
            continue
        known = found.scope.value_type(name)
        if found.node is None or found.node.op_type == "Constant":
            if known is not None and known.dims is not None and len(known.dims) > 1:
                return known.short
            continue
        stored = _stored(found.node)
        if stored is not None:
            dtype = ValueType(stored.dtype, ()).short
            made = known.short if known is not None else found.node.op_type
            return f"{dtype} → {made}"
    return ""


def _stored(node: Node) -> ValueType | None:
    """Return the type of the largest matrix, or larger, that a constant chain begins with."""
    seen = {node}
    waiting = [node]
    best: tuple[int, ValueType] | None = None
    while waiting and len(seen) < _MOST_SOURCES:
        for name in waiting.pop().inputs:
            found: Definition | None = node.scope.resolve(name) if name else None
            if found is not None and found.node is not None and found.node not in seen:
                seen.add(found.node)
                waiting.append(found.node)
            known = found.scope.value_type(name) if found is not None and not found.node else None
            if known is None or known.dims is None or len(known.dims) < 2:
                continue
            size = 1
            for dim in known.dims:
                size *= dim if isinstance(dim, int) else 1
            if best is None or size > best[0]:
                best = size, known
    return best[1] if best is not None else None
