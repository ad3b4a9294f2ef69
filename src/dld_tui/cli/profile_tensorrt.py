"""``dld profile tensorrt``."""

from __future__ import annotations

from dld_tui.cli.activity import Result, activity_command
from dld_tui.cli.output import write
from dld_tui.cli.profile_onnxruntime import percentile_line, report_of
from dld_tui.cli.report import print_report
from dld_tui.core.fmt import milliseconds
from dld_tui.core.tensorrt.arguments import plain_arguments
from dld_tui.core.text import visible

_PHASES = (("h2d", "copy to GPU"), ("compute", "compute"), ("d2h", "copy back"), ("enqueue", "CPU"))


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


def _show(result: Result, as_json: bool) -> None:
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


command = activity_command("tensorrt", "profile_tensorrt", _show, plain_arguments)
