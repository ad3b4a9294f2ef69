"""Copied nodes, pasted in the same graph, in subgraphs and functions, and in other models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from dld_tui.core.errors import UsageError
from dld_tui.core.model.document import Document, Scope
from dld_tui.core.model.document.parts.fragment import Fragment, fragment_of
from dld_tui.core.model.tensors.payloads import decode_message
from dld_tui.core.types import JSON
from tests.support import models
from tests.support.sessions import tensor_in

INNER = """
<ir_version: 10, opset_import: ["" : 18]>
inner (bool choice, float[N, 4] x, float[N, 4] t) => (float[N, 4] y)
{
    [pre] a = Relu(x)
    [choose] z = If (choice) <
        then_branch = yes () => (float[N, 4] u) { [neg] h = Neg(a)
            u = Add(h, t) },
        else_branch = no () => (float[N, 4] v) { v = Abs(a) }
    >
    [last] y = Add(z, a)
}
"""


def opened(folder: Path, text: str, name: str = "model.onnx") -> Document:
    return Document.open(models.write(folder, text, name))


def copied(scope: Scope, *names: str) -> Fragment:
    found = [node for node in scope.nodes if node.name in names]
    assert len(found) == len(names)
    return fragment_of(found)


def paste(document: Document, fragment: Fragment, *path: str, **more: JSON) -> str:
    scope = document.scope_at(path)
    data: JSON = json.loads(json.dumps(fragment.to_json(document, scope)))
    return document.apply("paste_nodes", scope=list(path), fragment=data, **more).title


@pytest.mark.broad
def test_external_data_is_taken_in(tmp_path: Path) -> None:
    weights = np.arange(4096, dtype=np.float32)
    model = models.parse(models.CHAIN)
    model.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(weights, "w"))
    onnx.save(model, tmp_path / "e.onnx", save_as_external_data=True, location="e.data")
    source = Document.open(tmp_path / "e.onnx")
    target = opened(tmp_path, models.FUNCTIONS)
    paste(target, copied(source.main, "second"))
    tensor = tensor_in(target, "w")
    assert not tensor.is_external
    np.testing.assert_array_equal(tensor.read(), weights)


def test_what_cannot_be_read_is_pasted_as_it_is_and_the_rest_taken_in(tmp_path: Path) -> None:
    names = ("pending", "lost", "kept")
    weights = np.arange(2048, dtype=np.float32)
    made = [onnx.numpy_helper.from_array(weights, name) for name in names]
    nodes = [onnx.helper.make_node("Add", ["x", name], [f"{name}_sum"], name) for name in names]
    info = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2048])
    model = onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", [info], [], made))
    for tensor, name in zip(model.graph.initializer[1:], names[1:], strict=True):
        onnx.external_data_helper.set_external_data(tensor, f"{name}.data")
    onnx.external_data_helper.write_external_data_tensors(model, str(tmp_path))
    onnx.save(model, tmp_path / "e.onnx")
    (tmp_path / "lost.data").unlink()
    source, target = Document.open(tmp_path / "e.onnx"), opened(tmp_path, models.FUNCTIONS)
    source.apply("set_external", names=["pending"], location="later.data")
    paste(target, copied(source.main, *names))
    found = {name: tensor_in(target, name) for name in names}
    assert [name for name, tensor in found.items() if tensor.is_external] == ["lost"]
    for name in ("pending", "kept"):
        np.testing.assert_array_equal(found[name].read(), weights)


def test_weights_that_the_place_has_are_copied_without_values(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN)
    fragment = copied(document.main, "second")
    for scope, shared, count in ((document.main, ["w"], 0), (None, [], 4)):
        data: Any = fragment.to_json(document, scope)
        assert data["shared"] == shared
        (weight,) = decode_message(document, data["model"], onnx.ModelProto).graph.initializer
        assert (weight.name, [*weight.dims], len(weight.float_data)) == ("w", [4], count)


def test_nodes_of_two_graphs_are_no_fragment(tmp_path: Path) -> None:
    document = opened(tmp_path, INNER)
    inner = document.scope_at(["choose:then_branch"])
    with pytest.raises(UsageError, match="several graphs"):
        fragment_of([document.main.nodes[0], inner.nodes[0]])
    with pytest.raises(UsageError, match="no nodes"):
        fragment_of([])
