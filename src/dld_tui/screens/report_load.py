"""Reading a report in a thread: everything that the screen shows first."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dld_tui.core.report.model import Report, open_report
from dld_tui.core.report.records import Group
from dld_tui.core.report.triage import remarks
from dld_tui.core.types import CancelCheck
from dld_tui.widgets.report_summary import Advice
from dld_tui.widgets.timeline_build import timeline_of
from dld_tui.widgets.timeline_model import Timeline

_TELL_S = 0.2


@dataclass(frozen=True)
class Loaded:
    """A report with what takes time to find out."""

    report: Report
    advice: tuple[Advice, ...]
    timeline: Timeline
    """Of the median pass; empty when there is none."""
    types: tuple[Group, ...]
    """The layers grouped by type."""
    model_problem: str | None


def load(
    path: Path,
    cancelled: CancelCheck | None = None,
    tell: Callable[[float], None] | None = None,
) -> Loaded:
    """Open a report, or an ONNX Runtime profile JSON as one.

    Args:
        path: The file.
        cancelled: Asked while a profile is read.
        tell: Called with the share that is read, 0 to 1, a few times a second.

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
        tuple(report.groups("type")),
        report.model_problem(),
    )


def _throttled(tell: Callable[[float], None] | None) -> Callable[[int, int], None] | None:
    if tell is None:
        return None
    last = 0.0

    def progress(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _TELL_S and total > 0:
            last = now
            tell(done / total)

    return progress
