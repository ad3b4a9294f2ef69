"""``dld profile onnxruntime``."""

from __future__ import annotations

from pathlib import Path

from dld_tui.cli.activity import Result, activity_command
from dld_tui.cli.output import write
from dld_tui.cli.report import print_report
from dld_tui.core.errors import ActivityError
from dld_tui.core.fmt import milliseconds
from dld_tui.core.text import visible


def report_of(result: Result) -> Path:
    """Return the report that a profiling job wrote.

    Raises:
        ActivityError: The job's result names none.
    """
    report = result.get("report")
    if not isinstance(report, str):
        raise ActivityError("the job has finished without a report")
    return Path(report)


def percentile_line(result: Result) -> str:
    """Return the percentiles asked for, e.g. ``p50 1.234  p99 2.000 ms``; may be empty."""
    summary = result.get("summary")
    percentiles = summary.get("percentiles_ms") if isinstance(summary, dict) else None
    if not isinstance(percentiles, dict):
        return ""
    figures = [
        f"p{name} {milliseconds(value)}"
        for name, value in percentiles.items()
        if isinstance(value, (int, float))
    ]
    return f"{'  '.join(figures)} ms" if figures else ""


def _show(result: Result, as_json: bool) -> None:
    print_report(report_of(result), as_json=as_json, latency=percentile_line(result))
    saved = result.get("optimized_model")
    if isinstance(saved, str) and not as_json:
        write(f"Optimised model: {visible(saved)}")


command = activity_command("onnxruntime", "profile_onnxruntime", _show)
