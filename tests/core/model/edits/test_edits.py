"""Edits do what they say, refuse what would break the model, and undo to the same bytes."""

from __future__ import annotations

import base64
from pathlib import Path

import numpy as np
import onnx
import pytest

from dld_tui.core.errors import EditError
from dld_tui.core.model.document import Document, DocumentChange
from dld_tui.core.model.tensors.sparse import read_sparse_lines, sparse_lines
from dld_tui.core.types import JSON
from tests.support import models
from tests.support.sessions import bytes_of, node_in, opened


def reloaded(document: Document) -> onnx.ModelProto:
    return onnx.ModelProto.FromString(bytes_of(document))


def test_rename_node(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN)
    document.apply("rename_node", scope=[], node="second", name="other")
    assert document.main.find("other") is document.main.nodes[1]
    assert document.main.find("second") is None


@pytest.mark.parametrize(
    ("kind", "value", "read"),
    [
        ("int", 3, 3),
        ("float", 0.5, 0.5),
        ("string", "it's", b"it's"),
        ("string", "\udcff", b"\xff"),
        ("ints", [1, 2], [1, 2]),
        ("floats", [1.5, float("inf")], [1.5, float("inf")]),
        ("strings", ["a", "b"], [b"a", b"b"]),
        ("ints", [], []),
    ],
)
def test_set_attribute(tmp_path: Path, kind: str, value: object, read: object) -> None:
    document = opened(tmp_path, models.CHAIN)
    document.apply("set_attribute", scope=[], node="first", attribute="p", kind=kind, value=value)  # type: ignore[arg-type]
    attribute = document.main.nodes[0].attribute("p")
    assert attribute is not None
    assert (attribute.kind, attribute.value) == (kind, read)
    document.apply("remove_attribute", scope=[], node="first", attribute="p")
    assert document.main.nodes[0].attribute("p") is None


def test_set_tensor_attribute(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN)
    raw = base64.b64encode(np.array([1, 2], np.float32).tobytes()).decode()
    document.apply(
        "set_attribute",
        scope=[],
        node="first",
        attribute="value",
        kind="tensor",
        value={"dtype": "float32", "dims": [2], "raw": raw},
    )
    attribute = document.main.nodes[0].attribute("value")
    assert attribute is not None
    np.testing.assert_array_equal(attribute.value.read(), [1, 2])


def test_delete_and_reconnect_inside_and_at_an_output(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN)
    document.apply("delete_nodes", scope=[], nodes=["second"], reconnect=True)
    assert node_in(document, "third").inputs == ("a", "a")
    document.apply("delete_nodes", scope=[], nodes=["last"], reconnect=True)
    assert node_in(document, "third").outputs == ("y",)
    onnx.checker.check_model(reloaded(document), full_check=True)


def test_delete_and_reconnect_refuses_when_an_input_would_have_to_be_an_output(
    tmp_path: Path,
) -> None:
    document = opened(
        tmp_path,
        '<ir_version: 10, opset_import: ["" : 18]>g (float[N] x) => (float[N] y) {[n] y = Relu(x)}',
    )
    with pytest.raises(EditError, match="cannot take over"):
        document.apply("delete_nodes", scope=[], nodes=["n"], reconnect=True)


def test_deleting_a_holder_takes_its_subgraphs_and_undo_brings_them_back(tmp_path: Path) -> None:
    document = opened(tmp_path, models.BRANCHES)
    then = document.main.children()[0]
    document.apply("delete_nodes", scope=[], nodes=["choose"])
    assert document.main.children() == []
    document.undo()
    assert document.main.children()[0] is then


def test_listeners_hear_what_changed(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN)
    heard: list[DocumentChange] = []
    document.on_change.append(heard.append)
    document.apply("rename_node", scope=[], node="first", name="other")
    document.undo()
    document.redo()
    assert [change.kind for change in heard] == ["edit", "undo", "redo"]
    transaction = heard[0].transaction
    assert transaction is not None
    assert transaction.nodes == (document.main.nodes[0],)
    assert transaction.title == "rename node 'first' to 'other'"


def test_sparse_tensors_are_attributes_of_any_operator() -> None:
    document = Document(models.parse(models.CHAIN))
    about: dict[str, JSON] = {"scope": [], "node": "third", "attribute": "weights"}
    first: JSON = {
        "dtype": "float32",
        "dims": [3, 4],
        "indices": [[2, 1], [0, 3]],
        "values": [5, 6],
    }
    document.apply("set_attribute", **about, kind="sparse_tensor", value=first)
    third = node_in(document, "third")
    attribute = third.attribute("weights")
    assert attribute is not None
    assert sparse_lines(document, attribute.value) == "float32 [3, 4]\n0, 3 = 6.0\n2, 1 = 5.0"
    onnx.checker.check_sparse_tensor(attribute.value)
    changed = read_sparse_lines("int64 [9]\n4 = 1")
    document.apply("set_attribute", **about, kind="sparse_tensors", value=[changed, first])
    attribute = third.attribute("weights")
    assert attribute is not None
    assert [list(one.dims) for one in attribute.value] == [[9], [3, 4]]
    document.apply("remove_attribute", **about)
    cases: list[tuple[JSON, str]] = [
        ({**read_sparse_lines("int64 [9]\n4 = 1"), "indices": [[9]]}, "index 9 is not below 9"),
        ({"dtype": "float32"}, "is not a value of kind sparse_tensor"),
    ]
    for wrong, why in cases:
        with pytest.raises(EditError, match=why):
            document.apply("set_attribute", **about, kind="sparse_tensor", value=wrong)
