"""``dld convert io``, ``prepend`` and ``append``: what goes in and comes out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.support import models
from tests.support.cli import Dld
from tests.support.runtime import session_of

pytest.importorskip("onnxruntime")


HEAD = '<ir_version: 7, opset_import: ["" : 13]>\n'
VALUE_OF_A_BRANCH = """g (bool c, float[2] x) => (float[2] y) {
    y = If (c) <
        then_branch = yes () => (float[2] y) { y = Add(x, x) },
        else_branch = no () => (float[2] y) { y = Mul(x, x) }
    > }"""
FLOATS = ("--floats", "float16")


@pytest.mark.parametrize(
    ("text", "words", "changed"),
    [
        (VALUE_OF_A_BRANCH, ("--type", "y=float64"), "y"),
        ("g (float x, float z) => (float y) { y = Add(x, z) }", (*FLOATS, "--of", "both"), "xzy"),
        ("g (float[2] x, float[2] z) => (float[2] y, float[2] z) { y = Add(x, z) }",
         (*FLOATS, "--of", "both"), "xy"),
    ],
    ids=["the name of a value in a branch", "scalars", "an input that is an output stays"],
)  # fmt: skip
def test_what_is_compared_afterwards(
    dld: Dld, tmp_path: Path, text: str, words: tuple[str, ...], changed: str
) -> None:
    model, out = models.write(tmp_path, HEAD + text), tmp_path / "out.onnx"
    found = dld("convert", "io", model, "-o", out, *words, "--json").json
    assert found["values"]["is_good"] is True
    assert {line.partition(":")[0] for line in found["changed"]} == {*changed}


def test_a_model_that_does_not_run_itself_is_no_fault_of_the_result(
    dld: Dld, tmp_path: Path
) -> None:
    text = "g (float[2, 3] x) => (float[a, b] y) <int64[2] s = {2, 2}> { y = Reshape(x, s) }"
    model, out = models.write(tmp_path, HEAD + text), tmp_path / "out.onnx"
    outcome = dld("convert", "io", model, "-o", out, *FLOATS, "--json")
    assert outcome.status == 0, outcome
    assert "a model that it is made of cannot be run" in outcome.json["values"]["skipped"]


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
