"""What a report says about a GPU: what it did when, and values sampled over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from dld_tui.core.types import JSON

GpuKind: TypeAlias = Literal["kernel", "memcpy", "memset", "overhead", "sync"]
"""``overhead`` is what the driver or the profiler itself took, ``sync`` a wait for the device."""

GPU_KINDS: tuple[GpuKind, ...] = ("kernel", "memcpy", "memset", "overhead", "sync")

CounterSource: TypeAlias = Literal["cupti-pm", "nvml-gpm", "nvml", "sysfs"]
"""Who measured: hardware counters, utilisation between two snapshots, the driver's own, or files of
a Jetson."""


@dataclass(frozen=True)
class GpuEvent:
    """One stretch of work of a GPU within a pass."""

    stream: str
    """What people call the stream, e.g. ``stream 7``, or ``GPU 1 stream 7`` with several GPUs."""
    kind: GpuKind
    name: str
    """Of the kernel, demangled where it can be; of a copy its direction, e.g. ``HtoD``."""
    start_us: float
    """Since the start of the pass."""
    duration_us: float
    layer: int | None = None
    """`Layer.index` of the layer that launched it, or None when it is not known."""
    bytes: int | None = None
    """Of copies and memsets."""
    details: Mapping[str, JSON] = field(default_factory=dict, hash=False)
    """What else is known, e.g. ``grid``, ``block``, ``shared_bytes``, ``registers``."""


@dataclass(frozen=True)
class Counter:
    """A value sampled over time."""

    id: int
    name: str
    """The source's own name, e.g. ``sm__cycles_active.avg.pct_of_peak_sustained_elapsed``."""
    title: str
    """For people, e.g. ``SM active``."""
    unit: str
    """``%``, ``GB/s``, ``MHz``, …"""
    maximum: float | None
    """The largest value that can be, e.g. 100 for a percentage; None when it is not known."""
    source: str
    """A `CounterSource`, or the word of a later version."""
    absent: str | None = None
    """Why nothing was measured; None when something was."""
    samples: int = 0
    first_us: float = 0.0
    """Time of the first sample, on the clock of the counters."""
    last_us: float = 0.0
    highest: float | None = None
    """The largest value measured."""
    period_us: float = 0.0
    """The usual time from a sample to the next; 0 for fewer than two."""
    levels: int = 0
    """How many levels of coarser steps the report holds."""

    @property
    def top(self) -> float:
        """The value to draw at full height."""
        return max(self.maximum or 0.0, self.highest or 0.0) or 1.0


@dataclass(frozen=True)
class Bucket:
    """The samples of a counter in a part of the time."""

    samples: int
    """How many; 0 where the nearest one is repeated, because samples are further apart."""
    mean: float
    minimum: float
    maximum: float
