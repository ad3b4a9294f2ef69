"""Reading a report, for screens, commands and scripts.

::

    with open_report("resnet50-cpu.dldprof") as report:
        report.latency            # LatencySummary of the latency loop, or None
        report.layers             # tuple[Layer], in order of first execution, with statistics
        report.passes             # tuple[ReportPass]: the profiled ones
        report.typical_pass       # index of the pass to draw
        report.measurement        # Measurement: shares, sums, and what is between layers
        report.pass_events(index) # list[PassEvent], read from the file when asked
        report.groups("type")     # list[Group], largest first

Opening reads one row per layer; samples stay in the file. A report may be read while it is written,
and from several threads. :func:`open_report` opens what other profilers wrote, too;
:meth:`Report.open` only report files.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from operator import is_not
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dld_tui.core import fmt
from dld_tui.core.errors import DldError, InputError, UsageError
from dld_tui.core.files.blobs import spill_folder
from dld_tui.core.files.recognise import HEAD, FileKind, ReportReader, reader_of, recognise
from dld_tui.core.files.source import Source
from dld_tui.core.files.temporary import temporary_folder
from dld_tui.core.report import schema
from dld_tui.core.report.formats.trace_events import depths
from dld_tui.core.report.generation import stored_figures
from dld_tui.core.report.groups import GROUPINGS, group_layers, priced
from dld_tui.core.report.pass_statistics import (
    ATTRIBUTED_PASSES,
    counted_passes,
    gpu_passes,
    percentile_of,
)
from dld_tui.core.report.queries import (
    read_counters,
    read_events,
    read_gpu_events,
    read_latencies,
    read_layers,
    read_notes,
    read_passes,
    read_properties,
    read_series,
    read_tracks,
    with_whole_shares,
)
from dld_tui.core.report.records import (
    LAYER_MEANS,
    PHASES,
    Bucket,
    Counter,
    GpuEvent,
    Group,
    Layer,
    PassEvent,
    PassState,
    ReportPass,
    Wording,
)
from dld_tui.core.report.schema import (
    extent_of,
    saving,
)
from dld_tui.core.report.store import FASTEST_QUARTER, GPU_ABSENT, ReportWriter
from dld_tui.core.statistics import LatencySource, LatencySummary, is_valid_time, summarise
from dld_tui.core.types import JSON, CancelCheck, ProgressCallback

if TYPE_CHECKING:
    from dld_tui.core.machine.peaks import Peaks
    from dld_tui.core.process.plugins import Plugin
    from dld_tui.core.report.measurement import Measurement, Samples


LAYERS_ONLY = "layers_only"
"""The property of a report that is true when a pass is only the sum of its layers: other programs'
measurements have no end-to-end latency."""
PHASES_ONLY = "phases_only"
"""The property that is true when the layers are the phases of whole inferences, copies and compute,
and the passes are the inferences of the latency loop."""


_DISTORTED_PERCENT = 10.0
"""Where recording slows passes down by more, their times say nothing of the model."""
_ROUNDED_PERCENT = 0.5
"""How far a stored per cent may be from that of the stored time."""


class Report:
    """An open report. Everything that is read on opening is an attribute.

    Attributes:
        path: The file.
        status: ``complete`` or ``partial`` (the run was killed, cancelled, or is still running).
        network: The model's name.
        backend: With its version.
        execution_provider: Of the session.
        device: The processor's name.
        created: When the run started, ISO 8601, UTC; empty when unknown.
        model: What is known of the model file: ``path``, ``bytes``, ``mtime_ns``, …
        settings: The request that was run.
        environment: Versions, clocks and so on.
        properties: All rows of the ``report`` table.
        notes: Remarks of the run.
        latency: The latency loop's summary; of the profiled passes when there was no loop; None
            when nothing was measured.
        layers: In order of first execution; ``layers[i].index == i``.
        passes: The recorded passes, in order: profiled ones, and those at true speed.
        counted_passes: Those that the statistics of layers are computed from.
        kernel_passes: Those at true speed, with only the GPU's work recorded, if any.
        gpu_passes: Numbers of those that GPU times of layers are computed from.
        latencies: The inferences of the latency loop in milliseconds, in order; of a decoder, what
            a token took in each repetition of the first prompt, or each step if only these are
            known.
        tracks: The rows of the timeline: threads and the streams of GPUs.
        version: Of the file's tables.
        counters: Those that were sampled over time, and those that could not be.
        gpu_absent: Why nothing was measured on the GPU; None if it was, or was not requested.
        has_gpu_events: Whether any pass has GPU work.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._lock = threading.Lock()
        self.version = schema.version_of(connection)
        self.properties = read_properties(self._query, "report", "key")
        self.status = "complete" if self.properties.get("status") == "complete" else "partial"
        self.network = self._text("network")
        self.backend = self._text("backend")
        self.execution_provider = self._text("execution_provider")
        self.device = self._text("device")
        self.created = self._text("created")
        model = self.properties.get("model")
        self.model: dict[str, JSON] = model if isinstance(model, dict) else {}
        self.settings = read_properties(self._query, "settings", "name")
        self.environment = read_properties(self._query, "environment", "name")
        self.notes = read_notes(self._query)
        self.tracks = read_tracks(self._query)
        self._problems: list[str] = []
        self.passes = self._sound_passes(read_passes(self._query, self.version))
        stored = read_layers(self._query, self.version)
        self.layers = tuple(map(with_whole_shares, stored))
        if wrong := sum(map(is_not, self.layers, stored)):
            self._problems.append(
                f"{fmt.plural(wrong, 'layer')} with shares of nodes that are no whole: shared"
                " equally over the nodes"
            )
        states = {pass_.index: pass_.state for pass_ in self.passes}
        counted = counted_passes(states)
        self.counted_passes = tuple(pass_ for pass_ in self.passes if pass_.index in counted)
        self._read_gpu()
        self.gpu_passes = self._read_gpu_passes(states)
        is_contradictory = _is_contradictory(self.layers)
        is_stored = self.status == "complete" and self.properties.get(FASTEST_QUARTER) is True
        if is_contradictory or not is_stored:
            self.layers = self._with_statistics(self.layers)
        if is_contradictory:
            self._problems.append(
                "The stored times of layers contradict their per cents: computed again from the"
                " samples"
            )
        self.layers = priced(self.layers)
        if any(layer.cost and layer.cost.roof_ms for layer in self.layers):
            from dld_tui.core.report.roofline import with_reached_roofs  # needs messages of onnx

            self.layers = with_reached_roofs(self.layers)
        # Files of decoders may hold their single steps: these are no latencies of repetitions.
        repeated = [figures.tokens_ms for figures in stored_figures(self.properties)[:1]]
        of_tokens = next(filter(None, repeated), ())
        self.latencies = self._sound_latencies(of_tokens or read_latencies(self._query))
        self.latency = self._summary(self.latencies, LatencySource.LOOP) or self.profiled_latency
        self.kernel_passes = tuple(
            pass_ for pass_ in self.passes if pass_.state is PassState.KERNELS_ALONE
        )

    @cached_property
    def typical_pass(self) -> int | None:
        """The index of the pass to draw: the one in the middle by duration (the shorter of two).

        Of those at true speed where there are any (and counters were sampled, where they were),
        else of the measured ones with valid times of layers. None without any.
        """
        drawn = self._sampled(self.kernel_passes) or self.kernel_passes or self.counted_passes
        wrong = () if self.measurement.own is None else self.measurement.own.left_out
        sound = [pass_ for pass_ in drawn if pass_.index not in wrong]
        ordered = sorted((pass_.duration_us, pass_.index) for pass_ in sound)
        return ordered[(len(ordered) - 1) // 2][1] if ordered else None

    def _read_gpu(self) -> None:
        reason = self.properties.get(GPU_ABSENT)
        self.gpu_absent: str | None = reason if isinstance(reason, str) and reason else None
        self.counters: tuple[Counter, ...] = ()
        self.has_gpu_events = False
        if self.version < 2:
            return
        self.counters = tuple(self._known(counter) for counter in read_counters(self._query))
        self.has_gpu_events = bool(self._query("SELECT 1 FROM gpu_events LIMIT 1"))

    def _read_gpu_passes(self, states: Mapping[int, PassState]) -> frozenset[int]:
        if self.version < 2:
            return frozenset()
        attributed = (schema.whole_of(index, "pass") for (index,) in self._query(ATTRIBUTED_PASSES))
        return frozenset(gpu_passes(states, attributed))

    def _sampled(self, passes: Sequence[ReportPass]) -> list[ReportPass]:
        """Return the passes in whose time all the counters that were measured have samples."""
        counters = [counter for counter in self.counters if counter.samples]
        if not counters:
            return []
        first = max(counter.first_us for counter in counters)
        last = min(counter.last_us for counter in counters)
        return [
            pass_
            for pass_ in passes
            if first <= pass_.counter_origin_us
            and pass_.counter_origin_us + pass_.duration_us <= last
        ]

    def _known(self, counter: Counter) -> Counter:
        """Return a counter with what the writer of a partial report did not get to compute."""
        if counter.samples or counter.absent is not None:
            return counter
        extent = extent_of(self._connection, counter.id)
        return counter if extent is None else replace(counter, **vars(extent))

    def _sound_passes(self, passes: Iterable[ReportPass]) -> tuple[ReportPass, ...]:
        recorded = tuple(passes)
        sound = tuple(
            pass_
            for pass_ in recorded
            if is_valid_time(pass_.duration_us) and pass_.start_us > -math.inf
        )
        self._left_out(len(recorded) - len(sound), "profiled pass", "profiled passes")
        return sound

    def _sound_latencies(self, latencies: tuple[float, ...]) -> tuple[float, ...]:
        sound = tuple(value for value in latencies if is_valid_time(value))
        self._left_out(len(latencies) - len(sound), "inference of the latency loop",
                       "inferences of the latency loop")  # fmt: skip
        return sound

    def _left_out(self, count: int, noun: str, nouns: str) -> None:
        if count:
            self._problems.append(
                f"{fmt.plural(count, noun, nouns)} without a valid time (missing, negative or"
                " contradictory) left out"
            )

    @property
    def problems(self) -> list[str]:
        """What in the file cannot be true, a line each: figures are without it.

        Reads all samples once, while the report is open.
        """
        return [*self._problems, *self._sample_problems]

    @cached_property
    def _sample_problems(self) -> list[str]:
        own = self.measurement.own
        if own is None:
            return []
        unsound = len(own.left_out)
        if not unsound:
            return []
        return [
            f"{fmt.plural(unsound, 'profiled pass', 'profiled passes')} without valid times of"
            " layers (missing, negative or contradictory) left out of all sums"
        ]

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Report:
        """Open a report file.

        Raises:
            InputError: The file cannot be read, is not a report, or is of a newer version.
            CorruptFileError: It is damaged.
        """
        target = Path(path)
        connection = schema.open_database(target)
        try:
            with schema.reading(target):
                return cls(target, connection)
        except BaseException:
            connection.close()
            raise

    def close(self) -> None:
        """Close the file; the attributes stay usable."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Report:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @cached_property
    def measurement(self) -> Measurement:
        """The layers with their samples, which are read once, while the report is open."""
        from dld_tui.core.report.measurement import Measurement

        return Measurement(self.layers, self._samples(), self._samples(gpu=True))

    def _samples(self, *, gpu: bool = False) -> Samples | None:
        from dld_tui.core.report.measurement import read_samples

        if gpu and not self.has_gpu_events:
            return None
        numbers = self.gpu_passes if gpu else {pass_.index for pass_ in self.counted_passes}
        known = not self.properties.get(LAYERS_ONLY)  # else passes are sums of layers
        lengths = {
            pass_.index: pass_.duration_us / 1000 if known else math.nan
            for pass_ in self.passes
            if pass_.index in numbers
        }
        parallel = sum(track.kind == "thread" for track in self.tracks) > 1
        with schema.reading(self.path), self._lock:
            return read_samples(
                self._connection.execute, len(self.layers), lengths, gpu=gpu, parallel=parallel
            )

    def _with_statistics(self, layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
        """Return layers with what the writer of the report did not compute, or computed else."""
        own, gpu = self._samples(), self._samples(gpu=True)
        times = {} if own is None else own.statistics()
        kernels = {} if gpu is None else gpu.statistics()
        if own is not None:
            layers = tuple(
                replace(layer, **vars(times[layer.index])) if layer.index in times else layer
                for layer in layers
            )
        return tuple(
            replace(layer, gpu_time_ms=kernels[layer.index].time_ms)
            if layer.index in kernels
            else layer
            for layer in layers
        )

    @cached_property
    def roofs(self) -> Mapping[str, Peaks]:
        """What the devices can do at most, by execution provider, as far as the report says."""
        from dld_tui.core.codec import decode
        from dld_tui.core.machine.peaks import Peaks

        stored = self.properties.get("roofs")
        peaks = dict[str, Peaks]()
        for provider, roof in stored.items() if isinstance(stored, dict) else ():
            with contextlib.suppress(DldError):
                peaks[provider] = decode(Peaks, roof)
        return peaks

    @property
    def is_order_certain(self) -> bool | None:
        """Whether the costliest layers are in their order; None when nothing can be said."""
        if self.properties.get(LAYERS_ONLY) or self.has_phases:
            return None
        return self.measurement.is_order_certain

    @property
    def joined_percent(self) -> float | None:
        """The part of what the layers cost that is joined to ONNX nodes, or None without times."""
        known = [layer.percent for layer in self.layers if layer.confidence != "none"]
        if not any(layer.cost_ms for layer in self.layers):
            return None
        return math.fsum(percent or 0.0 for percent in known)

    @property
    def profiled_latency(self) -> LatencySummary | None:
        """The summary of the profiled passes; profiling makes them slower than `latency`.

        None also when passes are but sums of layers, see `LAYERS_ONLY`, or whole inferences.
        """
        if self.properties.get(LAYERS_ONLY) or self.has_phases:
            return None
        durations = (pass_.duration_us / 1000 for pass_ in self.counted_passes)
        return self._summary(durations, LatencySource.PROFILED)

    @property
    def latency_passes(self) -> tuple[ReportPass, ...]:
        """The passes that `latency` is of; empty where the model was timed without profiling."""
        is_profiled = self.latency is not None and self.latency.source is LatencySource.PROFILED
        return self.counted_passes if is_profiled else ()

    @property
    def latency_samples(self) -> tuple[float, ...]:
        """The times that `latency` summarises, in milliseconds and in order."""
        return self.latencies or tuple(run.duration_us / 1000 for run in self.latency_passes)

    @property
    def is_undistorted(self) -> bool:
        """Whether profiled passes took as long as others, so that their times are the model's.

        All of them, and those that the times of layers are of.
        """
        profiled, latency = self.profiled_latency, self.latency
        if profiled is None or latency is None:
            return False
        longest = max(profiled.median, self.measurement.pass_ms or 0.0)
        return longest <= (1 + _DISTORTED_PERCENT / 100) * latency.median

    @property
    def has_phases(self) -> bool:
        """Whether the layers are phases of whole inferences, which ran without profiling."""
        return bool(self.properties.get(PHASES_ONLY))

    @property
    def wording(self) -> Wording:
        """What the rows are, and what their times are."""
        if self.has_phases:
            return PHASES
        return LAYER_MEANS if self.properties.get(LAYERS_ONLY) else Wording()

    def _summary(self, values: Iterable[float], source: LatencySource) -> LatencySummary | None:
        return summarise(values, source, percentile_of(self.backend))

    def pass_events(self, index: int) -> list[PassEvent]:
        """Return the layers that ran in a pass, by start time since the start of the pass."""
        start_us = next((pass_.start_us for pass_ in self.passes if pass_.index == index), None)
        if start_us is None:
            return []
        with schema.reading(self.path):
            events = read_events(self._query, index, start_us, len(self.layers))
        spans = [(event.track, event.start_us, event.duration_us) for event in events]
        return [
            replace(event, depth=depth) if depth else event
            for event, depth in zip(events, depths(spans), strict=True)
        ]

    def gpu_events(self, pass_index: int) -> list[GpuEvent]:
        """Return the GPU work of a pass, by start time since the start of the pass."""
        if self.version < 2:
            return []
        names = {track.id: track.name for track in self.tracks}
        with schema.reading(self.path):
            return read_gpu_events(self._query, pass_index, len(self.layers), names)

    def counter_series(
        self, counter_id: int, start_us: float, end_us: float, buckets: int
    ) -> list[Bucket | None]:
        """Return a counter in equal time buckets; None where nothing was measured, never 0.

        Args:
            counter_id: `Counter.id`.
            start_us: On the clock of the counters: `ReportPass.counter_origin_us` or later.
            end_us: After `start_us`.
            buckets: Their number. The cost does not depend on the number of samples.
        """
        counter = next(
            (candidate for candidate in self.counters if candidate.id == counter_id), None
        )
        if counter is None:
            return [None] * max(buckets, 0)
        with schema.reading(self.path):
            return read_series(self._query, counter, start_us, end_us, buckets)

    def groups(self, by: str) -> list[Group]:
        """Return the layers' time by a key, the costliest first: see :func:`.groups.group_layers`.

        Args:
            by: ``layer``, ``type``, ``node``, ``op``, ``scope``, ``provider`` or ``precision``.

        Raises:
            UsageError: An unknown key.
        """
        if by not in GROUPINGS:
            raise UsageError(f"cannot group by {by!r}; choose one of {', '.join(GROUPINGS)}")
        return group_layers(self.layers, by)

    def model_problem(self) -> str | None:
        """Return why links to the model may not fit: it was moved or changed.

        None when it is as it was, or was never recorded.
        """
        path = self.model.get("path")
        if not isinstance(path, str):
            return None
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            return "the model no longer exists"
        for key, now in (("bytes", status.st_size), ("mtime_ns", status.st_mtime_ns)):
            if isinstance(self.model.get(key), int) and self.model[key] != now:
                return "the model has changed since"
        return None

    def _query(self, sql: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._connection.execute(sql, values).fetchall()

    def _text(self, key: str) -> str:
        value = self.properties.get(key)
        return value if isinstance(value, str) else ""


def _is_contradictory(layers: Sequence[Layer]) -> bool:
    """Return whether stored per cents cannot be those of the stored times."""
    times = [layer.time_ms for layer in layers if layer.time_ms is not None]
    total = sum(times)
    if not 0 < total < math.inf or any(time < 0 for time in times):
        return bool(times) and total != 0
    return any(
        abs(100 * layer.time_ms / total - layer.percent) > _ROUNDED_PERCENT
        for layer in layers
        if layer.time_ms is not None and layer.percent is not None
    )


def temporary_report(
    path: Path,
    fill: Callable[[ReportWriter], None],
    *,
    network: str,
    backend: str,
    amend: Callable[[sqlite3.Connection], None] | None = None,
) -> Report:
    """Return another program's file as a report.

    Args:
        path: The file, which becomes the path of the report.
        fill: Called once to add layers, passes and properties.
        network: The display name of the model.
        backend: The program that measured.
        amend: Called with the finished database, for figures of `path` that are not of passes.

    Raises:
        SaveError: The folder for temporary files is full.
    """
    with temporary_folder("report", spill_folder()) as folder:
        with ReportWriter.create(
            Path(folder, "profile.dldprof"),
            network=network,
            backend=backend,
            execution_provider="",
            device="",
            model={},
            settings={},
            environment={},
        ) as writer:
            writer.set_property(
                "created", ""
            )  # when it was measured is not known, unless `fill` does
            fill(writer)
        if amend is not None:
            with saving(writer.path):
                database = sqlite3.connect(writer.path)
                try:
                    amend(database)
                    database.commit()
                finally:
                    database.close()
        # The open file outlives its name: nothing is left behind, however the process ends.
        report = Report.open(writer.path)
    report.path = path
    return report


_READERS = {
    FileKind.ORT_PROFILE: "import_ort:report_from_ort_profile",
    FileKind.ENGINE_PROFILE: "trtexec_files:report_from_trtexec_profile",
    FileKind.ENGINE_TIMES: "trtexec_files:report_from_trtexec_times",
    FileKind.TRACE: "chrome_trace:report_from_trace",
}
"""The readers of other programs' files; imported when needed."""

_OF_ENGINES = frozenset(
    {
        FileKind.ENGINE_LAYERS,
        FileKind.ENGINE_METADATA,
        FileKind.ENGINE_ARCHIVE,
        FileKind.TRTEXEC_LOG,
    }
)


def open_report(
    path: str | os.PathLike[str],
    progress: ProgressCallback | None = None,
    cancelled: CancelCheck | None = None,
) -> Report:
    """Open a report file, or what another profiler wrote as a report.

    Args:
        path: A ``.dldprof`` file; a profile of ONNX Runtime; layer times or inference times of
            trtexec; a Chrome trace; or what a package reads. Recognised by content.
        progress: Called with (bytes read, bytes in all) of what another profiler wrote.
        cancelled: Asked about once per megabyte.

    Raises:
        InputError: The file cannot be read, or is of another kind.
        CancelledError: `cancelled` returned True.
    """
    target = Path(path)
    source = Source.open(target)
    try:
        head = source.read(0, min(HEAD, source.size))
    finally:
        source.close()
    if schema.is_report(head):
        return Report.open(target)
    if (added := reader_of(head, target)) is not None:
        return _read_by(added, target, progress, cancelled)
    if head.startswith(schema.MAGIC):
        return Report.open(target)
    kind = recognise(target)
    reader = _READERS.get(kind)
    if reader is None:
        hint = f"Run: dld plan {target}" if kind in _OF_ENGINES else None
        raise InputError(f"is {kind.title}, not a profile report", where=str(target), hint=hint)
    module, _, function = reader.partition(":")
    report = getattr(importlib.import_module(f"dld_tui.core.report.formats.{module}"), function)(
        target, progress, cancelled
    )
    assert isinstance(report, Report)
    return report


def _read_by(
    added: Plugin[ReportReader[Any]],
    path: Path,
    progress: ProgressCallback | None,
    cancelled: CancelCheck | None,
) -> Report:
    """Read a file with the reader of a package.

    Raises:
        InputError: The reader has a bug.
    """
    try:
        report = added.value.read(path, progress, cancelled)
    except (DldError, OSError):
        raise
    # The seam to code of others, which may raise anything.
    except Exception as error:  # noqa: BLE001
        problem = f"{type(error).__name__}: {error}"
    else:
        if isinstance(report, Report):
            return report
        problem = f"it returned no Report, but {type(report).__name__}"
    raise InputError(
        f"the reader {added.name!r} of {added.package} failed: {problem}",
        where=str(path),
        hint=f"Update or uninstall {added.package}",
    )
