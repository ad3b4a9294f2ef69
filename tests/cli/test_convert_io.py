"""``dld convert io``, ``prepend`` and ``append``: what goes in and comes out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support import models
from tests.support.cli import Dld
from tests.support.runtime import session_of

pytest.importorskip("onnxruntime")


HEAD = '<ir_version: 7, opset_import: ["" : 13]>\n'
FLOATS = ("--floats", "float16")


def test_a_model_that_does_not_run_itself_is_no_fault_of_the_result(
    dld: Dld, tmp_path: Path
) -> None:
    text = "g (float[2, 3] x) => (float[a, b] y) <int64[2] s = {2, 2}> { y = Reshape(x, s) }"
    model, out = models.write(tmp_path, HEAD + text), tmp_path / "out.onnx"
    outcome = dld("convert", "io", model, "-o", out, *FLOATS, "--json")
    assert outcome.status == 0, outcome
    assert "a model that it is made of cannot be run" in outcome.json["values"]["skipped"]


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
