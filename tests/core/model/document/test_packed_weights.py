"""Weights in few bits, against what ONNX Runtime makes of them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from dld_tui.core.checks.decoders import decoder_findings
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.packed_weights import (
    WeightPart,
    WeightView,
    base_of,
    blocked_weight,
    blocked_weights,
    misfits,
    weight_views,
)

RANDOM = np.random.default_rng(21)


def model(
    path: Path, op: str, rows: int, weights: dict[str, Any], inputs: list[str], **attributes: Any
) -> Path:
    """Write a node that is fed a unit matrix, or each row's number: it gives out its weight."""
    gather, dequantize = "Gather" in op, op == "DequantizeLinear"
    kind = TensorProto.INT64 if gather else TensorProto.FLOAT
    fed = (
        []
        if dequantize
        else [helper.make_tensor_value_info("x", kind, [rows] if gather else [rows, rows])]
    )
    node = helper.make_node(
        op, inputs, ["y"], name="n", domain="" if dequantize else "com.microsoft", **attributes
    )
    stored = [
        value if isinstance(value, onnx.TensorProto) else numpy_helper.from_array(value, name)
        for name, value in weights.items()
    ]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph([node], "g", fed, outputs, stored)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    path.write_bytes(made.SerializeToString())
    return path


def as_run(path: Path, rows: int) -> Any:
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    feeds = {}
    for one in session.get_inputs():
        feeds[one.name] = np.arange(rows) if "int" in one.type else np.eye(rows, dtype=np.float32)
    return session.run(None, feeds)[0]


def check(path: Path, rows: int) -> None:
    document = Document.open(path)
    (weight,) = blocked_weights(document)
    expected = as_run(path, rows)
    np.testing.assert_allclose(weight.matrix(), expected, rtol=1e-5, atol=1e-6)
    # Any part of it is what the whole has there.
    whole = weight.matrix().T if weight.is_transposed else weight.matrix()
    at = [slice(size // 3, size - 1) for size in whole.shape]
    np.testing.assert_array_equal(weight.load().window(at), whole[tuple(at)])
    # So is what is read of it as a tensor, row by row.
    face, flat = WeightView(weight, WeightPart.DEQUANTIZED), whole.reshape(-1)
    for start, count in ((0, None), (3, 5), (len(flat) // 2, len(flat)), (len(flat) - 1, 1)):
        stop = len(flat) if count is None else start + count
        np.testing.assert_array_equal(face.read(start, count), flat[start:stop])
    levels, scales, zeros = (WeightView(weight, part).read() for part in [*WeightPart][:3])
    np.testing.assert_allclose((levels - zeros) * scales, flat, rtol=1e-6)
    found = weight_views(document.main, base_of(weight.scales).name)
    assert found is not None
    assert found.node is weight.node
    document.close()


@pytest.mark.parametrize("zeros", ["none", "packed", "float"])
@pytest.mark.parametrize(
    ("bits", "block", "rows"), [(4, 32, 64), (4, 16, 41), (8, 32, 70), (2, 16, 48)]
)
def test_matrix_products(tmp_path: Path, bits: int, block: int, rows: int, zeros: str) -> None:
    columns, count = 6, -(-rows // block)
    weights: dict[str, Any] = {
        "b": RANDOM.integers(0, 256, (columns, count, block * bits // 8), dtype=np.uint8),
        "s": RANDOM.random(columns * count, np.float32),
    }
    if zeros == "packed":
        width = -(-count * bits // 8)
        weights["z"] = RANDOM.integers(0, 256, columns * width, dtype=np.uint8)
    elif zeros == "float":
        weights["z"] = (RANDOM.random(columns * count, np.float32) * 8).astype(np.float32)
    path = model(
        tmp_path / "m.onnx", "MatMulNBits", rows, weights, ["x", *weights],
        K=rows, N=columns, bits=bits, block_size=block,
    )  # fmt: skip
    try:
        as_run(path, rows)
    except Exception as error:  # noqa: BLE001
        pytest.skip(f"ONNX Runtime does not run it: {str(error)[:80]}")
    check(path, rows)


@pytest.mark.parametrize("kind", ["int4", "uint8"])
def test_rows_that_are_gathered(tmp_path: Path, kind: str) -> None:
    rows, width, block = 7, 64, 32
    stored: Any = RANDOM.integers(0, 256, (rows, width // 2), dtype=np.uint8)
    if kind == "int4":
        values = RANDOM.integers(-8, 8, (rows, width))
        stored = helper.make_tensor("b", TensorProto.INT4, (rows, width), values.flatten().tolist())
    weights = {"b": stored, "s": RANDOM.random((rows, width // block), np.float32)}
    path = model(
        tmp_path / "m.onnx", "GatherBlockQuantized", rows, weights, ["b", "x", "s"],
        block_size=block, quantize_axis=1, gather_axis=0, bits=4,
    )  # fmt: skip
    check(path, rows)


NARROW = [
    "int2", "uint2", "int4", "uint4", "float4e2m1", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2",
    "float8e5m2fnuz",
]  # fmt: skip


@pytest.mark.parametrize("block", [0, 16])
@pytest.mark.parametrize("kind", NARROW)
def test_every_type_of_few_bits(tmp_path: Path, kind: str, block: int) -> None:
    bits = next(bits for word, bits in (("8", 8), ("int2", 2), ("4", 4)) if word in kind)
    stored = TensorProto(name="b", data_type=getattr(TensorProto, kind.upper()), dims=[6, 32])
    stored.raw_data = bytes(RANDOM.integers(0, 64, 6 * 32 * bits // 8, dtype=np.uint8))
    scales = RANDOM.random((6, 2) if block else (6,), np.float32)
    more = {"block_size": block} if block else {}
    path = model(
        tmp_path / "m.onnx", "DequantizeLinear", 0, {"b": stored, "s": scales}, ["b", "s"],
        axis=1 if block else 0, **more,
    )  # fmt: skip
    with closing(Document.open(path)) as document:
        (weight,) = blocked_weights(document)
        spread = np.repeat(scales, 16, axis=1) if block else scales[:, None]
        expected = numpy_helper.to_array(stored).astype(np.float32) * spread
        np.testing.assert_array_equal(weight.matrix(), expected)
        np.testing.assert_array_equal(
            WeightView(weight, WeightPart.DEQUANTIZED).read(40, 9), expected.reshape(-1)[40:49]
        )


def stored_model(path: Path, text: str, weights: dict[str, Any]) -> Path:
    made = onnx.parser.parse_model(text)
    for name, value in weights.items():
        proto = value if isinstance(value, TensorProto) else numpy_helper.from_array(value, name)
        made.graph.initializer.append(proto)
    path.write_bytes(made.SerializeToString())
    return path


MOVED = """<ir_version: 10, opset_import: ["" : 21]>
g () => (float[12, 8] y) <int64[2] to = {8, -1}> {
    flat = Flatten <axis = 1> (b)
    shaped = Reshape (flat, to)
    turned = Transpose (shaped)
    s_row = Squeeze (s)
    y = DequantizeLinear <axis = 1> (turned, s_row)
}"""
SCALES_IN_FEW_BITS = """<ir_version: 10, opset_import: ["" : 21]>
g () => (float[8, 32] y) {
    scales = DequantizeLinear (s, whole)
    y = DequantizeLinear <axis = 1, block_size = 16> (b, scales)
}"""


def test_levels_behind_other_operators_and_scales_in_few_bits(tmp_path: Path) -> None:
    levels, scales = RANDOM.integers(-9, 9, (4, 24)).astype(np.int8), RANDOM.random((1, 8))
    path = stored_model(
        tmp_path / "moved.onnx", MOVED, {"b": levels, "s": scales.astype(np.float32)}
    )
    check(path, 0)
    narrow = helper.make_tensor("s", TensorProto.FLOAT8E4M3FN, (8, 2), RANDOM.random(16) * 9)
    codes = RANDOM.integers(-8, 8, 256)
    weights = {
        "b": helper.make_tensor("b", TensorProto.INT4, (8, 32), codes),
        "s": narrow,
        "whole": np.float32(0.25),
    }
    path = stored_model(tmp_path / "two.onnx", SCALES_IN_FEW_BITS, weights)
    with closing(Document.open(path)) as document:
        first, second = blocked_weights(document)
        np.testing.assert_allclose(second.matrix(), as_run(path, 0), rtol=1e-6)
        assert first.shape == (8, 2)


def product(**changes: Any) -> tuple[str, dict[str, Any], dict[str, Any]]:
    sizes: dict[str, Any] = {"K": 64, "N": 6, "bits": 4, "block_size": 32}
    shapes: dict[str, Any] = {"b": (6, 2, 16), "s": (6, 2), "z": (6, 1), "zf": None}
    sizes |= {name: value for name, value in changes.items() if name in sizes}
    shapes |= {name: value for name, value in changes.items() if name in shapes}
    if shapes["zf"] is not None:
        shapes["z"] = None
    weights: dict[str, Any] = {
        name: np.ones(shapes[name], np.uint8 if name in "bz" else np.float32)
        for name in ("b", "s", "z", "zf")
        if shapes[name] is not None
    }
    return "MatMulNBits", weights, sizes


def gathered(**changes: Any) -> tuple[str, dict[str, Any], dict[str, Any]]:
    sizes: dict[str, Any] = {"bits": 4, "block_size": 32, "quantize_axis": 1, "gather_axis": 0}
    shapes: dict[str, Any] = {"b": (64, 32), "s": (64, 2), "z": (64, 1)}
    sizes |= {name: value for name, value in changes.items() if name in sizes}
    shapes |= {name: value for name, value in changes.items() if name in shapes}
    kinds = {"b": np.uint8, "s": np.float32, "z": np.uint8}
    return (
        "GatherBlockQuantized",
        {name: np.ones(shape, kinds[name]) for name, shape in shapes.items()},
        sizes,
    )


@pytest.mark.parametrize(
    "case",
    [
        product(), product(block_size=24), product(block_size=8, b=(6, 8, 4), s=(6, 8), z=(6, 4)),
        product(bits=3, b=(6, 2, 12)), product(b=(6, 32)), product(b=(6, 2, 15)),
        product(s=(12,)), product(s=(6, 1)), product(s=(2, 6)), product(z=(6,)), product(z=(6, 2)),
        product(z=(12,)), product(z=(5, 1)), product(zf=(6, 2)), product(zf=(12,)),
        product(zf=(6, 1)), gathered(), gathered(block_size=24, s=(64, 3)), gathered(s=(64, 1)),
        gathered(block_size=8, s=(64, 8), z=(64, 4)), gathered(z=(64, 2)), gathered(bits=3),
        gathered(gather_axis=1),
        gathered(bits=8, b=(64, 64), z=(64, 2)), gathered(bits=8, b=(64, 64), z=(64, 1)),
    ],
)  # fmt: skip
def test_sizes_are_those_that_onnx_runtime_has(tmp_path: Path, case: Any) -> None:
    op, weights, attributes = case
    inputs = ["b", "x", "s", "z"] if "Gather" in op else ["x", *weights]
    path = model(tmp_path / "m.onnx", op, 64, weights, inputs, **attributes)
    try:
        as_run(path, 64)
    except Exception:  # noqa: BLE001 - whatever it says, it refuses the model
        runs = False
    else:
        runs = True
    with closing(Document.open(path)) as document:
        (node,) = document.main.nodes
        assert ([*misfits(node)] == []) is runs
        found = [one for one in decoder_findings(document) if one.rule == "decoder:block-sizes"]
        assert (found == []) is runs
        assert (blocked_weight(node) is not None) is runs
