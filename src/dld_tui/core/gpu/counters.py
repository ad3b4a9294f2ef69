"""The rows of values that are sampled while a GPU works, whoever measures them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TypeAlias

from dld_tui.core.report.gpu_records import CounterSource

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
