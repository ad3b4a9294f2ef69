"""What layers take, from their times in all passes."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest

from dld_tui.core.errors import CorruptFileError
from dld_tui.core.report import measurement
from dld_tui.core.report.measurement import Measurement, Samples, busy_us, read_samples
from dld_tui.core.report.pass_statistics import counted_passes
from dld_tui.core.report.records import Layer, PassState
from dld_tui.core.report.report import Report
from tests.support.known import known
from tests.support.report_files import make_nested_report, make_report

NAN = float("nan")


def table(*samples: tuple[object, ...]) -> sqlite3.Connection:
    """Return a database with (pass, layer, self_us) samples."""
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE samples (pass, layer, self_us)")
    database.executemany("INSERT INTO samples VALUES (?, ?, ?)", samples)
    return database


def read(made: sqlite3.Connection, layers: int, passes: list[int]) -> Samples | None:
    return read_samples(made.execute, layers, dict.fromkeys(passes, NAN))


def test_only_measured_passes_count_unless_there_is_nothing_else() -> None:
    assert counted_passes(
        {0: PassState.WARM_UP, 1: PassState.MEASURED, 2: PassState.INCOMPLETE}
    ) == {1}
    assert counted_passes({0: PassState.WARM_UP, 1: PassState.INCOMPLETE}) == {1}
    assert counted_passes({}) == set()


def test_runs_of_a_pass_are_added_and_what_did_not_run_is_not_zero() -> None:
    made = table((0, 0, 100.0), (0, 1, 7.0), (0, 0, 50.0), (1, 1, 9.0), (2, 0, 1.0))
    found = known(read(made, 3, [0, 1]))
    expected = [[0.15, NAN], [0.007, 0.009], [NAN, NAN]]
    np.testing.assert_array_equal(found.times_ms, expected)
    assert found.runs.tolist() == [2, 2, 0]
    stored = found.statistics()[0]
    assert (stored.time_ms, stored.mean_ms, stored.count, stored.passes) == (0.075, 0.15, 1, 1)


def test_own_time_without_the_body(tmp_path: Path) -> None:
    with Report.open(make_nested_report(tmp_path / "r.dldprof")) as report:
        found = known(report.measurement.own)
        assert found.times_ms[:, 0].tolist() == pytest.approx([0.1, 0.1, 0.2, 0.3, 0.1, 0.2, 0.4])


def test_batches_and_passes_out_of_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurement, "_ROWS_AT_ONCE", 2)
    made = table((5, 1, 3.0), (2, 0, 1.0), (5, 1, 4.0), (9, 0, 8.0), (2, 1, 2.0))
    found = known(read(made, 2, [2, 5]))
    np.testing.assert_allclose(found.times_ms, [[0.001, NAN], [0.002, 0.007]])


def test_very_long_runs_are_read_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurement, "_MOST_CELLS", 4)
    made = table(*((number, 0, float(number)) for number in range(10)))
    found = known(read(made, 1, list(range(10))))
    assert found.times_ms.shape[1] <= 4
    assert found.times_ms[0, 0] == 0.0


def test_nothing_to_read() -> None:
    assert read(table(), 2, [0]) is None
    assert read(table((0, 0, 1.0)), 0, [0]) is None
    assert read(table((0, 0, 1.0)), 1, []) is None


@pytest.mark.parametrize("values", ["99, 1.0", "0, 'x'", "-1, 1.0", "0, 9e999", f"{1 << 70}, 1.0"])
def test_hostile_samples_are_refused(tmp_path: Path, values: str) -> None:
    path = make_report(tmp_path / "r.dldprof", layers=3)
    with sqlite3.connect(path) as database:
        database.execute(
            "INSERT INTO samples (pass, seq, layer, self_us, start_us, duration_us, track)"
            f" VALUES (0, 999, {values}, 0, 0, 1)"
        )
    database.close()
    with Report.open(path) as report, pytest.raises(CorruptFileError):
        _ = report.measurement


def measured(times: list[list[float]], between: float = 0.0) -> Measurement:
    """Return the measurement of layers in sequence with a time each in each pass."""
    passes = np.array(times)
    samples = Samples(passes, np.ones(len(times), np.int64), passes.sum(axis=0) + between)
    layers = [
        Layer(f"l{at}", "Conv", index=at, time_ms=row.time_ms)
        for at, row in samples.statistics().items()
    ]
    return Measurement(layers, samples)


def test_what_delays_another_layer_in_each_pass_is_in_no_figure() -> None:
    delayed = [[100.0 if at == number else 1.0 for number in range(8)] for at in range(8)]
    found = measured(delayed, between=2.0)
    assert [layer.time_ms for layer in found.layers] == [1.0] * 8
    assert (found.total_ms, found.between_ms, found.pass_ms) == (8.0, 2.0, 10.0)
    assert (found.covered_percent, found.between_percent) == (80.0, 20.0)


@pytest.mark.parametrize(
    ("intervals", "busy"),
    [
        ([], 0), ([(2, 5)], 3), ([(0, 2), (2, 3)], 3), ([(0, 2), (1, 3), (5, 6)], 4),
        ([(5, 6), (0, 9), (1, 2)], 9), ([(0, 1), (4, 8), (5, 6), (9, 10)], 6),
    ],
)  # fmt: skip
def test_what_at_least_one_interval_covers(
    intervals: list[tuple[float, float]], busy: float
) -> None:
    starts, ends = np.array(intervals, np.float64).reshape(-1, 2).T
    assert busy_us(starts, ends) == busy
