"""Nsight Systems' SQLite export as a report: NVTX ranges are layers, with their kernels.

A kernel belongs to the innermost range, on the launching thread, that contains its launch:
the call of the CUDA API with the kernel's correlation ID. The tables are those of NVIDIA's
"SQLite Export Schema Reference", whose columns vary by version; times are in ns.
Nothing in the file is executed: a table must be an ordinary one, and every value is checked.
"""

from __future__ import annotations

import os
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import CancelledError, CorruptFileError, InputError
from dld_tui.core.notes import NoteKind
from dld_tui.core.report.records import GpuEvent, GpuKind, Layer
from dld_tui.core.report.report import Report, temporary_report
from dld_tui.core.report.store import ReportWriter
from dld_tui.core.types import CancelCheck, PlainValues, ProgressCallback

EVENT_LIMIT = 1_000_000
"""Rows of a table that are read, the earliest."""
_BLOCK = 20_000
_PUSH_POP = (59, 70)
"""``NvtxPushPopRange`` and its form with an extended payload, in ``eventType``."""
_ID_BITS = 24
"""A global thread ID ends with process and thread, each of this many bits."""
_COPIES = {
    1: "HtoD", 2: "DtoH", 3: "HtoA", 4: "AtoH", 5: "AtoA", 6: "AtoD", 7: "DtoA", 8: "DtoD",
    9: "HtoH", 10: "PtoP",
}  # fmt: skip
"""``CUpti_ActivityMemcpyKind``."""
_PLACE = ("start", "end", "correlationId", "globalPid", "deviceId", "contextId", "streamId")
_SHAPE = (
    "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "registersPerThread",
    "staticSharedMemory", "dynamicSharedMemory",
)  # fmt: skip


@dataclass(slots=True)
class _Work:
    """A piece of work of a GPU."""

    kind: GpuKind
    name: str
    start: int
    end: int
    key: tuple[int | None, int | None]
    """Process and correlation ID."""
    place: tuple[int | None, ...]
    """Process, device, context and stream."""
    bytes: int | None
    details: PlainValues
    owner: int | None = None
    """Place of the innermost range that launched it, in the list of ranges."""


@dataclass(slots=True)
class _Range:
    """An NVTX range."""

    name: str
    start: int
    end: int
    thread: int
    parent: int | None = None
    """Place of the range around it, in the list of ranges."""
    works: bool = False
    """True when it, or a range in it, launched work."""


def report_from_nsight(
    path: str | os.PathLike[str],
    progress: ProgressCallback | None = None,
    cancelled: CancelCheck | None = None,
) -> Report:
    """Return an export of ``nsys export --type sqlite`` as a report.

    If the outermost range repeats, each repetition is a pass; else there is one pass. Without
    ranges, each name of a kernel or copy is a layer.

    Raises:
        InputError: The file cannot be read, or has no GPU work.
        CorruptFileError: It is damaged.
        CancelledError: `cancelled` returned True.
        SaveError: The folder for temporary files is full.
    """
    target = Path(path)
    address = f"file:{quote(os.path.abspath(target))}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True)) as database:
            database.text_factory = lambda raw: raw.decode("utf-8", "replace")
            for pragma in ("trusted_schema = OFF", "query_only = ON", "cell_size_check = ON"):
                database.execute(f"PRAGMA {pragma}")
            export = _Export(database, cancelled)
    except sqlite3.Error as error:
        raise CorruptFileError(
            f"the Nsight Systems export cannot be read: {error}", where=str(target)
        ) from error
    if not export.work:
        raise InputError(
            "the Nsight Systems export has no GPU activity",
            where=str(target),
            hint="Record it with: nsys profile --trace=cuda,nvtx",
        )
    if progress is not None:
        size = target.stat().st_size
        progress(size, size)
    return temporary_report(
        target, lambda writer: _write(writer, export), network=target.stem,
        backend="Nsight Systems",
    )  # fmt: skip


class _Export:
    """The content of the tables."""

    def __init__(self, database: sqlite3.Connection, cancelled: CancelCheck | None) -> None:
        self._database = database
        self._cancelled = cancelled
        self.bad = 0
        self.left_out = 0
        self._tables = {
            name
            for (name,) in database.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0"
            )
        }
        self._texts = {
            number: text
            for number, text in database.execute("SELECT id, value FROM StringIds")
            if isinstance(text, str)
        } if "StringIds" in self._tables else {}  # fmt: skip
        self.device = next((name for (name,) in self._rows("TARGET_INFO_GPU", ("name",))), None)
        self.work = [*self._kernels(), *self._copies(), *self._memsets()]
        self.work.sort(key=lambda activity: activity.start)
        self.ranges = list(self._ranges())
        self.ranges.sort(key=lambda named_range: (named_range.start, -named_range.end))
        _join(self.work, self.ranges, self._launches())

    def _rows(self, table: str, columns: Sequence[str]) -> Iterator[tuple[object, ...]]:
        """Yield the rows of a table, by start where it has one; None for a column it has not."""
        if table not in self._tables:
            return
        there = {row[1] for row in self._database.execute(f"PRAGMA table_info({table})")}
        chosen = ", ".join(f'"{name}"' if name in there else "NULL" for name in columns)
        order = " ORDER BY start" if "start" in there else ""
        limit = f" LIMIT {EVENT_LIMIT + 1}"
        for count, row in enumerate(
            self._database.execute(f"SELECT {chosen} FROM {table}{order}{limit}")
        ):
            if count % _BLOCK == 0 and self._cancelled is not None and self._cancelled():
                raise CancelledError("cancelled")
            if count == EVENT_LIMIT:
                (all_of,) = self._database.execute(f"SELECT count(*) FROM {table}").fetchone()
                self.left_out += all_of - EVENT_LIMIT
                return
            yield row

    def _work(self, table: str, *more: str) -> Iterator[tuple[tuple[int | None, ...], list[int]]]:
        """Yield the value at :data:`_PLACE`, and integers of more columns, -1 for others."""
        for row in self._rows(table, (*_PLACE, *more)):
            place = tuple(value if isinstance(value, int) else None for value in row[: len(_PLACE)])
            start, end = place[:2]
            if start is None or end is None or end < start:
                self.bad += 1
                continue
            rest = row[len(_PLACE) :]
            yield place, [value if isinstance(value, int) else -1 for value in rest]

    def _kernels(self) -> Iterator[_Work]:
        for place, rest in self._work(
            "CUPTI_ACTIVITY_KIND_KERNEL", "demangledName", "shortName", *_SHAPE
        ):
            name = self._texts.get(rest[0]) or self._texts.get(rest[1]) or "kernel"
            details: PlainValues = {}
            if min(rest[2:]) >= 0:
                details = {
                    "grid": list(rest[2:5]), "block": list(rest[5:8]), "registers": rest[8],
                    "shared_bytes": rest[9] + rest[10],
                }  # fmt: skip
            yield _made("kernel", name, place, None, details)

    def _copies(self) -> Iterator[_Work]:
        for place, rest in self._work("CUPTI_ACTIVITY_KIND_MEMCPY", "bytes", "copyKind"):
            yield _made("memcpy", _COPIES.get(rest[1], "copy"), place, rest[0])

    def _memsets(self) -> Iterator[_Work]:
        for place, rest in self._work("CUPTI_ACTIVITY_KIND_MEMSET", "bytes"):
            yield _made("memset", "memset", place, rest[0])

    def _launches(self) -> dict[tuple[int | None, int | None], tuple[int, int]]:
        """Return start and thread of the calls that launched work, by process and correlation."""
        asked = {activity.key for activity in self.work}
        launches: dict[tuple[int | None, int | None], tuple[int, int]] = {}
        for start, thread, number in self._rows(
            "CUPTI_ACTIVITY_KIND_RUNTIME", ("start", "globalTid", "correlationId")
        ):
            if isinstance(start, int) and isinstance(thread, int) and isinstance(number, int):
                for process in (thread >> _ID_BITS, None):
                    key = (process, number)
                    if key in asked:
                        launches[key] = (start, thread)
        return launches

    def _ranges(self) -> Iterator[_Range]:
        columns = ("start", "end", "eventType", "globalTid", "text", "textId")
        for start, end, kind, thread, text, number in self._rows("NVTX_EVENTS", columns):
            if kind not in _PUSH_POP:
                continue
            name = text if isinstance(text, str) else self._texts.get(number)
            if (
                not isinstance(start, int) or not isinstance(end, int)
                or not isinstance(thread, int) or end < start
            ):  # fmt: skip
                self.bad += 1
            else:
                yield _Range(name or "range", start, end, thread)


def _made(
    kind: GpuKind,
    name: str,
    place: tuple[int | None, ...],
    size: int | None,
    details: PlainValues | None = None,
) -> _Work:
    start, end, number, process, *where = place
    assert start is not None
    assert end is not None
    process = None if process is None else process >> _ID_BITS
    known = size if size is not None and size >= 0 else None
    return _Work(kind, name, start, end, (process, number), (process, *where), known, details or {})


def _join(
    work: Sequence[_Work],
    ranges: Sequence[_Range],
    launches: dict[tuple[int | None, int | None], tuple[int, int]],
) -> None:
    """Note which range holds which, and which launched what."""
    threads: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    # A range comes before a launch at the same time. Ranges are by start, the longest first.
    for index, named_range in enumerate(ranges):
        threads[named_range.thread].append((named_range.start, 0, index))
    for index, item in enumerate(work):
        launch = launches.get(item.key)
        if launch is not None:
            threads[launch[1]].append((launch[0], 1, index))
    for marks in threads.values():
        open_: list[int] = []
        for time, is_launch, index in sorted(marks):
            while open_ and ranges[open_[-1]].end < time + (not is_launch):
                open_.pop()
            if not is_launch:
                ranges[index].parent = open_[-1] if open_ else None
                open_.append(index)
            elif open_:
                work[index].owner = parent = open_[-1]
                while parent is not None and not ranges[parent].works:
                    ranges[parent].works = True
                    parent = ranges[parent].parent  # type: ignore[assignment]


def _passes(ranges: Sequence[_Range]) -> list[int]:
    """Return the outermost ranges that come most often, where they are passes; else none."""
    outermost = [
        index
        for index, named_range in enumerate(ranges)
        if named_range.works and named_range.parent is None
    ]
    names = Counter(ranges[index].name for index in outermost)
    name, count = max(names.items(), key=lambda item: item[1], default=("", 0))
    passes = [index for index in outermost if ranges[index].name == name]
    are_disjoint = all(
        ranges[outer].end <= ranges[following].start for outer, following in pairwise(passes)
    )
    return passes if count > 1 and are_disjoint else []


def _labels(places: Sequence[tuple[int | None, ...]], words: Sequence[str]) -> list[str]:
    """Return names of places: what differs between them, and the last."""
    differing = [len(set(column)) > 1 for column in zip(*places, strict=True)]
    differing[-1] = True
    return [
        " ".join(
            f"{word} {value}"
            for word, value, differs in zip(words, place, differing, strict=True)
            if differs and value is not None
        )
        or words[-1]
        for place in places
    ]


def _write(writer: ReportWriter, export: _Export) -> None:
    work, ranges = export.work, export.ranges
    writer.set_property("execution_provider", "GPU")
    if isinstance(export.device, str):
        writer.set_property("device", export.device)
    places = sorted({activity.place for activity in work}, key=str)
    streams = dict(
        zip(places, _labels(places, ("process", "GPU", "context", "stream")), strict=True)
    )
    starting = [named_range.start for named_range in ranges if named_range.works]
    origin = min(starting + [done.start for done in work])
    layers: dict[str, int] = {}

    def layer(name: str, kind: str) -> int:
        if name not in layers:
            layers[name] = writer.add_layer(Layer(name, kind))
        return layers[name]

    def us(time: int) -> float:
        return time / 1000

    if not any(named_range.works for named_range in ranges):
        writer.add_pass(0, 0.0, us(max(activity.end for activity in work) - origin))
        rows = [
            (
                layer(activity.name, activity.kind),
                us(activity.start - origin),
                *(us(activity.end - activity.start),) * 2,
                streams[activity.place],
            )
            for activity in work
        ]
        writer.add_samples(0, rows)
        writer.note("no NVTX range launched anything: the kernels and copies are the layers")
        _remark(writer, export)
        return
    own = [named_range.end - named_range.start for named_range in ranges]
    roots: list[int] = []
    for index, named_range in enumerate(ranges):
        roots.append(index if named_range.parent is None else roots[named_range.parent])
        if named_range.works and named_range.parent is not None:
            own[named_range.parent] -= (
                min(named_range.end, ranges[named_range.parent].end) - named_range.start
            )
    marks = _passes(ranges)
    pass_of = {root: number for number, root in enumerate(marks)}
    threads = sorted({named_range.thread for named_range in ranges if named_range.works})
    pairs: list[tuple[int | None, ...]] = [
        (thread >> _ID_BITS & (1 << _ID_BITS) - 1, thread & (1 << _ID_BITS) - 1)
        for thread in threads
    ]
    tracks = dict(zip(threads, _labels(pairs, ("process", "thread")), strict=True))
    starts = [ranges[root].start for root in marks] or [origin]
    ends = [ranges[root].end for root in marks]
    if not marks:
        ends = [
            max(
                [named_range.end for named_range in ranges if named_range.works]
                + [done.end for done in work]
            )
        ]
        writer.note("no outermost NVTX range repeats: everything is shown as one pass")
    for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
        writer.add_pass(number, us(start - origin), us(end - start))
    samples: dict[int, list[tuple[int, float, float, float, int | str]]] = defaultdict(list)
    outside = unowned = 0
    for index, named_range in enumerate(ranges):
        place = pass_of.get(roots[index]) if marks else 0
        if not named_range.works:
            continue
        if place is None:
            outside += 1
            continue
        row = (
            us(named_range.start - origin),
            us(named_range.end - named_range.start),
            us(max(own[index], 0)),
        )
        samples[place].append((layer(named_range.name, "NVTX"), *row, tracks[named_range.thread]))
    events: dict[int, list[GpuEvent]] = defaultdict(list)
    for done in work:
        place = None if marks else 0
        if done.owner is not None and marks:
            place = pass_of.get(roots[done.owner])
        if place is None:
            outside += 1
            continue
        unowned += done.owner is None
        events[place].append(
            GpuEvent(
                streams[done.place], done.kind, done.name, us(done.start - starts[place]),
                us(done.end - done.start),
                None if done.owner is None else layers[ranges[done.owner].name],
                done.bytes, done.details,
            )
        )  # fmt: skip
    for number, rows_of_pass in samples.items():
        writer.add_samples(number, rows_of_pass)
    for number, events_of_pass in events.items():
        writer.add_gpu_events(number, events_of_pass)
    if outside:
        writer.note(f"{fmt.plural(outside, 'event')} outside all passes left out")
    if unowned:
        writer.note(f"{fmt.plural(unowned, 'event')} of the GPU launched outside all NVTX ranges")
    _remark(writer, export)


def _remark(writer: ReportWriter, export: _Export) -> None:
    if export.bad:
        writer.note(
            f"{fmt.plural(export.bad, 'row')} without start and end left out", NoteKind.WARNING
        )
    if export.left_out:
        writer.note(
            f"only the first {EVENT_LIMIT:,} rows of a table are read, {export.left_out:,} are"
            " left out",
            NoteKind.WARNING,
        )
