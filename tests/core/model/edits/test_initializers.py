"""Initializers are added, deleted, made external and sparse; names and scopes stay whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.model.document import Document
from dld_tui.core.model.document.serialise import save
from dld_tui.core.types import JSON
from tests.support.sessions import opened, tensor_in

ZEROS: JSON = {"kind": "zeros"}


def add(document: Document, name: str, scope: list[JSON] | None = None, **more: JSON) -> None:
    arguments: dict[str, JSON] = {"dtype": "float32", "dims": [2], "fill": ZEROS, **more}
    document.apply("add_initializer", scope=scope or [], name=name, **arguments)


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
