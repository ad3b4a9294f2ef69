from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from dld_tui.activities.convert.dequantize import Request, run
from dld_tui.core.codec import encode
from dld_tui.core.conversion.dequantize import dequantize
from dld_tui.core.errors import InputError
from dld_tui.core.events import Finished
from dld_tui.core.model.document.document import Document
from tests.support import decoders, models


def convert(path: Path, **more: Any) -> tuple[Path, dict[str, Any]]:
    output = path.with_name(f"{path.stem}.float.onnx")
    *_, last = run(Request(path, output, **more))
    assert isinstance(last, Finished)
    return output, encode(last.result)


def run_model(path: Path, feeds: dict[str, Any]) -> list[Any]:
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    # The optimizer makes kernels of DequantizeLinear and MatMul that round activations to 8 bits.
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return list(session.run(None, feeds))


def test_a_decoder_computes_the_same(tmp_path: Path) -> None:
    path = decoders.grouped(tmp_path / "decoder.onnx")
    output, result = convert(path)

    cache = {
        f"past_key_values.{at}.{one}": np.zeros((1, 2, 0, 16), np.float32)
        for at in range(2)
        for one in ("key", "value")
    }
    ids = np.array([[3, 1, 4, 1, 5]])
    feeds = {"input_ids": ids, "attention_mask": np.ones_like(ids)} | cache
    for before, after in zip(run_model(path, feeds), run_model(output, feeds), strict=True):
        np.testing.assert_allclose(after, before, rtol=1e-3, atol=1e-4)
    model = onnx.load(output)
    assert result["weights"] == 8
    assert {node.op_type for node in model.graph.node if node.domain} == {
        "GroupQueryAttention", "SkipSimplifiedLayerNormalization"
    }  # fmt: skip
    assert [one.name for one in model.graph.initializer if one.data_type == TensorProto.UINT8] == []


def test_a_shared_weight_a_bias_rows_and_stored_weights(tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    levels = random.integers(-8, 8, (64, 6))
    stored = [
        numpy_helper.from_array(random.integers(0, 256, (64, 2, 16), dtype=np.uint8), "w_Q4"),
        numpy_helper.from_array(random.random(128, np.float32), "s"),
        numpy_helper.from_array(random.random(64, np.float32), "bias"),
        numpy_helper.from_array(random.integers(0, 256, (9, 32), dtype=np.uint8), "table"),
        numpy_helper.from_array(random.random((9, 2), np.float32), "table_s"),
        helper.make_tensor("d", TensorProto.INT4, (64, 6), levels.flatten().tolist()),
        numpy_helper.from_array(random.random((2, 6), np.float32), "d_s"),
    ]
    own = "com.microsoft"
    sizes: dict[str, Any] = {"K": 64, "N": 64, "bits": 4, "block_size": 32}
    nodes = [
        helper.make_node("GatherBlockQuantized", ["table", "ids", "table_s"], ["x"], domain=own,
                         block_size=32, quantize_axis=1, bits=4),
        helper.make_node("MatMulNBits", ["x", "w_Q4", "s"], ["a"], domain=own, **sizes),
        helper.make_node("MatMulNBits", ["a", "w_Q4", "s", "", "", "bias"], ["b"], domain=own,
                         **sizes),
        helper.make_node("DequantizeLinear", ["d", "d_s"], ["d_f"], axis=0, block_size=32),
        helper.make_node("MatMul", ["b", "d_f"], ["y"]),
    ]  # fmt: skip
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "g", [value("ids", TensorProto.INT64, [3])],
        [value("y", TensorProto.FLOAT, [3, 6])], stored,
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(own, 1)]
    path = tmp_path / "mixed.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)

    output, result = convert(path)

    feeds = {"ids": np.array([0, 8, 3])}
    (before,), (after,) = run_model(path, feeds), run_model(output, feeds)
    np.testing.assert_allclose(after, before, rtol=1e-4)
    made = onnx.load(output)
    assert [node.op_type for node in made.graph.node] == [
        "Gather",
        "MatMul",
        "MatMul",
        "Add",
        "MatMul",
    ]
    assert sorted(one.name for one in made.graph.initializer) == ["bias", "d_f", "table_float", "w"]
    assert result["weights"] == 4


def test_nothing_in_few_bits_is_said(tmp_path: Path) -> None:
    path = decoders.grouped(tmp_path / "decoder.onnx", int4=False)
    _, result = convert(path)

    assert result["weights"] == 0
    assert result["values"]["skipped"] == "no weight is stored in few bits"


def test_quantized_activations_stay(tmp_path: Path) -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 21]>
    both (float[4] x) => (float[4] y)
    <float s = {0.5}, int8 z = {3}, int8[4] w = {1, 2, 3, 127}> {
        q = QuantizeLinear(x, s, z)
        d = DequantizeLinear(q, s, z)
        f = DequantizeLinear(w, s, z)
        y = Mul(d, f)
    }
    """
    document = Document.open(models.write(tmp_path, text))
    *_, made = dequantize(document)

    assert made.notes == ["of activations: 1 QuantizeLinear node, as before"]
    assert [node.op_type for node in made.document.main.nodes] == [
        "QuantizeLinear", "DequantizeLinear", "Mul"
    ]  # fmt: skip
    weight = made.document.main.initializer("f")
    assert weight is not None
    assert weight.read().tolist() == [-1.0, -0.5, 0.0, 62.0]
    assert made.document.main.initializer("z") is not None  # the other one uses it
    made.document.close()
    document.close()


def indexed_product(path: Path, bits: int, zeros: str) -> Any:
    """Write a MatMulNBits with sorted rows; return its matrix, computed element by element."""
    rows, columns, block = 64, 8, 32
    blocks, random = rows // block, np.random.default_rng(bits)
    levels = random.integers(0, 1 << bits, (columns, rows)).astype(np.uint8)
    scales = random.uniform(0.01, 0.05, (columns, blocks)).astype(np.float32)
    group = random.permutation(np.repeat(np.arange(blocks), block)).astype(np.int32)
    points = random.integers(0, 1 << bits, (columns, blocks)).astype(np.uint8)

    def pack(values: Any) -> Any:
        per_byte = 8 // bits
        padded = np.zeros((len(values), -(-values.shape[1] // per_byte) * per_byte), np.uint8)
        padded[:, : values.shape[1]] = values
        return sum(padded[:, at::per_byte] << (bits * at) for at in range(per_byte))

    weights = [numpy_helper.from_array(pack(levels).reshape(columns, blocks, -1), "q"),
               numpy_helper.from_array(scales.reshape(-1), "scales"),
               numpy_helper.from_array(group, "group")]  # fmt: skip
    if zeros == "packed":
        weights.append(numpy_helper.from_array(pack(points).reshape(-1), "zeros"))
    elif zeros == "float":
        weights.append(numpy_helper.from_array(points.astype(np.float32).reshape(-1), "zeros"))
    else:
        points[:] = 1 << (bits - 1)
    node = helper.make_node(
        "MatMulNBits", ["x", "q", "scales", "zeros" if zeros else "", "group"], ["y"], name="p",
        domain="com.microsoft", K=rows, N=columns, bits=bits, block_size=block,
    )  # fmt: skip
    value = helper.make_tensor_value_info
    graph = helper.make_graph([node], "g", [value("x", 1, ["m", rows])],
                              [value("y", 1, ["m", columns])], weights)  # fmt: skip
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)
    matrix = np.empty((rows, columns))
    for row in range(rows):
        for column in range(columns):
            at = column, group[row]
            matrix[row, column] = (int(levels[column, row]) - int(points[at])) * scales[at]
    return matrix


@pytest.mark.parametrize(("bits", "zeros"), [(4, ""), (4, "packed"), (4, "float"), (2, "packed")])
def test_sorted_rows_are_compared_with_what_the_operator_says(
    bits: int, zeros: str, tmp_path: Path
) -> None:
    """ONNX Runtime ignores packed zero points of sorted rows, which must not be blamed on us."""
    matrix = indexed_product(tmp_path / "m.onnx", bits, zeros)
    output, result = convert(tmp_path / "m.onnx")
    rows = np.random.default_rng(0).standard_normal((3, 64)).astype(np.float32)
    [product] = run_model(output, {"x": rows})
    np.testing.assert_allclose(product, rows @ matrix, rtol=1e-4, atol=1e-5)
    assert result["values"]["is_good"]
    is_avoided = bits == 2 or zeros == "packed"
    assert any("g_idx" in line for line in result["values"]["guess"]) == is_avoided
    assert np.isclose(result["values"]["outputs"]["y"]["max_abs"], 0, atol=1e-4)


TIED = """<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>
g (int64[3] ids) => (float[3, 9] y) <int64[2] to = {9, 32}, int64[2] rows = {9, 2}> {
    table = Reshape (b, to)
    table_s = Reshape (s, rows)
    x = com.microsoft.GatherBlockQuantized <block_size = 32, quantize_axis = 1, bits = 4>
        (table, ids, table_s)
    y = com.microsoft.MatMulNBits <K = 64, N = 9, bits = 4, block_size = 32> (x, b, s)
}"""


def test_a_table_and_a_product_of_one_weight_share_it_in_floats_too(tmp_path: Path) -> None:
    random = np.random.default_rng(6)
    model = onnx.parser.parse_model(TIED)
    model.graph.initializer.extend([
        numpy_helper.from_array(random.integers(0, 256, (9, 2, 16), dtype=np.uint8), "b"),
        numpy_helper.from_array(random.random(18, np.float32), "s"),
    ])  # fmt: skip
    path = tmp_path / "tied.onnx"
    onnx.save(model, path)

    output, result = convert(path)

    feeds = {"ids": np.array([0, 8, 3])}
    (before,), (after,) = run_model(path, feeds), run_model(output, feeds)
    np.testing.assert_allclose(after, before, rtol=1e-4)
    made = onnx.load(output)
    assert [node.op_type for node in made.graph.node] == ["Gather", "Transpose", "MatMul"]
    assert [one.dims for one in made.graph.initializer] == [[9, 64]]
    assert result["weights"] == 2


def mixture(
    feeds: dict[str, Any], weights: dict[str, Any], bits: int, block: int, zeros: bool
) -> Any:
    """Compute the two best experts of each token in NumPy."""

    def unpacked(data: Any) -> Any:
        parts = [(data >> shift) & ((1 << bits) - 1) for shift in range(0, 8, bits)]
        return np.stack(parts, axis=-1).reshape(*data.shape[:-1], -1).astype(np.float64)

    matrices = []
    for name in "12":
        levels, scales = unpacked(weights[f"w{name}"]), weights[f"s{name}"].astype(np.float64)
        points = np.full(scales.shape, float(1 << (bits - 1)))
        if zeros:
            points = unpacked(weights[f"z{name}"])[..., : scales.shape[-1]]
        width = block or levels.shape[-1]
        scales, points = (
            np.repeat(one.reshape(*levels.shape[:2], -1), width, axis=-1)
            for one in (scales, points)
        )
        matrices.append((levels - points) * scales)
    results = []
    for token, router in zip(feeds["x"].astype(np.float64), feeds["p"], strict=True):
        best = np.argsort(-router)[:2]
        shares = np.exp(router[best] - router[best].max())
        total = 0
        for expert, share in zip(best, shares / shares.sum(), strict=True):
            inner = matrices[0][expert] @ token
            total += share * (matrices[1][expert] @ (inner / (1 + np.exp(-inner))))
        results.append(total)
    return np.array(results)


@pytest.mark.parametrize("block", [0, 32])
@pytest.mark.parametrize(("bits", "zeros"), [(4, False), (4, True), (8, True)])
def test_experts_compute_the_same(tmp_path: Path, bits: int, block: int, zeros: bool) -> None:
    random = np.random.default_rng(7)
    experts, hidden, inner = 4, 64, 96
    weights: dict[str, Any] = {}
    for name, columns, rows in (("1", inner, hidden), ("2", hidden, inner)):
        per_byte = 8 // bits
        weights[f"w{name}"] = random.integers(
            0, 256, (experts, columns, rows // per_byte), dtype=np.uint8
        )
        scaled = (experts, columns, rows // block) if block else (experts, columns)
        weights[f"s{name}"] = random.random(scaled, np.float32) / 200
        packed = (*scaled[:-1], -(-scaled[-1] * bits // 8))
        weights[f"z{name}"] = random.integers(0, 256, packed, dtype=np.uint8)
    inputs = ["x", "p", "w1", "s1", "", "w2", "s2"]
    if zeros:
        inputs += ["", "", "", "", "z1", "z2"]
    more: dict[str, Any] = {"block_size": block} if block else {}
    node = helper.make_node(
        "QMoE", inputs, ["y"], "moe", domain="com.microsoft", k=2, expert_weight_bits=bits,
        activation_type="silu", normalize_routing_weights=1, **more,
    )  # fmt: skip
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [node], "g",
        [value("x", TensorProto.FLOAT, [5, hidden]), value("p", TensorProto.FLOAT, [5, experts])],
        [value("y", TensorProto.FLOAT, [5, hidden])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()
         if name in inputs],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    path = tmp_path / "moe.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)

    output, result = convert(path)

    feeds = {
        "x": random.standard_normal((5, hidden), np.float32),
        "p": random.standard_normal((5, experts), np.float32),
    }
    (before,), (after,) = run_model(path, feeds), run_model(output, feeds)
    expected = mixture(feeds, weights, bits, block, zeros)
    np.testing.assert_allclose(after, expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())
    # With 8 bits in blocks its kernel rounds what it multiplies by to 8 bits.
    np.testing.assert_allclose(before, expected, rtol=1e-2, atol=1e-2 * np.abs(expected).max())
    assert [node.op_type for node in onnx.load(output).graph.node] == ["MoE"]
    assert result["weights"] == 1


def test_experts_follow_the_attribute_and_the_doubt_is_told(tmp_path: Path) -> None:
    """The kernel of QMoE normalizes with normalize_routing_weights 0, too, that of MoE does not."""
    random = np.random.default_rng(3)
    weights: dict[str, Any] = {
        "w1": random.integers(0, 256, (4, 32, 32), np.uint8),
        "w2": random.integers(0, 256, (4, 32, 32), np.uint8),
        **{f"s{at}": random.random((4, 32), np.float32) / 100 for at in (1, 2)},
    }
    path = _experts(tmp_path, weights, k=2, expert_weight_bits=8, activation_type="relu")
    output, result = convert(path, keep_wrong=True)

    feeds = {"x": random.standard_normal((5, 32), np.float32), "p": np.zeros((5, 4), np.float32)}
    (before,), (after,) = run_model(path, feeds), run_model(output, feeds)
    # Of four experts with the same score, two have a weight of 1/4 each: or of 1/2, normalized.
    np.testing.assert_allclose(before, 2 * after, rtol=1e-4, atol=1e-5)
    assert "normalizes all the same" in result["notes"][0]


@pytest.mark.parametrize("second", [(2, 32, 15), (2, 30, 16), (3, 32, 16)])
def test_experts_that_do_not_fit_together_are_refused(
    tmp_path: Path, second: tuple[int, int, int]
) -> None:
    weights: dict[str, Any] = {
        "w1": np.zeros((2, 32, 16), np.uint8), "s1": np.ones((2, 32), np.float32),
        "w2": np.zeros(second, np.uint8), "s2": np.ones(second[:2], np.float32),
    }  # fmt: skip
    path = _experts(tmp_path, weights, k=1)
    with pytest.raises(InputError, match="do not fit together"):
        convert(path)
    with pytest.raises(Exception, match="expected to have shape"):  # the authority
        run_model(path, {"x": np.ones((5, 32), np.float32), "p": np.ones((5, 2), np.float32)})


def _experts(folder: Path, weights: dict[str, Any], **attributes: Any) -> Path:
    """Write a model of a QMoE of width 32 without biases."""
    node = helper.make_node(
        "QMoE", ["x", "p", "w1", "s1", "", "w2", "s2"], ["y"], "moe", domain="com.microsoft",
        **attributes,
    )  # fmt: skip
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [node], "g",
        [value("x", TensorProto.FLOAT, [5, 32]),
         value("p", TensorProto.FLOAT, [5, len(weights["w1"])])],
        [value("y", TensorProto.FLOAT, [5, 32])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    path = folder / "moe.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)
    return path


def test_what_does_not_fit_is_refused_and_what_stays_is_told(tmp_path: Path) -> None:
    short = """<ir_version: 10, opset_import: ["" : 21]>
    g () => (float[4, 6] y) <int8[4, 6] w = {1}, float[4] s = {1, 1, 1, 1}> {
        [w1] y = DequantizeLinear <axis = 1> (w, s)
    }"""
    path = tmp_path / "short.onnx"
    onnx.save(onnx.parser.parse_model(short), path)
    with pytest.raises(InputError) as caught:
        convert(path)
    assert str(caught.value).startswith("w1: DequantizeLinear: its scales are 4, not 6")
    left = """<ir_version: 10, opset_import: ["" : 21]>
    g (float s) => (float[2] y) <int8[2] w = {1, 2}> { y = DequantizeLinear (w, s) }"""
    path = tmp_path / "left.onnx"
    onnx.save(onnx.parser.parse_model(left), path)
    _, result = convert(path)
    assert "weights of 1 node stay in few bits: s is not stored: it is an input" in str(result)
    assert "no weight is stored" not in str(result)
