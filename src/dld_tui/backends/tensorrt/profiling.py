"""A profiling run with TensorRT: latency first, then the layers, each in a run of its own.

Latency is the sum of the copy to the device, the GPU's work and the copy back, by events on the
stream. Each stream has one pass under way at a time; trtexec overlaps two, so that its latency
holds waits which these figures do not, and its throughput is that of two streams here.

The library's profiler makes every pass wait, and a CUDA graph cannot be profiled by layers, so
the two are never measured together.
"""

from __future__ import annotations

import contextlib
import json
import time
from array import array
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, field
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.backends.machine.board_watch import BoardWatch
from dld_tui.backends.machine.capture import GpuCapture, GpuPlan
from dld_tui.backends.tensorrt.cuda import Cuda
from dld_tui.backends.tensorrt.execution import Execution, Values, engine_inputs, fitting_profile
from dld_tui.backends.tensorrt.log import BuildLog
from dld_tui.backends.tensorrt.runtime import Engine, refit
from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError, DldError, InputError
from dld_tui.core.events import Event, Log, Metric, Progress
from dld_tui.core.files.temporary import temporary_folder
from dld_tui.core.files.writer import write_text
from dld_tui.core.machine.environment import CpuWatch, peak_memory
from dld_tui.core.model.inputs.guess import Guess
from dld_tui.core.model.inputs.guessed_input import INPUTS
from dld_tui.core.model.inputs.shape_texts import Shape
from dld_tui.core.notes import Note, NoteKind
from dld_tui.core.params import root_name
from dld_tui.core.report.enqueueing import enqueue_note, is_launch_bound
from dld_tui.core.report.gpu_kernels import NamedRange, PassSpan, spans_of_ranges
from dld_tui.core.report.groups import layer_type
from dld_tui.core.report.latency import StopCondition, measure
from dld_tui.core.report.records import Layer, PassState
from dld_tui.core.report.schema import COMMAND
from dld_tui.core.report.store import ReportWriter
from dld_tui.core.statistics import median, share_percent, summarise, trtexec_percentile
from dld_tui.core.tensorrt.plan.engine_plan import EnginePlan
from dld_tui.core.tensorrt.plan.layer_kinds import is_shape_work
from dld_tui.core.tensorrt.plan.layer_records import layer_records
from dld_tui.core.tensorrt.plan.mapping import map_plan, mapping_notes
from dld_tui.core.tensorrt.plan.reader import open_plan
from dld_tui.core.types import JSON, PlainValues

if TYPE_CHECKING:
    from dld_tui.backends.tensorrt.library import Library
    from dld_tui.core.model.document.document import Document

if TYPE_CHECKING:
    import tensorrt as trt

    from dld_tui.backends.tensorrt.cuda import Cuda
else:
    from dld_tui.backends.tensorrt.library import trt

_FIGURES = ("median", "mean", "min", "max", "std", "p90", "p95", "p99")


def _times() -> array[float]:
    return array("d")


@dataclass
class PassTimes:
    """One value a pass, in milliseconds."""

    h2d: array[float] = field(default_factory=_times)
    compute: array[float] = field(default_factory=_times)
    d2h: array[float] = field(default_factory=_times)
    enqueue: array[float] = field(default_factory=_times)
    """Of the processor: how long the call took that asks for the work."""
    starts: array[float] = field(default_factory=_times)
    """When the pass was asked for, since the first one."""

    def clear(self) -> None:
        """Forget all passes."""
        for values in (self.h2d, self.compute, self.d2h, self.enqueue, self.starts):
            del values[:]

    def summary(self) -> dict[str, dict[str, float]]:
        """Return the figures of each part, and the passes a second."""
        summary: dict[str, dict[str, float]] = {}
        for name in ("h2d", "compute", "d2h", "enqueue"):
            # Percentiles stand beside those of trtexec.
            figures = summarise(getattr(self, name), percentile_at=trtexec_percentile)
            if figures is not None and figures.max > 0:
                every = asdict(figures)
                summary[name] = {figure: every[figure] for figure in _FIGURES}
        return summary

    def rows(self) -> list[dict[str, float]]:
        """Return the passes as ``trtexec --exportTimes`` writes them."""
        rows: list[dict[str, float]] = []
        for start, h2d, compute, d2h, enqueue in zip(
            self.starts, self.h2d, self.compute, self.d2h, self.enqueue, strict=True
        ):
            computing, copying = start + h2d, start + h2d + compute
            rows.append(
                {
                    "startEnqMs": start,
                    "endEnqMs": start + enqueue,
                    "startH2dMs": start,
                    "endH2dMs": computing,
                    "startComputeMs": computing,
                    "endComputeMs": copying,
                    "startD2hMs": copying,
                    "endD2hMs": copying + d2h,
                    "h2dMs": h2d,
                    "computeMs": compute,
                    "d2hMs": d2h,
                    "latencyMs": h2d + compute + d2h,
                }
            )
        return rows


class _Slot:
    """One execution with the events of its pass."""

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        cuda = execution.cuda
        self.events = [cuda.event() for _ in range(4)]
        self.enqueue_ms = self.start_ms = 0.0


class PassTimer:
    """Times passes of an engine. Close it at the end.

    Args:
        cuda: The device.
        executions: One a stream.
        transfers: Copy inputs and outputs with every pass.
    """

    def __init__(self, cuda: Cuda, executions: Sequence[Execution], transfers: bool) -> None:
        self.times = PassTimes()
        self._cuda, self._transfers = cuda, transfers
        self._slots = [_Slot(execution) for execution in executions]
        self._begin_ns = 0

    def __call__(self, calls: int, durations: array[int], most: int, until: int) -> int:
        """Time passes as :data:`dld_tui.core.report.latency.TimeCalls` says."""
        under_way: deque[_Slot] = deque()
        launched = done = 0
        if not calls or not self._begin_ns:
            self._begin_ns = time.perf_counter_ns()
        while True:
            while (
                launched < most
                and len(under_way) < len(self._slots)
                and (not launched or time.perf_counter_ns() < until)
            ):
                slot = self._slots[launched % len(self._slots)]
                self._launch(slot)
                under_way.append(slot)
                launched += 1
            if not under_way:
                return done
            durations[done] = round(1e6 * self._finish(under_way.popleft()))
            done += 1

    def _launch(self, slot: _Slot) -> None:
        cuda, execution, (begin, start, end, done) = self._cuda, slot.execution, slot.events
        stream = execution.stream
        slot.start_ms = (time.perf_counter_ns() - self._begin_ns) / 1e6
        if self._transfers:
            cuda.record(begin, stream)
            execution.copy_inputs()
        cuda.record(start, stream)
        before = time.perf_counter_ns()
        execution.enqueue()
        slot.enqueue_ms = (time.perf_counter_ns() - before) / 1e6
        cuda.record(end, stream)
        if self._transfers:
            execution.copy_outputs()
            cuda.record(done, stream)

    def _finish(self, slot: _Slot) -> float:
        """Wait for a pass, keep its times and return its latency in milliseconds."""
        cuda, (begin, start, end, done) = self._cuda, slot.events
        cuda.synchronize_event(done if self._transfers else end)
        compute = cuda.elapsed_ms(start, end)
        h2d = cuda.elapsed_ms(begin, start) if self._transfers else 0.0
        d2h = cuda.elapsed_ms(end, done) if self._transfers else 0.0
        times = self.times
        times.h2d.append(h2d)
        times.compute.append(compute)
        times.d2h.append(d2h)
        times.enqueue.append(slot.enqueue_ms)
        times.starts.append(slot.start_ms)
        return h2d + compute + d2h

    def close(self) -> None:
        """Give the events back."""
        for slot in self._slots:
            for event in slot.events:
                self._cuda.destroy_event(event)
            slot.events = []
        self._slots.clear()


@dataclass
class LayerPass:
    """One pass with the library's profiler on."""

    start_ns: int
    """By the clock of the system."""
    duration_ns: int
    layers: list[tuple[str, float]]
    """(name, milliseconds) in the order of execution. Names are untrusted text and may repeat."""


def layer_passes(execution: Execution, passes: int) -> list[LayerPass]:
    """Run an engine with the library's profiler on, and return the times of its layers.

    The profiler makes the library wait after every pass, so latency is never taken from these.
    """
    rows: list[tuple[str, float]] = []

    class Profiler(trt.IProfiler):
        """Takes the time of one layer."""

        def __init__(self) -> None:
            trt.IProfiler.__init__(self)

        def report_layer_time(self, layer_name: str, ms: float) -> None:
            """Take it."""
            rows.append((layer_name, ms))

    recorded = []
    with execution.profiled(Profiler()):
        for _ in range(passes):
            rows.clear()
            start = time.time_ns()
            execution.enqueue()
            execution.wait()
            recorded.append(LayerPass(start, time.time_ns() - start, list(rows)))
    return recorded


_TRACK = "engine layers"
_SUPPORT = frozenset({"Constant", "NoOp", "Signal", "Wait", "ShapeHostToDevice", "shape_call"})
"""Types of layers that compute nothing of the model."""
_COPIES = ("HostToDeviceCopy", "DeviceToHostCopy", "DeviceToShapeHostCopy", "[HostToDevice")


@dataclass
class LayerRows:
    """Which record each row of the profiler is of."""

    layers: list[Layer | None] = field(default_factory=list)
    """None is left out of the report."""
    notes: list[str] = field(default_factory=list)


def plan_of(information: str, passes: Sequence[LayerPass]) -> EnginePlan | None:
    """Return what an engine's inspector says, with the times of its layers; None if unreadable."""
    with temporary_folder("layers") as folder:
        graph, profile = folder / "engine.trt.json", folder / "engine.profile.json"
        graph.write_text(information, encoding="utf-8", errors="replace")
        profile.write_text(json.dumps(profile_rows(passes)), encoding="utf-8", errors="replace")
        try:
            return open_plan(graph, profile=profile, beside=False)
        except InputError:
            return None


def profile_rows(passes: Sequence[LayerPass]) -> list[dict[str, JSON]]:
    """Return the layers' times as ``trtexec --exportProfile`` writes them."""
    times = _by_place(passes)
    whole = sum(sum(values) for _, values in times)
    rows: list[dict[str, JSON]] = [{"count": len(passes)}]
    for name, values in times:
        total = sum(values)
        rows.append(
            {
                "name": name,
                "timeMs": total,
                "averageMs": total / len(values),
                "medianMs": median(values),
                "percentage": share_percent(total, whole) or 0.0,
            }
        )
    return rows


def _by_place(passes: Sequence[LayerPass]) -> list[tuple[str, list[float]]]:
    """Return each layer's name and times; names repeat, so a layer is its place in the pass."""
    if not passes:
        return []
    names = [name for name, _ in passes[0].layers]
    same = [pass_ for pass_ in passes if [name for name, _ in pass_.layers] == names]
    return [(name, [pass_.layers[place][1] for pass_ in same]) for place, name in enumerate(names)]


def rows_of(
    names: Iterable[str], plan: EnginePlan | None, document: Document | None, hide: bool
) -> LayerRows:
    """Return the record of each row of the profiler, in their order.

    Args:
        names: Of one pass.
        plan: What the inspector says of the layers.
        document: The model, whose nodes the layers compute.
        hide: Leave out what computes nothing of the model.
    """
    rows = LayerRows()
    mapping = map_plan(plan, document) if plan is not None else {}
    waiting: dict[str, deque[Layer]] = defaultdict(deque)
    folded: dict[str, str] = {}
    support: set[str] = set()
    if plan is not None:
        kept = {layer.index for layer in plan.layers}
        folded = {layer.name: layer.type for layer in plan.all_layers if layer.index not in kept}
        support |= folded.keys()
        for record in layer_records(plan, mapping):
            waiting[record.name].append(record)
            if hide and is_shape_work(plan.layers[record.index]):
                support.add(record.name)
        rows.notes += mapping_notes({layer.index: mapping[layer.index] for layer in plan.layers})
        if plan.names_only:
            rows.notes.append(
                "The engine gives only the names of its layers: build it with --verbosity detailed"
            )
    hidden = 0
    for name in names:
        known = waiting[name]
        layer = known.popleft() if known else Layer(name, folded.get(name) or layer_type(name))
        if hide and (name in support or layer.type in _SUPPORT or _is_copy(name)):
            hidden += 1
            rows.layers.append(None)
        else:
            rows.layers.append(layer)
    if hidden:
        rows.notes.append(f"{fmt.plural(hidden, 'layer')} without computation hidden")
    return rows


def _is_copy(name: str) -> bool:
    return any(mark in name for mark in _COPIES)


def write_layers(
    writer: ReportWriter,
    passes: Sequence[LayerPass],
    rows: LayerRows,
    origin_ns: int,
    ranges: Sequence[NamedRange] = (),
) -> list[PassSpan]:
    """Write layers and passes, and return where the passes are, in microseconds since `origin_ns`.

    The profiler tells durations alone, so the layers of a pass are put one after another.

    Args:
        writer: Of the report.
        passes: What was measured.
        rows: The layers as they are shown.
        origin_ns: The zero of the clock.
        ranges: What TensorRT named on the CPU: its layers, where the engine has their details.
    """
    if not passes:
        return []
    numbers = [None if layer is None else writer.add_layer(layer) for layer in rows.layers]
    names = [name for name, _ in passes[0].layers]
    spans: list[PassSpan] = []
    odd = 0
    for index, pass_ in enumerate(passes):
        start_us, took_us = (pass_.start_ns - origin_ns) / 1000, pass_.duration_ns / 1000
        same = [name for name, _ in pass_.layers] == names
        odd += not same
        writer.add_pass(
            index, start_us, took_us, PassState.MEASURED if same else PassState.INCOMPLETE
        )
        at = start_us
        samples: list[tuple[int, float, float, float, int | str]] = []
        for number, (_, ms) in zip(numbers, pass_.layers, strict=False):
            if same and number is not None:
                samples.append((number, at, 1000 * ms, 1000 * ms, _TRACK))
            at += 1000 * ms
        writer.add_samples(index, samples)
        spans.append(PassSpan(index, start_us, took_us, ()))
    shown = [
        (name, number) for name, number in zip(names, numbers, strict=False) if number is not None
    ]
    spans = spans_of_ranges(spans, ranges, shown, origin_ns)
    for note in rows.notes:
        writer.note(note)
    if odd:
        writer.note(f"{odd:,} of the passes ran other layers and are not counted", NoteKind.WARNING)
    return spans


def write_phases(writer: ReportWriter, times: PassTimes, transfers: bool) -> None:
    """Write what copies, compute and enqueueing take, and what it means."""
    phases = times.summary()
    writer.set_property("phases_ms", phases)
    if not transfers:
        writer.note("Latency is without copies: inputs and outputs stay on the GPU")
    if not times.compute:
        return
    compute, enqueue = median(times.compute), median(times.enqueue)
    if is_launch_bound(enqueue, compute):
        writer.note(enqueue_note(enqueue, compute), NoteKind.WARNING)
    copies = max(median(times.h2d), median(times.d2h))
    if transfers and copies >= compute:
        writer.note(f"Copying takes {copies:.3f} ms, longer than the GPU works", NoteKind.WARNING)


def save_set(
    path: Path, information: str, passes: Sequence[LayerPass], times: PassTimes
) -> list[Path]:
    """Write the engine's layers, and their times and those of the passes beside it.

    The files are what ``dld plan`` and TREx read.

    Raises:
        SaveError: One cannot be written.
    """
    stem = root_name(path)
    files = {path: information}
    if passes:
        files[path.with_name(f"{stem}.profile.json")] = json.dumps(profile_rows(passes), indent=1)
    if times.compute:
        files[path.with_name(f"{stem}.timing.json")] = json.dumps(times.rows())
    for target, text in files.items():
        write_text(target, text)
    return list(files)


_AUTO_LAYER_PASSES = 50
_LAYER_BURST = 10
_LATENCY, _LAYERS = "Measuring latency", "Measuring layers"


@dataclass(frozen=True)
class EngineProfileJob:
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
    timed: StopCondition
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
    command: list[str]
    """The words of the command that does the same again."""
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
        environment: That of the machine.
        cuda: A stand-in for the device; None opens it.
        capture: A stand-in for what is learned of the GPU beside times.
    """

    def __init__(
        self,
        plan: EngineProfileJob,
        library: Library,
        document: Document | None,
        environment: Mapping[str, JSON],
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
        self._environment = dict(environment)
        self._gpu = capture if capture is not None else GpuCapture(plan.gpu)
        self._board = BoardWatch(lock_clocks=plan.gpu.lock_clocks, gpu=False)
        self._origin_ns: int | None = None
        self._cuda = cuda
        self._executions: list[Execution] = []
        self._values: Values = {}
        self._shapes: dict[str, Shape] = {}
        self._writer: ReportWriter | None = None
        self._notes: list[Note] = []
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
            if self._writer is not None:
                self._writer.give_up(error)
            raise

    def _close(self) -> None:
        for execution in self._executions:
            with contextlib.suppress(DldError):
                execution.close()
        self._executions.clear()
        self._board.close()
        self._gpu.close()
        if self._writer is not None:
            self._gpu.write_notes(self._writer)
            self._board.write(self._writer, self._origin_ns)

    def _stages(self) -> Iterator[Event]:
        plan = self._plan
        yield Progress(0, None, stage="Looking at the GPU")
        if self._cuda is None:
            self._cuda = Cuda(plan.device, plan.spin_wait)
        with contextlib.closing(self._cuda) as cuda:
            machine = cuda.environment()
            self._gpu.open()
            self._environment.update({**machine, **self._gpu.environment, **self._versions()})
            self._environment.update(self._board.start())
            yield Progress(0, None, stage="Loading the engine")
            engine = self._load(machine)
            yield from self._said()
            yield Metric("load", self._load_ms, "ms")
            self._make_inputs(engine)
            self._open(cuda, engine, plan.streams)
            watch = CpuWatch()
            yield from self._measure_latency(cuda)
            self._report.add_environment(watch.environment())
            self._measure_memory(engine)
            self._drop_executions()
            yield from self._measure_layers(cuda, engine)
            yield from self._said()
            del engine

    def _versions(self) -> PlainValues:
        capabilities = self._library.capabilities
        return {capabilities.module: capabilities.version, "tensorrt_folder": capabilities.path}

    def _make_inputs(self, engine: Engine) -> None:
        plan = self._plan
        arguments = (engine.inputs, plan.shapes, plan.inputs, plan.input_files, plan.seed)
        self._values, self._shapes = engine_inputs(*arguments, document=self._document)
        self._profile = fitting_profile(engine.inputs, self._shapes)
        if self._profile:  # shape tensors have values of their own in each
            self._values, self._shapes = engine_inputs(
                *arguments, profile=self._profile, document=self._document
            )

    def _said(self) -> Iterator[Event]:
        events, self._logged = self._logged, []
        yield from events

    def _load(self, machine: PlainValues) -> Engine:
        plan = self._plan
        begin = time.perf_counter()
        device = f"{machine['gpu']}, compute capability {machine['gpu_compute_capability']}"
        log = BuildLog(None, self._logged.append)
        engine = Engine(
            self._library, plan.data, log, str(plan.engine), device, plan.plugins, plan.dla_core
        )
        if plan.refit_from is not None:
            count = refit(engine, plan.refit_from)
            weights = fmt.plural(count, "weight")
            self._note(f"{weights} of the engine taken from {plan.refit_from.name}")
        budget = engine.stream_weights(plan.streaming_budget)
        if budget is not None:
            self._note(f"Weights are streamed: {budget:,} bytes of them stay on the GPU")
        self._load_ms = 1000 * (time.perf_counter() - begin)
        return engine

    def _note(self, text: str, kind: NoteKind = NoteKind.INFO) -> None:
        self._notes.append(Note(kind, text))

    def _open(self, cuda: Cuda, engine: Engine, count: int) -> None:
        for _ in range(count):
            execution = Execution(cuda, engine, self._values, self._shapes, self._profile)
            self._executions.append(execution)

    def _drop_executions(self) -> None:
        while self._executions:
            self._executions.pop().close()

    def _measure_latency(self, cuda: Cuda) -> Iterator[Event]:
        plan = self._plan
        yield Progress(0, None, stage="Warming up")
        if plan.cuda_graph:
            yield from self._capture_graphs()
        with contextlib.closing(PassTimer(cuda, self._executions, plan.transfers)) as timer:
            stop = StopCondition(1, plan.warm_up_seconds)
            for burst in measure(timer, stop):
                yield Progress(*stop.progress(burst.calls, burst.seconds), "Warming up")
            timer.times.clear()
            self.times = timer.times
            begin, begin_ns = time.perf_counter(), time.time_ns()
            for burst in measure(timer, plan.timed):
                self.latencies += burst.milliseconds
                yield Progress(*plan.timed.progress(burst.calls, burst.seconds), _LATENCY)
                middle = sorted(burst.milliseconds)[len(burst.milliseconds) // 2]
                yield Metric("latency", middle, "ms")
                yield from self._gpu.metrics()
                yield from self._board.metrics()
            wall = time.perf_counter() - begin
            self._board.measured((begin_ns, time.time_ns()), wall / max(1, len(self.latencies)))
        self._report.add_latencies(self.latencies)
        self._report.set_property("throughput_per_s", len(self.latencies) / wall)
        write_phases(self._report, self.times, plan.transfers)
        self._report.flush()

    def _capture_graphs(self) -> Iterator[Event]:
        try:
            for execution in self._executions:
                execution.capture()
            self._graph_used = True
        except ActivityError as error:
            text = f"The passes ran without a CUDA graph: {error.message}"
            self._note(text, NoteKind.WARNING)
            yield Log(text, NoteKind.WARNING)

    def _measure_memory(self, engine: Engine) -> None:
        memory = {
            "peak_memory_bytes": peak_memory(),
            "gpu_memory_bytes": self._gpu.memory(),
            "activation_bytes": engine.memory_bytes(),
        }
        for name, size in memory.items():
            if size is not None:
                self._report.set_property(name, size)
        self._report.set_property("engine", engine.description())

    def _measure_layers(self, cuda: Cuda, engine: Engine) -> Iterator[Event]:
        wanted = self._plan.layer_passes
        count = min(_AUTO_LAYER_PASSES, len(self.latencies)) if wanted is None else wanted
        information = engine.layer_information()
        passes: list[LayerPass] = []
        origin_ns = time.time_ns()
        if count:
            yield Progress(0, count, "passes", _LAYERS)
            self._open(cuda, engine, 1)
            self._executions[0].name_layers()
            layer_passes(self._executions[0], 1)  # to warm up
            origin_ns = time.time_ns()
            for passes_so_far in self._layer_bursts(count, passes):
                yield Progress(passes_so_far, count, "passes", _LAYERS)
            self._drop_executions()
        yield Progress(0, None, stage="Writing the report")
        plan = plan_of(information, passes)
        names = [name for name, _ in passes[0].layers] if passes else []
        rows = rows_of(names, plan, self._document, self._plan.hide_non_compute)
        spans = write_layers(self._report, passes, rows, origin_ns, self._gpu.ranges)
        if count:
            self._origin_ns = origin_ns
            self._gpu.write_layers(self._report, origin_ns, spans)
            self._gpu.write_counters(self._report, origin_ns)
        if self._plan.layer_info is not None:
            self.saved = save_set(self._plan.layer_info, information, passes, self.times)

    def _layer_bursts(self, count: int, passes: list[LayerPass]) -> Iterator[int]:
        """Run the passes with the GPU watched, the last of them with its counters."""
        gpu, execution = self._gpu, self._executions[0]
        gpu.start_trace(calls=True, ranges=True)
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
                backend=self._library.capabilities.title,
                execution_provider="TensorRT",
                device=str(self._environment.get("gpu", "GPU")),
                model=plan.model,
                settings={**plan.recorded_settings, **used},
                environment=self._environment,
            )
            self._writer.set_property("load_ms", self._load_ms)
            self._writer.set_property(COMMAND, plan.command)
            if plan.guess is not None and plan.guess.shapes == self._shapes:
                self._writer.set_property(INPUTS, plan.guess.recorded)
            for note in self._notes:
                self._writer.note(note.text, note.kind)
        return self._writer
