from __future__ import annotations

import sqlite3
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dld_tui.core.errors import CancelledError, CorruptFileError, InputError
from dld_tui.core.files.recognise import FileKind, recognise
from dld_tui.core.report.report import open_report
from dld_tui.extras.nsight import export as nsight_export
from dld_tui.extras.nsight.export import report_from_nsight
from tests.support.recorded import Recorded, settled
from tests.support.report_text import report_text

PROCESS = 0x1000000 * 77
KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
TABLES = {
    "StringIds": "id INTEGER PRIMARY KEY, value TEXT NOT NULL",
    "TARGET_INFO_GPU": "id INT, name TEXT",
    KERNEL: (
        "start INT, end INT, deviceId INT, contextId INT, streamId INT, correlationId INT,"
        " globalPid INT, demangledName INT, shortName INT, registersPerThread INT, gridX INT,"
        " gridY INT, gridZ INT, blockX INT, blockY INT, blockZ INT, staticSharedMemory INT,"
        " dynamicSharedMemory INT"
    ),
    "CUPTI_ACTIVITY_KIND_MEMCPY": (
        "start INT, end INT, deviceId INT, contextId INT, streamId INT, correlationId INT,"
        " globalPid INT, bytes INT, copyKind INT"
    ),
    "CUPTI_ACTIVITY_KIND_MEMSET": (
        "start INT, end INT, deviceId INT, contextId INT, streamId INT, correlationId INT,"
        " globalPid INT, value INT, bytes INT"
    ),
    "CUPTI_ACTIVITY_KIND_RUNTIME": (
        "start INT, end INT, eventClass INT, globalTid INT, correlationId INT, nameId INT"
    ),
    "NVTX_EVENTS": (
        "start INT, end INT, eventType INT, rangeId INT, text TEXT, globalTid INT, textId INT,"
        " domainId INT"
    ),
}
"""As NVIDIA's SQLite Export Schema Reference has them, without columns that are not read."""


def export(path: Path, rows: dict[str, list[tuple[Any, ...]]]) -> Path:
    with closing(sqlite3.connect(path)) as database, database:
        for table, columns in TABLES.items():
            database.execute(f"CREATE TABLE {table} ({columns})")
            for row in rows.get(table, ()):
                places = ", ".join("?" * len(row))
                database.execute(f"INSERT INTO {table} VALUES ({places})", row)
    return path


def kernel(start: int, end: int, number: int, stream: int = 7, name: int = 1) -> tuple[Any, ...]:
    shape = (32, 4, 2, 1, 128, 1, 1, 1024, number % 2 * 512)
    return (start, end, 0, 1, stream, number, PROCESS, name, 0, *shape)


def launch(start: int, number: int, thread: int = 1) -> tuple[Any, ...]:
    return (start, start + 5, 0, PROCESS + thread, number, 0)


def pushed(name: str | None, start: int, end: int | None, thread: int = 1) -> tuple[Any, ...]:
    return (start, end, 59, 0, name, PROCESS + thread, None if name else 2, 0)


def drawn(path: Path, seed: int) -> Path:
    """Write passes of ranges in ranges, on one or two threads, with kernels that run later."""
    random = np.random.default_rng(seed)
    rows: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    rows["StringIds"] = [(1, "gemm"), (2, "range of textId"), (3, "relu")]
    rows["TARGET_INFO_GPU"] = [(0, "NVIDIA H200")]
    number = 0

    def fill(start: int, end: int, depth: int) -> None:
        nonlocal number
        at = start + 10
        while at + 100 < end:
            length = int(random.integers(60, 400))
            stop = min(at + length, end - 10)
            if depth < 3 and length > 150:
                name = None if random.random() < 0.2 else f"layer {random.integers(6)}"
                rows["NVTX_EVENTS"].append(pushed(name, at, stop))
                fill(at, stop, depth + 1)
            elif random.random() < 0.8:
                number += 1
                rows["CUPTI_ACTIVITY_KIND_RUNTIME"].append(launch(at, number))
                ran = at + int(random.integers(10, 5000))
                kind = random.integers(3)
                if kind == 0:
                    copy = (ran, ran + 9, 0, 1, 8, number, PROCESS, 64, 1 + number % 3)
                    rows["CUPTI_ACTIVITY_KIND_MEMCPY"].append(copy)
                else:
                    row = kernel(
                        ran, ran + int(random.integers(1, 90)), number, name=int(kind) * 2 - 1
                    )
                    rows[KERNEL].append(row)
            at = stop + 7

    for step in range(int(random.integers(2, 5))):
        begin = 1_000_000 + step * 10_000
        rows["NVTX_EVENTS"].append(pushed("enqueue", begin, begin + 4000))
        # Something is launched in each, so that each is a pass.
        number += 1
        rows["CUPTI_ACTIVITY_KIND_RUNTIME"].append(launch(begin + 1, number))
        rows[KERNEL].append(kernel(begin + 50, begin + 60, number))
        fill(begin, begin + 4000, 0)
    return export(path, rows)


INNERMOST = """
SELECT w.start, w.end, (
    SELECT coalesce(n.text, (SELECT value FROM StringIds WHERE id = n.textId)) FROM NVTX_EVENTS n
    WHERE n.globalTid = r.globalTid AND n.start <= r.start AND r.start <= n.end
    ORDER BY n.start DESC, n.end LIMIT 1)
FROM {table} w JOIN CUPTI_ACTIVITY_KIND_RUNTIME r
ON r.correlationId = w.correlationId AND r.globalTid / 16777216 = w.globalPid / 16777216
"""


@pytest.mark.parametrize("seed", range(4))
def test_drawn_exports_agree_with_sql(seed: int, tmp_path: Path) -> None:
    path = drawn(tmp_path / "net.sqlite", seed)
    assert recognise(path) is FileKind.OTHER_PROFILE
    with closing(sqlite3.connect(path)) as database, open_report(path) as report:
        expected = [
            row
            for table in (KERNEL, "CUPTI_ACTIVITY_KIND_MEMCPY")
            for row in database.execute(INNERMOST.format(table=table))
        ]
        origin = database.execute("SELECT min(start) FROM NVTX_EVENTS").fetchone()[0]
        marks = database.execute(
            "SELECT start, end FROM NVTX_EVENTS WHERE text = 'enqueue' ORDER BY start"
        ).fetchall()
        assert [(one.start_us, one.duration_us) for one in report.passes] == pytest.approx(
            [((start - origin) / 1000, (end - start) / 1000) for start, end in marks]
        )
        found = []
        for one in report.passes:
            for event in report.gpu_events(one.index):
                start = round((event.start_us + one.start_us) * 1000) + origin
                assert event.layer is not None
                name = report.layers[event.layer].name
                found.append((start, start + round(event.duration_us * 1000), name))
        assert sorted(found) == sorted(expected)
        assert report.device == "NVIDIA H200"
        for one in report.passes:
            events = report.pass_events(one.index)
            assert sum(event.self_us for event in events) == pytest.approx(one.duration_us)


def simple() -> dict[str, list[tuple[Any, ...]]]:
    return {
        "StringIds": [(1, "gemm"), (2, "conv")],
        KERNEL: [kernel(2000, 3000, 1), kernel(2500, 2600, 2, stream=9), kernel(9000, 9100, 3)],
        "CUPTI_ACTIVITY_KIND_MEMCPY": [(100, 150, 0, 1, 7, 4, PROCESS, 64, 2)],
        "CUPTI_ACTIVITY_KIND_MEMSET": [(160, 170, 0, 1, 7, 5, PROCESS, 0, 32)],
    }


def details() -> dict[str, list[tuple[Any, ...]]]:
    """Return ranges of one pass: one of textId, one that launches nothing, others to leave out."""
    return simple() | {
        "CUPTI_ACTIVITY_KIND_RUNTIME": [
            launch(1100, 1), launch(1200, 2, thread=5), ("x", "y", 0, None, 3, 0),
        ],
        "NVTX_EVENTS": [
            pushed(None, 1000, 1300), pushed("idle", 1400, 1500), pushed("never ends", 5, None),
            (1, 2000, 60, 0, "start and end", PROCESS + 1, None, 0), pushed("backwards", 20, 10),
            (*pushed(None, 1600, 1600, thread=2)[:6], 9, 0), pushed("conv", 1190, 1300, thread=5),
        ],
    }  # fmt: skip


def passes() -> dict[str, list[tuple[Any, ...]]]:
    """Return two passes behind a warm up; the third kernel is launched in no range."""
    starts = [510, 1020, 1600, 2020]
    return {
        "StringIds": [(1, "gemm"), (2, "conv")],
        "NVTX_EVENTS": [
            pushed("warm up", 500, 900),
            *(pushed("enqueue", at, at + 400) for at in (1000, 2000)),
            *(pushed("layer", at + 10, at + 300) for at in (1000, 2000)),
        ],
        KERNEL: [kernel(at + 5, at + 25, number) for number, at in enumerate(starts, 1)],
        "CUPTI_ACTIVITY_KIND_RUNTIME": [launch(at, number) for number, at in enumerate(starts, 1)],
    }


def together() -> dict[str, list[tuple[Any, ...]]]:
    """Return ranges that begin together: the shorter one is inside."""
    starts = (1020, 2020)
    return simple() | {
        "NVTX_EVENTS": [
            pushed(name, at, end)
            for at in (1000, 2000)
            for name, end in (("inner", at + 300), ("outer", at + 400))
        ],
        KERNEL: [kernel(at + 5, at + 25, number) for number, at in enumerate(starts, 1)],
        "CUPTI_ACTIVITY_KIND_RUNTIME": [launch(at, n) for n, at in enumerate(starts, 1)],
    }


def touching() -> dict[str, list[tuple[Any, ...]]]:
    """Return passes without a gap, one that outlasts the next, and launches at their ends."""
    starts = (1000, 1400, 1800)
    rows = {
        "NVTX_EVENTS": [pushed("pass", at, at + 400) for at in starts]
        + [pushed("long", 1390, 1500), pushed("last", 1790, 1800)],
        KERNEL: [kernel(at, at, number) for number, at in enumerate((1400, 1800, 2200), 1)],
        "CUPTI_ACTIVITY_KIND_RUNTIME": [
            launch(at, number) for number, at in enumerate((1400, 1800, 2200), 1)
        ],
    }
    rows[KERNEL] += [kernel(1300, 1310, 4), kernel(1310, 1300, 5)]
    rows["CUPTI_ACTIVITY_KIND_RUNTIME"] += [launch(1001, 4), launch(1002, 5)]
    return rows


def machines() -> dict[str, list[tuple[Any, ...]]]:
    """Return two processes, GPUs, contexts and threads, and values that are not there."""
    other = PROCESS + 0x1000000
    return {
        "StringIds": [(1, "gemm"), (3, b"no text")],
        "TARGET_INFO_GPU": [(0, None), (1, "second")],
        KERNEL: [
            kernel(2000, 2100, 1),
            (2000, 2200, 1, 1, 7, 1, other, 5, 1, *(0,) * 9),
            (2300, 2400, 1, 2, None, 2, None, 3, 4, None, *(1,) * 8),
            (None, 2400, 0, 1, 7, 3, PROCESS, 1, 1, *(1,) * 9),
            (2300, None, 0, 1, 7, 4, PROCESS, 1, 1, *(1,) * 9),
        ],
        "CUPTI_ACTIVITY_KIND_MEMCPY": [
            (100, 150, 0, 1, 7, 6, PROCESS, 0, kind) for kind in (0, 1, 2, 3, 8, 10, 99)
        ],
        "CUPTI_ACTIVITY_KIND_MEMSET": [(160, 170, 0, 1, 7, 5, PROCESS, 0, None)],
        "CUPTI_ACTIVITY_KIND_RUNTIME": [
            launch(1900, 1), (1950, 1960, 0, other + 4, 1, 0), launch(1960, 2, thread=2),
        ],
        "NVTX_EVENTS": [
            pushed("one", 1890, 1990), (1900, 1990, 59, 0, "two", other + 4, None, 0),
            pushed("three", 1950, 1990, thread=2),
        ],
    }  # fmt: skip


@pytest.mark.parametrize(
    "rows", [simple, details, passes, together, touching, machines], ids=lambda rows: rows.__name__
)
def test_whole_exports(rows: Any, tmp_path: Path, recorded: Recorded) -> None:
    with open_report(export(tmp_path / "net.sqlite", rows())) as report:
        recorded(f"nsight_{rows.__name__}", {"report": settled(report_text(report), tmp_path)})


def test_rows_beyond_the_limit_are_left_out_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nsight_export, "EVENT_LIMIT", 2)
    rows = simple() | {KERNEL: [kernel(at, at + 5, number) for number, at in enumerate(range(5))]}
    with open_report(export(tmp_path / "net.sqlite", rows)) as report:
        texts = [note.text for note in report.notes]
        assert "only the first 2 rows of a table are read, 3 are left out" in texts


def test_reading_tells_when_it_is_done(tmp_path: Path) -> None:
    path = export(tmp_path / "net.sqlite", simple())
    told: list[tuple[int, int]] = []
    report_from_nsight(path, lambda done, total: told.append((done, total)), None).close()
    assert told == [(path.stat().st_size,) * 2]


def test_refused(tmp_path: Path) -> None:
    empty = export(tmp_path / "empty.sqlite", {})
    with pytest.raises(InputError, match="no GPU activity"):
        open_report(empty)
    whole = drawn(tmp_path / "whole.sqlite", 0)
    with pytest.raises(CancelledError):
        report_from_nsight(whole, None, lambda: True)
    content = whole.read_bytes()
    for cut in (len(content) // 2, 5000, 200):
        damaged = tmp_path / "damaged.sqlite"
        damaged.write_bytes(content[:cut])
        with pytest.raises((CorruptFileError, InputError)) as caught:
            open_report(damaged)
        assert "\n" not in caught.value.message
    foreign = tmp_path / "places.sqlite"
    for name in ("places", "StringIds", "NVTX_EVENTS"):
        foreign.unlink(missing_ok=True)
        with closing(sqlite3.connect(foreign)) as database, database:
            database.execute(f"CREATE TABLE {name} (name TEXT)")
        with pytest.raises(InputError, match="not a profile report"):
            open_report(foreign)


def test_views_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "net.sqlite"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE StringIds (id INT, value TEXT)")
        database.execute("CREATE TABLE NVTX_EVENTS (start TEXT, end BLOB)")
        database.execute("INSERT INTO NVTX_EVENTS VALUES ('a', x'00')")
        database.execute(f"CREATE VIEW {KERNEL} AS SELECT 1 AS start, 2 AS end")
    with pytest.raises(InputError, match="no GPU activity"):
        open_report(path)
