"""The charts of an engine's page."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest

from dld_tui.core.tensorrt.plan.engine_plan import EnginePlan
from dld_tui.core.tensorrt.plan.graph import plan_content
from dld_tui.core.tensorrt.plan.html import (
    _LogAxis,
    convolution_chart,
    memory_chart,
    precision_chart,
    roofline_chart,
    scatter_chart,
)
from dld_tui.core.tensorrt.plan.json_text import layout_of
from tests.support.plans import layer, plan

HOSTILE = "<b>&\x1b"
ATTRIBUTES = {"Kernel": [3, 3], "OutMaps": 64, "Groups": 1}
A100 = {"Name": "NVIDIA A100"}


def engine(**fields: Any) -> EnginePlan:
    return plan(
        [
            layer(0, HOSTILE, of="int8", dims=(8, 64, 32, 32), time_ms=0.5, percent=50.0,
                  attributes=ATTRIBUTES, weights_bytes=36864),
            layer(1, "half", of="fp16", dims=(8, 64, 8, 8), time_ms=0.25, percent=25.0,
                  attributes=ATTRIBUTES, weights_bytes=73728),
            layer(2, "pool", type="Pooling", of="fp16", time_ms=0.25, percent=25.0),
        ],
        **fields,
    )  # fmt: skip


def circles(drawing: str) -> list[str]:
    found = ElementTree.fromstring(drawing).iter("circle")
    return [title.text or "" for one in found for title in one.iter("title")]


def test_the_roofline_has_a_roof_for_each_type_and_a_point_a_layer() -> None:
    drawing = roofline_chart(engine(device=A100))
    assert len(circles(drawing)) == 2, "a pooling has no multiply-accumulates"
    assert drawing.count("<polyline") == 2
    assert "int8 624" in drawing
    assert "operations a byte" in drawing
    assert "% of its limit" in circles(drawing)[0]
    assert "\x1b" not in drawing
    assert "<b>" not in drawing
    assert roofline_chart(engine()) == "", "the device is not known"


def test_time_against_bytes_with_what_memory_allows() -> None:
    assert len(circles(scatter_chart(engine(device=A100)))) == 3
    assert "1,555 GB/s" in scatter_chart(engine(device=A100))
    assert "<polyline" not in scatter_chart(engine())
    assert scatter_chart(plan([layer(0)])) == ""


def test_memory_precisions_and_convolutions() -> None:
    made = engine(device=A100)
    names = {layer.index: f"node {layer.index}" for layer in made.layers}
    memory = memory_chart(made, names)
    assert all(word in memory for word in ("weights", "inputs", "outputs", "36.9 kB", "node 0"))
    assert "0.250 ms" in precision_chart(made)
    assert "1 layer" in precision_chart(replace(made, total_ms=None))
    assert len(re.findall(r"\d ms, (?:\d+|below 1) %", convolution_chart(made, names))) >= 2
    assert convolution_chart(plan([layer(0)]), names) == ""


@pytest.mark.parametrize(
    ("phrase", "layout"),
    [
        ("Thirty-two wide channel vectorized row major Int8 format", "CHW32"),
        ("Two wide channel vectorized row major FP16 format", "CHW2"),
        ("Channel major FP16 format where channel % 8 == 0", "HWC8"),
        ("Channel major FP32 format", "HWC"),
        ("Row major linear FP32", "LINEAR"),
        ("Row major Int8 format for DLA planar", "DLA_LINEAR"),
        ("Half", ""),
        ("", ""),
    ],
)
def test_memory_formats_by_their_names(phrase: str, layout: str) -> None:
    assert layout_of(phrase) == layout


def test_a_picture_has_memory_formats_on_its_edges_and_more_in_its_tooltips() -> None:
    phrase = "Channel major FP16 format where channel % 8 == 0"
    first = layer(0, "conv", of="fp16", tactic="sm80_hmma", weights_bytes=100)
    made = replace(first.outputs[0], name="made", format=phrase)
    first = replace(first, outputs=(made,))
    second = replace(layer(1, "next", type="Pooling", of="fp16"), inputs=(made,))
    content = plan_content(plan([first, second]), "precision")
    labels = [content.type_of(net) for net in range(len(content.graph.nets))]
    assert "fp16[1,16,8,8] HWC8" in labels
    tips = [content.tooltip(vertex) for vertex in content.tips]
    assert any("tactic sm80_hmma" in tip and "weights 100 B" in tip for tip in tips)


def test_an_axis_has_the_powers_of_ten_and_in_a_short_range_more() -> None:
    assert _LogAxis(2, 30, 0, 1).ticks() == [2, 5, 10, 20]
    assert _LogAxis(1, 1e6, 0, 1).ticks() == [1, 10, 100, 1e3, 1e4, 1e5, 1e6]
