"""Reading a report in a thread: everything that the screen shows first."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dld_tui.core import fmt
from dld_tui.core.report.gpu_summary import GpuSummary, gpu_summary
from dld_tui.core.report.groups import group_layers, priced
from dld_tui.core.report.model import Report, open_report
from dld_tui.core.report.records import Group
from dld_tui.core.report.triage import remarks
from dld_tui.core.types import CancelCheck
from dld_tui.widgets.report.summary import Advice
from dld_tui.widgets.timeline.model import Timeline, timeline_of

_TELL_S = 0.2


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
    tell: Callable[[str], None] | None = None,
) -> Loaded:
    """Open a report, or what another profiler wrote as one.

    Args:
        path: The file.
        cancelled: Asked while a profile is read.
        tell: Called with how much is read and how fast, as text, a few times a second.

    Raises:
        InputError: The file cannot be read or is not a report or profile.
        CancelledError: `cancelled` said so.
    """
    report = open_report(path, _throttled(tell), cancelled)
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


def _throttled(tell: Callable[[str], None] | None) -> Callable[[int, int], None] | None:
    if tell is None:
        return None
    begin = last = time.monotonic()

    def progress(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _TELL_S and total > 0:
            last = now
            rate = fmt.size(int(done / (now - begin)))
            tell(f"{100 * done / total:.0f} % of {fmt.size(total)}, {rate}/s")

    return progress
