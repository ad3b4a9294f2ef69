"""Local functions: recursive ones, free names, and the operators that they import."""

from __future__ import annotations

from pathlib import Path

import onnx

from dld_tui.core.model.document import Document
from dld_tui.core.model.document.local_functions import recursive
from dld_tui.core.model.edits.functions import unused_key
from tests.support import body_models, models
from tests.support.sessions import bytes_of, opened


def model_of(document: Document) -> onnx.ModelProto:
    return onnx.ModelProto.FromString(bytes_of(document))


def test_recursive_functions_are_named(tmp_path: Path) -> None:
    assert recursive(opened(tmp_path, body_models.SHAPES)) == set()
    found = recursive(opened(tmp_path, body_models.RECURSIVE))
    assert found == {("local", "ping", ""), ("local", "pong", "")}


def test_nodes_of_a_function_name_the_operators_of_onnx_as_its_imports_do(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    model = onnx.load(path)
    model.opset_import[0].domain = "ai.onnx"
    for node in model.graph.node:
        node.domain = "ai.onnx"
    onnx.save(model, path)
    document = Document.open(path)
    first = document.main.nodes[0]
    document.apply("make_function", scope=[], nodes=[first.ref], name="part")
    (function,) = model_of(document).functions
    assert [entry.domain for entry in function.opset_import] == [""]
    assert [node.domain for node in function.node] == [""]


def test_a_free_name_for_a_function(tmp_path: Path) -> None:
    document = opened(tmp_path, body_models.SHAPES)
    assert unused_key(document, ("local", "leaky", "")) == ("local", "leaky_1", "")
    assert unused_key(document, ("mine", "leaky", "")) == ("mine", "leaky", "")
