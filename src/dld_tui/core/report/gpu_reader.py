"""Reading what a GPU did from a report; a part of :class:`.reader.Report`."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dld_tui.core.report import database as db
from dld_tui.core.report import gpu_rows
from dld_tui.core.report import values as v
from dld_tui.core.report.aggregate import ATTRIBUTED_PASSES, gpu_passes
from dld_tui.core.report.counter_blocks import extent_of
from dld_tui.core.report.gpu_records import Bucket, Counter, GpuEvent
from dld_tui.core.report.gpu_store import GPU_ABSENT
from dld_tui.core.report.records import Layer, PassState, ReportPass, Track
from dld_tui.core.types import JSON


class GpuReading(ABC):
    """A mixin: GPU events of a pass, and counters over time."""

    path: Path
    version: int
    facts: dict[str, JSON]
    tracks: tuple[Track, ...]
    layers: tuple[Layer, ...]
    counters: tuple[Counter, ...]
    gpu_absent: str | None
    has_gpu_events: bool
    _connection: sqlite3.Connection

    @abstractmethod
    def _query(self, sql: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]: ...

    def _read_gpu(self) -> None:
        reason = self.facts.get(GPU_ABSENT)
        self.gpu_absent = reason if isinstance(reason, str) and reason else None
        self.counters = ()
        self.has_gpu_events = False
        if self.version < 2:
            return
        self.counters = tuple(self._known(found) for found in gpu_rows.read_counters(self._query))
        self.has_gpu_events = bool(self._query("SELECT 1 FROM gpu_events LIMIT 1"))

    def _read_gpu_passes(self, states: Mapping[int, PassState]) -> frozenset[int]:
        if self.version < 2:
            return frozenset()
        attributed = (v.whole_of(index, "pass") for (index,) in self._query(ATTRIBUTED_PASSES))
        return frozenset(gpu_passes(states, attributed))

    def _sampled(self, passes: Sequence[ReportPass]) -> list[ReportPass]:
        """Return the passes in whose time all the counters that were measured have samples."""
        rows = [counter for counter in self.counters if counter.samples]
        if not rows:
            return []
        first = max(counter.first_us for counter in rows)
        last = min(counter.last_us for counter in rows)
        return [
            one
            for one in passes
            if first <= one.counter_origin_us and one.counter_origin_us + one.duration_us <= last
        ]

    def _known(self, counter: Counter) -> Counter:
        """Return a counter with what the writer of a partial report did not get to compute."""
        if counter.samples or counter.absent is not None:
            return counter
        found = extent_of(self._connection, counter.id)
        return counter if found is None else replace(counter, **vars(found))

    def gpu_events(self, pass_index: int) -> list[GpuEvent]:
        """Return what the GPU did in a pass, by start time, since the start of the pass."""
        if self.version < 2:
            return []
        names = {track.id: track.name for track in self.tracks}
        with db.reading(self.path):
            return gpu_rows.read_gpu_events(self._query, pass_index, len(self.layers), names)

    def counter_series(
        self, counter_id: int, start_us: float, end_us: float, buckets: int
    ) -> list[Bucket | None]:
        """Return a counter in equal parts of a time; None where nothing was measured, never 0.

        Args:
            counter_id: `Counter.id`.
            start_us: On the clock of the counters: `ReportPass.counter_origin_us` and more.
            end_us: After `start_us`.
            buckets: How many parts. The cost does not depend on how many samples there are.
        """
        counter = next((found for found in self.counters if found.id == counter_id), None)
        if counter is None:
            return [None] * max(buckets, 0)
        with db.reading(self.path):
            return gpu_rows.read_series(self._query, counter, start_us, end_us, buckets)
