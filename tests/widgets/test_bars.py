from __future__ import annotations

import math

import pytest

from dld_tui.core.text import cell_width
from dld_tui.widgets.charts.bars import (
    ASCII_EIGHTHS,
    ASCII_LEVELS,
    HEATS,
    Block,
    bar,
    beside,
    block,
    columns,
    fitted,
    flow,
    heat,
    histogram,
    hottest,
    resample,
    spread,
    width_of,
)


@pytest.mark.parametrize(
    ("fraction", "cells", "expected"),
    [
        (1.0, 4, "████"),
        (0.5, 4, "██  "),
        (0.625, 1, "▋"),
        (9 / 16, 2, "█▏"),
        (0.0, 3, "   "),
        (None, 3, "   "),
        (math.nan, 2, "  "),
        (-1.0, 2, "  "),
        (7.0, 2, "██"),
        (0.5, 0, ""),
    ],
)
def test_bar_is_exact_to_an_eighth(fraction: float | None, cells: int, expected: str) -> None:
    assert bar(fraction, cells) == expected


def test_a_bar_of_almost_nothing_is_still_seen() -> None:
    assert bar(1e-9, 5) == "▏    "


def test_ascii_bar_uses_ascii_only() -> None:
    text = bar(0.6, 5, ASCII_EIGHTHS)
    assert text == "===  "
    assert text.isascii()


def test_resample_keeps_spikes() -> None:
    values: list[float | None] = [1.0] * 1000
    values[617] = 50.0
    shown = resample(values, 40)
    assert len(shown) == 40
    assert max(value for value in shown if value is not None) == 50.0


def test_resample_keeps_gaps_and_short_series() -> None:
    assert resample([1.0, None, 2.0], 10) == [1.0, None, 2.0]
    assert resample([None, None, 1.0, 2.0], 2) == [None, 2.0]
    assert resample([1.0], 0) == []


def test_columns_stack_rows_from_below() -> None:
    assert columns([0.5, 1.0, None, 0.25], 2, high=1.0) == [" █  ", "██ ▄"]


def test_columns_draw_the_smallest_value_as_something() -> None:
    assert columns([1.0, 2.0], 1, low=1.0) == ["▁█"]


def test_a_constant_series_is_a_line_in_the_middle() -> None:
    assert columns([3.0, 3.0, 3.0], 1, low=3.0) == ["▄▄▄"]


def test_columns_of_many_values_fit_and_can_be_ascii() -> None:
    points = resample([float(index % 17) for index in range(500)], 30)
    [line] = columns(points, 1, ramp=ASCII_LEVELS)
    assert cell_width(line) == 30
    assert line.isascii()


def test_columns_without_values_are_empty() -> None:
    assert columns([], 1) == [""]


def test_histogram_counts_every_value_once() -> None:
    shape = histogram([1.0, 1.5, 2.0, 2.0], 4)
    assert shape is not None
    assert (shape.low, shape.high, shape.above) == (1.0, 2.0, 0)
    assert shape.counts == (1, 0, 1, 2)


def test_histogram_cuts_a_long_tail_and_says_how_many() -> None:
    values = [1.0 + index / 1000 for index in range(199)] + [90.0]
    shape = histogram(values, 10)
    assert shape is not None
    assert shape.high == values[198]
    assert shape.above == 1
    assert min(shape.counts) > 10


def test_histogram_keeps_two_humps() -> None:
    shape = histogram([1.0] * 50 + [5.0] * 50, 10)
    assert shape is not None
    assert (shape.counts[0], shape.counts[-1], shape.above) == (50, 50, 0)


def test_histogram_of_one_slow_pass_among_equal_ones() -> None:
    shape = histogram([1.0] * 20 + [9.0], 4)
    assert shape is not None
    assert sum(shape.counts) + shape.above == 21


def test_few_values_are_spread_over_the_room() -> None:
    assert spread([1.0, 2.0], 20) == [1.0] * 5 + [None] + [2.0] * 5 + [None]
    assert spread([1.0, 2.0, 3.0], 7) == [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]
    assert len(spread([1.0] * 50, 20)) == 20
    assert spread([], 9) == []


def test_histogram_of_equal_or_no_values() -> None:
    same = histogram([2.0, 2.0], 5)
    assert same is not None
    assert same.counts == (2, 0, 0, 0, 0)
    assert histogram([], 5) is None
    assert histogram([math.inf], 5) is None


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


def text(line: list[tuple[str, str]]) -> str:
    return "".join(part for part, _ in line)


def test_a_line_is_cut_and_padded_in_cells() -> None:
    assert text(fitted([("ab", ""), ("cdef", "dim")], 4)) == "abc…"
    assert text(fitted([("ab", "")], 4)) == "ab  "
    assert width_of(fitted([("畳み込み", "")], 5)) == 5


def test_blocks_beside_each_other_are_padded_below() -> None:
    left = block([[("one", "")], [("two", "")]])
    right = Block(2, [[("x", "")]])
    assert [text(line) for line in beside([left, right], gap=1)] == ["one x ", "two   "]


def test_blocks_flow_into_rows_when_there_is_no_room() -> None:
    blocks = [Block(4, [[("aaaa", "")]]), Block(4, [[("bbbb", "")]]), Block(4, [[("cccc", "")]])]
    assert [text(line) for line in flow(blocks, 9, gap=1)] == ["aaaa bbbb", "", "cccc"]
    assert [text(line) for line in flow(blocks, 3, gap=1)] == ["aaaa", "", "bbbb", "", "cccc"]
    assert flow([], 10) == []
