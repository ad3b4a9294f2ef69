"""Profile a model with ONNX Runtime: latency first, then a GPU's work, then the time of each layer.

A run that is stopped leaves a partial report when passes were measured, else nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.activities.profile_onnxruntime_request import Request as Request
from dld_tui.core.codec import optional
from dld_tui.core.errors import UsageError
from dld_tui.core.events import Event, Finished, Progress
from dld_tui.core.latency import LatencyFigures
from dld_tui.core.params import to_json

if TYPE_CHECKING:
    from dld_tui.backends.onnxruntime.profiling import Plan
    from dld_tui.core.latency import Extent

_AUTO_PASSES, _AUTO_SECONDS, _AUTO_MOST = 10, 3.0, 10_000
_PACKAGES = ("dld-tui", "onnxruntime", "onnxruntime-gpu", "onnx", "numpy")


@dataclass(frozen=True)
class Result:
    """What was measured."""

    report: Path
    summary: LatencyFigures | None
    """None where no pass was timed."""
    optimized_model: Path | None = optional()


def run(request: Request) -> Iterator[Event]:
    """Measure and write the report.

    Raises:
        UsageError: The settings do not fit each other or the model.
        InputError: The model or an input cannot be read.
        UnavailableError: ONNX Runtime or the provider is missing.
        ActivityError: ONNX Runtime cannot run the model.
    """
    from dld_tui.backends.onnxruntime.profiling import ProfilingRun
    from dld_tui.core.document.document import Document
    from dld_tui.core.environment import environment
    from dld_tui.core.latency import latency_summary, parse_percentiles

    percentiles = parse_percentiles(request.percentile)
    request.require()
    plan = _plan(request)
    facts = environment(_PACKAGES)  # before the run makes the machine busy
    yield Progress(0, None, stage="Reading the model")
    with contextlib.closing(Document.open(request.model)) as document:
        profiling = ProfilingRun(plan, document, facts)
        yield from profiling.events()
    summary = latency_summary(profiling.latencies, percentiles)
    yield Finished(Result(profiling.report_path, summary, profiling.optimized_path))


def _plan(request: Request) -> Plan:
    from dld_tui.backends.gpu.capture import GpuPlan
    from dld_tui.backends.gpu.jetson import Jetson
    from dld_tui.backends.onnxruntime.profiling import Plan
    from dld_tui.core.latency import report_path

    session = request.session_settings()
    settings = to_json(request)
    del settings["model"], settings["output"]  # known from the report itself
    gpu = GpuPlan(
        device=request.device_id,
        timeline=request.gpu_timeline,
        counters=request.gpu_counters,
        interval_us=request.counter_interval,
        counter_passes=request.counter_passes,
        lock_clocks=request.lock_clocks,
    )
    if request.lock_clocks and not session.uses_cuda and Jetson().board is None:
        raise UsageError("--lock-clocks needs a Jetson, or a provider that runs on an NVIDIA GPU")
    if session.cuda_graph and not request.io_binding:
        raise UsageError(
            "a CUDA graph needs inputs and outputs that stay where they are",
            hint="Add --io-binding, or leave out the provider option of the graph",
        )
    return Plan(
        model=request.model,
        report=report_path(request.output, request.model).absolute(),
        session=session,
        shapes=request.shape,
        inputs=request.inputs,
        seed=request.seed,
        warm_up_passes=request.warm_up,
        warm_up_seconds=request.warm_up_ms / 1000,
        timed=_extent(request.iterations, request.duration),
        layer_passes=request.layer_passes,
        recorded_settings=settings,
        gpu=gpu if session.uses_cuda else None,
        lock_clocks=request.lock_clocks,
        io_binding=request.io_binding,
        optimized_model=request.optimized_model,
    )


def _extent(passes: int | None, seconds: float | None) -> Extent:
    from dld_tui.core.latency import Extent

    if seconds is not None:
        return Extent(passes or _AUTO_PASSES, seconds)
    if passes is not None:
        return Extent(passes)
    return Extent(_AUTO_PASSES, _AUTO_SECONDS, _AUTO_MOST)
