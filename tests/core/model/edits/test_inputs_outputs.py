"""Graph inputs and outputs, declared types, metadata, operator sets and repairs."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from dld_tui.core.errors import EditError
from dld_tui.core.model.document import Document
from dld_tui.core.model.edits.inputs_outputs import declare_inputs
from tests.support import models
from tests.support.sessions import bytes_of, opened, type_in


def model_of(document: Document) -> onnx.ModelProto:
    data = bytes_of(document)
    return onnx.ModelProto.FromString(data)


def test_outputs_and_inputs(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN)
    document.apply("add_output", scope=[], name="b", dtype="float32", dims=["N", 4])
    document.apply("add_input", scope=[], name="z", dtype="int64", dims=[2, None])
    document.apply("add_input", scope=[], name="w")
    assert (document.main.outputs, document.main.inputs) == (("y", "b"), ("x", "z", "w"))
    assert type_in(document, "w").text == "float32[4]"
    onnx.checker.check_model(model_of(document), full_check=True)
    document.apply("remove_output", scope=[], name="b")
    document.apply("remove_input", scope=[], name="z")
    assert (document.main.outputs, document.main.inputs) == (("y",), ("x", "w"))


def test_a_value_without_a_source_can_become_an_input(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN)
    document.apply("delete_nodes", scope=[], nodes=["second"])
    document.apply("add_input", scope=[], name="b", dtype="float32", dims=["N", 4])
    onnx.checker.check_model(model_of(document), full_check=True)


def test_value_types(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN)
    for value in ("a", "x"):
        document.apply("set_value_type", scope=[], value=value, dtype="float16", dims=["M", 8])
        assert type_in(document, value).text == "float16[M, 8]"
    for value in ("a", "x"):
        document.apply("set_value_type", scope=[], value=value, dtype=None, dims=None)
        assert document.main.value_type(value) is None


def test_declared_shapes_give_numbers_to_names(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN)
    document.apply("add_input", scope=[], name="z", dtype="int64", dims=["M", "N"])
    assert declare_inputs(document, {"ghost": (1,), "x": (3, 4), "z": (2, 3)}) == {"N": 3, "M": 2}
    assert [type_in(document, name).text for name in "xz"] == ["float32[3, 4]", "int64[2, 3]"]


def test_function_parameters(tmp_path: Path) -> None:
    document = opened(tmp_path, models.FUNCTIONS)
    path: list[str] = list(document.functions[0].path)
    document.apply("add_input", scope=[*path], name="extra")
    assert document.functions[0].inputs == ("v", "extra")
    document.undo()
    assert list(document.functions[0].inputs) == ["v"]


def test_metadata_doc_strings_and_model_fields(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN)
    document.apply("set_metadata", key="author", value="me")
    document.apply("set_metadata", key="dld.x", value="1", scope=[])
    document.apply("set_metadata", key="dld.precision", value="fp16", scope=[], nodes=["first"])
    document.apply("set_metadata", key="author", value="you")
    document.apply("set_doc_string", scope=[], text="a graph")
    document.apply("set_doc_string", scope=[], text="a node", nodes=["first"])
    document.apply("set_model_field", field="producer_name", value="us")
    document.apply("set_model_field", field="ir_version", value=9)
    model = model_of(document)
    assert [(e.key, e.value) for e in model.metadata_props] == [("author", "you")]
    assert [(e.key, e.value) for e in model.graph.metadata_props] == [("dld.x", "1")]
    assert document.main.nodes[0].metadata == {"dld.precision": "fp16"}
    assert (model.graph.doc_string, model.graph.node[0].doc_string) == ("a graph", "a node")
    assert (model.producer_name, model.ir_version) == ("us", 9)
    document.apply("set_metadata", key="author", value=None)
    assert not model_of(document).metadata_props


def test_operator_sets(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN)
    document.apply("set_opset", domain="com.microsoft", version=1)
    document.apply("set_opset", domain="ai.onnx", version=17)
    assert document.opset_imports == {"": 17, "com.microsoft": 1}
    document.apply("set_opset", domain="com.microsoft", version=None)
    assert document.opset_imports == {"": 17}


def test_a_cycle_cannot_be_sorted() -> None:
    model = models.parse(models.CHAIN)
    model.graph.node[0].input[0] = "b"
    with pytest.raises(EditError, match="cycle"):
        Document(model).apply("sort_nodes", scope=[])
