"""``dld convert opset``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.core.conversion.test_opset import OLD
from tests.support import models
from tests.support.cli import Dld


def test_the_report_and_the_file(dld: Dld, tmp_path: Path) -> None:
    path, out = models.write(tmp_path, OLD), tmp_path / "out.onnx"
    outcome = dld("convert", "opset", path, "-o", out, "--to", 18)

    assert outcome.status == 0
    assert outcome.out.splitlines()[:3] == [
        "opset 12 to 18: 3 changed, 3 added",
        "  changed  ReduceSum  3",
        "  added    Constant   3",
    ]
    assert "all outputs are within the tolerance (atol " in outcome.out
    assert onnx.load(out).opset_import[0].version == 18
    onnx.checker.check_model(out, full_check=True)


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


NEW = """
<ir_version: 10, opset_import: ["" : 18]>
new (float[1, 1, 4, 4] x, float[1, 4, 4, 2] grid) => (float[1, 1, 4, 4] y)
{
    [only] y = GridSample(x, grid)
}
"""
"""Of an operator that came with opset 16 and can be written by no older ones."""


def test_refusals_are_one_line(dld: Dld, tmp_path: Path) -> None:
    path, out = models.write(tmp_path, NEW), tmp_path / "out.onnx"
    line = dld.fails(5, "convert", "opset", path, "-o", out, "--to", 12)
    assert "GridSample" in line
    assert str(path) in line
    assert not out.exists()
    assert "the least is 1" in dld.fails(2, "convert", "opset", path, "-o", out, "--to", 0)
    assert "not known" in dld.fails(5, "convert", "opset", path, "-o", out, "--to", 999)
    dld.fails(3, "convert", "opset", tmp_path / "absent.onnx", "-o", out, "--to", 18)


def test_a_part_that_could_not_be_converted_is_status_one(dld: Dld, tmp_path: Path) -> None:
    newer = '{ o = Einsum <equation = "ij->i"> (v) }'
    text = f'{OLD}<domain: "acme", opset_import: ["" : 12]> Dead (v) => (o) {newer}'
    path, out = models.write(tmp_path, text), tmp_path / "o.onnx"
    outcome = dld("convert", "opset", path, "-o", out, "--to", 11, "--no-verify")
    assert outcome.status == 1
    assert "not converted: function acme:Dead" in outcome.out


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


def test_a_function_that_stands_in_the_way_is_named(dld: Dld, tmp_path: Path) -> None:
    text = OLD.replace("[gemm]", 'dead = Einsum <equation = "ij->i"> (n) [gemm]')
    path, out = models.write(tmp_path, text), tmp_path / "o.onnx"
    line = dld.fails(5, "convert", "opset", path, "-o", out, "--to", 11)
    assert "Einsum does not exist in opset 11" in line
    assert not out.exists()


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
