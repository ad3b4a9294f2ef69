"""Attributes that are lists are tensors of one dimension: the edits of tensors change them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dld_tui.core.model.document import Document
from dld_tui.core.types import JSON
from tests.support.sessions import tensor_in

MODEL = """<ir_version: 8, opset_import: ["": 17, "my": 1]>
g (float[2,3] x) => (float[2,3] y) {
  [n] y = my.F<ints=[1, 2, 3], floats=[1.5, 2.5], names=["a", "b"], one=1>(x, w) }"""


def opened(folder: Path) -> Document:
    """Return a model whose node has a list of each kind, and a matrix."""
    model = onnx.parser.parse_model(MODEL)
    matrix = np.arange(12, dtype=np.float32).reshape(3, 4)
    model.graph.initializer.append(onnx.numpy_helper.from_array(matrix, "w"))
    texts: list[Any] = [b"one", b"two"]
    words = onnx.helper.make_tensor("s", onnx.TensorProto.STRING, [2, 1], texts)
    model.graph.initializer.append(words)
    onnx.save(model, folder / "m.onnx")
    return Document.open(folder / "m.onnx")


def address(name: str) -> JSON:
    return {"node": "n", "attribute": name}


@pytest.mark.parametrize(
    ("edit", "arguments", "room"),
    [
        ("splice_tensor", {"axis": 0, "start": 0, "delete": 1, "insert": 2}, 3 * 4),
        ("splice_tensor", {"axis": 0, "start": 0, "delete": 1}, 4),
        ("replace_tensor", {"dtype": "float32", "dims": [4], "resize": True}, 4 * 4),
    ],
)
def test_an_edit_takes_the_room_of_the_new_tensor(
    tmp_path: Path, edit: str, arguments: dict[str, Any], room: int
) -> None:
    document = opened(tmp_path)
    document.new_data_limit = room
    document.apply(edit, scope=[], tensor=address("floats"), **arguments)
    assert document.new_data == room


@pytest.mark.broad
@given(data=st.data())
def test_rows_are_spliced_as_numpy_does(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    document = opened(tmp_path_factory.mktemp("rows"))
    expected = np.arange(12, dtype=np.float32).reshape(3, 4)
    for _ in range(3):
        axis = data.draw(st.integers(0, 1))
        start = data.draw(st.integers(0, expected.shape[axis]))
        delete = data.draw(st.integers(0, expected.shape[axis] - start))
        insert = data.draw(st.integers(0, 3))
        rows = np.full([insert if n == axis else size for n, size in enumerate(expected.shape)], 9)
        document.apply(
            "splice_tensor", scope=[], tensor={"initializer": "w"}, axis=axis, start=start,
            delete=delete, insert=insert, values=rows.reshape(-1).tolist(),
        )  # fmt: skip
        expected = np.delete(expected, range(start, start + delete), axis)
        expected = np.insert(expected, [start] * insert, 9, axis)
    tensor = tensor_in(document, "w")
    assert np.array_equal(tensor.read().reshape(tensor.shape), expected)
    document.apply(
        "splice_tensor", scope=[], tensor={"initializer": "s"}, axis=0, start=1, insert=1
    )
    assert tensor_in(document, "s").read().tolist() == [b"one", b"", b"two"]
