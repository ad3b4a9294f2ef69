"""The activities of ``dld convert`` other than that of operator versions."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from dld_tui.backends.conversion import simplifiers, value_check
from dld_tui.core.errors import ActivityError, InputError, UnavailableError, UsageError
from dld_tui.core.types import JSON
from tests.support import models
from tests.support.conversions import LAYERS, convert, model_file, with_matrix

pytest.importorskip("onnxruntime")
with_polygraphy = pytest.mark.skipif(
    bool(simplifiers.missing("Polygraphy")), reason="Polygraphy is not installed"
)
FOLDED = """
<ir_version: 10, opset_import: ["" : 18]>
folded (float[1, 300] x) => (float[1, 200] y)
<float[2] spare = {1, 2}>
{
    [turn] t = Transpose <perm = [1, 0]> (w)
    [use] y = MatMul(x, t)
    [dead] z = Relu(x)
}
"""


@pytest.mark.parametrize("library", ["dld", "onnxruntime"])
def test_float16_is_tried_and_written_with_all_that_was_said_of_the_model(
    tmp_path: Path, library: str
) -> None:
    path, out = with_matrix(tmp_path, LAYERS, 4, 4), tmp_path / "out.onnx"
    result = convert("fp16", path, out, library=library)
    made = onnx.load(out)
    assert made.graph.initializer[0].data_type == onnx.TensorProto.FLOAT16
    assert made.graph.node[0].doc_string == "kept"
    assert made.metadata_props[0].key == "who"
    assert result["notes"] == []
    assert [entry.name for entry in tmp_path.iterdir() if entry not in (path, out)] == []


def test_blocked_operators_may_be_separated_by_commas(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    result = convert("fp16", path, tmp_path / "out.onnx", op_block=("Mul,Add",))
    assert result["kept"] == {"Add: blocked": 1, "Mul: blocked": 1}


def test_a_result_that_onnxruntime_refuses_replaces_nothing(tmp_path: Path) -> None:
    path = with_matrix(tmp_path, LAYERS, 4, 4)
    before = path.read_bytes()
    with pytest.raises(ActivityError, match="cannot be used") as caught:
        convert("tensors", path, path, casts=False)
    assert "node 'one' (MatMul)" in str(caught.value.where)
    assert path.read_bytes() == before


def test_casts_of_very_old_operators_name_the_way_round(tmp_path: Path) -> None:
    text = LAYERS.replace("ir_version: 10", "ir_version: 3").replace(": 18", ": 5")
    path = with_matrix(tmp_path, text, 4, 4)
    with pytest.raises(ActivityError) as caught:
        convert("tensors", path, tmp_path / "out.onnx", to="float16")
    hint = caught.value.hint or ""
    assert hint.startswith("Convert it to a newer opset first: dld convert opset --to 20")


def test_a_result_may_replace_its_own_model(tmp_path: Path) -> None:
    path = with_matrix(tmp_path, LAYERS, 4, 4)
    convert("fp16", path, path)
    assert onnx.load(path).graph.initializer[0].data_type == onnx.TensorProto.FLOAT16


@pytest.mark.broad
@with_polygraphy
def test_constants_are_folded_weights_included_and_the_rest_is_kept(tmp_path: Path) -> None:
    path, out = with_matrix(tmp_path, FOLDED, 200, 300), tmp_path / "out.onnx"
    before = numpy_helper.to_array(onnx.load(path).graph.initializer[1])
    result = convert("sanitize", path, out)
    made = onnx.load(out)
    assert [node.name for node in made.graph.node] == ["use"]
    assert made.metadata_props[0].key == "who"
    (weight,) = made.graph.initializer
    assert np.array_equal(numpy_helper.to_array(weight), before.T)
    assert result["notes"][0].startswith("simplified by ")  # type: ignore[index, union-attr]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["model.onnx", "out.onnx"]


@with_polygraphy
def test_what_would_be_too_large_is_not_folded(tmp_path: Path) -> None:
    path, out = with_matrix(tmp_path, FOLDED, 200, 300), tmp_path / "out.onnx"
    convert("sanitize", path, out, threshold=0.1)
    assert [node.name for node in onnx.load(out).graph.node] == ["turn", "use"]


def test_sanitize_needs_the_simplifier_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simplifiers, "missing", lambda name: [name.lower()])
    path, out = models.write(tmp_path, models.CHAIN), tmp_path / "out.onnx"
    with pytest.raises(UnavailableError, match="onnxslim not installed"):
        convert("sanitize", path, out, by="onnxslim")


def test_dynamic_quantization(tmp_path: Path) -> None:
    path, out = with_matrix(tmp_path, LAYERS, 4, 4), tmp_path / "out.onnx"
    convert("quantize", path, out, dynamic=True)
    made = onnx.load(out)
    assert "DynamicQuantizeLinear" in [node.op_type for node in made.graph.node]
    assert made.metadata_props[0].key == "who"


def test_static_quantization_reads_its_inputs_set_by_set(tmp_path: Path) -> None:
    path, out, folder = with_matrix(tmp_path, LAYERS, 4, 4), tmp_path / "out.onnx", tmp_path / "c"
    for number in range(3):
        one = folder / f"test_data_set_{number}"
        one.mkdir(parents=True)
        np.save(one / "x.npy", np.full((2, 4), number, np.float32))
    result = convert("quantize", path, out, calibration=folder, per_channel=True)
    assert result["sets"] == 3
    ops = [node.op_type for node in onnx.load(out).graph.node]
    assert ops.count("QuantizeLinear") >= 2

    np.save(folder / "test_data_set_1" / "x.npy", np.zeros((2, 5), np.float32))
    with pytest.raises(InputError, match="has shape") as caught:
        convert("quantize", path, tmp_path / "other.onnx", calibration=folder)
    assert "test_data_set_1" in str(caught.value.where)
    np.save(folder / "test_data_set_1" / "x.npy", np.zeros((2, 4), np.int64))
    with pytest.raises(InputError, match="has type int64"):
        convert("quantize", path, tmp_path / "other.onnx", calibration=folder)
    assert not (tmp_path / "other.onnx").exists()


def test_static_quantization_needs_inputs_and_known_nodes(tmp_path: Path) -> None:
    path = with_matrix(tmp_path, LAYERS, 4, 4)
    with pytest.raises(UsageError, match="--calibration"):
        convert("quantize", path, tmp_path / "out.onnx")
    with pytest.raises(UsageError, match="no node is named 'ghost'"):
        convert("quantize", path, tmp_path / "out.onnx", dynamic=True, exclude=("ghost",))


def test_layer_precisions_are_previewed_and_written(tmp_path: Path) -> None:
    path, out = with_matrix(tmp_path, LAYERS, 4, 4), tmp_path / "out.onnx"
    spec = ("one:fp16",)
    preview = convert("precisions", path, None, layer_precision=spec, preview=True)
    assert "1 layer in another precision" in str(preview["lines"])
    assert [one["name"] for one in preview["losses"]] == ["w"]  # type: ignore[index, union-attr, call-overload]
    assert "path" not in preview
    convert("precisions", path, out, layer_precision=spec, verify=True)
    assert [node.op_type for node in onnx.load(out).graph.node].count("Cast") == 3
    with pytest.raises(UsageError, match="an output is needed"):
        convert("precisions", path, None)


def test_tensors_are_listed_without_an_output(tmp_path: Path) -> None:
    path = model_file(tmp_path)
    result = convert("tensors", path, None, list_only=True, filter=("large",))
    assert [one["name"] for one in result["tensors"]] == ["large"]  # type: ignore[index, union-attr, call-overload]
    with pytest.raises(UsageError, match="an output is needed"):
        convert("tensors", path, None)
    with pytest.raises(UsageError, match="--kind is 'blob'"):
        convert("tensors", path, None, kinds=("blob",))


def test_weights_move_out_in_and_away_and_come_back(tmp_path: Path) -> None:
    path = model_file(tmp_path)
    names = [tmp_path / f"{name}.onnx" for name in ("out", "in", "bare", "whole")]
    assert convert("external", path, names[0])["moved"] == 1
    assert convert("inline", names[0], names[1])["moved_bytes"] == 16_000
    assert names[1].read_bytes() == path.read_bytes()
    convert("strip", path, names[2])
    convert("restore", names[2], names[3], weights=path)
    assert names[3].read_bytes() == path.read_bytes()
    with pytest.raises(UsageError, match="--weights"):
        convert("restore", names[2], names[3])


def test_moved_weights_give_the_same_bits(tmp_path: Path) -> None:
    path = with_matrix(tmp_path, LAYERS, 4, 4)
    out, bare, whole = (tmp_path / f"{name}.onnx" for name in ("out", "bare", "whole"))
    moved = convert("external", path, out, threshold=1)
    assert (moved["moved"], values_of(moved)["is_good"]) == (1, True)
    assert values_of(convert("inline", out, tmp_path / "in.onnx"))["is_good"]
    convert("strip", path, bare, threshold=1)
    assert values_of(convert("restore", bare, whole, weights=path))["is_good"]
    nothing = values_of(convert("inline", path, tmp_path / "same.onnx"))
    assert nothing["skipped"] == "no weight was moved"


def test_restored_weights_of_another_model_are_not_called_verified(tmp_path: Path) -> None:
    path, bare = with_matrix(tmp_path, LAYERS, 4, 4), tmp_path / "bare.onnx"
    convert("strip", path, bare, threshold=1)
    other = onnx.load(path)
    other.graph.node[1].op_type = "Tanh"
    onnx.save(other, tmp_path / "other.onnx")
    made = convert("restore", bare, tmp_path / "whole.onnx", weights=tmp_path / "other.onnx")
    assert "more than the weights" in values_of(made)["skipped"]


def test_tensors_and_precisions_name_the_node_that_gives_wrong_values(tmp_path: Path) -> None:
    path = with_matrix(tmp_path, LAYERS, 4, 4)
    model = onnx.load(path)
    values = numpy_helper.to_array(model.graph.initializer[0]) * 1e6  # out of float16's range
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(values, "w"))
    onnx.save(model, path)
    asked: dict[str, Any] = {"measure": False, "shape": ("x:2x4",)}
    for found in (
        values_of(convert("tensors", path, tmp_path / "a.onnx", **asked)),
        values_of(
            convert("precisions", path, tmp_path / "b.onnx", layer_precision=("one:fp16",), **asked)
        ),
    ):
        assert (found["is_good"], found["first"]["node"]) == (False, "one")
    good = convert("tensors", path, tmp_path / "c.onnx", to="float64", **asked)
    assert values_of(good)["is_good"]


def test_a_tolerance_for_no_output_is_refused_by_name(tmp_path: Path) -> None:
    path = with_matrix(tmp_path, LAYERS, 4, 4)
    for name in ("fp16", "tensors", "inline"):
        with pytest.raises(UsageError, match="unknown output 'ghost'"):
            convert(name, path, tmp_path / "out.onnx", tolerance=("ghost:atol=1",), verify=False)


def test_repair_keeps_the_operator_where_single_nodes_cannot_be_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = LAYERS.replace("Relu(a)", "Mul(a, a)")  # 1e3 squared is out of float16's range
    path = with_matrix(tmp_path, text, 4, 4)
    model = onnx.load(path)
    large = np.full((4, 4), 500, np.float32)
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(large, "w"))
    onnx.save(model, path)
    asked: dict[str, Any] = {"measure": False, "keep_io_types": True}
    wrong = values_of(convert("fp16", path, tmp_path / "a.onnx", **asked))
    assert (wrong["is_good"], wrong["first"]["op_type"]) == (False, "Mul")
    monkeypatch.setattr(value_check, "nodes_to_keep", lambda *_: {})
    found = values_of(convert("fp16", path, tmp_path / "b.onnx", repair=True, **asked))
    assert found["is_good"]
    assert {one["op_type"] for one in found["repaired"]} == {"Mul"}


def values_of(result: dict[str, JSON]) -> dict[str, Any]:
    return cast("dict[str, Any]", result["values"])
