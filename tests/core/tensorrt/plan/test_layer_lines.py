"""Layers as lines of text."""

from __future__ import annotations

import pytest

from dld_tui.core.tensorrt.plan import layers
from dld_tui.core.tensorrt.plan.layers import find_layers, layer_of_line
from tests.support.known import known

ONELINE = (
    "Name: conv, one + relu [profile 1], LayerType: CaskConvolution, Inputs: [ { Name: x,"
    " Location: Device, Dimensions: [1,3,28,28], Format/Datatype: Channel major FP16 format where"
    " channel % 8 == 0 }, { Name: r[0], Dimensions: [-1], Format/Datatype: Half }], Outputs: [ {"
    " Name: y, Location: Device, Dimensions: [1,32,28,28], Format/Datatype: Half }],"
    " ParameterType: Convolution, Kernel: [5,5], OutMaps: 32,"
    ' Weights: {"Type": "Float", "Count": 800}, TacticName: sm80_x, StreamId: 0,'
    " Metadata: [ONNX Layer: conv]\x1e[ONNX Layer: relu]"
)


def test_layers_without_tensors_and_lines_of_others() -> None:
    line = "Name: __mye1_myl0_0, LayerType: shape_call, Inputs: [], Outputs: [], TacticName: ,"
    layer = known(layer_of_line(line + " StreamId: 0, Metadata:"))
    assert (layer["Inputs"], layer["Outputs"], layer["StreamId"]) == ([], [], 0)
    layer = known(layer_of_line(line.replace("[]", "[ { Name: x, Dimensions: [1,2] }]", 1)))
    assert layer["Inputs"] == [{"Name": "x", "Dimensions": [1, 2], "Format/Datatype": ""}]
    assert layer_of_line("Bindings:") is None
    assert layer_of_line("Name: only") is None
    assert layer_of_line("Layer(x): " + "a, " * 50_000) is None


def test_verbose_lines_of_8_4_and_10() -> None:
    old = layer_of_line(
        "Layer(CaskConvolution): Conv-1 + ReLU-2, Tactic: 0x632, x[Float(-2,1,28,28)] ->"
        " Reformatted Input Tensor 0 to c[Half(-2,32,28,28)]"
    )
    assert old == {
        "Name": "Conv-1 + ReLU-2", "LayerType": "CaskConvolution", "TacticValue": "0x632",
        "Inputs": [{"Name": "x", "Dimensions": [-2, 1, 28, 28], "Format/Datatype": "Float"}],
        "Outputs": [
            {
                "Name": "Reformatted Input Tensor 0 to c", "Dimensions": [-2, 32, 28, 28],
                "Format/Datatype": "Half",
            }
        ],
    }  # fmt: skip
    new = known(
        layer_of_line(
            "Layer(Myelin): {ForeignNode[a...b]}, Tactic: 0x0, m (Half[-1,64:8,7,7]) ->"
            " y (Float[-1,10]), z (Int64[-1])"
        )
    )
    assert new["Name"] == "{ForeignNode[a...b]}"
    assert new["Outputs"] == [
        {"Name": "y", "Dimensions": [-1, 10], "Format/Datatype": "Float"},
        {"Name": "z", "Dimensions": [-1], "Format/Datatype": "Int64"},
    ]


def test_a_file_of_lines() -> None:
    plan = find_layers(f"Layers:\n{ONELINE}\n\nBindings:\nx\ny\n", "f")
    assert len(plan.layers) == 1
    assert [tensor.name for tensor in plan.bindings] == ["x", "y"]


@pytest.mark.parametrize(
    ("begin", "part", "is_layer"),
    [
        ("Name: a, LayerType: b", ", Inputs: [{", True),
        ("Name: a, LayerType: b, Inputs: [", "{ Name: x, Dimensions: [1", True),
        ("Name: a, LayerType: b", ", A: b", True),
        ("Layer(a): b, Tactic: 0, ", "x, -> (a[", True),
        ("Layer(a): ", ", Tactic: ", True),
        ("Layer(a): ", "(", False),
    ],
)
def test_hostile_lines_come_to_an_end(begin: str, part: str, is_layer: bool) -> None:
    """A pattern that goes back over the line for each part of it would not, at this length."""
    line = begin + part * ((layers._LONGEST - len(begin)) // len(part))
    assert (layer_of_line(line) is not None) == is_layer
    assert layer_of_line(line + part) is None
