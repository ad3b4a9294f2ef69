"""GPU utilisation of a pass: kernels, copies, and the gaps between them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from dld_tui.core import fmt
from dld_tui.core.report.records import GpuEvent
from dld_tui.core.report.statistics import median

if TYPE_CHECKING:
    from dld_tui.core.report.records import ReportPass
    from dld_tui.core.report.report import Report

Interval: TypeAlias = "tuple[float, float]"
"""Start and end in microseconds."""

_COPIES = ("memcpy", "memset")
_MOST_PASSES = 100
"""That are read for a summary."""


@dataclass(frozen=True)
class GpuSummary:
    """The work of a GPU in a pass: medians over the passes; times in microseconds.

    Of passes at true speed where the report has any. Their work is related to the latency that was
    measured without recording, since recording adds gaps and no work.
    """

    pass_index: int
    """The median pass, which is the one that is drawn."""
    passes: int
    """How many passes the figures are of."""
    true_speed: bool
    """Whether layers were not profiled meanwhile. If not, gaps say little of the model."""
    length_us: float
    """What the work is set against: the median of the latency loop, or of the passes where there
    was none or they are not at true speed."""
    recorded_us: float
    """Median length of the passes themselves, with recording."""
    kernels: int
    busy_us: float
    """With any kernel running, on any stream: the union of the kernels' intervals."""
    median_kernel_us: float
    gaps_us: float
    """Of `length_us`, with neither a kernel nor a copy running: launch gaps."""
    copies: int
    copy_us: float
    """With any copy or memset running."""
    exposed_copy_us: float
    """The part of it with no kernel running at the same time."""
    copied_bytes: int
    """Without copies whose size was not recorded."""
    attributed_us: float
    """Sum of the kernels' durations whose layer is known."""
    kernel_sum_us: float
    """Sum of all kernels' durations; longer than `busy_us` where streams overlapped."""
    unsized_copies: int = 0
    """Copies whose size was not recorded."""

    @property
    def copied_text(self) -> str:
        """How many bytes are copied, as far as it was recorded."""
        if self.unsized_copies and not self.copied_bytes:
            return "size not known"
        return f"{'at least ' * bool(self.unsized_copies)}{fmt.size(self.copied_bytes)}"

    @property
    def busy_percent(self) -> float:
        """The busy part of the length."""
        return 100 * self.busy_us / self.length_us if self.length_us > 0 else 0.0

    @property
    def gap_percent(self) -> float:
        """The part of the length in which the GPU waits."""
        return 100 * self.gaps_us / self.length_us if self.length_us > 0 else 0.0

    @property
    def attributed_percent(self) -> float | None:
        """The part of the kernels' time whose layer is known."""
        return 100 * self.attributed_us / self.kernel_sum_us if self.kernel_sum_us > 0 else None

    @property
    def slowed_by(self) -> float | None:
        """The duration of recorded passes over the latency; None without a latency.

        Kernel durations stay the same; each launch takes a microsecond or two longer.
        """
        if not self.true_speed or self.length_us <= 0 or self.recorded_us == self.length_us:
            return None
        return self.recorded_us / self.length_us


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
    """Return how much of a time span the intervals of :func:`union` cover."""
    return sum(max(min(end, end_us) - max(start, start_us), 0.0) for start, end in intervals)


def busy_intervals(events: Iterable[GpuEvent]) -> list[Interval]:
    """Return when any kernel was running."""
    return union(_interval(event) for event in events if event.kind == "kernel")


class _Work(NamedTuple):
    """One pass; times in microseconds."""

    kernels: float
    busy_us: float
    either_us: float
    copies: float
    copy_us: float
    copied_bytes: float
    unsized_copies: float
    attributed_us: float
    kernel_sum_us: float
    median_kernel_us: float
    end_us: float


def _work_of(events: Sequence[GpuEvent]) -> _Work | None:
    kernels = [event for event in events if event.kind == "kernel"]
    copies = [event for event in events if event.kind in _COPIES]
    if not kernels and not copies:
        return None
    busy, copying = union(map(_interval, kernels)), union(map(_interval, copies))
    either = union([*busy, *copying])
    durations = [event.duration_us for event in kernels]
    return _Work(
        kernels=len(kernels),
        busy_us=covered(busy, 0.0, math.inf),
        either_us=covered(either, 0.0, math.inf),
        copies=len(copies),
        copy_us=covered(copying, 0.0, math.inf),
        copied_bytes=sum(event.bytes or 0 for event in copies),
        unsized_copies=sum(event.bytes is None for event in copies),
        attributed_us=sum(event.duration_us for event in kernels if event.layer is not None),
        kernel_sum_us=sum(durations),
        median_kernel_us=median(durations) if durations else 0.0,
        end_us=max((end for _, end in either), default=0.0),
    )


def summarise_gpu(
    passes: Iterable[tuple[Sequence[GpuEvent], float]],
    pass_index: int,
    latency_us: float | None = None,
    *,
    true_speed: bool = False,
) -> GpuSummary | None:
    """Return the summary of passes from their events, or None without kernels and copies.

    Args:
        passes: Events and length in microseconds of each pass.
        pass_index: The median pass.
        latency_us: The median latency without recording; None when it was not measured. Used for
            passes at true speed only.
        true_speed: Layers were not profiled meanwhile.
    """
    measured = [
        (work, length) for events, length in passes if (work := _work_of(events)) is not None
    ]
    if not measured:
        return None

    def figure(values: Iterable[float]) -> float:
        return median(list(values))

    # Kernels may end after the call that started them has returned.
    recorded = figure(max(length, work.end_us) for work, length in measured)
    busy, either, copy = (
        figure(times)
        for times in zip(*((w.busy_us, w.either_us, w.copy_us) for w, _ in measured), strict=True)
    )
    length = recorded
    if true_speed and latency_us is not None and latency_us > 0:
        length = max(latency_us, either)
    return GpuSummary(
        pass_index=pass_index,
        passes=len(measured),
        true_speed=true_speed,
        length_us=length,
        recorded_us=recorded,
        kernels=round(figure(work.kernels for work, _ in measured)),
        busy_us=busy,
        median_kernel_us=figure(work.median_kernel_us for work, _ in measured),
        gaps_us=max(length - either, 0.0),
        copies=round(figure(work.copies for work, _ in measured)),
        copy_us=copy,
        exposed_copy_us=figure(max(work.either_us - work.busy_us, 0.0) for work, _ in measured),
        copied_bytes=round(figure(work.copied_bytes for work, _ in measured)),
        attributed_us=figure(work.attributed_us for work, _ in measured),
        kernel_sum_us=figure(work.kernel_sum_us for work, _ in measured),
        unsized_copies=round(figure(work.unsized_copies for work, _ in measured)),
    )


def gpu_summary(report: Report) -> GpuSummary | None:
    """Return the GPU summary of a report; None when nothing was recorded."""
    if report.median_pass is None or not report.has_gpu_events:
        return None
    passes = report.kernel_passes or report.counted_passes
    latency = report.latency
    bare = latency is not None and latency.source == "latency loop"
    return summarise_gpu(
        ((report.gpu_events(pass_.index), pass_.duration_us) for pass_ in _some(passes, report)),
        report.median_pass,
        1000 * latency.median if latency is not None and bare else None,
        true_speed=bool(report.kernel_passes),
    )


def _some(passes: Sequence[ReportPass], report: Report) -> list[ReportPass]:
    """Return some passes of very many, evenly spaced, the median one included."""
    step = -(-len(passes) // _MOST_PASSES)
    return [
        pass_
        for at, pass_ in enumerate(passes)
        if at % step == 0 or pass_.index == report.median_pass
    ]


def _interval(event: GpuEvent) -> Interval:
    return event.start_us, event.start_us + event.duration_us
