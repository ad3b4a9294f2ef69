"""What an engine's passes take: copies, compute and enqueueing apart, as trtexec tells them.

Latency is the sum of the copy to the device, the GPU's work and the copy back, by events on the
stream. Each stream has one pass under way at a time; trtexec overlaps two, so that its latency
holds waits which these figures do not, and its throughput is that of two streams here.
"""

from __future__ import annotations

import time
from array import array
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from dld_tui.backends.tensorrt_execution import Execution
from dld_tui.core.report.statistics import summarise, trtexec_percentile
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    import tensorrt as trt

    from dld_tui.backends.tensorrt_cuda import Cuda
else:
    from dld_tui.backends.tensorrt_library import trt

_FIGURES = ("median", "mean", "min", "max", "std", "p90", "p95", "p99")
LAUNCH_BOUND = 0.8
"""Share of the GPU's time from which enqueueing is what limits the throughput."""


def _times() -> array[float]:
    return array("d")


@dataclass
class PassTimes:
    """One value a pass, in milliseconds."""

    h2d: array[float] = field(default_factory=_times)
    compute: array[float] = field(default_factory=_times)
    d2h: array[float] = field(default_factory=_times)
    enqueue: array[float] = field(default_factory=_times)
    """Of the processor: how long the call took that asks for the work."""
    starts: array[float] = field(default_factory=_times)
    """When the pass was asked for, since the first one."""

    def clear(self) -> None:
        """Forget all passes."""
        for values in (self.h2d, self.compute, self.d2h, self.enqueue, self.starts):
            del values[:]

    def summary(self) -> dict[str, JSON]:
        """Return the figures of each part, and the passes a second."""
        found: dict[str, JSON] = {}
        for name in ("h2d", "compute", "d2h", "enqueue"):
            # Percentiles stand beside those of trtexec.
            figures = summarise(getattr(self, name), percentile_at=trtexec_percentile)
            if figures is not None and figures.max > 0:
                every = asdict(figures)
                found[name] = {figure: every[figure] for figure in _FIGURES}
        return found

    def rows(self) -> list[dict[str, JSON]]:
        """Return the passes as ``trtexec --exportTimes`` writes them."""
        rows: list[dict[str, JSON]] = []
        for start, h2d, compute, d2h, enqueue in zip(
            self.starts, self.h2d, self.compute, self.d2h, self.enqueue, strict=True
        ):
            computing, copying = start + h2d, start + h2d + compute
            rows.append(
                {
                    "startEnqMs": start,
                    "endEnqMs": start + enqueue,
                    "startH2dMs": start,
                    "endH2dMs": computing,
                    "startComputeMs": computing,
                    "endComputeMs": copying,
                    "startD2hMs": copying,
                    "endD2hMs": copying + d2h,
                    "h2dMs": h2d,
                    "computeMs": compute,
                    "d2hMs": d2h,
                    "latencyMs": h2d + compute + d2h,
                }
            )
        return rows


class _Slot:
    """One execution with the events of its pass."""

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        cuda = execution.cuda
        self.events = [cuda.event() for _ in range(4)]
        self.enqueue_ms = self.start_ms = 0.0


class PassTimer:
    """Times passes of an engine. Close it at the end.

    Args:
        cuda: The device.
        executions: One a stream.
        transfers: Copy inputs and outputs with every pass.
    """

    def __init__(self, cuda: Cuda, executions: Sequence[Execution], transfers: bool) -> None:
        self.times = PassTimes()
        self._cuda, self._transfers = cuda, transfers
        self._slots = [_Slot(execution) for execution in executions]
        self._begin_ns = 0

    def __call__(self, calls: int, durations: array[int], most: int, until: int) -> int:
        """Time passes as :data:`dld_tui.core.latency.TimeCalls` says."""
        under_way: deque[_Slot] = deque()
        launched = done = 0
        if not calls or not self._begin_ns:
            self._begin_ns = time.perf_counter_ns()
        while True:
            while (
                launched < most
                and len(under_way) < len(self._slots)
                and (not launched or time.perf_counter_ns() < until)
            ):
                slot = self._slots[launched % len(self._slots)]
                self._launch(slot)
                under_way.append(slot)
                launched += 1
            if not under_way:
                return done
            durations[done] = round(1e6 * self._finish(under_way.popleft()))
            done += 1

    def _launch(self, slot: _Slot) -> None:
        cuda, execution, (begin, start, end, done) = self._cuda, slot.execution, slot.events
        stream = execution.stream
        slot.start_ms = (time.perf_counter_ns() - self._begin_ns) / 1e6
        if self._transfers:
            cuda.record(begin, stream)
            execution.copy_inputs()
        cuda.record(start, stream)
        before = time.perf_counter_ns()
        execution.enqueue()
        slot.enqueue_ms = (time.perf_counter_ns() - before) / 1e6
        cuda.record(end, stream)
        if self._transfers:
            execution.copy_outputs()
            cuda.record(done, stream)

    def _finish(self, slot: _Slot) -> float:
        """Wait for a pass, keep its times and return its latency in milliseconds."""
        cuda, (begin, start, end, done) = self._cuda, slot.events
        cuda.synchronize_event(done if self._transfers else end)
        compute = cuda.elapsed_ms(start, end)
        h2d = cuda.elapsed_ms(begin, start) if self._transfers else 0.0
        d2h = cuda.elapsed_ms(end, done) if self._transfers else 0.0
        times = self.times
        times.h2d.append(h2d)
        times.compute.append(compute)
        times.d2h.append(d2h)
        times.enqueue.append(slot.enqueue_ms)
        times.starts.append(slot.start_ms)
        return h2d + compute + d2h

    def close(self) -> None:
        """Give the events back."""
        for slot in self._slots:
            for event in slot.events:
                self._cuda.destroy_event(event)
            slot.events = []
        self._slots.clear()


@dataclass
class LayerPass:
    """One pass with the library's profiler on."""

    start_ns: int
    """By the clock of the system."""
    duration_ns: int
    layers: list[tuple[str, float]]
    """(name, milliseconds) in the order of execution. Names are foreign text and may repeat."""


def layer_passes(execution: Execution, passes: int) -> list[LayerPass]:
    """Run an engine with the library's profiler on, and return the times of its layers.

    The profiler makes the library wait after every pass, so latency is never taken from these.
    """
    rows: list[tuple[str, float]] = []

    class Profiler(trt.IProfiler):
        """Takes the time of one layer."""

        def __init__(self) -> None:
            trt.IProfiler.__init__(self)

        def report_layer_time(self, layer_name: str, ms: float) -> None:
            """Take it."""
            rows.append((layer_name, ms))

    found = []
    with execution.profiled(Profiler()):
        for _ in range(passes):
            rows.clear()
            start = time.time_ns()
            execution.enqueue()
            execution.wait()
            found.append(LayerPass(start, time.time_ns() - start, list(rows)))
    return found
