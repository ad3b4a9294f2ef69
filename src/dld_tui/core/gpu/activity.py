"""What a tracer of a GPU recorded: pieces of work, and the calls that launched them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
    graph_node: int = 0
    """Number of its node in a CUDA graph, whose nodes share the correlation of its launch; 0
    outside of graphs."""


@dataclass
class ActivityLog:
    """Everything recorded between start and stop of a tracer."""

    work: list[Activity] = field(default_factory=list)
    launches: dict[int, int] = field(default_factory=dict)
    """When the call of a correlation number began, in nanoseconds of the Unix epoch."""
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
