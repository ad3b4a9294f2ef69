"""Tensors go to .npy files and back; wrong files are refused by name."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest

from dld_tui.core.errors import CancelledError, EditError, InputError, SaveError
from dld_tui.core.model.document import Document
from dld_tui.core.model.tensors.elements import payload_bytes, require_dtype
from dld_tui.core.model.tensors.npy import export_npy, import_npy, read_npy_header
from dld_tui.core.model.tensors.tensor import Tensor
from dld_tui.core.types import JSON
from tests.support import models
from tests.support.elements import DTYPES
from tests.support.sessions import tensor_in


@pytest.fixture
def document(tmp_path: Path) -> Document:
    return Document.open(models.write(tmp_path, models.CHAIN))


def random_tensor(document: Document, dtype: str, dims: tuple[int, ...]) -> Tensor:
    length = payload_bytes(dtype, int(np.prod(dims))) or 0
    data = np.random.default_rng(1).integers(0, 2 if dtype == "bool" else 256, length, np.uint8)
    proto = onnx.TensorProto(data_type=require_dtype(dtype), dims=dims, raw_data=bytes(data))
    return Tensor(proto, document)


def imported(document: Document, path: Path, **wanted: Any) -> Tensor:
    found = import_npy(document, path, **wanted)
    fill: JSON = {"kind": "payload", "payload": found.payload}
    document.apply(
        "add_initializer", scope=[], name="in", dtype=found.dtype, dims=list(found.dims), fill=fill
    )
    return tensor_in(document, "in")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dims", [(), (3, 4), (40_000, 2), (0, 3)])
def test_every_type_comes_back_bit_by_bit(
    document: Document, tmp_path: Path, dtype: str, dims: tuple[int, ...]
) -> None:
    tensor = random_tensor(document, dtype, dims)
    path = tmp_path / "x.npy"
    remarks = export_npy(tensor, path)
    raw = np.load(path)  # numpy itself reads it, without pickle
    assert raw.shape == dims
    assert bool(remarks) == (raw.dtype.name != dtype)
    back = imported(document, path, dtype=dtype, dims=dims)
    assert back.read().tobytes() == tensor.read().tobytes()
    assert back.shape == dims


def test_tensors_of_varints_and_typed_fields(document: Document, tmp_path: Path) -> None:
    values = np.arange(5000) - 2500
    for proto in (
        onnx.helper.make_tensor("a", onnx.TensorProto.INT64, [5000], values),
        onnx.helper.make_tensor("a", onnx.TensorProto.INT32, [5], values[:5]),
        onnx.helper.make_tensor("a", onnx.TensorProto.FLOAT, [5000], values),
    ):
        export_npy(Tensor(proto, document), tmp_path / "x.npy", overwrite=True)
        assert np.array_equal(np.load(tmp_path / "x.npy"), onnx.numpy_helper.to_array(proto))


def test_strings(document: Document, tmp_path: Path) -> None:
    texts: Any = [b"a", "äö".encode(), b""]
    proto = onnx.helper.make_tensor("s", onnx.TensorProto.STRING, [3], texts)
    export_npy(Tensor(proto, document), tmp_path / "u.npy")
    assert np.load(tmp_path / "u.npy").tolist() == ["a", "äö", ""]
    found = import_npy(document, tmp_path / "u.npy")
    assert (found.dtype, found.payload) == ("string", {"values": ["a", "äö", ""]})
    proto.string_data[0] = b"\xff"
    export_npy(Tensor(proto, document), tmp_path / "b.npy")
    assert np.load(tmp_path / "b.npy").tolist() == [b"\xff", "äö".encode(), b""]
    assert import_npy(document, tmp_path / "b.npy").payload == {"values": ["\udcff", "äö", ""]}
    np.save(tmp_path / "f.npy", np.asfortranarray([["a", "b"], ["c", "d"]]))
    assert import_npy(document, tmp_path / "f.npy").payload == {"values": ["a", "b", "c", "d"]}
    proto.string_data[0] = b"a\0"
    with pytest.raises(InputError, match="end with NUL"):
        export_npy(Tensor(proto, document), tmp_path / "n.npy")


@pytest.mark.parametrize("name", ["bfloat16", "float8_e5m2", "float8_e4m3fn", "int4", "uint4"])
def test_what_numpy_writes_of_ml_dtypes_is_taken_when_the_type_is_given(
    document: Document, tmp_path: Path, name: str
) -> None:
    values = np.array([-1, 2, 3] if name != "uint4" else [1, 2, 15])
    array = values.astype(getattr(ml_dtypes, name))
    np.save(tmp_path / "x.npy", array)
    tensor = imported(document, tmp_path / "x.npy", dtype=name.replace("_", ""))
    assert tensor.read().astype(np.float64).tolist() == values.tolist()
    with pytest.raises(InputError, match="elements of an unnamed type"):
        import_npy(document, tmp_path / "x.npy", dtype="float64")


@pytest.mark.parametrize(
    ("kind", "dtype", "fits"),
    [
        ("u2", "bfloat16", True), ("V2", "bfloat16", True), ("V1", "float8e5m2", True),
        ("u4", "bfloat16", False), ("i2", "bfloat16", False), ("f2", "bfloat16", False),
        ("V2", "float8e5m2", False), ("u1", "int4", False), ("i1", "int4", True),
    ],
)  # fmt: skip
def test_bits_stand_for_types_of_their_width_that_numpy_lacks(
    document: Document, tmp_path: Path, kind: str, dtype: str, fits: bool
) -> None:
    np.save(tmp_path / "x.npy", np.zeros(4, kind))
    if fits:
        assert import_npy(document, tmp_path / "x.npy", dtype=dtype).dtype == dtype
        return
    with pytest.raises(InputError, match=rf"holds .*(the tensor is|not) {dtype}"):
        import_npy(document, tmp_path / "x.npy", dtype=dtype)


def test_order_and_byte_order_do_not_matter(document: Document, tmp_path: Path) -> None:
    array = np.arange(24, dtype=">i4").reshape(2, 3, 4)
    np.save(tmp_path / "f.npy", np.asfortranarray(array))
    assert read_npy_header(tmp_path / "f.npy").fortran
    tensor = imported(document, tmp_path / "f.npy", dtype="int32", dims=[2, 3, 4])
    assert tensor.read().tolist() == list(range(24))


def test_large_files_are_streamed_with_progress(document: Document, tmp_path: Path) -> None:
    array = np.arange(500_000, dtype=np.float32)
    np.save(tmp_path / "x.npy", array)
    done: list[tuple[int, int]] = []
    found = import_npy(document, tmp_path / "x.npy", progress=lambda *step: done.append(step))
    assert isinstance(found.payload, dict)
    assert found.payload["length"] == array.nbytes
    assert done[-1] == (array.nbytes, array.nbytes)
    with pytest.raises(CancelledError):
        import_npy(document, tmp_path / "x.npy", cancelled=lambda: True)
    tensor = imported(document, tmp_path / "x.npy")
    with pytest.raises(SaveError, match="exists"):
        export_npy(tensor, tmp_path / "x.npy", overwrite=False)


def npy(descr: object, shape: object, data: bytes, version: int = 1, **more: object) -> bytes:
    header = {"descr": descr, "fortran_order": False, "shape": shape, **more}
    text = repr(header).encode("latin-1")
    size = len(text).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + size + text + data


def saved(array: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


RECORDS = np.zeros(2, [("a", "f4"), ("b", "i4")])
OBJECTS = np.array([{}, []], dtype=object)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is not a .npy file"),
        (b"PK\3\4" + bytes(30), "is a .npz archive"),
        (pickle.dumps([1, 2, 3, 4, 5]), "is a pickle"),
        (saved(OBJECTS, allow_pickle=True), "pickled objects"),
        (saved(RECORDS), "records of several fields"),
        (saved(np.zeros(2, "M8[s]")), "which ONNX does not have"),
        (saved(np.zeros(2, np.longdouble)), "which ONNX does not have"),
        (saved(np.zeros(9))[:-1], "is cut short: 71 B of 72 B"),
        (saved(np.zeros(9))[:40], "is cut short in its header"),
        (saved(np.zeros(9)) + b"x", "1 B behind its last element"),
        (npy("<f4", (2,), bytes(8), 9), "version 9"),
        (npy("<f4", (-1,), b""), "impossible shape"),
        (npy("<f4", (2**40, 2**40), b""), "impossible shape"),
        (npy("<f4", 2, bytes(8)), "header that cannot be read"),
        (npy("<f4", (2,), bytes(8), extra=1), "header that cannot be read"),
        (npy("<q4", (2,), bytes(8)), "unknown type"),
        (b"\x93NUMPY\1\0\4\0" + b"[[[[", "header that cannot be read"),
        (b"\x93NUMPY\1\0\0\0", "header that cannot be read"),
        (b"\x93NUMPY\1\0\0", "is not a .npy file"),
        (b"\x93NUMPY\2\0\xff\xff\xff\x7f" + bytes(9), "has a header of"),
        (saved(np.zeros(4, np.float64)), "holds float64, the tensor is float32"),
        (saved(np.zeros((3, 2), np.float32)), r"has shape \[3, 2\], the tensor has \[2, 2\]"),
    ],
)
def test_wrong_files_are_refused_by_name(
    document: Document, tmp_path: Path, content: bytes, why: str
) -> None:
    path = tmp_path / "wrong.npy"
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"wrong.npy: .*{why}"):
        import_npy(document, path, dtype="float32", dims=[2, 2])


def test_numbers_out_of_a_narrow_type_are_refused(document: Document, tmp_path: Path) -> None:
    np.save(tmp_path / "n.npy", np.array([8], np.int8))
    with pytest.raises(InputError, match="int4 cannot hold: it holds -8 to 7"):
        import_npy(document, tmp_path / "n.npy", dtype="int4")
    np.save(tmp_path / "c.npy", np.array([16], np.uint8))
    with pytest.raises(InputError, match="codes that float4e2m1 does not have"):
        import_npy(document, tmp_path / "c.npy", dtype="float4e2m1")
    with pytest.raises(EditError, match="real"):
        import_npy(document, tmp_path / "c.npy", dtype="real")
