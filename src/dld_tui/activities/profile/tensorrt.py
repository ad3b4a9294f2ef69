"""Profile a model with TensorRT: build its engine or load one, then latency, then the layers.

A run that is stopped leaves a partial report when passes were measured.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.codec import encode, optional
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError, UsageError
from dld_tui.core.events import Event, Finished, Log, Progress
from dld_tui.core.files.temporary import temporary_folder
from dld_tui.core.params import rerun_command, to_json
from dld_tui.core.report.latency import LatencyFigures
from dld_tui.core.tensorrt.run_settings import RunSettings

if TYPE_CHECKING:
    from dld_tui.backends.tensorrt.library import Library
    from dld_tui.backends.tensorrt.profiling import EngineProfileJob
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.document.identity import ModelIdentity
    from dld_tui.core.model.inputs.guess import Guess


@dataclass(frozen=True)
class Request(RunSettings):
    """What to build or to load, and how to measure it."""

    def require(self) -> None:
        """Refuse settings that exclude each other, before anything is loaded.

        Raises:
            UsageError: Says which.
        """
        if self.inputs is not None and self.shape:
            raise UsageError("--shape cannot be used with --inputs: the inputs fix the shapes")
        if self.refit_engine and (self.prebuilt is None or self.onnx is None):
            raise UsageError("--refit-from-model needs a model and --engine")
        if self.prebuilt is not None and self.output is not None:
            raise UsageError("--save-engine cannot be used with a built engine")


_PACKAGES = ("dld-tui", "onnx", "numpy", "tensorrt", "tensorrt-rtx-cu13", "tensorrt-rtx-cu12")
_NO_SETTINGS = ("model", "output", "report", "engine", "trust", "open_metadata")
"""Settings that are in the report anyway, or do not affect the measurement."""


@dataclass(frozen=True)
class Result:
    """The result of a measurement."""

    report: Path
    summary: LatencyFigures | None
    """None where no pass was timed."""
    phases_ms: dict[str, dict[str, float]]
    """Figures of the parts of a pass, by name: copies, compute, enqueue."""
    library: str
    engine: Path | None = optional()
    """Where the engine is kept."""
    saved: list[Path] = optional(factory=list)
    """Outputs that were saved."""


def run(request: Request) -> Iterator[Event]:
    """Build or load, measure, and write the report.

    Raises:
        UsageError: The settings do not match each other, the model or the library; or a prebuilt
            engine is not trusted.
        InputError: The model, the engine or an input cannot be read, or do not match.
        UnavailableError: There is no working library, or no supported GPU.
        ActivityError: The engine cannot be built or run.
    """
    from dld_tui.backends.machine.cupti import enable_nvtx
    from dld_tui.backends.tensorrt.cuda import select_device
    from dld_tui.backends.tensorrt.library import find_library
    from dld_tui.backends.tensorrt.profiling import ProfilingRun
    from dld_tui.core.llm.folder import open_document
    from dld_tui.core.machine.environment import environment
    from dld_tui.core.report.latency import latency_summary, parse_percentiles
    from dld_tui.core.tensorrt.availability import require_driver

    percentiles = parse_percentiles(request.percentile)
    request.require()
    machine = environment(_PACKAGES)  # before the run makes the machine busy
    prebuilt = _prebuilt(request)
    yield Progress(0, None, stage="Loading TensorRT")
    select_device(request.device)  # before anything of CUDA
    if request.gpu_timeline:
        enable_nvtx()  # before TensorRT makes its first one
    library = find_library(request.library)
    title = library.capabilities.title
    yield Log(f"Profiling with {title}")
    require_driver(
        library.capabilities,
        "Run it on a target that has a GPU, or only build the engine with dld build",
    )
    with contextlib.ExitStack() as stack:
        document = None
        identity = None
        if request.onnx is not None:
            from dld_tui.core.model.document.identity import identify

            yield Progress(0, None, stage="Reading the model")
            document = stack.enter_context(contextlib.closing(open_document(request.onnx)))
            identity = yield from identify(request.onnx, document)
        data, guess = prebuilt, None
        if data is None and document is not None:
            data, guess = yield from _build(request, library, document)
        if data is None:
            raise ActivityError("neither a model nor an engine is given")
        profiling = ProfilingRun(_plan(request, data, identity, guess), library, document, machine)
        yield from profiling.events()
    is_kept = prebuilt is None and request.output is not None
    yield Finished(
        Result(
            profiling.report_path,
            latency_summary(profiling.latencies, percentiles, "TensorRT"),
            profiling.times.summary(),
            title,
            request.output.absolute() if is_kept and request.output else None,
            [path.absolute() for path in profiling.saved],
        )
    )


def _prebuilt(request: Request) -> bytes | None:
    """Return the bytes of the engine to load, or None when one is built."""
    if request.prebuilt is None:
        return None
    from dld_tui.backends.tensorrt.runtime import trusted_bytes

    return trusted_bytes(request.prebuilt, request.trust)[0]


def _build(
    request: Request, library: Library, document: Document
) -> Generator[Event, None, tuple[bytes, Guess | None]]:
    """Build the engine; return its bytes, and guesses about its shapes."""
    from dld_tui.backends.tensorrt.builder import build
    from dld_tui.core.tensorrt.availability import require_available
    from dld_tui.core.tensorrt.profiles import profiles_for

    require_available(request, library.capabilities)
    chosen = profiles_for(document, request)
    profiles = chosen.ranges
    for remark in chosen.remarks:
        yield Log(remark)
    with temporary_folder("engine") as folder:
        # Layers with names only cannot be told apart by nodes, types and shapes.
        path = request.output or folder / f"{request.model.stem}.engine"
        settings = replace(request, output=path)
        built = yield from build(library, document, settings, profiles, path, request.log)
        yield Log(f"Built in {fmt.duration(built.seconds)}: {built.bytes:,} bytes")
        return path.read_bytes(), chosen.guess


def _plan(
    request: Request, data: bytes, model: ModelIdentity | None, guess: Guess | None
) -> EngineProfileJob:
    from dld_tui.backends.machine.capture import GpuPlan
    from dld_tui.backends.tensorrt.cuda import select_device
    from dld_tui.backends.tensorrt.profiling import EngineProfileJob
    from dld_tui.core.process.paths import report_path
    from dld_tui.core.report.latency import StopCondition

    settings = {k: v for k, v in to_json(request).items() if k not in _NO_SETTINGS}
    if request.prebuilt is not None:
        settings["engine"] = str(request.prebuilt.absolute())
    gpu = GpuPlan(
        device=select_device(request.device),
        timeline=request.gpu_timeline,
        counters=request.gpu_counters,
        interval_us=request.counter_interval,
        counter_passes=request.counter_passes,
        lock_clocks=request.lock_clocks,
    )
    return EngineProfileJob(
        title=(request.onnx or request.prebuilt or request.model).name,
        engine=request.prebuilt or request.engine_path,
        data=data,
        report=report_path(request.report, request.model).absolute(),
        device=request.device,
        plugins=request.all_plugins,
        dla_core=request.dla_core,
        # Those of a build are a profile's usual ones already, unless they are meant otherwise.
        shapes=request.shape,
        inputs=request.inputs,
        input_files=request.load_inputs,
        seed=request.seed,
        warm_up_seconds=request.warm_up_ms / 1000,
        timed=StopCondition(request.iterations, request.duration),
        streams=request.streams,
        cuda_graph=request.use_cuda_graph,
        spin_wait=request.spin_wait,
        transfers=not request.no_data_transfers,
        streaming_budget=request.weight_streaming_budget,
        layer_passes=request.layer_passes,
        hide_non_compute=request.hide_non_compute,
        layer_info=request.layer_info,
        refit_from=request.onnx if request.refit_engine else None,
        recorded_settings=settings,
        command=rerun_command(("dld", "profile", "tensorrt"), request),
        model={} if model is None else encode(model),
        gpu=gpu,
        guess=guess,
    )
