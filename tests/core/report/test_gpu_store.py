from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from dld_tui.core.report.records import GpuEvent, Layer, PassState
from dld_tui.core.report.report import Report
from dld_tui.core.types import JSON
from tests.support.gpu_reports import as_version_1, gpu_writer, make_gpu_report


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "g.dldprof"


def test_events_are_read_as_they_were_written(path: Path) -> None:
    details: dict[str, JSON] = {"grid": [64, 1, 1]}
    late = GpuEvent("stream 7", "kernel", "k<float>", 30.0, 5.0, 0, None, details)
    early = GpuEvent("stream 13", "memcpy", "HtoD", 2.0, 3.0, None, 4096)
    with gpu_writer(path) as report:
        report.add_layer(Layer("a", "Conv"))
        report.add_pass(0, 1000.0, 60.0)
        report.add_gpu_events(0, [late])
        report.add_gpu_events(0, [early, GpuEvent("s", "kernel", "bad", math.nan, 1.0)])
    with Report.open(path) as found:
        assert found.gpu_events(0) == [early, late]
        assert found.gpu_events(1) == []
        assert found.has_gpu_events
        assert [(t.kind, t.name) for t in found.tracks] == [
            ("stream", "stream 7"), ("stream", "stream 13"),
        ]  # fmt: skip


def test_events_with_more_details_replace_those_before(path: Path) -> None:
    plain = [GpuEvent("stream 7", "kernel", name, at, 5.0) for name, at in (("a", 0.0), ("b", 9.0))]
    full = [replace(event, layer=0, details={"grid": [at, 1, 1]}) for at, event in enumerate(plain)]
    more = GpuEvent("stream 7", "kernel", "c", 20.0, 5.0)
    with gpu_writer(path) as report:
        report.add_layer(Layer("a", "Conv"))
        report.add_pass(0, 0.0, 60.0)
        report.add_gpu_events(0, plain)
        report.add_gpu_events(0, full, again=True)
        report.add_gpu_events(0, [more])
    with Report.open(path) as found:
        assert found.gpu_events(0) == [*full, more]


def test_time_on_the_gpu_is_of_the_sums_of_kernels(path: Path) -> None:
    with gpu_writer(path) as report:
        for name in ("two kernels", "none"):
            report.add_layer(Layer(name, "Conv"))
        for index, took in enumerate((10.0, 20.0, 60.0)):
            report.add_pass(index, index * 100.0, 90.0, PassState.MEASURED)
            events = [GpuEvent("s", "kernel", "k", n * 20.0, took, 0) for n in range(2)]
            copy = GpuEvent("s", "memcpy", "HtoD", 0.0, 500.0, 0)
            report.add_gpu_events(index, [*events, copy])
        report.add_pass(3, 300.0, 90.0, PassState.WARM_UP)
        report.add_gpu_events(3, [GpuEvent("s", "kernel", "k", 0.0, 9000.0, 0)])
    with Report.open(path) as found:
        assert [layer.gpu_time_ms for layer in found.layers] == [0.02, None]


def test_a_killed_run_has_its_gpu_times_too(path: Path) -> None:
    whole = Report.open(make_gpu_report(path.with_name("whole.dldprof")))
    writer = gpu_writer(path)
    for layer in whole.layers:
        writer.add_layer(layer)
    for one in whole.passes:
        writer.add_pass(one.index, one.start_us, one.duration_us)
        writer.add_gpu_events(one.index, whole.gpu_events(one.index))
    writer.flush()
    with Report.open(path) as found:
        assert found.status == "partial"
        times = [layer.gpu_time_ms for layer in found.layers]
        assert times == pytest.approx([layer.gpu_time_ms for layer in whole.layers])
        assert times[0] is None


def test_the_counters_may_have_a_clock_of_their_own(path: Path) -> None:
    with gpu_writer(path) as report:
        report.set_pass_start(1, 777.0)
        for index in range(3):
            report.add_pass(index, index * 100.0, 50.0)
        report.set_pass_start(2, 888.0)
    with Report.open(path) as found:
        assert [one.counter_origin_us for one in found.passes] == [0.0, 777.0, 888.0]
        assert [one.start_us for one in found.passes] == [0.0, 100.0, 200.0]


def test_what_could_not_be_measured_says_why(path: Path) -> None:
    why = "ERR_NVGPUCTRPERM: join the group debug\x1b[2J"
    with Report.open(make_gpu_report(path, no_counters=why, absent="no driver")) as found:
        assert {counter.absent for counter in found.counters} == {why}
        assert found.counter_series(0, 0.0, 1000.0, 4) == [None] * 4
        assert found.gpu_absent == "no driver"
        assert not found.has_gpu_events


def test_only_gpu_events_are_a_measurement(path: Path) -> None:
    writer = gpu_writer(path)
    writer.add_pass(0, 0, 10)
    writer.add_gpu_events(0, [GpuEvent("s", "kernel", "k", 0.0, 1.0)])
    assert writer.abort("the GPU is lost") == path


def test_a_report_of_version_1_opens_as_it_is(path: Path) -> None:
    with Report.open(as_version_1(make_gpu_report(path))) as found:
        assert found.version == 1
        assert found.counters == ()
        assert found.gpu_events(0) == []
        assert found.gpu_absent is None
        assert not found.has_gpu_events
        assert found.counter_series(0, 0.0, 10.0, 2) == [None, None]
        assert found.layers[0].time_ms is not None
        assert all(layer.gpu_time_ms is None for layer in found.layers)
        assert found.passes[0].counter_origin_us == found.passes[0].start_us


def test_a_partial_report_of_version_1_opens_too(path: Path) -> None:
    writer = gpu_writer(path)
    writer.add_layer(Layer("a", "Conv"))
    writer.add_pass(0, 0.0, 10.0)
    writer.add_samples(0, [(0, 0.0, 4.0, 4.0, 1)])
    writer.flush()
    writer._close()
    with Report.open(as_version_1(path)) as found:
        assert found.layers[0].time_ms == 0.004
