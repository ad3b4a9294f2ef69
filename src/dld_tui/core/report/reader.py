"""The reader of report files; :mod:`.model` is its public place."""

from __future__ import annotations

import os
import sqlite3
import threading
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from dld_tui.core.errors import UsageError
from dld_tui.core.report import database as db
from dld_tui.core.report import rows
from dld_tui.core.report.aggregate import counted_passes
from dld_tui.core.report.export import report_json
from dld_tui.core.report.gpu_reader import GpuReading
from dld_tui.core.report.groups import GROUPINGS, group_layers
from dld_tui.core.report.nesting import depths
from dld_tui.core.report.records import Group, PassEvent
from dld_tui.core.report.statistics import LatencySummary, summarise
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.report.series import Times


class Report(GpuReading):
    """An open report. Everything that is read at once is an attribute.

    Attributes:
        path: The file.
        status: ``complete`` or ``partial`` (the run was killed, cancelled, or goes on).
        network: The model's name.
        backend: With its version.
        execution_provider: Of the session.
        device: The processor's name.
        created: When the run started, ISO 8601, UTC; empty when unknown.
        model: What is known of the model file: ``path``, ``bytes``, ``mtime_ns``, …
        settings: The request that was run.
        environment: Versions, clocks and the like.
        facts: All rows of the ``report`` table.
        notes: Remarks of the run.
        latency: The latency loop's summary; of the profiled passes when there was no loop; None
            when nothing was measured.
        layers: In order of first execution; ``layers[i].index == i``.
        passes: The profiled passes, in order.
        counted_passes: Those that the statistics are taken over.
        latencies: The inferences of the latency loop in milliseconds, in order.
        tracks: The rows of the timeline: threads and the streams of GPUs.
        version: Of the file's tables.
        counters: What was sampled over time, and what could not be.
        gpu_absent: Why nothing of the GPU was measured; None when it was, or was not asked for.
        has_gpu_events: Whether any pass has work of a GPU.
        median_pass: The index of the measured pass with the median duration (the lower of two), or
            None without passes.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._lock = threading.Lock()
        self.version = db.version_of(connection)
        self.facts = rows.read_facts(self._query, "report", "key")
        self.status = "complete" if self.facts.get("status") == "complete" else "partial"
        self.network = self._text("network")
        self.backend = self._text("backend")
        self.execution_provider = self._text("execution_provider")
        self.device = self._text("device")
        self.created = self._text("created")
        model = self.facts.get("model")
        self.model: dict[str, JSON] = model if isinstance(model, dict) else {}
        self.settings = rows.read_facts(self._query, "settings", "name")
        self.environment = rows.read_facts(self._query, "environment", "name")
        self.notes = rows.read_notes(self._query)
        self.tracks = rows.read_tracks(self._query)
        self.passes = rows.read_passes(self._query, self.version)
        self.layers = rows.read_layers(self._query, self.version)
        states = {found.index: found.state for found in self.passes}
        counted = counted_passes(states)
        if self.status == "partial" and all(layer.time_ms is None for layer in self.layers):
            self.layers = rows.add_statistics(self._query, self.layers, self.passes, self.version)
        self._read_gpu()
        self.counted_passes = tuple(found for found in self.passes if found.index in counted)
        self.latencies = rows.read_latencies(self._query)
        self.latency = summarise(self.latencies) or self.profiled_latency
        ordered = sorted((found.duration_us, found.index) for found in self.counted_passes)
        self.median_pass = ordered[(len(ordered) - 1) // 2][1] if ordered else None

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Report:
        """Open a report file.

        Raises:
            InputError: The file cannot be read, is not a report, or is of a newer version.
            CorruptFileError: It is damaged.
        """
        target = Path(path)
        connection = db.open_database(target)
        try:
            with db.reading(target):
                return cls(target, connection)
        except BaseException:
            connection.close()
            raise

    def close(self) -> None:
        """Close the file; what was read stays usable."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Report:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def total_ms(self) -> float:
        """The sum of the layers' `time_ms`."""
        return sum(layer.time_ms or 0.0 for layer in self.layers)

    @property
    def joined_percent(self) -> float | None:
        """The part of the layers' time that is joined to ONNX nodes, or None without times."""
        total = self.total_ms
        if total <= 0:
            return None
        joined = sum(layer.time_ms or 0.0 for layer in self.layers if layer.confidence != "none")
        return 100 * joined / total

    @property
    def profiled_latency(self) -> LatencySummary | None:
        """The summary of the profiled passes; profiling makes them slower than `latency`.

        None also when passes are but sums of layers, see `rows.LAYERS_ONLY`.
        """
        if self.facts.get(rows.LAYERS_ONLY):
            return None
        durations = (found.duration_us / 1000 for found in self.counted_passes)
        return summarise(durations, "profiled passes")

    def pass_events(self, index: int) -> list[PassEvent]:
        """Return what ran in a pass, by start time, with times since the start of the pass."""
        start_us = next((found.start_us for found in self.passes if found.index == index), None)
        if start_us is None:
            return []
        with db.reading(self.path):
            events = rows.read_events(self._query, index, start_us, len(self.layers))
        spans = [(event.track, event.start_us, event.duration_us) for event in events]
        return [
            replace(event, depth=depth) if depth else event
            for event, depth in zip(events, depths(spans), strict=True)
        ]

    def layer_history(self, index: int) -> list[tuple[int, float]]:
        """Return (pass, self time in milliseconds) of a layer, for every pass in which it ran."""
        with db.reading(self.path):
            return rows.read_history(self._query, index)

    def pass_times(self, *, gpu: bool = False) -> Times | None:
        """Return what each layer took, ``float64[layers, counted passes]`` in milliseconds.

        NaN where a layer did not run; None when there is nothing. Of a run of very many passes only
        some are read, at even distances.

        Args:
            gpu: The time of a layer's kernels on the GPU instead of its self time.
        """
        from dld_tui.core.report.series import read_series

        if gpu and not self.has_gpu_events:
            return None
        numbers = sorted(found.index for found in self.counted_passes)
        with db.reading(self.path), self._lock:
            return read_series(self._connection.execute, len(self.layers), numbers, gpu=gpu)

    def groups(self, by: str) -> list[Group]:
        """Return the layers' time by a key, largest first; the times sum up to `total_ms`.

        Args:
            by: ``layer``, ``type``, ``node``, ``op``, ``scope``, ``provider`` or ``precision``.

        Raises:
            UsageError: Another word.
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
            found = os.stat(path)
        except (OSError, ValueError):
            return "the model is no longer there"
        for key, now in (("bytes", found.st_size), ("mtime_ns", found.st_mtime_ns)):
            if isinstance(self.model.get(key), int) and self.model[key] != now:
                return "the model has changed since"
        return None

    def to_json(self, by: str | None = None) -> dict[str, JSON]:
        """Return the document of ``dld report --json``, with ``groups`` when `by` is given."""
        return report_json(self, by)

    def _query(self, sql: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._connection.execute(sql, values).fetchall()

    def _text(self, key: str) -> str:
        value = self.facts.get(key)
        return value if isinstance(value, str) else ""
