"""Every element type in every encoding reads as onnx reads it, whole and in parts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper
import pytest
from onnx import TensorProto

from dld_tui.core.errors import InputError
from dld_tui.core.model.document import Document
from dld_tui.core.model.tensors.tensor import tensor_statistics
from tests.support import models
from tests.support.sessions import tensor_in

TYPED_FIELDS = {
    "float_data": ["FLOAT", "COMPLEX64"],
    "double_data": ["DOUBLE", "COMPLEX128"],
    "int64_data": ["INT64"],
    "uint64_data": ["UINT64", "UINT32"],
    "int32_data": [
        "INT32", "INT16", "INT8", "INT4", "UINT16", "UINT8", "UINT4", "BOOL", "FLOAT16",
        "BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ",
        "FLOAT4E2M1",
    ],
}  # fmt: skip
ALL_TYPES = [name for names in TYPED_FIELDS.values() for name in names]


def tensor_of(name: str, count: int, *, raw: bool) -> TensorProto:
    number = TensorProto.DataType.Value(name)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(number)
    values = (np.arange(count) % 7).astype(dtype)
    if name.startswith("COMPLEX"):
        values = values + 1j * values
    if raw:
        return onnx.numpy_helper.from_array(values.astype(dtype), name)
    return onnx.helper.make_tensor(name, number, [count], values.astype(dtype))


def opened(folder: Path, *tensors: TensorProto) -> Document:
    model = models.parse(models.CHAIN)
    model.graph.initializer.extend(tensors)
    path = folder / "m.onnx"
    path.write_bytes(model.SerializeToString())
    return Document.open(path)


@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.parametrize("count", [5, 9000])
@pytest.mark.parametrize("name", ALL_TYPES)
def test_every_type_reads_as_onnx_does(tmp_path: Path, name: str, count: int, raw: bool) -> None:
    proto = tensor_of(name, count, raw=raw)
    expected = onnx.numpy_helper.to_array(proto).reshape(-1)
    tensor = tensor_in(opened(tmp_path, proto), name)
    assert tensor.problem is None
    listed = tensor.listed()
    assert listed == tensor.read().tolist()
    assert {type(value) for value in listed} == {type(tensor.read()[:1].tolist()[0])}
    np.testing.assert_array_equal(tensor.read().astype(expected.dtype), expected)
    part = tensor.read(3, count - 4)
    np.testing.assert_array_equal(part.astype(expected.dtype), expected[3 : count - 1])


def test_strings(tmp_path: Path) -> None:
    proto = onnx.helper.make_tensor("s", TensorProto.STRING, [2], [b"a", b"\xff"])  # type: ignore[list-item]
    tensor = tensor_in(opened(tmp_path, proto), "s")
    assert list(tensor.read()) == tensor.listed() == [b"a", b"\xff"]
    assert tensor_statistics(tensor) is None


def _broken(**fields: object) -> TensorProto:
    data_type = fields.pop("data_type", TensorProto.FLOAT)
    dims = fields.pop("dims", [4, 4])
    return TensorProto(name="t", data_type=data_type, dims=dims, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("proto", "problem"),
    [
        (_broken(raw_data=b"\0" * 37), "raw_data has 37 B, 4x4 float32 needs 64 B"),
        (_broken(raw_data=b"\0" * 64, float_data=[1.0]), "has both raw_data and float_data"),
        (_broken(), "has no data (weightless model?)"),
        (_broken(data_type=0, raw_data=b"\0"), "data type UNDEFINED"),
        (_broken(dims=[2**63 - 1, 2**63 - 1], raw_data=b"\0"), "element count overflows"),
        (_broken(dims=[-1], raw_data=b""), "negative dimension"),
        (_broken(data_type=99, raw_data=b"\0"), "type 99 cannot be in raw_data"),
    ],
)
def test_broken_tensors_say_why_and_allocate_nothing(
    tmp_path: Path, proto: TensorProto, problem: str
) -> None:
    tensor = tensor_in(opened(tmp_path, proto), "t")
    assert tensor.problem is not None
    assert problem in tensor.problem
    for read_all in (tensor.read, tensor.listed):
        with pytest.raises(InputError):
            read_all()


def test_typed_field_of_the_wrong_length(tmp_path: Path) -> None:
    document = opened(tmp_path, _broken(float_data=[1.0, 2.0]))
    with pytest.raises(InputError, match="16 elements"):
        tensor_in(document, "t").read()


@pytest.mark.parametrize(
    ("name", "needed"), [("INT4", 2501), ("INT2", 1251), ("INT8", 5001), ("FLOAT16", 5001)]
)
def test_a_long_typed_field_of_the_wrong_length(tmp_path: Path, name: str, needed: int) -> None:
    proto = _broken(data_type=TensorProto.DataType.Value(name), dims=[5001], int32_data=[1] * 4500)
    wanted = f"int32_data has 4500 values, 5001 elements need {needed}"
    with pytest.raises(InputError, match=wanted):
        tensor_in(opened(tmp_path, proto), "t").read()


def test_statistics_leave_out_what_is_not_finite_and_merge_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dld_tui.core.model.tensors.tensor.PART_ELEMENTS", 7)
    values = np.linspace(-3, 5, 100).astype(np.float32)
    values[[1, 2, 3]] = [np.nan, np.inf, -np.inf]
    values[[10, 11]] = 0
    found = tensor_statistics(
        tensor_in(opened(tmp_path, onnx.numpy_helper.from_array(values, "t")), "t")
    )
    finite = values[np.isfinite(values)].astype(np.float64)
    assert found is not None
    assert (found.count, found.zeros, found.nans, found.infinities) == (100, 2, 1, 2)
    assert found.minimum == finite.min()
    assert found.maximum == finite.max()
    assert found.mean == pytest.approx(finite.mean())
    assert found.std == pytest.approx(finite.std())


def test_statistics_tell_how_far_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dld_tui.core.model.tensors.tensor.PART_ELEMENTS", 4)
    proto = onnx.numpy_helper.from_array(np.arange(10, dtype=np.int8), "t")
    done: list[tuple[int, int]] = []
    tensor = tensor_in(opened(tmp_path, proto), "t")
    tensor_statistics(tensor, progress=lambda now, all_: done.append((now, all_)))
    assert done == [(4, 10), (8, 10), (10, 10)]


@pytest.mark.parametrize(
    ("field", "data_type", "numbers"),
    [
        ("int32_data", TensorProto.INT32, range(6000)),
        ("int64_data", TensorProto.INT64, range(-3000, 3000)),
        ("float_data", TensorProto.FLOAT, range(6000)),
        ("double_data", TensorProto.DOUBLE, range(6000)),
        ("int32_data", TensorProto.INT8, [number % 200 - 100 for number in range(6000)]),
    ],
)
def test_a_field_in_several_chunks_is_read_whole(
    tmp_path: Path, field: str, data_type: int, numbers: Sequence[int]
) -> None:
    head = TensorProto(name="t", data_type=data_type, dims=[6000])
    # Messages behind each other are one whose lists are joined.
    parts = [TensorProto() for _ in range(3)]
    for at, part in enumerate(parts):
        getattr(part, field).extend(numbers[at * 2000 : at * 2000 + 2000])
    data = b"".join(part.SerializeToString() for part in (head, *parts))
    length = bytes([len(data) & 0x7F | 0x80, len(data) >> 7 & 0x7F | 0x80, len(data) >> 14])
    graph = onnx.helper.make_graph([], "g", [], [])
    model = onnx.helper.make_model(graph)
    model.ClearField("graph")
    inner = graph.SerializeToString() + b"\x2a" + length + data
    size = bytes([len(inner) & 0x7F | 0x80, len(inner) >> 7 & 0x7F | 0x80, len(inner) >> 14])
    path = tmp_path / "chunks.onnx"
    path.write_bytes(model.SerializeToString() + b"\x3a" + size + inner)
    assert onnx.load(path).graph.initializer[0].dims == [6000]
    assert tensor_in(Document.open(path), "t").read().tolist() == [*numbers]


def test_statistics_of_nothing(tmp_path: Path) -> None:
    proto = onnx.numpy_helper.from_array(np.zeros((0, 3), np.float32), "t")
    found = tensor_statistics(tensor_in(opened(tmp_path, proto), "t"))
    assert found is not None
    assert (found.count, found.minimum, found.std) == (0, None, None)
