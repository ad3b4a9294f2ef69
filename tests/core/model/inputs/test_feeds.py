from __future__ import annotations

import pickle
import struct
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from dld_tui.core.errors import InputError, UsageError
from dld_tui.core.model.inputs.feeds import input_feeds, load_input_sets
from dld_tui.core.model.inputs.shapes import InputSpec

SPECS = [InputSpec("x", "float32", ("N", 3))]


def test_random_sets_come_from_their_seeds() -> None:
    first, again, other = input_feeds(SPECS, None, ["x:2x3"], [5, 5, 6]).sets
    assert first["x"].shape == (2, 3)
    np.testing.assert_array_equal(first["x"], again["x"])
    assert not np.array_equal(first["x"], other["x"])


def test_sets_of_a_folder_have_their_own_shapes(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((4, 3), np.float32))
    (only,) = input_feeds(SPECS, tmp_path, [], [0]).sets
    assert only["x"].shape == (4, 3)
    with pytest.raises(UsageError, match="cannot be used with --inputs"):
        input_feeds(SPECS, tmp_path, ["x:4x3"], [0])


X = InputSpec("x", "float32", ("N", 2))
Y = InputSpec("gpu_0/y:0", "int64", ())
ONES = np.ones((3, 2), np.float32)


def save_pb(path: Path, array: object, name: str = "") -> None:
    path.write_bytes(numpy_helper.from_array(np.asarray(array), name).SerializeToString())


def refusal(folder: Path, *specs: InputSpec) -> str:
    with pytest.raises(InputError) as caught:
        load_input_sets(folder, specs or (X,))
    assert caught.value.status == 3
    return str(caught.value)


def test_numbered_tensor_files(tmp_path: Path) -> None:
    save_pb(tmp_path / "input_0.pb", ONES)
    save_pb(tmp_path / "input_1.pb", np.int64(5))
    save_pb(tmp_path / "output_0.pb", ONES)
    (tmp_path / "about.txt").write_text("not data")

    (only,) = load_input_sets(tmp_path, [X, Y])
    assert list(only.values) == ["x", "gpu_0/y:0"]
    assert np.array_equal(only.values["x"], ONES)
    assert only.values["gpu_0/y:0"] == 5
    assert np.shape(only.values["gpu_0/y:0"]) == ()


def test_a_tensor_that_has_the_name_of_an_input_is_that_input(tmp_path: Path) -> None:
    save_pb(tmp_path / "input_0.pb", np.int64(5), "gpu_0/y:0")
    save_pb(tmp_path / "input_1.pb", ONES, "x")

    (only,) = load_input_sets(tmp_path, [X, Y])
    assert np.array_equal(only.values["x"], ONES)


def test_several_sets_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for number in (10, 2, 1):
        folder = tmp_path / f"test_data_set_{number}"
        folder.mkdir()
        np.save(folder / "x.npy", ONES * number)

    sets = load_input_sets(tmp_path, [X])
    assert [one.folder.name for one in sets] == [f"test_data_set_{n}" for n in (1, 2, 10)]
    assert np.array_equal(sets[2].values["x"], ONES * 10)


def test_types_that_numpy_files_cannot_name(tmp_path: Path) -> None:
    spec = InputSpec("x", "bfloat16", (2,))
    values = np.array([1, 2], ml_dtypes.bfloat16)
    for name, array in (("void", values), ("bits", values.view(np.uint16))):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "x.npy", array)
        (only,) = load_input_sets(tmp_path / name, [spec])
        assert np.array_equal(only.values["x"], values)


def test_strings(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array(["a", "é"]))

    (only,) = load_input_sets(tmp_path, [InputSpec("x", "string", (2,))])
    assert list(only.values["x"]) == ["a", "é"]


def test_a_sequence(tmp_path: Path) -> None:
    items = [np.ones(2, np.float32), np.ones(3, np.float32)]
    sequence = numpy_helper.from_list(items, "s")
    (tmp_path / "input_0.pb").write_bytes(sequence.SerializeToString())

    (only,) = load_input_sets(tmp_path, [InputSpec("s", "float32", None, "sequence")])
    assert [np.shape(item) for item in only.values["s"]] == [(2,), (3,)]


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (ONES.astype(np.float64), "has type float64, but the model has x float32[N, 2]"),
        (np.ones((3, 3), np.float32), "has shape [3, 3], but the model has x float32[N, 2]"),
        (np.ones(2, np.float32), "has shape [2], but the model has x float32[N, 2]"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(tmp_path: Path, array: object, says: str) -> None:
    np.save(tmp_path / "x.npy", np.asarray(array))
    assert f"{tmp_path / 'x.npy'}: {says}" in refusal(tmp_path)
    (tmp_path / "x.npy").unlink()
    save_pb(tmp_path / "input_0.pb", array)
    assert says in refusal(tmp_path)


def test_a_missing_an_extra_and_a_second_file_are_named(tmp_path: Path) -> None:
    assert "there is no file for input x float32[N, 2]" in refusal(tmp_path)
    assert "the folder does not exist. Files are input_0.pb" in refusal(tmp_path / "absent")
    np.save(tmp_path / "z.npy", ONES)
    assert "z.npy: fits no input. The inputs: x" in refusal(tmp_path)
    (tmp_path / "z.npy").rename(tmp_path / "x.npy")
    np.save(tmp_path / "input_0.npy", ONES)
    assert "a second file for input x" in refusal(tmp_path)


def test_a_pickle_is_never_loaded(tmp_path: Path) -> None:
    evil = np.array([{"a": 1}], dtype=object)
    np.save(tmp_path / "x.npy", evil, allow_pickle=True)
    assert "they are never read" in refusal(tmp_path)
    (tmp_path / "x.npy").write_bytes(pickle.dumps([1]))
    assert "cannot be read" in refusal(tmp_path)


def test_a_header_that_no_tokenizer_takes(tmp_path: Path) -> None:
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1,\n"
    start = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header))
    (tmp_path / "x.npy").write_bytes(start + header + bytes(8))
    assert "x.npy: has a header that cannot be read" in refusal(tmp_path)


def test_a_file_that_claims_more_than_it_holds(tmp_path: Path) -> None:
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776, 2), }"
    header = header.ljust(117) + b"\n"
    start = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header))
    (tmp_path / "x.npy").write_bytes(start + header + b"1234")
    assert "x.npy: is cut short" in refusal(tmp_path)


@pytest.mark.parametrize("data", [b"\xff" * 20, b"", b"\x08\xff\xff\xff\xff\x0f"])
def test_a_torn_tensor_file(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "input_0.pb").write_bytes(data)
    assert "input_0.pb: " in refusal(tmp_path)


def test_external_data_of_a_tensor_file_is_not_followed(tmp_path: Path) -> None:
    tensor = numpy_helper.from_array(ONES, "x")
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/passwd")
    (tmp_path / "input_0.pb").write_bytes(tensor.SerializeToString())
    assert "refers to another file" in refusal(tmp_path)
