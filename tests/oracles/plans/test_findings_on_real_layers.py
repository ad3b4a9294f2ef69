"""For each rule a real layer on which it is right, and one on which it has to be silent.

What is right was decided by reading the layers, not by running the rules. Rules for which no file
at hand has a right or a silent case are in `UNSEEN`, and have made-up layers in the unit tests.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from dld_tui.core.tensorrt.plan.engine_plan import EnginePlan
from dld_tui.core.tensorrt.plan.lint import PlanFinding, findings
from dld_tui.core.tensorrt.plan.mapping import map_plan
from dld_tui.core.tensorrt.plan.reader import open_plan

DATA = Path(__file__).parent / "data"
ELSEWHERE = {
    "i-vit": "simple_test_layer_info.json",
    "dla": "dla_sample.profile.json",
    "googlenet": "googlenet_gpu_mark_at_67.profile.json",
}
"""Files that are not part of this repository."""
UNSEEN = {
    "slice-converts-type", "gemm-off-tensor-cores", "attention-not-fused", "generated-kernels",
    "shape-and-cast", "mean-above-median", "launch-bound", "h2d-bound", "d2h-bound",
    "unsteady-times",
}  # fmt: skip


@cache
def found_in(path: Path) -> tuple[EnginePlan, tuple[PlanFinding, ...]]:
    plan = open_plan(path)
    return plan, tuple(findings(plan, map_plan(plan)))


def rules_of(request: pytest.FixtureRequest, name: str, layer: str) -> set[str]:
    """Return the rules that speak of a layer, by the start of its name."""
    path = DATA / f"{name}.graph.json"
    if name in ELSEWHERE:
        path = next(request.getfixturevalue("engines").rglob(ELSEWHERE[name]))
    plan, found = found_in(path)
    [index] = [one.index for one in plan.layers if one.name.startswith(layer)]
    return {one.rule for one in found if one.layer == index or index in one.layers}


FC = "fc.weight + QuantizeLinear_255"


@pytest.mark.parametrize(
    ("rule", "name", "layer", "why"),
    [
        ("conv-off-tensor-cores", "qat", "conv1.weight + ", "icudnn_int8x4 is a dp4a kernel"),
        ("quantized-conv-float-output", "qat", "layer1.0.conv2.weight", "i8f16 in the middle"),
        ("quantized-conv-float-output", "qat", "QuantizeLinear_40", "it makes floats int8"),
        ("conv-channels-unaligned", "mobilenet", "features.3.conv.2.weight", "144 to 24 in int8"),
        ("reformat-converts-type", "qat", "Reformatting CopyNode for Output Tensor 0 to MaxPool",
         "fp32 to fp16 between two layers"),
        ("unfused-quantize", "qat", "QuantizeLinear_15", "a Reformat of origin QDQ"),
        ("long-layer", "qat-residual-qgap", "conv1.weight + ", "10.7 % of 23 layers"),
        ("dla-wait", "dla", "(Unnamed Layer* 67) [Convolution]_output from nvm", "93 %"),
        ("layout-conversions", "googlenet", "pool1/norm1 input reformatter 0", "11.7 % together"),
        ("many-short-layers", "mobilenet", "QuantizeLinear_195", "less than 5 µs, of 29 such"),
        ("runs-in-fp32", "cookbook", "node_conv2d_1 + node_relu_1", "all tensors are Float"),
        ("dynamic-shapes", "i-vit", "/fc1/MatMul_myl0_2", "[-1,16] to [-1,32]"),
    ],
)  # fmt: skip
def test_right(request: pytest.FixtureRequest, rule: str, name: str, layer: str, why: str) -> None:
    assert rule in rules_of(request, name, layer), why


@pytest.mark.parametrize(
    ("rule", "name", "layer", "why"),
    [
        ("conv-off-tensor-cores", "qat", "layer1.0.conv1.weight", "tensor16x8x32"),
        ("conv-off-tensor-cores", "mobilenet", "features.1.conv.0.0.weight", "no tactic is named"),
        ("conv-off-tensor-cores", "mobilenet", "classifier.1.weight", "M is 1"),
        ("quantized-conv-float-output", "qat", FC, "the last layer may write floats"),
        ("quantized-conv-float-output", "qat", "layer1.0.conv1.weight", "it writes int8"),
        ("conv-channels-unaligned", "qat-residual-qgap", "conv1.weight + ", "an image has three"),
        ("conv-channels-unaligned", "qat", FC, "1,000 classes"),
        ("conv-channels-unaligned", "mobilenet", "features.1.conv.0.0.weight", "depthwise"),
        ("conv-channels-unaligned", "cookbook", "node_conv2d + node_relu", "fp32"),
        ("reformat-converts-type", "qat", "QuantizeLinear_15", "it quantizes: another finding"),
        ("unfused-quantize", "qat", "Reformatting CopyNode for Output Tensor", "floats"),
        ("unfused-dequantize", "i-vit", "__myl_CastMulSlic_myl0_5", "the output is a float"),
        ("long-layer", "qat-residual-qgap", "layer1.0.conv2.weight", "5.2 % of 23 layers"),
        ("gemm-off-tensor-cores", "cookbook", "node_linear_myl4_0", "a gemv: M is 1"),
        ("layout-conversions", "qat", "QuantizeLinear_15", "it changes the type"),
        ("runs-in-fp32", "qat", "layer1.0.conv1.weight", "int8"),
        ("dynamic-shapes", "cookbook", "node_linear_myl4_0", "[1,3136]"),
        ("attention-not-fused", "cookbook", "__myl_AddMaxrSubExpSum_myl4_2",
         "the softmax of a classifier: no product follows"),
        ("many-short-layers", "qat", "QuantizeLinear_15", "27 µs"),
    ],
)  # fmt: skip
def test_silent(request: pytest.FixtureRequest, rule: str, name: str, layer: str, why: str) -> None:
    assert rule not in rules_of(request, name, layer), why
