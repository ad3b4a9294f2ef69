"""Where the factors of dimensions go when a tensor is reshaped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from dld_tui.core.model.shapes.size import (
    Polynomial,
    Size,
)

Sizes: TypeAlias = "tuple[int, ...]"


class Factor(NamedTuple):
    """A part of an axis: its size at the old sizes of the dimensions, and with their names."""

    old: int
    size: Size

    @property
    def content(self) -> int:
        """The greatest number by which the size can be divided whatever the dimensions are."""
        return math.gcd(*self.size.terms.values()) if isinstance(self.size, Polynomial) else 1


def regrouped(axes: Sequence[Sequence[Factor]], target: Sizes) -> list[list[Factor]] | None:
    """Return which parts of the axes of a tensor each axis has after a Reshape.

    Elements keep their row-major order, so each axis of the target takes the next parts. Fixed ones
    can be split and merged, and a dimension only as a whole, a fixed factor of it behind it. Where
    a dimension had size 1, several axes may take it: the best is one of size 1, then one in its
    place, the first.

    Args:
        axes: The parts of each axis of the input, the outermost first.
        target: The shape at the old sizes.

    Returns:
        The parts by axis, or None where a part would have to be cut.
    """
    left: list[Factor] = []
    single: list[tuple[int, int, Factor]] = []
    before = 1
    for axis, parts in enumerate(axes):
        for part in parts:
            if part.old == 1 and isinstance(part.size, Polynomial):
                single.append((before, axis, part))
            elif part.old != 1:
                left.append(part)
            before *= part.old
    if 0 in target or before != math.prod(target):
        return None
    groups: list[list[Factor]] = []
    for wanted in target:
        group: list[Factor] = []
        while wanted > 1:
            part = left.pop(0)
            while not isinstance(part.size, Polynomial) and left and not (
                isinstance(left[0].size, Polynomial)
            ):  # fmt: skip
                part = Factor(part.old * left[0].old, part.old * left.pop(0).old)
            taken = _cut(part, wanted)
            if taken is None:
                return None
            group.append(taken[0])
            left[:0] = taken[1:]
            wanted //= taken[0].old
        groups.append(group)
    for position, axis, part in single:
        _place(groups, target, position, axis, part)
    return groups


def _cut(part: Factor, wanted: int) -> list[Factor] | None:
    """Return a part, or what of it fits into a size and what is left; None where none does."""
    if wanted % part.old == 0:
        return [part]
    if not isinstance(part.size, Polynomial):
        if part.old % wanted:
            return None
        return [Factor(wanted, wanted), Factor(part.old // wanted, part.old // wanted)]
    content = part.content
    least = part.old // content
    if wanted % least or content % (wanted // least):
        return None
    times = content // (wanted // least)
    return [Factor(wanted, part.size // times), Factor(times, times)]


def _place(
    groups: list[list[Factor]], target: Sizes, position: int, axis: int, part: Factor
) -> None:
    """Put a dimension of size 1 into one of the axes that begin or end where it stands."""
    choices = []
    for at, group in enumerate(groups):
        inside = math.prod(target[:at])
        for index in range(len(group) + 1):
            if inside == position:
                is_taken = any(isinstance(other.size, Polynomial) for other in group)
                choices.append((is_taken, target[at] != 1, at != axis, index, at))
            inside *= group[index].old if index < len(group) else 1
    if choices:
        *_, index, at = min(choices)
        groups[at].insert(index, part)
    elif groups:
        groups[-1].append(part)
