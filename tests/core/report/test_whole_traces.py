"""Chrome traces: their events, the reports that they become, and reports as traces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dld_tui.core.errors import CancelledError, InputError, SaveError
from dld_tui.core.files.recognise import FileKind, recognise
from dld_tui.core.report.formats import chrome_trace, trace_events
from dld_tui.core.report.formats.chrome_trace import (
    report_from_trace,
    self_times,
    trace_lines,
    write_trace,
)
from dld_tui.core.report.formats.json_stream import ArrayReader
from dld_tui.core.report.formats.trace_events import Spans, TraceEvents
from dld_tui.core.report.records import GpuEvent, PassState
from dld_tui.core.report.report import Report, open_report
from tests.support.profiles import start_report
from tests.support.recorded import Recorded, settled
from tests.support.report_files import HOSTILE, layer, make_report, writer
from tests.support.traces import x


def pytorch(steps: int = 3) -> dict[str, Any]:
    """Return a trace as torch.profiler writes it."""
    events: list[dict[str, Any]] = []
    for step in range(steps):
        at = 1.7e15 + 1000 * step
        events += [
            x("aten::conv2d", at + 10, 100 + step, cat="cpu_op"),
            x("aten::convolution", at + 20, 50, cat="cpu_op"),
            x("cudaLaunchKernel", at + 30, 10, cat="cuda_runtime"),
            x("sm80_gemm", at + 40, 300, cat="kernel", pid=0, tid=7, args={"stream": 7}),
            x("Memcpy DtoH", at + 950, 100, cat="gpu_memcpy", pid=0, tid=7, args={"bytes": 64}),
            x(f"ProfilerStep#{step}", at, 900, cat="user_annotation"),
            {"ph": "s", "id": step, "pid": 1, "tid": 2, "ts": at},
        ]
    devices = [{"id": 0, "name": "NVIDIA H200"}]
    return {"schemaVersion": 1, "deviceProperties": devices, "traceEvents": events}


def half(ph: str, ts: Any, tid: Any, name: str = "") -> dict[str, Any]:
    return {"ph": ph, "ts": ts, "tid": tid, "pid": 1} | ({"name": name} if name else {})


def label(kind: str, pid: Any, tid: Any, text: Any) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": text}}


EVENTS: dict[str, list[Any]] = {
    "complete": [x("a", 1.5, 2, cat="cpu_op"), x("b", "3", "4.5"), x("a", 9, 1), x("", 10, 0),
                 x("c", 12, 1, cat=5)],
    "begin and end": [
        half("B", 1, 1, "outer"), half("B", 2, 1, "inner"), half("B", 3, 2, "other"),
        half("E", 4, 1), half("E", 5, 2), half("E", 9, 1), half("E", 10, 1),
        half("B", 12, 3, "back"), half("E", 11, 3), half("B", 11, 1, "never"),
        half("E", None, 1), half("B", 13, 1),
    ],
    "steps": [
        x("ProfilerStep#3", 10, 90, cat="user_annotation"),
        x("ProfilerStep#3", 12, 90, cat="gpu_user_annotation"),
        x("aten::conv2d", 11, 5, cat="cpu_op"), x("MODEL_RUN", 200, 50),
        x("mirrored", 11, 5, cat="gpu_user_annotation"),
        x("anything", 300, 5, cat="pass", args={"state": "warm-up"}),
        x("pass 7", 400, 5, args={"state": "incomplete"}), x("pass 8", 500, 5, args=[1]),
        x("my pass 9", 600, 5), x("pass 9 b", 700, 5), x("pass 9", 800, 5, args={"state": "else"}),
    ],
    "on a GPU": [
        x("sgemm", 1, 2, cat="kernel", args={"stream": 7}),
        x("Memcpy HtoD", 3, 1, cat="gpu_memcpy", args={"bytes": 4096}),
        x("Memset", 4, 1, cat="Gpu_Memset", args={"bytes": -1}),
        x("over", 5, 1, cat="gpu_overhead", args={"bytes": True}),
        x("sync", 6, 1, cat="gpu_sync", args={"bytes": 1 << 53}),
        x("zero", 7, 1, cat="gpu_memset", args={"bytes": 0}), x("cpu", 8, 1, cat="cpu_op"),
    ],
    "threads": [
        label("process_name", 1, 0, "python"), label("thread_name", 1, 2, "main"),
        label("thread_name", 1, 3, 7), label("thread_sort_index", 1, 3, "no"),
        label("process_name", 9, 0, ""), {"ph": "M", "name": "thread_name", "args": [1]},
        x("a", 1, 1), x("a", 1, 1, tid=3), x("a", 1, 1, pid="Spans", tid="PyTorch Profiler"),
        x("a", 1, 1, pid=None, tid=1.5), x("a", 1, 1),
    ],
    "one process": [label("process_name", 1, 0, "python"), x("a", 1, 1, tid=3)],
    "unsound": [
        x("a", -1, -5), x("a", None, 1), x("a", True, 1), x("a", 1e300, 1), x("a", "x", 1),
        x("a", 1, "nan"), {"ph": "X", "ts": 1, "dur": 1}, x(7, 1, 1), {"ph": "E", "ts": 1},
        {"ph": "B", "name": "a"},
    ],
    "others": [{"ph": "s"}, {"ph": "s"}, {"ph": 5}, {}],
}  # fmt: skip


def found_in(path: Path, events: Any) -> str:
    path.write_text(json.dumps({"traceEvents": events}))
    found = TraceEvents()
    found.read(ArrayReader(path))
    lines = [f"bad {found.bad}, left out {found.left_out}, others {dict(found.others)}"]
    lines += map(str, found.marks)
    lines += [found.label(place) for place in range(len(found.threads))]
    for kind, spans in (("host", found.host), ("gpu", found.gpu)):
        for at in range(len(spans)):
            name = found.names[spans.names[at]]
            size = f" {spans.sizes[at]:g}" if kind == "gpu" else ""
            gpu_kind = found.gpu_kind(spans.names[at])
            lines.append(
                f"{kind} {tuple(name)} {gpu_kind} {found.threads[spans.threads[at]]}"
                f" {spans.starts[at]:g} for {spans.durations[at]:g}{size}"
            )
    return "\n".join(lines)


def test_events(tmp_path: Path, recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.json"
    told = {title: found_in(path, events) for title, events in EVENTS.items()}
    for name, limit in (("EVENT", 4), ("NAME", 2), ("THREAD", 2)):
        monkeypatch.setattr(trace_events, f"{name}_LIMIT", limit)
    told["limits"] = found_in(path, [x(f"n{n}", n, 1, tid=n) for n in range(6)])
    monkeypatch.setattr(trace_events, "_OPEN_LIMIT", 2)
    told["open"] = found_in(path, [half("B", n, 1, "a") for n in range(3)])
    recorded("whole_trace_events", told)


TRACES: dict[str, Any] = {
    "net": pytorch(),
    "no marks": [x("a", 5, 10), x("b", 20, 5), x("a", 30, 10), {"ph": "s"}, {"ph": "b"}],
    "kernels alone": [x("k", 5, 10, cat="kernel"), x("Memcpy", 20, 5, cat="gpu_memcpy"),
                      x("k", 5, 10, cat="kernel"), x("z", 30, 0, cat="kernel"),
                      x("z", 30, 0, cat="kernel")],
    "outside of all": [x("early", 0, 5), x("ProfilerStep#1", 10, 10), x("a", 12, 5),
                       x("late", 30, 5), x("k", 1, 5, cat="kernel"), x("at", 20, 5),
                       x("k", 12, 5, cat="kernel"), x("k", 12, 5, cat="kernel")],
    "between two": [x("pass 1", 0, 10), x("pass 2", 10, 10), x("a", 10, 5), x("b", 20, 5)],
    "overlapping": [x("pass 1", 0, 100), x("pass 2", 50, 100), x("pass 3", 200, 10), x("a", 60, 5),
                    x("pass 4", 300, 0)],
    "unsound": [x("a", 5, 10), x("a", None, 10), x("x", 5, 10), x("a", 5, 20, tid=3)],
}  # fmt: skip


def reported(report: Report) -> str:
    lines = [f"{report.network} {report.backend} {report.execution_provider!r}"]
    lines += [f"{note.kind.value}: {note.text}" for note in report.notes]
    lines += [f"{one.name} {one.type} {one.time_ms} ms, {one.count}" for one in report.layers]
    lines += map(str, report.tracks)
    for one in report.passes:
        lines.append(f"pass {one.index} from {one.start_us} for {one.duration_us}, {one.state}")
        lines += [f"  {event}" for event in report.pass_events(one.index)]
        lines += [f"  {event}" for event in report.gpu_events(one.index)]
    return settled("\n".join(lines))


def test_traces_as_reports(
    tmp_path: Path, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {}
    path = tmp_path / "net.trace.json"
    for title, data in TRACES.items():
        path.write_text(json.dumps(data))
        assert recognise(path) is FileKind.TRACE
        with open_report(path) as report:
            told[title] = reported(report)
    path.write_text(json.dumps(pytorch())[:-300])
    monkeypatch.setattr(chrome_trace, "_BLOCK", 2)
    with open_report(path) as report:
        told["cut"] = reported(report)
    monkeypatch.setattr(chrome_trace, "_MOST_PASSES", 2)
    monkeypatch.setattr(trace_events, "EVENT_LIMIT", 4)
    monkeypatch.setattr(chrome_trace, "EVENT_LIMIT", 4)
    path.write_text(json.dumps(pytorch()))
    with report_from_trace(path) as report:
        told["limits"] = reported(report)
    recorded("whole_traces", told)


def test_self_times_over_threads_and_odd_ends() -> None:
    spans = Spans()
    for thread, start, took in ((0, 0, 100), (0, 10, 50), (0, 20, 10), (0, 90, 20), (1, 5, 50)):
        spans.add(0, thread, start, took)
    order = np.array([0, 4, 1, 2, 3])
    assert self_times(spans, order) == [40, 50, 40, 10, 20]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "not a known kind"),
        ('[{"ph":"X","ts":1}]', "no event with a duration: 1 event could not be read"),
        ('{"traceEvents":[]}', "no event with a duration"),
        ('{"traceEvents":[{"ph":"M","name":"process_name"}]}', "no event with a duration"),
        ('{"traceEvents": 7, "x": [{"ph":"X"}]}', "not a JSON array of events"),
        ("{" * 5000 + '"traceEvents":', "not a JSON array of events"),
    ],
)
def test_what_is_no_trace_is_one_clear_line(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "t.json"
    path.write_text(content)
    with pytest.raises(InputError, match=message) as caught:
        open_report(path)
    assert "\n" not in str(caught.value)


def test_it_can_be_stopped_and_tells_how_far_it_is(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps(pytorch()))
    told: list[tuple[int, int]] = []
    report_from_trace(path, lambda done, total: told.append((done, total))).close()
    assert told[-1] == (path.stat().st_size,) * 2
    with pytest.raises(CancelledError):
        report_from_trace(path, cancelled=lambda: True)


@pytest.fixture
def gpu_report(tmp_path: Path) -> Path:
    made = writer(tmp_path / "gpu.dldprof", network=HOSTILE)
    number = made.add_layer(layer(0, HOSTILE))
    made.add_layer(layer(1, nodes=tuple(layer(2).nodes) * 9, output_dims=((1, "N", None), None)))
    for index in range(2):
        start = 5000.0 * index + 100
        made.add_pass(index, start, 1000.0, PassState.MEASURED if index else PassState.WARM_UP)
        made.add_samples(index, [(number, start + 10, 400.0, 400.0, 4711),
                                 (1, start + 500, 100.5, 100.0, "main")])  # fmt: skip
        made.add_gpu_events(
            index,
            [
                GpuEvent("stream 7", "kernel", "sgemm", 20.5, 300.0, number, details={"grid": [1]}),
                GpuEvent("stream 7", "memcpy", HOSTILE, 400.0, 10.0, None, 4096),
                GpuEvent("stream 8", "memset", "zero", 420.0, 1.0, None, 0),
            ],
        )
        made.set_pass_start(index, start + 1_000_000)
    counter = made.add_counter("sm", "SM active", "%", 100.0, "cupti-pm")
    made.add_counter_samples(counter, [(1_000_100.0 + 100 * n, n) for n in range(5)])
    made.finish()
    return made.path


def test_a_report_as_a_trace_reads_back(
    gpu_report: Path, tmp_path: Path, recorded: Recorded
) -> None:
    target = tmp_path / "out.trace.json"
    told = {}
    with Report.open(gpu_report) as report:
        lines = [*trace_lines(report)]
        told["the trace"] = settled("\n".join(lines), tmp_path)
        assert json.loads("\n".join(lines))["otherData"]["network"] == HOSTILE
        assert write_trace(report, target) == []
        assert recognise(target) is FileKind.TRACE
    with open_report(target) as again:
        told["read back"] = reported(again)
    with Report.open(make_report(tmp_path / "plain.dldprof", 2, 1)) as report:
        told["without a GPU"] = settled("\n".join(trace_lines(report)), tmp_path)
    recorded("whole_exported_traces", told)


@pytest.mark.parametrize("count", [0, 1, 2, 12])
def test_samples_are_where_they_were_taken_and_means_of_many_stand_for_them(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chrome_trace, "_MOST_SAMPLES", 4)
    made = start_report(tmp_path / "r.dldprof")
    counter = made.add_counter("sm", "SM active", "%", 100.0, "cupti-pm")
    made.add_counter_samples(counter, [(500.0 + 4 * n, 7.0 + n) for n in range(count)])
    made.finish()
    with Report.open(made.path) as report:
        events = json.loads("\n".join(trace_lines(report)))["traceEvents"]
    samples = [(one["ts"], one["args"]["value"]) for one in events if one["ph"] == "C"]
    if count <= 4:
        assert samples == [(500 + 4 * n, 7 + n) for n in range(count)]
    else:
        assert samples == [(500 + 12 * n, 8 + 3 * n) for n in range(4)]


def test_many_passes_are_streamed_with_progress_and_can_be_stopped(tmp_path: Path) -> None:
    path = make_report(tmp_path / "r.dldprof", layers=50, passes=20)
    told: list[tuple[int, int]] = []
    with Report.open(path) as report:
        target = tmp_path / "r.trace.json"
        write_trace(report, target, progress=lambda done, total: told.append((done, total)))
        assert told == [(n, 20) for n in range(1, 21)]
        events = json.loads(target.read_text())["traceEvents"]
        assert sum(one["ph"] == "X" for one in events) == 20 * 51
        with pytest.raises(SaveError, match="exists"):
            write_trace(report, target)
        before = target.read_bytes()
        with pytest.raises(CancelledError):
            write_trace(report, target, overwrite=True, cancelled=lambda: True)
        assert target.read_bytes() == before
        write_trace(report, target, overwrite=True)
        assert target.read_bytes() == before
