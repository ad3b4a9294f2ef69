"""The page of a search of Q/DQ places: the outcome, and what quantizing each region changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dld_tui.activities.machine.doctor import Result
from dld_tui.core.compare.gate import GateRow, Verdict
from dld_tui.core.errors import InputError
from dld_tui.core.machine.health import BROKEN, GOOD, Check, check_lines, check_table
from dld_tui.core.reading.preview import preview
from dld_tui.core.report.sweep import (
    BATCH,
    PROVIDER,
    THREADS,
    Sweep,
    SweepAxis,
    SweepPoint,
    places,
    sweep_text,
)
from dld_tui.core.text import cell_width
from dld_tui.core.tune.placement import Decision, PlacementResult
from dld_tui.core.tune.regions import Scheme
from dld_tui.screens.results.sweep import of_sweep, open_sweep
from dld_tui.screens.results.table import of_doctor, of_placement
from dld_tui.widgets.charts.plots import draw
from tests.support import models
from tests.support.workspace import WIDE, opened

FASTER = GateRow("end to end", 10.0, 8.0, -20.0, -21.0, -19.0, Verdict.FASTER)
SLOWER = GateRow("end to end", 8.0, 9.0, 12.5, 11.0, 14.0, Verdict.SLOWER)
RESULT = PlacementResult(
    "net.onnx", "ONNX Runtime 1.31", (
        Decision("Conv, Relu", 16, ("c0", "r0"), Scheme.ALL, 0.9, FASTER),
        Decision("MatMul, Add", 1, ("m0", "a0"), Scheme.FLOAT, 0.1, SLOWER),
        Decision("MatMul", 1, ("m1",), Scheme.FLOAT, 0.0, None, "output y: off"),
    ),
    ("m0", "a0", "m1"), FASTER, "", FASTER, "SNR 40 dB", "snr=30", "net.placed.onnx", True, 9, 60.0,
)  # fmt: skip


async def test_the_page_says_what_was_decided(tmp_path: Path) -> None:
    async with opened(models.write(tmp_path, models.CHAIN)) as session:
        session.app.add_page(of_placement(RESULT, {}))
        await session.settle()
        assert "1.25× faster (1.23 to 1.27) with 16 of 18 regions quantized" in session.text
        assert "Conv, Relu" in session.text
        assert "quantized" in session.text


@pytest.mark.broad
async def test_what_is_no_faster_is_said_first(tmp_path: Path) -> None:
    async with opened(models.write(tmp_path, models.CHAIN), WIDE) as session:
        lost = replace(RESULT, confirmed=None, output=None, is_whole=False)
        session.app.add_page(of_placement(lost, {}))
        await session.settle()
        assert "No faster: none of 17 regions timed is faster quantized." in session.text
        assert "the same command resumes it" in session.text
        assert "output y: off" in session.text


AXES = SweepAxis(THREADS, (1, 2)), SweepAxis(BATCH, (1, 2, 4, 8))


def result(*axes: SweepAxis) -> Sweep:
    """Passes of a constant cost and a cost an item."""
    points = []
    for at in places(axes):
        sizes = dict(zip((axis.name for axis in axes), at, strict=True))
        batch, threads = sizes.get(BATCH, 1), sizes.get(THREADS, 1)
        assert isinstance(batch, int)
        assert isinstance(threads, int)
        points.append(SweepPoint(at, (10 / threads + max(2, batch),) * 6))
    points[-1] = SweepPoint(points[-1].at, problem="no memory")
    return Sweep("m.onnx", "ONNX Runtime 1", axes, tuple(points))


def written(path: Path, *axes: SweepAxis) -> Path:
    path.write_text(sweep_text(result(*axes)))
    return path


def test_without_sizes_there_is_no_chart() -> None:
    page = of_sweep(result(SweepAxis(PROVIDER, ("CPU", "CUDA"))), {})
    assert page.result.plot is None


def test_a_damaged_file_says_so(tmp_path: Path) -> None:
    path = written(tmp_path / "m.sweep.json", *AXES)
    path.write_text(path.read_text()[:-20])
    with pytest.raises(InputError, match="not a result of dld sweep"):
        open_sweep(path)
    assert "not a result of dld sweep" in preview(str(path), "SWEEP", lambda: False).problem


def test_charts_side_by_side_are_those_that_are_drawn_alone() -> None:
    plot = of_sweep(result(*AXES), {}).result.plot
    assert plot is not None
    assert plot.beside is not None
    both, left = draw(plot, 160, 20), draw(replace(plot, beside=None), 79, 20)
    right = draw(replace(plot.beside, below=(), spots=()), 80, 18)
    texts = ["".join(text for text, _ in line) for line in both.lines]
    for at, line in enumerate(right.lines):
        assert texts[at][80:].rstrip() == "".join(text for text, _ in line).rstrip()
    assert (both.places, both.canvas) == (left.places, left.canvas)
    assert len(both.lines) == len(left.lines) == 19  # one is for the cursor
    assert all(cell_width(text) <= 160 for text in texts)


def test_the_doctor_lists_what_does_not_work_first() -> None:
    checks = [Check("A", "fine", GOOD, "1.0"), Check("B", "broken", BROKEN, "no", "mend it")]
    assert [check.name for check in check_table(checks).rows] == ["broken", "fine"]
    assert check_lines(checks) == ["2 components: 1 good, 1 broken.", "broken: mend it."]
    page = of_doctor(Result(checks), {})
    names = [check.name for check in page.result.rows.rows]
    assert names[0] == "broken"
    assert "TERM" in names, "and what only this process knows"
