"""A profiling run with TensorRT: latency first, then the layers, each in a run of its own.

The library's profiler makes every pass wait, and a CUDA graph cannot be profiled by layers, so the
two are never measured together.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.backends.gpu_capture import GpuCapture, GpuPlan
from dld_tui.backends.tensorrt_cuda import Cuda
from dld_tui.backends.tensorrt_execution import Execution
from dld_tui.backends.tensorrt_inputs import Values, engine_inputs, fitting_profile
from dld_tui.backends.tensorrt_log import BuildLog
from dld_tui.backends.tensorrt_refit import refit
from dld_tui.backends.tensorrt_report import (
    plan_of,
    rows_of,
    save_set,
    write_layers,
    write_phases,
)
from dld_tui.backends.tensorrt_runtime import Engine
from dld_tui.backends.tensorrt_timing import LayerPass, PassTimer, PassTimes, layer_passes
from dld_tui.core.environment import CpuWatch, peak_memory
from dld_tui.core.errors import ActivityError, CancelledError, DldError, SaveError
from dld_tui.core.events import Event, Log, Metric, Progress
from dld_tui.core.inputs.guess import INPUTS, Guess
from dld_tui.core.inputs.shapes import Shape
from dld_tui.core.latency import Extent, measure
from dld_tui.core.report.store import ReportWriter
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.backends.tensorrt_library import Library
    from dld_tui.core.document.document import Document

_AUTO_LAYER_PASSES = 50
_LAYER_BURST = 10
_LATENCY, _LAYERS = "Measuring latency", "Measuring layers"


@dataclass(frozen=True)
class Plan:
    """What to run and how long."""

    title: str
    """Of the model, for people."""
    engine: Path
    data: bytes
    """The engine's bytes."""
    report: Path
    """Replaced if it exists."""
    device: int | str
    plugins: tuple[str, ...]
    dla_core: int | None
    shapes: tuple[str, ...]
    inputs: Path | None
    input_files: tuple[str, ...]
    seed: int
    warm_up_seconds: float
    timed: Extent
    streams: int
    cuda_graph: bool
    spin_wait: bool
    transfers: bool
    streaming_budget: str
    layer_passes: int | None
    hide_non_compute: bool
    layer_info: Path | None
    """Where to save the layers and times for other tools; None for nowhere."""
    refit_from: Path | None
    """A model whose weights to put in."""
    recorded_settings: dict[str, JSON]
    model: dict[str, JSON]
    """What a report keeps of the model's or the engine's file."""
    gpu: GpuPlan
    guess: Guess | None = None
    """What the build guessed of the shapes."""


class ProfilingRun:
    """One run, stage by stage. Iterate over :meth:`events` once.

    Args:
        plan: What to do.
        library: What to run it with.
        document: The model that the engine was built from; None when it is not known.
        environment: Facts of the machine.
        cuda: A stand-in for the device; None opens it.
        capture: A stand-in for what is learned of the GPU beside times.
    """

    def __init__(
        self,
        plan: Plan,
        library: Library,
        document: Document | None,
        environment: dict[str, JSON],
        cuda: Cuda | None = None,
        capture: GpuCapture | None = None,
    ) -> None:
        self.latencies: list[float] = []
        """Of the timed passes, in milliseconds."""
        self.report_path = plan.report
        self.times = PassTimes()
        """The parts of the timed passes."""
        self.saved: list[Path] = []
        """Files beside the report."""
        self._plan, self._library, self._document = plan, library, document
        self._environment = environment
        self._gpu = capture if capture is not None else GpuCapture(plan.gpu)
        self._cuda = cuda
        self._executions: list[Execution] = []
        self._values: Values = {}
        self._shapes: dict[str, Shape] = {}
        self._writer: ReportWriter | None = None
        self._notes: list[tuple[str, str]] = []
        self._profile = 0
        self._load_ms = 0.0
        self._graph_used = False
        self._logged: list[Log] = []

    def events(self) -> Iterator[Event]:
        """Do it. Stopped early, it leaves a partial report when passes were timed, else nothing.

        Raises:
            DldError: Of a class that tells what is at fault; the report is dealt with.
        """
        try:
            yield from self._stages()
            self._close()
            self.report_path = self._report.finish()
        except BaseException as error:
            self._close()
            self._give_up(error)
            raise

    def _close(self) -> None:
        for execution in self._executions:
            with contextlib.suppress(DldError):
                execution.close()
        self._executions.clear()
        self._gpu.close()
        if self._writer is not None:
            self._gpu.write_notes(self._writer)

    def _stages(self) -> Iterator[Event]:
        plan = self._plan
        yield Progress(0, None, stage="Looking at the GPU")
        if self._cuda is None:
            self._cuda = Cuda(plan.device, plan.spin_wait)
        with contextlib.closing(self._cuda) as cuda:
            facts = cuda.facts()
            self._gpu.open()
            self._environment.update({**facts, **self._gpu.environment, **self._versions()})
            yield Progress(0, None, stage="Loading the engine")
            engine = self._load(facts)
            yield from self._said()
            yield Metric("load", self._load_ms, "ms")
            self._make_inputs(engine)
            self._open(cuda, engine, plan.streams)
            watch = CpuWatch()
            yield from self._measure_latency(cuda)
            self._report.add_environment(watch.facts())
            self._measure_memory(engine)
            self._drop_executions()
            yield from self._measure_layers(cuda, engine)
            yield from self._said()
            del engine

    def _versions(self) -> dict[str, JSON]:
        found = self._library.facts
        return {found.module: found.version, "tensorrt_folder": found.path}

    def _make_inputs(self, engine: Engine) -> None:
        plan = self._plan
        given = (engine.inputs, plan.shapes, plan.inputs, plan.input_files, plan.seed)
        self._values, self._shapes = engine_inputs(*given, document=self._document)
        self._profile = fitting_profile(engine.inputs, self._shapes)
        if self._profile:  # shape tensors have values of their own in each
            self._values, self._shapes = engine_inputs(
                *given, profile=self._profile, document=self._document
            )

    def _said(self) -> Iterator[Event]:
        said, self._logged = self._logged, []
        yield from said

    def _load(self, facts: dict[str, JSON]) -> Engine:
        plan = self._plan
        begin = time.perf_counter()
        device = f"{facts['gpu']}, compute capability {facts['gpu_compute_capability']}"
        log = BuildLog(None, self._logged.append)
        engine = Engine(
            self._library, plan.data, log, str(plan.engine), device, plan.plugins, plan.dla_core
        )
        if plan.refit_from is not None:
            count = refit(engine, plan.refit_from)
            self._note(f"{count:,} weights of the engine were taken from {plan.refit_from.name}")
        budget = engine.stream_weights(plan.streaming_budget)
        if budget is not None:
            self._note(f"Weights are streamed: {budget:,} bytes of them stay on the GPU")
        self._load_ms = 1000 * (time.perf_counter() - begin)
        return engine

    def _note(self, text: str, level: str = "info") -> None:
        self._notes.append((text, level))

    def _open(self, cuda: Cuda, engine: Engine, count: int) -> None:
        for _ in range(count):
            made = Execution(cuda, engine, self._values, self._shapes, self._profile)
            self._executions.append(made)

    def _drop_executions(self) -> None:
        while self._executions:
            self._executions.pop().close()

    def _measure_latency(self, cuda: Cuda) -> Iterator[Event]:
        plan = self._plan
        yield Progress(0, None, stage="Warming up")
        if plan.cuda_graph:
            yield from self._capture_graphs()
        with contextlib.closing(PassTimer(cuda, self._executions, plan.transfers)) as timer:
            for burst in measure(timer, Extent(1, plan.warm_up_seconds)):
                yield Progress(burst.seconds, plan.warm_up_seconds or None, "s", "Warming up")
            timer.times.clear()
            self.times = timer.times
            begin = time.perf_counter()
            for burst in measure(timer, plan.timed):
                self.latencies += burst.milliseconds
                yield Progress(*plan.timed.progress(burst.calls, burst.seconds), _LATENCY)
                middle = sorted(burst.milliseconds)[len(burst.milliseconds) // 2]
                yield Metric("latency", middle, "ms")
                yield from self._gpu.metrics()
            wall = time.perf_counter() - begin
        self._report.add_latencies(self.latencies)
        self._report.set_fact("throughput_per_s", len(self.latencies) / wall)
        write_phases(self._report, self.times, plan.transfers)
        self._report.flush()

    def _capture_graphs(self) -> Iterator[Event]:
        try:
            for execution in self._executions:
                execution.capture()
            self._graph_used = True
        except ActivityError as error:
            text = f"The passes ran without a CUDA graph: {error.message}"
            self._note(text, "warning")
            yield Log(text, "warning")

    def _measure_memory(self, engine: Engine) -> None:
        found = {
            "peak_memory_bytes": peak_memory(),
            "gpu_memory_bytes": self._gpu.memory(),
            "activation_bytes": engine.memory_bytes(),
        }
        for name, size in found.items():
            if size is not None:
                self._report.set_fact(name, size)
        self._report.set_fact("engine", engine.facts())

    def _measure_layers(self, cuda: Cuda, engine: Engine) -> Iterator[Event]:
        wanted = self._plan.layer_passes
        count = min(_AUTO_LAYER_PASSES, len(self.latencies)) if wanted is None else wanted
        information = engine.layer_information()
        passes: list[LayerPass] = []
        origin_ns = time.time_ns()
        if count:
            yield Progress(0, count, "passes", _LAYERS)
            self._open(cuda, engine, 1)
            layer_passes(self._executions[0], 1)  # to warm up
            origin_ns = time.time_ns()
            for passes_so_far in self._layer_bursts(count, passes):
                yield Progress(passes_so_far, count, "passes", _LAYERS)
            self._drop_executions()
        yield Progress(0, None, stage="Writing the report")
        plan = plan_of(information, passes)
        names = [name for name, _ in passes[0].layers] if passes else []
        rows = rows_of(names, plan, self._document, self._plan.hide_non_compute)
        spans = write_layers(self._report, passes, rows, origin_ns)
        if count:
            self._gpu.write_layers(self._report, origin_ns, spans)
            self._gpu.write_counters(self._report, origin_ns)
        if self._plan.layer_info is not None:
            self.saved = save_set(self._plan.layer_info, information, passes, self.times)

    def _layer_bursts(self, count: int, passes: list[LayerPass]) -> Iterator[int]:
        """Run the passes with the GPU watched, the last of them with its counters."""
        gpu, execution = self._gpu, self._executions[0]
        gpu.start_trace(calls=True)
        sampling = gpu.plan_samples(sorted(self.latencies)[len(self.latencies) // 2], count)
        sampled = min(count, sampling.passes) if sampling is not None else 0
        for last, most in ((False, count - sampled), (True, sampled)):
            if last and sampling is not None:
                gpu.start_samples(sampling)
            done = 0
            while done < most:
                burst = min(_LAYER_BURST, most - done)
                passes += layer_passes(execution, burst)
                done += burst
                gpu.between_passes()
                yield len(passes)
            if last and sampling is not None:
                gpu.stop_samples()
        gpu.stop_trace()

    @property
    def _report(self) -> ReportWriter:
        """The report, which is started when there is something to write."""
        if self._writer is None:
            plan = self._plan
            shapes: dict[str, JSON] = {k: list[JSON](v) for k, v in self._shapes.items()}
            used: dict[str, JSON] = {
                "input_shapes": shapes,
                "optimization_profile": self._profile,
                "cuda_graph_used": self._graph_used,
            }
            self._writer = ReportWriter.create(
                plan.report,
                network=plan.title,
                backend=self._library.facts.title,
                execution_provider="TensorRT",
                device=str(self._environment.get("gpu", "GPU")),
                model=plan.model,
                settings={**plan.recorded_settings, **used},
                environment=self._environment,
                overwrite=True,
            )
            self._writer.set_fact("load_ms", self._load_ms)
            if plan.guess is not None and plan.guess.shapes == self._shapes:
                self._writer.set_fact(INPUTS, plan.guess.to_json())
            for text, level in self._notes:
                self._writer.note(text, level)
        return self._writer

    def _give_up(self, error: BaseException) -> None:
        if self._writer is None or isinstance(error, SaveError):  # what is on disk is all there is
            return
        cancelled = isinstance(error, (GeneratorExit, CancelledError))
        kept = self._writer.abort("the run was cancelled" if cancelled else str(error))
        if kept is not None and isinstance(error, DldError) and error.hint is None:
            error.hint = f"What was measured before is in {kept}"
