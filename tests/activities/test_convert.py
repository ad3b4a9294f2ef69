"""The activities of ``dld convert``: what is written, compared, previewed and refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from dld_tui.backends.conversion import simplifiers, value_check
from dld_tui.core.errors import ActivityError, UnavailableError, UsageError
from tests.support import decoders, models
from tests.support.conversions import LAYERS, convert, model_file, with_matrix
from tests.support.runtime import session_of

with_polygraphy = pytest.mark.skipif(
    bool(simplifiers.missing("Polygraphy")), reason="Polygraphy is not installed"
)
SHAPE: dict[str, Any] = {"shape": ("x:2x4",)}


def with_weight(folder: Path, values: Any, text: str = LAYERS) -> Path:
    """Write a model whose matrix w has certain values."""
    path = with_matrix(folder, text, 4, 4)
    model = onnx.load(path)
    tensor = numpy_helper.from_array(np.asarray(values, np.float32), "w")
    model.graph.initializer[0].CopyFrom(tensor)
    onnx.save(model, path)
    return path


@pytest.mark.parametrize("library", ["dld", "onnxruntime"])
def test_float16_is_tried_and_may_replace_its_own_model(tmp_path: Path, library: str) -> None:
    path, out = with_matrix(tmp_path, LAYERS, 4, 4), tmp_path / "out.onnx"
    result = convert("fp16", path, out, library=library)
    assert onnx.load(out).graph.initializer[0].data_type == onnx.TensorProto.FLOAT16
    assert result["notes"] == []
    assert {entry for entry in tmp_path.iterdir()} == {path, out}
    convert("fp16", path, path, library=library, **SHAPE)
    assert onnx.load(path).graph.initializer[0].data_type == onnx.TensorProto.FLOAT16


def test_blocked_operators_may_be_separated_by_commas(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    result = convert("fp16", path, tmp_path / "out.onnx", op_block=("Mul,Add",), **SHAPE)
    assert result["kept"] == {"Add: blocked": 1, "Mul: blocked": 1}


@pytest.mark.broad
def test_float16_of_a_decoder_with_int4_weights_is_good_and_is_called_so(tmp_path: Path) -> None:
    """Its rounding copy must not run into ONNX Runtime's reuse of caches and zeros of MatMulNBits.

    The second opinion is a plain run of both files.
    """
    path, out = decoders.grouped(tmp_path / "decoder.onnx"), tmp_path / "half.onnx"
    ids = np.array([[3, 1, 4, 1, 5, 9, 2, 6]])
    feeds: dict[str, Any] = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
    for one in session_of(path).get_inputs()[2:]:
        feeds[one.name] = np.zeros((1, decoders.KV_HEADS, 0, decoders.HEAD_SIZE), np.float32)
    (tmp_path / "inputs").mkdir()
    for name, array in feeds.items():
        np.save(tmp_path / "inputs" / f"{name}.npy", array)
    result = convert("fp16", path, out, inputs=tmp_path / "inputs")
    assert result["values"]["is_good"], result["values"]

    halves = {name: value.astype(np.float16) if value.dtype == np.float32 else value
              for name, value in feeds.items()}  # fmt: skip
    exact, half = (
        session_of(file).run(["logits"], given)[0].astype(np.float32)
        for file, given in ((path, feeds), (out, halves))
    )
    noise = np.square(exact - half).mean()
    assert 10 * np.log10(np.square(exact).mean() / noise) > 30


def test_what_cannot_be_used_replaces_nothing_and_names_the_way_round(tmp_path: Path) -> None:
    path = with_matrix(tmp_path, LAYERS, 4, 4)
    before = path.read_bytes()
    with pytest.raises(ActivityError, match="cannot be used") as caught:
        convert("tensors", path, path, casts=False)
    assert "node 'one' (MatMul)" in str(caught.value.where)
    assert path.read_bytes() == before
    old = LAYERS.replace("ir_version: 10", "ir_version: 3").replace(": 18", ": 5")
    with pytest.raises(ActivityError) as caught:
        convert("tensors", with_matrix(tmp_path, old, 4, 4), tmp_path / "o.onnx", to="float16")
    hint = caught.value.hint or ""
    assert hint.startswith("Convert it to a newer opset first: dld convert opset --to 20")


@pytest.mark.parametrize("name", ["fp16", "tensors", "inline"])
def test_tolerances_of_unknown_outputs_are_refused(tmp_path: Path, name: str) -> None:
    path = with_matrix(tmp_path, LAYERS, 4, 4)
    with pytest.raises(UsageError, match="unknown output 'ghost'"):
        convert(name, path, tmp_path / "o.onnx", tolerance=("ghost:atol=1",), verify=False)


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


@pytest.mark.broad
@with_polygraphy
def test_constants_are_folded_unless_they_become_too_large(tmp_path: Path) -> None:
    path, out = with_matrix(tmp_path, FOLDED, 200, 300), tmp_path / "out.onnx"
    before = numpy_helper.to_array(onnx.load(path).graph.initializer[1])
    result = convert("sanitize", path, out)
    made = onnx.load(out)
    assert [node.name for node in made.graph.node] == ["use"]
    (weight,) = made.graph.initializer
    assert np.array_equal(numpy_helper.to_array(weight), before.T)
    assert result["notes"][0].startswith("simplified by ")
    assert {entry for entry in tmp_path.iterdir()} == {path, out}
    convert("sanitize", path, tmp_path / "o.onnx", threshold=0.1)
    assert [node.name for node in onnx.load(tmp_path / "o.onnx").graph.node] == ["turn", "use"]


def test_sanitize_needs_the_simplifier_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simplifiers, "missing", lambda name: [name.lower()])
    path, out = models.write(tmp_path, models.CHAIN), tmp_path / "out.onnx"
    with pytest.raises(UnavailableError, match="onnxslim not installed"):
        convert("sanitize", path, out, by="onnxslim")


def test_precisions_are_previewed_and_tensors_listed_without_an_output(tmp_path: Path) -> None:
    path, out = with_matrix(tmp_path, LAYERS, 4, 4), tmp_path / "out.onnx"
    spec = ("one:fp16",)
    preview = convert("precisions", path, None, layer_precision=spec, preview=True)
    assert "1 layer in another precision" in str(preview["lines"])
    assert [one["name"] for one in preview["losses"]] == ["w"]
    assert "path" not in preview
    convert("precisions", path, out, layer_precision=spec, **SHAPE)
    assert [node.op_type for node in onnx.load(out).graph.node].count("Cast") == 3
    listed = convert("tensors", model_file(tmp_path), None, list_only=True, filter=("large",))
    assert [one["name"] for one in listed["tensors"]] == ["large"]


def test_moved_weights_come_back_and_give_the_same_bits(tmp_path: Path) -> None:
    path = with_matrix(tmp_path, LAYERS, 4, 4)
    out, back, bare, whole = (tmp_path / f"{name}.onnx" for name in ("o", "i", "bare", "whole"))
    moved = convert("external", path, out, threshold=1)
    assert (moved["moved"], moved["moved_bytes"], moved["values"]["is_good"]) == (1, 64, True)
    assert convert("inline", out, back)["values"]["is_good"]
    convert("strip", path, bare, threshold=1)
    assert convert("restore", bare, whole, weights=path)["values"]["is_good"]
    assert back.read_bytes() == whole.read_bytes() == path.read_bytes()
    nothing = convert("inline", path, tmp_path / "same.onnx")["values"]
    assert nothing["skipped"] == "no weight was moved"
    other = onnx.load(path)
    other.graph.node[1].op_type = "Tanh"
    onnx.save(other, tmp_path / "other.onnx")
    made = convert("restore", bare, tmp_path / "w.onnx", weights=tmp_path / "other.onnx")
    assert "more than the weights" in made["values"]["skipped"]


def test_tensors_and_precisions_name_the_node_that_gives_wrong_values(tmp_path: Path) -> None:
    path = with_weight(tmp_path, np.eye(4) * 1e6)  # out of float16's range
    spec = {"layer_precision": ("one:fp16",)}
    for name, settings in (("tensors", {}), ("precisions", spec)):
        values = convert(name, path, tmp_path / f"{name}.onnx", **settings, **SHAPE)["values"]
        assert (values["is_good"], values["first"]["node"]) == (False, "one")
    good = convert("tensors", path, tmp_path / "c.onnx", to="float64", **SHAPE)
    assert good["values"]["is_good"]


def test_repair_keeps_the_operator_where_single_nodes_cannot_be_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 500 times some values, squared, is out of float16's range
    path = with_weight(tmp_path, np.full((4, 4), 500), LAYERS.replace("Relu(a)", "Mul(a, a)"))
    asked: dict[str, Any] = {"keep_io_types": True}
    wrong = convert("fp16", path, tmp_path / "a.onnx", **asked)["values"]
    assert (wrong["is_good"], wrong["first"]["op_type"]) == (False, "Mul")
    monkeypatch.setattr(value_check, "nodes_to_keep", lambda *_: {})
    found = convert("fp16", path, tmp_path / "b.onnx", repair=True, **asked)["values"]
    assert found["is_good"]
    assert found["repaired"] == [
        {"scope": [], "node": "two", "op_type": "Mul", "reason": "other Mul nodes were wrong"}
    ]
