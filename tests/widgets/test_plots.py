"""Plots, and stages and figures of a job while it runs."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dld_tui.core.text import cell_width
from dld_tui.widgets.charts.plots import (
    Axis,
    Marks,
    Picture,
    Plot,
    Series,
    Spot,
    Stages,
    best_figure,
    draw,
    rate_text,
    scale,
    thinned,
    ticks,
)
from dld_tui.widgets.shell import glyphs


def texts(picture: Picture, at: int | None = None) -> list[str]:
    lines = picture.lines if at is None else picture.with_cursor(at)
    return ["".join(text for text, _ in line) for line in lines]


def diagonal(count: int = 11) -> Plot:
    xs = [float(at) for at in range(count)]
    spots = [Spot(x, x, f"at {x:g}", int(x)) for x in xs]
    return Plot([Marks(xs, xs)], Axis("across"), Axis(), spots)


def test_each_spot_is_on_its_dot() -> None:
    picture = draw(diagonal(), 60, 20)
    drawn = texts(picture)
    for column, row in picture.places:
        assert 0x2800 < ord(drawn[row][column]) < 0x2900
    assert [spot.key for spot in picture.spots] == [*range(11)]


def test_the_cursor_is_a_cross_that_hides_no_dot_but_its_own() -> None:
    picture = draw(diagonal(), 60, 20)
    column, row = picture.places[4]
    drawn = texts(picture, 4)
    assert drawn[row][column] == "◆"
    assert "at 4" in drawn[-1]
    assert "5 of 11" in drawn[-1]
    for number, (x, y) in enumerate(picture.places):
        assert number == 4 or 0x2800 < ord(drawn[y][x]) < 0x2900
    assert picture.nearest(column + 1, row) == 4


@pytest.mark.parametrize("kind", ["dots", "line", "bars", "steps"])
@pytest.mark.parametrize("name", ["unicode", "ascii"])
def test_a_chart_fills_no_more_than_its_room(kind: str, name: str) -> None:
    glyphs.use(name)
    try:
        for width, height in ((24, 7), (38, 12), (196, 44)):
            xs = [float(at) for at in range(400)]
            ys = [math.sin(at / 20) * 1e6 for at in range(400)]
            plot = Plot([Marks(xs, ys, kind)], Axis("x"), spots=[Spot(1.0, 1.0, "one")])  # type: ignore[arg-type]
            shown = texts(draw(plot, width, height), 0)
            assert len(shown) <= height
            assert all(cell_width(line) <= width for line in shown[:-1])
            if name == "ascii":
                assert all(glyphs.shown(line).isascii() for line in shown)
    finally:
        glyphs.use("unicode")


@settings(max_examples=60, deadline=None)
@given(st.floats(-1e12, 1e12), st.floats(1e-9, 1e12), st.integers(2, 12), st.booleans())
def test_ticks_are_few_in_order_and_inside(low: float, span: float, most: int, log: bool) -> None:
    if log:
        low, span = low / 1e11, max(span / 1e11, 1e-6)
    high = low + span
    if high - low < abs(low) * 1e-9 or high <= low:
        return
    found = ticks(low, high, most, log=log)
    slack = (high - low) * 1e-6
    assert 2 <= len(found) <= max(most, 2)
    assert found == sorted(found)
    assert low - slack <= found[0] < found[-1] <= high + slack


def test_thinning_keeps_a_point_for_each_dot() -> None:
    points = [(x / 1000, (x % 7) / 6) for x in range(1001)]
    found = thinned(points, (0.0, 1.0), (0.0, 1.0), (20, 12))
    assert len(found) <= 20 * 12
    assert {round(x * 19) for x, _ in found} == set(range(20))


_MS = st.floats(1e-3, 1e6)


@given(st.lists(_MS, min_size=2, max_size=1200), st.integers(24, 200), st.integers(2, 8))
def test_a_series_fills_no_more_than_its_room(values: list[float], width: int, rows: int) -> None:
    series = Series("latency", "ms")
    for value in values:
        series.add(value)
    lines = series.lines(width, rows)
    assert len(lines) in (0, rows)
    for line in lines:
        assert sum(len(text) for text, _ in line) <= width
    assert len(series.values) < 256
    assert series.count == len(values)
    # Means of equal numbers of values: the whole mean stays.
    used = series.each * len(series.values)
    assert sum(series.values) * series.each == pytest.approx(math.fsum(values[:used]))


@given(_MS, _MS)
def test_a_scale_holds_what_is_drawn(one: float, other: float) -> None:
    low, high = min(one, other), max(one, other)
    bottom, top = scale(low, high)
    assert bottom <= low
    assert top >= high * (1 - 1e-9)
    assert top > bottom


@pytest.mark.parametrize(
    ("low", "high", "ends"),
    [
        (1, 2, (1, 2)), (1, 2.5, (0, 3)), (9.1, 9.4, (7, 10)), (3, 3, (3, 4)), (0, 0, (0, 1)),
        (-2, 5, (-2, 5)), (-2, -2, (-2, -1)),
    ],
)  # fmt: skip
def test_a_scale_begins_at_zero_unless_that_wastes_half(
    low: float, high: float, ends: tuple[float, float]
) -> None:
    assert scale(low, high) == pytest.approx(ends)


def test_what_is_no_number_is_left_out() -> None:
    series = Series("latency", "ms")
    for value in (1.0, math.nan, math.inf, 2.0):
        series.add(value)
    assert series.values == [1.0, 2.0]


def test_the_first_figure_that_changes_is_drawn_and_has_a_rate() -> None:
    load, latency = Series("load", "ms", [3.0]), Series("latency", "ms", [4.0, 5.0])
    assert best_figure([load, latency]) is latency
    assert best_figure([load]) is None
    assert (rate_text(latency), rate_text(load)) == ("200 a second", "")


def test_stages_tell_what_each_took() -> None:
    clock = [0.0]
    stages = Stages(lambda: clock[0])
    for name, at in (
        ("Loading", 0.0),
        ("Warming up", 1.5),
        ("Warming up", 1.7),
        ("Measuring", 2.0),
    ):
        clock[0] = at
        stages.reach(name)
    assert stages.line(80)[0][0] == "✔ Loading 1.5 s  ✔ Warming up 500 ms"
    clock[0] = 5.0
    stages.end()
    assert stages.line(80)[0][0].endswith("✔ Measuring 3.0 s")
    assert stages.line(40)[0][0] == "✔ Warming up 500 ms  ✔ Measuring 3.0 s"
