from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from dld_tui.core.model.document import Document
from dld_tui.core.model.document.serialise import skeleton_bytes, snapshot
from tests.core.model.shapes.test_staleness import TYPED
from tests.support import models
from tests.support.conversions import NESTED


def parsed(document: Document) -> onnx.ModelProto:
    return onnx.ModelProto.FromString(b"".join(snapshot(document)))


@pytest.mark.parametrize("text", [models.CHAIN, models.BRANCHES, models.FUNCTIONS, NESTED, TYPED])
def test_it_is_the_model_at_all_levels(text: str) -> None:
    model = models.parse(text)
    before = model.SerializeToString(deterministic=True)
    document = Document(models.parse(text))

    assert parsed(document).SerializeToString(deterministic=True) == before
    # Nothing was put into the messages for it.
    assert skeleton_bytes(document) == onnx.ModelProto.FromString(before).SerializeToString()


def test_nodes_without_content_keep_their_place() -> None:
    model = models.parse(models.CHAIN)
    model.graph.node.insert(1, onnx.NodeProto())
    document = Document(model)

    assert [node.op_type for node in parsed(document).graph.node][:3] == ["Relu", "", "Add"]


def test_several_bodies_of_one_attribute() -> None:
    model = models.parse(models.CHAIN)
    attribute = model.graph.node[0].attribute.add(name="bodies", type=onnx.AttributeProto.GRAPHS)
    for name in ("one", "two"):
        attribute.graphs.add(name=name).node.add(op_type=f"Op{name}")
    document = Document(model)

    graphs = parsed(document).graph.node[0].attribute[0].graphs
    assert [(g.name, g.node[0].op_type) for g in graphs] == [("one", "Opone"), ("two", "Optwo")]


def test_doubtful_declarations_are_left_out() -> None:
    document = Document(models.parse(TYPED))
    document.main.touched = {"b"}

    assert [info.name for info in parsed(document).graph.value_info] == ["a", "other"]


def test_every_step_is_small() -> None:
    nodes = [onnx.helper.make_node("Relu", [f"v{i}"], [f"v{i + 1}"]) for i in range(2_000)]
    body = onnx.helper.make_graph(nodes, "body", [], [])
    whole = onnx.helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=body)
    graph = onnx.helper.make_graph([*nodes, whole], "big", [], [])
    document = Document(onnx.helper.make_model(graph))

    steps = list(snapshot(document))
    assert len(steps) > 30  # 6,000 nodes, 200 a step
    assert onnx.ModelProto.FromString(b"".join(steps)).graph.node[-1].op_type == "If"


def test_payloads_stay_cut_out(tmp_path: Path) -> None:
    weight = onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT, [100_000], b"\1" * 400_000, True)
    model = models.parse(models.CHAIN)
    model.graph.initializer.append(weight)
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    document = Document.open(path)

    assert sum(len(part) for part in snapshot(document)) < 2_000
    document.close()
