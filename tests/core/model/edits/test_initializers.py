"""Initializers are added, deleted, made external and sparse; names and scopes stay whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from dld_tui.core.errors import EditError
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.serialise import save
from dld_tui.core.model.tensors.sparse import read_sparse_lines, sparse_lines
from dld_tui.core.types import JSON
from tests.support import models
from tests.support.sessions import opened, tensor_in

ZEROS: JSON = {"kind": "zeros"}


def add(document: Document, name: str, scope: list[JSON] | None = None, **more: JSON) -> None:
    arguments: dict[str, JSON] = {"dtype": "float32", "dims": [2], "fill": ZEROS, **more}
    document.apply("add_initializer", scope=scope or [], name=name, **arguments)


def test_an_initializer_in_a_data_file_that_is_there(tmp_path: Path) -> None:
    document = opened(tmp_path)
    (tmp_path / "w.bin").write_bytes(bytes(8) + np.array([1, 2], np.float32).tobytes())
    fill: dict[str, JSON] = {"kind": "external", "location": "w.bin", "offset": 8, "length": 8}
    add(document, "out", fill=fill)
    tensor = tensor_in(document, "out")
    assert tensor.read().tolist() == [1, 2]
    cases: list[tuple[dict[str, JSON], str]] = [
        ({"offset": 12}, "Invalid offset/length"),
        ({"length": 4}, "the tensor needs 8 B, the length says 4"),
        ({"location": "../w.bin"}, "leaves the model folder"),
        ({"location": "gone.bin"}, "not found"),
        ({"location": 7}, "have a location"),
    ]
    for wrong, why in cases:
        with pytest.raises(EditError, match=why):
            add(document, "bad", fill={**fill, **wrong})
    save(document)
    assert onnx.numpy_helper.to_array(
        onnx.load(tmp_path / "model.onnx").graph.initializer[-1]
    ).tolist() == [1, 2]
    assert (tmp_path / "w.bin").stat().st_size == 16, "it is not written"


@pytest.mark.parametrize("dtype", ["float32", "bool", "bfloat16", "complex64", "int64"])
@pytest.mark.parametrize("count", [0, 5, 300_000])
def test_sparse_and_back_keeps_every_bit(tmp_path: Path, dtype: str, count: int) -> None:
    document = opened(tmp_path)
    kind: JSON = {"kind": "uniform", "low": 0, "high": 1, "seed": 1}
    add(document, "s", dtype=dtype, dims=[count, 1], fill=kind)
    reshaped: dict[str, JSON] = {"tensor": {"initializer": "s"}, "dtype": dtype, "dims": [1, count]}
    document.apply("replace_tensor", scope=[], **reshaped)
    if count:
        document.apply("set_elements", scope=[], tensor={"initializer": "s"}, start=1, values=[0])
    tensor = tensor_in(document, "s")
    values = tensor.read().tobytes()
    document.apply("to_sparse", scope=[], names=["s"])
    assert document.main.initializer("s") is None
    (record,) = document.main.records["sparse_initializer"]
    assert record.values.dims[0] < max(count, 1)
    save(document, tmp_path / "sparse.onnx")
    again = Document.open(tmp_path / "sparse.onnx")
    for reader in (document, again):
        reader.apply("to_dense", scope=[], names=["s"])
        dense = tensor_in(reader, "s")
        assert dense.shape == (1, count)
        assert dense.read().tobytes() == values


def sparse_model(places: list[int], dims: list[int], *, rank: int = 1) -> onnx.ModelProto:
    model = models.parse(models.CHAIN)
    values = onnx.helper.make_tensor("s", onnx.TensorProto.FLOAT, [2], [1.5, 2.5])
    shape = [2] if rank == 1 else [2, rank]
    indices = onnx.helper.make_tensor("", onnx.TensorProto.INT64, shape, places)
    model.graph.sparse_initializer.append(
        onnx.SparseTensorProto(values=values, indices=indices, dims=dims)
    )
    return model


@pytest.mark.parametrize("rank", [1, 2])
def test_elements_of_a_sparse_one_are_set(tmp_path: Path, rank: int) -> None:
    path = tmp_path / "s.onnx"
    places = [0, 1, 1, 0] if rank == 2 else [1, 2]
    path.write_bytes(sparse_model(places, [2, 2], rank=rank).SerializeToString())
    document = Document.open(path)
    record = document.main.records["sparse_initializer"][0]
    text = sparse_lines(document, record)
    assert text == "float32 [2, 2]\n0, 1 = 1.5\n1, 0 = 2.5"
    typed = text.replace("[2, 2]", "[2, 3]") + "\n\n(0, 0) = -inf\n"
    document.apply("set_sparse", scope=[], name="s", **read_sparse_lines(typed))
    (record,) = document.main.records["sparse_initializer"]
    assert len(record.indices.dims) == rank
    document.apply("to_dense", scope=[], names=["s"])
    tensor = tensor_in(document, "s")
    assert tensor.shape == (2, 3)
    assert tensor.read().tolist() == [-np.inf, 1.5, 0, 2.5, 0, 0]
