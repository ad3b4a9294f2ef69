"""``convert clean``: its options are the passes of the edit, and the result computes the same."""

from __future__ import annotations

from pathlib import Path

import onnx

from tests.support import models
from tests.support.cli import Dld

TWICE = """
<ir_version: 8, opset_import: ["" : 17]>
net (float[2] x) => (float[2] y) <float[2] v = {1, 2}, float[2] w = {1, 2}, float[1] gone = {0}> {
  k = Constant <value = float[2] {7, 8}> ()
  a = Add (x, v)
  b = Mul (a, w)
  y = Sub (b, k)
}
"""


def test_passes_are_options(dld: Dld, tmp_path: Path) -> None:
    path, out = models.write(tmp_path, TWICE), tmp_path / "out.onnx"
    options = ("--share-weights", "--remove-unused", "--constants-to-initializers")
    done = dld("convert", "clean", path, "-o", out, *options, "--json")
    assert done.status == 0
    assert done.json["passes"] == {
        "constants-to-initializers": 1, "share-weights": 1, "remove-unused": 1
    }  # fmt: skip
    assert done.json["values"]["is_good"]
    graph = onnx.load(out).graph
    assert [tensor.name for tensor in graph.initializer] == ["v", "k"]
    assert "at least one pass" in dld.fails(2, "convert", "clean", path, "-o", tmp_path / "no.onnx")


def test_fold(dld: Dld, tmp_path: Path) -> None:
    text = TWICE.replace("a = Add (x, v)", "[s] s = Add (v, w) [a] a = Add (x, s)")
    path, out = models.write(tmp_path, text), tmp_path / "out.onnx"
    done = dld("convert", "fold", path, "-o", out, "--node", "s", "--json")
    assert (done.status, done.json["values"]["is_good"]) == (0, True)
    assert done.json["folded"] == "fold 's' to 's'"
    assert [tensor.name for tensor in onnx.load(out).graph.initializer] == ["w", "gone", "s"]
    told = dld.fails(3, "convert", "fold", path, "-o", tmp_path / "no.onnx", "--node", "a")
    assert "node 'a' (Add) depends on input 'x'" in told
