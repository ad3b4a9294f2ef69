"""The commands of ``dld convert`` other than that of operator versions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.core.conversion.test_fp16 import MIXED
from tests.core.conversion.test_storage import model_file
from tests.support import models
from tests.support.cli import Dld

pytest.importorskip("onnxruntime")

WIDE = """
<ir_version: 10, opset_import: ["" : 18]>
wide (float[4] x) => (float[4] y)
<float[4] w = {1e6, 1e6, 1e6, 1e6}>
{
    [one] a = Mul(x, w)
    [two] y = Neg(a)
}
"""


def test_fp16_tells_what_changed_and_what_is_out_of_range(dld: Dld, tmp_path: Path) -> None:
    path, out = models.write(tmp_path, MIXED), tmp_path / "out.onnx"
    outcome = dld("convert", "fp16", path, "-o", out, "--op-block", "Div", "--range-check",
                  "--values", "never")  # fmt: skip
    assert outcome.status == 0
    assert "4 nodes in float16, 2 weights converted, 2 casts added" in outcome.out
    assert "kept 1 node: Div: blocked" in outcome.out
    assert "w: 1 too large and 1 too small of 3; largest 7e+04" in outcome.out
    assert onnx.load(out).graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.FLOAT16
    assert "the file exists" in dld.fails(2, "convert", "fp16", path, "-o", out)


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


def test_fp16_as_json(dld: Dld, tmp_path: Path) -> None:
    path, out = models.write(tmp_path, models.CHAIN), tmp_path / "out.onnx"
    outcome = dld("convert", "fp16", path, "-o", out, "--keep-io-types", "--json")
    assert (outcome.json["nodes"], outcome.json["casts"], outcome.json["path"]) == (4, 2, str(out))
    assert outcome.json["before"]["weights_by_type"] == {"float32": 24}


def test_tensors_are_listed_and_converted(dld: Dld, tmp_path: Path) -> None:
    path, out = model_file(tmp_path), tmp_path / "out.onnx"
    listed = dld("convert", "tensors", path, "--list", "--filter", "large").out.splitlines()
    assert listed[0].split()[:3] == ["tensor", "kind", "type"]
    assert listed[1].split() == [
        "large", "initializer", "float32", "[4000]", "16", "kB", "0", "0", "976", "1"
    ]  # fmt: skip
    none = dld("convert", "tensors", path, "--list", "--filter", "nothing")
    assert none.out == "no tensor matches\n"
    done = dld("convert", "tensors", path, "-o", out, "--to", "float16", "--filter", "large")
    assert "Cast" in done.out
    assert "an output is needed" in dld.fails(2, "convert", "tensors", path)


def test_precisions_exit_with_1_when_a_layer_cannot(dld: Dld, tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    good = dld("convert", "precisions", path, "--preview", "--layer-precision", "second:fp16")
    assert "1 layer in another precision" in good.out
    bad = dld("convert", "precisions", path, "--preview", "--layer-precision", "second:int8")
    assert bad.status == 1
    assert "int8 needs a scale" in bad.out


def test_precisions_exit_with_1_when_values_are_wrong(dld: Dld, tmp_path: Path) -> None:
    path = models.write(tmp_path, WIDE)
    asked = ("--layer-precision", "one:fp16", "--no-measure", "-o", tmp_path / "o.onnx")
    done = dld("convert", "precisions", path, *asked)
    assert done.status == 1
    assert "first at Mul one" in done.out


def test_weights_out_and_back(dld: Dld, tmp_path: Path) -> None:
    path = model_file(tmp_path)
    outside, inside, bare, whole = (tmp_path / f"{name}.onnx" for name in "abcd")
    assert "moved to a.onnx.data" in dld("convert", "external", path, "-o", outside).out
    assert "moved to the model" in dld("convert", "inline", outside, "-o", inside).out
    assert "taken out; dld convert restore brings" in dld("convert", "strip", path, "-o", bare).out
    dld("convert", "restore", bare, "--weights", path, "-o", whole)
    assert "default: ." not in dld("convert", "restore", "--help").out
    assert inside.read_bytes() == whole.read_bytes() == path.read_bytes()


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
