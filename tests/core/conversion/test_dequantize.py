"""Weights in few bits become floats: the operators are the authority, computed one by one."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from dld_tui.core.conversion.dequantize import dequantize
from dld_tui.core.errors import InputError
from dld_tui.core.model.document.document import Document
from tests.support import conversions, models

HEAD = '<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>'


def written(folder: Path, graph: str, **weights: Any) -> Path:
    """Write a model with weights, arrays or tensors."""
    model = models.parse(HEAD + graph)
    for name, values in weights.items():
        is_made = isinstance(values, onnx.TensorProto)
        model.graph.initializer.append(values if is_made else numpy_helper.from_array(values, name))
    onnx.save(model, folder / "m.onnx")
    return folder / "m.onnx"


def convert(path: Path, **more: Any) -> tuple[Path, dict[str, Any]]:
    output = path.with_name(f"{path.stem}.float.onnx")
    return output, conversions.convert("dequantize", path, output, **more)


def run_model(path: Path, feeds: dict[str, Any]) -> list[Any]:
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    # The optimizer makes kernels of DequantizeLinear and MatMul that round activations to 8 bits.
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return list(session.run(None, feeds))


def same(path: Path, feeds: dict[str, Any]) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """Convert; require the same outputs, and return the model that was made and the result."""
    output, result = convert(path)
    for before, after in zip(run_model(path, feeds), run_model(output, feeds), strict=True):
        np.testing.assert_allclose(after, before, rtol=1e-3, atol=1e-4)
    return onnx.load(output), result


def test_a_shared_weight_a_bias_rows_and_stored_weights(tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    levels = random.integers(-8, 8, (64, 6))
    path = written(
        tmp_path,
        """g (int64[3] ids) => (float[3, 6] y) {
        x = com.microsoft.GatherBlockQuantized <block_size = 32, quantize_axis = 1, bits = 4>
            (table, ids, table_s)
        a = com.microsoft.MatMulNBits <K = 64, N = 64, bits = 4, block_size = 32> (x, w_Q4, s)
        b = com.microsoft.MatMulNBits <K = 64, N = 64, bits = 4, block_size = 32>
            (a, w_Q4, s, "", "", bias)
        d_f = DequantizeLinear <axis = 0, block_size = 32> (d, d_s)
        y = MatMul (b, d_f) }""",
        w_Q4=random.integers(0, 256, (64, 2, 16), dtype=np.uint8),
        s=random.random(128, np.float32),
        bias=random.random(64, np.float32),
        table=random.integers(0, 256, (9, 32), dtype=np.uint8),
        table_s=random.random((9, 2), np.float32),
        d=helper.make_tensor("d", TensorProto.INT4, (64, 6), levels.flatten().tolist()),
        d_s=random.random((2, 6), np.float32),
    )
    made, result = same(path, {"ids": np.array([0, 8, 3])})
    operators = [node.op_type for node in made.graph.node]
    assert operators == ["Gather", "MatMul", "MatMul", "Add", "MatMul"]
    assert sorted(one.name for one in made.graph.initializer) == ["bias", "d_f", "table_float", "w"]
    assert result["weights"] == 4


def test_a_table_and_a_product_of_one_weight_share_it_in_floats_too(tmp_path: Path) -> None:
    random = np.random.default_rng(6)
    path = written(
        tmp_path,
        """g (int64[3] ids) => (float[3, 9] y) <int64[2] to = {9, 32}, int64[2] rows = {9, 2}> {
        table = Reshape (b, to) table_s = Reshape (s, rows)
        x = com.microsoft.GatherBlockQuantized <block_size = 32, quantize_axis = 1, bits = 4>
            (table, ids, table_s)
        y = com.microsoft.MatMulNBits <K = 64, N = 9, bits = 4, block_size = 32> (x, b, s) }""",
        b=random.integers(0, 256, (9, 2, 16), dtype=np.uint8),
        s=random.random(18, np.float32),
    )
    made, result = same(path, {"ids": np.array([0, 8, 3])})
    assert [node.op_type for node in made.graph.node] == ["Gather", "Transpose", "MatMul"]
    assert [one.dims for one in made.graph.initializer] == [[9, 64]]
    assert result["weights"] == 2


def test_quantized_activations_stay(tmp_path: Path) -> None:
    text = """both (float[4] x) => (float[4] y)
    <float s = {0.5}, int8 z = {3}, int8[4] w = {1, 2, 3, 127}> {
        q = QuantizeLinear(x, s, z)
        d = DequantizeLinear(q, s, z)
        f = DequantizeLinear(w, s, z)
        y = Mul(d, f) }"""
    with closing(Document.open(written(tmp_path, text))) as document:
        *_, made = dequantize(document)
        with closing(made.document):
            main = made.document.main
            assert made.notes == ["of activations: 1 QuantizeLinear node, as before"]
            operators = [node.op_type for node in main.nodes]
            assert operators == ["QuantizeLinear", "DequantizeLinear", "Mul"]
            weight = main.initializer("f")
            assert weight is not None
            assert weight.read().tolist() == [-1.0, -0.5, 0.0, 62.0]
            assert main.initializer("z") is not None  # the other one uses it


def pack(values: Any, bits: int) -> Any:
    """Return levels with as many in a byte as it holds."""
    per_byte = 8 // bits
    padded = np.zeros((len(values), -(-values.shape[1] // per_byte) * per_byte), np.uint8)
    padded[:, : values.shape[1]] = values
    return sum(padded[:, at::per_byte] << (bits * at) for at in range(per_byte))


@pytest.mark.parametrize(("bits", "zeros"), [(4, ""), (4, "packed"), (4, "float"), (2, "packed")])
def test_sorted_rows_are_compared_with_what_the_operator_says(
    bits: int, zeros: str, tmp_path: Path
) -> None:
    """ONNX Runtime ignores packed zero points of sorted rows, which must not be blamed on us."""
    rows, columns, block = 64, 8, 32
    blocks, random = rows // block, np.random.default_rng(bits)
    levels = random.integers(0, 1 << bits, (columns, rows)).astype(np.uint8)
    scales = random.uniform(0.01, 0.05, (columns, blocks)).astype(np.float32)
    group = random.permutation(np.repeat(np.arange(blocks), block)).astype(np.int32)
    points = random.integers(0, 1 << bits, (columns, blocks)).astype(np.uint8)
    given = {"packed": pack(points, bits), "float": points.astype(np.float32)}
    if not zeros:
        points[:] = 1 << (bits - 1)
    path = written(
        tmp_path,
        f"""g (float[m, {rows}] x) => (float[m, {columns}] y) {{
        [p] y = com.microsoft.MatMulNBits
            <K = {rows}, N = {columns}, bits = {bits}, block_size = {block}>
            (x, q, scales, {"zeros" if zeros else '""'}, group) }}""",
        q=pack(levels, bits).reshape(columns, blocks, -1),
        scales=scales.reshape(-1),
        group=group,
        **({"zeros": given[zeros].reshape(-1)} if zeros else {}),
    )
    matrix = [
        [(int(levels[at, row]) - int(points[at, group[row]])) * scales[at, group[row]]
         for at in range(columns)]
        for row in range(rows)
    ]  # fmt: skip
    output, result = convert(path)
    x = np.random.default_rng(0).standard_normal((3, rows)).astype(np.float32)
    [product] = run_model(output, {"x": x})
    np.testing.assert_allclose(product, x @ np.array(matrix), rtol=1e-4, atol=1e-5)
    values = result["values"]
    assert values["is_good"]
    is_avoided = bits == 2 or zeros == "packed"
    assert any("g_idx" in line for line in values["guess"]) == is_avoided
    assert np.isclose(values["outputs"]["y"]["max_abs"], 0, atol=1e-4)
    raised = conversions.convert("opset", path, tmp_path / "raised.onnx", to=22)
    assert raised["values"]["is_good"]
    weights = [onnx.load(one).graph.initializer for one in (path, tmp_path / "raised.onnx")]
    assert [*weights[0]] == [*weights[1]], "what is compared in another way is written as it is"


def experts(folder: Path, hidden: int, weights: dict[str, Any], **attributes: Any) -> Path:
    """Write a model of a QMoE without biases; zero points are weights z1 and z2."""
    count, inputs = len(weights["w1"]), ["x", "p", "w1", "s1", "", "w2", "s2"]
    if "z1" in weights:
        inputs += ["", "", "", "", "z1", "z2"]
    node = helper.make_node("QMoE", inputs, ["y"], "moe", domain="com.microsoft", **attributes)
    path = written(
        folder,
        f"g (float[5, {hidden}] x, float[5, {count}] p) => (float[5, {hidden}] y) {{}}",
        **weights,
    )
    model = onnx.load(path)
    model.graph.node.append(node)
    onnx.save(model, path)
    return path


def mixture(feeds: dict[str, Any], weights: dict[str, Any], bits: int, block: int) -> Any:
    """Compute the two best experts of each token in NumPy."""

    def unpacked(data: Any) -> Any:
        parts = [(data >> shift) & ((1 << bits) - 1) for shift in range(0, 8, bits)]
        return np.stack(parts, axis=-1).reshape(*data.shape[:-1], -1).astype(np.float64)

    matrices = []
    for name in "12":
        levels, scales = unpacked(weights[f"w{name}"]), weights[f"s{name}"].astype(np.float64)
        points = np.full(scales.shape, float(1 << (bits - 1)))
        if f"z{name}" in weights:
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
    count, hidden, inner = 4, 64, 96
    weights: dict[str, Any] = {}
    for name, columns, rows in (("1", inner, hidden), ("2", hidden, inner)):
        stored = (count, columns, rows // (8 // bits))
        scaled = (count, columns, rows // block) if block else (count, columns)
        weights[f"w{name}"] = random.integers(0, 256, stored, dtype=np.uint8)
        weights[f"s{name}"] = random.random(scaled, np.float32) / 200
        if zeros:
            packed = (*scaled[:-1], -(-scaled[-1] * bits // 8))
            weights[f"z{name}"] = random.integers(0, 256, packed, dtype=np.uint8)
    more: dict[str, Any] = {"block_size": block} if block else {}
    path = experts(
        tmp_path, hidden, weights, k=2, expert_weight_bits=bits, activation_type="silu",
        normalize_routing_weights=1, **more,
    )  # fmt: skip
    output, result = convert(path)
    feeds = {
        "x": random.standard_normal((5, hidden), np.float32),
        "p": random.standard_normal((5, count), np.float32),
    }
    (before,), (after,) = run_model(path, feeds), run_model(output, feeds)
    expected = mixture(feeds, weights, bits, block)
    np.testing.assert_allclose(after, expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())
    # With 8 bits in blocks its kernel rounds what it multiplies by to 8 bits.
    np.testing.assert_allclose(before, expected, rtol=1e-2, atol=1e-2 * np.abs(expected).max())
    assert [node.op_type for node in onnx.load(output).graph.node] == ["MoE"]
    assert result["weights"] == 1


def test_experts_follow_the_attribute_and_the_doubt_is_told(tmp_path: Path) -> None:
    """The kernel of QMoE normalizes with normalize_routing_weights 0, too, that of MoE does not."""
    random = np.random.default_rng(3)
    weights: dict[str, Any] = {
        **{f"w{at}": random.integers(0, 256, (4, 32, 32), np.uint8) for at in (1, 2)},
        **{f"s{at}": random.random((4, 32), np.float32) / 100 for at in (1, 2)},
    }
    path = experts(tmp_path, 32, weights, k=2, expert_weight_bits=8, activation_type="relu")
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
    path = experts(tmp_path, 32, weights, k=1)
    with pytest.raises(InputError, match="do not fit together"):
        convert(path)
    with pytest.raises(Exception, match="expected to have shape"):  # the authority
        run_model(path, {"x": np.ones((5, 32), np.float32), "p": np.ones((5, 2), np.float32)})


def test_what_does_not_fit_is_refused_and_what_stays_is_told(tmp_path: Path) -> None:
    short = """g () => (float[4, 6] y) <int8[4, 6] w = {1}, float[4] s = {1, 1, 1, 1}> {
        [w1] y = DequantizeLinear <axis = 1> (w, s) }"""
    with pytest.raises(InputError, match=r"^w1: DequantizeLinear: its scales are 4, not 6"):
        convert(written(tmp_path, short))
    left = "g (float s) => (float[2] y) <int8[2] w = {1, 2}> { y = DequantizeLinear (w, s) }"
    _, result = convert(written(tmp_path, left))
    assert "weights of 1 node stay in few bits: s is not stored: it is an input" in str(result)
    assert "no weight is stored" not in str(result)
    _, result = convert(models.write(tmp_path, models.CHAIN))
    assert (result["weights"], result["values"]["skipped"]) == (
        0, "no weight is stored in few bits"
    )  # fmt: skip
