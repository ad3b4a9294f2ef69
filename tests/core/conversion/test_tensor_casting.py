"""Weights in another type: what each loses, and casts that keep the model valid."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

from dld_tui.core.conversion.result import ConversionResult, loss_lines, write_result
from dld_tui.core.conversion.tensor_casting import CastSelection, convert_tensors, losses
from dld_tui.core.errors import EditError
from dld_tui.core.model.document import Document
from dld_tui.core.model.tensors.elements import element_type
from tests.support import models

MODEL = """
<ir_version: 10, opset_import: ["" : 18]>
many (float[3] x) => (float[3] y)
<float[3] w = {1, 70000, 3}, int64[1] axis = {0}>
{
    k = Constant <value = float[1] {0.1}> ()
    l = Constant <value_floats = [1.0, 2.0, 3.0]> ()
    a = Add(x, w)
    b = Mul(a, k)
    y = Add(b, l)
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

        def found(dtype: str, **chosen: object) -> list[tuple[str, str]]:
            selection = CastSelection(**chosen)  # type: ignore[arg-type]
            return [(one.name, one.kind) for one in losses(document, dtype, selection)]

        every = [("w", "initializer"), ("k", "constant"), ("l", "list")]
        assert found("float16") == every
        assert found("float16", names=("k", "l*")) == every[1:]
        assert found("int32", types=("int64",)) == [("axis", "initializer")]
        assert found("float16", least_bytes=13) == []
        with pytest.raises(EditError, match="no element type"):
            found("float17")
        lost = list(losses(document, "float16", CastSelection()))
        assert (lost[0].overflow, lost[1].rounded) == (1, 1)
        assert loss_lines(lost)[:2] == [
            "3 weights would be rounded:",
            "  w: 1 too large; largest error 0",
        ]


def test_casts_keep_the_model_valid(tmp_path: Path) -> None:
    path = models.write(tmp_path, MODEL.replace("70000", "2"))
    made = convert(path, CastSelection())
    onnx.checker.check_model(made, full_check=True)
    stored = {one.name: numpy_helper.to_array(one).dtype for one in made.graph.initializer}
    assert stored == {"w_float16": np.float16, "axis": np.int64}
    assert [one.op_type for one in made.graph.node].count("Cast") == 3
    feeds = {"x": np.array([1, 2, 3], np.float32)}
    after, before = (
        np.asarray([*ReferenceEvaluator(one).run(None, feeds)]) for one in (made, str(path))
    )
    np.testing.assert_allclose(after, before, rtol=1e-3)


def test_a_weight_that_cannot_be_read_stays_and_is_told(tmp_path: Path) -> None:
    model = models.parse(MODEL)
    weight = model.graph.initializer[0]
    weight.ClearField("float_data")
    weight.data_location = onnx.TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="gone.bin")
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    with closing(Document.open(tmp_path / "m.onnx")) as document:
        *_, made = convert_tensors(document, "float16", CastSelection(names=("w",)), casts=True)
        with closing(made.document):
            (note,) = made.notes
            assert note.startswith("w is unchanged: ")
            assert "gone.bin" in note
            assert [one.name for one in made.document.main.initializers] == ["w", "axis"]


@pytest.mark.parametrize("lists", [(), ("input",), ("value_info",), ("input", "value_info")])
def test_without_casts_a_weight_and_what_declares_it_have_the_new_type(
    lists: tuple[str, ...], tmp_path: Path
) -> None:
    model = models.parse(MODEL)
    for name in lists:
        told = onnx.helper.make_tensor_value_info("w", onnx.TensorProto.FLOAT, [3])
        getattr(model.graph, name).append(told)
    onnx.save(model, tmp_path / "m.onnx")
    made = convert(tmp_path / "m.onnx", CastSelection(names=("w",)), casts=False)
    assert made.graph.initializer[0].data_type == onnx.TensorProto.FLOAT16
    assert all(one.op_type != "Cast" for one in made.graph.node)
    expected = onnx.helper.make_tensor_value_info("w", onnx.TensorProto.FLOAT16, [3])
    for name in lists:
        assert [one for one in getattr(made.graph, name) if one.name == "w"] == [expected]


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
