"""Chrome trace events (Chrome, Perfetto, PyTorch and others), read as a stream and nested.

Kept of an event are five numbers in arrays, so that a trace of millions fits into memory. Read
are complete events (``X``), pairs of begin and end (``B``, ``E``) and names of threads (``M``);
all others (flows, instants, counters, …) are counted by their letter.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import field
from typing import NamedTuple, TypeAlias

from dld_tui.core.dataclass import dataclass
from dld_tui.core.report.formats.json_stream import ArrayReader
from dld_tui.core.report.records import PassState
from dld_tui.core.report.schema import one_of
from dld_tui.core.types import JSON, Foreign

Span: TypeAlias = "tuple[Hashable, float, float]"
"""(thread, start, duration)."""


class SelfTimes:
    """Self times of the events of one pass, which come in the order of their ends.

    What ended before an event and began after its start lay inside it. Comparing ends would not
    do: profilers cut starts and durations to microseconds, so a child can seem to end after its
    parent. Of two equal starts that of an event which can hold others (`holds_others`) is earlier.
    """

    def __init__(self) -> None:
        self._finished: dict[Hashable, list[tuple[float, float]]] = {}

    def add(self, thread: Hashable, start: float, duration: float, holds_others: bool) -> float:
        """Return the duration without that of the events directly inside, never below 0."""
        finished = self._finished.setdefault(thread, [])
        inside = 0.0
        while finished and (finished[-1][0] > start or (holds_others and finished[-1][0] == start)):
            inside += finished.pop()[1]
        finished.append((start, duration))
        return max(0.0, duration - inside)

    @property
    def outermost(self) -> int:
        """How many events so far lie inside no other one."""
        return sum(len(finished) for finished in self._finished.values())


def depths(spans: Sequence[Span]) -> list[int]:
    """Return how many spans of the same thread hold each one.

    Args:
        spans: Sorted by start, of equal starts the longer first.
    """
    depth_of_each: list[int] = []
    ends: dict[Hashable, list[float]] = {}
    for thread, start, duration in spans:
        open_ends = ends.setdefault(thread, [])
        while open_ends and open_ends[-1] <= start:
            open_ends.pop()
        depth_of_each.append(len(open_ends))
        open_ends.append(start + duration)
    return depth_of_each


EVENT_LIMIT = 20_000_000
"""Later events are left out: 600 MB are enough."""
NAME_LIMIT = 200_000
"""Names beyond it are one."""
THREAD_LIMIT = 1000
"""Threads beyond it are one."""
_OPEN_LIMIT = 1_000_000
_LARGEST_US = 1e18

_GPU = {
    "kernel": "kernel",
    "gpu_memcpy": "memcpy",
    "gpu_memset": "memset",
    "gpu_overhead": "overhead",
    "gpu_sync": "sync",
}
"""Categories of PyTorch, and of what this program exports, by kind of GPU event."""
_PASS = re.compile(r"ProfilerStep#\d+$|model_run$|pass \d+$", re.IGNORECASE)
_MIRRORED = frozenset({"gpu_user_annotation"})
"""Events of the CPU's rows, drawn again over the kernels."""

Thread: TypeAlias = "tuple[str, str]"
"""(pid, tid) as text: PyTorch has words among them."""


class Name(NamedTuple):
    """A name of events, for all threads."""

    category: str
    text: str


class Mark(NamedTuple):
    """A stretch that the program itself calls a step or a run."""

    start_us: float
    end_us: float
    state: PassState = PassState.MEASURED


@dataclass
class Spans:
    """Events of one kind, each a place in five arrays."""

    names: array[int] = field(default_factory=lambda: array("i"))
    threads: array[int] = field(default_factory=lambda: array("i"))
    starts: array[float] = field(default_factory=lambda: array("d"))
    durations: array[float] = field(default_factory=lambda: array("d"))
    sizes: array[float] = field(default_factory=lambda: array("d"))
    """Bytes of a copy, -1 where missing; empty for CPU events."""

    def __len__(self) -> int:
        """Return their number."""
        return len(self.starts)

    def add(self, name: int, thread: int, start: float, duration: float) -> None:
        """Append one."""
        self.names.append(name)
        self.threads.append(thread)
        self.starts.append(start)
        self.durations.append(duration)


class TraceEvents:
    """The events of a trace.

    Attributes:
        host: What ran on threads.
        gpu: What ran on streams of a GPU.
        marks: Steps or runs, in the order of the file.
        names: Of `Spans.names`.
        threads: Of `Spans.threads`.
        labels: What the trace calls a process or thread, by (pid, tid); tid is empty for a process.
        others: How many events of each letter were not read.
        bad: Events whose times are not sound, or that were begun and not ended.
        left_out: Events beyond `EVENT_LIMIT`.
    """

    def __init__(self) -> None:
        self.host = Spans()
        self.gpu = Spans()
        self.marks: list[Mark] = []
        self.names: list[Name] = []
        self.threads: list[Thread] = []
        self.labels: dict[Thread, str] = {}
        self.others: Counter[str] = Counter()
        self.bad = 0
        self.left_out = 0
        self._name_numbers: dict[Name, int] = {}
        self._thread_numbers: dict[Thread, int] = {}
        self._processes: set[str] = set()
        self._open: dict[Thread, list[tuple[Name, float]]] = {}
        self._open_count = 0

    def read(self, reader: ArrayReader) -> None:
        """Read all events of a file.

        Raises:
            InputError: The file cannot be read or is no array of events.
            CancelledError: The reader was cancelled.
        """
        for event in reader.objects():
            self._take(event)
        self.bad += self._open_count
        self._open.clear()

    def gpu_kind(self, name: int) -> str:
        """Return the kind of GPU event that a name is of."""
        return _GPU.get(self.names[name].category.lower(), "kernel")

    def label(self, thread: int) -> str:
        """Return what people call a thread."""
        pid, tid = self.threads[thread]
        name = self.labels.get((pid, tid))
        if name is not None:
            return name
        several = len(self._processes) > 1
        return f"{self.labels.get((pid, ''), pid)} · {tid}" if several else tid

    def _take(self, event: Foreign) -> None:
        phase = event.get("ph")
        if phase == "X":
            self._complete(event)
        elif phase == "B":
            self._begin(event)
        elif phase == "E":
            self._end(event)
        elif phase == "M":
            self._label(event)
        else:
            self.others[phase if isinstance(phase, str) else "?"] += 1

    def _complete(self, event: Foreign) -> None:
        start, duration, name = _time(event.get("ts")), _time(event.get("dur")), _name(event)
        if start is None or duration is None or duration < 0 or name is None:
            self.bad += 1
        else:
            self._add(name, _thread(event), start, duration, event)

    def _begin(self, event: Foreign) -> None:
        start, name = _time(event.get("ts")), _name(event)
        if start is None or name is None or self._open_count >= _OPEN_LIMIT:
            self.bad += 1
            return
        self._open.setdefault(_thread(event), []).append((name, start))
        self._open_count += 1

    def _end(self, event: Foreign) -> None:
        end = _time(event.get("ts"))
        thread = _thread(event)
        begun = self._open.get(thread)
        if end is None or not begun:
            self.bad += 1
            return
        name, start = begun.pop()
        self._open_count -= 1
        if end < start:
            self.bad += 1
        else:
            self._add(name, thread, start, end - start, event)

    def _add(self, name: Name, thread: Thread, start: float, took: float, event: Foreign) -> None:
        if name.category == "pass" or _PASS.match(name.text):
            if name.category not in _MIRRORED:
                self.marks.append(Mark(start, start + took, _state(event.get("args"))))
            return
        if name.category in _MIRRORED:
            return
        if len(self.host) + len(self.gpu) >= EVENT_LIMIT:
            self.left_out += 1
            return
        number = self._number_of(name)
        place = self._place_of(thread)
        if name.category.lower() in _GPU:
            self.gpu.add(number, place, start, took)
            self.gpu.sizes.append(_bytes(event.get("args")))
        else:
            self.host.add(number, place, start, took)

    def _place_of(self, thread: Thread) -> int:
        place = self._thread_numbers.get(thread)
        if place is None:
            if len(self.threads) >= THREAD_LIMIT:
                thread = ("", "other threads")
                if thread in self._thread_numbers:
                    return self._thread_numbers[thread]
            place = self._thread_numbers[thread] = len(self.threads)
            self.threads.append(thread)
            self._processes.add(thread[0])
        return place

    def _number_of(self, name: Name) -> int:
        number = self._name_numbers.get(name)
        if number is None:
            if len(self.names) >= NAME_LIMIT:
                name = Name("", "(other)")
                if name in self._name_numbers:
                    return self._name_numbers[name]
            number = self._name_numbers[name] = len(self.names)
            self.names.append(name)
        return number

    def _label(self, event: Foreign) -> None:
        arguments = event.get("args")
        text = arguments.get("name") if isinstance(arguments, dict) else None
        if not isinstance(text, str) or not text or len(self.labels) >= NAME_LIMIT:
            return
        pid, tid = _thread(event)
        if event.get("name") == "thread_name":
            self.labels[pid, tid] = text
        elif event.get("name") == "process_name":
            self.labels[pid, ""] = text


def _name(event: Foreign) -> Name | None:
    name, category = event.get("name"), event.get("cat")
    if not isinstance(name, str):
        return None
    return Name(category if isinstance(category, str) else "", name or "(no name)")


def _thread(event: Foreign) -> Thread:
    return _word(event.get("pid", 0)), _word(event.get("tid", 0))


def _word(value: JSON) -> str:
    return value if isinstance(value, str) else str(value) if isinstance(value, int) else "?"


def _time(value: JSON) -> float | None:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if abs(value) <= _LARGEST_US and math.isfinite(value) else None


def _state(arguments: JSON) -> PassState:
    state = arguments.get("state") if isinstance(arguments, dict) else None
    return one_of(state, [PassState.WARM_UP, PassState.INCOMPLETE], PassState.MEASURED)


def _bytes(arguments: JSON) -> float:
    value = arguments.get("bytes") if isinstance(arguments, dict) else None
    known = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53
    return float(value) if known and isinstance(value, int) else -1.0
