from __future__ import annotations

from dataclasses import replace

import pytest

from dld_tui.core.report.records import Layer
from dld_tui.widgets.charts.bars import Line, width_of
from dld_tui.widgets.charts.report_charts import distribution_lines, memory_lines, precision_rows


def texts(lines: list[Line]) -> list[str]:
    return ["".join(text for text, _ in line) for line in lines]


LAYERS = [
    Layer("a", "Conv", time_ms=3.0, precision="float16", output_dims=((1000,),)),
    Layer("b", "Conv", time_ms=1.0, precision="float32", output_dims=((10,),)),
    Layer("c", "Relu", time_ms=2.0, precision="float16", output_dims=((100_000,),)),
    Layer("d", "Cast", precision="float16"),
]


def test_precision_per_type_has_two_levels() -> None:
    rows = precision_rows(LAYERS, percent=False)
    assert [(row.label, row.value, row.key) for row in rows] == [
        ("Conv", "4.000 ms", "Conv"), ("  fp16", "3.000 ms", "Conv"),
        ("  fp32", "1.000 ms", "Conv"), ("Relu", "2.000 ms", "Relu"),
        ("  fp16", "2.000 ms", "Relu"), ("Cast", "0.000 ms", "Cast"),
        ("  fp16", "0.000 ms", "Cast"),
    ]  # fmt: skip
    assert [row.value for row in precision_rows(LAYERS, percent=True)][:3] == [
        "66.7 %", "50.0 %", "16.7 %",
    ]  # fmt: skip
    assert [row.share for row in rows][:4] == [1.0, 0.75, 0.25, 0.5]
    assert rows[1].style == "prec-fp16"


def test_precision_is_of_the_time_on_the_gpu_where_it_is_known() -> None:
    on_gpu = [replace(layer, gpu_time_ms=10.0, provider="CUDA") for layer in LAYERS[:1]]
    assert precision_rows([*on_gpu, *LAYERS[1:]], percent=False)[0].value == "10.000 ms"


@pytest.mark.parametrize("width", [40, 80, 190])
def test_distribution_has_scale_and_percentiles(width: int) -> None:
    values = [1.0 + n / 100 for n in range(100)]
    lines = distribution_lines(values, width, 14)
    text = texts(lines)
    assert all(width_of(line) <= width for line in lines[:-1])
    assert "median 1.50" in text[-1]
    assert "p99 1.98" in text[-1]
    assert text[-2].split() == ["1.00", "1.99"]
    assert 2 <= text[-3].count("▲") <= 3


def test_a_distribution_of_equal_or_no_values_says_so() -> None:
    for values in ([], [1.0], [2.0] * 50):
        assert "Too few" in texts(distribution_lines(values, 80, 20))[0]


@pytest.mark.parametrize("width", [40, 190])
def test_time_against_memory_has_a_dot_a_layer(width: int) -> None:
    lines = memory_lines(LAYERS, width, 14)
    text = texts(lines)
    assert all(width_of(line) <= width for line in lines[:-1])
    dots = sum(0x2800 < ord(char) < 0x2900 for line in text for char in line)
    assert dots == 3
    assert text[0].lstrip().startswith("3.00 ms")
    assert text[-2].split() == ["40", "B", "200", "kB"]
    assert "3 layers by size" in text[-1]
    assert "of 1 the size or time is not known" in text[-1]


def test_without_sizes_there_is_no_scatter() -> None:
    assert "too few" in texts(memory_lines(LAYERS[:1], 80, 14))[0]
    assert "too few" in texts(memory_lines([], 80, 14))[0]
