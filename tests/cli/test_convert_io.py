"""``dld convert io``: types and layouts of inputs and outputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.support import models
from tests.support.cli import Dld
from tests.support.runtime import session_of

pytest.importorskip("onnxruntime")


def test_converted_and_verified(dld: Dld, tmp_path: Path) -> None:
    model, out = models.write(tmp_path, models.IMAGE), tmp_path / "out.onnx"
    outcome = dld(
        "convert", "io", model, "-o", out, "--images", "nhwc", "--type", "y=float16",
        "--layout", "z=0,2,3,1", "--json",
    )  # fmt: skip
    assert outcome.status == 0, outcome
    assert outcome.json["changed"] == [
        "y: float32[batch, 4, 5, 3] → float16[batch, 4, 5, 3]",
        "x: float32[batch, 3, 4, 5] → float32[batch, 4, 5, 3]",
        "z: float32[batch, 3, 4, 5] → float32[batch, 4, 5, 3]",
    ]
    assert outcome.json["values"]["is_good"] is True
    onnx.checker.check_model(onnx.load(out), full_check=True)


BRANCHES = """
<ir_version: 7, opset_import: ["" : 13]>
g (bool c, float[2] x) => (float[2] y)
{
    y = If (c) <
        then_branch = yes () => (float[2] y) { y = Add(x, x) },
        else_branch = no () => (float[2] y) { y = Mul(x, x) }
    >
}
"""
FITS_NOTHING = """
<ir_version: 7, opset_import: ["" : 13]>
g (float[2, 3] x) => (float[a, b] y) <int64[2] s = {2, 2}> { y = Reshape(x, s) }
"""


def test_an_output_with_the_name_of_a_value_in_a_branch(dld: Dld, tmp_path: Path) -> None:
    model, out = models.write(tmp_path, BRANCHES), tmp_path / "out.onnx"
    command = ("convert", "io", model, "-o", out, "--type", "y=float64", "--json")
    assert dld(*command).json["values"]["is_good"] is True


def test_a_model_that_does_not_run_itself_is_no_fault_of_the_result(
    dld: Dld, tmp_path: Path
) -> None:
    model, out = models.write(tmp_path, FITS_NOTHING), tmp_path / "out.onnx"
    outcome = dld("convert", "io", model, "-o", out, "--floats", "float16", "--json")
    assert outcome.status == 0, outcome
    assert "a model that it is made of cannot be run" in outcome.json["values"]["skipped"]


def test_scalars_stay_scalars_where_values_are_compared(dld: Dld, tmp_path: Path) -> None:
    text = """<ir_version: 7, opset_import: ["" : 13]>
        g (float x, float z) => (float y) { y = Add(x, z) }"""
    model, out = models.write(tmp_path, text), tmp_path / "out.onnx"
    command = ("convert", "io", model, "-o", out, "--floats", "float16", "--of", "both", "--json")
    assert dld(*command).json["values"]["is_good"] is True


def test_an_input_that_is_an_output_stays_as_it_is(dld: Dld, tmp_path: Path) -> None:
    text = """<ir_version: 7, opset_import: ["" : 13]>
        g (float[2] x, float[2] z) => (float[2] y, float[2] z) { y = Add(x, z) }"""
    model, out = models.write(tmp_path, text), tmp_path / "out.onnx"
    command = ("convert", "io", model, "-o", out, "--floats", "float16", "--of", "both", "--json")
    assert [line.partition(":")[0] for line in dld(*command).json["changed"]] == ["x", "y"]


@pytest.mark.broad
def test_an_input_with_a_sparse_default_stays_as_it_is(dld: Dld, tmp_path: Path) -> None:
    model = models.parse("""<ir_version: 8, opset_import: ["" : 13]>
        g (float[2] x, float[2] w) => (float[2] y) { y = Add(x, w) }""")
    values = onnx.numpy_helper.from_array(np.array([3], np.float32), "w")
    places = onnx.numpy_helper.from_array(np.array([1]), "places")
    sparse = onnx.helper.make_sparse_tensor(values, places, [2])
    model.graph.sparse_initializer.append(sparse)
    path, out = tmp_path / "model.onnx", tmp_path / "out.onnx"
    onnx.save(model, path)
    commands = (
        ("convert", "io", path, "--floats", "float16"), ("convert", "fp16", path),
        ("convert", "shape", path, "--dim", "x:0=N"),
    )  # fmt: skip
    statuses = [dld(*command, "-o", out, "--force").status for command in commands[:2]]
    assert statuses == [0, 0]
    assert "does not run with x:0" in dld.fails(5, *commands[2], "-o", out, "--force")


TWICE = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 4] x) => (float[2, 4] y, float[2, 4] y) { y = Relu(x) }
"""


def test_an_output_that_is_named_twice_stays_one_value(dld: Dld, tmp_path: Path) -> None:
    model, out = models.write(tmp_path, TWICE), tmp_path / "out.onnx"
    command = ("convert", "io", model, "-o", out, "--of", "both")
    outcome = dld(*command, "--floats", "float16", "--layout", "y=1,0", "--json")
    assert (outcome.status, outcome.json["values"]["is_good"]) == (0, True), outcome
    x = np.linspace(-1, 1, 8, dtype=np.float16).reshape(2, 4)
    found = session_of(out).run(None, {"x": x})
    assert [one.dtype for one in found] == [np.float16, np.float16]
    assert all(np.array_equal(one, np.maximum(x, 0).T) for one in found)
    behind = tmp_path / "behind.onnx"
    assert dld("append", model, "-o", behind, "--step", "argmax").status == 0
    first, second = session_of(behind).run(None, {"x": x.astype(np.float32)})
    assert first.tolist() == second.tolist() == np.maximum(x, 0).argmax(-1).tolist()
