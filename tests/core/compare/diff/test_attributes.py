"""Attributes whose values are large, nested or of rare kinds, from files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from dld_tui.core.compare.diff import diff_documents
from dld_tui.core.model.document import Document
from tests.support.diff_models import copy_of


def model(**attributes: Any) -> onnx.ModelProto:
    """Return a model of one node with some attributes."""
    info = helper.make_tensor_value_info
    node = helper.make_node("Any", ["x"], ["y"], "n", domain="d", **attributes)
    return helper.make_model(
        helper.make_graph([node], "g", [info("x", 1, [1])], [info("y", 1, [1])])
    )


def fields(tmp_path: Path, old: onnx.ModelProto, new: onnx.ModelProto) -> dict[str, Any]:
    """Return what differs between two models that are written to files and opened again."""
    documents = []
    for name, proto in (("old.onnx", old), ("new.onnx", new)):
        (tmp_path / name).write_bytes(proto.SerializeToString())
        documents.append(Document.open(tmp_path / name))
    found = diff_documents(*documents)
    assert found.notes == []
    return {
        field.name: (field.old, field.new)
        for _, change in found.all_changes()
        for field in change.fields
    }


def sparse(values: list[float], indices: list[int], size: int) -> onnx.SparseTensorProto:
    return helper.make_sparse_tensor(
        numpy_helper.from_array(np.asarray(values, np.float32), "s"),
        numpy_helper.from_array(np.asarray(indices, np.int64), "i"),
        [size],
    )


def test_payloads_that_stay_in_the_file(tmp_path: Path) -> None:
    values = np.arange(5000, dtype=np.float32)
    first = model(value=numpy_helper.from_array(values, "t"), text="a" * 9000)
    assert fields(tmp_path, first, copy_of(first)) == {}
    values[7] += 1
    second = model(value=numpy_helper.from_array(values, "t"), text="a" * 8999 + "b")
    found = fields(tmp_path, first, second)
    assert set(found) == {"attribute value", "attribute text"}
    assert found["attribute value"][1].startswith("float32[5000]: 1 of 5,000 elements differ")
    shape = model(value=numpy_helper.from_array(values[:6], "t"), text="a" * 9000)
    assert fields(tmp_path, first, shape)["attribute value"] == (
        "float32[5000]",
        "float32 [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]",
    )


def test_long_lists_say_where_they_part(tmp_path: Path) -> None:
    first, second = list(range(5000)), list(range(5000))
    second[4000] = -1
    found = fields(tmp_path, model(ints=first), model(ints=second))
    assert found == {"attribute ints": ("5000 values, [4000] = 4000", "5000 values, [4000] = -1")}
    assert fields(tmp_path, model(ints=first), model(ints=first[:4990]))["attribute ints"] == (
        "5000 values, [4990] = 4990",
        "4990 values, [4990] = none",
    )


def test_sparse_tensors(tmp_path: Path) -> None:
    wide = list(range(3000))
    first = model(value=sparse([float(i) for i in wide], wide, 4000))
    assert fields(tmp_path, first, copy_of(first)) == {}
    changed = model(value=sparse([float(i) for i in wide[:-1]] + [0.5], wide, 4000))
    assert "1 of 3,000" in fields(tmp_path, first, changed)["attribute value values"][1]
    larger = model(value=sparse([float(i) for i in wide], wide, 5000))
    assert fields(tmp_path, first, larger) == {"attribute value shape": ("[4000]", "[5000]")}
    graphs = [copy_of(model()), copy_of(model())]
    for graph, values in zip(graphs, ([1.0, 2.0], [1.0, 3.0]), strict=True):
        graph.graph.sparse_initializer.append(sparse(values, [0, 2], 4))
    assert set(fields(tmp_path, *graphs)) == {"values"}
    for graph, name in zip(graphs, ("s", "other"), strict=True):
        graph.graph.sparse_initializer[0].values.name = name
        graph.graph.node.add(op_type="Neg", input=[name], output=["of sparse"])
    assert fields(tmp_path, *graphs)["name"] == ("s", "other")


def test_kinds_references_and_subgraphs(tmp_path: Path) -> None:
    body = helper.make_graph([helper.make_node("Neg", ["x"], ["b"])], "body", [], [])
    found = fields(tmp_path, model(a=1, b="text"), model(a=1.0, b="text", body=body))
    assert found == {
        "attribute a": ("int 1", "float 1.0"),
        "attribute body": (None, "graph of 1 node"),
    }
    twice = model(bodies=[body, body])
    assert fields(tmp_path, twice, copy_of(twice)) == {}
    assert fields(tmp_path, twice, model(bodies=[body])) == {
        "attribute bodies": ("graphs of 2 nodes", "graphs of 1 node")
    }
    other = model(a=1)
    other.graph.node[0].attribute[0].doc_string = "why"
    assert fields(tmp_path, model(a=1), other) == {"attribute a doc_string": ("", "why")}


def test_lists_of_tensors_and_types(tmp_path: Path) -> None:
    tensors = [helper.make_tensor("t", TensorProto.INT64, [1], [value]) for value in (1, 2, 3)]
    found = fields(tmp_path, model(many=tensors[:2]), model(many=[tensors[0], tensors[2]]))
    assert list(found) == ["attribute many[1]"]
    assert fields(tmp_path, model(many=tensors), model(many=tensors[:2])) == {
        "attribute many": ("3 tensors", "2 tensors")
    }
    types = [helper.make_tensor_type_proto(TensorProto.FLOAT, [size]) for size in (1, 2)]
    assert fields(tmp_path, model(kind=types[0]), model(kind=types[1])) == {
        "attribute kind": ("float32[1]", "float32[2]")
    }


def test_plain_values(tmp_path: Path) -> None:
    old = model(i=1, f=0.5, s="a", ints=[1, 2], strings=["a"])
    new = model(i=2, f=0.25, s="b", ints=[1, 3], strings=["a", "b"])
    assert fields(tmp_path, old, new) == {
        "attribute f": ("0.5", "0.25"), "attribute i": ("1", "2"), "attribute s": ("'a'", "'b'"),
        "attribute ints": ("[1, 2]", "[1, 3]"), "attribute strings": ("['a']", "['a', 'b']"),
    }  # fmt: skip
    nan = float("nan")
    assert fields(tmp_path, model(f=nan, fs=[nan, 1.0]), model(f=nan, fs=[nan, 1.0])) == {}
    assert fields(tmp_path, model(f=0.0), model(f=-0.0)) == {"attribute f": ("0.0", "-0.0")}


def test_parameters_of_functions(tmp_path: Path) -> None:
    def with_default(value: float) -> onnx.ModelProto:
        made = model()
        opset = [helper.make_opsetid("", 18)]
        node = helper.make_node("Neg", ["v"], ["r"])
        function = helper.make_function("d", "f", ["v"], ["r"], [node], opset, ["must"])
        function.attribute_proto.append(helper.make_attribute("scale", value))
        made.functions.append(function)
        return made

    first = with_default(0.5)
    assert fields(tmp_path, first, copy_of(first)) == {}
    assert fields(tmp_path, first, with_default(0.25)) == {
        "parameter scale": ("scale = 0.5", "scale = 0.25")
    }
    other = copy_of(first)
    other.functions[0].attribute.append("more")
    other.functions[0].opset_import[0].version = 19
    assert fields(tmp_path, first, other) == {
        "opset ai.onnx": ("18", "19"),
        "parameters": ("must", "must, more"),
    }


def test_external_data_of_an_attribute(tmp_path: Path) -> None:
    """Two nodes with the same bytes may differ in the file that they refer to."""
    documents = []
    for folder, value in (("a", 1.0), ("b", 2.0)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "w.data").write_bytes(np.float32(value).tobytes())
        tensor = TensorProto(name="t", data_type=1, dims=[1], data_location=TensorProto.EXTERNAL)
        tensor.external_data.add(key="location", value="w.data")
        path = tmp_path / folder / "m.onnx"
        path.write_bytes(model(value=tensor).SerializeToString())
        documents.append(Document.open(path))
    (scope,) = diff_documents(*documents).scopes
    (change,) = scope.changes
    assert [field.name for field in change.fields] == ["attribute value"]
