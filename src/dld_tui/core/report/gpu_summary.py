"""How busy a GPU was in a pass: kernels, copies, and the gaps between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from dld_tui.core.report.gpu_records import GpuEvent
from dld_tui.core.report.statistics import median

if TYPE_CHECKING:
    from dld_tui.core.report.reader import Report

Interval: TypeAlias = "tuple[float, float]"
"""Start and end in microseconds."""

_COPIES = ("memcpy", "memset")


@dataclass(frozen=True)
class GpuSummary:
    """What a GPU did in one pass; times in microseconds."""

    pass_index: int
    length_us: float
    """Of the pass."""
    kernels: int
    busy_us: float
    """With any kernel running, on any stream: the union of the kernels' intervals."""
    median_kernel_us: float
    gaps_us: float
    """Within the pass with neither a kernel nor a copy running: launch gaps."""
    copies: int
    copy_us: float
    """With any copy or memset running."""
    exposed_copy_us: float
    """Of that, with no kernel running beside it."""
    copied_bytes: int
    attributed_us: float
    """Sum of the kernels' durations whose layer is known."""
    kernel_sum_us: float
    """Sum of all kernels' durations; longer than `busy_us` where streams ran at once."""

    @property
    def busy_percent(self) -> float:
        """The busy part of the pass."""
        return 100 * self.busy_us / self.length_us if self.length_us > 0 else 0.0

    @property
    def attributed_percent(self) -> float | None:
        """The part of the kernels' time whose layer is known."""
        return 100 * self.attributed_us / self.kernel_sum_us if self.kernel_sum_us > 0 else None


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """Return the intervals joined where they overlap or touch, in order of time."""
    joined: list[Interval] = []
    for start, end in sorted(intervals):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        elif end > start:
            joined.append((start, end))
    return joined


def covered(intervals: Sequence[Interval], start_us: float, end_us: float) -> float:
    """Return how much of a time the intervals of :func:`union` cover."""
    return sum(max(min(end, end_us) - max(start, start_us), 0.0) for start, end in intervals)


def busy_intervals(events: Iterable[GpuEvent]) -> list[Interval]:
    """Return when any kernel was running."""
    return union(_interval(event) for event in events if event.kind == "kernel")


def summarise_gpu(
    events: Sequence[GpuEvent], pass_index: int, length_us: float
) -> GpuSummary | None:
    """Return the summary of a pass from its events, or None without kernels and copies."""
    kernels = [event for event in events if event.kind == "kernel"]
    copies = [event for event in events if event.kind in _COPIES]
    if not kernels and not copies:
        return None
    busy = union(map(_interval, kernels))
    copying = union(map(_interval, copies))
    either = union([*busy, *copying])
    # Kernels may end after the call that started them has returned.
    length = max(length_us, *(end for _, end in either)) if either else length_us
    busy_us, copy_us, either_us = (covered(found, 0.0, length) for found in (busy, copying, either))
    durations = [event.duration_us for event in kernels]
    return GpuSummary(
        pass_index=pass_index,
        length_us=length,
        kernels=len(kernels),
        busy_us=busy_us,
        median_kernel_us=median(durations) if durations else 0.0,
        gaps_us=max(length - either_us, 0.0),
        copies=len(copies),
        copy_us=copy_us,
        exposed_copy_us=max(either_us - busy_us, 0.0),
        copied_bytes=sum(event.bytes or 0 for event in copies),
        attributed_us=sum(event.duration_us for event in kernels if event.layer is not None),
        kernel_sum_us=sum(durations),
    )


def gpu_of_median_pass(report: Report) -> GpuSummary | None:
    """Return what the GPU did in the report's median pass, or None when nothing is known."""
    index = report.median_pass
    if index is None or not report.has_gpu_events:
        return None
    length = next(found.duration_us for found in report.passes if found.index == index)
    return summarise_gpu(report.gpu_events(index), index, length)


def _interval(event: GpuEvent) -> Interval:
    return event.start_us, event.start_us + event.duration_us
