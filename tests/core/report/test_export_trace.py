from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dld_tui.core.errors import CancelledError, SaveError
from dld_tui.core.files.recognise import FileKind, recognise
from dld_tui.core.report.formats import chrome_trace
from dld_tui.core.report.formats.chrome_trace import trace_lines, write_trace
from dld_tui.core.report.records import GpuEvent, PassState
from dld_tui.core.report.report import Report, open_report
from tests.support.profiles import start_report
from tests.support.report_files import HOSTILE, layer, make_report, writer


def of(events: list[dict[str, Any]], **wanted: Any) -> list[dict[str, Any]]:
    return [e for e in events if all(e.get(key) == value for key, value in wanted.items())]


@pytest.fixture
def gpu_report(tmp_path: Path) -> Path:
    made = writer(tmp_path / "gpu.dldprof")
    number = made.add_layer(layer(0, HOSTILE))
    for index in range(2):
        start = 5000.0 * index + 100
        made.add_pass(index, start, 1000.0, PassState.MEASURED if index else PassState.WARM_UP)
        made.add_samples(index, [(number, start + 10, 400.0, 400.0, 4711)])
        made.add_gpu_events(
            index,
            [
                GpuEvent("stream 7", "kernel", "sgemm", 20.5, 300.0, number, details={"grid": [1]}),
                GpuEvent("stream 7", "memcpy", "HtoD", 400.0, 10.0, None, 4096),
                GpuEvent("stream 7", "memset", "zero", 420.0, 1.0, None, 0),
            ],
        )
        made.set_pass_start(index, start + 1_000_000)
    counter = made.add_counter("sm", "SM active", "%", 100.0, "cupti-pm")
    made.add_counter_samples(counter, [(1_000_100.0 + 100 * n, n) for n in range(50)])
    made.finish()
    return made.path


def test_passes_layers_streams_and_counters(gpu_report: Path) -> None:
    with Report.open(gpu_report) as report:
        data = json.loads("\n".join(trace_lines(report)))
    events = data["traceEvents"]
    assert data["otherData"]["network"] == "tiny.onnx"
    assert [(e["name"], e["ts"], e["dur"]) for e in of(events, cat="pass")] == [
        ("pass 1", 100, 1000), ("pass 2", 5100, 1000),
    ]  # fmt: skip
    run = of(events, cat="Conv")[1]
    assert (run["ts"], run["dur"], run["args"]["layer"]) == (5110, 400, 0)
    assert "\x1b" not in run["name"]
    kernel = of(events, cat="kernel")[0]
    assert (kernel["ts"], kernel["dur"]) == (120.5, 300)
    assert kernel["args"] == {"grid": [1], "layer": run["name"]}
    assert of(events, cat="gpu_memcpy")[0]["args"] == {"bytes": 4096}
    assert of(events, name="zero")[0]["args"] == {"bytes": 0}
    (lane,) = (e for e in of(events, ph="M") if e["args"]["name"] == "stream 7")
    assert {e["tid"] for e in events if e["pid"] == kernel["pid"] and e["ph"] == "X"} == {
        lane["tid"]
    }
    names = {e["args"]["name"] for e in of(events, ph="M")}
    assert {"tiny.onnx · CPU", "tiny.onnx · GPU", "stream 7", "thread 4711", "passes"} <= names
    samples = of(events, ph="C")
    assert samples[0]["name"] == "SM active (%)"
    # The counters' clock is a second ahead of the passes'.
    assert samples[0]["ts"] == pytest.approx(100)
    assert sum(e["args"]["value"] for e in samples) == pytest.approx(sum(range(50)))


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
    samples = [(event["ts"], event["args"]["value"]) for event in of(events, ph="C")]
    if count <= 4:
        assert samples == [(500 + 4 * n, 7 + n) for n in range(count)]
    else:
        assert samples == [(500 + 12 * n, 8 + 3 * n) for n in range(4)]


def test_what_was_written_reads_back(gpu_report: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.trace.json"
    with Report.open(gpu_report) as report:
        assert write_trace(report, target) == []
        assert recognise(target) is FileKind.TRACE
        with open_report(target) as again:
            assert [one.duration_us for one in again.passes] == [1000.0, 1000.0]
            assert [one.state for one in again.passes] == ["warm-up", "measured"]
            assert [one.type for one in again.layers] == ["Conv"]
            assert again.layers[0].time_ms == report.layers[0].time_ms
            kinds = [(one.kind, one.bytes, one.duration_us) for one in again.gpu_events(1)]
            assert kinds == [("kernel", None, 300.0), ("memcpy", 4096, 10.0), ("memset", 0, 1.0)]


def test_many_passes_are_streamed_with_progress_and_can_be_stopped(tmp_path: Path) -> None:
    path = make_report(tmp_path / "r.dldprof", layers=50, passes=20)
    told: list[tuple[int, int]] = []
    with Report.open(path) as report:
        target = tmp_path / "r.trace.json"
        write_trace(report, target, progress=lambda done, total: told.append((done, total)))
        assert told == [(n, 20) for n in range(1, 21)]
        assert len(of(json.loads(target.read_text())["traceEvents"], ph="X")) == 20 * 51
        with pytest.raises(SaveError, match="exists"):
            write_trace(report, target)
        before = target.read_bytes()
        with pytest.raises(CancelledError):
            write_trace(report, target, overwrite=True, cancelled=lambda: True)
        assert target.read_bytes() == before
        write_trace(report, target, overwrite=True)
        assert target.read_bytes() == before
