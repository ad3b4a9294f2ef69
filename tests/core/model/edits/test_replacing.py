"""Nodes replaced by one node of a plugin, or cut off with all behind them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import onnx
import pytest

from dld_tui.core.errors import EditError
from dld_tui.core.model.document import Document
from dld_tui.core.types import JSON
from tests.support import models
from tests.support.sessions import bytes_of

DETECTOR = """
<ir_version: 8, opset_import: ["" : 17]>
detector (float[1, 8, 4] boxes, float[1, 2, 8] scores) => (int64[n, 3] picked, float[1, 8, 4] all)
<int64[1] most = {5}, float[1] iou = {0.5}> {
  [twice] b = Add(boxes, boxes)
  [flat] s = Sigmoid(scores)
  [limit] threshold = Constant <value = float[1] {0.25}> ()
  [nms] n = NonMaxSuppression(b, s, most, iou, threshold)
  [keep] picked = Identity(n)
  [copy] all = Neg(b)
}
"""


def changed(edit: str, **arguments: Any) -> onnx.ModelProto:
    with closing(Document(models.parse(DETECTOR))) as document:
        before = bytes_of(document)
        document.apply(edit, **arguments)
        after = onnx.ModelProto.FromString(bytes_of(document))
        document.undo()
        assert bytes_of(document) == before
    return after


def replaced(**arguments: Any) -> onnx.ModelProto:
    given = {"scope": [], "nodes": ["nms"], "op_type": "EfficientNMS_TRT", "domain": "trt"}
    return changed("replace_nodes", **given, **arguments)


def names(model: onnx.ModelProto) -> tuple[list[str], list[str], list[str]]:
    graph = model.graph
    return (
        [node.name for node in graph.node],
        [tensor.name for tensor in graph.initializer],
        [info.name for info in graph.output],
    )


def test_a_plugin_with_other_inputs_and_outputs() -> None:
    after = replaced(
        name="nms", inputs=["b", "s"], outputs=["count", "kept"],
        types={"kept": "float32[1, 5, 4]"},
        attributes={"iou": {"kind": "float", "value": 0.5}, "v": {"kind": "string", "value": "1"}},
    )  # fmt: skip
    assert names(after) == (["twice", "flat", "nms", "copy"], [], ["all", "count", "kept"])
    node = after.graph.node[2]
    assert (list(node.input), list(node.output)) == (["b", "s"], ["count", "kept"])
    assert {one.name: one.type for one in node.attribute} == {"iou": 1, "v": 3}
    assert {entry.domain for entry in after.opset_import} == {"", "trt"}
    assert [dim.dim_value for dim in after.graph.output[2].type.tensor_type.shape.dim] == [1, 5, 4]


def test_one_of_the_nodes_may_use_what_another_makes_and_the_new_one_does_not() -> None:
    after = changed(
        "replace_nodes", scope=[], nodes=["twice", "copy"], op_type="P", domain="my",
        name="new", inputs=["boxes"], outputs=["p"],
    )  # fmt: skip
    assert names(after)[::2] == (["new"], ["p"])


def test_by_default_inputs_and_outputs_stay() -> None:
    after = replaced()
    assert names(after)[1:] == (["most", "iou"], ["picked", "all"])
    node = after.graph.node[3]
    assert list(node.input) == ["b", "s", "most", "iou", "threshold"]
    assert list(node.output) == ["n"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"inputs": ["picked"]}, "input 'picked' is computed from the nodes"),
        ({"inputs": ["gone"]}, "gone"),
        ({"outputs": ["a", "a"]}, "two outputs have the same name"),
        ({"outputs": ["boxes"]}, "boxes"),
        ({"types": {"other": "float32"}}, "'other' is no output with a type"),
        ({"attributes": {"k": True}}, "attribute 'k' must have a kind and a value"),
    ],
)
def test_what_a_plugin_cannot_have(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(EditError, match=message):
        replaced(**arguments)


def test_a_detector_without_its_nms() -> None:
    after = changed("cut_off", nodes=["nms"], outputs={"b": "raw_boxes", "s": "raw_scores"})
    assert names(after) == (["twice", "flat", "copy"], [], ["all", "raw_boxes", "raw_scores"])
    assert list(after.graph.node[2].input) == ["raw_boxes"]
    assert names(changed("cut_off", nodes=["nms"])) == (
        ["twice", "flat", "copy"], [], ["all", "b", "s"]
    )  # fmt: skip


def test_an_output_can_be_left_out() -> None:
    after = changed("cut_off", nodes=["nms"], outputs={})
    assert names(after) == (["twice", "copy"], [], ["all"])  # `flat` had no other use


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"nodes": ["twice", "flat"]}, "no output would be left"),
        ({"nodes": ["nms"], "outputs": {"boxes": "x"}}, "'boxes' is not what they take"),
        ({"nodes": ["nms"], "outputs": {"b": "scores"}}, "already a value called 'scores'"),
        ({"nodes": []}, "there are no nodes to cut off"),
    ],
)
def test_what_cannot_be_cut_off(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(EditError, match=message):
        changed("cut_off", **arguments)


def test_plain_attributes_have_the_kind_of_the_operator_or_their_own(tmp_path: Path) -> None:
    with closing(Document.open(models.write(tmp_path, models.CHAIN))) as document:
        document.apply(
            "replace_nodes", nodes=["first"], op_type="Plugin", domain="trt", name="first",
            attributes={"f": 0.25, "i": 2, "s": "1", "fs": [1, 0.5], "is": [1, 2], "ss": ["a"]},
        )  # fmt: skip
        document.apply(
            "insert_node", value="a", op_type="LeakyRelu", name="leak", attributes={"alpha": 1}
        )
        document.apply("set_attributes", changes=[{"nodes": ["leak"], "attributes": {"alpha": 2}}])
        proto = document.main.find("first")
        leak = document.main.find("leak")
        assert proto is not None
        assert leak is not None
        found = {one.name: (one.kind, one.value) for one in proto.attributes()}
        assert found == {
            "f": ("float", 0.25), "i": ("int", 2), "s": ("string", b"1"),
            "fs": ("floats", [1, 0.5]), "is": ("ints", [1, 2]), "ss": ("strings", [b"a"]),
        }  # fmt: skip
        assert [(one.kind, one.value) for one in leak.attributes()] == [("float", 2.0)]
        before = bytes_of(document)
        wrong: tuple[JSON, ...] = (True, [], [1, "a"], {"value": 1}, None)
        for value in wrong:
            with pytest.raises(EditError, match="must have a kind and a value"):
                document.apply(
                    "replace_nodes", nodes=["second"], op_type="P", attributes={"k": value}
                )
        with pytest.raises(EditError, match="Kinds: int, float, string"):
            document.apply("set_attribute", node="first", attribute="k", kind="integer", value=1)
        assert bytes_of(document) == before


def test_nodes_of_the_main_graph_by_name_alone(tmp_path: Path) -> None:
    with closing(Document.open(models.write(tmp_path, models.CHAIN))) as document:
        document.apply("set_precision", nodes=["first", [[], "b"]], precision="fp16")
        marked = [node.name for node in document.main.nodes if node.proto.metadata_props]
        assert marked == ["first", "second"]
        with pytest.raises(EditError, match="names or \\[scope, node\\]"):
            document.apply("set_precision", nodes=[["first"]], precision="fp16")
        with pytest.raises(EditError, match=r"Known: .*prepend_processing"):
            document.apply("prepend", nodes=[])
