"""Layer information of every form that TensorRT has written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dld_tui.core.errors import CorruptFileError, InputError
from dld_tui.core.tensorrt.plan.engine_plan import EngineTensor
from dld_tui.core.tensorrt.plan.json_text import (
    documents,
    dtype_of,
    layout_of,
    parsed,
    read_text,
)
from dld_tui.core.tensorrt.plan.layers import find_layers, read_layers
from dld_tui.core.types import JSON

LAYER: dict[str, JSON] = {"Name": "a", "LayerType": "kgen", "Inputs": [], "Outputs": []}


@pytest.mark.parametrize(
    "document",
    [
        {"Layers": [LAYER]},
        {"layers": [LAYER]},
        {"LayerInfo": [LAYER]},
        {"layerInfo": {"0": LAYER}},
        [LAYER],
        LAYER,
    ],
)
def test_where_layers_are(document: JSON) -> None:
    assert find_layers(json.dumps(document), "f").layers == [LAYER]


@pytest.mark.parametrize("text", ['{"hello": 1}', '{"Layers": 7}', "[1, 2]", "3", "words"])
def test_no_layers(text: str) -> None:
    with pytest.raises(CorruptFileError):
        find_layers(text, "f")


def test_bindings_are_names_or_tensors() -> None:
    names = find_layers('{"Layers": [], "Bindings": ["x", "y"]}', "f")
    assert [tensor.name for tensor in names.bindings] == ["x", "y"]
    tensor = {
        "Name": "x", "IOMode": "INPUT", "DataType": "Half", "Dimensions": [-1, 3],
        "Location": "Device", "Format": "Linear",
        "ProfileInfo": [{"MinShape": [1, 3], "OptShape": [4, 3], "MaxShape": [8, 3]}],
    }  # fmt: skip
    found = find_layers(json.dumps({"Layers": [], "I/O Tensors": [tensor]}), "f")
    profiles = (((1, 3), (4, 3), (8, 3)),)
    assert found.profile_count == 1
    assert found.bindings == (
        EngineTensor("x", (-1, 3), "fp16", "Linear", "Device", "input", profiles),
    )


def test_the_format_of_an_input_is_in_its_profiles() -> None:
    linear, wide = "Row major linear FP32 format (kLINEAR)", "Channel major FP16 (kHWC8)"
    tensor = {
        # As NVIDIA's page on the engine inspector of TensorRT 11 has it.
        "Name": "input_0", "IOMode": "Input", "DataType": "Float", "Dimensions": [1, 3, 224, 224],
        "Location": "Device", "IsShapeInferenceIO": False,
        "ProfileInfo": [
            {"MinShape": [1], "OptShape": [1], "MaxShape": [1], "Format": form}
            for form in (linear, linear, wide)
        ],
    }  # fmt: skip
    (found,) = find_layers(json.dumps({"Layers": [], "I/O Tensors": [tensor]}), "f").bindings
    assert found.format == f"{linear} / {wide}"
    assert (found.mode, found.dtype, len(found.profile_dims)) == ("input", "fp32", 3)


def test_wrong_types_are_noted() -> None:
    text = '{"Layers": [1, null, "x", {"Name": 5, "Inputs": "no", "Outputs": {"a": 1}}],'
    plan = find_layers(text + '"Bindings": 7}', "f")
    found = read_layers(plan.layers)
    assert [layer.name for layer in found.layers] == ["x", "5"]
    assert not found.names_only
    assert plan.notes == ["the list of inputs and outputs is of a wrong type and left out"]
    assert found.oddities.notes() == [
        "2 entries of Layers are not layers and left out",
        "inputs, outputs or constants of 1 layer are of a wrong type and partly left out",
    ]


def test_sizes_that_are_not_known() -> None:
    dynamic: JSON = {"Name": "x", "Dimensions": [-1, 3], "Format/Datatype": "Half"}
    odd: JSON = {"Name": "x", "Dimensions": [10**40, "a"], "Format/Datatype": "Half"}
    for tensor in (dynamic, odd):
        [layer] = read_layers([{**LAYER, "Inputs": [tensor]}]).layers
        assert layer.io_bytes is None
    large: JSON = {"Name": "x", "Dimensions": [1 << 20, 2], "Format/Datatype": "Half"}
    assert read_layers([{**LAYER, "Inputs": [large]}]).layers[0].io_bytes == 4 << 20
    for dims, count in (([1 << 20, 2], 0), ([-1, 1 << 60], 0), ([1 << 50, 2], 1)):
        sized: JSON = {"Name": "x", "Dimensions": [*dims], "Format/Datatype": "Half"}
        assert read_layers([{**LAYER, "Inputs": [sized]}]).oddities.too_large == count
    int4: JSON = {"Name": "x", "Dimensions": [3], "Format/Datatype": "Int4"}
    [packed] = read_layers([{**LAYER, "Inputs": [int4]}]).layers
    assert packed.io_bytes == 2


def test_types_and_layouts() -> None:
    known = {
        "Half": ("fp16", ""), "Float": ("fp32", ""), "BFloat16": ("bf16", ""), "FP4": ("fp4", ""),
        "Row major linear BF16 format": ("bf16", "LINEAR"), "Linear FP8": ("fp8", "LINEAR"),
        "Thirty-two wide channel vectorized row major Int8 format": ("int8", "CHW32"),
        "Two wide channel vectorized row major FP16 3D format": ("fp16", "CDHW2"),
        "Sixteen wide channel vectorized row major FP16 format (kCDHW16)": ("fp16", "CDHW16"),
        "Channel major FP16 format where channel % 8 == 0": ("fp16", "HWC8"),
        "Channel major FP32 format where channel % 1 == 0": ("fp32", "HWC"),
        "Channel major FP32 format": ("fp32", "HWC"), "DLA image FP16": ("fp16", "DLA_HWC4"),
        "DLA planar Int8": ("int8", "DLA_LINEAR"), "E8M0": ("e8m0", ""), "kINT4": ("int4", ""),
        "kUINT8": ("uint8", ""), "Bool": ("bool", ""), "Int64": ("int64", ""),
        "N/A due to dynamic shapes": ("", ""), "": ("", ""),
    }  # fmt: skip
    assert {phrase: (dtype_of(phrase), layout_of(phrase)) for phrase in known} == known


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"Layers": [{"Name": "a", "LayerType": "kg', "JSON ends early at line 1 column 40"),
        ('{"Layers": [\n{"Name": "a"},', "JSON ends early at line 2 column 15"),
        ('{"Layers": nonsense}', "Not JSON: Expecting value at line 1 column 12"),
        ("[" * 100_000, "JSON is nested too deep"),
        ("[" + "9" * 5000 + "]", "JSON has a number with too many digits"),
        ('{"a": 1} x', "Not JSON: there is data after the document at line 1 column 9"),
    ],
)
def test_damage_is_one_line(text: str, message: str) -> None:
    with pytest.raises(CorruptFileError) as caught:
        parsed(text, "f.json")
    assert str(caught.value) == f"f.json: {message}"


def test_layers_one_after_another() -> None:
    divided = '--- Layer 0 ---\n{"Name": "a"}\n--- Layer 1 ---\n{"Name": "b"}\n'
    assert documents(divided, "f") == ([{"Name": "a"}, {"Name": "b"}], [])
    assert documents('{"Name": "a"}\n{"Name": "b"}', "f")[0] == [{"Name": "a"}, {"Name": "b"}]
    found, notes = documents('--- Layer 0 ---\n{"Name": "a"}\n--- Layer 1 ---\n{"Na', "f")
    assert found == [{"Name": "a"}]
    assert notes == ["1 of the layers are not complete JSON and left out"]
    assert parsed('{"a": NaN, "b": "x\x1ey"}', "f") == {"a": None, "b": "x\x1ey"}


def test_encodings(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_bytes('{"é": 1}'.encode("utf-16"))
    assert read_text(path) == '{"é": 1}'
    path.write_bytes(b"\xef\xbb\xbf[]")
    assert read_text(path) == "[]"
    path.write_bytes(b" \n")
    with pytest.raises(InputError, match="empty"):
        read_text(path)
