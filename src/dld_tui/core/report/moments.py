"""How the time of a pass is distributed over layers that may overlap."""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from dld_tui.core.report.measurement import FloatArray


class Stretch(NamedTuple):
    """A layer or kernel that ran in a pass."""

    layer: int | None
    start_us: float
    """Since the start of the pass."""
    end_us: float
    track: object
    """The thread or stream; of what runs inside each other there, the innermost counts."""


class Moments(NamedTuple):
    """How much of the time of passes is a layer's."""

    running_ms: FloatArray
    """``float64[layers]``: while it ran; overlapping layers share the time."""
    waiting_ms: FloatArray
    """``float64[layers]``: before it could start, with nothing running: scheduling, launches."""
    other_ms: float
    """After the last layer, and what ran and is no layer's. All parts sum to the pass."""


def moments_of(stretches: Iterable[Stretch], length_us: float, layers: int) -> Moments:
    """Distribute the time of a pass: each moment counts for what runs, else for the next layer.

    Unlike durations, these parts sum to the pass even where layers overlapped.

    Args:
        stretches: What ran.
        length_us: Of the pass; later times are cut off.
        layers: The number of layers.
    """
    running, waiting, other = np.zeros(layers), np.zeros(layers), 0.0
    points: list[tuple[float, int, float, Stretch]] = []
    for stretch in stretches:
        start = min(max(stretch.start_us, 0.0), length_us)
        end = max(start, min(stretch.end_us, length_us))
        # What ends comes before what starts; what takes no time ends after it has started.
        points += [(start, 1, -end, stretch), (end, 0 if end > start else 2, 0.0, stretch)]
    points.sort(key=itemgetter(0, 1, 2))
    tracks: dict[object, list[Stretch]] = {}
    now = idle = 0.0
    for time_us, kind, _, stretch in points:
        inner = [stack[-1] for stack in tracks.values() if stack]
        for top in inner:
            if top.layer is None:
                other += (time_us - now) / len(inner)
            else:
                running[top.layer] += (time_us - now) / len(inner)
        idle += 0.0 if inner else time_us - now
        now = time_us
        stack = tracks.setdefault(stretch.track, [])
        if kind != 1:
            stack.remove(stretch)
            continue
        stack.append(stretch)
        if stretch.layer is None:
            other += idle
        else:
            waiting[stretch.layer] += idle
        idle = 0.0
    return Moments(running / 1000, waiting / 1000, (other + idle + length_us - now) / 1000)
