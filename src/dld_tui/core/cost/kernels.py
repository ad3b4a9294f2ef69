"""What a kernel that a runtime ran costs, by the shapes that it had in the run."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, TypeAlias

from dld_tui.core.cost.counts import byte_count
from dld_tui.core.cost.operators import Call, Shape, elements, operator, work
from dld_tui.core.cost.roofline import FLOPS, MOVED
from dld_tui.core.report.groups import ELEMENT_BITS

if TYPE_CHECKING:
    from dld_tui.core.document.node import Node
    from dld_tui.core.report.ort_profile import Kernel
    from dld_tui.core.report.records import Dims


def kernel_work(kernel: Kernel, node: Node | None) -> dict[str, int]:
    """Return the operations and the bytes of one run of a kernel, as far as they are known.

    Args:
        kernel: What ran, with its shapes and types.
        node: The node of the optimised model, or one of the model with its attributes; None
            where it is not known.
    """
    counted = operator("", kernel.op_type)
    if counted.rule is None and not counted.per_input and counted.per_output == 1:
        ours = operator("com.microsoft", kernel.op_type)
        counted = ours if ours.is_known else counted
    if counted.is_view:
        return {FLOPS: 0, MOVED: 0}
    inputs = _inputs(kernel, node)
    outputs = list(map(_known, kernel.output_dims, kernel.output_types))
    read, made = ([None if one is None else one[0] for one in side] for side in (inputs, outputs))
    found: dict[str, int] = {}
    sizes = [[_size(one) for one in side if one is not None] for side in (inputs, outputs)]
    if outputs and not any(None in side for side in sizes):
        taken, given = ([size for size in side if size is not None] for side in sizes)
        if counted.selects and taken:
            taken[0] = sum(given)
        found[MOVED] = sum(taken) + sum(given)

    def attribute(name: str) -> Any:
        value = node.attribute(name) if node is not None else None
        return None if value is None else value.value

    macs, operations = 0, 0
    if counted.rule is not None:
        domain = "" if node is None else node.domain
        call = Call(domain, kernel.op_type, read, made, attribute)
        macs, operations = work(counted.rule, call)  # type: ignore[assignment]
    elif counted.per_input or counted.per_output:
        first = (read if counted.per_input else made)[:1]
        count = elements(first[0]) if first and first[0] is not None else None
        operations = None if count is None else count * (counted.per_input or counted.per_output)  # type: ignore[assignment]
    if isinstance(macs, int) and isinstance(operations, int):
        found[FLOPS] = 2 * macs + operations
    return found


_Input: TypeAlias = "tuple[Shape | None, str]"
"""The shape and type of what a kernel read or made."""


def _known(dims: Dims, dtype: str) -> _Input:
    sizes = [size for size in dims or () if isinstance(size, int) and size >= 0]
    return (None if dims is None or len(sizes) < len(dims) else tuple(sizes)), dtype


def _inputs(kernel: Kernel, node: Node | None) -> list[_Input | None]:
    """Return what a kernel read, each at its place.

    A profile leaves out inputs that are not there, and weights that were packed beforehand.
    """
    told: list[_Input | None] = list(map(_known, kernel.input_dims, kernel.input_types))
    if node is None or len(told) >= len(node.inputs):
        return told
    left = deque(told)
    placed: list[_Input | None] = []
    for name in node.inputs:
        stored = node.scope.resolve(name) if name else None
        tensor = stored.scope.initializer(name) if stored and stored.kind == "initializer" else None
        if tensor is not None and (not left or left[0] != (tensor.shape, tensor.dtype)):
            placed.append((tensor.shape, tensor.dtype))
        else:
            placed.append(left.popleft() if name and left else None)
    return placed


def _size(one: _Input) -> int | None:
    shape, dtype = one
    bits = ELEMENT_BITS.get(dtype)
    if shape is None or bits is None:
        return None
    count = byte_count(elements(shape), bits)
    return count if isinstance(count, int) else None
