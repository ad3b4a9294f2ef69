"""The energy of a board by the power of its rails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from dld_tui.backends.machine.meters import Energy, Window
from dld_tui.core.report.gpu_kernels import Sample


def energy_of(
    rails: Mapping[str, Sequence[Sample]], window: Window, pass_s: float
) -> Energy | None:
    """Return the joules per pass, the mean power in watts, and the rails; None if one is unknown.

    Args:
        rails: Watts by the rails that add up to the power of the board.
        window: When the passes ran.
        pass_s: The seconds of one.
    """
    parts = [energy(samples, window) for samples in rails.values()]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    watts = sum(known) / ((window[1] - window[0]) / 1e9)
    return Energy(watts * pass_s, watts, " + ".join(rails))


def energy(samples: Sequence[Sample], window: Window) -> float | None:
    """Return the joules of a window: the area under its watts, whose ends are the nearest samples.

    None when no sample is in the window or next to it.
    """
    begin, end = window
    inside = [sample for sample in samples if begin <= sample[0] <= end]
    before = max((sample for sample in samples if sample[0] < begin), default=None)
    after = min((sample for sample in samples if sample[0] > end), default=None)
    bracketing = [sample for sample in (before, *inside, after) if sample is not None]
    if not bracketing or end <= begin:
        return None
    points = [(begin, _at(bracketing, begin)), *inside, (end, _at(bracketing, end))]
    return sum(
        (right - left) / 1e9 * (low + high) / 2 for (left, low), (right, high) in pairwise(points)
    )


def _at(samples: Sequence[Sample], when: int) -> float:
    """Return the value at a time, interpolated linearly."""
    for (left, low), (right, high) in pairwise(samples):
        if left <= when <= right:
            return low + (high - low) * (when - left) / max(1, right - left)
    return samples[0][1] if when < samples[0][0] else samples[-1][1]
