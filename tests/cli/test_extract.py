from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from tests.support import models
from tests.support.cli import Dld

COMMAS = """
<ir_version: 10, opset_import: ["" : 18]>
commas (float[4] x) => (float[4] y)
{
    [one] a = Relu(x)
    [two] b = Neg(a)
    [three] y = Abs(b)
}
"""


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "part.onnx"


def load(path: Path) -> onnx.ModelProto:
    found = onnx.load(path)
    onnx.checker.check_model(found, full_check=True)
    return found


def test_names_with_commas(dld: Dld, tmp_path: Path, output: Path) -> None:
    text = models.parse(COMMAS)
    text.graph.node[1].name = "two,2"
    path = tmp_path / "commas.onnx"
    onnx.save(text, path)
    dld("extract", path, "-o", output, "--nodes", "two,2", "--nodes", "three")
    assert [node.name for node in load(output).graph.node] == ["two,2", "three"]
    dld("extract", path, "-o", output, "--nodes", "one,two,2,three", "--force")
    assert [node.name for node in load(output).graph.node] == ["one", "two,2", "three"]
