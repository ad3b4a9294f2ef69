from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from dld_tui.core.errors import InputError, UsageError
from dld_tui.core.reading.export import report_json
from dld_tui.core.report.records import Layer, NodeLink, PassState
from dld_tui.core.report.report import Report, open_report
from tests.support import models
from tests.support.profiles import start_report, write_report


@pytest.fixture
def report(tmp_path: Path) -> Report:
    link = NodeLink((), "c", "c", "Conv")
    path = write_report(
        tmp_path / "r.dldprof",
        [
            (Layer("c", "Conv", nodes=(link,), confidence="name"), [4.0, 2.0, 3.0, 9.0]),
            (Layer("r", "Relu"), [1.0, 1.0, 1.0, 1.0]),
        ],
    )
    return Report.open(path)


def test_the_figures_of_a_report(report: Report) -> None:
    assert [p.duration_us for p in report.passes] == [5000, 3000, 4000, 10000]
    assert report.typical_pass == 2
    assert [layer.time_ms for layer in report.layers] == [2.0, 1.0]
    assert report.measurement.total_ms == 3.0
    assert sum(layer.percent or 0 for layer in report.layers) == pytest.approx(100)
    assert report.joined_percent == pytest.approx(100 * 2 / 3)
    assert report.latency is not None
    assert (report.latency.source, report.latency.median) == ("profiled passes", 4.5)
    assert [(e.layer, e.start_us, e.duration_us) for e in report.pass_events(1)] == [
        (0, 0, 2000), (1, 2000, 1000),
    ]  # fmt: skip
    assert report.pass_events(99) == []


@pytest.mark.parametrize("change", ["time_ms = 99", "percent = 250", "time_ms = -1"])
def test_times_that_contradict_their_percents_are_computed_again(
    report: Report, change: str
) -> None:
    before = [(layer.time_ms, layer.percent) for layer in report.layers]
    with closing(sqlite3.connect(report.path)) as database, database:
        database.execute(f"UPDATE layers SET {change} WHERE id = 0")
    with Report.open(report.path) as opened:
        assert [(layer.time_ms, layer.percent) for layer in opened.layers] == before
        assert any("contradict" in line for line in opened.problems)
    assert not any("contradict" in line for line in report.problems)


def test_the_typical_pass_of_a_gpu_has_samples_of_all_counters(tmp_path: Path) -> None:
    """Of kernels alone, which take longer and longer, the second and the fourth are the middle."""
    typical = []
    for at, ends in enumerate([
        ((0, 70), (0, 70)), ((20, 70), (0, 70)), ((0, 70), (0, 55)), ((20, 40), (30, 70)),
        ((22, 38), (0, 70)), ((24, 38), (24, 36)), ((0, 5), (60, 70)), (),
    ]):  # fmt: skip
        made = start_report(tmp_path / f"{at}.dldprof")
        made.add_layer(Layer("c", "Conv"))
        for number in range(7):
            made.add_pass(number, 10.0 * number, 2.0 + number, PassState.KERNELS_ALONE)
        for name, (first, last) in zip("ab", ends, strict=False):
            counter = made.add_counter(name, name, "%", 100.0, "cupti-pm")
            made.add_counter_samples(counter, [(float(us), 1.0) for us in range(first, last + 1)])
        made.finish()
        with Report.open(made.path) as opened:
            typical.append(opened.typical_pass)
    assert typical == [3, 4, 2, 3, 3, 3, 3, 3]


def test_empty_report(tmp_path: Path) -> None:
    start_report(tmp_path / "n.dldprof").finish()
    report = Report.open(tmp_path / "n.dldprof")
    assert (report.latency, report.typical_pass, report.joined_percent) == (None, None, None)
    assert report.groups("type") == []
    assert report_json(report)["latency_ms"] is None
    assert report.model_problem() is None
    with pytest.raises(UsageError, match="choose one of layer, type"):
        report.groups("colour")


def test_model_that_moved_or_changed(tmp_path: Path) -> None:
    model = tmp_path / "m.onnx"
    model.write_bytes(b"12345")
    status = model.stat()
    about = {"path": str(model), "bytes": 5, "mtime_ns": status.st_mtime_ns}
    start_report(tmp_path / "n.dldprof", model=about).finish()
    report = Report.open(tmp_path / "n.dldprof")
    assert report.model_problem() is None
    model.write_bytes(b"123456")
    assert report.model_problem() == "the model has changed since"
    model.unlink()
    assert report.model_problem() == "the model no longer exists"


def test_reading_from_several_threads(report: Report) -> None:
    found: list[int] = []

    def read() -> None:
        found.extend(len(report.pass_events(i % 4)) for i in range(25))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [2] * 100


def test_other_files_are_named(tmp_path: Path) -> None:
    model = models.write(tmp_path, models.CHAIN)
    with pytest.raises(InputError, match="is an ONNX model, not a profile report"):
        open_report(model)
    with pytest.raises(InputError, match=r"none\.dldprof"):
        open_report(tmp_path / "none.dldprof")
