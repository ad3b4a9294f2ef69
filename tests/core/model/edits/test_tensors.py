"""Tensors are converted, set in places and replaced; random sequences undo to the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx

from dld_tui.core.model.document import Document
from dld_tui.core.model.document.serialise import save
from dld_tui.core.model.tensors.payloads import reference
from dld_tui.core.model.tensors.tensor import Tensor
from dld_tui.core.types import JSON
from tests.support import models
from tests.support.sessions import node_in, tensor_in

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


def test_cells_of_every_kind_of_storage(tmp_path: Path) -> None:
    document = opened(tmp_path)
    cells: list[tuple[str, int, Any]] = [
        ("big", 7, [0.5, "nan"]), ("w", 1, [-1]), ("halves", 2, [9]), ("out", 4, [-8, 7])
    ]  # fmt: skip
    for name, start, values in cells:
        expected = read(document, name).astype(np.float64)
        expected[start : start + len(values)] = [float(value) for value in values]
        document.apply(
            "set_elements", scope=[], tensor={"initializer": name}, start=start, values=values
        )
        found = read(document, name).astype(np.float64)
        assert np.array_equal(found, expected, equal_nan=True)
    document.apply("set_elements", scope=[], tensor=VALUE, start=0, values=[2**62])
    tensor = node_in(document, "const").attributes()[0].value
    assert isinstance(tensor, Tensor)
    assert tensor.read().tolist() == [2**62, 2, 3]


def test_an_edit_that_changes_nothing_is_none(tmp_path: Path) -> None:
    document = opened(tmp_path)
    document.apply("set_elements", scope=[], tensor=BIG, start=1, values=[1])
    document.apply("convert_tensor", scope=[], tensor=BIG, dtype="float32")
    document.apply("replace_tensor", scope=[], tensor=BIG, dtype="float32", dims=[30, 100])
    document.apply("set_inline", scope=[], names=["big"])
    assert not document.dirty


def test_replacing_by_reference_and_by_values(tmp_path: Path) -> None:
    document = opened(tmp_path)
    data = np.random.default_rng(0).normal(size=50_000)
    document.apply(
        "replace_tensor", scope=[], tensor=BIG, dtype="float64", dims=[50_000],
        payload=reference(document, data.tobytes()),
    )  # fmt: skip
    assert np.array_equal(read(document, "big"), data)
    document.apply(
        "replace_tensor", scope=[], tensor=VALUE, dtype="string", dims=[2],
        payload={"values": ["a", "b"]},
    )  # fmt: skip
    document.apply("set_elements", scope=[], tensor=VALUE, start=1, values=["\udcff"])
    assert node_in(document, "const").attributes()[0].value.read().tolist() == [b"a", b"\xff"]
    save(document)
    loaded = onnx.load(tmp_path / "model.onnx")
    assert np.array_equal(onnx.numpy_helper.to_array(loaded.graph.initializer[2]), data)
