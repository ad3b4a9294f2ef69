"""``dld convert``: what is written, and what is not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.support import models
from tests.support.cli import Dld
from tests.support.conversions import WIDE, model_file
from tests.support.tiers import first


@pytest.mark.broad
def test_constants_that_take_too_much_are_not_folded(dld: Dld, tmp_path: Path) -> None:
    """Simplifiers do the rest, and do not begin with what no machine has room for."""
    pytest.importorskip("onnxruntime")
    text = """<ir_version: 8, opset_import: ["" : 13]>
        g (float[4] x) => (float[4] y) <int64[2] s = {900000, 900000}> {
            a = ConstantOfShape(s) [large] b = MatMul(a, a) c = ReduceMax<keepdims = 0>(b)
            i = Identity(x) y = Add(i, c)
        }"""
    path, out = models.write(tmp_path, text), tmp_path / "out.onnx"
    outcome = dld("convert", "sanitize", path, "-o", out, "--by", "rules", "--json")
    assert outcome.status == 0, outcome
    notes = outcome.json["notes"]
    assert any("constants are not folded: node >a (ConstantOf" in note for note in notes), notes
    kinds = [node.op_type for node in onnx.load(out).graph.node]
    assert kinds == ["ConstantOfShape", "MatMul", "ReduceMax", "Add"]


@pytest.mark.parametrize("name", ["light_densenet121", "silero_vad_16k_op15", "minilm_l6_int8"])
def test_real_models_compute_the_same(
    dld: Dld, real_models: Path, tmp_path: Path, name: str
) -> None:
    ort = pytest.importorskip("onnxruntime")
    path, out = real_models / "onnx" / f"{name}.onnx", tmp_path / "out.onnx"
    assert dld("convert", "opset", path, "-o", out, "--to", 21).status == 0

    ort.set_default_logger_severity(3)
    sessions = [ort.InferenceSession(str(model)) for model in (path, out)]
    feed = {}
    for value in sessions[0].get_inputs():
        dims = [dim if isinstance(dim, int) and dim > 0 else 1 for dim in value.shape]
        if value.name == "sr":
            feed["sr"] = np.array(16_000)
        elif value.type == "tensor(int64)":
            feed[value.name] = np.ones(dims, np.int64)
        else:
            size = [1, 512] if (name.startswith("silero") and value.name == "input") else dims
            feed[value.name] = np.linspace(0, 1, int(np.prod(size)), dtype=np.float32).reshape(size)
    for before, after in zip(*(session.run(None, feed) for session in sessions), strict=True):
        np.testing.assert_allclose(before, after, atol=1e-6)


pytest.importorskip("onnxruntime")


def test_weights_of_constants_are_counted_as_taken_out(dld: Dld, tmp_path: Path) -> None:
    values = numpy_helper.from_array(np.ones(1000, np.float32))
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (float[1000] x) => (float[1000] y) { c = Constant () y = Add(x, c) }"""
    model = onnx.parser.parse_model(text)
    model.graph.node[0].attribute.add(name="value", type=onnx.AttributeProto.TENSOR, t=values)
    path, bare = tmp_path / "m.onnx", tmp_path / "bare.onnx"
    onnx.save(model, path)
    lines = dld("convert", "strip", path, "-o", bare).out.splitlines()
    assert lines[0].startswith("1 weight of 4 kB taken out")
    assert next(line for line in lines if line.startswith("weights")).endswith("4 kB → 0 B")
    assert bare.stat().st_size < 1000


def test_a_model_is_replaced_only_when_that_is_asked_for(dld: Dld, tmp_path: Path) -> None:
    path = model_file(tmp_path)
    before = path.read_bytes()
    (tmp_path / "hard.onnx").hardlink_to(path)
    (tmp_path / "soft.onnx").symlink_to(path)
    (tmp_path / "sub").mkdir()
    names = (
        path, tmp_path / "hard.onnx", tmp_path / "soft.onnx", tmp_path / "sub" / ".." / path.name,
    )  # fmt: skip
    for output in names:
        error = dld.fails(2, "convert", "strip", path, "-o", output, "--force")
        assert "--in-place" in error
    assert path.read_bytes() == before
    assert dld("convert", "strip", path, "-o", path, "--in-place").status == 0
    assert path.stat().st_size < len(before)


def test_a_data_file_of_the_model_is_not_written_over(dld: Dld, tmp_path: Path) -> None:
    path, outside = model_file(tmp_path), tmp_path / "outside.onnx"
    dld("convert", "external", path, "-o", outside, "--location", "w.bin", "--no-verify")
    before = (tmp_path / "w.bin").read_bytes()
    words = ("convert", "inline", outside, "-o", tmp_path / "w.bin", "--force", "--no-verify")
    for place in ((), ("--target", "nowhere.invalid")):
        error = dld.fails(2, *words, *place)  # before anything is asked of the target
        assert "holds weights of outside.onnx" in error
    assert (tmp_path / "w.bin").read_bytes() == before


COARSE = """
<ir_version: 10, opset_import: ["" : 18]>
coarse (float[4, 32] x) => (float[4, 32] y) { y = MatMul(x, w) }
"""


def coarse(folder: Path) -> Path:
    """Return a model whose weights differ so much in a block that 4 bits lose most of them."""
    model = onnx.parser.parse_model(COARSE)
    values = [0.01 * (-1) ** (at // 32 + at) * (at // 32) for at in range(1024)]
    values[:32] = [0.0] * 31 + [1000.0]
    model.graph.initializer.append(
        onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT, [32, 32], values)
    )
    path = folder / "model.onnx"
    onnx.save(model, path)
    return path


WRONG = [
    ("fp16",),
    ("fp16", "--library", "onnxruntime"),
    ("precisions", "--layer-precision", "one:fp16"),
    ("tensors", "--to", "float16", "--filter", "w"),
    ("quantize", "--weights-only", "--weights", "int4", "--block", "32"),
]


@pytest.mark.parametrize("words", first(1, WRONG, pytest.mark.broad), ids=" ".join)
def test_wrong_results_are_not_written(dld: Dld, tmp_path: Path, words: tuple[str, ...]) -> None:
    is_coarse = words[0] == "quantize"
    (tmp_path / "in").mkdir()
    path = coarse(tmp_path / "in") if is_coarse else models.write(tmp_path / "in", WIDE)
    out = tmp_path / "out.onnx"
    out.write_bytes(b"what was there")
    asked = ("convert", *words[:1], path, *words[1:], "-o", out, "--force")
    if is_coarse:
        asked += ("--tolerance", "atol=1e-6,rtol=1e-6")
    done = dld(*asked)
    assert done.status == 1
    assert f"not written to {out}" in done.out
    assert "--keep-wrong writes it anyway" in done.out
    assert out.read_bytes() == b"what was there"
    kept = dld(*asked, "--keep-wrong", "--json")
    assert (kept.status, kept.json["is_written"], kept.json["values"]["is_good"]) == (
        1,
        True,
        False,
    )
    onnx.load(out)


def test_a_model_is_not_replaced_by_a_wrong_one(dld: Dld, tmp_path: Path) -> None:
    path = models.write(tmp_path, WIDE)
    before = path.read_bytes()
    done = dld("convert", "fp16", path, "-o", path, "--in-place", "--json")
    assert (done.status, done.json["is_written"]) == (1, False)
    assert path.read_bytes() == before
