"""Copies of a model that libraries convert: what is lifted out, dropped, and put back."""

from __future__ import annotations

from contextlib import closing
from copy import deepcopy
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from dld_tui.core.conversion.copies import (
    copy_of,
    lift_constants,
    make_dense,
    open_model,
    restore_dropped,
)
from dld_tui.core.files.model_set import discard_view, external_view
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.serialise import skeleton_bytes
from tests.support import models
from tests.support.sessions import tensor_in


def restored(
    folder: Path, before: onnx.ModelProto | bytes, after: onnx.ModelProto
) -> tuple[int, bytes]:
    """Return how many records were put back into `after`, and the model with them."""
    data = before if isinstance(before, bytes) else before.SerializeToString()
    (folder / "old.onnx").write_bytes(data)
    (folder / "new.onnx").write_bytes(after.SerializeToString())
    with (
        closing(Document.open(folder / "old.onnx")) as old,
        closing(Document.open(folder / "new.onnx")) as new,
    ):
        return restore_dropped(old, new), skeleton_bytes(new)


def test_what_a_library_drops_is_put_back(tmp_path: Path) -> None:
    model = models.parse(models.PLAIN_BRANCHES)
    model.doc_string, model.producer_name = "about", "me"
    model.metadata_props.add(key="licence", value="none")
    model.graph.doc_string = "graph"
    model.graph.node[0].doc_string = "first"
    model.graph.node[0].metadata_props.add(key="dld.precision", value="fp16")
    model.graph.node[1].attribute[0].g.node[0].doc_string = "inside"
    model.graph.output[0].doc_string = "result"
    model.graph.quantization_annotation.add(tensor_name="a")
    model.graph.input[1].type.denotation = "IMAGE"
    model.graph.input[1].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    model.training_info.add().algorithm.name, model.model_version = "how", 7
    model.graph.metadata_props.add(key="of", value="the graph")
    for place in (model, model.graph, model.graph.node[0], model.graph.output[0]):
        place.MergeFromString(b"\x82\xd3\x0e\x03new")  # a field that this version does not have
    bare = models.parse(models.PLAIN_BRANCHES)
    bare.graph.name = bare.graph.node[1].attribute[0].g.name = "made"
    for node in bare.graph.node:
        node.ClearField("name")
    rich = deepcopy(model)
    rich.graph.quantization_annotation.add(tensor_name="gone")
    count, data = restored(tmp_path, rich, bare)
    assert (count, onnx.ModelProto.FromString(data)) == (3, model)
    assert data.count(b"\x82\xd3\x0e\x03new") == 4
    assert restored(tmp_path, rich, onnx.ModelProto.FromString(data)) == (0, data)


@pytest.mark.parametrize("name", ["pre_quant", "pre", "pre_quant twice"])
def test_what_is_said_of_a_node_goes_to_the_one_that_quantization_puts_in_its_place(
    name: str, tmp_path: Path
) -> None:
    old, new = models.parse(models.CHAIN), models.parse(models.CHAIN)
    name, _, is_twice = name.partition(" ")
    old.graph.node[0].name, old.graph.node[0].doc_string = "pre", "why"
    if is_twice:
        old.graph.node[1].name = "pre"
    new.graph.node[0].name, new.graph.node[0].op_type = name, "Abs"
    count, data = restored(tmp_path, old, new)
    is_put_back = name == "pre_quant" and not is_twice
    made = onnx.ModelProto.FromString(data).graph.node[0]
    assert (count, made.doc_string) == ((1, "why") if is_put_back else (0, ""))


def test_texts_of_any_bytes_functions_and_quantized_names_are_put_back(tmp_path: Path) -> None:
    old, new = models.parse(models.FUNCTIONS), models.parse(models.FUNCTIONS)
    old.functions[0].doc_string = "why"
    old.functions[0].node[0].doc_string = "how"
    old.graph.node[0].doc_string = "QQ"
    weight = helper.make_tensor("w", TensorProto.FLOAT, [1], [1.0])
    weight.doc_string = "trained"
    old.graph.initializer.append(weight)
    new.graph.initializer.append(helper.make_tensor("w_quantized", TensorProto.INT8, [1], [1]))
    torn = old.SerializeToString().replace(b"QQ", b"\xff\xfe")
    _, data = restored(tmp_path, torn, new)
    result = onnx.ModelProto.FromString(data)
    assert b"\xff\xfe" in data
    (function,) = result.functions
    assert (function.doc_string, function.node[0].doc_string) == ("why", "how")
    assert result.graph.initializer[-1].doc_string == "trained"


@pytest.mark.parametrize("is_external", [True, False])
@pytest.mark.parametrize(
    "start",
    [b"\x17", b"\0", b"PK\3\4", b"\x7fELF", b"\x1f\x8b", b"SQLite format 3\0", b"{\n", b"\xff"],
)
def test_weights_of_a_view_stay_where_they_are_whatever_they_begin_with(
    start: bytes, is_external: bool, tmp_path: Path
) -> None:
    weights = start.ljust(4096, b"\x05")
    model = models.parse(models.CHAIN)
    tensor = model.graph.initializer.add(name="large", dims=[1024], data_type=TensorProto.FLOAT)
    if is_external:
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="weights.data")
        (tmp_path / "weights.data").write_bytes(weights)
    else:
        tensor.raw_data = weights
    held = helper.make_node("Constant", [], ["held"], value=tensor)
    model.graph.node.insert(0, held)
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    with closing(Document.open(path)) as document:
        view = external_view(
            skeleton_bytes(document), document.blobs, tmp_path, external=document.external,
            values=True,
        )  # fmt: skip
        with closing(open_model(view)) as again:
            large = tensor_in(again, "large")
            assert large.is_external == is_external
            value = again.main.nodes[0].tensor("value")
            assert value is not None
            assert value.is_external == is_external
            for one in (large, value):
                assert one.read(0, 1024).tobytes() == weights
        discard_view(view)


def constant(output: str, values: list[float], dtype: type[np.generic]) -> onnx.NodeProto:
    tensor = numpy_helper.from_array(np.array(values, dtype))
    return helper.make_node("Constant", [], [output], value=tensor)


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
    first = constant("k", [1, 2], np.float32)
    first.doc_string = "why"
    first.metadata_props.add(key="who", value="me")
    model.graph.node.insert(0, first)
    model.graph.node.insert(2, constant("l", [3], np.float16))
    model.graph.node.insert(2, constant("sizes", [1], np.int64))
    count, made = lifted(tmp_path, model)
    assert count == 2
    k, half = made.graph.initializer[-2:]
    assert (k.name, k.doc_string, k.metadata_props[0].value) == ("k", "why", "me")
    assert numpy_helper.to_array(k).tolist() == [1, 2]
    assert (half.name, half.data_type) == ("l", TensorProto.FLOAT16)
    assert [node.name for node in made.graph.node if node.op_type != "Constant"] == before
    assert [node.output[0] for node in made.graph.node if node.op_type == "Constant"] == ["sizes"]


def test_constants_of_old_formats_outputs_and_functions_stay(tmp_path: Path) -> None:
    model = models.parse(models.CHAIN)
    model.graph.node.insert(0, constant("k", [1], np.float32))
    model.graph.output.append(helper.make_tensor_value_info("k", TensorProto.FLOAT, [1]))
    inner = [constant("f", [2], np.float32)]
    opsets = [helper.make_opsetid("", 18)]
    model.functions.append(helper.make_function("here", "F", [], ["f"], inner, opsets))
    assert lifted(tmp_path, model)[0] == 0
    del model.graph.output[1:]
    assert lifted(tmp_path, model)[0] == 1
    model.ir_version = 3
    for weight in model.graph.initializer:
        info = helper.make_tensor_value_info(weight.name, weight.data_type, weight.dims)
        model.graph.input.append(info)
    assert lifted(tmp_path, model)[0] == 0


def test_sparse_weights_become_dense(tmp_path: Path) -> None:
    model = models.parse(models.CHAIN)
    for name in ("sparse", "other"):
        values = helper.make_tensor(name, TensorProto.FLOAT, [1], [3.0])
        places = helper.make_tensor("", TensorProto.INT64, [1], [2])
        model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [4]))
    with closing(Document(model)) as document, closing(copy_of(document)) as copy:
        assert make_dense(copy) == 2
        made = onnx.ModelProto.FromString(skeleton_bytes(copy)).graph
    assert not made.sparse_initializer
    dense = {one.name: numpy_helper.to_array(one).tolist() for one in made.initializer}
    assert dense["sparse"] == dense["other"] == [0, 0, 3, 0]
