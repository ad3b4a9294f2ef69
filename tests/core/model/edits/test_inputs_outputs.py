"""Graph inputs and outputs, declared types, metadata, operator sets and repairs."""

from __future__ import annotations

from pathlib import Path

import onnx

from dld_tui.core.model.document import Document
from dld_tui.core.model.edits.inputs_outputs import declare_inputs
from tests.support import models
from tests.support.sessions import bytes_of, opened, type_in


def model_of(document: Document) -> onnx.ModelProto:
    data = bytes_of(document)
    return onnx.ModelProto.FromString(data)


def test_a_value_without_a_source_can_become_an_input(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN)
    document.apply("delete_nodes", scope=[], nodes=["second"])
    document.apply("add_input", scope=[], name="b", dtype="float32", dims=["N", 4])
    onnx.checker.check_model(model_of(document), full_check=True)


def test_declared_shapes_give_numbers_to_names(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN)
    document.apply("add_input", scope=[], name="z", dtype="int64", dims=["M", "N"])
    assert declare_inputs(document, {"ghost": (1,), "x": (3, 4), "z": (2, 3)}) == {"N": 3, "M": 2}
    assert [type_in(document, name).text for name in "xz"] == ["float32[3, 4]", "int64[2, 3]"]
