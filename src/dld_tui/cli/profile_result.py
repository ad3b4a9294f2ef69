"""What the commands of ``dld profile`` print."""

from __future__ import annotations

from pathlib import Path

from dld_tui.cli.activity import Result
from dld_tui.cli.output import write
from dld_tui.cli.report import print_report
from dld_tui.core.errors import ActivityError
from dld_tui.core.fmt import milliseconds
from dld_tui.core.text import visible

_PHASES = (("h2d", "copy to GPU"), ("compute", "compute"), ("d2h", "copy back"), ("enqueue", "CPU"))


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


def phases_line(result: Result) -> str:
    """Return the medians of a pass's parts, as ``compute 0.812  copy back 0.010 ms``."""
    phases = result.get("phases_ms")
    if not isinstance(phases, dict):
        return ""
    parts = []
    for name, title in _PHASES:
        figures = phases.get(name)
        median = figures.get("median") if isinstance(figures, dict) else None
        if isinstance(median, (int, float)):
            parts.append(f"{title} {milliseconds(median)}")
    return f"{'  '.join(parts)} ms" if parts else ""


def show_onnxruntime(result: Result, as_json: bool) -> None:
    """Print the report, and where the model is that was saved."""
    print_report(report_of(result), as_json=as_json, latency=percentile_line(result))
    saved = result.get("optimized_model")
    if isinstance(saved, str) and not as_json:
        write(f"Optimised model: {visible(saved)}")


def show_tensorrt(result: Result, as_json: bool) -> None:
    """Print the report, and where the engine and the outputs are that were saved."""
    lines = (percentile_line(result), phases_line(result))
    latency = "   ".join(line for line in lines if line)
    print_report(report_of(result), as_json=as_json, latency=latency)
    if as_json:
        return
    kept = result.get("engine")
    if isinstance(kept, str):
        write(f"Engine: {visible(kept)}")
    saved = result.get("saved")
    for path in saved if isinstance(saved, list) else ():
        write(f"Saved: {visible(str(path))}")
