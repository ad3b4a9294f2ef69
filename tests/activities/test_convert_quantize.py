"""What quantization refuses before it begins, and what it makes."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Generator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from dld_tui.activities.convert import quantize
from dld_tui.backends.accuracy import precision_trials
from dld_tui.backends.conversion import verification
from dld_tui.core.errors import ActivityError, DldError, InputError, UsageError
from dld_tui.core.events import Event, result_of
from dld_tui.core.trials import Answer, Found, Outcome, Trials
from tests.support import decoders, models
from tests.support.conversions import LAYERS, convert, detector, with_matrix
from tests.support.rtx import HAS_RTX, build
from tests.support.runtime import has_onnxruntime, needs_onnxruntime, session_of

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


def sets(folder: Path, *feeds: dict[str, Any]) -> Path:
    """Write sets of inputs; return their folder."""
    for number, feed in enumerate(feeds):
        one = folder / "sets" / f"test_data_set_{number}"
        one.mkdir(parents=True)
        for name, value in feed.items():
            np.save(one / f"{name}.npy", value)
    return folder / "sets"


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
    folder = sets(tmp_path, {"x": GOOD}, {})
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


def test_folders_that_fit_nothing_are_refused_at_the_first_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, read = tmp_path / "c", list[object]()
    folder.mkdir()
    assert "there is no file for input x float32[N, 4]" in refusal(folder, tmp_path)
    assert "absent: the folder does not exist" in refusal(tmp_path / "absent", tmp_path)
    for number in range(500):
        (folder / f"sample_{number:03}.npy").touch()
    monkeypatch.setattr(np, "load", lambda *given, **more: read.append(given))
    assert "sample_000.npy: fits no input" in refusal(folder, tmp_path)
    assert read == []


def test_models_that_cannot_be_quantized_say_why(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["ai.onnx.ml" : 3]>
    labels (float[N, 1] x) => (float[N, 1] y)
    { y = ai.onnx.ml.Scaler <offset = [0.5], scale = [2.0]> (x) }"""
    with pytest.raises(ActivityError, match="there is nothing to quantize"):
        convert("quantize", models.write(tmp_path, text), tmp_path / "o.onnx", dynamic=True)
    model = onnx.load(with_matrix(tmp_path, LAYERS, 4, 4))
    weight = next(one for one in model.graph.initializer if one.name == "w")
    weight.ClearField("raw_data")
    weight.data_location = onnx.TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="gone.bin")
    path = tmp_path / "outside.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(InputError, match=r"weight 'w': External data gone\.bin not found"):
        convert("quantize", path, tmp_path / "o.onnx", dynamic=True)


def graphs(graph: onnx.GraphProto) -> list[onnx.GraphProto]:
    bodies = [a.g for node in graph.node for a in node.attribute if a.HasField("g")]
    return [graph, *(one for body in bodies for one in graphs(body))]


def kinds(path: Path) -> list[str]:
    return [node.op_type for graph in graphs(onnx.load(path).graph) for node in graph.node]


def drawn_feeds(path: Path) -> list[dict[str, Any]]:
    """Return two sets of inputs of a model, with each value of a condition."""
    random, feeds = np.random.default_rng(1), list[dict[str, Any]]()
    for condition in (True, False):
        feed: dict[str, Any] = {}
        for one in session_of(path).get_inputs():
            shape = [dim if isinstance(dim, int) else 4 for dim in one.shape]
            values = random.standard_normal(shape).astype(np.float32)
            as_is_typed = {"tensor(bool)": np.array(condition),
                           "tensor(float16)": values.astype(np.float16)}  # fmt: skip
            feed[one.name] = as_is_typed.get(one.type, values)
        feeds.append(feed)
    return feeds


def noise(before: Path, after: Path, *feeds: dict[str, Any]) -> float:
    """Return how far an output is off in ONNX Runtime at most, relative to its values."""
    sessions, worst = (session_of(before), session_of(after)), 0.0
    names = [[one.name for one in session.get_outputs()] for session in sessions]
    assert names[0] == names[1]
    for feed in feeds or drawn_feeds(before):
        for first, second in zip(*(one.run(None, feed) for one in sessions), strict=True):
            worst = max(worst, float(np.linalg.norm(first - second) / np.linalg.norm(first)))
    return worst


HEAD = '<ir_version: 8, opset_import: ["" : 17]> g'
BLOCKS = {"weights_only": True, "weights": "int4", "block": 32}
GEMM = '<ir_version: 10, opset_import: ["" : 18]> g (float[N, 8] x) => (float[N, 4] y)'
CASES: dict[str, tuple[str, tuple[dict[str, Any], ...], str, str]] = {
    "one matrix": (
        f"{HEAD} (float[N, 4] x) => (float[N, 4] y) <float[4, 4] w> {{ y = MatMul (x, w) }}",
        ({"dynamic": True}, {}), "MatMulInteger DequantizeLinear", "",
    ),
    "in blocks": (
        f"{HEAD} (float[N, 64] x) => (float[N, 64] y) <float[64, 64] w> {{ y = MatMul (x, w) }}",
        (BLOCKS,), "MatMulNBits", "",
    ),
    "in blocks, for TensorRT": (
        '<ir_version: 10, opset_import: ["" : 21]> g (float[N, 64] x) => (float[N, 64] y)'
        " <float[64, 64] w> { y = MatMul (x, w) }",
        ({**BLOCKS, "runtime": "tensorrt"},), "DequantizeLinear", "",
    ),
    "a default in blocks": (
        f"{HEAD} (float[N, 64] x, float[64, 64] w) => (float[N, 64] y) <float[64, 64] w>"
        " { y = MatMul (x, w) }",
        (BLOCKS,), "MatMulNBits", "w: no longer an input, its default was folded",
    ),
    "a node without a name": (
        f"{HEAD} (float[2, 64] x) => (float[2, 64] y) <float[64, 64] w>"
        " { t = Transpose<perm = [1, 0]>(w) y = MatMul(x, t) }",
        ({"weights_only": True},), "MatMul",
        ">y stays in floating point: the weight comes through Transpose",
    ),
    "no chosen operator": (
        f"{HEAD} (float[N, 4] x) => (float[N, 4] y) <float[4, 4] w> {{ y = MatMul (x, w) }}",
        ({"dynamic": True, "ops": ("Conv",)},), "MatMul",
        "nothing was quantized: no quantizable operator has a weight or is chosen",
    ),
    "no scales of channels in the opset": (
        '<ir_version: 8, opset_import: ["" : 11]> g (float[N, 4] x) => (float[N, 4] y)'
        " <float[4, 4] w> { y = MatMul (x, w) }",
        ({},), "QuantizeLinear",
        "a scale for each tensor, as DequantizeLinear has one for each channel",
    ),
    "what old files leave to their readers": (
        # Domains, weights that are no inputs; onnx's adapters do not convert Upsample.
        '<ir_version: 3, opset_import: ["" : 8]>'
        """g (float[1, 1, 2, 4] x) => (float[1, 1, 4, 6] y)
        <float[6] b = {1, 2, 3, 4, 5, 6}, float[8, 6] w>
        { a = Upsample<mode = "nearest", scales = [1.0, 1.0, 2.0, 2.0]>(x)
          c = com.microsoft.Gelu(a) d = ai.onnx.MatMul(c, w) y = Add(d, b) }""",
        ({"dynamic": True},), "Resize MatMulInteger",
        "converted from opset 8 to 13, which quantization needs",
    ),
    "names that the library would give twice": (
        # It would call the second bias b2, and two scales as values are called.
        f"""{HEAD} (float[1, 4, 8, 8] x) => (float[1, 4, 8, 8] y)
        <float[4, 4, 1, 1] w, float[4] b, float[4] b1, float[4, 1, 1] w_scale> {{
        [first] b2 = Conv(x, w, b) [scale] x_scale = Relu(b2)
        [second] c = Conv(x_scale, w, b) [sum] y = Add(c, w_scale) }}""",
        ({},), "QuantizeLinear Conv", "",
    ),
    "nodes in front of bodies that capture what they make": (
        """<ir_version: 3, opset_import: ["" : 11]>
        g (float[N, 4] x, bool c, float[4, 4] w) => (float[N, 4] y) <float[4, 4] w> {
        [first] a = MatMul(x, w)
        y = If (c) <then_branch = yes () => (float[N, 4] p) { p = Relu(a) },
                    else_branch = no () => (float[N, 4] q) { q = Neg(a) }> }""",
        ({"dynamic": True},), "If", "",
    ),
    "an activation that a body captures": (
        # The library lets the range do what a Relu does, for the main graph alone.
        f"""{HEAD} (float[N, 4] x, bool c) => (float[N, 4] y, float[N, 4] z) <float[4, 4] w> {{
        m = MatMul(x, w) r = Relu(m)
        z = If (c) <then_branch = yes () => (float[N, 4] p) {{ p = Identity(r) }},
                    else_branch = no () => (float[N, 4] q) {{ q = Neg(r) }}>
        y = MatMul(r, w) }}""",
        ({},), "QuantizeLinear", "",
    ),
    "one weight with channels along both axes, and an input that is an output": (
        f"""{HEAD} (float[N, 8] x) => (float[N, 8] y, float[N, 8] x) <float[8, 8] w> {{
        a = Gemm<transB = 1>(x, w) b = Gemm<transB = 1>(a, w) y = MatMul(b, w) }}""",
        ({"dynamic": True}, {}), "MatMulInteger DequantizeLinear", "",
    ),
    "infinite values": (
        f"""{HEAD} (float[4, 8] x) => (float[4, 8] y)
        <bool[8] seen = {{1, 1, 1, 1, 1, 1, 0, 0}}, float[8, 8] w, float zero = {{0}}> {{
        s = MatMul(x, w) l = Log(zero) [mask] m = Where(seen, s, l) y = Softmax(m) }}""",
        ({},), "QuantizeLinear", "nodes that make or take infinite values stay as they are: ",
    ),
    "float16 where nothing quantizes it": (
        f"""{HEAD} (float16[4, 8] x) => (float[4, 8] y) <float16[8, 8] w, float[8, 8] v> {{
        a = MatMul(x, w) b = Cast <to = 1> (a) y = MatMul(b, v) }}""",
        ({"dynamic": True}, {}), "MatMulInteger DequantizeLinear",
        "2 nodes with float16 values stay as they are: ",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "settings"),
    [pytest.param(name, one, id=f"{name}, {', '.join(one) or 'static'}")
     for name, (_, ways, _, _) in CASES.items() for one in ways],
)  # fmt: skip
def test_the_result_is_valid_and_near_and_what_stays_is_told(
    tmp_path: Path, name: str, settings: dict[str, Any]
) -> None:
    text, _, operators, note = CASES[name]
    path, out = models.write_weighted(tmp_path, text), tmp_path / "out.onnx"
    is_static = not settings.keys() & {"dynamic", "weights_only"}
    given = {"calibration": sets(tmp_path, *drawn_feeds(path))} if is_static else {}
    result = convert("quantize", path, out, **given, **settings)
    model = onnx.load(out)
    onnx.checker.check_model(model)
    assert noise(path, out) < 0.3
    assert result["values"]["is_good"]
    assert set(kinds(out)) & set(operators.split())
    names = [one.name for one in model.graph.initializer]
    names += [one for node in model.graph.node for one in node.output]
    assert len(names) == len(set(names))
    # Without VNNI sums of products of 8 bits are cut off, and 7 bits are taken instead.
    notes = [one for one in result["notes"] if "7 bits" not in one]
    assert any(note in one for one in notes) if note else notes == []


def test_tokens_of_several_lengths_are_taken_and_those_out_of_range_named(tmp_path: Path) -> None:
    text = f"""{HEAD} (int64[N, L] ids) => (float[N, L, 4] y) <float[10, 4] w, float[4, 4] v>
    {{ e = Gather(w, ids) y = MatMul(e, v) }}"""
    path, out = models.write_weighted(tmp_path, text), tmp_path / "out.onnx"
    given = [{"ids": np.array(ids)} for ids in ([[1, 2, 3]], [[4, 5]], [[6]])]
    result = convert("quantize", path, out, calibration=sets(tmp_path, *given), method="percentile")
    assert result["sets"] == 3
    assert [note for note in result["notes"] if "7 bits" not in note] == []
    assert "QuantizeLinear" in kinds(out)
    (tmp_path / "bad").mkdir()
    bad = sets(tmp_path / "bad", given[1], {"ids": np.array([[99, 5]])})
    with pytest.raises(ActivityError, match=r"Quantizing: test_data_set_1: .*out of"):
        convert("quantize", path, tmp_path / "o.onnx", calibration=bad)
    assert not (tmp_path / "o.onnx").exists()


def test_weights_in_constant_nodes_and_sparse_ones_are_quantized_too(tmp_path: Path) -> None:
    path, out = with_matrix(tmp_path, LAYERS, 4, 4), tmp_path / "out.onnx"
    model = onnx.load(path)
    weight = model.graph.initializer.pop()
    held = onnx.helper.make_node("Constant", [], ["w"], "held", doc_string="why", value=weight)
    model.graph.node.insert(0, held)
    model.opset_import.add(domain="", version=18)  # said twice
    path.write_bytes(model.SerializeToString())
    result = convert("quantize", path, out, dynamic=True)
    assert result["notes"] == ["1 Constant node made initializers"]
    assert result["after"]["weights_by_type"]["int8"] >= 16

    text = f"""{HEAD} (float[4, 8] x) => (float[4, 8] y) <float[8, 8] w>
    {{ s = MatMul(x, w) y = MatMul(s, thin) }}"""
    path = models.write_weighted(tmp_path, text, "sparse.onnx")
    model = onnx.load(path)
    values, places = np.linspace(-1, 1, 8, dtype=np.float32), np.arange(0, 64, 8)
    parts = numpy_helper.from_array(values, "thin"), numpy_helper.from_array(places, "at")
    model.graph.sparse_initializer.append(onnx.helper.make_sparse_tensor(*parts, [8, 8]))
    path.write_bytes(model.SerializeToString())
    folder = sets(tmp_path, *drawn_feeds(path))
    for name, settings in (("quantize", {"calibration": folder}), ("opset", {"to": 21})):
        made = tmp_path / f"{name}.onnx"
        convert(name, path, made, **settings)
        assert noise(path, made) < 0.1
        assert not onnx.load(made).graph.sparse_initializer


@pytest.mark.parametrize("dynamic", [True, False])
def test_weights_whose_shape_is_declared_are_quantized(dynamic: bool, tmp_path: Path) -> None:
    """As torch.onnx does for all weights; ONNX Runtime turns those of Gemm."""
    text = f"{GEMM} <float[4, 8] w, float[4] b> {{ y = Gemm <transB = 1> (x, w, b) }}"
    path, out = models.write_weighted(tmp_path, text), tmp_path / "out.onnx"
    model = onnx.load(path)
    for weight in model.graph.initializer:
        model.graph.value_info.append(
            onnx.helper.make_tensor_value_info(weight.name, weight.data_type, weight.dims)
        )
    onnx.save(model, path)
    given = {} if dynamic else {"calibration": sets(tmp_path, *drawn_feeds(path))}
    convert("quantize", path, out, dynamic=dynamic, **given)
    assert any(weight.data_type in (2, 3) for weight in onnx.load(out).graph.initializer)


def outputs(path: Path, folder: Path) -> np.ndarray:
    """Run a model by ONNX Runtime alone: the second opinion on what the conversion says."""
    session = session_of(path)
    return np.concatenate(
        [session.run(None, {"x": np.load(one / "x.npy")})[0] for one in sorted(folder.iterdir())]
    )


@pytest.mark.broad
def test_scores_that_are_lost_among_boxes_are_wrong_values_and_repaired(tmp_path: Path) -> None:
    path, folder = detector(tmp_path)
    lost, kept = tmp_path / "lost.onnx", tmp_path / "kept.onnx"
    values = convert("quantize", path, lost, calibration=folder, keep_wrong=True)["values"]
    before, after = outputs(path, folder), outputs(lost, folder)
    assert np.ptp(before[:, 4:]) > 0.1
    assert np.ptp(after[:, 4:]) == 0, "the scores are dead, which the whole output hides"
    assert not values["is_good"]
    assert "channels of axis 1 are constant" in values["outputs"]["y"]["problem"]
    assert values["first"]["node"] == "all"
    assert "--exclude all" in values["advice"]

    values = convert("quantize", path, kept, calibration=folder, repair=True)["values"]
    assert values["is_good"]
    assert [node["node"] for node in values["repaired"]] == ["all"], "one is enough"
    error = outputs(kept, folder)[:, 4:] - before[:, 4:]
    assert np.abs(error).max() < 0.1
    assert "QuantizeLinear" in kinds(kept)


@needs_onnxruntime(24)
def test_convolutions_stay_as_they_are_unless_they_are_asked_for(tmp_path: Path) -> None:
    """By rule: a coin of the clock made models of 59 or of 13 dB."""
    path, _ = detector(tmp_path)
    for ops, has_integer in (((), False), (("Conv",), True)):
        out = tmp_path / f"{has_integer}.onnx"
        result = convert("quantize", path, out, dynamic=True, ops=ops)
        assert ("ConvInteger" in kinds(out)) == has_integer
        notes = " ".join(result["notes"])
        assert ("convolutions stay in floating point" in notes) != has_integer


@pytest.mark.broad
def test_for_tensorrt_all_is_symmetric_and_biases_stay_floating(tmp_path: Path) -> None:
    path, folder = detector(tmp_path)
    out = tmp_path / "o.onnx"
    convert("quantize", path, out, calibration=folder, runtime="tensorrt", repair=True)
    graph = onnx.load(out).graph
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    pairs = [node for node in graph.node if node.op_type.lower().endswith("quantizelinear")]
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


SHARED = """
<ir_version: 10, opset_import: ["" : 21]>
net (float[N, 64] x, bool c) => (float[N, 64] y) <float[64, 64] w>
{
    a = MatMul(x, w)
    b = If (c) <
        then_branch = yes () => (float[N, 64] p) {
            q = If (c) <
                then_branch = inner () => (float[N, 64] r) { r = MatMul(a, w) },
                else_branch = other () => (float[N, 64] s) { s = Neg(a) }
            >
            p = Relu(q)
        },
        else_branch = no () => (float[N, 64] t) { t = MatMul(x, w) }
    >
    y = MatMul(b, w)
}
"""
BODIES_ONLY = SHARED.replace("a = MatMul(x, w)", "a = Relu(x)").replace("MatMul(b, w)", "Relu(b)")


@pytest.mark.parametrize("stored_as", ["matmulnbits", "dequantize"])
@pytest.mark.parametrize("text", [SHARED, BODIES_ONLY], ids=["everywhere", "in bodies"])
def test_a_weight_of_several_products_is_stored_once(
    tmp_path: Path, text: str, stored_as: str
) -> None:
    path, out = models.write_weighted(tmp_path, text), tmp_path / "o.onnx"
    result = convert("quantize", path, out, format=stored_as, **BLOCKS)
    assert result["values"]["is_good"]
    names = [tensor.name for tensor in onnx.load(out).graph.initializer]
    assert len(names) == len(set(names)) == 2, "values and scales, and no weight of 32 bits"
    counted = ("DequantizeLinear", 1) if stored_as == "dequantize" else ("MatMul", 0)
    assert kinds(out).count(counted[0]) == counted[1]
    assert 0 < noise(path, out) < 0.3


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
    assert result["values"]["is_good"]


@pytest.mark.exhaustive
def test_a_real_model_whose_names_clash(real_files: Path, tmp_path: Path) -> None:
    path, folder = real_files / "basic_pitch_nmp.onnx", tmp_path / "c"
    folder.mkdir()
    x = np.random.default_rng(0).uniform(-0.5, 0.5, (1, 43844, 1)).astype(np.float32)
    tensor = numpy_helper.from_array(x, onnx.load(path).graph.input[0].name)
    (folder / "input_0.pb").write_bytes(tensor.SerializeToString())
    result = convert("quantize", path, tmp_path / "o.onnx", calibration=folder, method="minmax")
    assert result["values"]["skipped"] == ""
    assert result["after"]["operators"]["QuantizeLinear"] > 100


def test_the_tensors_are_listed_without_calibration(tmp_path: Path) -> None:
    path = with_matrix(tmp_path, LAYERS, 4, 4)
    result = convert("quantize", path, None, list_only=True)
    points = {one["tensor"]: one for one in result["points"]}
    assert points["w"]["kind"] == "weight"
    assert result["lines"][0].startswith(f"{len(points)} tensors quantized for")
    folder = sets(tmp_path, {"x": GOOD})
    made = convert("quantize", path, tmp_path / "o.onnx", calibration=folder)
    assert made["points"] == result["points"], "what is listed is what is done"
    with pytest.raises(UsageError, match="an output is needed"):
        convert("quantize", path, None, calibration=folder)


def test_of_the_sets_that_seem_to_be_enough_those_that_hardly_grow_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nodes = [f"node {at}" for at in range(12)]
    enough = Outcome(Answer.SUFFICIENT)
    tried = {frozenset(map(str, range(size))): enough for size in (12, 4, 9, 6, 5)}
    sizes = []

    def guided(*_: object) -> Generator[Event, None, Found]:
        yield from ()
        return Found(tuple("0123"), is_whole=True, tried=tried)

    def attempt(variant: Any) -> Generator[Event, None, Any]:
        yield from ()
        sizes.append(len(variant.kept))
        return SimpleNamespace(variant=variant, checked=SimpleNamespace(is_wrong=sizes[-1] < 9))

    quick = SimpleNamespace(is_quick=True, candidates=lambda: nodes, close=lambda: None)
    monkeypatch.setattr(precision_trials, "QuantizationTrials", lambda *_: quick)
    monkeypatch.setattr(Trials, "guided", guided)
    repair: Any = object.__new__(quantize._Repair)
    terms = SimpleNamespace(sets=[], tolerances=None, criteria=None)
    repair._verifier, repair._quantizer = SimpleNamespace(terms=lambda: terms), None
    repair._attempt, repair._journal, repair._limit, repair.notes = attempt, None, None, []
    made = SimpleNamespace(plan="a plan")
    wrong: Any = SimpleNamespace(made=made, variant=quantize._Variant("static", ()))
    found: Any = result_of(repair.with_fewest(wrong))
    assert sizes == [4, 6, 9]
    assert [*found.variant.kept] == nodes[:9]


@needs_onnxruntime(31)
def test_latencies_of_one_result_are_measured_once(tmp_path: Path) -> None:
    text = f"{HEAD} (float[1, 1, 8] x) => (float[1, 1, 8] y) <float[1, 1, 3] w = {{1, 2, 3}}>"
    path = models.write(tmp_path, f"{text} {{ y = Conv <pads = [1, 1]> (x, w) }}")
    with patch.object(verification, "_alternating", wraps=verification._alternating) as measured:
        result = convert("quantize", path, tmp_path / "o.onnx", dynamic=True, measure=True)
    assert result["latency_ms"] is not None
    assert measured.call_count == 1


@pytest.mark.broad
@needs_onnxruntime(31)
def test_products_behind_operators_that_onnx_does_not_know_are_quantized(tmp_path: Path) -> None:
    path, out = decoders.stacked(tmp_path / "m.onnx"), tmp_path / "o.onnx"
    result = convert("quantize", path, out, dynamic=True, ops=("MatMul",))
    assert kinds(out).count("MatMulInteger") == 3
    assert result["values"]["is_good"]


def test_attention_of_the_standard_is_not_taken_for_that_of_com_microsoft(tmp_path: Path) -> None:
    text = """<ir_version: 11, opset_import: ["" : 23]>
    standard (float[1, s, 64] x) => (float[1, s, 64] y) <float[64, 64] w>
    { q = MatMul (x, w) y = Attention <q_num_heads = 4, kv_num_heads = 4> (q, x, x) }"""
    path, out = models.write_weighted(tmp_path, text), tmp_path / "o.onnx"
    assert convert("quantize", path, out, dynamic=True)["values"]["is_good"]
    assert {"Attention", "MatMulInteger"} <= {*kinds(out)}


@pytest.mark.parametrize("shape", [(2, 4, 4), (4,)])
@pytest.mark.usefixtures("replaces_all")
def test_a_weight_that_is_no_matrix_keeps_its_node_and_no_other(
    shape: tuple[int, ...], tmp_path: Path
) -> None:
    text = f"""<ir_version: 10, opset_import: ["" : 18]>
    m (float[2, 3, 4] x) => (y, z) <float{[*shape]} stack, float[4, 4] w>
    {{ [odd] y = MatMul (x, stack)  [plain] z = MatMul (x, w) }}"""
    path, out = models.write_weighted(tmp_path, text), tmp_path / "o.onnx"
    how = {"dynamic": True}
    result = convert("quantize", path, out, per_channel=True, **how)
    assert result["notes"] == [
        "1 MatMul node not quantized (odd): its weight is not a matrix: --no-per-channel quantizes"
        " it"
    ]
    assert (kinds(out).count("MatMul"), kinds(out).count("MatMulInteger")) == (1, 1)
    assert result["values"]["is_good"]
    result = convert("quantize", path, out, per_channel=False, **how)
    assert (result["notes"], kinds(out).count("MatMulInteger")) == ([], 2)
