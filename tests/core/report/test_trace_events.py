from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dld_tui.core.report.formats import trace_events
from dld_tui.core.report.formats.json_stream import ArrayReader
from dld_tui.core.report.formats.trace_events import Mark, Name, TraceEvents
from tests.support.traces import x


def read(tmp_path: Path, events: list[Any]) -> TraceEvents:
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"traceEvents": events}))
    found = TraceEvents()
    found.read(ArrayReader(path))
    return found


def test_complete_events(tmp_path: Path) -> None:
    found = read(tmp_path, [x("a", 1.5, 2, cat="cpu_op"), x("b", "3", "4.5"), x("a", 9, 1)])
    assert found.names == [Name("cpu_op", "a"), Name("", "b"), Name("", "a")]
    assert list(found.host.names) == [0, 1, 2]
    assert list(found.host.starts) == [1.5, 3.0, 9.0]
    assert list(found.host.durations) == [2.0, 4.5, 1.0]
    assert found.threads == [("1", "2")]


def test_begin_and_end_make_pairs_by_thread(tmp_path: Path) -> None:
    def of(ph: str, ts: int, tid: int, name: str = "") -> dict[str, Any]:
        return {"ph": ph, "ts": ts, "tid": tid, "pid": 1} | ({"name": name} if name else {})

    events = [
        of("B", 1, 1, "outer"), of("B", 2, 1, "inner"), of("B", 3, 2, "other"),
        of("E", 4, 1), of("E", 5, 2), of("E", 9, 1), of("E", 10, 1), of("B", 11, 1, "never"),
    ]  # fmt: skip
    found = read(tmp_path, events)
    spans = {
        found.names[name].text: (start, took)
        for name, start, took in zip(
            found.host.names, found.host.starts, found.host.durations, strict=True
        )
    }
    assert spans == {"inner": (2, 2), "other": (3, 2), "outer": (1, 8)}
    assert found.bad == 2  # an end too many, a begin that never ends


def test_steps_are_marks_and_mirrored_annotations_are_not_twice(tmp_path: Path) -> None:
    events = [
        x("ProfilerStep#3", 10, 90, cat="user_annotation"),
        x("ProfilerStep#3", 12, 90, cat="gpu_user_annotation"),
        x("aten::conv2d", 11, 5, cat="cpu_op"),
        x("model_run", 200, 50),
    ]
    found = read(tmp_path, events)
    assert found.marks == [Mark(10, 100), Mark(200, 250)]
    assert [name.text for name in found.names] == ["aten::conv2d"]


def test_gpu_work_is_kept_apart_with_its_bytes(tmp_path: Path) -> None:
    events = [
        x("sgemm", 1, 2, cat="kernel", args={"stream": 7}),
        x("Memcpy HtoD", 3, 1, cat="gpu_memcpy", args={"bytes": 4096}),
        x("Memset", 4, 1, cat="gpu_memset", args={"bytes": -1}),
    ]
    found = read(tmp_path, events)
    assert len(found.host) == 0
    assert list(found.gpu.sizes) == [-1, 4096, -1]
    assert [found.gpu_kind(name) for name in found.gpu.names] == ["kernel", "memcpy", "memset"]


def test_names_of_threads(tmp_path: Path) -> None:
    def name(kind: str, pid: Any, tid: Any, text: Any) -> dict[str, Any]:
        return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": text}}

    found = read(
        tmp_path,
        [
            name("process_name", 1, 0, "python"),
            name("thread_name", 1, 2, "main"),
            name("thread_name", 1, 3, 7),
            x("a", 1, 1),
            x("a", 1, 1, tid=3),
            x("a", 1, 1, pid="Spans", tid="PyTorch Profiler"),
        ],
    )
    assert [found.label(place) for place in range(3)] == [
        "main", "python · 3", "Spans · PyTorch Profiler",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "event",
    [
        x("a", -1, -5), x("a", None, 1), x("a", True, 1), x("a", 1e300, 1), x("a", "x", 1),
        {"ph": "X", "ts": 1, "dur": 1}, x(7, 1, 1), {"ph": "E", "ts": 1},
        {"ph": "B", "name": "a"},
    ],
)  # fmt: skip
def test_unsound_events_are_counted(tmp_path: Path, event: dict[str, Any]) -> None:
    found = read(tmp_path, [event])
    assert (len(found.host), found.bad) == (0, 1)


def test_other_kinds_are_counted_by_their_letter(tmp_path: Path) -> None:
    found = read(tmp_path, [{"ph": "s"}, {"ph": "s"}, {"ph": 5}, {}])
    assert found.others == {"s": 2, "?": 2}


def test_limits_keep_memory_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_events, "EVENT_LIMIT", 4)
    monkeypatch.setattr(trace_events, "NAME_LIMIT", 2)
    monkeypatch.setattr(trace_events, "THREAD_LIMIT", 2)
    found = read(tmp_path, [x(f"n{n}", n, 1, tid=n) for n in range(6)])
    assert (len(found.host), found.left_out) == (4, 2)
    assert [name.text for name in found.names] == ["n0", "n1", "(other)"]
    assert list(found.host.names) == list(found.host.threads) == [0, 1, 2, 2]
    assert found.label(2).endswith("other threads")
