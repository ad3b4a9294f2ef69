from __future__ import annotations

from dataclasses import replace

import pytest

from dld_tui.core.report.records import Group
from dld_tui.widgets.charts.bars import width_of
from dld_tui.widgets.charts.report_charts import BarRows, chart_rows
from dld_tui.widgets.results.report_views import layer_lines, passes_lines
from tests.support.report_files import HOSTILE, layer

GROUPS = (
    Group("Conv", 12, 3.0, 75.0, cost_ms=3.0),
    Group(HOSTILE, 1, 1.0, 25.0, cost_ms=1.0),
    Group("Cast", 2, 0.0, 0.0),
)


@pytest.mark.parametrize("width", [20, 40, 78, 198])
@pytest.mark.parametrize("percent", [False, True])
def test_bars_take_the_width_and_keep_their_proportion(width: int, percent: bool) -> None:
    rows = BarRows(chart_rows(GROUPS, percent))
    lines = [rows.line(index, width) for index in range(len(rows))]
    bars = [next(text for text, style in line if style.startswith("heat")) for line in lines]
    if width > 30:
        assert all(width_of(line) <= width for line in lines)
        assert bars[0].strip() == "█" * len(bars[0])
        assert abs(len(bars[1].strip()) - len(bars[0]) / 3) <= 1
    assert not bars[2].strip()


def test_values_of_the_bars() -> None:
    assert [row.value for row in chart_rows(GROUPS, False)][:2] == ["3.000 ms", "1.000 ms"]
    assert [row.value for row in chart_rows(GROUPS, True)][:2] == ["75.0 %", "25.0 %"]
    assert "\x1b" not in chart_rows(GROUPS, False)[1].label
    assert chart_rows((), False) == []


def test_latency_over_passes_has_its_scale_beside_it() -> None:
    lines = passes_lines([1.0, 2.0, 4.0] * 50, 60, 3)
    texts = ["".join(text for text, _ in line) for line in lines]
    assert texts[0].endswith("4.00")
    assert texts[-1].endswith("1.00")
    assert {width_of(line) for line in lines} <= set(range(50, 61))
    assert passes_lines([], 60, 3) == []
    assert passes_lines([1.0], 10, 3) == []


@pytest.mark.parametrize("width", [40, 80, 200])
def test_details_of_a_layer_fit(width: int) -> None:
    one = replace(layer(0, "/x" * 500), time_ms=1.5, percent=20.0, min_ms=1.0, max_ms=2.0)
    lines = layer_lines(one, 120.0, 1500.0, width)
    assert width_of(lines[0]) <= width
    text = "".join(part for line in lines for part, _ in line)
    assert "1.500 ms" in text
    assert "0.120 ms" in text
    assert "1.50 ms" in text
    assert "1x8x16x16" in text
