from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from dld_tui.core.conversion.copies import copy_of, lift_constants
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.serialise import skeleton_bytes
from tests.support import models


def constant(
    output: str, value: np.ndarray[tuple[int, ...], np.dtype[np.generic]]
) -> onnx.NodeProto:
    return helper.make_node("Constant", [], [output], value=numpy_helper.from_array(value))


def lifted(folder: Path, model: onnx.ModelProto) -> tuple[int, onnx.ModelProto]:
    path = folder / "m.onnx"
    path.write_bytes(model.SerializeToString())
    with closing(Document.open(path)) as document, closing(copy_of(document)) as copy:
        count = lift_constants(copy)
        assert skeleton_bytes(document) == path.read_bytes()
        return count, onnx.ModelProto.FromString(skeleton_bytes(copy))


def test_floating_point_constants_become_initializers_with_what_is_said_of_them(
    tmp_path: Path,
) -> None:
    model = models.parse(models.CHAIN)
    before = [node.name for node in model.graph.node]
    first, second = (
        constant("k", np.array([1, 2], np.float32)),
        constant("l", np.array([3], np.float16)),
    )
    first.doc_string = "why"
    first.metadata_props.add(key="who", value="me")
    model.graph.node.insert(0, first)
    model.graph.node.insert(2, second)
    model.graph.node.insert(2, constant("sizes", np.array([1], np.int64)))
    count, made = lifted(tmp_path, model)
    assert count == 2
    k, half = made.graph.initializer[-2:]
    assert (k.name, k.doc_string, k.metadata_props[0].value) == ("k", "why", "me")
    assert numpy_helper.to_array(k).tolist() == [1, 2]
    assert (half.name, half.data_type) == ("l", TensorProto.FLOAT16)
    assert [node.name for node in made.graph.node if node.op_type != "Constant"] == before
    assert [node.output[0] for node in made.graph.node if node.op_type == "Constant"] == ["sizes"]


def test_old_formats_outputs_and_functions_stay(tmp_path: Path) -> None:
    model = models.parse(models.CHAIN)
    model.graph.node.insert(0, constant("k", np.array([1], np.float32)))
    model.graph.output.append(helper.make_tensor_value_info("k", TensorProto.FLOAT, [1]))
    body = helper.make_function(
        "here",
        "F",
        [],
        ["f"],
        [constant("f", np.array([2], np.float32))],
        [helper.make_opsetid("", 18)],
    )
    model.functions.append(body)
    assert lifted(tmp_path, model)[0] == 0
    del model.graph.output[1:]
    assert lifted(tmp_path, model)[0] == 1
    model.ir_version = 3
    for weight in model.graph.initializer:
        info = helper.make_tensor_value_info(weight.name, weight.data_type, weight.dims)
        model.graph.input.append(info)
    assert lifted(tmp_path, model)[0] == 0
