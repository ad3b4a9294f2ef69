"""Opening, looking around, and the file coming back byte for byte."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.helper as oh
import onnx.numpy_helper
import pytest

from dld_tui.core.errors import CorruptFileError, EditError, InputError
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.scope import visible_values
from dld_tui.core.model.document.serialise import save
from dld_tui.core.model.document.transactions import SetAttribute, Transaction
from tests.support import models
from tests.support.sessions import bytes_of, tensor_in


def test_every_field_of_a_rich_model_comes_back(tmp_path: Path) -> None:
    model = models.parse(models.BRANCHES)
    graph = model.graph
    model.metadata_props.add(key="k", value="v")
    graph.metadata_props.add(key="g", value="v")
    graph.doc_string = "doc"
    graph.quantization_annotation.add(tensor_name="a").quant_parameter_tensor_names.add(
        key="SCALE_TENSOR", value="s"
    )
    graph.value_info.add(name="a").type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    weights = np.arange(5000, dtype=np.float32)
    graph.initializer.append(onnx.numpy_helper.from_array(weights, "big"))
    graph.sparse_initializer.add().values.name = "sparse"
    model.training_info.add().algorithm.node.add(op_type="Relu", input=["a"], output=["t"])
    graph.MergeFromString(b"\xfa\x3f\x02hi")  # a field of a newer version, number 1023
    model.MergeFromString(b"\xfa\x3f\x02ho")
    path = tmp_path / "rich.onnx"
    path.write_bytes(model.SerializeToString())
    document = Document.open(path)
    assert len(document.blobs) == 1
    assert bytes_of(document) == path.read_bytes()
    tensor = tensor_in(document, "big")
    np.testing.assert_array_equal(tensor.read(), weights)
    np.testing.assert_array_equal(tensor.read(4000, 10), weights[4000:4010])


def test_refs_name_nodes_without_or_with_shared_names() -> None:
    model = models.parse(models.CHAIN)
    model.graph.node[0].name = ""
    model.graph.node[1].name = model.graph.node[2].name = "same"
    model.graph.node[2].output[0] = "b"
    nodes = Document(model).main.nodes
    assert [node.ref for node in nodes] == [">a", "#1", "#2", "last"]
    assert all(node.scope.find(node.ref) is node for node in nodes)


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (b"", InputError, "File is empty (0 bytes)"),
        (b"\x08\x08", InputError, "Model has no graph"),
        (b"PK\x03\x04" + b"\0" * 40, InputError, "ZIP"),
    ],
)
def test_what_is_not_a_model_is_refused_in_one_line(
    tmp_path: Path, data: bytes, error: type[Exception], message: str
) -> None:
    path = tmp_path / "bad.onnx"
    path.write_bytes(data)
    with pytest.raises(error, match=message.replace("(", r"\(").replace(")", r"\)")):
        Document.open(path)


def test_a_truncated_model_is_refused_with_a_position(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CorruptFileError, match="byte"):
        Document.open(path)


def test_names_that_are_not_utf8_survive_edits_and_undo(tmp_path: Path) -> None:
    model = models.parse(models.CHAIN)
    model.graph.node[0].MergeFromString(b"\x1a\x05\xff\xfeBAD")
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    document = Document.open(path)
    node = document.main.nodes[0]
    assert node.name == "\udcff\udcfeBAD"
    document.apply("rename_node", scope=[], node=node.ref, name="good")
    assert node.name == "good"
    document.undo()
    assert bytes_of(document) == path.read_bytes()


def test_saving_streams_payloads_and_re_points_them(tmp_path: Path) -> None:
    model = models.parse(models.CHAIN)
    weights = np.arange(4096, dtype=np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "big"))
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    document = Document.open(path)
    document.apply("rename_node", scope=[], node="first", name="a much longer name than before")
    assert [document.dirty] == [True]
    save(document)
    assert (document.dirty, document.changed_on_disk()) == (False, False)
    saved = onnx.load(path)
    assert saved.graph.node[0].name == "a much longer name than before"
    np.testing.assert_array_equal(tensor_in(document, "big").read(), weights)
    document.undo()
    save(document)
    assert path.read_bytes() == model.SerializeToString()


def test_an_edit_after_a_saved_one_was_undone_can_be_saved(tmp_path: Path) -> None:
    document = Document.open(models.write(tmp_path, models.CHAIN))
    found = []
    for step in ("first", "save", "undo", "redo", "undo", "second", "save", "undo", "redo"):
        if step in ("undo", "redo"):
            getattr(document, step)()
        elif step == "save":
            save(document)
        else:
            document.apply(
                "rename_node", scope=[], node=document.main.nodes[0].ref, name=f"a{step}"
            )
        found.append((step, document.dirty))
    assert found == [
        ("first", True), ("save", False), ("undo", True), ("redo", False), ("undo", True),
        ("second", True), ("save", False), ("undo", True), ("redo", False),
    ]  # fmt: skip


def test_unknown_scope_is_refused(tmp_path: Path) -> None:
    document = Document.open(models.write(tmp_path, models.CHAIN))
    with pytest.raises(EditError, match="no such scope"):
        document.scope_at(["choose:then_branch"])


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


def of(tmp_path: Path, text: str, *path: str) -> list[tuple[str, str]]:
    document = Document.open(models.write(tmp_path, text))
    found = [(name, at.kind) for name, at in visible_values(document.scope_at(path))]
    document.close()
    return found


def test_inputs_outputs_of_nodes_and_initializers(tmp_path: Path) -> None:
    assert of(tmp_path, models.CHAIN) == [
        ("x", "input"), ("a", "node"), ("b", "node"), ("c", "node"), ("y", "node"),
        ("w", "initializer"), ("unused", "initializer"),
    ]  # fmt: skip


def test_a_subgraph_sees_what_is_around_it_but_not_what_it_shadows(tmp_path: Path) -> None:
    inside = of(tmp_path, models.BRANCHES, "choose:else_branch")
    assert inside == [
        ("x", "node"), ("e", "node"), ("choice", "input"), ("a", "node"), ("y", "node")
    ]  # fmt: skip


def test_a_function_sees_only_its_own(tmp_path: Path) -> None:
    inside = of(tmp_path, models.FUNCTIONS, "function local:twice")
    assert inside == [("v", "input"), ("r", "node")]


def test_an_initializer_that_is_also_an_input_is_told_once(tmp_path: Path) -> None:
    text = """
    <ir_version: 3, opset_import: ["" : 9]>
    old (float[2] x, float[2] w) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }
    """
    assert of(tmp_path, text) == [("x", "input"), ("y", "node"), ("w", "initializer")]
