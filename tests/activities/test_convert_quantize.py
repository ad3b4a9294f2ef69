"""What quantization refuses before it begins, and what it makes."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import cast

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from dld_tui.core.errors import ActivityError, InputError, UsageError
from tests.activities.test_convert_batch import LAYERS, convert, with_matrix
from tests.support import models

pytest.importorskip("onnxruntime")
TOKENS = """
<ir_version: 10, opset_import: ["" : 18]>
tokens (int64[N, L] ids) => (float[N, L, 4] y)
{
    [look] e = Gather(w, ids)
    [mul] y = MatMul(e, v)
}
"""
GOOD = np.ones((2, 4), np.float32)


class Evil:
    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, ("loaded",)


def objects(path: Path) -> None:
    array = np.empty(1, object)
    array[0] = Evil()
    np.save(path, array, allow_pickle=True)


def refusal(folder: Path, tmp_path: Path) -> str:
    path, out = with_matrix(tmp_path, LAYERS, 4, 4), tmp_path / "out.onnx"
    with pytest.raises(InputError) as caught:
        convert("quantize", path, out, calibration=folder)
    assert not out.exists()
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("x.npy", np.ones((2, 5), np.float32), "x.npy: has shape [2, 5], but the model has x"),
        ("x.npy", np.ones(4, np.float32), "x.npy: has shape [4], but the model has x"),
        ("x.npy", np.ones((2, 4)), "x.npy: has type float64, but the model has x float32[N, 4]"),
        ("y.npy", GOOD, "y.npy: fits no input. The inputs: x"),
        ("x.npy", GOOD * np.nan, "set_1: input x float32[N, 4] holds values that are infinite or"),
        ("x.npy", GOOD * np.inf, "set_1: input x float32[N, 4] holds values that are"),
        ("x.npy", GOOD[:0], "set_1: input x float32[N, 4] has no elements"),
        ("x.npy", b"words", "x.npy: cannot be read: it is no .npy file"),
        ("x.npy", pickle.dumps(Evil()), "x.npy: cannot be read: it is no .npy file"),
        ("x.npy", objects, "x.npy: cannot be read: it holds Python objects"),
        ("x.npy", Path.mkdir, "x.npy: is not a file"),
        ("x.npz", lambda path: np.savez(path, x=GOOD), "there is no file for input x float32[N, 4]"
         ". Files are input_0.pb, input_1.pb, … or NAME.npy, not as x.npz"),
        ("x.npy", b"PK\3\4 and so on", "x.npy: is not one array"),
    ],
)  # fmt: skip
def test_a_bad_input_is_refused_by_name_before_anything_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: object, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "c"
    for number in range(2):
        (folder / f"test_data_set_{number}").mkdir(parents=True)
    np.save(folder / "test_data_set_0" / "x.npy", GOOD)
    bad = folder / "test_data_set_1" / name
    if isinstance(content, np.ndarray):
        np.save(bad, content)
    elif isinstance(content, bytes):
        bad.write_bytes(content)
    else:
        cast("Callable[[Path], None]", content)(bad)
    said = refusal(folder, tmp_path)
    assert says in said
    assert "test_data_set_1" in said
    assert not (tmp_path / "loaded").exists()


def test_an_empty_folder_and_a_missing_input_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    folder.mkdir()
    assert "there is no file for input x float32[N, 4]" in refusal(folder, tmp_path)
    assert "absent: is not a folder" in refusal(tmp_path / "absent", tmp_path)


def test_a_folder_of_many_files_that_fit_nothing_is_refused_at_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, read = tmp_path / "c", list[object]()
    folder.mkdir()
    for number in range(500):
        (folder / f"sample_{number:03}.npy").touch()
    monkeypatch.setattr(np, "load", lambda *given, **more: read.append(given))
    assert "sample_000.npy: fits no input" in refusal(folder, tmp_path)
    assert read == []


def tokens(folder: Path) -> Path:
    model = models.parse(TOKENS)
    rng = np.random.default_rng(0)
    for name, dims in (("w", (10, 4)), ("v", (4, 4))):
        values = rng.standard_normal(dims).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(values, name))
    path = folder / "tokens.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def token_sets(folder: Path, *ids: list[list[int]]) -> Path:
    for number, values in enumerate(ids):
        one = folder / f"test_data_set_{number}"
        one.mkdir(parents=True)
        np.save(one / "input_0.npy", np.array(values, np.int64))
    return folder


def test_token_inputs_of_several_lengths_are_taken_by_a_method_that_keeps_all_values(
    tmp_path: Path,
) -> None:
    path, out = tokens(tmp_path), tmp_path / "out.onnx"
    folder = token_sets(tmp_path / "c", [[1, 2, 3]], [[4, 5]], [[6]])
    result = convert("quantize", path, out, calibration=folder, method="percentile")
    assert (result["sets"], result["notes"]) == (3, [])
    assert "QuantizeLinear" in [node.op_type for node in onnx.load(out).graph.node]


def test_inputs_that_the_model_cannot_be_run_with_are_named(tmp_path: Path) -> None:
    path, out = tokens(tmp_path), tmp_path / "out.onnx"
    folder = token_sets(tmp_path / "c", [[1, 2]], [[99, 5]])
    with pytest.raises(ActivityError, match=r"Quantizing: test_data_set_1: .*out of"):
        convert("quantize", path, out, calibration=folder)
    assert not out.exists()


def test_weights_in_constant_nodes_are_quantized_too(tmp_path: Path) -> None:
    path, out = with_matrix(tmp_path, LAYERS, 4, 4), tmp_path / "out.onnx"
    model = onnx.load(path)
    weight = model.graph.initializer.pop()
    held = onnx.helper.make_node("Constant", [], ["w"], "held", doc_string="why", value=weight)
    model.graph.node.insert(0, held)
    model.opset_import.add(domain="", version=18)  # said twice
    path.write_bytes(model.SerializeToString())
    result = convert("quantize", path, out, dynamic=True)
    assert result["notes"] == ["1 Constant node made initializers"]
    after = cast("dict[str, dict[str, int]]", result["after"])
    assert after["weights_by_type"]["int8"] >= 16


def test_nothing_to_quantize_is_said(tmp_path: Path) -> None:
    path, out = with_matrix(tmp_path, LAYERS, 4, 4), tmp_path / "out.onnx"
    result = convert("quantize", path, out, dynamic=True, ops=("Conv",))
    assert result["notes"] == [
        "nothing was quantized: no operator that can be has a weight or is chosen"
    ]


def test_scales_of_channels_need_operators_that_have_them(tmp_path: Path) -> None:
    path = with_matrix(tmp_path, LAYERS.replace(": 18", ": 11"), 4, 4)
    with pytest.raises(UsageError, match="--per-channel needs opset 13, and the model has 11"):
        convert("quantize", path, tmp_path / "o.onnx", calibration=tmp_path, per_channel=True)
