"""What the commands of ``dld profile`` print."""

from __future__ import annotations

from collections.abc import Mapping

from dld_tui.activities.profile_onnxruntime import Result as OrtResult
from dld_tui.activities.profile_tensorrt import Result as TensorRTResult
from dld_tui.cli.output import write
from dld_tui.cli.report import print_report
from dld_tui.core.fmt import milliseconds
from dld_tui.core.latency import LatencyFigures
from dld_tui.core.text import visible

_PHASES = (("h2d", "copy to GPU"), ("compute", "compute"), ("d2h", "copy back"), ("enqueue", "CPU"))


def percentile_line(summary: LatencyFigures | None) -> str:
    """Return the percentiles asked for, e.g. ``p50 1.234  p99 2.000 ms``; may be empty."""
    if summary is None or not summary.percentiles_ms:
        return ""
    figures = [f"p{name} {milliseconds(ms)}" for name, ms in summary.percentiles_ms.items()]
    return f"{'  '.join(figures)} ms"


def phases_line(phases: Mapping[str, Mapping[str, float]]) -> str:
    """Return the medians of a pass's parts, as ``compute 0.812  copy back 0.010 ms``."""
    parts = [
        f"{title} {milliseconds(phases[name]['median'])}"
        for name, title in _PHASES
        if "median" in phases.get(name, {})
    ]
    return f"{'  '.join(parts)} ms" if parts else ""


def show_onnxruntime(result: OrtResult, as_json: bool) -> None:
    """Print the report, and where the model is that was saved."""
    latency = percentile_line(result.summary)
    print_report(result.report, as_json=as_json, latency=latency)
    if result.optimized_model is not None and not as_json:
        write(f"Optimised model: {visible(str(result.optimized_model))}")


def show_tensorrt(result: TensorRTResult, as_json: bool) -> None:
    """Print the report, and where the engine and the outputs are that were saved."""
    lines = (percentile_line(result.summary), phases_line(result.phases_ms))
    latency = "   ".join(line for line in lines if line)
    print_report(result.report, as_json=as_json, latency=latency)
    if as_json:
        return
    if result.engine is not None:
        write(f"Engine: {visible(str(result.engine))}")
    for path in result.saved:
        write(f"Saved: {visible(str(path))}")
