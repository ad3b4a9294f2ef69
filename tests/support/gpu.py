"""Stand-ins for the libraries of a GPU, with the names of the real ones."""

from __future__ import annotations

import ctypes
import enum
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any


class Kind(enum.IntEnum):
    MEMCPY = 1
    MEMSET = 2
    DRIVER = 4
    RUNTIME = 5
    CONCURRENT_KERNEL = 10
    OVERHEAD = 17
    MARKER = 21


class Flag(enum.IntFlag):
    MARKER_INSTANTANEOUS = 1
    MARKER_START = 2
    MARKER_END = 4


class CopyKind(enum.IntEnum):
    UNKNOWN = 0
    HTOD = 1
    DTOH = 2


class OverheadKind(enum.IntEnum):
    UNKNOWN = 0
    CUPTI_BUFFER_FLUSH = 65536


def kernel(name: str, start: int, end: int, correlation: int, **more: Any) -> Any:
    grid = dict.fromkeys(("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"), 1)
    fields = {"stream_id": 7, "device_id": 0, "registers_per_thread": 32, **grid, **more}
    fields |= {"static_shared_memory": 0, "dynamic_shared_memory": 1024}
    return SimpleNamespace(
        kind=Kind.CONCURRENT_KERNEL,
        name=name,
        start=start,
        end=end,
        correlation_id=correlation,
        **fields,
    )


def copy(start: int, end: int, correlation: int, size: int, kind: int = 1) -> Any:
    return SimpleNamespace(
        kind=Kind.MEMCPY,
        copy_kind=kind,
        start=start,
        end=end,
        correlation_id=correlation,
        bytes=size,
        stream_id=7,
        device_id=0,
    )


def memset(start: int, end: int, correlation: int, size: int) -> Any:
    record = copy(start, end, correlation, size)
    record.kind = Kind.MEMSET
    return record


def call(start: int, correlation: int, kind: Kind = Kind.RUNTIME) -> Any:
    return SimpleNamespace(kind=kind, start=start, end=start + 1, correlation_id=correlation)


def marker(time: int, number: int, name: str | None = None) -> Any:
    """Return the start of a range, or its end, which has no name."""
    flags = Flag.MARKER_END if name is None else Flag.MARKER_START
    return SimpleNamespace(kind=Kind.MARKER, flags_=flags, timestamp=time, id=number, name=name)


def overhead(start: int, end: int) -> Any:
    return SimpleNamespace(
        kind=Kind.OVERHEAD, overhead_kind=OverheadKind.CUPTI_BUFFER_FLUSH, start=start, end=end
    )


class FakeCupti:
    """``cupti.cupti``: hands over `records` when it is flushed."""

    ActivityKind = Kind
    ActivityFlag = Flag
    ActivityMemcpyKind = CopyKind
    ActivityOverheadKind = OverheadKind

    def __init__(self, records: list[Any], refuses: Exception | None = None) -> None:
        self.records, self.refuses = records, refuses
        self.enabled: set[int] = set()
        self.flushed: list[int] = []
        self.lost = 0
        self.completed: Callable[[list[Any]], None] = lambda records: None

    def activity_register_callbacks(
        self, requested: Callable[[], tuple[int, int]], completed: Callable[[list[Any]], None]
    ) -> None:
        size, most = requested()
        assert size > 0
        assert most == 0, "as many records as there is room for"
        self.completed = completed

    def activity_enable(self, kind: int) -> None:
        if self.refuses is not None and kind == Kind.DRIVER:
            raise self.refuses
        self.enabled.add(kind)

    def activity_disable(self, kind: int) -> None:
        self.enabled.discard(kind)

    def activity_flush_all(self, flag: int) -> None:
        self.flushed.append(flag)
        records, self.records = self.records, []
        self.completed(records)

    def activity_get_num_dropped_records(self, context: int, stream: int, count: int) -> None:
        assert (context, stream) == (0, 0)
        ctypes.c_size_t.from_address(count).value = self.lost


class FakeCollector:
    """``cupti.pm_sampling.Collector``."""

    accepts: frozenset[str] = frozenset()
    rounds: tuple[int, ...] = (3,)
    refuses: Exception | None = None
    first_start = 1000
    alive = 0

    def __init__(self, device_index: int = 0) -> None:
        self._chip_name = "GH100"
        self.configured = 0
        self._rounds = iter(self.rounds)
        self.metrics: list[str] = []

    def enable(self) -> None:
        if self.refuses is not None:
            raise self.refuses
        type(self).alive += 1

    def configure(self, *, metrics: list[str], **settings: Any) -> None:
        assert settings["hardware_buffer_size"] > 0
        assert settings["sampling_interval"] > 0
        self.configured += 1
        assert self.configured == 1, "configured twice, which then returns no samples"
        if not self.accepts.issuperset(metrics):
            raise ValueError("not in one pass")
        self.metrics = metrics

    def start(self) -> None:
        assert self.metrics

    def stop(self) -> None:
        assert self.metrics

    def decode(self, max_samples: int) -> Any:
        return FakeData(next(self._rounds, 0), len(self.metrics), self.first_start)

    def disable(self) -> None:
        type(self).alive -= 1


class FakeData:
    def __init__(self, count: int, metrics: int, first_start: int) -> None:
        self.num_completed_samples, self._metrics = count, metrics
        self._first_start = first_start

    def __iter__(self) -> Iterator[Any]:
        for index in range(self.num_completed_samples):
            start = 1000 + 100 * index if index else self._first_start
            values = [10.0 * index + metric for metric in range(self._metrics)]
            yield SimpleNamespace(
                start_timestamp=start, end_timestamp=start + 100, metric_values=values
            )


def fake_host(base_metrics: list[str]) -> Any:
    """Return ``cupti.profiler_host``."""

    class Host:
        def __init__(self, chip: str, kind: int) -> None:
            assert chip == "GH100"

        def initialize(self) -> None: ...

        def deinitialize(self) -> None: ...

        def get_base_metrics(self, kind: int) -> list[str]:
            return base_metrics

    return SimpleNamespace(
        ProfilerHost=Host, ProfilerType=SimpleNamespace(PM_SAMPLING=1), MetricType=(0, 1, 2)
    )
