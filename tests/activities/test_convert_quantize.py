"""What quantization refuses before it begins, and what it makes."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from dld_tui.activities.convert import quantize
from dld_tui.activities.profile import onnxruntime as profile_onnxruntime
from dld_tui.backends.conversion import quantization, verification
from dld_tui.core.errors import ActivityError, DldError, InputError, UsageError
from dld_tui.core.report.report import open_report
from dld_tui.core.report.triage import is_full_precision, is_quantizable
from tests.support import decoders, models
from tests.support.conversions import LAYERS, convert, detector, with_matrix
from tests.support.rtx import HAS_RTX, build
from tests.support.runtime import has_onnxruntime, needs_onnxruntime

onnxruntime = pytest.importorskip("onnxruntime")
GEMM = """
<ir_version: 10, opset_import: ["" : 18]>
gemm (float[N, 8] x) => (float[N, 4] y) <float[4, 8] w, float[4] b>
{
    [one] y = Gemm <transB = 1> (x, w, b)
}
"""
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
        ("x.npy", b"words", "x.npy: cannot be read: it is not a .npy file"),
        ("x.npy", pickle.dumps(Evil()), "x.npy: cannot be read: it is not a .npy file"),
        ("x.npy", objects, "x.npy: holds pickled objects, which could run code"),
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
    assert "absent: the folder does not exist" in refusal(tmp_path / "absent", tmp_path)


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
    # Without VNNI sums of products of 8 bits are cut off, and 7 bits are taken instead.
    notes = cast("list[str]", result["notes"])
    assert (result["sets"], [one for one in notes if "7 bits" not in one]) == (3, [])
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


@pytest.mark.parametrize(
    ("model", "data", "is_large"),
    [(60, 30, False), (60, 50, True), (10, 100, True), (110, 0, True)],
)
def test_a_model_is_large_with_the_data_beside_it(
    model: int, data: int, is_large: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quantization, "_ONE_FILE", 100)
    path = tmp_path / "m.onnx"
    path.write_bytes(bytes(model))
    path.with_name("m.onnx.data").write_bytes(bytes(data))
    path.with_name("other.onnx").write_bytes(bytes(200))
    assert quantization.is_large(path) is is_large


def test_nothing_to_quantize_is_said(tmp_path: Path) -> None:
    path, out = with_matrix(tmp_path, LAYERS, 4, 4), tmp_path / "out.onnx"
    result = convert("quantize", path, out, dynamic=True, ops=("Conv",))
    assert result["notes"] == [
        "nothing was quantized: no quantizable operator has a weight or is chosen"
    ]


def test_scales_of_channels_where_the_operators_have_them(tmp_path: Path) -> None:
    path = with_matrix(tmp_path, LAYERS.replace(": 18", ": 11"), 4, 4)
    folder = tmp_path / "c"
    folder.mkdir()
    np.save(folder / "x.npy", GOOD)
    result = convert("quantize", path, tmp_path / "o.onnx", calibration=folder)
    (note,) = cast("list[str]", result["notes"])
    assert note.startswith("a scale for each tensor, as DequantizeLinear has one for each channel")


def outputs(path: Path, folder: Path) -> np.ndarray:
    """Run a model by ONNX Runtime alone: the second opinion on what the conversion says."""
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return np.concatenate(
        [session.run(None, {"x": np.load(one / "x.npy")})[0] for one in sorted(folder.iterdir())]
    )


@pytest.mark.broad
def test_scores_that_are_lost_among_boxes_are_wrong_values_and_repaired(tmp_path: Path) -> None:
    path, folder = detector(tmp_path)
    lost, kept = tmp_path / "lost.onnx", tmp_path / "kept.onnx"
    result = convert("quantize", path, lost, calibration=folder, keep_wrong=True)
    values = cast("dict[str, Any]", result["values"])
    before, after = outputs(path, folder), outputs(lost, folder)
    assert np.ptp(before[:, 4:]) > 0.1
    assert np.ptp(after[:, 4:]) == 0, "the scores are dead, which the whole output hides"
    assert not values["is_good"]
    assert "channels of axis 1 are constant" in values["outputs"]["y"]["problem"]
    assert values["first"]["node"] == "all"
    assert "--exclude all" in values["advice"]

    result = convert("quantize", path, kept, calibration=folder, repair=True)
    values = cast("dict[str, Any]", result["values"])
    assert values["is_good"]
    assert [node["node"] for node in values["repaired"]] == ["all"], "one is enough"
    error = outputs(kept, folder)[:, 4:] - before[:, 4:]
    assert np.abs(error).max() < 0.1
    assert any(node.op_type == "QuantizeLinear" for node in onnx.load(kept).graph.node)


@needs_onnxruntime(24)
def test_convolutions_stay_as_they_are_unless_they_are_asked_for(tmp_path: Path) -> None:
    """By rule: a coin of the clock made models of 59 or of 13 dB."""
    path, _ = detector(tmp_path)
    for ops, has_integer in (((), False), (("Conv",), True)):
        out = tmp_path / f"{has_integer}.onnx"
        result = convert("quantize", path, out, dynamic=True, ops=ops)
        kinds = {node.op_type for node in onnx.load(out).graph.node}
        assert ("ConvInteger" in kinds) == has_integer
        notes = " ".join(cast("list[str]", result["notes"]))
        assert ("convolutions stay in floating point" in notes) != has_integer


@pytest.mark.broad
def test_for_tensorrt_all_is_symmetric_and_biases_stay_floating(tmp_path: Path) -> None:
    path, folder = detector(tmp_path)
    out = tmp_path / "o.onnx"
    convert("quantize", path, out, calibration=folder, runtime="tensorrt", repair=True)
    graph = onnx.load(out).graph
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    pairs = [node for node in graph.node if node.op_type.endswith("quantizeLinear")]
    pairs += [node for node in graph.node if node.op_type == "QuantizeLinear"]
    assert pairs
    for node in pairs:
        assert not stored[node.input[2]].any(), "zero points are 0"
    assert not [name for name, value in stored.items() if value.dtype == np.int32]


@pytest.mark.rtx
@pytest.mark.skipif(not HAS_RTX, reason="TensorRT-RTX is not installed: pip install .[rtx]")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tensorrt_builds_what_is_made_for_it_and_refuses_the_other(tmp_path: Path) -> None:
    path, folder = detector(tmp_path)
    ours, theirs = tmp_path / "trt.onnx", tmp_path / "ort.onnx"
    wrong = {"calibration": folder, "keep_wrong": True}  # its scores, which this is not about
    convert("quantize", path, ours, runtime="tensorrt", **wrong)
    convert("quantize", path, theirs, **wrong)
    engine = tmp_path / "e.engine"
    build(ours, engine, compute_capability=("8.9",))
    assert engine.stat().st_size > 10_000
    with pytest.raises(DldError, match="Non-zero zero point"):
        build(theirs, tmp_path / "f.engine", compute_capability=("8.9",))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({}, "static quantization needs --calibration"),
        ({"weights_only": True, "dynamic": True}, "leave out --dynamic"),
        ({"weights_only": True, "weights": "int16"}, "stores int4, uint4, int8 or uint8"),
        ({"dynamic": True, "runtime": "tensorrt"}, "no dynamic quantization"),
        ({"dynamic": True, "repair": True, "values": "never"}, "--repair needs the values"),
    ],
)
def test_settings_that_do_not_go_together(
    tmp_path: Path, settings: dict[str, Any], says: str
) -> None:
    path = with_matrix(tmp_path, LAYERS, 4, 4)
    with pytest.raises(UsageError, match=says):
        convert("quantize", path, tmp_path / "o.onnx", **settings)


@pytest.mark.parametrize("runtime", ["onnxruntime", "tensorrt"])
def test_weights_alone_in_blocks_of_four_bits(tmp_path: Path, runtime: str) -> None:
    opset = 21 if runtime == "tensorrt" else 18
    text = LAYERS.replace(": 18", f": {opset}").replace("N, 4", "N, 64")
    path = with_matrix(tmp_path, text, 64, 64)
    out = tmp_path / "o.onnx"
    result = convert(
        "quantize", path, out, weights_only=True, weights="int4", block=32, runtime=runtime
    )
    kinds = {node.op_type for node in onnx.load(out).graph.node}
    assert ("MatMulNBits" if runtime == "onnxruntime" else "DequantizeLinear") in kinds
    values = cast("dict[str, Any]", result["values"])
    assert values["is_good"], values
    assert 0.001 < 10 ** (-values["outputs"]["y"]["snr_db"] / 20) < 0.3


def test_a_default_that_is_quantized_is_told(tmp_path: Path) -> None:
    path = with_matrix(tmp_path, LAYERS.replace("N, 4", "N, 64"), 64, 64)
    model = onnx.load(path)
    (weight,) = (one for one in model.graph.initializer if list(one.dims) == [64, 64])
    given = onnx.helper.make_tensor_value_info(weight.name, weight.data_type, weight.dims)
    model.graph.input.append(given)
    onnx.save(model, path)
    result = convert(
        "quantize", path, tmp_path / "o.onnx", weights_only=True, weights="int4", block=32
    )
    assert f"{weight.name}: no longer an input, its default was folded" in cast(
        "list[str]", result["notes"]
    )


STAYING = """
<ir_version: 10, opset_import: ["" : 18]>
net (int64[N, 4] ids, float[N, 4, 64] z) => (float[N, 4, 100] logits)
{
    [table] e = Gather(emb, ids)
    [first] a = MatMul(e, w)
    [flat] f = Reshape(z, rows)
    [dense] g = Gemm <transB = 1> (f, w)
    [turned] t = Transpose <perm = [1, 0]> (emb)
    [deep] d = MatMul(e, cube)
    [back] h = Reshape(g, like)
    b = Add(a, h)
    c = Add(b, d)
    [head] logits = MatMul(c, t)
}
"""


@pytest.mark.parametrize("lm_head", [False, True])
def test_products_that_stay_in_floating_point_are_named(tmp_path: Path, lm_head: bool) -> None:
    model = models.parse(STAYING)
    for name, array in (
        ("w", np.eye(64, dtype=np.float32)), ("emb", np.ones((100, 64), np.float32)),
        ("cube", np.ones((2, 64, 64), np.float32)), ("rows", np.array([-1, 64])),
        ("like", np.array([-1, 4, 64])),
    ):  # fmt: skip
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    path, out = tmp_path / "m.onnx", tmp_path / "o.onnx"
    onnx.save(model, path)
    result = convert("quantize", path, out, weights_only=True, weights="int4", lm_head=lm_head)
    kinds = {node.name: node.op_type for node in onnx.load(out).graph.node}
    assert "MatMulNBits" in kinds.values()
    assert [kinds[name] for name in ("dense", "deep", "head")] == ["Gemm", "MatMul", "MatMul"]
    notes = cast("list[str]", result["notes"])
    assert [note for note in notes if "floating point" in note] == [
        "dense stays in floating point: only MatMul can have blocks (dld rewrite gemm-apart makes"
        " one of Gemm)",
        "deep stays in floating point: the weight is not a matrix",
        "head stays in floating point: the weight comes through Transpose",
    ]


SHARED = """
<ir_version: 10, opset_import: ["" : 21]>
net (float[N, 64] x, bool c) => (float[N, 64] y)
{
    [first] a = MatMul(x, w)
    [choose] b = If (c) <
        then_branch = yes () => (float[N, 64] p)
        {
            [nested] q = If (c) <
                then_branch = inner () => (float[N, 64] r) { [deep] r = MatMul(a, w) },
                else_branch = other () => (float[N, 64] s) { s = Neg(a) }
            >
            p = Relu(q)
        },
        else_branch = no () => (float[N, 64] t) { [beside] t = MatMul(x, w) }
    >
    [last] y = MatMul(b, w)
}
"""
BODIES_ONLY = SHARED.replace("MatMul(x, w)\n    [choose]", "Relu(x)\n    [choose]").replace(
    "[last] y = MatMul(b, w)", "[last] y = Relu(b)"
)


@pytest.mark.parametrize("stored_as", ["matmulnbits", "dequantize"])
@pytest.mark.parametrize("text", [SHARED, BODIES_ONLY], ids=["everywhere", "in bodies"])
def test_a_weight_of_several_products_is_stored_once(
    tmp_path: Path, text: str, stored_as: str
) -> None:
    path, out = with_matrix(tmp_path, text, 64, 64), tmp_path / "o.onnx"
    result = convert(
        "quantize", path, out, weights_only=True, weights="int4", block=32, format=stored_as
    )
    assert cast("dict[str, Any]", result["values"])["is_good"]
    found = onnx.load(out)
    names = [tensor.name for tensor in found.graph.initializer]
    assert len(names) == len(set(names)) == 2, "values and scales, and no weight of 32 bits"
    kinds = [node.op_type for graph in _graphs(found.graph) for node in graph.node]
    kept = {"DequantizeLinear": 1} if stored_as == "dequantize" else {"MatMul": 0}
    assert {kind: kinds.count(kind) for kind in kept} == kept
    feeds = {"x": np.random.default_rng(1).standard_normal((3, 64)).astype(np.float32)}
    for condition in (True, False):
        feeds["c"] = np.array(condition)
        before, after = (
            onnxruntime.InferenceSession(one, providers=["CPUExecutionProvider"]).run(None, feeds)[
                0
            ]
            for one in (path, out)
        )
        assert 0 < np.linalg.norm(after - before) < 0.3 * np.linalg.norm(before)


@pytest.mark.broad
@needs_onnxruntime(31)
def test_fp8_where_the_operators_have_it(tmp_path: Path) -> None:
    path, folder = detector(tmp_path)
    out = tmp_path / "o.onnx"
    wanted = {"calibration": folder, "weights": "fp8", "activations": "fp8", "repair": True}
    if has_onnxruntime(32):
        convert("quantize", path, tmp_path / "ort.onnx", **wanted)
    else:
        with pytest.raises(ActivityError, match="ONNX Runtime's optimizer") as refused:
            convert("quantize", path, out, **wanted)
        assert "session.disable_quant_qdq" in str(refused.value)
    result = convert("quantize", path, out, runtime="tensorrt", **wanted)
    types = {tensor.data_type for tensor in onnx.load(out).graph.initializer}
    assert onnx.TensorProto.FLOAT8E4M3FN in types
    assert cast("dict[str, Any]", result["values"])["is_good"]


CLASHES = """
<ir_version: 8, opset_import: ["" : 17]>
net (float[1, 4, 8, 8] x) => (float[1, 4, 8, 8] y)
{
    [first] b2 = Conv(x, w, b)
    [scale] x_scale = Relu(b2)
    [second] c = Conv(x_scale, w, b)
    [sum] y = Add(c, w_scale)
}
"""
"""The library would call the second bias ``b2``, and two scales as values are called."""


def test_names_that_the_library_would_give_twice(tmp_path: Path) -> None:
    model, rng = models.parse(CLASHES), np.random.default_rng(0)
    for name, dims in (("w", (4, 4, 1, 1)), ("b", (4,)), ("b1", (4,)), ("w_scale", (4, 1, 1))):
        values = rng.standard_normal(dims).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(values, name))
    path, folder = tmp_path / "m.onnx", tmp_path / "c"
    path.write_bytes(model.SerializeToString())
    folder.mkdir()
    np.save(folder / "x.npy", rng.standard_normal((1, 4, 8, 8)).astype(np.float32))
    result = convert("quantize", path, tmp_path / "o.onnx", calibration=folder)
    assert cast("dict[str, Any]", result["values"])["is_good"]
    made = onnx.load(tmp_path / "o.onnx").graph
    names = [one.name for one in made.initializer] + [o for n in made.node for o in n.output]
    assert len(names) == len(set(names))


@pytest.mark.broad
def test_a_real_model_whose_names_clash(real_files: Path, tmp_path: Path) -> None:
    path, folder = real_files / "basic_pitch_nmp.onnx", tmp_path / "c"
    folder.mkdir()
    x = np.random.default_rng(0).uniform(-0.5, 0.5, (1, 43844, 1)).astype(np.float32)
    tensor = numpy_helper.from_array(x, onnx.load(path).graph.input[0].name)
    (folder / "input_0.pb").write_bytes(tensor.SerializeToString())
    result = convert(
        "quantize", path, tmp_path / "o.onnx", calibration=folder, method="minmax", measure=False
    )
    assert cast("dict[str, Any]", result["values"])["skipped"] == ""
    assert cast("dict[str, Any]", result["after"])["operators"]["QuantizeLinear"] > 100


def test_the_tensors_are_listed_without_calibration(tmp_path: Path) -> None:
    path = with_matrix(tmp_path, LAYERS, 4, 4)
    result = convert("quantize", path, None, list_only=True)
    points = {one["tensor"]: one for one in cast("list[dict[str, Any]]", result["points"])}
    assert points["w"]["kind"] == "weight"
    assert cast("list[str]", result["lines"])[0].startswith(f"{len(points)} tensors quantized for")
    folder = tmp_path / "c"
    folder.mkdir()
    np.save(folder / "x.npy", GOOD)
    made = convert("quantize", path, tmp_path / "o.onnx", calibration=folder)
    assert made["points"] == result["points"], "what is listed is what is done"
    with pytest.raises(UsageError, match="--list is of static"):
        convert("quantize", path, None, list_only=True, dynamic=True)
    with pytest.raises(UsageError, match="an output is needed"):
        convert("quantize", path, None, calibration=folder)


IN_BRANCH = """
<ir_version: 8, opset_import: ["" : 17]>
in_branch (float[N, 4] x) => (float[N, 4] y)
<bool c = {1}>
{
    h = If (c) <
        then_branch = yes () => (float[N, 4] p) { [inner] p = MatMul(x, w) },
        else_branch = no () => (float[N, 4] q) { q = Identity(x) }
    >
    [outer] y = MatMul(h, w)
}
"""


@pytest.mark.parametrize("is_dynamic", [True, False])
def test_weights_in_bodies_are_quantized_and_verified(tmp_path: Path, is_dynamic: bool) -> None:
    path, out = with_matrix(tmp_path, IN_BRANCH, 4, 4), tmp_path / "out.onnx"
    np.save(tmp_path / "x.npy", np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4))
    data = tmp_path / "data"
    data.mkdir()
    (tmp_path / "x.npy").rename(data / "x.npy")
    # Without VNNI sums of products of 8 bits are cut off, and 7 bits are taken instead.
    how: dict[str, Any] = {"dynamic": True} if is_dynamic else {"calibration": data}
    result = convert("quantize", path, out, **how)
    assert cast("dict[str, Any]", result["values"])["is_good"]
    model = onnx.load(out)
    onnx.checker.check_model(model)
    stored = [one for graph in _graphs(model.graph) for one in graph.initializer]
    assert not [one.name for one in stored
                if one.data_type == onnx.TensorProto.FLOAT and len(one.dims) == 2]  # fmt: skip
    (branch,) = [n for n in model.graph.node if n.op_type == "If"]
    inner = [n.op_type for a in branch.attribute for n in a.g.node]
    assert ("MatMulInteger" if is_dynamic else "MatMul") in inner
    if not is_dynamic:
        points = cast("list[dict[str, Any]]", result["points"])
        assert "inner" in {name for one in points for name in one["nodes"]}


def _graphs(graph: onnx.GraphProto) -> list[onnx.GraphProto]:
    bodies = [a.g for node in graph.node for a in node.attribute if a.HasField("g")]
    return [graph, *(one for body in bodies for one in _graphs(body))]


CONVOLVED = """
<ir_version: 8, opset_import: ["" : 17]>
convolved (float[1, 1, 8] x) => (float[1, 1, 8] y)
<float[1, 1, 3] w = {1, 2, 3}>
{
    y = Conv <pads = [1, 1]> (x, w)
}
"""


def test_a_model_without_operators_of_onnx_is_refused_in_our_words(tmp_path: Path) -> None:
    text = """
    <ir_version: 8, opset_import: ["ai.onnx.ml" : 3]>
    labels (float[N, 1] x) => (float[N, 1] y)
    { y = ai.onnx.ml.Scaler <offset = [0.5], scale = [2.0]> (x) }
    """
    with pytest.raises(ActivityError, match="there is nothing to quantize"):
        convert("quantize", models.write(tmp_path, text), tmp_path / "o.onnx", dynamic=True)


CAPTURES = """
<ir_version: 3, opset_import: ["" : 11]>
captures (float[N, 4] x, bool c, float[4, 4] w) => (float[N, 4] y)
{
    [first] a = MatMul(x, w)
    y = If (c) <
        then_branch = yes () => (float[N, 4] p) { p = Relu(a) },
        else_branch = no () => (float[N, 4] q) { q = Neg(a) }
    >
}
"""


@pytest.mark.parametrize("how", ["dynamic", "weights_only"])
def test_nodes_stay_in_front_of_bodies_that_capture_what_they_make(
    tmp_path: Path, how: str
) -> None:
    path, out = with_matrix(tmp_path, CAPTURES, 4, 4), tmp_path / "out.onnx"
    more: dict[str, Any] = {how: True}
    result = convert("quantize", path, out, **more)
    assert cast("dict[str, Any]", result["values"])["is_good"]
    onnx.checker.check_model(onnx.load(out))


SUMS = """
<ir_version: 8, opset_import: ["" : 17]>
sums (float[N, 64] x) => (float[N, 64] y)
{
    y = MatMul(x, w)
}
"""


def cut_off_model(folder: Path) -> tuple[Path, Path]:
    """Write a model whose sums of products are too large for 16 bits, and inputs of it."""
    model, draw = models.parse(SUMS), np.random.default_rng(0)
    weights = np.abs(draw.standard_normal((64, 64))) + 2
    weights[:, ::2] *= -1
    model.graph.initializer.append(numpy_helper.from_array(weights.astype(np.float32), "w"))
    path, data = folder / "sums.onnx", folder / "data"
    path.write_bytes(model.SerializeToString())
    data.mkdir()
    np.save(data / "x.npy", (np.abs(draw.standard_normal((32, 64))) + 2).astype(np.float32))
    return path, data


@pytest.mark.broad
def test_sums_that_the_processor_cuts_off_are_kept_from_it(tmp_path: Path) -> None:
    """ONNX Runtime adds two products in 16 bits on processors without VNNI."""
    path, data = cut_off_model(tmp_path)
    plain = convert("quantize", path, tmp_path / "7.onnx", calibration=data, reduce_range=True)
    result = convert("quantize", path, tmp_path / "o.onnx", calibration=data)
    seven, best = (
        float(cast("Any", one["values"])["outputs"]["y"]["snr_db"]) for one in (plain, result)
    )
    assert best > seven - 1
    feed = {"x": np.load(data / "x.npy")}
    mine, theirs = (
        onnxruntime.InferenceSession(one, providers=["CPUExecutionProvider"]).run(None, feed)[0]
        for one in (path, tmp_path / "o.onnx")
    )
    snr = 10 * np.log10((mine**2).sum() / ((mine - theirs) ** 2).sum())
    assert snr == pytest.approx(best, abs=0.5), "what is told is what ONNX Runtime gives"


@pytest.mark.usefixtures("replaces_all")
def test_what_is_cut_off_all_the_same_is_said(tmp_path: Path) -> None:
    path, data = cut_off_model(tmp_path)
    how: dict[str, Any] = {"weights": "int8", "activations": "uint8", "repair": True}
    told = []
    for exact in ({}, quantize._EXACT_SUMS):
        with patch.object(quantize, "_EXACT_SUMS", exact):
            result = convert("quantize", path, tmp_path / "o.onnx", calibration=data, **how)
        notes = cast("list[str]", result["notes"])
        told.append([note for note in notes if "signal to noise" in note])
    if not told[1]:  # of this processor, which has VNNI
        assert not told[0]
        return
    assert "sums of products may be cut off here" in told[0][0]
    assert "7 bits for weights (--reduce-range)" in told[1][0]


def test_a_weight_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    model = onnx.load(with_matrix(tmp_path, LAYERS, 4, 4))
    weight = next(one for one in model.graph.initializer if one.name == "w")
    weight.ClearField("raw_data")
    weight.data_location = onnx.TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="gone.bin")
    path = tmp_path / "outside.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(InputError, match=r"weight 'w': External data gone\.bin not found"):
        convert("quantize", path, tmp_path / "o.onnx", dynamic=True)


CAPTURED = """
<ir_version: 8, opset_import: ["" : 17]>
net (float[N, 4] x, bool c) => (float[N, 4] y, float[N, 4] z)
{
    m = MatMul(x, w)
    r = Relu(m)
    z = If (c) <
        then_branch = yes () => (float[N, 4] p) { p = Identity(r) },
        else_branch = no () => (float[N, 4] q) { q = Neg(r) }
    >
    y = MatMul(r, w)
}
"""


def test_an_activation_that_a_body_captures_stays(tmp_path: Path) -> None:
    """ONNX Runtime's quantizer lets the range do what a Relu does, for the main graph alone."""
    path, data = with_matrix(tmp_path, CAPTURED, 4, 4), tmp_path / "data"
    data.mkdir()
    feed = {"x": np.linspace(-2, 2, 32, dtype=np.float32).reshape(8, 4), "c": np.array(True)}
    for name, value in feed.items():
        np.save(data / f"{name}.npy", value)
    result = convert("quantize", path, tmp_path / "o.onnx", calibration=data)
    assert cast("Any", result["values"])["is_good"]
    session = onnxruntime.InferenceSession(tmp_path / "o.onnx", providers=["CPUExecutionProvider"])
    assert session.run(["z"], feed)[0].min() >= 0


TIED = """
<ir_version: 8, opset_import: ["" : 17]>
tied (float[N, 8] x) => (float[N, 8] y, float[N, 8] x)
{
    [first] a = Gemm<transB = 1>(x, w)
    [second] b = Gemm<transB = 1>(a, w)
    [third] y = MatMul(b, w)
}
"""
"""One weight with channels along both axes, and an input that is given out as it is."""
MASKED = """
<ir_version: 8, opset_import: ["" : 17]>
masked (float[4, 8] x) => (float[4, 8] y)
<bool[8] seen = {1, 1, 1, 1, 1, 1, 0, 0}, float never = {-inf}>
{
    [scores] s = MatMul(x, w)
    [mask] m = Where(seen, s, never)
    [shares] y = Softmax(m)
}
"""
HALVES = """
<ir_version: 8, opset_import: ["" : 17]>
halves (float16[4, 8] x) => (float[4, 8] y)
{
    [half] a = MatMul(x, w)
    [wide] b = Cast <to = 1> (a)
    [full] y = MatMul(b, v)
}
"""


def with_weights(folder: Path, text: str, **weights: np.ndarray) -> tuple[Path, Path]:
    """Return a model with weights of 8 x 8, and a folder with an input for it."""
    model = models.parse(text.replace("-inf", "-1"))
    for name, array in weights.items():
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    for tensor in model.graph.initializer:
        if tensor.name == "never":
            tensor.CopyFrom(numpy_helper.from_array(np.float32(-np.inf), "never"))
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    (folder / "sets").mkdir()
    x = np.random.default_rng(1).standard_normal((4, 8)).astype(np.float32)
    is_half = model.graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.FLOAT16
    np.save(folder / "sets" / "x.npy", x.astype(np.float16) if is_half else x)
    return path, folder / "sets"


def noise(before: Path, after: Path, folder: Path) -> float:
    """Return how far the first output is off in ONNX Runtime, relative to its values."""
    x = np.load(folder / "x.npy")
    first, second = (
        onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"x": x})
        for path in (before, after)
    )
    assert len(first) == len(second)
    return float(np.linalg.norm(first[0] - second[0]) / np.linalg.norm(first[0]))


@pytest.mark.parametrize("settings", [{"dynamic": True}, {}])
def test_a_weight_is_stored_for_each_way_in_which_nodes_use_it(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    weight = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)
    path, folder = with_weights(tmp_path, TIED, w=weight)
    out = tmp_path / "o.onnx"
    convert("quantize", path, out, calibration=folder, measure=False, **settings)
    assert [one.name for one in onnx.load(out).graph.output] == ["y", "x"]
    assert noise(path, out, folder) < 0.3
    kinds = {node.op_type for node in onnx.load(out).graph.node}
    assert kinds & {"DequantizeLinear", "MatMulInteger"}


def test_nodes_with_infinite_values_stay_as_they_are(tmp_path: Path) -> None:
    weight = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)
    path, folder = with_weights(tmp_path, MASKED, w=weight)
    out = tmp_path / "o.onnx"
    result = convert("quantize", path, out, calibration=folder, measure=False)
    notes = cast("list[str]", result["notes"])
    assert "2 nodes that make or take infinite values stay as they are: m" in notes
    assert noise(path, out, folder) < 0.1
    assert "QuantizeLinear" in {node.op_type for node in onnx.load(out).graph.node}


@pytest.mark.parametrize("settings", [{"dynamic": True}, {}])
def test_nodes_of_float16_stay_as_they_are_where_nothing_quantizes_them(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    weight = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)
    path, folder = with_weights(tmp_path, HALVES, w=weight.astype(np.float16), v=weight)
    out = tmp_path / "o.onnx"
    result = convert("quantize", path, out, calibration=folder, measure=False, **settings)
    notes = cast("list[str]", result["notes"])
    assert any("2 nodes with float16 values stay as they are: " in note for note in notes)
    assert noise(path, out, folder) < 0.3


def test_sparse_weights_are_made_dense(tmp_path: Path) -> None:
    values = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)
    text = MASKED.replace("Where(seen, s, never)", "MatMul(s, thin)")
    path, folder = with_weights(tmp_path, text, w=values)
    model = onnx.load(path)
    held, places = numpy_helper.from_array(values[0], "thin"), np.arange(0, 64, 8)
    at = numpy_helper.from_array(places, "at")
    model.graph.sparse_initializer.append(onnx.helper.make_sparse_tensor(held, at, [8, 8]))
    path.write_bytes(model.SerializeToString())
    for name, settings in (("quantize", {"calibration": folder}), ("opset", {"to": 21})):
        out = tmp_path / f"{name}.onnx"
        convert(name, path, out, measure=False, **settings)
        assert noise(path, out, folder) < 0.1
        assert not onnx.load(out).graph.sparse_initializer


@needs_onnxruntime(31)
def test_latencies_of_one_result_are_measured_once(tmp_path: Path) -> None:
    path = models.write(tmp_path, CONVOLVED)
    with patch.object(verification, "_alternating", wraps=verification._alternating) as measured:
        result = convert("quantize", path, tmp_path / "o.onnx", dynamic=True)
    assert result["latency_ms"] is not None
    assert measured.call_count == 1


@pytest.mark.broad
@needs_onnxruntime(31)
def test_products_behind_operators_that_onnx_does_not_know_are_quantized(tmp_path: Path) -> None:
    path = decoders.stacked(tmp_path / "m.onnx")
    result = convert("quantize", path, tmp_path / "o.onnx", dynamic=True, ops=("MatMul",))
    kinds = [node.op_type for node in onnx.load(tmp_path / "o.onnx").graph.node]
    assert kinds.count("MatMulInteger") == 3
    assert cast("dict[str, Any]", result["values"])["is_good"]


@pytest.mark.parametrize("shape", [(2, 4, 4), (4,)])
@pytest.mark.usefixtures("replaces_all")
def test_a_weight_that_is_no_matrix_keeps_its_node_and_no_other(
    shape: tuple[int, ...], tmp_path: Path
) -> None:
    """Dynamic quantization, with a scale for each channel."""
    text = """
    <ir_version: 10, opset_import: ["" : 18]>
    m (float[2, 3, 4] x) => (y, z) { [odd] y = MatMul (x, stack)  [plain] z = MatMul (x, w) }
    """
    model, rng = models.parse(text), np.random.default_rng(0)
    for name, dims in (("stack", shape), ("w", (4, 4))):
        values = rng.standard_normal(dims).astype("f")
        model.graph.initializer.append(onnx.numpy_helper.from_array(values, name))
    path, out = tmp_path / "m.onnx", tmp_path / "o.onnx"
    onnx.save(model, path)
    result = convert("quantize", path, out, dynamic=True, per_channel=True, measure=False)
    assert result["notes"] == [
        "1 MatMul node not quantized (odd): its weight is not a matrix: --no-per-channel quantizes"
        " it"
    ]
    kinds = [node.op_type for node in onnx.load(out).graph.node]
    assert (kinds.count("MatMul"), kinds.count("MatMulInteger")) == (1, 1)
    assert cast("dict[str, Any]", result["values"])["is_good"]
    result = convert("quantize", path, out, dynamic=True, per_channel=False, measure=False)
    kinds = [node.op_type for node in onnx.load(out).graph.node]
    assert (result["notes"], kinds.count("MatMulInteger")) == ([], 2)


@pytest.mark.parametrize("dynamic", [True, False])
def test_weights_whose_shape_is_declared_are_quantized(dynamic: bool, tmp_path: Path) -> None:
    """As torch.onnx does for all weights; ONNX Runtime turns those of Gemm."""
    path, out = models.write_weighted(tmp_path, GEMM), tmp_path / "out.onnx"
    model = onnx.load(path)
    for weight in model.graph.initializer:
        model.graph.value_info.append(
            onnx.helper.make_tensor_value_info(weight.name, weight.data_type, weight.dims)
        )
    onnx.save(model, path)
    given = {} if dynamic else {"calibration": tmp_path / "sets"}
    if not dynamic:
        (tmp_path / "sets").mkdir()
        np.save(tmp_path / "sets" / "x.npy", np.ones((2, 8), np.float32))
    convert("quantize", path, out, dynamic=dynamic, **given)
    assert any(weight.data_type in (2, 3) for weight in onnx.load(out).graph.initializer)


COMPUTED_WEIGHTS = """
<ir_version: 10, opset_import: ["" : 18]>
computed (float[N, 32] x) => (float[N, 32] y)
<float scale = {0.02}, int8 zero = {0}, int8[32, 32] a, float[32, 32] c, int8[32, 32] d>
{
    [dequantize] wa = DequantizeLinear(a, scale, zero)
    [stored] xa = MatMul(x, wa)
    [transpose] wc = Transpose <perm = [1, 0]> (c)
    [turned] xc = MatMul(xa, wc)
    [cast] fd = Cast <to = 1> (d)
    [scaled] wd = Mul(fd, scale)
    [cast_back] xd = MatMul(xc, wd)
    [activations] xt = Transpose <perm = [1, 0]> (xd)
    [both] sums = MatMul(xd, xt)
    [last] y = MatMul(sums, xd)
}
"""
"""Weights as quantized models and PyTorch exports have them, and products of two activations."""


def computed_weights(folder: Path) -> Path:
    dice = np.random.default_rng(0)
    model = onnx.parser.parse_model(COMPUTED_WEIGHTS)
    for name in ("a", "c", "d"):
        value = dice.integers(-127, 128, (32, 32)).astype(np.int8)
        held = value.astype(np.float32) / 50 if name == "c" else value
        model.graph.initializer.append(numpy_helper.from_array(held, name))
    path = folder / "computed.onnx"
    onnx.save(model, path)
    return path


def test_weights_that_nodes_compute_from_constants_are_quantized(tmp_path: Path) -> None:
    """ONNX Runtime folds them to float32 when it loads the model."""
    path, out = computed_weights(tmp_path), tmp_path / "out.onnx"
    convert("quantize", path, out, dynamic=True)
    model = onnx.load(out)
    products = [node for node in model.graph.node if node.op_type == "MatMulInteger"]
    assert {node.name.removesuffix("_quant") for node in products} == {
        "stored", "turned", "cast_back"
    }  # fmt: skip
    floats = [node.name for node in model.graph.node if node.op_type == "MatMul"]
    assert floats == ["both", "last"]
    operators = {node.op_type for node in model.graph.node}
    assert "DequantizeLinear" not in operators, "the computation of a weight is left"
    assert [*tmp_path.glob("*folded*")] == []
    x = np.random.default_rng(1).normal(size=(4, 32)).astype(np.float32)
    before, after = (
        onnxruntime.InferenceSession(str(one)).run(None, {"x": x})[0] for one in (path, out)
    )
    assert np.corrcoef(before.ravel(), after.ravel())[0, 1] > 0.999


def test_an_excluded_node_keeps_how_its_weight_is_computed(tmp_path: Path) -> None:
    path, out = computed_weights(tmp_path), tmp_path / "out.onnx"
    convert("quantize", path, out, dynamic=True, exclude=("stored",))
    model = onnx.load(out)
    (kept,) = (node for node in model.graph.node if node.name == "stored")
    assert list(kept.input) == ["x", "wa"]
    assert "wa" in {name for node in model.graph.node for name in node.output}


@pytest.mark.broad
@pytest.mark.parametrize("is_all_activations", [False, True])
def test_advice_to_quantize_names_only_what_the_command_changes(
    tmp_path: Path, is_all_activations: bool
) -> None:
    """For each node that the advice names: the conversion replaces it."""
    path = computed_weights(tmp_path)
    if is_all_activations:
        text = COMPUTED_WEIGHTS.replace("MatMul(x, wa)", "MatMul(x, xx)").replace(
            "[stored]", "[square] xx = Transpose <perm = [1, 0]> (x) [stored]"
        )
        text = text.replace("float[N, 32] x", "float[32, 32] x")
        text = text.replace("MatMul(xa, wc)", "MatMul(xa, xx)")
        text = text.replace("MatMul(xc, wd)", "MatMul(xc, xx)")
        model = onnx.parser.parse_model(text)
        model.graph.initializer.extend(onnx.load(path).graph.initializer)
        path = tmp_path / "activations.onnx"
        onnx.save(model, path)
    report_path = tmp_path / "r.dldprof"
    request = profile_onnxruntime.Request(
        model=path, output=report_path, shape=() if is_all_activations else ("x:32x32",),
        iterations=5, layer_passes=5,
    )  # fmt: skip
    list(profile_onnxruntime.run(request))
    with open_report(report_path) as report:
        layers = [layer for layer in report.layers if is_full_precision(
            layer, convolutions=False, narrow_weights=False) and is_quantizable(layer)]  # fmt: skip
    named = {link.node for layer in layers for link in layer.nodes}
    before = {node.name: node.op_type for node in onnx.load(path).graph.node}
    named = {name for name in named if before.get(name) == "MatMul"}
    out = tmp_path / "out.onnx"
    if is_all_activations:
        assert named == set()
        return
    convert("quantize", path, out, dynamic=True)
    after = {node.name for node in onnx.load(out).graph.node if node.op_type == "MatMul"}
    # ONNX Runtime multiplies by the int8 weight of "stored" itself.
    assert {"turned", "cast_back"} <= named <= {"stored", "turned", "cast_back"}
    assert named.isdisjoint(after)


def test_a_model_that_leaves_much_to_its_readers_is_quantized(tmp_path: Path) -> None:
    """Domains that are not imported, weights that are no inputs, and an opset without quantization.

    onnx's adapters, which the library would use, do not convert Upsample.
    """
    text = """<ir_version: 3, opset_import: ["" : 8]>
    g (float[1, 1, 2, 4] x) => (float[1, 1, 4, 6] y) <float[6] b = {1, 2, 3, 4, 5, 6}>
    { a = Upsample<mode = "nearest", scales = [1.0, 1.0, 2.0, 2.0]>(x)
      c = com.microsoft.Gelu(a) d = ai.onnx.MatMul(c, w) y = Add(d, b) }"""
    path, out = with_matrix(tmp_path, text, 8, 6), tmp_path / "out.onnx"
    result = convert("quantize", path, out, dynamic=True)
    assert "converted from opset 8 to 13, which quantization needs" in cast(
        "list[str]", result["notes"]
    )
    types = {node.op_type for node in onnx.load(out).graph.node}
    assert {"Resize", "MatMulInteger"} <= types


def test_nodes_without_a_name_are_called_as_everywhere(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[2, 64] x) => (float[2, 64] y)
    { t = Transpose<perm = [1, 0]>(w) y = MatMul(x, t) }"""
    path = with_matrix(tmp_path, text, 64, 64)
    result = convert("quantize", path, tmp_path / "out.onnx", weights_only=True, measure=False)
    notes = cast("list[str]", result["notes"])
    assert ">y stays in floating point: the weight comes through Transpose" in notes
