"""Bars, columns, histograms, heat, and figures with error bars on an axis."""

from __future__ import annotations

import math
import random

import pytest

from dld_tui.core.tables.table import Estimate
from dld_tui.core.text import cell_width
from dld_tui.widgets.charts import bars
from dld_tui.widgets.charts.bars import Axis


@pytest.mark.parametrize(
    ("fraction", "cells", "expected"),
    [
        (1.0, 4, "████"), (0.5, 4, "██  "), (0.625, 1, "▋"), (9 / 16, 2, "█▏"), (0.0, 3, "   "),
        (None, 3, "   "), (math.nan, 2, "  "), (-1.0, 2, "  "), (7.0, 2, "██"), (0.5, 0, ""),
        (1e-9, 5, "▏    "),
    ],
)  # fmt: skip
def test_bar_is_exact_to_an_eighth(fraction: float | None, cells: int, expected: str) -> None:
    assert bars.bar(fraction, cells) == expected


def test_ascii_bar_uses_ascii_only() -> None:
    text = bars.bar(0.6, 5, bars.ASCII_EIGHTHS)
    assert text == "===  "
    assert text.isascii()


def test_resampling_keeps_spikes_gaps_and_short_series() -> None:
    # Resample keeps spikes.
    values: list[float | None] = [1.0] * 1000
    values[617] = 50.0
    shown = bars.resample(values, 40)
    assert len(shown) == 40
    assert max(value for value in shown if value is not None) == 50.0
    # Resample keeps gaps and short series.
    assert bars.resample([1.0, None, 2.0], 10) == [1.0, None, 2.0]
    assert bars.resample([None, None, 1.0, 2.0], 2) == [None, 2.0]
    assert bars.resample([1.0], 0) == []


def test_columns_stack_rows_from_below() -> None:
    assert bars.columns([0.5, 1.0, None, 0.25], 2, high=1.0) == [" █  ", "██ ▄"]
    # Columns draw the smallest value as something.
    assert bars.columns([1.0, 2.0], 1, low=1.0) == ["▁█"]
    # A constant series is a line in the middle.
    assert bars.columns([3.0, 3.0, 3.0], 1, low=3.0) == ["▄▄▄"]
    # Columns of many values fit and can be ASCII.
    points = bars.resample([float(index % 17) for index in range(500)], 30)
    [line] = bars.columns(points, 1, ramp=bars.ASCII_LEVELS)
    assert cell_width(line) == 30
    assert line.isascii()
    # Columns without values are empty.
    assert bars.columns([], 1) == [""]


def test_histogram_counts_every_value_once() -> None:
    shape = bars.histogram([1.0, 1.5, 2.0, 2.0], 4)
    assert shape is not None
    assert (shape.low, shape.high, shape.above) == (1.0, 2.0, 0)
    assert shape.counts == (1, 0, 1, 2)
    # Histogram cuts a long tail and says how many.
    values = [1.0 + index / 1000 for index in range(199)] + [90.0]
    shape = bars.histogram(values, 10)
    assert shape is not None
    assert shape.high == values[198]
    assert shape.above == 1
    assert min(shape.counts) > 10
    # Histogram keeps two humps.
    shape = bars.histogram([1.0] * 50 + [5.0] * 50, 10)
    assert shape is not None
    assert (shape.counts[0], shape.counts[-1], shape.above) == (50, 50, 0)
    # Histogram of equal or no values.
    same = bars.histogram([2.0, 2.0], 5)
    assert same is not None
    assert same.counts == (2, 0, 0, 0, 0)
    assert bars.histogram([], 5) is None
    assert bars.histogram([math.inf], 5) is None


def test_few_values_are_spread_over_the_room() -> None:
    assert bars.spread([1.0, 2.0], 20) == [1.0] * 5 + [None] + [2.0] * 5 + [None]
    assert bars.spread([1.0, 2.0, 3.0], 7) == [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]
    assert len(bars.spread([1.0] * 50, 20)) == 20
    assert bars.spread([], 9) == []


def text(line: list[tuple[str, str]]) -> str:
    return "".join(part for part, _ in line)


def test_a_line_is_cut_and_padded_in_cells() -> None:
    assert text(bars.fitted([("ab", ""), ("cdef", "dim")], 4)) == "abc…"
    assert text(bars.fitted([("ab", "")], 4)) == "ab  "
    assert bars.width_of(bars.fitted([("畳み込み", "")], 5)) == 5


def test_blocks_beside_each_other_are_padded_below() -> None:
    left = bars.block([[("one", "")], [("two", "")]])
    right = bars.Block(2, [[("x", "")]])
    assert [text(line) for line in bars.beside([left, right], gap=1)] == ["one x ", "two   "]


@pytest.mark.parametrize("seed", range(8))
def test_bars_stand_at_their_places_on_the_axis(seed: int) -> None:
    dice = random.Random(seed)
    reference = dice.choice([0.0, 1.0, 20.0])
    figures = []
    for _ in range(dice.randint(0, 6)):
        value = reference + dice.gauss(0, 1) * dice.choice([0.001, 1, 50])
        half = dice.choice([0, abs(dice.gauss(0, 1)), 1e6])
        figures.append(Estimate(value, value - half, value + half))
    axis = Axis.of([*figures, None], reference)
    assert axis.low < reference < axis.high
    cells = dice.randint(12, 60)
    step = (axis.high - axis.low) / (cells - 1)
    for one in figures:
        bar = axis.bar(one, cells)
        assert len(bar) == cells
        assert abs(axis.low + bar.index("●") * step - one.value) <= 0.51 * step
        for glyph, end in (("├", one.low), ("┤", one.high)):
            if glyph in bar:
                assert abs(axis.low + bar.index(glyph) * step - end) <= 0.51 * step
        if one.low < axis.low:  # it goes on outside
            assert "├" not in bar
    assert axis.bar(None, cells).strip() == "│"
    assert axis.bar(None, cells, plain=True).isascii()


@pytest.mark.parametrize("seed", range(8))
def test_labels_stand_at_their_figures(seed: int) -> None:
    dice = random.Random(seed)
    figure = dice.uniform(0.1, 90)
    axis = Axis.of([Estimate(figure, figure, math.inf)], 1.0)
    cells = dice.randint(20, 80)
    labels = axis.labels(cells, lambda value: f"{value:g}x")
    assert len(labels) == cells
    assert "1x" in labels.split()
    step = (axis.high - axis.low) / (cells - 1)
    for text in labels.split():
        middle = labels.index(text) + len(text) // 2
        inside = labels.index(text) > 0 and labels.index(text) + len(text) < cells
        far = abs(axis.low + middle * step - float(text[:-1]))
        assert far <= (1.01 if inside else len(text)) * step
