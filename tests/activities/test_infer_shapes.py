from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest

from dld_tui.activities.infer_shapes import Request, run
from dld_tui.core.document.document import Document
from dld_tui.core.errors import ActivityError, InputError
from dld_tui.core.events import Finished, Progress
from dld_tui.targets.local import LocalTarget
from tests.support import models

NESTED = """
<ir_version: 10, opset_import: ["" : 18]>
nested (float[N, 4] x, bool c) => (float[N, K] y)
{
    z = Relu(x)
    [choose] y = If (c) <
        then_branch = yes () => (float[a, b] t) {
            [again] t = If (c) <
                then_branch = deep () => (float[a, b] d) { q = Abs(z) d = Neg(q) },
                else_branch = flat () => (float[a, b] e) { e = Identity(z) }
            >
        },
        else_branch = no () => (float[a, b] f) { f = Transpose(z) }
    >
    s = SequenceConstruct(x, z)
    u = com.example.Unknown(x)
}
"""


def infer(path: Path) -> dict[str, Any]:
    *steps, last = run(Request(path))
    assert all(isinstance(step, Progress) for step in steps)
    assert isinstance(last, Finished)
    scopes = last.result["scopes"]
    assert isinstance(scopes, dict)
    return scopes


def test_the_main_graph(tmp_path: Path) -> None:
    scopes = infer(models.write(tmp_path, models.CHAIN))

    assert scopes == {"[]": {name: ["float32", ["N", 4]] for name in ("a", "b", "c", "y")}}


def test_subgraphs_to_any_depth_by_the_paths_of_their_scopes(tmp_path: Path) -> None:
    path = models.write(tmp_path, NESTED)
    scopes = infer(path)

    document = Document.open(path)
    assert set(scopes) == {
        "[]",
        '["choose:then_branch"]',
        '["choose:then_branch", "again:then_branch"]',
        '["choose:then_branch", "again:else_branch"]',
        '["choose:else_branch"]',
    }
    for scope in document.scopes():
        assert scope.path == () or scope.path[0].startswith("choose:")
    document.close()
    assert scopes["[]"]["z"] == ["float32", ["N", 4]]
    assert scopes["[]"]["s"] == ["float32", ["N", 4], "sequence"]
    assert "u" not in scopes["[]"]
    assert scopes['["choose:then_branch", "again:then_branch"]']["q"] == ["float32", ["N", 4]]
    assert scopes['["choose:else_branch"]']["f"] == ["float32", [4, "b"]]


def test_sizes_that_are_computed_are_followed(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 18]>
        g (float[2, 3] x) => (float[a, b] y) <int64[1] one = {1}>
        { s = Shape(x) r = Add(s, one) y = Expand(x, r) n = ConstantOfShape(r) }"""

    assert infer(models.write(tmp_path, text))["[]"]["n"] == ["float32", [3, 4]]


def test_payloads_are_not_needed(tmp_path: Path) -> None:
    model = models.parse(models.CHAIN)
    weight = model.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.ClearField("float_data")
    weight.data_location = onnx.TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="absent.bin")
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())

    assert infer(path)["[]"]["b"] == ["float32", ["N", 4]]


def test_what_inference_refuses_is_said_in_a_short_line(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 18]>
        g (float[2] x) => (float[3] y) { y = Relu(x) }"""
    model = models.parse(text)
    model.graph.node[0].name = "long " * 1000
    del model.opset_import[:]
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())

    with pytest.raises(ActivityError) as caught:
        infer(path)
    assert caught.value.where == str(path)
    assert "shape inference stopped" in caught.value.message
    assert len(caught.value.message) <= 530
    assert "\n" not in caught.value.message


def test_what_is_not_a_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_text("<html>")
    with pytest.raises(InputError):
        infer(path)


def test_as_a_job(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.BRANCHES)
    with LocalTarget().start("infer_shapes", {"model": str(path)}) as job:
        result = job.result()

    scopes = result["scopes"]
    assert isinstance(scopes, dict)
    assert len(scopes) == 3
