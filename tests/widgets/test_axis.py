"""Figures with error bars on one axis."""

from __future__ import annotations

import math
import random

import pytest

from dld_tui.core.tables.table import Estimate
from dld_tui.widgets.charts.bars import Axis


@pytest.mark.parametrize("seed", range(20))
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


@pytest.mark.parametrize("seed", range(20))
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
