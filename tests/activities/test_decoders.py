"""Conversions of decoders as people export them: contrib attention, int4 weights, caches."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.support.conversions import convert

ort = pytest.importorskip("onnxruntime")
HEADS, KV_HEADS, SIZE, BLOCK = 4, 2, 16, 32
HIDDEN = HEADS * SIZE
MICROSOFT = "com.microsoft"


def decoder(path: Path, layers: int = 2) -> Path:
    """Write a decoder: int4 projections, grouped attention, caches that grow."""
    rng = np.random.default_rng(7)
    value = helper.make_tensor_value_info
    nodes, weights = list[onnx.NodeProto](), list[onnx.TensorProto]()
    inputs = [
        value("hidden", TensorProto.FLOAT, ["batch", "sequence", HIDDEN]),
        value("last", TensorProto.INT32, [1]),
        value("total", TensorProto.INT32, []),
    ]
    outputs = [value("y", TensorProto.FLOAT, ["batch", "sequence", HIDDEN])]

    def project(source: str, target: str, columns: int) -> None:
        packed = rng.integers(0, 256, (columns, HIDDEN // BLOCK, BLOCK // 2), dtype=np.uint8)
        scales = (rng.standard_normal(columns * HIDDEN // BLOCK) * 0.02).astype(np.float32)
        weights.extend(
            numpy_helper.from_array(array, f"{target}.{what}")
            for what, array in (("packed", packed), ("scales", scales))
        )
        nodes.append(
            helper.make_node(
                "MatMulNBits", [source, f"{target}.packed", f"{target}.scales"], [target],
                f"{target}/MatMul", domain=MICROSOFT, K=HIDDEN, N=columns, bits=4,
                block_size=BLOCK, accuracy_level=4,
            )
        )  # fmt: skip

    weights.append(numpy_helper.from_array(np.ones(HIDDEN, np.float32), "norm"))
    here = "hidden"
    for layer in range(layers):
        normed = f"{layer}.normed"
        nodes.append(
            helper.make_node("SimplifiedLayerNormalization", [here, "norm"], [normed], f"n{layer}")
        )
        for what, columns in (("q", HEADS), ("k", KV_HEADS), ("v", KV_HEADS)):
            project(normed, f"{layer}.{what}", columns * SIZE)
        caches = [f"{layer}.key", f"{layer}.value"]
        inputs += [
            value(f"past.{name}", TensorProto.FLOAT, ["batch", KV_HEADS, "past", SIZE])
            for name in caches
        ]
        outputs += [
            value(f"present.{name}", TensorProto.FLOAT, ["batch", KV_HEADS, "total", SIZE])
            for name in caches
        ]
        nodes.append(
            helper.make_node(
                "GroupQueryAttention",
                [*(f"{layer}.{what}" for what in "qkv"), *(f"past.{name}" for name in caches),
                 "last", "total"],
                [f"{layer}.attended", *(f"present.{name}" for name in caches)],
                f"attention{layer}", domain=MICROSOFT, num_heads=HEADS, kv_num_heads=KV_HEADS,
            )
        )  # fmt: skip
        project(f"{layer}.attended", f"{layer}.out", HIDDEN)
        made = "y" if layer == layers - 1 else f"{layer}.sum"
        nodes.append(helper.make_node("Add", [here, f"{layer}.out"], [made], f"add{layer}"))
        here = made
    known = {info.name for info in outputs}
    inner = [  # as exporters declare it: onnx's inference knows none of these operators
        value(name, TensorProto.FLOAT, None)
        for node in nodes
        for name in node.output
        if name not in known
    ]
    graph = helper.make_graph(nodes, "decoder", inputs, outputs, weights, value_info=inner)
    imports = [helper.make_opsetid("", 21), helper.make_opsetid(MICROSOFT, 1)]
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=10), path)
    return path


def feeds(length: int, dtype: type = np.float32) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    empty: Any = np.zeros((1, KV_HEADS, 0, SIZE), dtype)
    return {
        "hidden": rng.standard_normal((1, length, HIDDEN)).astype(dtype),
        "last": np.array([length - 1], np.int32),
        "total": np.array(length, np.int32),
        **{f"past.{layer}.{what}": empty for layer in range(2) for what in ("key", "value")},
    }


def write_inputs(folder: Path, length: int) -> Path:
    inputs = folder / "inputs"
    inputs.mkdir()
    for name, array in feeds(length).items():
        np.save(inputs / f"{name}.npy", array)
    return inputs


@pytest.mark.broad
def test_fp16_of_a_decoder_with_int4_weights_is_good_and_is_called_so(tmp_path: Path) -> None:
    """Its rounding copy must not run into ONNX Runtime's reuse of caches and zeros of MatMulNBits.

    The second opinion is a plain run of both files.
    """
    path, out = decoder(tmp_path / "decoder.onnx"), tmp_path / "half.onnx"
    result = convert("fp16", path, out, inputs=write_inputs(tmp_path, 8))
    values = cast("dict[str, Any]", result["values"])
    assert values["is_good"], values

    runs = []
    for file, dtype in ((path, np.float32), (out, np.float16)):
        session = ort.InferenceSession(file, providers=["CPUExecutionProvider"])
        runs.append(session.run(["y"], feeds(8, dtype))[0].astype(np.float32))
    exact, half = runs
    noise = np.square(exact - half).mean()
    assert 10 * np.log10(np.square(exact).mean() / noise) > 30


def test_attention_of_the_standard_is_not_taken_for_that_of_com_microsoft(tmp_path: Path) -> None:
    value = helper.make_tensor_value_info
    shape: list[int | str | None] = [1, "sequence", HIDDEN]
    weight = np.random.default_rng(1).standard_normal((HIDDEN, HIDDEN)).astype(np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["q"], "project"),
            helper.make_node(
                "Attention", ["q", "x", "x"], ["y"], "attend", q_num_heads=4, kv_num_heads=4
            ),
        ],
        "standard",
        [value("x", TensorProto.FLOAT, shape)],
        [value("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(weight, "w")],
    )
    path, out = tmp_path / "model.onnx", tmp_path / "out.onnx"
    imports = [helper.make_opsetid("", 23)]
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=11), path)
    result = convert("quantize", path, out, dynamic=True, measure=False)
    assert cast("dict[str, Any]", result["values"])["is_good"]
    operators = {node.op_type for node in onnx.load(out).graph.node}
    assert {"Attention", "MatMulInteger"} <= operators
