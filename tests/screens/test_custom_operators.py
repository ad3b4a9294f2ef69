"""Plugins of TensorRT put into a model by keyboard, and by the edit script that this gives."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import onnx
import pytest

from dld_tui.core.model.document import Document
from dld_tui.core.model.document.scripting.scripts import export_script, parse_script, replay
from tests.support import models
from tests.support.sessions import bytes_of
from tests.support.workspace import NARROW, Session, opened

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

OTHERS = """
<ir_version: 8, opset_import: ["" : 17]>
net (float[1, 4, 8, 8] x) => (float[1, 4, 8, 8] y)
<float[4] scale = {1, 1, 1, 1}, float[4] shift = {0, 0, 0, 0}> {
  [norm] a = InstanceNormalization <epsilon = 0.001> (x, scale, shift)
  [pad] y = Identity(a)
}
"""


def attributes(node: onnx.NodeProto) -> dict[str, Any]:
    return {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}


async def fill(session: Session, *fields: str) -> None:
    for text in fields:
        await session.retype(text, "tab" if text is not fields[-1] else "enter")


def is_replayed(text: str, document: Document, folder: Path) -> bool:
    """Return whether the script of the edits of a document makes the same of the model."""
    script = folder / "edits.jsonl"
    export_script(document, script, overwrite=True)
    with closing(Document(models.parse(text))) as other:
        assert not replay(other, parse_script(script.read_text(), where="here")).refused
        return bytes_of(other) == bytes_of(document)


@pytest.mark.broad
@pytest.mark.parametrize(
    ("text", "name", "fields", "expected"),
    [
        (DETECTOR, "nms", ["trt.EfficientNMS_TRT", "b, s",
                           "num: int32[1,1], kept: float32[1,5,4], sure: f32[1,5], kinds: i32[1,5]",
                           "score_threshold=0.25, box_coding=0, plugin_version='1'"],
         {"score_threshold": 0.25, "box_coding": 0, "plugin_version": b"1"}),
        (OTHERS, "pad", ["circ.pad.plugins.CircPadPlugin", "a", "y",
                         "pads=[1, 1, 1, 1], clip=false, plugin_namespace=''"],
         {"pads": [1, 1, 1, 1], "clip": 0, "plugin_namespace": b""}),
    ],
    ids=["with types", "of a namespace"],
)  # fmt: skip
async def test_a_plugin_for_a_node(
    tmp_path: Path, text: str, name: str, fields: list[str], expected: dict[str, Any]
) -> None:
    async with opened(models.write(tmp_path, text), NARROW) as session:
        document = session.screen.document
        await session.go(name)
        session.screen.functions.replace_by_custom()
        await session.pilot.pause()
        await fill(session, *fields)
        after = onnx.ModelProto.FromString(bytes_of(document))
        found = next(one for one in after.graph.node if one.name == name)
        domain, _, op_type = fields[0].rpartition(".")
        assert (found.domain, found.op_type) == (domain, op_type)
        assert [*found.input] == fields[1].split(", ")
        assert [*found.output] == [part.split(":")[0] for part in fields[2].split(", ")]
        assert attributes(found) == pytest.approx(expected)
        assert domain in {entry.domain for entry in after.opset_import}
        assert is_replayed(text, document, tmp_path)


async def test_another_operator_in_place(tmp_path: Path) -> None:
    async with opened(models.write(tmp_path, OTHERS), NARROW) as session:
        document = session.screen.document
        node = await session.go("norm")
        session.screen.functions.set_operator()
        await session.pilot.pause()
        await session.retype("trt.InstanceNormalization_TRT", "tab", "tab")
        await session.type(
            "relu=1, alpha=0.5, mode=fast, sizes=[1, 2], factors=[0.5], names=['a'], t=int64 [3]",
            "enter",
        )
        found = attributes(node.proto)
        assert (node.domain, node.op_type) == ("trt", "InstanceNormalization_TRT")
        assert onnx.numpy_helper.to_array(found.pop("t")).tolist() == [3]
        assert found.pop("epsilon") == pytest.approx(0.001)
        assert found == {"relu": 1, "alpha": 0.5, "mode": b"fast", "sizes": [1, 2],
                         "factors": [0.5], "names": [b"a"]}  # fmt: skip
        assert "3 InstanceNormalization_TRT" in session.text
        assert "trt" in document.opset_imports
        assert is_replayed(OTHERS, document, tmp_path)


@pytest.mark.broad
async def test_a_new_plugin_with_attributes_is_added(tmp_path: Path) -> None:
    async with opened(models.write(tmp_path, OTHERS)) as session:
        document = session.screen.document
        await session.go("pad", "a")
        await session.type("trt.Split_TRT", "enter", "f5")
        added = next(node for node in document.main.nodes if node.op_type == "Split_TRT")
        assert (added.domain, added.inputs) == ("trt", ("y",))
        assert document.opset_imports["trt"] == 1
        for name, kind, text in (
            ("sizes", [], "[2, 2]"), ("table", ["right"] * 8, "float32 [9]; 4 = 1.5")
        ):  # fmt: skip
            await session.press("ctrl+p", *"add attribute", "enter")
            await session.type(name, "tab", *kind, "tab")
            await session.type(text, "enter")
        assert attributes(added.proto)["sizes"] == [2, 2]
        assert is_replayed(OTHERS, document, tmp_path)
        sparse = added.attribute("table")
        assert sparse is not None
        assert (sparse.kind, list(sparse.value.dims)) == ("sparse_tensor", [9])
        await session.row("table")
        assert any("sparse float32[9], 1 element" in row for row in session.details)
        await session.press("e")
        await session.shows("4 = 1.5")
        await session.press("escape", "\\")
        assert added.attribute("table") is None
