from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from dld_tui.core.conversion.result import ConversionResult, loss_lines, write_result
from dld_tui.core.conversion.tensor_casting import CastSelection, convert_tensors, losses
from dld_tui.core.errors import EditError
from dld_tui.core.model.document import Document
from dld_tui.core.model.tensors.elements import element_type
from tests.core.conversion.test_fp16 import run
from tests.support import models

MODEL = """
<ir_version: 10, opset_import: ["" : 18]>
many (float[3] x) => (float[3] y)
<float[3] w = {1, 70000, 3}, int64[1] axis = {0}>
{
    [k] k = Constant <value = float[1] {0.1}> ()
    [l] l = Constant <value_floats = [1.0, 2.0, 3.0]> ()
    [one] a = Add(x, w)
    [two] b = Mul(a, k)
    [three] y = Add(b, l)
}
"""


def convert(path: Path, chosen: CastSelection, *, casts: bool = True) -> onnx.ModelProto:
    with closing(Document.open(path)) as document:
        *_, made = convert_tensors(document, "float16", chosen, casts=casts)
        with closing(made.document):
            out = path.with_name("out.onnx")
            list(write_result(document, made.document, out, ConversionResult))
    return onnx.load(out)


def test_each_tensor_and_its_loss_is_listed(tmp_path: Path) -> None:
    with closing(Document.open(models.write(tmp_path, MODEL))) as document:
        found = list(losses(document, "float16", CastSelection()))
        assert [(one.name, one.kind) for one in found] == [
            ("w", "initializer"), ("k", "constant"), ("l", "list")
        ]  # fmt: skip
        assert (found[0].overflow, found[1].rounded) == (1, 1)
        assert loss_lines(found)[:2] == [
            "3 weights would be rounded:",
            "  w: 1 too large; largest error 0",
        ]
        named = list(losses(document, "float16", CastSelection(names=("k", "l*"))))
        assert [one.name for one in named] == ["k", "l"]
        typed = list(losses(document, "int32", CastSelection(types=("int64",))))
        assert [one.name for one in typed] == ["axis"]
        assert not list(losses(document, "float16", CastSelection(least_bytes=13)))
        with pytest.raises(EditError, match="no element type"):
            list(losses(document, "float17", CastSelection()))


def test_casts_keep_the_model_valid(tmp_path: Path) -> None:
    path = models.write(tmp_path, MODEL.replace("70000", "2"))
    made = convert(path, CastSelection())
    onnx.checker.check_model(made, full_check=True)
    stored = {one.name: numpy_helper.to_array(one).dtype for one in made.graph.initializer}
    assert stored == {"w_float16": np.float16, "axis": np.int64}
    assert [one.op_type for one in made.graph.node].count("Cast") == 3
    x = np.array([1, 2, 3], np.float32)
    np.testing.assert_allclose(run(made, {"x": x}), run(str(path), {"x": x}), rtol=1e-3)


def test_without_casts_the_types_are_changed_as_they_are(tmp_path: Path) -> None:
    made = convert(models.write(tmp_path, MODEL), CastSelection(names=("w",)), casts=False)
    assert made.graph.initializer[0].data_type == onnx.TensorProto.FLOAT16
    assert all(one.op_type != "Cast" for one in made.graph.node)


@pytest.mark.parametrize("lists", [("input",), ("value_info",), ("input", "value_info")])
def test_without_casts_what_declares_a_weight_has_its_new_type(
    lists: tuple[str, ...], tmp_path: Path
) -> None:
    model = models.parse(MODEL.replace("70000", "2"))
    (weight,) = (one for one in model.graph.initializer if one.name == "w")
    told = onnx.helper.make_tensor_value_info("w", weight.data_type, list(weight.dims))
    for name in lists:
        getattr(model.graph, name).append(told)
    onnx.save(model, tmp_path / "m.onnx")
    made = convert(tmp_path / "m.onnx", CastSelection(names=("w",)), casts=False)
    for name in lists:
        (record,) = (one for one in getattr(made.graph, name) if one.name == "w")
        assert record.type.tensor_type.elem_type == onnx.TensorProto.FLOAT16
        assert [dim.dim_value for dim in record.type.tensor_type.shape.dim] == [*weight.dims]


@pytest.mark.parametrize(
    ("dtype", "names"),
    [
        ("float32", "float float32 fp32 f32 FLOAT single tensor(float)"),
        ("float64", "double float64 fp64 DOUBLE"),
        ("float16", "half fp16 FLOAT16"),
        ("bfloat16", "bf16 BFLOAT16"),
        ("float8e4m3fn", "float8_e4m3fn FLOAT8E4M3FN"),
        ("bool", "bool bool_ boolean tensor(bool)"),
    ],
)
def test_a_type_is_one_under_all_its_names(dtype: str, names: str) -> None:
    assert {element_type(name) for name in names.split()} == {dtype}
