"""Channels of a tensor that carry a signal in the reference and none in the other.

A figure over a whole tensor hides them: of a detector's output, boxes in pixels outweigh the scores
of all classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    Array: TypeAlias = "np.ndarray[Any, Any]"

_FEWEST, _MOST = 2, 4096
"""How many channels an axis may have to be looked at."""
_ELEMENTS = 8
"""Values that a channel needs, so that being constant says something."""
_SIGNAL = 1e-3
"""A channel that varies by less, absolutely, is taken for constant: scores are of this size."""
_RELATIVE = 0.02
"""And so is one that varies by less relative to its largest value: bfloat16 rounds it away."""


def lost_channels(reference: Array, other: Array) -> str:
    """Return which channels vary in the reference and are constant in the other; empty for none.

    Channels are looked for along axis 1 (NCHW, boxes x anchors) and along the last one (NHWC,
    anchors x boxes) of tensors with three axes or more.

    Args:
        reference: Real numbers.
        other: The same shape.
    """
    if reference.ndim < 3 or reference.shape != other.shape or not reference.size:
        return ""
    if reference.dtype.kind in "bOSU" or other.dtype.kind in "bOSU":
        return ""
    texts = [
        text for axis in (1, reference.ndim - 1) if (text := _lost_along(axis, reference, other))
    ]
    return texts[0] if texts else ""


def _lost_along(axis: int, reference: Array, other: Array) -> str:
    count = reference.shape[axis]
    if not _FEWEST <= count <= _MOST or reference.size // count < _ELEMENTS:
        return ""
    others = tuple(index for index in range(reference.ndim) if index != axis)
    with np.errstate(all="ignore"):
        wide = reference.astype(np.float32), other.astype(np.float32)
        varies, left = (side.max(others) - side.min(others) for side in wide)
        peaks = np.abs(wide[0]).max(others)
        has_signal = (varies > _SIGNAL) & (varies > _RELATIVE * peaks)
        lost = np.flatnonzero(has_signal & (left == 0))
        if not lost.size or lost.size == np.count_nonzero(has_signal) == count:
            return ""  # all of them: the figures of the whole tensor say it
        peak = float(peaks[lost].max())
    named = f"channel {lost[0]}" if lost.size == 1 else f"channels {_ranges(lost.tolist())}"
    return (
        f"{lost.size:,} of {count:,} channels of axis {axis} are constant ({named}), where the"
        f" reference reaches {peak:.3g}"
    )


def _ranges(numbers: list[int]) -> str:
    """Return for example ``0, 4 to 83``; the first three ranges."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    texts = [str(a) if a == b else f"{a} to {b}" for a, b in ranges[:3]]
    return ", ".join(texts) + (", …" if len(ranges) > 3 else "")
