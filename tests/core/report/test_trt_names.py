from __future__ import annotations

import pytest

from dld_tui.core.report.groups import layer_type, main_node
from dld_tui.core.report.records import NodeLink


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
        ("node_linear_1_2_myl5_3", "Gemm"),
        ("/fc1/MatMul_myl0_2", "MatMul"),
        ("strange_myl0_2", "Myelin"),
        ("resnet50/conv1_conv/Conv2D__6", "Conv"),
        ("Conv-1 + ReLU-2", "Conv + Relu"),
        ("node_max_pool2d_1", "MaxPool"),
        ("Softmax-14 + ArgMax-15", "Softmax + ArgMax"),
        ("copied_squeeze_after_y_3", "Squeeze"),
        ("(Unnamed Layer* 32) [Shuffle]", "Shuffle"),
        ("inception_3a/pool_proj", "(unknown)"),
        ("data to nvm", "DLA transfer"),
        ("(Unnamed Layer* 67) [Convolution]_output from nvm", "DLA wait"),
        ("data copy finish", "DLA wait"),
        ("loss3/classifier finish", "DLA wait"),
        ("{conv1/7x7_s2,conv1/relu_7x7,pool1/3x3_s2}", "DLA"),
        ("{" + "node," * 2000 + "last}", "DLA"),
        ("{conv1/7x7_s2,pool1} input reformatter 0", "DLA transfer"),
        ("{conv1/7x7_s2,pool1} output reformatter 0", "DLA wait"),
        ("", "(unknown)"),
        ("Add_1 + Mul_2 + Sub_3 + Div_4 + Exp_5", "Add + Mul + Sub + Div + …"),
    ],
)  # fmt: skip
def test_types_are_told_from_names(name: str, kind: str) -> None:
    assert layer_type(name) == kind


@pytest.mark.parametrize("part", ["_1", "(", "_", "/a_1 + "])
def test_hostile_names_come_to_an_end(part: str) -> None:
    """A pattern that tries every way to split the name would not, at this length."""
    assert layer_type(part * 100_000) == "(unknown)"
    assert layer_type(part * 100_000 + "/Conv") == "(unknown)", "its beginning is looked at"


@pytest.mark.parametrize(
    ("nodes", "main"),
    [
        (("QuantizeLinear_282", "Conv_284", "Add_292", "Relu_293"), "Conv_284"),
        (("DequantizeLinear_1", "QLinearConv_2", "Relu_3"), "QLinearConv_2"),
        (("Cast_1", "Mul_2", "Softmax_3", "Add_4"), "Softmax_3"),
        (("Reshape_1", "Add_2", "Mul_3"), "Add_2"),
        (("conv2/3x3", "conv2/relu_3x3"), "conv2/3x3"),  # no operators are known
        (("Transpose_1",), "Transpose_1"),
        (("QuantLinearNode__622", "resnet50/conv1_conv/BiasAdd"), "resnet50/conv1_conv/BiasAdd"),
    ],
)
def test_a_fused_layer_is_called_by_its_main_operator(nodes: tuple[str, ...], main: str) -> None:
    assert main_node([NodeLink((), name, name, "") for name in nodes]).name == main
