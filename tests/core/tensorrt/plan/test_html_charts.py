"""The charts of an engine's page."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

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
from tests.support.recorded import Recorded, settled

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


def engines() -> dict[str, EnginePlan]:
    """Return engines of which every chart has much, little or nothing to draw."""
    known = engine(device=A100)
    first, half, pool = known.layers
    return {
        "known": known, "no device": engine(), "unknown device": engine(device={"Name": "none"}),
        "no times": replace(
            known, total_ms=None,
            layers=tuple(replace(one, time_ms=None, percent=None) for one in known.layers),
        ),
        "no layers": plan([], device=A100), "one": plan([first], device=A100),
        "no work": plan([pool], device=A100),
        "as fast as memory": plan(
            [replace(half, index=at, time_ms=1e-6 * 10**at, name=f"l{at}") for at in range(3)],
            device=A100,
        ),
        "slow": plan(
            [replace(half, index=at, time_ms=10.0 + at, precision="", type="", subtype="")
             for at in range(2)],
            device=A100,
        ),
        "another type": plan([replace(half, precision="fp4")], device=A100),
        "many": plan(
            [layer(at, f"conv{at}", of=("int8", "fp16", "fp32")[at % 3], type=f"T{at % 10}",
                   dims=(1, 8, 4, 4 * at + 4), time_ms=0.1 * at, weights_bytes=1000 * at,
                   attributes=ATTRIBUTES if at % 2 else {}) for at in range(23)],
            device=A100,
        ),
    }  # fmt: skip


def test_whole_charts(recorded: Recorded) -> None:
    tag = re.compile(r"\n?(?=<(?:rect|text|polyline|circle|line|g)[ >])")
    texts = {}
    for name, made in engines().items():
        names = {layer.index: f"node {layer.index}" for layer in made.layers}
        charts = {
            "roofline": roofline_chart(made), "scatter": scatter_chart(made),
            "memory": memory_chart(made, names), "precisions": precision_chart(made),
            "convolutions": convolution_chart(made, names),
        }  # fmt: skip
        if name not in ("known", "many"):  # axes are alike
            charts = {
                kind: "\n".join(re.findall(r"<circle.*?</title>|<polyline[^>]*>|<title>.*?</title>",
                                           drawing)) for kind, drawing in charts.items()
            }  # fmt: skip
        texts[name] = settled("\n".join(
            f"-- {kind}{tag.sub(chr(10), drawing)}" for kind, drawing in charts.items()
        ))  # fmt: skip
    ends = ((2, 30), (1, 1e6), (1, 1), (3e-5, 4e-5), (0.5, 4999), (0.5, 5001), (7, 9))
    texts["axes"] = "\n".join(
        f"{end}: {[round(axis.at(value), 4) for value in (0, end[0], end[1], 1e9)]}"
        f" {[f'{one:g}' for one in axis.ticks()]}"
        for end in ends
        for axis in [_LogAxis(end[0], end[1], 10, 20)]
    )
    recorded("whole_charts", texts)


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
