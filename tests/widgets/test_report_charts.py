from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dld_tui.core.machine.peaks import Peaks
from dld_tui.core.report.generation import GenerationFigures
from dld_tui.core.report.groups import HOST, priced
from dld_tui.core.report.records import Bound, Cost, Layer
from dld_tui.widgets.charts import report_charts
from dld_tui.widgets.charts.bars import Line
from dld_tui.widgets.charts.plots import Plot, draw
from dld_tui.widgets.charts.report_charts import Chart, ChartData
from tests.support.graph_panes import painted
from tests.support.recorded import Recorded


def texts(lines: list[Line]) -> list[str]:
    return ["".join(text for text, _ in line) for line in lines]


LAYERS = [
    Layer("a", "Conv", time_ms=3.0, precision="float16", output_dims=((1000,),)),
    Layer("b", "Conv", time_ms=1.0, precision="float32", output_dims=((10,),)),
    Layer("c", "Relu", time_ms=2.0, precision="float16", output_dims=((100_000,),)),
    Layer("d", "Cast", precision="float16"),
]


def test_precision_per_type_has_two_levels() -> None:
    rows = report_charts.precision_rows(LAYERS, percent=False)
    assert [(row.label, row.value, row.key) for row in rows] == [
        ("Conv", "4.000 ms", "Conv"), ("  fp16", "3.000 ms", "Conv"),
        ("  fp32", "1.000 ms", "Conv"), ("Relu", "2.000 ms", "Relu"),
        ("  fp16", "2.000 ms", "Relu"), ("Cast", "–", "Cast"),
        ("  fp16", "–", "Cast"),
    ]  # fmt: skip
    assert [row.value for row in report_charts.precision_rows(LAYERS, percent=True)][:3] == [
        "66.7 %", "50.0 %", "16.7 %",
    ]  # fmt: skip
    assert [row.share for row in rows][:4] == [1.0, 0.75, 0.25, 0.5]
    assert rows[1].style == "prec-fp16"


def test_precision_is_of_the_time_on_the_gpu_where_it_is_known() -> None:
    on_gpu = [replace(layer, gpu_time_ms=10.0, provider="CUDA") for layer in LAYERS[:1]]
    layers = priced([*on_gpu, *LAYERS[1:]])
    assert report_charts.precision_rows(layers, percent=False)[0].value == "10.000 ms"


def test_a_distribution_of_equal_or_no_values_says_so() -> None:
    for values in ([], [1.0], [2.0] * 50):
        assert "Too few" in str(report_charts.distribution_plot(values, 80))


def test_runs_over_each_other_are_shares_of_their_own_run() -> None:
    """The second run has ten times the values, in the upper half only."""
    runs = [("a", [1.0, 2.0, 3.0, 4.0]), ("b", [3.5, 3.9] * 20)]
    plot = report_charts.distributions_plot(runs, 80)
    assert isinstance(plot, Plot)
    assert [sum(marks.ys[:-1]) for marks in plot.marks] == pytest.approx([100.0, 100.0])
    assert all(x >= 3.0 for x, y in zip(plot.marks[1].xs, plot.marks[1].ys, strict=True) if y)
    assert [at for at, _ in plot.rules] == [2.5, 3.7]
    assert "Too few" in str(report_charts.distributions_plot(runs[:1], 80))


def test_time_against_memory_has_a_spot_a_layer_the_costliest_first() -> None:
    plot = report_charts.memory_plot(LAYERS)
    assert isinstance(plot, Plot)
    assert [(spot.x, spot.y) for spot in plot.spots] == [
        (2000.0, 3.0), (200_000.0, 2.0), (40.0, 1.0),
    ]  # fmt: skip
    assert "of 1 the size or time is not known" in texts([plot.below[0]])[0]
    assert "Too few" in str(report_charts.memory_plot(LAYERS[:1]))


def test_the_roof_of_a_report_is_where_its_layers_would_be_at_best() -> None:
    def of(name: str, flops: int, moved: int, bound: Bound, roof_ms: float, ms: float) -> Layer:
        cost = Cost(flops, moved, bound=bound, roof_ms=roof_ms, peak="fp16")
        return Layer(name, "Conv", provider=HOST, time_ms=ms, cost=cost)

    # 1 TFLOP/s and 10 GB/s: 100 operations a byte are where both meet.
    layers = [
        of("heavy", 10**10, 10**7, "compute", 10.0, 20.0),
        of("light", 10**6, 10**7, "memory", 1.0, 4.0),
    ]
    roofs = {HOST: Peaks("", {"fp16": 1e12, "int8": 2e12}, 1e10)}
    plot = report_charts.report_roofline(layers, roofs)
    assert isinstance(plot, Plot)
    roof = plot.marks[0]
    assert (roof.xs[1], roof.ys[1]) == pytest.approx((100.0, 1e12))
    assert roof.ys[0] / roof.xs[0] == pytest.approx(1e10)
    assert {(spot.x, spot.y) for spot in plot.spots} == {(1000.0, 5e11), (0.1, 2.5e8)}
    assert "fp16 1 TFLOP/s   memory 10 GB/s   2 layers" in texts([plot.below[0]])[0]
    # A limit of memory alone is drawn, too: the peak of the type is known.
    assert isinstance(report_charts.report_roofline([layers[1], layers[1]], roofs), Plot)
    assert "Too few" in str(report_charts.report_roofline(LAYERS, roofs))
    assert "does not say what its device can do" in str(report_charts.report_roofline(layers, {}))


def test_a_run_says_when_it_was() -> None:
    plot = report_charts.passes_plot([500.0, 1500.0, 250.0], (0, 1, 4))
    assert isinstance(plot, Plot)
    assert [spot.key for spot in plot.spots] == [
        report_charts.Run(0),
        report_charts.Run(1),
        report_charts.Run(4),
    ]
    assert plot.spots[2].text == "run 3   250.000 ms   after 2.00 s"
    axis = "".join(text for text, _ in draw(plot, 100, 20).lines[-2])
    assert axis.split() == ["1", "2", "3"]


def test_every_chart_as_it_is_drawn(recorded: Recorded) -> None:
    """Of few values and of many, with what is left out of each."""

    def layer(at: int, kind: str, ms: float | None, size: int, **more: Any) -> Layer:
        cost = Cost(10**at, 10 ** (9 - at), bound="compute", roof_ms=0.4, peak="fp16")
        known = Layer(
            f"layer {at}",
            kind,
            provider=HOST,
            time_ms=ms,
            output_dims=((size,),),
            index=at,
            precision="float16",
        )
        return replace(known, **{"cost": cost} | more)

    layers = [
        layer(9, "Conv", 8.0, 10**6), layer(6, "Conv", 1.0, 1000), layer(7, "Relu", 2.0, 10),
        layer(5, "Relu", 0.1, 500), layer(4, "Cast", None, 7), layer(3, "Cast", 3.0, 70, cost=None),
        layer(8, "MatMul", 5.0, 64, provider="CUDA", gpu_time_ms=5.0), layer(2, "Gemm", 4.0, 0),
        layer(7, "Gemm", 4.0, 90, cost=Cost(10**7, 0, roof_ms=0.4)),
    ]  # fmt: skip
    steps = [(1, 8, (1.0, 2.0, 3.0)), (1, 9, (4.0, 5.0)), (2, 8, (9.0,) * 5)]
    generation = [
        GenerationFigures(batch, prompt, len(ms), 10.0, 12.0, sum(ms), ms, 64)
        for batch, prompt, ms in steps
    ]
    roofs = {HOST: Peaks("", {"fp16": 1e12, "int8": 2e12}, 1e10), "CUDA": Peaks("", {}, 1e11)}
    many = [2.0 + 0.1 * (at * at % 37) for at in range(200)] + [60.0, 70.0]
    charts = [*report_charts.line_charts().values(), report_charts.CONTEXT_CHART]
    texts = {}
    for title, data in {
        "few": ChartData(layers, [1.0, 2.0, 2.5, 4.0], 60, 12, (0, 1, 4, 7), generation[:1],
                         roofs=roofs),
        "many": ChartData(layers[:3], many, 90, 14, (), generation, roofs=roofs),
        "nothing": ChartData(layers[:1], [1.0], 60, 12),
    }.items():  # fmt: skip
        for chart in charts:
            picture = report_charts.drawn(chart, data)
            spots = [f"{spot.text} {spot.key}" for spot in picture.spots[:9]]
            texts[f"{chart.title}, {title}"] = "\n".join([painted(picture.lines), *spots])
    runs = [("a", [1.0, 2.0, 3.0, 4.0]), ("none", []), ("b", [3.5, 3.9] * 20), ("c\x1b", many)]
    texts["runs"] = painted(report_charts.runs_picture(runs, 70, 14).lines)
    texts["one run"] = painted(report_charts.runs_picture(runs[:2], 70, 14).lines)
    for name, chart in (
        ("lines", Chart("a", "A", lines=lambda data: [[(f"{data.width}", "dim")]])),
        ("nothing", Chart("a", "A")),
        ("a problem", Chart("a", "A", plot=lambda data: Plot([], below=[[(str(1 // 0), "")]]))),
    ):
        picture = report_charts.drawn(chart, ChartData([], [], 30, 8))
        texts[f"a chart of {name}"] = painted(picture.lines)
    recorded("charts_of_reports", texts)
