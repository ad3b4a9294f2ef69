"""Reading a report in a thread: everything that the screen shows first."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dld_tui.core.report.gpu_summary import GpuSummary, gpu_summary
from dld_tui.core.report.groups import group_layers, priced
from dld_tui.core.report.model import Report, open_report
from dld_tui.core.report.records import Group
from dld_tui.core.report.triage import remarks
from dld_tui.core.types import CancelCheck, ProgressCallback
from dld_tui.widgets.report.summary import Advice
from dld_tui.widgets.timeline.model import Timeline, timeline_of


@dataclass(frozen=True)
class Loaded:
    """A report with what takes time to find out."""

    report: Report
    advice: tuple[Advice, ...]
    timeline: Timeline
    """Of the median pass; empty when there is none."""
    types: tuple[Group, ...]
    """What the layers cost, by type."""
    model_problem: str | None
    gpu: GpuSummary | None
    """What a GPU does in a pass."""


def load(
    path: Path,
    cancelled: CancelCheck | None = None,
    progress: ProgressCallback | None = None,
) -> Loaded:
    """Open a report, or what another profiler wrote as one.

    Args:
        path: The file.
        cancelled: Asked while a profile is read.
        progress: Told the bytes that are read, and all of them.

    Raises:
        InputError: The file cannot be read or is not a report or profile.
        CancelledError: `cancelled` said so.
    """
    report = open_report(path, progress, cancelled)
    try:
        return complete(report)
    except BaseException:
        report.close()
        raise


def complete(report: Report) -> Loaded:
    """Find out the rest about an open report."""
    median = report.median_pass
    return Loaded(
        report,
        tuple(Advice(note.text, note.level) for note in remarks(report)),
        Timeline([], 0.0) if median is None else timeline_of(report, median),
        tuple(group_layers(priced(report.layers), "type", report.cost_by_pass)),
        report.model_problem(),
        gpu_summary(report),
    )
