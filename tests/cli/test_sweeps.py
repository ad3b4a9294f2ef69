"""Results of sweeps on the command line: printed, written in other formats, compared."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from dld_tui.core.report.sweep import BATCH, Sweep, SweepAxis, SweepPoint, sweep_text
from tests.support.cli import Dld


@pytest.fixture
def sweeps(tmp_path: Path) -> list[Path]:
    """Two, the second of which takes twice as long."""
    paths = [tmp_path / "a.sweep.json", tmp_path / "b.sweep.json"]
    for path, ms in zip(paths, (1.0, 2.0), strict=True):
        points = [
            SweepPoint((batch,), tuple(ms * (batch + 0.01 * turn) for turn in range(6)))
            for batch in (1, 2)
        ]
        axis = SweepAxis(BATCH, (1, 2))
        path.write_text(sweep_text(Sweep("m.onnx", "ORT", (axis,), tuple(points))))
    return paths


def test_points_are_compared(dld: Dld, sweeps: list[Path], tmp_path: Path) -> None:
    table, html = tmp_path / "c.csv", tmp_path / "c.html"
    done = dld("compare", *sweeps, "--csv", table, "--html", html)
    assert done.status == 0
    assert "0 faster and 2 slower" in done.out
    assert table.read_text().splitlines()[0].startswith("key,time_ms_A,time_ms_B,delta_ms_B")
    assert "batch 2" in html.read_text()
    document = dld("compare", *sweeps, "--json").json
    assert [row["ratios"][1] for row in document["rows"]] == pytest.approx([2.0, 2.0])
    assert [row["noises"][1] for row in document["rows"]] == [False, False]
    assert "point by point" in dld.fails(2, "compare", *sweeps, "--by", "type")
    other = tmp_path / "x.txt"
    other.write_text("{}")
    assert "not a result of dld sweep" in dld.fails(3, "compare", sweeps[0], other)


def test_a_sweep_is_printed_and_written(dld: Dld, sweeps: list[Path], tmp_path: Path) -> None:
    files = [tmp_path / f"s.{kind}" for kind in ("csv", "html", "md")]
    options = zip(("--csv", "--html", "--markdown"), files, strict=True)
    done = dld("report", sweeps[0], *(word for pair in options for word in pair))
    assert "Lowest latency 1.025 ms at batch 1" in done.out
    table = files[0].read_text().splitlines()
    assert table[0] == "batch,ms,low_ms,high_ms,per_second"
    assert [float(cell) for cell in table[2].split(",")] == pytest.approx(
        [2, 2.025, 2.0, 2.05, 2000 / 2.025]
    )
    assert "Lowest latency" in files[1].read_text()
    assert "| batch |" in files[2].read_text()
    document = dld("report", sweeps[0], "--json").json
    rows = [*csv.DictReader(table)]
    for point, row in zip(document["points"], rows, strict=True):  # one value in all formats
        known = {"batch": point["at"][0], **{key: point[key] for key in row if key != "batch"}}
        assert {key: float(cell) for key, cell in row.items()} == pytest.approx(known)
    assert document["lines"] == done.out.splitlines()[: len(document["lines"])]
    assert dld(sweeps[0]).out == dld("report", sweeps[0]).out
    assert "--by" in dld.fails(2, "report", sweeps[0], "--by", "op")
