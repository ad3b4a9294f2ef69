"""Give every kernel to the layer whose interval on the CPU holds the call that launched it.

The GPU works later than the CPU asks, so its own times say nothing of the layer. The clocks are
joined by the moment at which the profile of the CPU side began.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dld_tui.core.gpu.activity import Activity, ActivityLog, in_launch_order
from dld_tui.core.report.gpu_records import GpuEvent

_ROUNDING_US = 2.0
"""Profiles of the CPU side cut starts and durations down to whole microseconds."""


class LayerSpan(NamedTuple):
    """One run of a layer on the CPU side, in microseconds since profiling began."""

    layer: int
    start_us: float
    duration_us: float


@dataclass(frozen=True)
class PassSpan:
    """One pass, in microseconds since profiling began."""

    index: int
    start_us: float
    duration_us: float
    layers: Sequence[LayerSpan]


@dataclass
class Share:
    """Kernels of one lot."""

    count: int = 0
    time_us: float = 0.0

    def add(self, duration_us: float) -> None:
        """Count one."""
        self.count += 1
        self.time_us += duration_us


@dataclass
class Attributed:
    """The work by pass, and the sums to check it by."""

    events: dict[int, list[GpuEvent]] = field(default_factory=dict)
    kernels: Share = field(default_factory=Share)
    """All kernels that were recorded."""
    given: Share = field(default_factory=Share)
    """Kernels that a layer launched."""
    unclaimed: Share = field(default_factory=Share)
    """Kernels that a pass launched between its layers."""
    outside: Share = field(default_factory=Share)
    """Kernels of no pass: those of loading the model."""

    @property
    def missing_us(self) -> float:
        """What the lots lack to the sum of all kernels: 0 but for rounding."""
        parts = self.given.time_us + self.unclaimed.time_us + self.outside.time_us
        return self.kernels.time_us - parts

    @property
    def given_percent(self) -> float | None:
        """Share of the kernel time within passes that a layer has; None without any."""
        total = self.given.time_us + self.unclaimed.time_us
        return 100 * self.given.time_us / total if total > 0 else None


def attribute(log: ActivityLog, origin_ns: int, passes: Iterable[PassSpan]) -> Attributed:
    """Return the work of each pass in the order of its launch, with the layers that launched it.

    Args:
        log: What was recorded.
        origin_ns: When profiling of the CPU side began, in nanoseconds of the Unix epoch.
        passes: The passes; they may not overlap.
    """
    ordered = sorted(passes, key=lambda one: one.start_us)
    starts = [one.start_us for one in ordered]
    finders = [_LayerFinder(one.layers) for one in ordered]
    found = Attributed(events={one.index: [] for one in ordered})
    for work in in_launch_order(log.work):
        launched_ns = log.launches.get(work.correlation, work.start_ns)
        time_us = (launched_ns - origin_ns) / 1000
        duration_us = (work.end_ns - work.start_ns) / 1000
        at = bisect_right(starts, time_us) - 1
        one = ordered[at] if at >= 0 else None
        layer = None
        inside = one is not None and time_us <= one.start_us + one.duration_us + _ROUNDING_US
        if one is not None and inside:
            if work.correlation in log.launches:
                layer = finders[at].find(time_us)
            start_us = (work.start_ns - origin_ns) / 1000 - one.start_us
            found.events[one.index].append(event_of(work, start_us, layer))
        if work.kind == "kernel":
            found.kernels.add(duration_us)
            lot = found.unclaimed if inside else found.outside
            (lot if layer is None else found.given).add(duration_us)
    return found


def event_of(work: Activity, start_us: float, layer: int | None) -> GpuEvent:
    """Return work as an event of a pass.

    Args:
        work: What was recorded.
        start_us: Since the start of the pass.
        layer: Who launched it, when that is known.
    """
    duration_us = (work.end_ns - work.start_ns) / 1000
    details = work.details or {}
    return GpuEvent(
        work.stream, work.kind, work.name, start_us, duration_us, layer, work.bytes, details
    )


class _LayerFinder:
    """Finds the innermost layer at a time."""

    def __init__(self, layers: Sequence[LayerSpan]) -> None:
        self._layers = sorted(layers, key=lambda one: (one.start_us, -one.duration_us))
        self._starts = [one.start_us for one in self._layers]
        self._holders: list[int] = []
        open_ones: list[int] = []
        for index, one in enumerate(self._layers):
            while open_ones and self._end(open_ones[-1]) < one.start_us + one.duration_us:
                open_ones.pop()
            self._holders.append(open_ones[-1] if open_ones else -1)
            open_ones.append(index)

    def find(self, time_us: float) -> int | None:
        """Return the layer, or None between layers."""
        last = at = bisect_right(self._starts, time_us) - 1
        while at >= 0 and self._end(at) < time_us:
            at = self._holders[at]
        if at < 0 <= last and time_us <= self._end(last) + _ROUNDING_US:
            at = last
        return self._layers[at].layer if at >= 0 else None

    def _end(self, at: int) -> float:
        return self._layers[at].start_us + self._layers[at].duration_us
