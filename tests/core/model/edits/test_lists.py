"""Attributes that are lists are tensors of one dimension: the edits of tensors change them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dld_tui.core.errors import EditError
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


def listed(document: Document, name: str) -> Any:
    """Return the list as onnx reads it."""
    proto = next(a for a in document.main.nodes[0].proto.attribute if a.name == name)
    return onnx.helper.get_attribute_value(proto)


def test_lists_are_set_spliced_resized_and_replaced(tmp_path: Path) -> None:
    document = opened(tmp_path)

    def apply(edit: str, name: str, **arguments: Any) -> None:
        document.apply(edit, scope=[], tensor=address(name), **arguments)

    apply("set_elements", "ints", start=1, values=[-7])
    assert listed(document, "ints") == [1, -7, 3]
    apply("splice_tensor", "ints", axis=0, start=1, delete=1, insert=2, values=[8, 9])
    assert listed(document, "ints") == [1, 8, 9, 3]
    apply("splice_tensor", "names", axis=0, start=2, insert=2)
    apply("set_elements", "names", start=2, values=["longer than one", ""])
    assert listed(document, "names") == [b"a", b"b", b"longer than one", b""]
    apply("replace_tensor", "floats", dtype="float32", dims=[4], resize=True)
    assert listed(document, "floats") == [1.5, 2.5, 0, 0]
    apply("splice_tensor", "floats", axis=0, start=0, delete=4)
    assert listed(document, "floats") == []
    apply("splice_tensor", "floats", axis=0, start=0, insert=1, values=["inf"])
    assert listed(document, "floats") == [float("inf")]
    apply("replace_tensor", "ints", dtype="int64", dims=[1], payload={"values": [2**62]})
    assert listed(document, "ints") == [2**62]


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


@pytest.mark.parametrize(
    ("edit", "name", "arguments", "says"),
    [
        ("convert_tensor", "ints", {"dtype": "int32"}, "is a list of int64, not int32"),
        ("replace_tensor", "ints", {"dtype": "int64", "dims": [3, 1]}, r"not int64\[3, 1\]"),
        ("set_elements", "ints", {"start": 3, "values": [1]}, "has 3 elements"),
        ("set_elements", "ints", {"start": 0, "values": [0.5]}, "0.5"),
        ("set_elements", "one", {"start": 0, "values": [1]}, "no tensor or list"),
        ("splice_tensor", "ints", {"axis": 1, "start": 0}, "has 1 dimension"),
        ("splice_tensor", "ints", {"axis": 0, "start": 2, "delete": 2}, "has 3 rows, not 4"),
        ("splice_tensor", "ints", {"axis": 0, "start": -1, "delete": 1}, "whole numbers"),
        ("splice_tensor", "ints", {"axis": 0, "start": 0, "insert": 2, "values": [1]}, "list of 2"),
        ("splice_tensor", "ints", {"axis": 0, "start": 0, "insert": 2**60}, "too many"),
    ],
)
def test_what_is_no_list_is_refused(
    tmp_path: Path, edit: str, name: str, arguments: dict[str, Any], says: str
) -> None:
    document = opened(tmp_path)
    with pytest.raises(EditError, match=says):
        document.apply(edit, scope=[], tensor=address(name), **arguments)


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
