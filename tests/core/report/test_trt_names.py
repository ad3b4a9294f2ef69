from __future__ import annotations

import time

import pytest

from dld_tui.core.report.trt_names import layer_type


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Conv_0 + Relu_1", "Conv + Relu"),
        ("features.0.0.weight + QuantizeLinear_8 + Conv_12 + PWN(Clip_15)",
         "QuantizeLinear + Conv + Clip"),
        ("/layer1/layer1.0/conv1/Conv || /layer1/layer1.0/conv2/Conv", "Conv"),
        ("PWN(PWN(/model.0/act/Sigmoid), PWN(/model.0/act/Mul))", "Sigmoid + Mul"),
        ("Reformatting CopyNode for Input Tensor 0 to Conv_0 + Relu_1", "Reformat"),
        ("conv1/7x7_s2 + conv1/relu_7x7 input reformatter 0", "Reformat"),
        ("{ForeignNode[/head/Constant_2_output_0.../Unsqueeze_2]}", "ForeignNode"),
        ("[trainStation1]", "TrainStation"),
        ("__myl_MulSum_myl3_5", "Myelin"),
        ("resnet50/conv1_conv/Conv2D__6", "(unknown)"),
        ("", "(unknown)"),
        ("Add_1 + Mul_2 + Sub_3 + Div_4 + Exp_5", "Add + Mul + Sub + Div + …"),
    ],
)  # fmt: skip
def test_types_are_told_from_names(name: str, kind: str) -> None:
    assert layer_type(name) == kind


def test_hostile_names_take_no_time() -> None:
    start = time.process_time()
    for name in ("_1" * 100_000, "(" * 100_000, "_" * 100_000, "/a_1 + " * 50_000):
        layer_type(name)
    assert time.process_time() - start < 2
