"""Profile a model with ONNX Runtime: latency first, then the time of each layer.

Result: ``{"report": PATH, "summary": {...}}``. A run that is stopped leaves a partial report when
passes were measured, else nothing.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core.errors import UsageError
from dld_tui.core.events import Event, Finished, Progress
from dld_tui.core.params import param, to_json
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.backends.onnxruntime_profiling import Plan
    from dld_tui.core.latency import Extent

_AUTO_PASSES, _AUTO_SECONDS, _AUTO_MOST = 10, 3.0, 10_000
_FIGURES = ("median", "min", "max", "mean", "std", "p90", "p95", "p99")
_PACKAGES = ("dld-tui", "onnxruntime", "onnxruntime-gpu", "onnx", "numpy")


@dataclass(frozen=True)
class Request:
    """What to run and how long."""

    model: Path = param(
        label="Model",
        help="The ONNX model to profile.",
        kind="file",
        positional=True,
        metavar="MODEL",
    )
    output: Path | None = param(
        None,
        label="Report",
        help="Where to write the report. By default NAME.dldprof in the current folder, with a"
        " number where that exists.",
        spellings=("--output", "-o"),
        kind="output",
        metavar="REPORT",
    )
    provider: str = param(
        "CPU",
        label="Provider",
        help="Execution provider, such as CPU or CUDA. Several, separated by commas, are tried in"
        " this order for each operator.",
        spellings=("--provider", "--providers"),
        metavar="NAME",
    )
    shape: tuple[str, ...] = param(
        (),
        label="Input shapes",
        help="Shape of an input, as NAME:1x3x224x224 or NAME:[1,3,224,224]; several may be"
        " separated by commas. A free dimension takes what another given shape says of its name,"
        " else 1.",
        spellings=("--shape", "--shapes", "--input-shapes"),
        kind="shapes",
        metavar="NAME:DIMS",
    )
    inputs: Path | None = param(
        None,
        label="Input data",
        help="Folder with input_0.pb, input_1.pb, … or NAME.npy, or with folders"
        " test_data_set_0, … of these, which take turns. By default inputs are random.",
        spellings=("--inputs",),
        kind="folder",
        metavar="DIR",
    )
    iterations: int | None = param(
        None,
        label="Iterations",
        help="Timed passes; at least so many where --duration is given, too. By default at least"
        " 10, and as many as take 3 seconds, up to 10,000.",
        minimum=1,
        maximum=10_000_000,
        spellings=("--iterations",),
        metavar="N",
    )
    duration: float | None = param(
        None,
        label="Duration",
        help="Measure for at least so long.",
        unit="s",
        minimum=0,
        spellings=("--duration",),
        metavar="S",
    )
    warm_up: int = param(
        10,
        label="Warm-up passes",
        help="Passes before the timed ones; one is always made. As Polygraphy counts them:"
        " trtexec's --warmUp is a time.",
        minimum=0,
        spellings=("--warm-up",),
        metavar="N",
    )
    warm_up_ms: float = param(
        0.0,
        label="Warm-up time",
        help="Warm up for at least so long, too.",
        unit="ms",
        minimum=0,
        spellings=("--warm-up-ms", "--warmUp"),
        metavar="MS",
    )
    threads: int = param(
        0,
        label="Threads",
        help="Threads within an operator; 0 is one a core.",
        minimum=0,
        maximum=4096,
        spellings=("--threads", "--intra-threads"),
        metavar="N",
        page="Session",
    )
    inter_threads: int = param(
        0,
        label="Operators at once",
        help="Above 1, that many operators run in parallel where the graph allows it.",
        minimum=0,
        maximum=4096,
        spellings=("--inter-threads",),
        metavar="N",
        page="Session",
    )
    optimization_level: str = param(
        "all",
        label="Optimisation level",
        help="How far ONNX Runtime rewrites the graph.",
        choices=("disabled", "basic", "extended", "layout", "all"),
        spellings=("--optimization-level",),
        page="Session",
    )
    device_id: int = param(
        0,
        label="Device",
        help="Number of the device, for providers that have several.",
        minimum=0,
        spellings=("--device-id", "--device"),
        metavar="N",
        page="Session",
    )
    layer_passes: int | None = param(
        None,
        label="Layer passes",
        help="Passes of the run that measures the layers; 0 leaves it out. By default as many as"
        " the timed ones, up to 50, less for large models.",
        minimum=0,
        spellings=("--layer-passes",),
        metavar="N",
        page="Measuring",
    )
    seed: int = param(
        0,
        label="Seed",
        help="Of the random inputs.",
        minimum=0,
        spellings=("--seed",),
        metavar="N",
        page="Measuring",
    )
    percentile: str = param(
        "90,95,99",
        label="Percentiles",
        help="Percentiles of the latency to print, separated by commas.",
        spellings=("--percentile",),
        metavar="P,…",
        page="Measuring",
    )


def run(request: Request) -> Iterator[Event]:
    """Measure and write the report.

    Raises:
        UsageError: The settings do not fit each other or the model.
        InputError: The model or an input cannot be read.
        UnavailableError: ONNX Runtime or the provider is missing.
        ActivityError: ONNX Runtime cannot run the model.
    """
    from dld_tui.backends.onnxruntime_profiling import ProfilingRun
    from dld_tui.core.document.document import Document
    from dld_tui.core.environment import environment

    percentiles = _percentiles(request.percentile)
    if request.inputs is not None and request.shape:
        raise UsageError("--shape does not go with --inputs, whose data have shapes")
    plan = _plan(request)
    facts = environment(_PACKAGES)  # before the run makes the machine busy
    yield Progress(0, None, stage="Reading the model")
    with contextlib.closing(Document.open(request.model)) as document:
        profiling = ProfilingRun(plan, document, facts)
        yield from profiling.events()
    summary = _summary(profiling.latencies, percentiles)
    yield Finished({"report": str(profiling.report_path), "summary": summary})


def _plan(request: Request) -> Plan:
    from dld_tui.backends import onnxruntime as backend
    from dld_tui.backends.onnxruntime_profiling import Plan

    names = [name.strip() for name in request.provider.split(",") if name.strip()]
    settings = to_json(request)
    del settings["model"], settings["output"]  # known from the report itself
    return Plan(
        model=request.model,
        report=_output(request).absolute(),
        session=backend.SessionSettings(
            providers=tuple(backend.find_provider(name) for name in names or ["CPU"]),
            device_id=request.device_id,
            threads=request.threads,
            inter_threads=request.inter_threads,
            optimization_level=request.optimization_level,
        ),
        shapes=request.shape,
        inputs=request.inputs,
        seed=request.seed,
        warm_up_passes=request.warm_up,
        warm_up_seconds=request.warm_up_ms / 1000,
        timed=_extent(request.iterations, request.duration),
        layer_passes=request.layer_passes,
        recorded_settings=settings,
    )


def _extent(passes: int | None, seconds: float | None) -> Extent:
    from dld_tui.core.latency import Extent

    if seconds is not None:
        return Extent(passes or _AUTO_PASSES, seconds)
    if passes is not None:
        return Extent(passes)
    return Extent(_AUTO_PASSES, _AUTO_SECONDS, _AUTO_MOST)


def _output(request: Request) -> Path:
    """Return where the report shall be."""
    if request.output is not None:
        return request.output
    stem = request.model.stem or "model"
    path, number = Path(f"{stem}.dldprof"), 1
    while os.path.lexists(path):
        number += 1
        path = Path(f"{stem}-{number}.dldprof")
    return path


def _percentiles(text: str) -> list[float]:
    try:
        percentiles = [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        percentiles = [-1.0]
    if not all(0 <= percentile <= 100 for percentile in percentiles):
        raise UsageError(f"--percentile is {text!r}; write numbers from 0 to 100, as in 90,95,99")
    return percentiles


def _summary(latencies: list[float], percentiles: list[float]) -> dict[str, JSON]:
    """Return the figures of the latency run, in milliseconds."""
    from dld_tui.core.report.statistics import percentile, summarise

    figures = summarise(latencies)
    if figures is None:
        return {}
    ordered = sorted(latencies)
    return {
        "passes": figures.count,
        "latency_ms": {key: value for key, value in asdict(figures).items() if key in _FIGURES},
        "throughput": figures.throughput,
        "percentiles_ms": {f"{p:g}": percentile(ordered, p) for p in percentiles},
    }
