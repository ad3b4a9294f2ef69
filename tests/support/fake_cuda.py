"""A fake of :class:`dld_tui.backends.tensorrt.cuda.Cuda` with memory and clocks of its own.

Copies really copy. Work takes simulated time on its stream, which events read; a captured graph
replays what was captured. Using freed memory or a destroyed stream raises.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from dld_tui.core.errors import ActivityError

ENQUEUE_MS = 0.01
BYTES_PER_MS = 20_000_000


class FakeCuda:
    """One device."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        """Names of the calls in order, for tests."""
        self.threads: set[int] = set()
        """Those that may use the device besides the first one."""
        self.blocking = False
        self.limit: int | None = None
        """Bytes that can be allocated; None for no limit."""
        self._memory: dict[int, bytearray] = {}
        self._next = 0x7F0000000000
        self._streams: dict[int, float] = {}
        self._events: dict[int, float] = {}
        self._graphs: dict[int, list[Callable[[int], None]]] = {}
        self._captured: dict[int, list[Callable[[int], None]]] = {}
        self._now = 0.0

    @property
    def live(self) -> int:
        return len(self._memory) + len(self._streams) + len(self._events) + len(self._graphs)

    def environment(self) -> dict[str, Any]:
        return {"gpu": "Fake GPU", "gpu_compute_capability": "9.0"}

    def enter_thread(self) -> None:
        self.threads.add(threading.get_ident())

    def allocate(self, size: int) -> int:
        used = self._used()
        if self.limit is not None and used + size > self.limit:
            raise ActivityError(f"the GPU has no memory left for {size:,} bytes")
        return self._number(self._memory, bytearray(size), max(size, 1))

    def allocate_host(self, size: int) -> int:
        return self._number(self._memory, bytearray(size), max(size, 1))

    def free(self, address: int) -> None:
        del self._memory[address]

    def free_host(self, address: int) -> None:
        del self._memory[address]

    def write_host(self, address: int, data: bytes) -> None:
        self.write(address, data)

    def read_host(self, address: int, size: int) -> bytes:
        return self.read(address, size)

    def copy_to_device(self, device: int, host: int, size: int, stream: int) -> None:
        self._copy(device, host, size, stream, "copy_to_device")

    def copy_to_host(self, host: int, device: int, size: int, stream: int) -> None:
        self._copy(host, device, size, stream, "copy_to_host")

    def _copy(self, target: int, source: int, size: int, stream: int, call: str) -> None:
        def copy(on: int) -> None:
            self.write(target, self.read(source, size))
            self._streams[on] += size / BYTES_PER_MS

        self._do(stream, call, copy)

    def stream(self) -> int:
        return self._number(self._streams, self._now)

    def destroy_stream(self, stream: int) -> None:
        del self._streams[stream]

    def synchronize(self, stream: int) -> None:
        self.calls.append("synchronize")
        if stream in self._captured:
            raise ActivityError("CUDA: operation not permitted when stream is capturing")
        self._now = max(self._now, self._streams[stream])

    def event(self) -> int:
        return self._number(self._events, -1.0)

    def destroy_event(self, event: int) -> None:
        del self._events[event]

    def record(self, event: int, stream: int) -> None:

        def mark(on: int) -> None:
            self._events[event] = self._streams[on]

        self._do(stream, "record", mark)

    def synchronize_event(self, event: int) -> None:
        self.calls.append("synchronize_event")
        self._now = max(self._now, self._events[event])

    def elapsed_ms(self, first: int, last: int) -> float:
        if min(self._events[first], self._events[last]) < 0:
            raise ActivityError("CUDA: an event was not recorded")
        return self._events[last] - self._events[first]

    def begin_capture(self, stream: int) -> None:
        self.calls.append("begin_capture")
        self._captured[stream] = []

    def end_capture(self, stream: int) -> int:
        self.calls.append("end_capture")
        return self._number(self._graphs, self._captured.pop(stream))

    def abort_capture(self, stream: int) -> None:
        self._captured.pop(stream, None)

    def launch(self, graph: int, stream: int) -> None:
        steps = self._graphs[graph]

        def replay(on: int) -> None:
            for step in steps:
                step(on)

        self._do(stream, "launch", replay)

    def destroy_graph(self, graph: int) -> None:
        del self._graphs[graph]

    def close(self) -> None:
        self.calls.append("close")

    def work(self, stream: int, milliseconds: float, profiled: bool) -> None:

        def busy(on: int) -> None:
            self._streams[on] += milliseconds

        if profiled and stream in self._captured:
            raise ActivityError("CUDA: operation not permitted when stream is capturing")
        self._do(stream, "work", busy)

    def _used(self) -> int:
        return sum(len(block) for block in self._memory.values())

    def read(self, address: int, size: int) -> bytes:
        base = self._base(address, size)
        start = address - base
        return bytes(self._memory[base][start : start + size])

    def write(self, address: int, data: bytes) -> None:
        base = self._base(address, len(data))
        start = address - base
        self._memory[base][start : start + len(data)] = data

    def _base(self, address: int, size: int) -> int:
        for base, block in self._memory.items():
            if base <= address and address + size <= base + len(block):
                return base
        raise ActivityError("CUDA: an illegal memory access was encountered")

    def _do(self, stream: int, call: str, step: Callable[[int], None]) -> None:
        self.calls.append(call)
        if stream not in self._streams:
            raise ActivityError("CUDA: invalid resource handle")
        self._now += ENQUEUE_MS
        if stream in self._captured:
            self._captured[stream].append(step)
            return
        self._streams[stream] = max(self._streams[stream], self._now)
        step(stream)

    def _number(self, table: dict[int, Any], value: Any, size: int = 1) -> int:
        number = self._next
        self._next += (size + 511) // 256 * 256
        table[number] = value
        return number
