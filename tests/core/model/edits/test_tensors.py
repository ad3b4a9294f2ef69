"""Tensors are converted, set in places and replaced; random sequences undo to the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx

from dld_tui.core.model.document import Document
from dld_tui.core.types import JSON
from tests.support import models
from tests.support.sessions import tensor_in

BIG: JSON = {"initializer": "big"}
VALUE: JSON = {"node": "const", "attribute": "value"}


def opened(tmp_path: Path) -> Document:
    """Return a model with tensors in all places: small, cut out, in attributes, external."""
    model = models.parse(models.CHAIN)
    big = onnx.numpy_helper.from_array(np.arange(3000, dtype=np.float32).reshape(30, 100), "big")
    model.graph.initializer.append(big)
    typed = onnx.helper.make_tensor("typed", onnx.TensorProto.INT64, [3], [1, 2, 3])
    node = onnx.helper.make_node("Constant", [], ["k"], name="const", value=typed)
    model.graph.node.append(node)
    halves = onnx.helper.make_tensor("halves", onnx.TensorProto.FLOAT16, [3], [1, 2, 3])
    model.graph.initializer.append(halves)
    info = onnx.helper.make_tensor_value_info("big", onnx.TensorProto.FLOAT, [30, "m"])
    model.graph.value_info.append(info)
    out = onnx.TensorProto(name="out", data_type=onnx.TensorProto.INT4, dims=[9])
    out.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", "old.data"), ("offset", "3"), ("length", "5")):
        out.external_data.add(key=key, value=value)
    model.graph.initializer.append(out)
    (tmp_path / "old.data").write_bytes(bytes(range(16, 26)))
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return Document.open(path)


def read(document: Document, name: str) -> np.ndarray[Any, Any]:
    return tensor_in(document, name).read()


def test_an_edit_that_changes_nothing_is_none(tmp_path: Path) -> None:
    document = opened(tmp_path)
    document.apply("set_elements", scope=[], tensor=BIG, start=1, values=[1])
    document.apply("convert_tensor", scope=[], tensor=BIG, dtype="float32")
    document.apply("replace_tensor", scope=[], tensor=BIG, dtype="float32", dims=[30, 100])
    document.apply("set_inline", scope=[], names=["big"])
    assert not document.dirty
