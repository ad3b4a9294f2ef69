"""A profile report, or an engine plan, as something to compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core.report.model import open_report
from dld_tui.core.report.records import Layer
from dld_tui.core.types import JSON, CancelCheck, ProgressCallback

if TYPE_CHECKING:
    from dld_tui.core.compare.model import FloatArray
    from dld_tui.core.document.document import Document
    from dld_tui.core.report.reader import Report


@dataclass(frozen=True)
class Subject:
    """What :class:`~dld_tui.core.compare.model.Comparable` asks for, as plain values."""

    title: str
    path: str
    layers: Sequence[Layer]
    times: FloatArray | None = None
    gpu_times: FloatArray | None = None
    latencies_ms: Sequence[float] = ()
    profiled_ms: Sequence[float] = ()
    facts: Mapping[str, JSON] = field(default_factory=dict)
    model: Mapping[str, JSON] = field(default_factory=dict)
    settings: Mapping[str, JSON] = field(default_factory=dict)
    environment: Mapping[str, JSON] = field(default_factory=dict)


def subject_of(report: Report) -> Subject:
    """Read what is compared of an open report, which may be closed afterwards.

    Raises:
        CorruptFileError: The file is damaged.
    """
    return Subject(
        title=report.path.name,
        path=str(report.path),
        layers=report.layers,
        times=None if report.by_pass is None else report.by_pass.times_ms,
        gpu_times=None if report.gpu_by_pass is None else report.gpu_by_pass.times_ms,
        latencies_ms=report.latencies,
        profiled_ms=(
            []  # passes that are but sums of layers, of a file without end-to-end times
            if report.profiled_latency is None
            else [found.duration_us / 1000 for found in report.counted_passes]
        ),
        facts={
            "status": report.status,
            "network": report.network,
            "backend": report.backend,
            "execution_provider": report.execution_provider,
            "device": report.device,
            "created": report.created,
        },
        model=report.model,
        settings=report.settings,
        environment=report.environment,
    )


def open_subject(
    path: Path,
    progress: ProgressCallback | None = None,
    cancelled: CancelCheck | None = None,
    document: Document | None = None,
) -> Subject:
    """Read a report file, another program's profile as one, or an engine plan.

    Args:
        path: The file.
        progress: Called with (bytes read, bytes in all).
        cancelled: Asked while it reads.
        document: The model in which the nodes of an engine plan are found.

    Raises:
        InputError: The file cannot be read, or is something else.
        CancelledError: `cancelled` said so.
    """
    from dld_tui.core.plan.subject import is_plan, open_plan_subject  # makes subjects of its own

    if is_plan(path):
        return open_plan_subject(path, document)
    with open_report(path, progress, cancelled) as report:
        return subject_of(report)
