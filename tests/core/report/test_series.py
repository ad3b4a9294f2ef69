"""The times of all layers in all passes at once."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest

from dld_tui.core.errors import CorruptFileError
from dld_tui.core.report import pass_times
from dld_tui.core.report.pass_times import read_series
from dld_tui.core.report.report import Report
from tests.support.report_files import make_nested_report, make_report

NAN = float("nan")


def table(*samples: tuple[object, ...]) -> sqlite3.Connection:
    """Return a database with (pass, layer, self_us) samples."""
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE samples (pass, layer, self_us)")
    database.executemany("INSERT INTO samples VALUES (?, ?, ?)", samples)
    return database


def test_runs_of_a_pass_are_added_and_what_did_not_run_is_not_zero() -> None:
    made = table((0, 0, 100.0), (0, 1, 7.0), (0, 0, 50.0), (1, 1, 9.0), (2, 0, 1.0))
    found = read_series(made.execute, 3, [0, 1])
    assert found is not None
    np.testing.assert_array_equal(found, [[0.15, NAN], [0.007, 0.009], [NAN, NAN]])


def test_it_agrees_with_the_histories(tmp_path: Path) -> None:
    with Report.open(make_report(tmp_path / "r.dldprof", layers=7, passes=5)) as report:
        found = report.pass_times()
        assert found is not None
        for layer in range(7):
            history = [own for _, own in report.layer_history(layer)]
            assert found[layer].tolist() == pytest.approx(history)
        assert report.pass_times(gpu=True) is None


def test_own_time_without_the_body(tmp_path: Path) -> None:
    with Report.open(make_nested_report(tmp_path / "r.dldprof")) as report:
        found = report.pass_times()
        assert found is not None
        assert found[:, 0].tolist() == pytest.approx([0.1, 0.1, 0.2, 0.3, 0.1, 0.2, 0.4])


def test_batches_and_passes_out_of_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pass_times, "_ROWS_AT_ONCE", 2)
    made = table((5, 1, 3.0), (2, 0, 1.0), (5, 1, 4.0), (9, 0, 8.0), (2, 1, 2.0))
    found = read_series(made.execute, 2, [2, 5])
    assert found is not None
    np.testing.assert_allclose(found, [[0.001, NAN], [0.002, 0.007]])


def test_very_long_runs_are_read_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pass_times, "_MOST_CELLS", 4)
    made = table(*((number, 0, float(number)) for number in range(10)))
    found = read_series(made.execute, 1, list(range(10)))
    assert found is not None
    assert found.shape[1] <= 4
    assert found[0, 0] == 0.0


def test_nothing_to_read() -> None:
    assert read_series(table().execute, 2, [0]) is None
    assert read_series(table((0, 0, 1.0)).execute, 0, [0]) is None
    assert read_series(table((0, 0, 1.0)).execute, 1, []) is None


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
        report.pass_times()
