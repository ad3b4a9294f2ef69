"""Writing what a GPU did into a report; a part of :class:`.store.ReportWriter`.

::

    report.add_gpu_events(0, [GpuEvent("stream 7", "kernel", name, start_us, duration_us, layer)])
    sm = report.add_counter("sm__cycles_active", "SM active", "%", 100.0, "cupti-pm")
    report.add_counter_samples(sm, [(time_us, value), …])
    report.add_absent_counter("DRAM", "needs the group debug")
    report.set_pass_start(0, start_us)      # only when the counters have a clock of their own
    report.set_gpu_absent("the driver is too old for CUPTI")
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from itertools import islice

from dld_tui.core.report.encoding import as_json, as_text
from dld_tui.core.report.gpu_records import CounterSource, GpuEvent
from dld_tui.core.report.records import PassState
from dld_tui.core.types import JSON

GPU_ABSENT = "gpu_absent"
"""The row of the table ``report`` that says why nothing of the GPU was measured."""

_ROWS_AT_ONCE = 20_000


class GpuWriting(ABC):
    """A mixin: the rows of a GPU. Not thread-safe, as the writer is not."""

    def __init__(self) -> None:
        self._gpu_sequence: dict[int, int] = {}
        self._gpu_names: dict[str, int] = {}
        self._counters = 0
        self._pass_rows: dict[int, tuple[float, float, PassState]] = {}
        self._counter_starts: dict[int, float] = {}

    @abstractmethod
    def _extend(self, table: str, rows: Sequence[tuple[object, ...]]) -> None: ...

    @abstractmethod
    def _track(self, name: int | str, kind: str = "thread") -> int: ...

    @abstractmethod
    def set_fact(self, key: str, value: JSON) -> None:
        """Set a row of the ``report`` table."""

    def add_gpu_events(
        self, pass_index: int, rows: Iterable[GpuEvent], *, again: bool = False
    ) -> None:
        """Add what the GPU did in a pass, in any order; times since the start of the pass.

        Args:
            pass_index: The pass.
            rows: What it did.
            again: These are the events that were added before, in the same order, of which more is
                known by now; they replace those.
        """
        sequence = 0 if again else self._gpu_sequence.get(pass_index, 0)
        made: list[tuple[object, ...]] = []
        for event in rows:
            if not (math.isfinite(event.start_us) and math.isfinite(event.duration_us)):
                continue
            place = (self._gpu_name(event.name), self._track(event.stream, "stream"))
            times = (float(event.start_us), float(event.duration_us))
            details = as_json(dict(event.details)) if event.details else None
            more = (event.layer, event.bytes, details)
            made.append((pass_index, sequence + len(made), event.kind, *place, *times, *more))
        self._gpu_sequence[pass_index] = sequence + len(made)
        self._extend("gpu_events", made)

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
        found = (
            (counter_id, float(time_us), float(value))
            for time_us, value in rows
            if math.isfinite(time_us) and math.isfinite(value)
        )
        while chunk := list(islice(found, _ROWS_AT_ONCE)):
            self._extend("counter_samples", chunk)

    def set_pass_start(self, pass_index: int, start_us: float) -> None:
        """Say where a pass starts on the clock of the counters, before or after it was added."""
        self._counter_starts[pass_index] = float(start_us)
        if pass_index in self._pass_rows:
            self._write_pass(pass_index)

    def set_gpu_absent(self, reason: str) -> None:
        """Say why nothing of the GPU was measured; shown where its lanes would be."""
        self.set_fact(GPU_ABSENT, reason)

    def _write_pass(self, index: int) -> None:
        start, duration, state = self._pass_rows[index]
        counters = self._counter_starts.get(index)
        self._extend("passes", [(index, start, duration, state, counters)])

    def _gpu_name(self, name: str) -> int:
        known = self._gpu_names.get(name)
        if known is None:
            known = self._gpu_names[name] = len(self._gpu_names)
            self._extend("gpu_names", [(known, as_text(name))])
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
        texts = (as_text(name), as_text(title), as_text(unit))
        why = None if absent is None else as_text(absent)
        self._extend("counters", [(number, *texts, top, source, why, *(None,) * 6)])
        return number
