"""``dld convert opset``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.support import models
from tests.support.cli import Dld
from tests.support.conversions import MIXED, OLD, WIDE, model_file


@pytest.mark.broad
def test_json_and_an_existing_output(dld: Dld, tmp_path: Path) -> None:
    path, out = models.write(tmp_path, OLD), tmp_path / "out.onnx"
    out.write_text("mine")
    assert "the file exists" in dld.fails(2, "convert", "opset", path, "-o", out, "--to", 18)
    assert out.read_text() == "mine"

    outcome = dld("convert", "opset", path, "-o", out, "--to", 18, "--force", "--json")
    assert outcome.status == 0
    expected = {
        "path": str(out), "from": 12, "to": 18, "changed": {"ReduceSum": 3},
        "added": {"Constant": 3}, "removed": {}, "initializers": 0, "unconverted": [],
        "notes": [], "remarks": [],
    }  # fmt: skip
    assert {name: outcome.json[name] for name in expected} == expected
    assert outcome.json["values"]["is_good"]


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


@pytest.mark.broad
def test_the_command_exits_with_1(dld: Dld, tmp_path: Path) -> None:
    path = models.write(tmp_path, MIXED)
    outcome = dld("convert", "fp16", path, "-o", tmp_path / "o.onnx")
    assert outcome.status == 1
    assert "WRONG VALUES: output y" in outcome.out
    assert "first at Add one: its weight 'w' reaches 7e+04" in outcome.out
    assert f"not written to {tmp_path / 'o.onnx'}" in outcome.out
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    kept = dld("convert", "fp16", path, "-o", tmp_path / "o.onnx", "--keep-wrong")
    assert (kept.status, (tmp_path / "o.onnx").exists()) == (1, True)
    more = ("-o", tmp_path / "p.onnx", "--repair", "--library", "onnxruntime")
    assert "--repair needs --library dld" in dld.fails(2, "convert", "fp16", path, *more)


@pytest.mark.broad
def test_fp16_as_json(dld: Dld, tmp_path: Path) -> None:
    path, out = models.write(tmp_path, models.CHAIN), tmp_path / "out.onnx"
    outcome = dld("convert", "fp16", path, "-o", out, "--keep-io-types", "--json")
    assert (outcome.json["nodes"], outcome.json["casts"], outcome.json["path"]) == (4, 2, str(out))
    assert outcome.json["before"]["weights_by_type"] == {"float32": 24}


def test_precisions_exit_with_1_when_values_are_wrong(dld: Dld, tmp_path: Path) -> None:
    path = models.write(tmp_path, WIDE)
    asked = ("--layer-precision", "one:fp16", "--no-measure", "-o", tmp_path / "o.onnx")
    done = dld("convert", "precisions", path, *asked)
    assert done.status == 1
    assert "first at Mul one" in done.out


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
        path,
        tmp_path / "hard.onnx",
        tmp_path / "soft.onnx",
        tmp_path / "sub" / ".." / path.name,
    )
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


def test_only_what_writes_a_report_offers_several_targets(dld: Dld) -> None:
    assert "repeat it to run" not in dld("convert", "strip", "--help").out
    assert "repeat it to run" in dld("profile", "onnxruntime", "--help").out


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


@pytest.mark.parametrize(
    "words",
    [
        ("fp16",),
        *(
            pytest.param(words, marks=pytest.mark.broad)
            for words in (
                ("fp16", "--library", "onnxruntime"),
                ("precisions", "--layer-precision", "one:fp16"),
                ("tensors", "--to", "float16", "--filter", "w"),
                ("quantize", "--weights-only", "--weights", "int4", "--block", "32"),
            )
        ),
    ],
    ids=" ".join,
)
def test_wrong_results_are_not_written(dld: Dld, tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "in").mkdir()
    is_coarse = words[0] == "quantize"
    path = coarse(tmp_path / "in") if is_coarse else models.write(tmp_path / "in", WIDE)
    out = tmp_path / "out.onnx"
    out.write_bytes(b"what was there")
    asked = ("convert", *words[:1], path, *words[1:], "-o", out, "--force")
    if is_coarse:
        asked += ("--tolerance", "atol=1e-6,rtol=1e-6")
    done = dld(*asked, "--json")
    assert (done.status, done.json["is_written"]) == (1, False)
    assert not done.json["values"]["is_good"]
    assert out.read_bytes() == b"what was there"
    assert "--keep-wrong writes it anyway" in dld(*asked).out
    kept = dld(*asked, "--keep-wrong", "--json")
    assert (kept.status, kept.json["is_written"]) == (1, True)
    onnx.load(out)


def test_a_model_is_not_replaced_by_a_wrong_one(dld: Dld, tmp_path: Path) -> None:
    path = models.write(tmp_path, WIDE)
    before = path.read_bytes()
    assert dld("convert", "fp16", path, "-o", path, "--in-place").status == 1
    assert path.read_bytes() == before
