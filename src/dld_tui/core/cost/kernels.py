"""What a kernel that a runtime ran costs, by the shapes that it had in the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dld_tui.core.cost.counts import byte_count
from dld_tui.core.cost.operators import Call, Shape, elements, operator, work
from dld_tui.core.report.groups import ELEMENT_BITS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dld_tui.core.document.node import Node
    from dld_tui.core.report.ort_profile import Kernel
    from dld_tui.core.report.records import Dims

FLOPS, MOVED = "flops", "moved_bytes"
"""The details of a layer that say so, of one run of it."""


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
    read, made = _shapes(kernel.input_dims), _shapes(kernel.output_dims)
    found: dict[str, int] = {}
    moved = _moved(kernel, read, made, selects=counted.selects)
    if moved is not None:
        found[MOVED] = moved

    def attribute(name: str) -> Any:
        value = node.attribute(name) if node is not None else None
        return None if value is None else value.value

    macs, operations = 0, 0
    if counted.rule is not None:
        placed = _placed(read, node)
        domain = "" if node is None else node.domain
        call = Call(domain, kernel.op_type, placed, made, attribute)
        macs, operations = work(counted.rule, call)  # type: ignore[assignment]
    elif counted.per_input or counted.per_output:
        first = (read if counted.per_input else made)[:1]
        count = elements(first[0]) if first and first[0] is not None else None
        operations = None if count is None else count * (counted.per_input or counted.per_output)  # type: ignore[assignment]
    if isinstance(macs, int) and isinstance(operations, int):
        found[FLOPS] = 2 * macs + operations
    return found


def _shapes(dims: Sequence[Dims]) -> list[Shape | None]:
    return [
        None if one is None or any(not isinstance(size, int) or size < 0 for size in one)
        else tuple(size for size in one if isinstance(size, int))
        for one in dims
    ]  # fmt: skip


def _placed(shapes: list[Shape | None], node: Node | None) -> list[Shape | None]:
    """Return the shapes at the places of their inputs; a profile leaves out what is not there."""
    if node is None or len(shapes) != sum(map(bool, node.inputs)):
        return shapes
    left = iter(shapes)
    return [next(left) if name else None for name in node.inputs]


def _moved(
    kernel: Kernel, read: Sequence[Shape | None], made: Sequence[Shape | None], *, selects: bool
) -> int | None:
    taken = _sizes(read, kernel.input_types)
    given = _sizes(made, kernel.output_types)
    if taken is None or given is None or not made:
        return None
    if selects:
        taken[0] = sum(given)
    return sum(taken) + sum(given)


def _sizes(shapes: Sequence[Shape | None], types: Sequence[str]) -> list[int] | None:
    sizes = []
    for shape, dtype in zip(shapes, types, strict=True):
        bits = ELEMENT_BITS.get(dtype)
        if shape is None or bits is None:
            return None
        count = byte_count(elements(shape), bits)
        sizes.append(count if isinstance(count, int) else 0)
    return sizes
