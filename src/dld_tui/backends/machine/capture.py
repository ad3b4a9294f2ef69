"""What a profiling run records of a GPU besides latency and layers.

State and clocks, live utilisation, the work by stream with the layers that launched it, and
counters over time. A part that does not work on a machine adds a note and does not affect the
others.

The work is recorded twice: alone, in passes that run at true speed, for times, gaps and overlap;
and with the calls that launch it, while ONNX Runtime profiles its layers, for who launched what.
The two are joined by position (:mod:`dld_tui.core.report.gpu_kernels`).
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from dld_tui.backends.machine import cupti
from dld_tui.backends.machine.clock_guard import ClockLock
from dld_tui.backends.machine.cupti import ActivityTracer
from dld_tui.backends.machine.jetson import Jetson, ends_in_time
from dld_tui.backends.machine.nvml import SLOWDOWNS, Nvml
from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import DldError, UnavailableError
from dld_tui.core.events import Metric
from dld_tui.core.notes import Note, NoteKind
from dld_tui.core.report.gpu_kernels import (
    HARDWARE_ROWS,
    ActivityLog,
    AttributedWork,
    CounterSpec,
    JoinedWork,
    Launches,
    NamedRange,
    PassSpan,
    SamplingPlan,
    Series,
    TimedPass,
    attribute,
    join_passes,
    plan_sampling,
)
from dld_tui.core.report.records import CounterSource, PassState
from dld_tui.core.report.store import ReportWriter
from dld_tui.core.statistics import median
from dld_tui.core.types import JSON, PlainValues

GPM_ROWS: Mapping[str, CounterSpec] = {
    "sm": CounterSpec("SM_UTIL", "SM active"),
    "dram": CounterSpec("DRAM_BW_UTIL", "DRAM"),
    "tensor": CounterSpec("ANY_TENSOR_UTIL", "Tensor Core"),
    "pcie": CounterSpec("PCIE_TX_PER_SEC+PCIE_RX_PER_SEC", "PCIe", "bytes/s", None),
}
NVML_ROWS: Mapping[str, CounterSpec] = {
    "gpu": CounterSpec("utilization.gpu", "GPU busy"),
    "memory": CounterSpec("utilization.memory", "Memory busy"),
}
JETSON_ROWS: Mapping[str, CounterSpec] = {
    "gpu": CounterSpec("load", "GPU load"),
    "gpu_mhz": CounterSpec("cur_freq", "GPU clock", "MHz", None),
    "memory": CounterSpec("mc_all", "Memory traffic"),
}


@dataclass(frozen=True)
class Meter:
    """Something to ask for values."""

    source: CounterSource
    rows: Mapping[str, CounterSpec]
    read: Callable[[], Mapping[str, float]]
    """Returns values by the keys of `rows`; unknown ones are left out."""
    close: Callable[[], None]
    interval_s: float
    """How often new values are there."""


def gpm_meter(gpu: Nvml) -> Meter:
    """Return the meter of NVML's GPM.

    Raises:
        UnavailableError: The GPU has none.
    """
    gpm = gpu.gpm()
    return Meter("nvml-gpm", GPM_ROWS, gpm.read, gpm.close, 0.05)


def nvml_meter(gpu: Nvml) -> Meter:
    """Return the meter of NVML's utilisation.

    Raises:
        UnavailableError: The driver does not report it.
    """
    if not gpu.utilisation():
        raise UnavailableError("NVML does not report the utilisation of this GPU")
    return Meter("nvml", NVML_ROWS, gpu.utilisation, _nothing, 0.1)


def jetson_meter(board: Jetson) -> Meter:
    """Return the meter of a Jetson's files.

    Raises:
        UnavailableError: This is no Jetson, or none of its files can be read.
    """
    if not board.read():
        raise UnavailableError("no file gives the load of the GPU")
    return Meter("sysfs", JETSON_ROWS, board.read, _nothing, 0.05)


def _nothing() -> None:
    """Do nothing: there is nothing to close."""


_PATIENCE_S = 5.0
"""How long a meter may take for its last answer."""


class PollingSampler:
    """Polls a meter on a thread, between start and stop.

    Args:
        meter: The meter; closed at the end.
        clock_ns: The time of a sample, in nanoseconds of the Unix epoch.
    """

    def __init__(self, meter: Meter, clock_ns: Callable[[], int] = time.time_ns) -> None:
        self._meter, self._clock_ns = meter, clock_ns
        self._series = {key: Series(spec, meter.source) for key, spec in meter.rows.items()}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gpu-meter", daemon=True)
        self.absent: list[Series] = []
        """As for hardware counters; here it is known at the end only."""

    def start(self) -> None:
        """Begin."""
        self._meter.read()  # for a meter that tells of the time since it was asked last
        self._thread.start()

    def stop(self) -> list[Series]:
        """Stop and return all rows; one without samples says why.

        A meter that does not answer is abandoned.
        """
        self.close()
        if not self._thread.is_alive() and ends_in_time(self.poll, _PATIENCE_S, "gpu-meter"):
            self._meter.close()
        for row in self._series.values():
            if not row.samples:
                row.absent = "the driver does not report it"
        return list(self._series.values())

    def close(self) -> None:
        """Stop asking."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join(_PATIENCE_S)

    def poll(self) -> None:
        """Ask once."""
        values = self._meter.read()
        now = self._clock_ns()
        for key, value in values.items():
            if key in self._series:
                self._series[key].samples.append((now, value))

    def _run(self) -> None:
        while not self._over.wait(self._meter.interval_s):
            self.poll()


_BUFFER_BYTES = 512 << 20
_MOST_AT_ONCE = 24_000
"""The capacity in samples; each takes 23 kB until it is decoded (H200, CUPTI 13.4).

CUPTI returns the samples of its buffer only once: a second call returns neither times nor
values.
"""
_LEAD_NS = 200_000_000
"""Time between the start and the first pass, measured as 145 ms, which is sampled as well."""
_NO_NAME = "this GPU has no such counter"
_NO_ROOM = "this GPU does not count it together with the other rows"
_NO_SAMPLES = "the GPU returned no sample"


class HardwareSampler:
    """Samples hardware counters between :meth:`start` and :meth:`stop`; use it once.

    Args:
        device: The CUDA device.
        interval_us: How often.
        expected: How many samples to make room for.
        modules: ``cupti.pm_sampling`` and ``cupti.profiler_host``, or stand-ins for them.

    Raises:
        UnavailableError: CUPTI is missing, refuses, or this GPU counts nothing of it.
    """

    def __init__(
        self,
        device: int,
        interval_us: float,
        expected: int,
        modules: tuple[Any, Any] | None = None,
    ) -> None:
        if modules is None:
            modules = cupti.load("cupti.pm_sampling"), cupti.load("cupti.profiler_host")
        self._sampling, self._host = modules
        self._device = device
        self._interval_ns = max(1, round(1000 * interval_us))
        lead = _LEAD_NS // self._interval_ns
        self._room = min(_MOST_AT_ONCE, math.ceil(1.5 * expected) + lead)
        self._collector: Any = None
        self.absent: list[Series] = []
        """Rows that are not counted, with the reason."""
        with cupti.cupti_errors("reading hardware counters"):
            self.specs = self._configure()
        """Rows that are counted."""

    def start(self) -> None:
        """Begin.

        Raises:
            UnavailableError: CUPTI refuses.
        """
        try:
            with cupti.cupti_errors("reading hardware counters"):
                self._collector.start()
        except UnavailableError:
            self.close()
            raise

    def stop(self) -> list[Series]:
        """Stop and return all rows; one without samples says why.

        Raises:
            UnavailableError: The samples cannot be had.
        """
        series = [Series(spec, "cupti-pm") for spec in self.specs]
        try:
            with cupti.cupti_errors("reading hardware counters"):
                self._collector.stop()
                self._decode(series)
        except UnavailableError:
            if not any(row.samples for row in series):
                raise
        finally:
            self.close()
        for row in series:
            if not row.samples:
                row.absent = _NO_SAMPLES
        return [*series, *self.absent]

    def close(self) -> None:
        """Give the counters back."""
        if self._collector is not None:
            with contextlib.suppress(UnavailableError), cupti.cupti_errors("stopping"):
                self._collector.disable()
            self._collector = None

    def _decode(self, series: list[Series]) -> None:
        for sample in self._collector.decode(self._room):
            if not sample.start_timestamp:
                continue  # the first sample has no start
            middle = (sample.start_timestamp + sample.end_timestamp) // 2
            for row, value in zip(series, sample.metric_values, strict=True):
                if math.isfinite(value):
                    row.samples.append((middle, float(value)))

    def _configure(self) -> list[CounterSpec]:
        """Set up as many rows as the chip measures together, and return them."""
        collector = self._fresh()
        available = self._available(collector)
        specs: list[CounterSpec] = []
        for row in HARDWARE_ROWS:
            spec = row.spec(available) if available else row.spec(row.names)
            if spec is None:
                self._give_up(CounterSpec("", row.title), _NO_NAME)
            else:
                specs.append(spec)
        problem: Exception | None = None
        while specs:
            try:
                collector.configure(
                    metrics=[spec.name for spec in specs],
                    hardware_buffer_size=_BUFFER_BYTES,
                    sampling_interval=self._interval_ns,
                )
            except ValueError as error:
                problem = error
                self._give_up(specs.pop(), _NO_ROOM)
                # One that was refused once may count nothing later: take a new one.
                collector = self._fresh()
            else:
                return specs
        self.close()
        raise UnavailableError(f"this GPU cannot sample its counters: {problem or _NO_NAME}")

    def _fresh(self) -> Any:
        self.close()
        self._collector = self._sampling.Collector(self._device)
        try:
            self._collector.enable()
        except BaseException:
            self._collector = None
            raise
        return self._collector

    def _give_up(self, spec: CounterSpec, reason: str) -> None:
        self.absent.append(Series(spec, "cupti-pm", absent=reason))

    def _available(self, collector: Any) -> frozenset[str]:
        """Return the counters of the chip; none if unknown."""
        chip = getattr(collector, "_chip_name", None)
        if not chip:
            return frozenset()
        names: set[str] = set()
        host = self._host.ProfilerHost(chip, self._host.ProfilerType.PM_SAMPLING)
        with contextlib.suppress(UnavailableError), cupti.cupti_errors("listing counters"):
            host.initialize()
            for kind in self._host.MetricType:
                # The H200 refuses to list one of the kinds; the others are still worth having.
                with contextlib.suppress(UnavailableError), cupti.cupti_errors("listing counters"):
                    names.update(host.get_base_metrics(kind))
        with contextlib.suppress(UnavailableError), cupti.cupti_errors("listing counters"):
            host.deinitialize()
        return frozenset(names)


_WHOLE_PERCENT = 99.5


def during_passes(states: Sequence[Mapping[str, JSON]]) -> PlainValues:
    """Return clocks, power and temperature during the passes.

    Numbers are medians; varying clocks also have their minimum and maximum.
    """
    machine: PlainValues = {}
    for name in dict.fromkeys(name for state in states for name in state):
        values = [state[name] for state in states if name in state]
        numbers = [
            float(value)
            for value in values
            if isinstance(value, (int, float)) and not isinstance(value, bool)
        ]
        if len(numbers) < len(values):
            texts = dict.fromkeys(str(value) for value in values)
            machine[name] = ", ".join(text for text in texts if text != "none") or "none"
            continue
        machine[name] = median(numbers)
        if name.endswith("_mhz") and min(numbers) < max(numbers):
            machine |= {f"{name}_lowest": min(numbers), f"{name}_highest": max(numbers)}
    return machine


def timeline_property(joined: JoinedWork, log: ActivityLog) -> PlainValues:
    """Return how the passes at true speed were joined to layers."""
    return {
        "passes": joined.passes,
        "joined_passes": joined.joined,
        "kernels": joined.kernels,
        "attributed": joined.attributed,
        "outside": joined.outside,
        "dropped_records": log.dropped,
        "problem": joined.problem or None,
    }


def attribution_property(attributed: AttributedWork, log: ActivityLog) -> PlainValues:
    """Return the sums that the timeline can be checked by, in microseconds."""
    return {
        "kernels": attributed.kernels.count,
        "kernel_us": attributed.kernels.time_us,
        "attributed": attributed.given.count,
        "attributed_us": attributed.given.time_us,
        "unattributed": attributed.unclaimed.count,
        "unattributed_us": attributed.unclaimed.time_us,
        "outside": attributed.outside.count,
        "outside_us": attributed.outside.time_us,
        "missing_us": attributed.missing_us,
        "dropped_records": log.dropped,
    }


def attribution_notes(attributed: AttributedWork, log: ActivityLog, by_layer: bool) -> list[Note]:
    """Return notes about kernels that were recorded with their launching calls.

    Args:
        attributed: The work of the passes.
        log: The recorded work.
        by_layer: Whether the passes have layers.
    """
    if not attributed.kernels.count:
        return [Note(NoteKind.WARNING, "The GPU ran no kernel in the passes that were recorded.")]
    notes = []
    share = attributed.given_percent
    if not by_layer:
        notes.append(
            Note(
                NoteKind.INFO, "Kernels are shown by stream: which layer launched them is unknown."
            )
        )
    elif share is not None and share < _WHOLE_PERCENT:
        between = f"{fmt.percent(100 - share)} % of the GPU's kernel time was launched between the"
        notes.append(Note(NoteKind.INFO, f"{between} layers and belongs to none."))
    if abs(attributed.missing_us) > 1:
        text = f"The kernels' times do not add up: {attributed.missing_us:.1f} us are missing."
        notes.append(Note(NoteKind.WARNING, text))
    if log.dropped:
        text = f"{log.dropped:,} records of the GPU were lost or unreadable."
        notes.append(Note(NoteKind.WARNING, text))
    return notes


def join_notes(joined: JoinedWork, profiled: bool) -> list[Note]:
    """Return notes about passes with kernels only that have no layers.

    Args:
        joined: The work of these passes.
        profiled: Whether there was a profiled run with calls recorded.
    """
    if not joined.passes:
        return [Note(NoteKind.WARNING, "The GPU ran no kernel in the passes without profiling.")]
    if joined.joined == joined.passes:
        return []
    which = f"{joined.passes - joined.joined:,} of {joined.passes:,} passes without profiling"
    more = " Their kernels are shown without layers." if joined.joined else ""
    if profiled and not joined.joined:
        more = (
            " Times of layers on the GPU are of the profiled run, in which kernels take as long and"
            " only the gaps are longer."
        )
    text = f"In {which}, kernels cannot be joined to layers: {joined.problem}.{more}"
    return [Note(NoteKind.WARNING if profiled else NoteKind.INFO, text)]


_METER_NAMES = {"sm": "SM active", "tensor": "Tensor Core", "dram": "DRAM", "gpu": "GPU busy"}


@dataclass(frozen=True)
class GpuPlan:
    """What to capture."""

    device: int = 0
    """Number of the CUDA device."""
    timeline: bool = True
    counters: str = "auto"
    """``hardware``, ``gpm``, ``nvml``, ``sysfs``, ``off``, or ``auto`` for the best that works."""
    interval_us: float = 20.0
    """Between two samples of hardware counters."""
    counter_passes: int | None = None
    """The most passes to sample; None for as many as the buffer holds."""
    lock_clocks: bool = False


class GpuCapture:
    """Captures one run.

    In this order: open, metrics; start_trace, sample, stop_trace, write_passes; start_trace with
    calls, stop_trace, write_layers; close.

    Args:
        plan: What to capture.
        board: The files of a Jetson.
        nvml: ``pynvml`` or a stand-in for it.
    """

    def __init__(self, plan: GpuPlan, board: Jetson | None = None, nvml: Any = None) -> None:
        self.environment: PlainValues = {}
        """What does not change, for the report."""
        self.notes: list[Note] = []
        """Notes for the report, written by :meth:`write_notes`."""
        self._plan, self._module = plan, nvml
        self._board = board if board is not None else Jetson()
        self._gpu: Nvml | None = None
        self._lock: ClockLock | None = None
        self._live: Meter | None = None
        self._tracer: ActivityTracer | None = None
        self._sampler: HardwareSampler | PollingSampler | None = None
        self._logs: dict[bool, ActivityLog] = {}
        """The recorded work: of the passes with calls, and of those without."""
        self._calls = False
        self._passes: list[TimedPass] = []
        self._states: list[PlainValues] = []
        self._series: list[Series] = []
        self._no_timeline = ""
        self._no_counters = ""
        self._used_before: int | None = None
        self._slowdowns: set[str] = set()

    def open(self) -> None:
        """Look at the GPU, and lock its clocks if that is wanted."""
        try:
            self._gpu = Nvml(self._plan.device, self._module)
        except UnavailableError as error:
            self._note(f"The GPU's clocks, power and temperature are not known: {error.message}.")
        else:
            self._used_before = self._gpu.device_memory()
            self.environment.update(self._gpu.environment())
        if (
            self._plan.lock_clocks and self._board.board is None
        ):  # BoardWatch locks those of a board
            self._lock_clocks()
        self._live, _ = self._meter(("gpm", "nvml", "sysfs"))
        if self._live is not None:
            self._live.read()

    def _lock_clocks(self) -> None:
        bus_id = self._gpu.bus_id if self._gpu is not None else None
        try:
            self._lock = ClockLock(bus_id or self._plan.device)
        except UnavailableError as error:
            self.environment["gpu_clocks_locked"] = False
            self._note(f"{error.message[0].upper()}{error.message[1:]}.", NoteKind.WARNING)
        else:
            self.environment["gpu_clocks_locked"] = self._lock.mhz or True

    def metrics(self) -> Iterator[Metric]:
        """Yield the live utilisation; also records clocks, power and throttling.

        Called right after a pass: an idle GPU lowers its clock within moments.
        """
        self._note_state()
        if self._live is not None:
            for key, value in self._live.read().items():
                if key in _METER_NAMES:
                    yield Metric(_METER_NAMES[key], value, "%")

    def _note_state(self) -> None:
        state = self._board.state()
        if self._gpu is not None:
            self._slowdowns |= SLOWDOWNS.intersection(self._gpu.throttling() or ())
            state |= self._gpu.state()
        if state:
            self._states.append(state)

    def energy_mj(self) -> int | None:
        """Return the millijoules that the GPU has used so far; None if unknown."""
        return None if self._gpu is None else self._gpu.energy_mj()

    def memory(self) -> int | None:
        """Return the bytes that the run uses on the GPU; None if unknown."""
        if self._gpu is None:
            return None
        used, now = self._gpu.used_memory(), self._gpu.device_memory()
        if used is None and now is not None and self._used_before is not None:
            used = max(0, now - self._used_before)  # processes of a container have other numbers
        return used

    @property
    def ranges(self) -> list[NamedRange]:
        """The NVTX ranges that were recorded together with the calls."""
        log = self._logs.get(True)
        return [] if log is None else log.ranges

    def start_trace(self, *, calls: bool = False, ranges: bool = False) -> bool:
        """Start recording the work of the GPU, with or without the launching calls.

        Args:
            calls: Record these calls.
            ranges: Record NVTX ranges.

        Returns:
            Whether recording works and is requested.
        """
        self._calls = calls
        if not self._plan.timeline:
            self._no_timeline = "it was switched off for this run"
            return False
        try:
            self._tracer = ActivityTracer(self._plan.device, calls=calls, ranges=ranges)
            self._tracer.start()
        except UnavailableError as error:
            self._tracer = None
            self._no_timeline = _with_hint(error)
        return self._tracer is not None

    def between_passes(self) -> None:
        """Record the clocks, and collect the work so far; the passes wait meanwhile.

        Not at true speed: the pass that follows waits for a new buffer of CUPTI (24 ms for 32 MiB
        beside an H200), and the next dozen are slow, too.
        """
        self._note_state()
        if self._tracer is not None and self._calls:
            with contextlib.suppress(UnavailableError):
                self._tracer.flush()

    def plan_samples(self, pass_ms: float, passes: int) -> SamplingPlan | None:
        """Return how many of the passes to sample, or None for no counters at all."""
        if self._plan.counters == "off":
            self._no_counters = "they were switched off for this run"
            return None
        most = self._plan.counter_passes
        wanted = passes if most is None else min(most, passes)
        return plan_sampling(pass_ms, wanted, self._plan.interval_us) if wanted else None

    def start_samples(self, plan: SamplingPlan) -> None:
        """Begin to sample counters, of the best source that works or the one that is wanted."""
        wanted = self._plan.counters
        if wanted in ("auto", "hardware"):
            try:
                sampler = HardwareSampler(self._plan.device, plan.interval_us, plan.expected)
                sampler.start()
            except UnavailableError as error:
                self._no_counters = _with_hint(error)
            else:
                self._sampler = sampler
                return
        sources = {"auto": ("gpm", "nvml", "sysfs"), "hardware": ()}.get(wanted, (wanted,))
        meter, problem = self._meter(sources)
        self._no_counters = self._no_counters or problem
        if meter is not None:
            self._sampler = PollingSampler(meter)
            self._sampler.start()

    def stop_samples(self) -> None:
        """Stop and keep the samples."""
        sampler, self._sampler = self._sampler, None
        if sampler is None:
            return
        try:
            self._series = sampler.stop()
        except UnavailableError as error:
            self._no_counters = _with_hint(error)

    def stop_trace(self) -> None:
        """Stop and keep the records."""
        tracer, self._tracer = self._tracer, None
        if tracer is None:
            return
        try:
            self._logs[self._calls] = tracer.stop()
        except UnavailableError as error:
            self._no_timeline = _with_hint(error)

    def write_passes(
        self,
        writer: ReportWriter,
        origin_ns: int,
        passes: Sequence[TimedPass],
        *,
        counters: bool = True,
    ) -> None:
        """Write the passes at true speed with their work, still without layers, and the counters.

        Args:
            origin_ns: The zero of its clock.
            passes: The passes timed while the trace was on.
            counters: Whether counters were to be sampled.
        """
        self._passes = list(passes)
        for pass_ in passes:
            start_us = (pass_.start_ns - origin_ns) / 1000
            took_us = (pass_.end_ns - pass_.start_ns) / 1000
            writer.add_pass(pass_.index, start_us, took_us, PassState.KERNELS_ALONE)
        if False in self._logs:
            for index, events in join_passes(self._logs[False], passes, None).events.items():
                writer.add_gpu_events(index, events)
        if counters:
            self.write_counters(writer, origin_ns)
        writer.flush()

    def write_layers(
        self,
        writer: ReportWriter,
        origin_ns: int,
        passes: Iterable[PassSpan],
        unordered: str = "",
    ) -> None:
        """Write which layers launched the work.

        Args:
            origin_ns: The zero of the clock of `passes`.
            passes: Those recorded with layers and calls; the first one is warm-up.
            unordered: Why the launch order differs between passes; empty if it does not.
        """
        kernels, calls = self._logs.get(False), self._logs.get(True)
        launches: Launches | None = None
        problem = f"layers were not profiled: {self._no_timeline or 'no profiled pass ran'}"
        if calls is not None:
            spans = list(passes)
            attributed = attribute(calls, origin_ns, spans)
            for index, events in attributed.events.items():
                writer.add_gpu_events(index, events)
            writer.set_property("gpu_check", attribution_property(attributed, calls))
            self.notes += attribution_notes(attributed, calls, any(span.layers for span in spans))
            ordered = sorted(attributed.events)[1:] or sorted(attributed.events)
            lost = bool(calls.dropped or (kernels is not None and kernels.dropped))
            launches = Launches((attributed.events[index] for index in ordered), lost)
            problem = unordered
        if kernels is not None:
            joined = join_passes(kernels, self._passes, launches, problem)
            for index, events in joined.events.items():
                writer.add_gpu_events(index, events, again=True)
            writer.set_property("gpu_timeline", timeline_property(joined, kernels))
            self.notes += join_notes(joined, calls is not None)
        if not self._logs:
            writer.set_gpu_absent(self._no_timeline)
            self._note(f"No timeline of the GPU: {self._no_timeline}.")

    def write_counters(self, writer: ReportWriter, origin_ns: int) -> None:
        """Write the samples; `origin_ns` is the zero of the report's clock."""
        if not any(row.samples for row in self._series):
            reason = self._no_counters or "no sample arrived during the passes"
            self._note(f"No counters of the GPU: {reason}.")
        elif self._no_counters:
            self._note(
                f"Counters come from {self._series[0].source} and are coarse:"
                f" hardware counters do not work: {self._no_counters}."
            )
        for row in self._series:
            spec = row.spec
            if row.samples:
                number = writer.add_counter(
                    spec.name, spec.title, spec.unit, spec.maximum, row.source
                )
                rows = ((when - origin_ns) / 1000 for when, _ in row.samples)
                values = (value for _, value in row.samples)
                writer.add_counter_samples(number, zip(rows, values, strict=True))
            else:
                reason = row.absent or "it was not measured"
                writer.add_absent_counter(spec.title, reason, name=spec.name, source=row.source)
                self._note(f"No row {spec.title}: {reason}.")

    def write_notes(self, writer: ReportWriter) -> None:
        """Write the remarks made so far, and what clocks, power and temperature were."""
        writer.add_environment(during_passes(self._states))
        if self._slowdowns:
            reasons = ", ".join(sorted(self._slowdowns))
            self._note(f"The GPU slowed down during the run: {reasons}.", NoteKind.WARNING)
            self._slowdowns.clear()
        for note in self.notes:
            writer.note(note.text, note.kind)
        self.notes.clear()

    def close(self) -> None:
        """Stop everything and give the clocks back; safe to call at any time, and again."""
        with contextlib.suppress(DldError):
            self.stop_samples()
        with contextlib.suppress(DldError):
            self.stop_trace()
        if self._live is not None:
            self._live.close()
            self._live = None
        if self._gpu is not None:
            self._gpu.close()
            self._gpu = None
        if self._lock is not None:
            self._lock.release()
            if self._lock.problem:
                self._note(f"The clocks: {self._lock.problem}.", NoteKind.WARNING)
            self._lock = None

    def _meter(self, sources: Iterable[str]) -> tuple[Meter | None, str]:
        """Return the first meter that works, or why the last one does not."""
        problem = ""
        for source in sources:
            try:
                if source == "sysfs":
                    return jetson_meter(self._board), ""
                if self._gpu is None:
                    raise UnavailableError("NVML does not work here")
                return gpm_meter(self._gpu) if source == "gpm" else nvml_meter(self._gpu), ""
            except UnavailableError as error:
                problem = _with_hint(error)
        return None, problem

    def _note(self, text: str, kind: NoteKind = NoteKind.INFO) -> None:
        self.notes.append(Note(kind, text))


def _with_hint(error: DldError) -> str:
    return f"{error.message} ({error.hint})" if error.hint else error.message
