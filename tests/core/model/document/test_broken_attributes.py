"""What an edit does not touch is written as it was, in broken models too."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.helper as oh
import pytest

from dld_tui.core.model.document import Document
from dld_tui.core.model.document.serialise import save
from dld_tui.core.model.document.transactions import SetAttribute, Transaction
from tests.support.sessions import bytes_of


def body(name: str, operator: str) -> onnx.GraphProto:
    out = oh.make_tensor_value_info(name, onnx.TensorProto.BOOL, [])
    return oh.make_graph([oh.make_node(operator, ["c"], [name])], f"g_{name}", [], [out])


def broken(folder: Path) -> Path:
    """Write a model whose node has two bodies, a list of them and one that is not there."""
    node = oh.make_node("If", ["c"], ["o"], name="choose")
    for graph in (body("a", "Identity"), body("b", "Not")):
        node.attribute.append(oh.make_attribute("then_branch", graph))
    node.attribute.append(onnx.AttributeProto(name="missing", type=onnx.AttributeProto.GRAPH))
    node.attribute.append(oh.make_attribute("then_branch", [body("d", "Not"), body("e", "Not")]))
    node.attribute.append(oh.make_attribute("then_branch", 3))
    info = oh.make_tensor_value_info("c", onnx.TensorProto.BOOL, [])
    graph = oh.make_graph([node], "g", [info], [])
    path = folder / "broken.onnx"
    path.write_bytes(oh.make_model(graph).SerializeToString())
    return path


def test_attributes_of_one_name_and_one_without_a_graph_stay(tmp_path: Path) -> None:
    path = broken(tmp_path)
    document = Document.open(path)
    assert bytes_of(document) == path.read_bytes()
    document.apply("set_doc_string", scope=[], text="kept?")
    save(document, tmp_path / "out.onnx")
    saved = onnx.load(tmp_path / "out.onnx")
    assert saved.graph.doc_string == "kept?"
    saved.graph.ClearField("doc_string")
    assert saved.SerializeToString() == path.read_bytes()


@pytest.mark.parametrize("removed", range(5))
def test_an_attribute_is_changed_beside_others_of_its_name(tmp_path: Path, removed: int) -> None:
    document = Document.open(broken(tmp_path))
    before = bytes_of(document)
    wanted = onnx.ModelProto.FromString(before)
    node = document.main.nodes[0]
    # By a primitive: an edit finds the first of a name only.
    transaction = Transaction("raw", {})
    transaction.do(SetAttribute(node, removed, node.proto.attribute[removed], None))
    del wanted.graph.node[0].attribute[removed]
    assert bytes_of(document) == wanted.SerializeToString()
    transaction.roll_back()
    assert bytes_of(document) == before
