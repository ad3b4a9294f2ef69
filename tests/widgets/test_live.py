"""Stages and figures of a job while it runs, without an app."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dld_tui.widgets.charts.plots import Series, Stages, best_figure, rate_text, scale

_MS = st.floats(1e-3, 1e6)


@given(st.lists(_MS, min_size=2, max_size=1200), st.integers(24, 200), st.integers(2, 8))
def test_a_chart_fills_no_more_than_its_room(values: list[float], width: int, rows: int) -> None:
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


def test_a_rise_is_seen_and_a_chart_stays_in_place() -> None:
    series = Series("latency", "ms")
    for value in (4.0, 4.0, 8.0):
        series.add(value)
    lines = series.lines(40, 4)
    top, bottom = lines[0][1][0], lines[-1][1][0]
    assert (top.rstrip()[:2].strip(), len(top.rstrip())) == ("", 3)
    assert bottom.strip()
    before = [line[1][0].rstrip() for line in lines]
    series.add(8.0)
    after = [line[1][0] for line in series.lines(40, 4)]
    assert all(new.startswith(old.ljust(3)) for old, new in zip(before, after, strict=True))


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
