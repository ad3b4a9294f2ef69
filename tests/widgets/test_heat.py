from __future__ import annotations

from dld_tui.widgets.charts.bars import HEATS, heat, hottest


def test_one_dominant_time_is_hot_and_the_rest_is_cold() -> None:
    hot = hottest([100.0, 1.0, 2.0, 1.0, 3.0])
    assert heat(100.0, hot) == len(HEATS) - 1
    assert heat(1.0, hot) == 0


def test_equal_times_are_not_hot() -> None:
    hot = hottest([5.0] * 100)
    assert heat(5.0, hot) == 2


def test_nothing_is_cold() -> None:
    assert hottest([]) == 0.0
    assert heat(None, 3.0) == heat(3.0, 0.0) == 0
