from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dld_tui.core.errors import CancelledError, InputError
from dld_tui.core.files.recognise import FileKind, recognise
from dld_tui.core.report.formats.chrome_trace import report_from_trace, self_times
from dld_tui.core.report.formats.trace_events import Spans
from dld_tui.core.report.report import open_report
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
    return {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}],
        "traceEvents": events,
        "traceName": "t.json",
    }


def write(path: Path, data: Any) -> Path:
    path.write_text(json.dumps(data))
    return path


def test_a_pytorch_trace_has_steps_layers_and_streams(tmp_path: Path) -> None:
    path = write(tmp_path / "net.trace.json", pytorch())
    assert recognise(path) is FileKind.TRACE
    with open_report(path) as report:
        assert (report.network, report.backend) == ("net", "Chrome trace")
        assert [one.duration_us for one in report.passes] == [900.0] * 3
        assert [one.start_us for one in report.passes] == [-10.0, 990.0, 1990.0]
        times = {layer.name: layer.time_ms for layer in report.layers}
        assert times == {
            "aten::conv2d": pytest.approx(0.05),
            "aten::convolution": pytest.approx(0.04),
            "cudaLaunchKernel": pytest.approx(0.01),
        }
        assert {layer.type for layer in report.layers} == {"cpu_op", "cuda_runtime"}
        assert [event.depth for event in report.pass_events(1)] == [0, 1, 2]
        gpu = report.gpu_events(1)
        assert [(one.kind, one.start_us, one.bytes) for one in gpu] == [
            ("kernel", 40.0, None), ("memcpy", 950.0, 64),
        ]  # fmt: skip
        assert any("3 events of other kinds left out (s)" in note.text for note in report.notes)


def test_a_trace_without_marks_is_one_pass(tmp_path: Path) -> None:
    path = write(tmp_path / "t.json", [x("a", 5, 10), x("b", 20, 5), x("a", 30, 10)])
    with open_report(path) as report:
        assert [one.duration_us for one in report.passes] == [35.0]
        assert {layer.name: layer.time_ms for layer in report.layers} == {"a": 0.02, "b": 0.005}
        assert report.layers[0].count == 2
        assert any("shown as one pass" in note.text for note in report.notes)


def test_kernels_alone_are_the_layers(tmp_path: Path) -> None:
    events = [x("k", 5, 10, cat="kernel"), x("Memcpy", 20, 5, cat="gpu_memcpy")]
    with open_report(write(tmp_path / "t.json", events)) as report:
        assert [layer.name for layer in report.layers] == ["k", "Memcpy"]


def test_what_is_outside_all_passes_is_left_out_and_said(tmp_path: Path) -> None:
    events = [x("early", 0, 5), x("ProfilerStep#1", 10, 10), x("a", 12, 5), x("late", 30, 5)]
    with open_report(write(tmp_path / "t.json", events)) as report:
        assert [layer.name for layer in report.layers] == ["a"]
        assert any("2 events outside all passes left out" in n.text for n in report.notes)


def test_overlapping_marks_are_one_pass_each_no_more(tmp_path: Path) -> None:
    events = [x("pass 1", 0, 100), x("pass 2", 50, 100), x("pass 3", 200, 10), x("a", 60, 5)]
    with open_report(write(tmp_path / "t.json", events)) as report:
        assert [one.start_us for one in report.passes] == [-60.0, 140.0]
        assert any("1 step left out" in note.text for note in report.notes)


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


def test_a_cut_trace_keeps_what_is_whole_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps(pytorch())[:-300])
    with open_report(path) as report:
        assert report.layers
        assert any("ends early" in note.text for note in report.notes)


def test_it_can_be_stopped_and_tells_how_far_it_is(tmp_path: Path) -> None:
    path = write(tmp_path / "t.json", pytorch())
    told: list[tuple[int, int]] = []
    report_from_trace(path, lambda done, total: told.append((done, total))).close()
    assert told[-1] == (path.stat().st_size,) * 2
    with pytest.raises(CancelledError):
        report_from_trace(path, cancelled=lambda: True)
