"""Writing a report file during a run.

::

    with ReportWriter.create(path, network="resnet50.onnx", backend="ONNX Runtime 1.31.1",
                             execution_provider="CPU", device="…", model={"path": …},
                             settings={…}, environment={…}) as report:
        report.add_latencies(milliseconds)          # as often as you like
        layer = report.add_layer(Layer(name=…, type=…))
        report.add_pass(0, start_us, duration_us)
        report.add_samples(0, [(layer, start_us, duration_us, self_us, thread), …])
        report.finish()

GPU work and counters are added like this::

    report.add_gpu_events(0, [GpuEvent("stream 7", "kernel", name, start_us, duration_us, layer)])
    sm = report.add_counter("sm__cycles_active", "SM active", "%", 100.0, "cupti-pm")
    report.add_counter_samples(sm, [(time_us, value), …])
    report.add_absent_counter("DRAM", "needs the group debug")
    report.set_pass_start(0, start_us)      # only if the counters have their own clock
    report.set_gpu_absent("the driver is too old for CUPTI")

Added rows are on disk within a second of the next call, or immediately after
:meth:`ReportWriter.flush`; call that at the end of a stage. Until :meth:`ReportWriter.finish`, the
report is marked partial, and a killed run leaves it readable. A new report is therefore written at
its final path from the start. An old report that may be replaced stays until `finish`; the new
one is written to ``NAME.partial`` beside it, and is left there, readable, if the run dies.

Rows are buffered between commits, so that a transaction is open for milliseconds only: readers are
not blocked, and a kill hardly ever hits one.
"""

from __future__ import annotations

import math
import os
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any

from dld_tui.core.codec import encode
from dld_tui.core.errors import CancelledError, DldError, SaveError, UsageError
from dld_tui.core.files import permission
from dld_tui.core.files.attributes import take_over
from dld_tui.core.files.writer import not_kept, put_in_place
from dld_tui.core.notes import NoteKind
from dld_tui.core.report import schema
from dld_tui.core.report.records import CounterSource, GpuEvent, Layer, PassState
from dld_tui.core.report.schema import as_json, layer_row, link_row, saving, store_counters
from dld_tui.core.text import encodable
from dld_tui.core.types import JSON

GPU_ABSENT = "gpu_absent"
"""The row of the table ``report`` that says why nothing of the GPU was measured."""

FASTEST_QUARTER = "fastest_quarter"
"""The row of the table ``report`` that is true where the stored times of layers are the means of
their fastest quarter: earlier versions stored medians."""

_ROWS_AT_ONCE = 20_000


COMMIT_SECONDS = 1.0
_ROWS_IN_MEMORY = 50_000


class ReportWriter:
    """A report that is being written. Not thread-safe.

    Attributes:
        path: Where the report is once it is finished.
        written_path: Where it is now: `path`, or ``NAME.partial`` when it replaces another report.
    """

    def __init__(self, path: Path, written_path: Path) -> None:
        self.path = path
        self.written_path = written_path
        self._database = sqlite3.connect(written_path, isolation_level=None)
        self._buffers: dict[str, list[tuple[object, ...]]] = {}
        self._buffered = 0
        self._last_commit = time.monotonic()
        self._layers = 0
        self._latencies = 0
        self._notes = 0
        self._sequence: dict[int, int] = {}
        self._tracks: dict[tuple[str, str], int] = {}
        self._open = True
        self._gpu_sequence: dict[int, int] = {}
        self._gpu_names: dict[str, int] = {}
        self._counters = 0
        self._pass_rows: dict[int, tuple[float, float, PassState]] = {}
        self._counter_starts: dict[int, float] = {}

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        network: str,
        backend: str,
        execution_provider: str,
        device: str,
        model: Mapping[str, JSON],
        settings: Mapping[str, JSON],
        environment: Mapping[str, JSON],
    ) -> ReportWriter:
        """Create a report.

        Args:
            path: The final path, by convention ``NAME.dldprof``.
            network: The display name of the model.
            backend: With its version, e.g. ``ONNX Runtime 1.31.1``.
            execution_provider: Of the session, e.g. ``CPU`` or ``CUDA``.
            device: The processor's name.
            model: ``path``, and where known ``bytes`` and ``mtime_ns`` as they were when the model
                was read (:meth:`.report.Report.model_problem` compares them), and anything else.
            settings: The request, from :func:`dld_tui.core.params.to_json`.
            environment: Versions, clocks, power mode and so on.

        Raises:
            UsageError: The file exists and may not be replaced.
            SaveError: The file cannot be written.
        """
        target = Path(path)
        replaces = os.path.lexists(target)
        if replaces and not permission.may_replace(target):
            raise UsageError("the report already exists", where=str(target), hint="Use --force")
        written = target.with_name(f"{target.name}.partial") if replaces else target
        with saving(written):
            if replaces:
                written.unlink(missing_ok=True)
            # Not left to SQLite, which would take up a file that another process just made.
            mode = 0o600 if replaces else 0o666
            descriptor = os.open(written, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode)
            try:
                lost = take_over(descriptor, target, private=False) if target.is_file() else []
                if replaces:  # until it is whole
                    os.fchmod(descriptor, mode)
            finally:
                os.close(descriptor)
            writer = cls(target, written)
            try:
                schema.create(writer._database)
            except sqlite3.Error:
                writer._close()
                written.unlink(missing_ok=True)
                raise
        properties: dict[str, JSON] = {
            "status": "partial",
            "network": network,
            "backend": backend,
            "execution_provider": execution_provider,
            "device": device,
            "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "model": dict(model),
        }
        for table, values in (
            ("report", properties),
            ("settings", settings),
            ("environment", environment),
        ):
            rows = [(encodable(name), as_json(value)) for name, value in values.items()]
            writer._extend(table, rows)
        for remark in not_kept(target, lost):
            writer.note(remark, NoteKind.WARNING)
        writer.flush()
        return writer

    def set_property(self, key: str, value: Any) -> None:
        """Set a row of the ``report`` table, e.g. ``clock_origin_ns``; replaces an earlier one.

        Args:
            key: Its name.
            value: JSON data, or a dataclass.
        """
        self._extend("report", [(encodable(key), as_json(encode(value)))])

    def add_environment(self, values: Mapping[str, JSON]) -> None:
        """Add to the environment what became known later; replaces earlier values."""
        rows = [(encodable(name), as_json(value)) for name, value in values.items()]
        self._extend("environment", rows)

    def add_latencies(self, milliseconds: Iterable[float]) -> None:
        """Append inferences of the latency loop, in order."""
        rows = [(index, float(ms)) for index, ms in enumerate(milliseconds, self._latencies)]
        self._latencies += len(rows)
        self._extend("latencies", rows)

    def add_layer(self, layer: Layer) -> int:
        """Add a layer and return its number; `index` and the statistics of `layer` are ignored."""
        index = self._layers
        self._layers += 1
        self._extend("layers", [layer_row(index, layer)])
        links = [link_row(index, position, link) for position, link in enumerate(layer.nodes)]
        self._extend("layer_nodes", links)
        return index

    def set_layer(self, index: int, layer: Layer) -> None:
        """Replace a layer that was added, except for its nodes, before the report is finished."""
        self._extend("layers", [layer_row(index, layer)])

    def main_kernels(self) -> dict[int, str]:
        """Return the name of the kernel that takes most of the time of each layer on a GPU."""
        self.flush()
        rows = self._database.execute(
            "SELECT e.layer, n.name, SUM(e.duration_us) FROM gpu_events e"
            " JOIN gpu_names n ON n.id = e.name"
            " WHERE e.kind = 'kernel' AND e.layer IS NOT NULL GROUP BY e.layer, e.name ORDER BY 3"
        )
        return {layer: name for layer, name, _ in rows}

    def add_pass(
        self, index: int, start_us: float, duration_us: float, state: PassState = PassState.MEASURED
    ) -> None:
        """Add a profiled pass; its samples count in statistics only when this was called.

        Raises:
            ValueError: `state` is the word of none.
        """
        self._pass_rows[index] = (float(start_us), float(duration_us), PassState(state))
        self._write_pass(index)

    def add_samples(
        self, pass_index: int, rows: Iterable[tuple[int, float, float, float, int | str]]
    ) -> None:
        """Add runs of layers in a pass: (layer, start_us, duration_us, self_us, thread) rows.

        ``start_us`` is on the clock of :meth:`add_pass`.
        """
        first = self._sequence.get(pass_index, 0)
        tracks: dict[int | str, int] = {}
        samples: list[tuple[object, ...]] = []
        for sequence, (layer, start_us, duration_us, self_us, thread) in enumerate(rows, first):
            track = tracks.get(thread)
            if track is None:
                track = tracks[thread] = self._track(thread)
            samples.append((pass_index, sequence, layer, start_us, duration_us, self_us, track))
        self._sequence[pass_index] = first + len(samples)
        self._extend("samples", samples)

    def add_gpu_events(
        self, pass_index: int, rows: Iterable[GpuEvent], *, again: bool = False
    ) -> None:
        """Add the GPU work of a pass, in any order; times since the start of the pass.

        Args:
            pass_index: The pass.
            rows: The work.
            again: Replace the events added before: these are the same ones, in the same order, with
                more details.
        """
        sequence = 0 if again else self._gpu_sequence.get(pass_index, 0)
        events: list[tuple[object, ...]] = []
        for event in rows:
            if not (math.isfinite(event.start_us) and math.isfinite(event.duration_us)):
                continue
            place = (self._gpu_name(event.name), self._track(event.stream, "stream"))
            times = (float(event.start_us), float(event.duration_us))
            details = as_json(dict(event.details)) if event.details else None
            more = (event.layer, event.bytes, details)
            events.append((pass_index, sequence + len(events), event.kind, *place, *times, *more))
        self._gpu_sequence[pass_index] = sequence + len(events)
        self._extend("gpu_events", events)

    def add_counter(
        self, name: str, title: str, unit: str, maximum: float | None, source: CounterSource
    ) -> int:
        """Add a counter and return its number; without samples it is shown as not measured."""
        return self._counter_row(name, title, unit, maximum, source, None)

    def add_absent_counter(
        self, title: str, reason: str, *, name: str = "", source: CounterSource = "cupti-pm"
    ) -> int:
        """Add a counter that could not be measured, with the reason that is shown in its place."""
        return self._counter_row(name, title, "", None, source, reason)

    def add_counter_samples(self, counter_id: int, rows: Iterable[tuple[float, float]]) -> None:
        """Add (time_us, value) samples of a counter; values that are no numbers are left out.

        ``time_us`` is on the clock of :meth:`set_pass_start`, by default that of the passes.
        """
        samples = (
            (counter_id, float(time_us), float(value))
            for time_us, value in rows
            if math.isfinite(time_us) and math.isfinite(value)
        )
        while chunk := list(islice(samples, _ROWS_AT_ONCE)):
            self._extend("counter_samples", chunk)

    def set_pass_start(self, pass_index: int, start_us: float) -> None:
        """Set the start of a pass on the clock of the counters, before or after it was added."""
        self._counter_starts[pass_index] = float(start_us)
        if pass_index in self._pass_rows:
            self._write_pass(pass_index)

    def set_gpu_absent(self, reason: str) -> None:
        """Say why nothing of the GPU was measured; shown where its lanes would be."""
        self.set_property(GPU_ABSENT, reason)

    @property
    def is_open(self) -> bool:
        """Whether something can be added: it was neither finished nor aborted."""
        return self._open

    def note(self, text: str, kind: NoteKind = NoteKind.INFO) -> None:
        """Add a note of a kind that says how loud it is."""
        self._extend("notes", [(self._notes, kind.value, encodable(text))])
        self._notes += 1

    def flush(self) -> None:
        """Write everything added so far to disk.

        Raises:
            SaveError: It cannot be written; earlier commits remain.
        """
        with saving(self.written_path):
            if self._buffered:
                self._insert_buffered()
        self._buffers.clear()
        self._buffered = 0
        self._last_commit = time.monotonic()

    def finish(self) -> Path:
        """Compute the statistics, mark the report complete, close it and return its path.

        Raises:
            SaveError: It cannot be written.
        """
        self._summarise()
        self.set_property("status", "complete")
        self.flush()
        self._close()
        if self.written_path != self.path:
            with saving(self.path):
                put_in_place(self.written_path, self.path, overwrite=True)
            self.written_path = self.path
        return self.path

    def abort(self, reason: str | None = None) -> Path | None:
        """Close the report, marked partial with `reason`, and return its path.

        A report without any measurement is removed; the result is then None.

        Raises:
            SaveError: Buffered rows cannot be written.
        """
        if not (self._latencies or self._sequence or self._gpu_sequence):
            self._close()
            self.written_path.unlink(missing_ok=True)
            return None
        try:
            if reason:
                self.note(reason, kind=NoteKind.WARNING)
            self._summarise()
        finally:
            self._close()
        return self.written_path

    def give_up(self, error: BaseException, *, stays: bool = True) -> None:
        """Keep measurements made before an error, if any, and name the file in the error's hint.

        Args:
            error: The error that ended the run.
            stays: Whether the folder is kept: if not, the hint stays as it is.
        """
        if isinstance(error, SaveError):  # what is on disk is all there is
            return
        cancelled = isinstance(error, (GeneratorExit, CancelledError))
        kept = self.abort("the run was cancelled" if cancelled else str(error))
        if stays and kept is not None and isinstance(error, DldError) and error.hint is None:
            error.hint = f"What was measured before is in {kept}"

    def __enter__(self) -> ReportWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Finish when nothing went wrong; otherwise leave a partial report."""
        if not self._open:
            return
        if error is None:
            self.finish()
        elif isinstance(error, SaveError):
            self._close()
        else:
            self.abort(str(error) or type(error).__name__)

    def _insert_buffered(self) -> None:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            for table, rows in self._buffers.items():
                self._database.executemany(schema.insertion(table), rows)
            self._database.execute("COMMIT")
        except sqlite3.Error:
            if self._database.in_transaction:  # SQLite itself rolls back after some errors
                self._database.execute("ROLLBACK")
            raise

    def _summarise(self) -> None:
        from dld_tui.core.report.measurement import store_statistics  # needs numpy

        self.flush()
        with saving(self.written_path):
            states = {index: state for index, (_, _, state) in self._pass_rows.items()}
            store_statistics(self._database, states)
            store_counters(self._database)
        self.set_property(FASTEST_QUARTER, True)
        self.flush()

    def _write_pass(self, index: int) -> None:
        start, duration, state = self._pass_rows[index]
        counters = self._counter_starts.get(index)
        self._extend("passes", [(index, start, duration, state, counters)])

    def _gpu_name(self, name: str) -> int:
        known = self._gpu_names.get(name)
        if known is None:
            known = self._gpu_names[name] = len(self._gpu_names)
            self._extend("gpu_names", [(known, encodable(name))])
        return known

    def _counter_row(
        self,
        name: str,
        title: str,
        unit: str,
        maximum: float | None,
        source: str,
        absent: str | None,
    ) -> int:
        number = self._counters
        self._counters += 1
        top = maximum if maximum is not None and math.isfinite(maximum) else None
        texts = (encodable(name), encodable(title), encodable(unit))
        why = None if absent is None else encodable(absent)
        self._extend("counters", [(number, *texts, top, source, why, *(None,) * 6)])
        return number

    def _track(self, name: int | str, kind: str = "thread") -> int:
        key = (kind, str(name))
        if key not in self._tracks:
            self._tracks[key] = len(self._tracks)
            self._extend("tracks", [(self._tracks[key], kind, encodable(str(name)))])
        return self._tracks[key]

    def _extend(self, table: str, rows: Sequence[tuple[object, ...]]) -> None:
        if not self._open:
            raise ValueError("the report is closed")
        self._buffers.setdefault(table, []).extend(rows)
        self._buffered += len(rows)
        late = time.monotonic() - self._last_commit >= COMMIT_SECONDS
        if self._buffered and (late or self._buffered >= _ROWS_IN_MEMORY):
            self.flush()

    def _close(self) -> None:
        self._open = False
        self._database.close()
