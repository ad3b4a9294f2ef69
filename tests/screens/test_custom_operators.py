"""Plugins of TensorRT put into a model by keyboard, and by the edit script that this gives."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import onnx
import pytest

from dld_tui.core.model.document import Document
from dld_tui.core.model.document.scripting.scripts import export_script, parse_script, replay
from tests.core.model.edits.test_replacing import DETECTOR
from tests.support import models
from tests.support.sessions import bytes_of
from tests.support.workspace import NARROW, Session, opened

OTHERS = """
<ir_version: 8, opset_import: ["" : 17]>
net (float[1, 4, 8, 8] x) => (float[1, 4, 8, 8] y)
<float[4] scale = {1, 1, 1, 1}, float[4] shift = {0, 0, 0, 0}> {
  [norm] a = InstanceNormalization <epsilon = 0.001> (x, scale, shift)
  [pad] y = Identity(a)
}
"""
BATCHED = (
    "shareLocation=true, backgroundLabelId=-1, numClasses=2, topK=100, keepTopK=10,"
    " scoreThreshold=0.25, iouThreshold=0.5, isNormalized=true, clipBoxes=false, scoreBits=16,"
    " plugin_version='1'"
)
REPLACED: list[tuple[str, str, list[str], dict[str, Any]]] = [
    (DETECTOR, "nms", ["trt.EfficientNMS_TRT", "b, s",
                       "num: int32[1,1], kept: float32[1,5,4], sure: f32[1,5], kinds: i32[1,5]",
                       "score_threshold=0.25, box_coding=0, plugin_version='1'"],
     {"score_threshold": 0.25, "box_coding": 0, "plugin_version": b"1"}),
    (DETECTOR, "nms", ["BatchedNMS_TRT", "b, s", "num, kept, sure, kinds", BATCHED],
     {"shareLocation": 1, "backgroundLabelId": -1, "numClasses": 2, "topK": 100, "keepTopK": 10,
      "scoreThreshold": 0.25, "iouThreshold": 0.5, "isNormalized": 1, "clipBoxes": 0,
      "scoreBits": 16, "plugin_version": b"1"}),
    (OTHERS, "pad", ["circ.pad.plugins.CircPadPlugin", "a", "y",
                     "pads=[1, 1, 1, 1], plugin_namespace=''"],
     {"pads": [1, 1, 1, 1], "plugin_namespace": b""}),
]  # fmt: skip
"""A model, the node that is replaced, the fields of the dialog, and the attributes."""


def attributes(node: onnx.NodeProto) -> dict[str, Any]:
    return {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}


async def fill(session: Session, fields: list[str]) -> None:
    for number, text in enumerate(fields):
        await session.press(*(["tab"] if number else []), "ctrl+a", "ctrl+u", "ctrl+k")
        await session.type(text)
    await session.press("enter")


def replayed(text: str, document: Document, folder: Path) -> bytes:
    """Return what the script of the edits of a document makes of the model."""
    script = folder / "edits.jsonl"
    export_script(document, script, overwrite=True)
    with closing(Document(models.parse(text))) as other:
        result = replay(other, parse_script(script.read_text(), where="here"))
        assert not result.refused, (result.refused, script.read_text())
        return bytes_of(other)


@pytest.mark.broad
@pytest.mark.parametrize("row", REPLACED, ids=lambda row: row[2][0])
async def test_a_plugin_for_a_node(tmp_path: Path, row: tuple[Any, ...]) -> None:
    text, node, fields, expected = row
    async with opened(models.write(tmp_path, text), NARROW) as session:
        document = session.screen.document
        await session.go(node)
        session.screen.functions.replace_by_custom()
        await session.pilot.pause()
        await fill(session, fields)
        after = onnx.ModelProto.FromString(bytes_of(document))
        found = next(one for one in after.graph.node if one.name == node)
        domain, _, op_type = fields[0].rpartition(".")
        assert (found.domain, found.op_type) == (domain, op_type)
        assert [*found.input] == fields[1].split(", ")
        assert [*found.output] == [part.split(":")[0] for part in fields[2].split(", ")]
        assert {name: pytest.approx(value) for name, value in expected.items()} == attributes(found)
        assert domain in {entry.domain for entry in after.opset_import}
        assert replayed(text, document, tmp_path) == bytes_of(document)


async def test_another_operator_in_place(tmp_path: Path) -> None:
    async with opened(models.write(tmp_path, OTHERS), NARROW) as session:
        document = session.screen.document
        await session.go("norm")
        session.screen.functions.set_operator()
        await session.pilot.pause()
        kinds = (
            "relu=1, alpha=0.5, mode=fast, sizes=[1, 2], factors=[0.5], names=['a'], t=int64 [3]"
        )
        await session.press("ctrl+a", "ctrl+u", "ctrl+k")
        await session.type("trt.InstanceNormalization_TRT")
        await session.press("tab", "tab")
        await session.type(kinds)
        await session.press("enter")
        after = onnx.ModelProto.FromString(bytes_of(document))
        node = after.graph.node[0]
        found = attributes(node)
        assert (node.domain, node.op_type) == ("trt", "InstanceNormalization_TRT")
        assert onnx.numpy_helper.to_array(found.pop("t")).tolist() == [3]
        assert found.pop("epsilon") == pytest.approx(0.001)
        assert found == {"relu": 1, "alpha": 0.5, "mode": b"fast", "sizes": [1, 2],
                         "factors": [0.5], "names": [b"a"]}  # fmt: skip
        assert "3 InstanceNormalization_TRT" in session.text
        assert "trt" in {entry.domain for entry in after.opset_import}
        assert replayed(OTHERS, document, tmp_path) == bytes_of(document)


@pytest.mark.broad
async def test_a_new_plugin_is_added(tmp_path: Path) -> None:
    async with opened(models.write(tmp_path, OTHERS), NARROW) as session:
        document = session.screen.document
        await session.go("pad")
        await session.press("a")
        await session.type("trt.Split_TRT")
        await session.press("enter", "f5")
        added = next(node for node in document.main.nodes if node.op_type == "Split_TRT")
        assert (added.domain, added.inputs) == ("trt", ("y",))
        assert document.opset_imports["trt"] == 1
        session.screen.functions.add_attribute()
        await session.pilot.pause()
        await session.type("sizes")
        await session.press("tab", "tab")
        await session.type("[2, 2]")
        await session.press("enter")
        assert attributes(added.proto) == {"sizes": [2, 2]}
        assert replayed(OTHERS, document, tmp_path) == bytes_of(document)
