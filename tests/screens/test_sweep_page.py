"""The page of a sweep: from its file, with a chart whose knees are marked, at every size."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dld_tui.app import DldApp
from dld_tui.core.errors import InputError
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
from dld_tui.screens.results.sweep import of_sweep, open_sweep
from dld_tui.screens.results.table import TableResult
from dld_tui.widgets.charts.plots import draw
from dld_tui.widgets.dialogs.search import PickDialog
from dld_tui.widgets.lists.table_view import TableView
from tests.support.tui import screen_text, until

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


@pytest.mark.parametrize("size", [(80, 24), (120, 35), (200, 50)])
async def test_a_file_opens_with_its_points_and_a_chart(
    size: tuple[int, int], tmp_path: Path
) -> None:
    app = DldApp([written(tmp_path / "m.sweep.json", *AXES)])
    async with app.run_test(size=size) as pilot:
        await until(
            pilot, lambda: isinstance(app.screen, TableResult) and app.screen.query("#plot")
        )
        page = app.screen
        assert isinstance(page, TableResult)
        await until(pilot, lambda: "■ threads 1" in screen_text(app))
        assert page.query_one(TableView).table.name == "sweep"
        assert page.result.plot is not None
        assert [len(marks.xs) for marks in page.result.plot.marks] == [4, 3]
        assert page.result.plot.rules == [(4, "warn"), (8, "warn")]
        assert "knees at 4, 8" in screen_text(app)
        assert "items/s over batch" in screen_text(app)
        assert ("ms over batch" in screen_text(app)) is (size[0] > 80)
        assert (page.query_one("#plot").outer_size.height == 8) is (size[1] < 36)
        assert page.result.plot.beside is not None
        assert [marks.ys for marks in page.result.plot.beside.marks] == [
            [point.ms for point in points] for points in result(*AXES).alike(BATCH).values()
        ]
        await pilot.press("end")
        await until(pilot, lambda: "no memory" in screen_text(app))


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


@pytest.mark.broad
async def test_c_compares_with_another_sweep(tmp_path: Path) -> None:
    first = written(tmp_path / "a.sweep.json", *AXES)
    written(tmp_path / "b.sweep.json", AXES[0], SweepAxis(BATCH, (1, 2, 16)))
    app = DldApp([first])
    async with app.run_test(size=(120, 35)) as pilot:
        await until(
            pilot, lambda: isinstance(app.screen, TableResult) and app.screen.query("#plot")
        )
        await pilot.press("c")
        await until(pilot, lambda: isinstance(app.screen, PickDialog))
        assert "b.sweep.json" in screen_text(app)
        await pilot.press("enter")
        await until(pilot, lambda: "B against A" in screen_text(app))
        assert "4 times in both, 0 faster and 0 slower" in screen_text(app)
        assert "only B" in screen_text(app)
        assert isinstance(app.screen, TableResult)
        assert "result_file" not in app.screen.conditions()
