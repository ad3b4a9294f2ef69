"""What a tracer of a GPU recorded: pieces of work, and the calls that launched them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from dld_tui.core.report.gpu_records import GpuKind
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


@dataclass
class ActivityLog:
    """Everything recorded between start and stop of a tracer."""

    work: list[Activity] = field(default_factory=list)
    launches: dict[int, int] = field(default_factory=dict)
    """When the call of a correlation number began, in nanoseconds of the Unix epoch."""
    dropped: int = 0
    """Records for which the tracer had no room."""

    def launched(self, correlation: int, start_ns: int) -> None:
        """Add a call; of a runtime call and the driver call inside it, the earlier start counts."""
        known = self.launches.get(correlation)
        if known is None or start_ns < known:
            self.launches[correlation] = start_ns
