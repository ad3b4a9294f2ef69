"""What was recorded of a GPU: pieces of work, the calls that launched them, sampled values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from dld_tui.core.report.records import CounterSource, GpuKind
from dld_tui.core.types import JSON


class Activity(NamedTuple):
    """One piece of work. Times are nanoseconds of the Unix epoch."""

    kind: GpuKind
    name: str
    """Demangled name of a kernel, direction of a copy. Foreign text."""
    start_ns: int
    end_ns: int
    correlation: int
    """Number of the call that launched it."""
    stream: str
    bytes: int | None = None
    details: Mapping[str, JSON] | None = None
    graph_node: int = 0
    """Number of its node in a CUDA graph, whose nodes share the correlation of its launch; 0
    outside of graphs."""


class NamedRange(NamedTuple):
    """A part of the program's work on the CPU that it gave a name (NVTX)."""

    name: str
    """Foreign text."""
    start_ns: int
    end_ns: int


@dataclass
class ActivityLog:
    """Everything recorded between start and stop of a tracer."""

    work: list[Activity] = field(default_factory=list)
    launches: dict[int, int] = field(default_factory=dict)
    """When the call of a correlation number began, in nanoseconds of the Unix epoch."""
    ranges: list[NamedRange] = field(default_factory=list)
    """In the order in which they ended."""
    dropped: int = 0
    """Records for which the tracer had no room, or that could not be read."""

    def launched(self, correlation: int, start_ns: int) -> None:
        """Add a call; of a runtime call and the driver call inside it, the earlier start counts."""
        known = self.launches.get(correlation)
        if known is None or start_ns < known:
            self.launches[correlation] = start_ns


def in_launch_order(work: Iterable[Activity]) -> list[Activity]:
    """Return work in the order in which it was launched, whatever stream it ran on.

    Correlations count the calls. The nodes of a CUDA graph share one; they are in the order of
    their own numbers, or of their starts where these are not told. What no call launched is last.
    """
    return sorted(
        work,
        key=lambda one: (one.correlation < 0, one.correlation, one.graph_node, one.start_ns),
    )


Sample: TypeAlias = "tuple[int, float]"
"""(time in nanoseconds of the Unix epoch, value)."""

_PEAK = ".avg.pct_of_peak_sustained_elapsed"


@dataclass(frozen=True)
class CounterSpec:
    """One row."""

    name: str
    """The source's own name."""
    title: str
    """For people."""
    unit: str = "%"
    maximum: float | None = 100.0


@dataclass
class Series:
    """The samples of one row; without any it is not drawn, and `absent` says why."""

    spec: CounterSpec
    source: CounterSource
    samples: list[Sample] = field(default_factory=list)
    absent: str | None = None


@dataclass(frozen=True)
class HardwareRow:
    """A row that hardware counters can tell, under the names that chips have for it."""

    title: str
    names: tuple[str, ...]
    """The best one first, without what is done with it."""

    def spec(self, available: Collection[str]) -> CounterSpec | None:
        """Return the row under the first name that a chip has, or None."""
        for name in self.names:
            if name in available:
                return CounterSpec(name + _PEAK, self.title)
        return None


HARDWARE_ROWS = (
    HardwareRow("SM active", ("sm__cycles_active",)),
    HardwareRow("DRAM", ("dram__throughput", "dram__read_throughput", "fbpa__throughput")),
    HardwareRow(
        "Tensor Core",
        (
            "sm__pipe_tensor_cycles_active",
            "sm__pipe_tensor_op_hmma_cycles_active",
            "sm__inst_executed_pipe_tensor",
        ),
    ),
    HardwareRow("PCIe", ("pcie__throughput", "pcie__read_bytes", "pcie__write_bytes")),
)
"""In the order in which they are given up where a chip cannot count all at once: the last first."""


@dataclass(frozen=True)
class SamplingPlan:
    """How many passes to sample, and how often."""

    passes: int
    interval_us: float
    expected: int
    """Samples a row, roughly."""


def plan_sampling(
    pass_ms: float, passes: int, interval_us: float, most_samples: int = 10_000
) -> SamplingPlan:
    """Return what fits into `most_samples`: fewer passes first, then a longer interval.

    Args:
        pass_ms: How long a pass takes, roughly.
        passes: How many there are.
        interval_us: How often a sample is wanted.
        most_samples: Of one row.
    """
    per_pass = max(1.0, 1000 * pass_ms / interval_us)
    fitting = max(1, min(passes, int(most_samples / per_pass)))
    if per_pass > most_samples:
        interval_us *= per_pass / most_samples
        per_pass = most_samples
    return SamplingPlan(fitting, interval_us, int(fitting * per_pass))
