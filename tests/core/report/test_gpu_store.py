from __future__ import annotations

import math
import random
import sqlite3
from pathlib import Path

import pytest

from dld_tui.core.errors import CorruptFileError, DldError
from dld_tui.core.reading.export import report_json
from dld_tui.core.report.records import Bucket, GpuEvent, Layer
from dld_tui.core.report.report import Report
from dld_tui.core.report.schema import STEP
from dld_tui.core.types import JSON
from tests.support.gpu_reports import as_version_1, gpu_writer, make_gpu_report
from tests.support.work import database_work


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


def write_counter(path: Path, samples: list[tuple[float, float]]) -> Report:
    with gpu_writer(path) as report:
        counter = report.add_counter("c", "C", "%", 100.0, "cupti-pm")
        report.add_counter_samples(counter, samples)
    return Report.open(path)


def change(path: Path, statement: str) -> None:
    database = sqlite3.connect(path)
    database.execute(statement)
    database.commit()
    database.close()


def test_samples_are_put_into_equal_parts_of_the_time(path: Path) -> None:
    with write_counter(path, [(float(n), float(n)) for n in range(8)]) as found:
        assert found.counter_series(0, 0.0, 8.0, 2) == [
            Bucket(4, 1.5, 0.0, 3.0), Bucket(4, 5.5, 4.0, 7.0),
        ]  # fmt: skip
        assert found.counter_series(0, 0.0, 8.0, 0) == []
        assert found.counter_series(0, 5.0, 5.0, 2) == [None, None]
        assert found.counter_series(9, 0.0, 8.0, 1) == [None]


def test_a_near_look_repeats_the_nearest_sample(path: Path) -> None:
    with write_counter(path, [(10.0 * n, float(n)) for n in range(20)]) as found:
        series = found.counter_series(0, 20.0, 40.0, 20)
        assert [round(bucket.mean) for bucket in series if bucket is not None] == [
            2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4,
        ]  # fmt: skip
        after = found.counter_series(0, 190.0, 230.0, 4)
        assert after[0] is not None
        assert after[1:] == [None, None, None]


def test_blocks_and_samples_agree(path: Path) -> None:
    dice = random.Random(4)
    samples = [(2.0 * n, dice.uniform(0, 100)) for n in range(40_000)]
    samples = [sample for sample in samples if not 30_000 < sample[0] < 50_000]
    with write_counter(path, samples) as found:
        assert found.counters[0].levels >= 2
        assert found.counters[0].period_us == 2.0
        for buckets in (1, 7, 100):
            series = found.counter_series(0, 0.0, 80_000.0, buckets)
            width = 80_000 / buckets
            for place, bucket in enumerate(series):
                inside = [v for t, v in samples if place * width <= t < (place + 1) * width]
                if not inside:
                    assert bucket is None
                    continue
                assert bucket is not None
                assert bucket.mean == pytest.approx(sum(inside) / len(inside), rel=0.2)
            known = [bucket for bucket in series if bucket is not None]
            assert sum(bucket.samples for bucket in known) == len(samples)
            assert max(bucket.maximum for bucket in known) == max(v for _, v in samples)


def test_the_cost_of_a_series_does_not_depend_on_the_samples_of_its_time(path: Path) -> None:
    count = 40_000
    with write_counter(path, [(float(n), float(n % 97)) for n in range(count)]) as found:
        assert found.counters[0].levels >= 3
        for length in (count, count / 5, count / STEP, 500.0):
            with database_work(found._connection) as thousands:
                series = found.counter_series(0, 1000.0, 1000.0 + length, 200)
            assert any(series)
            assert thousands[0] < 250  # reading every sample takes 1300


def test_a_partial_report_has_its_counters(path: Path) -> None:
    writer = gpu_writer(path)
    counter = writer.add_counter("c", "C", "%", None, "nvml")
    writer.add_counter_samples(counter, [(n * 10.0, n % 7) for n in range(2000)])
    writer.flush()
    with Report.open(path) as found:
        (known,) = found.counters
        assert (known.samples, known.last_us, known.top, known.levels) == (2000, 19990.0, 6.0, 0)
        assert all(found.counter_series(0, 0.0, 20_000.0, 50))


def test_events_of_a_later_version_are_overhead(path: Path) -> None:
    make_gpu_report(path)
    change(path, "UPDATE gpu_events SET kind = 'graph launch' WHERE kind = 'kernel'")
    with Report.open(path) as found:
        assert "kernel" not in {event.kind for event in found.gpu_events(0)}


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE gpu_events SET layer = 99 WHERE kind = 'kernel'",
        "UPDATE gpu_events SET start_us = 'x'",
        "UPDATE gpu_events SET duration_us = 9e999",
        "UPDATE gpu_events SET details = '[['",
        "UPDATE gpu_names SET name = x'ff'",
        "UPDATE gpu_events SET bytes = 'many'",
    ],
)
def test_wrong_events(path: Path, statement: str) -> None:
    make_gpu_report(path)
    change(path, statement)
    with Report.open(path) as found, pytest.raises(CorruptFileError, match="damaged"):
        found.gpu_events(0)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE counters SET title = x'ff'",
        "UPDATE counters SET maximum = 'x'",
        "UPDATE counters SET samples = NULL; ",
        "UPDATE layers SET gpu_time_ms = 'x'",
        "UPDATE passes SET counter_start_us = 'x'",
        "DROP TABLE counter_blocks",
    ],
)
def test_wrong_counters(path: Path, statement: str) -> None:
    make_gpu_report(path)
    change(path, statement)
    if "samples = NULL" in statement:  # as a killed run leaves it
        assert Report.open(path).counters[0].samples > 0
        change(path, "UPDATE counter_samples SET value = 'x'")
    with pytest.raises(CorruptFileError):
        Report.open(path)


@pytest.mark.broad
def test_mutated_reports_never_crash(path: Path) -> None:
    dice = random.Random(5)
    whole = make_gpu_report(path, layers=4, passes=2).read_bytes()
    outcomes = set()
    for _ in range(60):
        data = bytearray(whole)
        for _ in range(dice.randint(1, 12)):
            data[dice.randrange(100, len(data))] = dice.randrange(256)
        path.write_bytes(data)
        try:
            with Report.open(path) as found:
                report_json(found, "node")
                for counter in found.counters:
                    found.counter_series(counter.id, 0.0, 1e3, 20)
                    found.counter_series(counter.id, 0.0, 1e6, 20)
                for one in found.passes:
                    found.pass_events(one.index)
                    found.gpu_events(one.index)
            outcomes.add("read")
        except DldError as error:
            outcomes.add("refused" if "\n" not in str(error) else str(error))
    assert outcomes == {"read", "refused"}
