"""A profiling run with ONNX Runtime: latency, then the GPU's work, then the time of each layer.

Layers are measured in a separate session, because ONNX Runtime's profiling slows the model down, on
a GPU two to six times. The latency run times only ``session.run``. On a GPU, passes of the same
session follow in which only kernels are recorded, for times, gaps and overlap; the profiled run
then only attributes kernels to layers.
"""

from __future__ import annotations

import contextlib
import functools
import math
import statistics
import time
from array import array
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, field, replace
from pathlib import Path

from dld_tui.backends.machine.board_watch import BoardWatch
from dld_tui.backends.machine.capture import GpuCapture, GpuPlan
from dld_tui.backends.machine.cupti import enable_nvtx
from dld_tui.backends.machine.meters import RunEnergy
from dld_tui.backends.onnxruntime import engine_layers
from dld_tui.backends.onnxruntime.processor_peaks import machine_peaks
from dld_tui.backends.onnxruntime.runtime import SUFFIX, errors_of, version
from dld_tui.backends.onnxruntime.session import (
    BoundFeed,
    Copies,
    Feed,
    Session,
    save_optimized_model,
)
from dld_tui.backends.onnxruntime.session_options import (
    SessionSettings,
    processor_times_compare,
    spins,
)
from dld_tui.core import fmt
from dld_tui.core.codec import encode
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError, SaveError, UsageError
from dld_tui.core.events import Event, Log, Metric, Progress, result_of
from dld_tui.core.files.temporary import temporary_folder
from dld_tui.core.machine.environment import CpuWatch, peak_memory
from dld_tui.core.machine.peaks import Peaks
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.identity import ModelIdentity, identify
from dld_tui.core.model.document.summary import summarise
from dld_tui.core.model.inputs.feeds import load_input_sets
from dld_tui.core.model.inputs.guess import Guess, candidate_guesses, first_that_runs, specs_for
from dld_tui.core.model.inputs.guessed_input import INPUTS
from dld_tui.core.model.inputs.shapes import check_dimensions, parse_shapes
from dld_tui.core.notes import Note, NoteKind
from dld_tui.core.report.formats.import_ort import add_ort_profile
from dld_tui.core.report.formats.ort_profile import Kernel, ProfilePass
from dld_tui.core.report.gpu_kernels import LayerSpan, PassSpan, TimedPass
from dld_tui.core.report.groups import COPY_TYPES
from dld_tui.core.report.latency import (
    PROCESSOR_MS,
    Burst,
    StopCondition,
    TimeCalls,
    measure,
    recording_spans,
    settle,
    turn_s,
)
from dld_tui.core.report.records import Layer
from dld_tui.core.report.roofline import NodeKind, with_roof
from dld_tui.core.report.schema import COMMAND
from dld_tui.core.report.store import ReportWriter
from dld_tui.core.report.triage import CUDA_GRAPH
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON


@dataclass(frozen=True)
class ProfileJob:
    """What to run and how long."""

    model: Path
    report: Path
    """Replaced if it exists."""
    session: SessionSettings
    shapes: tuple[str, ...]
    """As :func:`dld_tui.core.model.inputs.shapes.parse_shapes` takes them."""
    inputs: Path | None
    """A folder of data; None for random ones."""
    seed: int
    warm_up_passes: int
    warm_up_seconds: float
    timed: StopCondition
    layer_passes: int | None
    """None for a sensible number; 0 for no layers."""
    recorded_settings: dict[str, JSON]
    command: list[str] = field(default_factory=list)
    """The words of the command that does the same again."""
    gpu: GpuPlan | None = None
    """What to capture of a GPU; None when the model runs on none."""
    lock_clocks: bool = False
    """Those of a Jetson; those of another GPU are in `gpu`."""
    io_binding: bool = False
    """Inputs and outputs stay on the device, so that latency is without copies."""
    optimized_model: Path | None = None
    """Where to save the optimised model; replaced if it exists."""


_LISTED = 12
_NAME_CELLS = 60


def fallback_notes(kernels: Sequence[Kernel], preferred: str) -> list[Note]:
    """Return which kernels ran on the CPU although another provider was preferred.

    Args:
        kernels: All of the profile.
        preferred: Short name of the first provider, e.g. ``CUDA``.
    """
    if preferred == "CPU":
        return []
    on_cpu = [kernel for kernel in kernels if kernel.provider == f"CPU{SUFFIX}"]
    copies = sum(kernel.op_type in COPY_TYPES for kernel in kernels)
    notes = []
    if on_cpu:
        named = fmt.listed(on_cpu, _LISTED, _label)
        text = f"{len(on_cpu):,} of {len(kernels):,} nodes ran on the CPU: {named}."
        notes.append(Note(NoteKind.WARNING, text))
    if copies:
        noun = "node copies" if copies == 1 else "nodes copy"
        notes.append(Note(NoteKind.WARNING, f"{copies:,} {noun} between the CPU and the device."))
    return notes


def _label(kernel: Kernel) -> str:
    name = clip(visible(kernel.name), _NAME_CELLS, keep="end")
    return f"{name} ({visible(kernel.op_type)})"


def copies_note(copies: Copies, on_host: Sequence[str]) -> Note:
    """Return what the copies take that are not part of the latency."""
    ms = fmt.milliseconds
    text = (
        "The latency is without copies, as IO binding keeps inputs and outputs on the device:"
        f" bringing the inputs takes {ms(copies.inputs_ms)} ms ({copies.input_bytes:,} bytes),"
        f" fetching the outputs {ms(copies.outputs_ms)} ms ({copies.output_bytes:,} bytes)."
    )
    if on_host:
        names = ", ".join(clip(visible(name), _NAME_CELLS) for name in on_host[:_LISTED])
        text += f" Inputs that stay in the memory of the CPU: {names}."
    return Note(NoteKind.INFO, text)


_AUTO_LAYER_PASSES, _AUTO_LAYER_EVENTS = 50, 200_000
_LEAST_IN_TURNS, _MOST_IN_TURNS = 12, 1_000
_MOST_LAYER_EVENTS = 900_000
"""ONNX Runtime stops recording at 1,000,000."""
_WRITE_SECONDS = 1.0
OPTIMIZED = "optimized.onnx"
_LAYERS = "Measuring layers"
_TIMELINE = "Recording the GPU"
_UNORDERED = "parallel operators launch their kernels in no fixed order"


def profiled_session(model: Path, settings: SessionSettings, folder: Path) -> Session:
    """Return a session that writes a profile and its optimized model to a folder.

    Raises:
        DldError: As of :class:`.session.Session`.
    """
    # A CUDA graph and ONNX Runtime's profiling in one session end in a crash of it (1.31).
    plain = replace(settings.without_graph(), profile_prefix=folder / "layers", quiet=True)
    try:
        return Session(model, replace(plain, optimized_path=folder / OPTIMIZED))
    except ActivityError:  # what some providers make of a graph cannot be written
        return Session(model, plain)


@dataclass(frozen=True)
class LayerProfile:
    """What a session of :func:`profiled_session` left."""

    profile: Path
    optimized: Path
    """The optimized model; it need not be there."""
    origin_ns: int
    """When the profile began, in nanoseconds of the Unix epoch."""
    warm_up: int = 0
    """The first passes, during which no work of a GPU was recorded."""


def write_layers(
    writer: ReportWriter,
    recorded: LayerProfile,
    document: Document,
    settings: SessionSettings,
    peaks: Mapping[str, Peaks],
    *,
    gpu: GpuCapture | None = None,
    zero_ns: int | None = None,
) -> None:
    """Write the layers of a profile, with the work on a GPU that they launched.

    The pass after the warm-up counts in no figure, either.

    Args:
        writer: An open report.
        recorded: The profile.
        document: The model.
        settings: Of the session.
        peaks: What the devices can do at most, by execution provider.
        gpu: What has recorded the GPU, with the calls of these passes; None without a GPU.
        zero_ns: The zero of the report's clock; None where it is that of the profile.
    """
    spans: list[PassSpan] = []

    def observe(profiled: ProfilePass, layers: Mapping[int, int]) -> None:
        if profiled.index < recorded.warm_up:
            return
        rows = [LayerSpan(layers[e.kernel], e.start_us, e.duration_us) for e in profiled.events]
        spans.append(PassSpan(profiled.index, profiled.start_us, profiled.duration_us, rows))

    writer.set_property("roofs", encode(peaks))
    with contextlib.ExitStack() as stack:
        optimized = None
        if recorded.optimized.exists():
            opened = Document.open(recorded.optimized)
            optimized = stack.enter_context(contextlib.closing(opened))
        summary = add_ort_profile(
            writer, recorded.profile, document, optimized, warm_up=recorded.warm_up + 1,
            start_us=0.0 if zero_ns is None else (recorded.origin_ns - zero_ns) / 1000,
            on_pass=observe if gpu is not None else None, peaks=peaks,
        )  # fmt: skip
    for note in fallback_notes(summary.kernels, settings.providers[0]):
        writer.note(note.text, note.kind)
    if gpu is not None:
        unordered = _UNORDERED if settings.parallel else ""
        spans, added = engine_layers.add_engine_layers(
            writer, spans, summary.layers, gpu.ranges, recorded.origin_ns, document
        )
        gpu.write_layers(writer, recorded.origin_ns, spans, unordered)
        hold_against_kernels(writer, [*summary.layers, *added], peaks)


def hold_against_kernels(
    writer: ReportWriter, layers: Sequence[Layer], peaks: Mapping[str, Peaks]
) -> None:
    """Compare products on a GPU with the peak of how their kernels compute, by their names."""
    for index, kernel in writer.main_kernels().items():
        layer = layers[index]
        device, cost = peaks.get(layer.provider or ""), layer.cost
        if device is None or cost is None or cost.peak == "int8":  # which the node said
            continue
        known = with_roof(cost, layer.input_types, device, NodeKind(layer.type), kernel)
        if known != cost:
            writer.set_layer(index, replace(layer, cost=known))


class ProfilingRun:
    """A run in stages. Iterate over :meth:`events` once.

    Args:
        plan: The settings.
        document: The model of the plan.
        environment: That of the machine, with at least ``cpu``.

    Raises:
        UsageError: A shape names no input, or a size no dynamic dimension.
    """

    def __init__(
        self, plan: ProfileJob, document: Document, environment: Mapping[str, JSON]
    ) -> None:
        self.latencies: list[float] = []
        """Of the timed passes, in milliseconds."""
        self.report_path = plan.report
        self.timed = plan.timed
        """When the latency is measured well enough; may be changed before."""
        self.warm_up_limit_s = math.inf
        """The longest warm-up, after the first pass."""
        self._plan = plan
        self._document = document
        self._environment = dict(environment)
        self._gpu = GpuCapture(plan.gpu) if plan.gpu is not None else None
        self._board = BoardWatch(lock_clocks=plan.lock_clocks, gpu=plan.gpu is None)
        self._bound: list[BoundFeed] = []
        self.optimized_path: Path | None = None
        """Where the optimised model is; None when it was not saved."""
        inputs = [name for name in document.main.inputs if document.main.initializer(name) is None]
        self._given_shapes = parse_shapes(plan.shapes, inputs)
        check_dimensions(plan.session.dimensions, (document.main.value_type(n) for n in inputs))
        self._identity: ModelIdentity | None = None
        self._input_shapes: dict[str, JSON] = {}
        self._guess: Guess | None = None
        self._feeds: list[Feed] = []
        self._load_ms = 0.0
        self._written = 0
        self._written_at = 0.0
        self._origin_ns: int | None = None
        """The zero of the report's clock; None where it is that of ONNX Runtime's profile."""
        self._profile_ns: int | None = None
        self._writer: ReportWriter | None = None
        self._session: Session | None = None

    def events(self) -> Iterator[Event]:
        """Run. Stopped early, it leaves a partial report if passes were timed, else nothing.

        Raises:
            DldError: The class tells the cause; the report is closed.
        """
        with self.kept_report():
            yield from self.prepare()
            yield from self.measure_latency()
            yield from self.finish()

    @contextlib.contextmanager
    def kept_report(self, *, stays: bool = True) -> Generator[None]:
        """Close everything at the end, and keep a useful report after an error.

        Args:
            stays: Whether its folder stays: if not, the error does not name it.
        """
        try:
            yield
        except BaseException as error:
            self._close()
            self._give_up(error, stays=stays)
            raise

    def _close(self) -> None:
        self._board.close()
        if self._gpu is not None:
            self._gpu.close()
        if self._writer is not None and self._writer.is_open:  # not if it was dropped before
            if self._gpu is not None:
                self._gpu.write_notes(self._writer)
            zero = self._profile_ns if self._origin_ns is None else self._origin_ns
            self._board.write(self._writer, zero)

    def prepare(self, *, reports: bool = True) -> Iterator[Event]:
        """Load the model, make its inputs and warm up; then :attr:`timer` can be used.

        Args:
            reports: Whether a report is sure to follow: the file is then read for its identity.
        """
        if reports:
            self._identity = yield from identify(self._plan.model, self._document)
        if self._gpu is not None:
            yield Progress(0, None, stage="Looking at the GPU")
            if self._has_engines:
                enable_nvtx()  # before TensorRT makes its first range
            self._gpu.open()
            self._environment.update(self._gpu.environment)
        self._environment.update(self._board.start())
        yield Progress(0, None, stage="Loading the model")
        if self._plan.session.cuda_graph:
            # The first run of a session captures the graph, together with its memory.
            self._make_inputs(Session(self._plan.model, self._plan.session.without_graph()))
        begin = time.perf_counter()
        self._session = session = Session(self._plan.model, self._plan.session)
        self._load_ms = 1000 * (time.perf_counter() - begin)
        yield Metric("load", self._load_ms, "ms")
        yield Progress(0, None, stage="Warming up")
        if not self._plan.session.cuda_graph:
            self._make_inputs(session)
        if self._guess is not None:
            for remark in self._guess.remarks:
                yield Log(f"Input {remark}")
        yield from self._warm_up(session)

    @property
    def model(self) -> Path:
        """The model file."""
        return self._plan.model

    @property
    def settings(self) -> SessionSettings:
        """Of the session."""
        return self._plan.session

    @property
    def timer(self) -> TimeCalls:
        """The timer of passes, once prepared; raises errors of this program."""
        assert self._session is not None
        timer = self._timer(self._session)

        def time_calls(first: int, durations: array[int], most: int, until: int) -> int:
            with errors_of(self._plan.model, "run"):
                return timer(first, durations, most, until)

        return time_calls

    def seconds_of_layers(self, factor: float) -> float:
        """Return about how long it takes to load the model again and record its layers.

        Args:
            factor: How many times as long a pass takes while it is recorded, at most.
        """
        passes = self._layer_passes()
        pass_ms = factor * statistics.median(self.latencies) if self.latencies else 0.0
        return (self._load_ms + (passes + 1) * pass_ms) / 1000 if passes else 0.0

    def drop(self) -> None:
        """End without layers; only :attr:`latencies` are left."""
        self._bound.clear()
        self._session = None
        self._close()
        if self._writer is not None:
            self._writer.finish()

    def finish(self) -> Iterator[Event]:
        """Measure the rest, the layers above all, and write the report of :attr:`latencies`."""
        yield from self._end_latency()
        passes = self._layer_passes()
        if passes:
            if self._plan.layer_passes and passes < self._plan.layer_passes:
                text = f"layers: {passes} passes, which is what ONNX Runtime's profile has room for"
                yield Log(text, NoteKind.WARNING)
            with self._layer_session():
                yield from self._run_layers(passes)
        yield from self._end()

    def _end_latency(self) -> Iterator[Event]:
        """Finish work with the latency session, and release it."""
        session = self._session
        assert session is not None
        self._write_latencies()
        self._measure_memory()
        yield from self._record_gpu(session)
        self._bound.clear()
        self._session = None

    def _end(self) -> Iterator[Event]:
        yield Progress(0, None, stage="Writing the report")
        yield from self._save_optimized()
        self._close()
        self.report_path = self._report.finish()

    @property
    def _report(self) -> ReportWriter:
        """The report, which is created on first use."""
        if self._writer is None:
            provider = self._plan.session.providers[0]
            device = f"{provider} device {self._plan.session.device_id}"
            if self._gpu is not None:
                device = str(self._environment.get("gpu", device))
            identity = self._identity or result_of(identify(self._plan.model, self._document))
            self._writer = ReportWriter.create(
                self._plan.report,
                network=self._plan.model.name,
                backend=f"ONNX Runtime {version()}",
                execution_provider=provider,
                device=str(self._environment["cpu"]) if provider == "CPU" else device,
                model=encode(identity),
                settings={**self._plan.recorded_settings, "input_shapes": self._input_shapes},
                environment=self._environment,
            )
            self._writer.set_property("load_ms", self._load_ms)
            self._writer.set_property(COMMAND, self._plan.command)
            if self._guess is not None:
                self._writer.set_property(INPUTS, self._guess.recorded)
            if self._plan.session.cuda_graph:
                self._writer.set_property(CUDA_GRAPH, True)
        return self._writer

    def _give_up(self, error: BaseException, *, stays: bool) -> None:
        if self._writer is None or not self._writer.is_open:
            return
        if not isinstance(error, SaveError):
            self._write_latencies()
        self._writer.give_up(error, stays=stays)

    def _make_inputs(self, session: Session) -> None:
        """Take the data given, or the first guess that runs: a model that cannot run says why."""
        if self._plan.inputs is not None:
            sets = load_input_sets(self._plan.inputs, session.inputs)
            if len(sets) > 1 and self._plan.session.cuda_graph:
                raise UsageError(
                    f"a CUDA graph replays one set of inputs, and the folder has {len(sets)}",
                    where=str(self._plan.inputs),
                )
            self._feeds = [session.feed(input_set.values) for input_set in sets]
            self._input_shapes = {
                name: list(value.shape)
                for name, value in sets[0].values.items()
                if not isinstance(value, list)
            }
            session.try_once(self._feeds[0])
            return
        guesses = candidate_guesses(
            specs_for(session.inputs, self._document), self._document, self._given_shapes
        )
        self._guess, _ = first_that_runs(
            guesses, self._plan.seed, lambda values: session.try_once(session.feed(dict(values)))
        )
        self._input_shapes = {k: list(shape) for k, shape in self._guess.shapes.items()}
        self._feeds = [session.feed(self._guess.values(self._plan.seed))]

    def _warm_up(self, session: Session) -> Iterator[Event]:
        """Run the requested warm-up; one pass ran when the inputs were made."""
        stop = StopCondition(max(0, self._plan.warm_up_passes - 1), self._plan.warm_up_seconds,
                             limit_s=self.warm_up_limit_s)  # fmt: skip
        if self._plan.io_binding:
            self._bound = session.bind(self._feeds)
            session.run_bound(self._bound[0])  # with care: its errors are told
            stop = replace(stop, calls=max(self._plan.session.least_warm_up, stop.calls))
        if self.warm_up_limit_s <= 0:
            return
        for _, progress in self._bursts(self._timer(session), stop, "Warming up"):
            yield progress

    def _timer(self, session: Session) -> TimeCalls:
        return session.bound_timer(self._bound) if self._bound else session.timer(self._feeds)

    def measure_latency(self) -> Iterator[Event]:
        """Time passes into :attr:`latencies`, and record their resources."""
        yield Progress(0, None, stage="Measuring latency")
        self._written_at = time.monotonic()
        watch = CpuWatch()
        timer, begin_ns = self.timer, time.time_ns()
        energy = RunEnergy(None if self._gpu is None else self._gpu.energy_mj)
        for burst, progress in self._bursts(timer, self.timed, "Measuring latency"):
            self.latencies += burst.milliseconds
            energy.mark(len(self.latencies))
            if time.monotonic() - self._written_at >= _WRITE_SECONDS:
                self._write_latencies()
            yield progress
            yield Metric("latency", sorted(burst.milliseconds)[len(burst.milliseconds) // 2], "ms")
            if self._gpu is not None:
                yield from self._gpu.metrics()
            yield from self._board.metrics()
        mean_s = sum(self.latencies) / max(1, len(self.latencies)) / 1000
        self._board.measured((begin_ns, time.time_ns()), mean_s)
        used = encode(energy.read(len(self.latencies))) or {}
        self._write_latencies()
        for name, value in used.items():  # a board with sensors of its own says it again
            if value != []:
                self._report.set_property(name, value)
        if self._bound:
            with errors_of(self._plan.model, "run"):
                copies = self._bound[0].time_copies()
            self._report.set_property("copies", asdict(copies))
            note = copies_note(copies, self._bound[0].on_host)
            self._report.note(note.text, note.kind)
        self._report.add_environment(watch.environment())

    def _record_gpu(self, session: Session) -> Iterator[Event]:
        """Run passes in the session of the latency, with the GPU's work recorded."""
        gpu, count = self._gpu, self._layer_passes()
        if gpu is None or not count or not gpu.start_trace():
            return
        self._origin_ns = time.time_ns()
        spans: list[tuple[int, int]] = []
        # One more, at the start: it is slower, and left out.
        timer = recording_spans(self._timer(session), spans)
        yield from self._watched_passes(timer, gpu, count, _TIMELINE)
        gpu.stop_trace()
        first = count + 1  # after the passes of the profiled run
        passes = [TimedPass(at, *span) for at, span in enumerate(spans[1:], first)]
        gpu.write_passes(self._report, self._origin_ns, passes)

    def _watched_passes(
        self, timer: TimeCalls, gpu: GpuCapture, passes: int, stage: str
    ) -> Iterator[Event]:
        """Run passes and one more to warm up; counters are sampled in the last of them."""
        plan = gpu.plan_samples(sorted(self.latencies)[len(self.latencies) // 2], passes)
        sampled = plan.passes if plan is not None else 0
        yield from self._burst_passes(timer, gpu, passes + 1 - sampled, stage)
        if plan is not None:
            gpu.start_samples(plan)
            yield from self._burst_passes(timer, gpu, sampled, stage)
            gpu.stop_samples()

    def _burst_passes(
        self, timer: TimeCalls, gpu: GpuCapture, passes: int, stage: str
    ) -> Iterator[Event]:
        for _, progress in self._bursts(timer, StopCondition(passes), stage):
            gpu.between_passes()
            yield progress

    def _measure_memory(self) -> None:
        sizes = {
            "peak_memory_bytes": peak_memory(),
            "gpu_memory_bytes": self._gpu.memory() if self._gpu is not None else None,
        }
        for name, size in sizes.items():
            if size is not None:
                self._report.set_property(name, size)

    def _write_latencies(self) -> None:
        new = self.latencies[self._written :]
        if new:
            self._report.add_latencies(new)
            self._report.flush()
        self._written = len(self.latencies)
        self._written_at = time.monotonic()

    @contextlib.contextmanager
    def _layer_session(self) -> Generator[None]:
        """Have a session that records a profile; at the end the profile goes into the report."""
        with temporary_folder("layers") as folder:
            self._session = profiled_session(self._plan.model, self._plan.session, folder)
            if self._plan.io_binding:
                self._bound = self._session.bind(self._feeds)
            yield
            origin_ns = self._profile_ns = self._session.profiling_start_ns()
            profile = self._session.end_profiling()
            self._bound.clear()
            self._session = None
            self._write_layers(profile, folder / OPTIMIZED, origin_ns)

    def _run_layers(self, passes: int) -> Iterator[Event]:
        """Run the passes and one more to warm up, with the calls recorded that launch the work."""
        timer, gpu = self.timer, self._gpu
        if gpu is not None and self._origin_ns is None:  # the GPU's work cannot be recorded
            yield from self._watched_passes(timer, gpu, passes, _LAYERS)
            return
        if gpu is not None:
            gpu.start_trace(calls=True, ranges=self._has_engines)
        for _, progress in self._bursts(timer, StopCondition(passes + 1), _LAYERS):
            yield progress
        if gpu is not None:
            gpu.stop_trace()

    @property
    def _has_engines(self) -> bool:
        return any(name in engine_layers.PROVIDERS for name in self._plan.session.providers)

    def _layer_passes(self) -> int:
        wanted = self._plan.layer_passes
        if wanted is None:
            room = max(5, _AUTO_LAYER_EVENTS // self._nodes)
            wanted = min(_AUTO_LAYER_PASSES, len(self.latencies), room)
        return min(wanted, self._most_layer_passes())

    def _most_layer_passes(self) -> int:
        """Return how many passes a profile has room for."""
        return max(1, _MOST_LAYER_EVENTS // self._nodes - 1)

    @functools.cached_property
    def _nodes(self) -> int:
        return max(1, sum(len(scope.nodes) for scope in self._document.scopes()))

    def _write_layers(self, profile: Path, optimized: Path, origin_ns: int) -> None:
        write_layers(
            self._report, LayerProfile(profile, optimized, origin_ns), self._document,
            self._plan.session, machine_peaks(self._environment, self._plan.session),
            gpu=self._gpu, zero_ns=self._origin_ns,
        )  # fmt: skip
        if self._gpu is not None and self._origin_ns is None:
            self._gpu.write_counters(self._report, origin_ns)

    def _save_optimized(self) -> Iterator[Event]:
        """Save the optimized model with its weights, by a separate session."""
        target = self._plan.optimized_model
        if target is None:
            return
        yield Progress(0, None, stage="Saving the optimised model")
        try:
            size = summarise(self._document).weight_bytes
            settings = self._plan.session.without_graph()
            remarks = save_optimized_model(self._plan.model, settings, target, size)
        except ActivityError as error:
            text = f"The optimised model was not saved: {error.message}."
            self._report.note(text, NoteKind.WARNING)
            yield Log(text, NoteKind.WARNING)
        else:
            for remark in remarks:
                yield Log(remark, NoteKind.WARNING)
            self.optimized_path = target
            self._report.set_property("optimized_model", str(target.absolute()))

    def _bursts(
        self, timer: TimeCalls, stop: StopCondition, stage: str
    ) -> Iterator[tuple[Burst, Progress]]:
        """Run the model and yield progress after every burst."""
        with contextlib.closing(measure(timer, stop)) as bursts:
            while True:
                with errors_of(self._plan.model, "run"):
                    burst = next(bursts, None)
                if burst is None:
                    return
                yield burst, Progress(*stop.progress(burst.calls, burst.seconds), stage)


def profile_in_turns(runs: Sequence[ProfilingRun], seconds: float) -> Iterator[Event]:
    """Measure two runs with alternating passes, with and without recording a profile.

    Disturbances of the machine then affect all alike, and the overhead of recording is known for
    each. Needs four sessions; not for a GPU, which can record only one at a time.

    Args:
        runs: The prepared runs.
        seconds: The duration of each of the four, unless a profile is full before.
    """
    for side in runs:
        yield from side.prepare()
    with contextlib.ExitStack() as stack:
        plain = [side.timer for side in runs]
        for side in runs:
            stack.enter_context(side._layer_session())
        timers = [*plain, *(side.timer for side in runs)]
        durations, cold = array("q", [0]), list[float]()
        for timer in timers:  # the first pass of a session is slow and counts nowhere
            timer(0, durations, 1, 0)
            cold.append(durations[0] / 1e9)
        is_spinning = spins(*(side.settings for side in runs))
        size = max(1, int(turn_s(spins=is_spinning) / max(cold)))
        most = min(_MOST_IN_TURNS, *(side._most_layer_passes() for side in runs))
        stop = StopCondition(_LEAST_IN_TURNS, seconds, most)
        calls, took = 0, 0.0
        processor_ms: list[list[float]] = [[] for _ in runs]
        while not stop.is_met(calls, took):
            order = range(len(timers)) if calls // size % 2 == 0 else range(len(timers))[::-1]
            for at in order:
                if is_spinning:
                    settle()
                begin = time.perf_counter()
                for _ in range(size):
                    before = time.thread_time_ns()
                    timers[at](calls, durations, 1, 0)
                    if at < len(runs):
                        processor_ms[at].append((time.thread_time_ns() - before) / 1e6)
                        runs[at].latencies.append(durations[0] / 1e6)
                took += (time.perf_counter() - begin) / len(timers)
            calls += size
            yield Progress(*stop.progress(calls, took), _LAYERS)
        plain.clear()
        timers.clear()
    for side, times in zip(runs, processor_ms, strict=True):
        side._write_latencies()
        if processor_times_compare(side.settings, side.settings):
            side._report.set_property(PROCESSOR_MS, statistics.median(times))
        side._measure_memory()
        yield from side._end()
