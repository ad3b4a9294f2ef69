from __future__ import annotations

import itertools

import pytest

from dld_tui.widgets.timeline.cells import TimeScale, axis, time_text


def test_fit_shows_everything() -> None:
    scale = TimeScale.fit(1000.0, 100)
    assert scale.us_per_cell == 10.0
    assert scale.end_us == 1000.0
    assert scale.zoom == 1.0


def test_zoom_keeps_the_point_under_the_cursor() -> None:
    scale = TimeScale.fit(1000.0, 100).zoomed(4.0, about_us=700.0)
    assert scale.zoom == pytest.approx(4.0)
    assert scale.cell_of(700.0) == pytest.approx(70.0)


def test_zoom_out_stops_at_the_whole() -> None:
    scale = TimeScale.fit(1000.0, 100).zoomed(8.0).zoomed(1 / 1000)
    assert scale.zoom == pytest.approx(1.0)
    assert scale.offset_us == 0.0


def test_zoom_in_has_an_end() -> None:
    scale = TimeScale.fit(1000.0, 100)
    for _ in range(100):
        scale = scale.zoomed(2.0, about_us=999.0)
    assert 0.0009 < scale.us_per_cell < 0.01
    assert scale.end_us <= 1000.0 + 1e-6


@pytest.mark.parametrize("cells", [-500.0, 500.0])
def test_pan_stays_inside(cells: float) -> None:
    scale = TimeScale.fit(1000.0, 100).zoomed(2.0).panned(cells)
    assert 0.0 <= scale.offset_us <= 500.0
    assert scale.zoom == pytest.approx(2.0)


def test_resize_keeps_a_whole_view_whole_and_a_zoomed_one_at_its_scale() -> None:
    assert TimeScale.fit(1000.0, 100).resized(50).zoom == 1.0
    near = TimeScale.fit(1000.0, 100).zoomed(10.0, about_us=0.0)
    assert near.resized(200).us_per_cell == near.us_per_cell


def test_showing_moves_only_when_needed() -> None:
    scale = TimeScale.fit(1000.0, 100).zoomed(10.0, about_us=0.0)
    assert scale.showing(20.0, 30.0) == scale
    moved = scale.showing(500.0, 510.0)
    assert moved.offset_us < 500.0 < 510.0 < moved.end_us
    long = scale.showing(300.0, 900.0)
    assert long.offset_us < 300.0 < long.end_us


def test_framing_puts_a_span_in_the_middle() -> None:
    scale = TimeScale.fit(1000.0, 90).framing(400.0, 430.0)
    assert scale.cell_of(400.0) == pytest.approx(30.0)
    assert scale.cell_of(430.0) == pytest.approx(60.0)


def test_nothing_at_all_has_a_scale_too() -> None:
    for total in (0.0, float("nan"), float("inf"), -4.0):
        assert TimeScale.fit(total, 10).us_per_cell > 0


@pytest.mark.parametrize(
    ("total", "cells", "unit", "second"),
    [
        (2440.0, 120, "ms", "0.2"),
        (90.0, 70, "µs", "10"),
        (5e6, 80, "s", "0.5"),
        (0.5, 60, "ns", "50"),
    ],
)
def test_axis_steps_are_round_and_have_a_unit(
    total: float, cells: int, unit: str, second: str
) -> None:
    found = axis(TimeScale.fit(total, cells))
    assert found.unit == unit
    assert found.ticks[1][1] == second


@pytest.mark.parametrize("cells", [1, 7, 33, 80, 200])
@pytest.mark.parametrize("zoom", [1.0, 3.0, 1000.0])
def test_axis_labels_never_touch(cells: int, zoom: float) -> None:
    scale = TimeScale.fit(12345.6, cells).zoomed(zoom, about_us=4000.0)
    ticks = axis(scale).ticks
    for (cell, label), (following, _) in itertools.pairwise(ticks):
        assert cell + len(label) + 2 <= following
    assert all(cell >= 0 and cell + len(label) <= cells for cell, label in ticks)
    assert len({label for _, label in ticks}) == len(ticks)


@pytest.mark.parametrize(
    ("time_us", "text"),
    [(0.0, "0 µs"), (210.0, "0.210 ms"), (21.0, "21.0 µs"), (0.5, "500 ns"), (2.5e6, "2.50 s")],
)
def test_time_text(time_us: float, text: str) -> None:
    assert time_text(time_us) == text
