"""Sizes that the user gives for free dimensions by their names."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from dld_tui.core.document.values import ValueType
from dld_tui.core.errors import UsageError
from dld_tui.core.text import visible


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
                f"--dim names {name!r}, which is not a free dimension of an input",
                hint=f"Free dimensions: {listed}",
            )
