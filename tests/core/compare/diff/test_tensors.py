"""Comparing and hashing the values of tensors, in every form that a file may keep them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from dld_tui.core.compare.diff import diff_documents, tensors
from dld_tui.core.compare.diff.tensors import Meter, TensorDifference, digest, tensor_difference
from dld_tui.core.errors import CancelledError, InputError
from dld_tui.core.model.document import Document
from dld_tui.core.model.tensors.tensor import Tensor
from tests.support.known import known


def tensor(values: object, dtype: type | np.dtype[np.generic] = np.float32) -> Tensor:
    return Tensor(numpy_helper.from_array(np.asarray(values, dtype), "t"), None)


def typed(data_type: int, values: Sequence[Any]) -> Tensor:
    """Return a tensor that is kept in the field of its type, not in ``raw_data``."""
    return Tensor(helper.make_tensor("t", data_type, [len(values)], values), None)


def difference(old: Tensor, new: Tensor) -> TensorDifference:
    found = known(tensor_difference(old, new, Meter()))
    return found


def model_of(weights: dict[str, np.ndarray], path: Path, **options: Any) -> Path:
    """Write a model of some weights; large enough ones stay in the file when it is opened."""
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", 1, [1])],
        [helper.make_tensor_value_info("y", 1, [1])],
        [numpy_helper.from_array(values, name) for name, values in weights.items()],
    )
    onnx.save(helper.make_model(graph), path, **options)
    return path


def test_how_the_file_keeps_the_values_does_not_matter() -> None:
    raw = tensor([1, 2, 3])
    kept = typed(TensorProto.FLOAT, [1.0, 2.0, 3.0])
    assert tensor_difference(raw, kept, Meter()) is None
    assert digest(raw, Meter()) == digest(kept, Meter())
    whole = tensor([1, -2, 3], np.int64)
    varints = typed(TensorProto.INT64, [1, -2, 3])
    assert tensor_difference(whole, varints, Meter()) is None
    assert digest(whole, Meter()) == digest(varints, Meter())
    assert difference(whole, typed(TensorProto.INT64, [1, -2, 7])).max_abs == 4


@pytest.mark.parametrize("data_type", [TensorProto.INT4, TensorProto.UINT4, TensorProto.FLOAT16])
def test_narrow_elements(data_type: int) -> None:
    old, new = (typed(data_type, values) for values in ([1, 2, 3], [1, 2, 5]))
    found = difference(old, new)
    assert (found.different, found.max_abs) == (1, 2.0)
    raw = Tensor(helper.make_tensor("t", data_type, [3], [1, 2, 3]), None)
    assert digest(raw, Meter()) == digest(old, Meter())


def test_a_narrow_tensor_in_raw_data_hashes_like_one_in_its_field() -> None:
    proto = TensorProto(name="t", data_type=TensorProto.INT4, dims=[3], raw_data=b"\x21\x03")
    assert digest(Tensor(proto, None), Meter()) == digest(
        typed(TensorProto.INT4, [1, 2, 3]), Meter()
    )


def test_strings_and_complex_numbers() -> None:
    old, new = (typed(TensorProto.STRING, values) for values in (["a", "b"], ["a", "c"]))
    assert difference(old, new) == TensorDifference(2, 1, None, None)
    assert digest(old, Meter()) != digest(new, Meter())
    split = typed(TensorProto.STRING, ["ab", ""])
    assert digest(split, Meter()) != digest(typed(TensorProto.STRING, ["a", "b"]), Meter())
    assert difference(tensor([1 + 1j], np.complex64), tensor([1 - 2j], np.complex64)).max_abs == 3


def test_parts_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(3)
    old = random.standard_normal(1000).astype(np.float32)
    new = old.copy()
    new[:500:7] += random.standard_normal(72).astype(np.float32)  # later parts are the same
    whole = difference(tensor(old), tensor(new))
    monkeypatch.setattr(tensors, "PART_ELEMENTS", 64)
    parts = difference(tensor(old), tensor(new))
    assert (parts.different, parts.max_abs) == (whole.different, whole.max_abs)
    assert parts.mean_abs == pytest.approx(whole.mean_abs)
    apart = np.abs(old.astype(np.float64) - new)
    assert whole.max_abs == apart.max()
    assert whole.mean_abs == pytest.approx(apart.mean())
    assert whole.different == 72


def test_progress_counts_the_bytes_of_files(tmp_path: Path) -> None:
    values = np.arange(50_000, dtype=np.float32)
    path = model_of({"w": values}, tmp_path / "old.onnx")
    other = model_of({"w": values[::-1].copy()}, tmp_path / "new.onnx")
    seen: list[tuple[int, int]] = []
    found = diff_documents(
        Document.open(path), Document.open(other), progress=lambda *step: seen.append(step)
    )
    assert seen[-1] == (200_000, 200_000)
    assert found.counts() == {"initializer": {"changed": 1}}


def test_a_file_is_not_read_to_compare_it_with_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = model_of({"w": np.arange(50_000, dtype=np.float32)}, tmp_path / "old.onnx")
    old, new = Document.open(path), Document.open(path)

    def read(*_: object) -> bytes:
        raise AssertionError("a payload was read")

    monkeypatch.setattr("dld_tui.core.files.blobs.Blob.read", read)
    assert diff_documents(old, new).same


def test_external_data_of_an_attribute(tmp_path: Path) -> None:
    """Two nodes with the same bytes may differ in the file that they refer to."""
    documents = []
    for folder, value in (("a", 1.0), ("b", 2.0)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "w.data").write_bytes(np.float32(value).tobytes())
        tensor = TensorProto(name="t", data_type=1, dims=[1], data_location=TensorProto.EXTERNAL)
        tensor.external_data.add(key="location", value="w.data")
        node = helper.make_node("Any", ["x"], ["y"], "n", domain="d", value=tensor)
        graph = helper.make_graph([node], "g", [], [])
        path = tmp_path / folder / "m.onnx"
        path.write_bytes(helper.make_model(graph).SerializeToString())
        documents.append(Document.open(path))
    (scope,) = diff_documents(*documents).scopes
    (change,) = scope.changes
    assert [field.name for field in change.fields] == ["attribute value"]


def test_tensors_without_data() -> None:
    empty = Tensor(TensorProto(name="t", data_type=1, dims=[2]), None)
    with pytest.raises(InputError):
        digest(empty, Meter())
    with pytest.raises(InputError):
        tensor_difference(empty, tensor([1, 2]), Meter())


def test_cancel_while_a_tensor_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensors, "PART_ELEMENTS", 8)
    asked = iter([False, False, False, True])
    meter = Meter(cancelled=lambda: next(asked))
    with pytest.raises(CancelledError):
        tensor_difference(tensor(range(100)), tensor(range(1, 101)), meter)
    assert next(asked, None) is None
