from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from dld_tui.core.files.blobs import Blob, BlobTable
from dld_tui.core.files.source import Source
from dld_tui.core.files.tensors import (
    decoded,
    dense_tensors,
    entries_of,
    has_external,
    has_values_as_stored,
    inline_blob,
    is_external,
    payload_length,
    set_external,
    set_inline,
)
from tests.support.payloads import cut_file, everything, raw_tensor, typed_tensors, write_model


def test_finds_the_tensors_of_every_place() -> None:
    def tensor(name: str) -> TensorProto:
        return TensorProto(name=name)

    def node(name: str) -> onnx.NodeProto:
        body = helper.make_graph([], "b", [], [], initializer=[tensor(f"{name}.g")])
        deeper = helper.make_graph([helper.make_node("X", [], [], g=body)], "d", [], [])
        return helper.make_node(
            "X", [], [], t=tensor(f"{name}.t"), ts=[tensor(f"{name}.ts")], graphs=[deeper]
        )

    model = helper.make_model(
        helper.make_graph([node("main")], "g", [], [], initializer=[tensor("init")])
    )
    function = model.functions.add()
    function.node.append(node("function"))
    function.attribute_proto.append(helper.make_attribute("default", tensor("default")))
    training = model.training_info.add()
    training.initialization.initializer.append(tensor("training"))
    training.algorithm.node.append(node("algorithm"))
    names = [found.name for found in dense_tensors(model)]
    in_nodes = {
        f"{where}.{what}"
        for where in ("main", "function", "algorithm")
        for what in ("t", "ts", "g")
    }
    assert set(names) == in_nodes | {"init", "default", "training"}
    assert len(names) == len(set(names))
    model.graph.sparse_initializer.add().values.name = "sparse"
    assert len(list(dense_tensors(model))) == len(names)


def test_entries_may_hold_any_bytes() -> None:
    tensor = TensorProto.FromString(
        TensorProto(external_data=[onnx.StringStringEntryProto(key="location", value="??")])
        .SerializeToString()
        .replace(b"??", b"\xff\xfe")
    )
    assert entries_of(tensor) == {"location": "\udcff\udcfe"}


def test_external_and_back() -> None:
    tensor = raw_tensor("w", 10)
    before = tensor.raw_data
    set_external(tensor, "w.bin", 4096, 40)
    assert is_external(tensor)
    assert not tensor.HasField("raw_data")
    assert entries_of(tensor) == {"location": "w.bin", "offset": "4096", "length": "40"}
    assert has_external(tensor.SerializeToString())
    set_external(tensor, "v.bin", 0, 40)
    assert entries_of(tensor)["location"] == "v.bin"
    assert len(tensor.external_data) == 3
    set_inline(tensor, before)
    assert tensor == raw_tensor_with("w", before)
    assert not has_external(helper.make_model(onnx.GraphProto(name="g")).SerializeToString())


def raw_tensor_with(name: str, content: bytes) -> TensorProto:
    return TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[10], raw_data=content)


def test_payloads_that_were_cut_out_are_found_and_decoded(tmp_path: Path) -> None:
    path = write_model(tmp_path / "m.onnx", everything())
    originals = {tensor.name: tensor for tensor in typed_tensors_of(path)}
    skeleton, blobs = cut_file(path)
    found = 0
    for tensor in onnx.ModelProto.FromString(skeleton).graph.initializer:
        blob = inline_blob(tensor, blobs)
        if tensor.name == "string":
            assert blob is None
            continue
        assert blob is not None, tensor.name
        found += 1
        original = originals[tensor.name]
        values = numpy_helper.to_array(original)
        if has_values_as_stored(blob):
            data = blob.read()
        else:
            data = decoded(tensor, blobs)
        expected = numpy_helper.from_array(values).raw_data
        assert data == expected, tensor.name
        assert payload_length(tensor) == len(expected)
    assert found == len(originals) - 1


def typed_tensors_of(path: Path) -> list[TensorProto]:
    return list(onnx.ModelProto.FromString(path.read_bytes()).graph.initializer)


def test_a_payload_that_is_not_all_of_the_tensor_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(bytes(100))
    blobs = BlobTable()
    source = Source.open(tmp_path / "f")
    sentinel = blobs.add(Blob(source, 0, 100, "raw_data"))
    floats = np.frombuffer(blobs.add(Blob(source, 0, 100, "float_data")), "<f4").tolist()
    assert inline_blob(TensorProto(raw_data=sentinel), blobs) is not None
    assert inline_blob(TensorProto(float_data=floats), blobs) is not None
    assert inline_blob(TensorProto(raw_data=sentinel, float_data=[1.0]), blobs) is None
    assert inline_blob(TensorProto(float_data=floats * 2), blobs) is None  # two chunks
    assert inline_blob(TensorProto(raw_data=b"x" * 32), blobs) is None
    assert inline_blob(TensorProto(), blobs) is None
    assert inline_blob(TensorProto(int64_data=[-1] * 32), blobs) is None


def test_a_broken_payload_cannot_be_decoded(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\x01" * 99)
    blobs = BlobTable()
    sentinel = blobs.add(Blob(Source.open(tmp_path / "f"), 0, 99, "int64_data"))
    tensor = TensorProto(data_type=TensorProto.INT64, dims=[10], int64_data=list(sentinel))
    with pytest.raises(ValueError, match="reshape"):
        decoded(tensor, blobs)


@pytest.mark.parametrize(
    ("dtype", "dims", "length"),
    [
        (TensorProto.FLOAT, [3, 4], 48),
        (TensorProto.FLOAT, [], 4),
        (TensorProto.FLOAT, [0, 7], 0),
        (TensorProto.BFLOAT16, [5], 10),
        (TensorProto.COMPLEX128, [2], 32),
        (TensorProto.INT4, [5], 3),
        (TensorProto.FLOAT, [2**40, 2**40], 2**82),
        (TensorProto.FLOAT, [-1], None),
        (TensorProto.UNDEFINED, [1], None),
        (99, [1], None),
    ],
)
def test_length_by_type_and_shape(dtype: int, dims: list[int], length: int | None) -> None:
    assert payload_length(TensorProto(data_type=dtype, dims=dims)) == length


def test_every_type_of_the_onnx_package_has_the_length_that_it_writes() -> None:
    for dtype in TensorProto.DataType.values():
        if dtype in (TensorProto.UNDEFINED, TensorProto.STRING):
            continue
        numbers = np.zeros(11, helper.tensor_dtype_to_np_dtype(dtype))
        tensor = numpy_helper.from_array(numbers)
        assert tensor.data_type == dtype
        assert payload_length(tensor) == len(tensor.raw_data), dtype


def test_typed_tensors_cover_every_payload_field() -> None:
    used = {field.name for tensor in typed_tensors() for field, _ in tensor.ListFields()}
    assert used >= {
        "raw_data",
        "float_data",
        "int32_data",
        "int64_data",
        "double_data",
        "uint64_data",
    }
