"""What rules about operands are written with: what they say, and comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from dld_tui.core import fmt
from dld_tui.core.checks.calls import Call, Dims

VALUE, SHAPE = "attribute-value", "operand-shape"
Said: TypeAlias = "Iterator[tuple[str, str]]"
"""Rules and messages."""


def wrong(message: str) -> tuple[str, str]:
    """Return a finding about shapes."""
    return SHAPE, message


def dims_text(dims: Dims) -> str:
    """Return dimensions as people write them."""
    return fmt.shape(dims)


def differ(first: int | None, second: int | None) -> bool:
    """Return whether two dimensions are known and not equal."""
    return first is not None and second is not None and first != second


def vector(call: Call, index: int, what: str, size: int | None) -> Said:
    """Yield what keeps an input from being a vector of a size."""
    dims = call.dims(index)
    if dims is None:
        return
    if len(dims) != 1:
        yield wrong(f"{what} is {dims_text(dims)}, it must have one dimension")
    elif differ(dims[0], size):
        yield wrong(f"{what} has {dims[0]} elements, {size} are needed")


def axis_said(call: Call, rank: int | None, default: int, extra: int = 0) -> Said:
    """Yield where the attribute axis is outside of a rank."""
    axis = call.attribute("axis", default)
    if rank is not None and isinstance(axis, int) and not -rank - extra <= axis < rank + extra:
        yield VALUE, f"Attribute axis is {axis}, the input has {fmt.plural(rank, 'dimension')}"


def sizes_text(sizes: Iterable[int]) -> str:
    """Return sizes as people write them."""
    return f"[{', '.join(map(str, sizes))}]"


def like(call: Call, index: int, what: str, wanted: Dims) -> Said:
    """Yield where an input has not the wanted dimensions."""
    dims = call.dims(index)
    if dims is None:
        return
    if len(dims) != len(wanted) or any(differ(a, b) for a, b in zip(dims, wanted, strict=True)):
        yield wrong(f"{what} is {dims_text(dims)}, it must be {dims_text(wanted)}")
