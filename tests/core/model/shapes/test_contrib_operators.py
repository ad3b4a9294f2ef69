"""Shapes of what ONNX Runtime's own operators make, held against a run of each."""

from __future__ import annotations

import itertools
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from dld_tui.core.model.document import Document
from dld_tui.core.model.shapes.call import Call as ShapeCall
from dld_tui.core.model.shapes.evaluation import MALFORMED
from dld_tui.core.model.shapes.noting import follow_shapes
from dld_tui.core.model.shapes.rules import RULES, rule_of
from dld_tui.core.model.shapes.value import NOTHING, Value
from tests.support.backend_cases import fits, known, less_known
from tests.support.runtime import needs_onnxruntime

ort = pytest.importorskip("onnxruntime")

Array: TypeAlias = "np.ndarray[Any, Any]"
Call: TypeAlias = "tuple[str, dict[str, Array | None], int, dict[str, Any]]"
"""Operator, inputs (None: left out), how many outputs, attributes."""


def floats(*dims: int) -> Array:
    return np.full(dims, 0.1, np.float32)


def bytes_(*dims: int) -> Array:
    return np.full(dims, 3, np.uint8)


def int32(number: int) -> Array:
    return np.array(number, np.int32)


def projected(width: int, past: int | None, outputs: int = 2, **more: Any) -> Call:
    inputs = {"x": floats(2, 3, 8), "w": floats(8, width), "b": floats(width), "mask": None}
    if past is not None:
        inputs["past"] = floats(2, 2, 2, past, width // 6)
    return "Attention", inputs, outputs, {"num_heads": 2, **more}


def quantized(past: int | None, outputs: int = 2) -> Call:
    inputs: dict[str, Array | None] = {
        "x": bytes_(2, 3, 8), "w": bytes_(8, 24), "b": floats(24), "xs": floats(), "ws": floats(),
        "mask": None, "xz": bytes_(), "wz": bytes_(),
    }  # fmt: skip
    if past is not None:
        inputs["past"] = floats(2, 2, 2, past, 4)
    return "QAttention", inputs, outputs, {"num_heads": 2}


def grouped(packed: bool) -> Call:
    inputs: dict[str, Array | None] = {"q": floats(1, 3, 64 if packed else 32)}
    inputs |= dict.fromkeys("kv", None if packed else floats(1, 3, 16))
    inputs |= {"pk": floats(1, 2, 2, 8), "pv": floats(1, 2, 2, 8)}
    inputs |= {"n": np.array([4], np.int32), "t": np.array(5, np.int32)}
    return "GroupQueryAttention", inputs, 3, {"num_heads": 4, "kv_num_heads": 2}


def sparse(packed: bool) -> Call:
    inputs: dict[str, Array | None] = {"q": floats(1, 3, 64 if packed else 32)}
    inputs |= dict.fromkeys("kv", None if packed else floats(1, 3, 16))
    inputs |= {"pk": floats(1, 2, 32, 8), "pv": floats(1, 2, 32, 8)}
    inputs |= {"rows": np.array([[0, 1, 2]], np.int32), "columns": np.array([[0, 0]], np.int32)}
    inputs |= {"t": np.array(3, np.int32), "n": np.array([3], np.int32)}
    more = {"num_heads": 4, "kv_num_heads": 2, "sparse_block_size": 16}
    return "SparseAttention", inputs, 3, more


def linear(heads: int, groups: int) -> Call:
    inputs: dict[str, Array | None] = {
        "q": floats(2, 3, heads * 4), "k": floats(2, 3, groups * 4), "v": floats(2, 3, groups * 6),
    }  # fmt: skip
    more = {"q_num_heads": heads, "kv_num_heads": groups, "update_rule": "linear"}
    return "LinearAttention", inputs, 2, more


def convolved(**more: int) -> Call:
    inputs: dict[str, Array | None] = {"x": floats(2, 4, 7), "w": floats(4, 1, 3)}
    return "CausalConvWithState", inputs, 2, dict(more)


def product(one: Array, two: Array, **more: Any) -> Call:
    return "FusedMatMul", {"a": one, "b": two}, 1, more


def scaled(op_type: str, *parts: Array, **more: Any) -> Call:
    """Return a call of quantized parts, each with scale and zero point, and those of the result."""
    inputs: dict[str, Array | None] = {}
    for at, part in enumerate(parts):
        inputs |= {f"x{at}": part, f"s{at}": floats(), f"z{at}": bytes_()}
    own = {"s": floats(), "z": bytes_()}
    inputs = {**own, **inputs} if op_type == "QLinearConcat" else {**inputs, **own}
    return op_type, inputs, 1, more


CALLS: dict[str, Call] = {
    "attention": projected(24, None),
    "attention, one output": projected(24, None, 1),
    "attention, past": projected(24, 5),
    "attention, wide values": projected(28, None, 1, qkv_hidden_sizes=[8, 8, 12]),
    "QAttention": quantized(None),
    "QAttention, one output": quantized(None, 1),
    "QAttention, past": quantized(5),
    "grouped": grouped(packed=False),
    "grouped, packed": grouped(packed=True),
    "sparse": sparse(packed=False),
    "sparse, packed": sparse(packed=True),
    "linear": linear(4, 2),
    "linear, more values": linear(2, 4),
    "convolution": convolved(),
    "convolution, dilated": convolved(dilation=2),
    "product": product(floats(2, 3, 4), floats(4, 5)),
    "product, one turned": product(floats(2, 4, 3), floats(2, 4, 5), transA=1),
    "product, both turned": product(floats(2, 4, 3), floats(2, 5, 4), transA=1, transB=1),
    "product, batches behind": product(floats(3, 2, 4), floats(2, 4, 5), transBatchA=1),
    "product, both behind": product(
        floats(4, 2, 3), floats(5, 2, 4), transBatchA=1, transA=1, transBatchB=1, transB=1),
    "TransposeMatMul": (
        "TransposeMatMul", {"a": floats(4, 3), "b": floats(4, 5)}, 1, {"transA": 1}
    ),
    "FusedGemm": (
        "FusedGemm", {"a": floats(3, 4), "b": floats(5, 4)}, 1, {"transB": 1, "activation": "Relu"}
    ),
    "QGemm": (
        "QGemm",
        {"a": bytes_(3, 4), "as": floats(), "az": bytes_(), "b": bytes_(5, 4), "bs": floats(),
         "bz": bytes_()}, 1, {"transB": 1},
    ),
    "MatMulIntegerToFloat": (
        "MatMulIntegerToFloat",
        {"a": bytes_(2, 3, 4), "b": bytes_(4, 5), "as": floats(), "bs": floats()}, 1, {},
    ),
    "MatMulBnb4": (
        "MatMulBnb4",
        {"a": floats(2, 3, 16), "b": bytes_(16 * 5 // 2), "m": floats(5)}, 1,
        {"K": 16, "N": 5, "block_size": 16, "quant_type": 1},
    ),
    "QLinearAdd": scaled("QLinearAdd", bytes_(2, 3), bytes_(4, 1, 3)),
    "QLinearMul": scaled("QLinearMul", bytes_(2, 1), bytes_(3)),
    "QLinearConcat": scaled("QLinearConcat", bytes_(2, 3), bytes_(2, 4), axis=1),
    "QLinearSigmoid": scaled("QLinearSigmoid", bytes_(2, 3)),
    "QLinearLeakyRelu": scaled("QLinearLeakyRelu", bytes_(2, 3)),
    "QLinearSoftmax": scaled("QLinearSoftmax", bytes_(2, 3), axis=-1, opset=13),
    "QLinearWhere": (
        "QLinearWhere",
        {"c": np.ones((2, 1), np.bool_), "x": bytes_(3), "xs": floats(), "xz": bytes_(),
         "y": bytes_(4, 1, 1), "ys": floats(), "yz": bytes_(), "s": floats(), "z": bytes_()}, 1, {},
    ),
    "QLinearAveragePool": scaled(
        "QLinearAveragePool", bytes_(1, 2, 7, 6), kernel_shape=[3, 2], strides=[2, 2]
    ),
    "QLinearGlobalAveragePool": scaled("QLinearGlobalAveragePool", bytes_(2, 3, 4, 5)),
    "QLinearGlobalAveragePool, channels last": scaled(
        "QLinearGlobalAveragePool", bytes_(2, 4, 5, 3), channels_last=1
    ),
    "QLinearAveragePool, channels last": scaled(
        "QLinearAveragePool", bytes_(1, 7, 6, 2), kernel_shape=[3, 2], strides=[2, 2],
        channels_last=1,
    ),
    "NhwcMaxPool": (
        "NhwcMaxPool", {"x": bytes_(1, 7, 6, 2)}, 1, {"kernel_shape": [3, 2], "strides": [2, 2]},
    ),
    "QLinearConv, channels last": (
        "QLinearConv",
        {"x": bytes_(1, 7, 6, 4), "xs": floats(), "xz": bytes_(), "w": bytes_(6, 2, 3, 2),
         "ws": floats(), "wz": bytes_(), "ys": floats(), "yz": bytes_()},
        1, {"channels_last": 1, "group": 2, "strides": [2, 1], "pads": [1, 0, 1, 0]},
    ),
    "LinearAttentionGate": (
        "LinearAttentionGate",
        {"a": floats(2, 3, 4), "bias": floats(4), "scale": floats(4), "b": floats(2, 3, 4)}, 2, {},
    ),
    "GatedRMSNorm": (
        "GatedRMSNorm", {"x": floats(2, 8), "s": floats(4), "g": floats(2, 8)}, 1, {}
    ),
    "GatedAdd": ("GatedAdd", {"x": floats(2, 3), "y": floats(2, 3), "g": floats(2, 1)}, 1, {}),
    "BranchwiseRMSNorm": ("BranchwiseRMSNorm", {"x": floats(2, 3, 6)}, 1, {"num_branches": 3}),
    "ScaledSiLU": ("ScaledSiLU", {"x": floats(2, 3)}, 1, {}),
    "QuickGelu": ("QuickGelu", {"x": floats(2, 3)}, 1, {}),
    "BiasGelu": ("BiasGelu", {"x": floats(2, 3), "b": floats(3)}, 1, {}),
    "FastGelu": ("FastGelu", {"x": floats(2, 3), "b": floats(3)}, 1, {}),
    "Gelu": ("Gelu", {"x": floats(2, 3)}, 1, {}),
    "Inverse": ("Inverse", {"x": np.eye(3, dtype=np.float32)[None]}, 1, {}),
    "MurmurHash3": ("MurmurHash3", {"x": floats(2, 3)}, 1, {}),
    "Trilu": ("Trilu", {"x": floats(2, 3, 3)}, 1, {}),
    "SampleOp": ("SampleOp", {"x": floats(2, 3)}, 1, {}),
    "ExpandDims": ("ExpandDims", {"x": floats(2, 3), "a": np.array(-1, np.int32)}, 1, {}),
    "Range": ("Range", {"a": int32(1), "b": int32(9), "c": int32(3)}, 1, {}),
    "QuantizeLinear": (
        "QuantizeLinear", {"x": floats(2, 3), "s": floats(), "z": bytes_()}, 1, {}
    ),
    "DequantizeLinear": (
        "DequantizeLinear", {"x": bytes_(2, 3), "s": floats(), "z": bytes_()}, 1, {}
    ),
    "GatherND": ("GatherND", {"x": floats(2, 3, 4), "i": np.zeros((5, 2), np.int64)}, 1, {}),
    "GatherBlockQuantized": (
        "GatherBlockQuantized",
        {"x": bytes_(9, 16), "i": np.zeros((2, 3), np.int64), "s": floats(9, 2)}, 1,
        {"bits": 4, "block_size": 16, "gather_axis": 0, "quantize_axis": 1},
    ),
    "GatherBlockQuantized, bytes": (
        "GatherBlockQuantized",
        {"x": bytes_(9, 32), "i": np.zeros((2, 3), np.int64), "s": floats(9, 2)}, 1,
        {"bits": 8, "block_size": 16, "gather_axis": 0, "quantize_axis": 1},
    ),
    "UnfoldTensor": ("UnfoldTensor", {"x": floats(2, 9)}, 1, {"dim": 1, "size": 3, "step": 2}),
    "Pad": ("Pad", {"x": floats(2, 3), "p": np.array([0, 1, 1, 2])}, 1, {}),
    "CropAndResize": (
        "CropAndResize",
        {"x": floats(1, 2, 8, 8), "r": floats(3, 4), "b": np.zeros(3, np.int32),
         "n": np.array([4, 5], np.int32)}, 1, {},
    ),
    "GridSample": ("GridSample", {"x": floats(1, 2, 4, 4), "g": floats(1, 3, 5, 2)}, 1, {}),
    "FusedConv": (
        "FusedConv", {"x": floats(2, 4, 7, 6), "w": floats(6, 4, 3, 2)}, 1,
        {"strides": [2, 1], "activation": "Relu"},
    ),
    "MaxpoolWithMask": (
        "MaxpoolWithMask", {"x": floats(1, 2, 7, 6), "m": np.ones((1, 2, 7, 6), np.int32)}, 1,
        {"kernel_shape": [3, 2], "strides": [2, 2]},
    ),
    "ConvTransposeWithDynamicPads": (
        "ConvTransposeWithDynamicPads",
        {"x": floats(1, 4, 5, 6), "w": floats(4, 3, 3, 3), "p": np.array([1, 0, 1, 0])}, 1,
        {"strides": [2, 2]},
    ),
    "MatMulNBits": (
        "MatMulNBits", {"x": floats(2, 3, 32), "b": bytes_(5, 1, 16), "s": floats(5, 1)}, 1,
        {"K": 32, "N": 5, "bits": 4, "block_size": 32},
    ),
    "MatMulInteger16": (
        "MatMulInteger16",
        {"a": np.ones((2, 3, 4), np.int16), "b": np.ones((4, 5), np.int16)}, 1, {},
    ),
    "DynamicQuantizeMatMul": (
        "DynamicQuantizeMatMul", {"x": floats(2, 3, 4), "b": bytes_(4, 5), "s": floats(1)}, 1, {}
    ),
    "CDist": (
        "CDist", {"x": floats(3, 4), "y": floats(5, 4)}, 1, {"metric": "euclidean"}
    ),
    "MoE": (
        "MoE",
        {"x": floats(6, 8), "r": floats(6, 3), "w": floats(3, 16, 8), "b": None,
         "w2": floats(3, 8, 16)}, 1, {"k": 1, "activation_type": "relu"},
    ),
    "SkipLayerNormalization": (
        "SkipLayerNormalization",
        {"x": floats(2, 3, 4), "s": floats(2, 3, 4), "g": floats(4)}, 1, {},
    ),
    "EmbedLayerNormalization": (
        "EmbedLayerNormalization",
        {"i": np.array([[1, 2, 0], [1, 0, 2]], np.int32), "t": None, "w": floats(9, 8),
         "p": floats(7, 8), "e": None, "g": floats(8), "b": floats(8)}, 2, {},
    ),
    "MultiHeadAttention": (
        "MultiHeadAttention", {"q": floats(2, 3, 8), "k": floats(2, 5, 8), "v": floats(2, 5, 12)},
        1, {"num_heads": 2},
    ),
    "MultiHeadAttention of heads": (
        "MultiHeadAttention",
        {"q": floats(2, 3, 8), "k": floats(2, 4, 5, 2), "v": floats(2, 4, 5, 2)}, 1,
        {"num_heads": 4},
    ),
    "MultiHeadAttention, past": (
        "MultiHeadAttention",
        {"q": floats(2, 3, 8), "k": floats(2, 3, 8), "v": floats(2, 3, 8), "b": None, "m": None,
         "r": None, "pk": floats(2, 2, 4, 4), "pv": floats(2, 2, 4, 4)}, 3, {"num_heads": 2},
    ),
    "DecoderMaskedMultiHeadAttention, cross": (
        "DecoderMaskedMultiHeadAttention",
        {"q": floats(2, 1, 8), "k": floats(2, 2, 5, 4), "v": floats(2, 2, 5, 4)}, 1,
        {"num_heads": 2},
    ),
    "DecoderMaskedMultiHeadAttention, shared": (
        "DecoderMaskedMultiHeadAttention",
        {"q": floats(2, 1, 8), "k": floats(2, 1, 8), "v": floats(2, 1, 8), "m": None, "b": None,
         "pk": floats(2, 2, 6, 4), "pv": floats(2, 2, 6, 4), "n": int32(4)}, 3,
        {"num_heads": 2, "past_present_share_buffer": 1},
    ),
    "SkipSimplifiedLayerNormalization": (
        "SkipSimplifiedLayerNormalization",
        {"x": floats(2, 3, 4), "s": floats(2, 3, 4), "g": floats(4)}, 1, {},
    ),
    "QMoE": (
        "QMoE",
        {"x": floats(6, 16), "r": floats(6, 3), "w": bytes_(3, 32, 8), "s": floats(3, 32),
         "b": None, "w2": bytes_(3, 16, 16), "s2": floats(3, 16)}, 1,
        {"k": 1, "activation_type": "relu"},
    ),
    "QEmbedLayerNormalization": (
        "QEmbedLayerNormalization",
        {"i": np.array([[1, 2, 0], [1, 0, 2]], np.int32), "t": None, "w": bytes_(9, 8),
         "p": bytes_(7, 8), "e": None, "g": bytes_(8), "b": bytes_(8), "m": None,
         **{f"{kind}{at}": None if at == 2 else made()
            for kind, made in (("s", floats), ("z", bytes_)) for at in range(5)}},
        2, {},
    ),
    "RotaryEmbedding": (
        "RotaryEmbedding",
        {"x": floats(2, 3, 8), "p": np.zeros((2, 3), np.int64), "c": floats(7, 2),
         "s": floats(7, 2)}, 1, {"num_heads": 2},
    ),
    "NGramRepeatBlock": (
        "NGramRepeatBlock", {"i": np.array([[1, 2, 1]]), "s": floats(1, 9)}, 1, {"ngram_size": 2}
    ),
    "NGramHashMapping": (
        "NGramHashMapping",
        {"i": np.array([[1, 2, 1, 3]] * 2), "m": np.array([3, 5, 7]), "v": np.array([11] * 4)}, 2,
        {"max_ngram_size": 3, "n_head_per_ngram": 2, "pad_id": 0},
    ),
    "VarlenNGramHashMapping": (
        "VarlenNGramHashMapping",
        {"i": np.array([1, 2, 1, 3, 4]), "m": np.array([3, 5, 7]), "v": np.array([11] * 4),
         "c": np.array([0, 1, 3, 5], np.int32)}, 2,
        {"max_ngram_size": 3, "n_head_per_ngram": 2, "pad_id": 0},
    ),
    "DynamicQuantizeLSTM": (
        "DynamicQuantizeLSTM",
        {"x": floats(5, 2, 3), "w": bytes_(1, 3, 16), "r": bytes_(1, 4, 16),
         **dict.fromkeys(("b", "n", "h", "c", "P")), "ws": floats(1), "wz": bytes_(1),
         "rs": floats(1), "rz": bytes_(1)}, 3, {"hidden_size": 4},
    ),
}  # fmt: skip


def run(session: Any, feeds: dict[str, Array], *, is_shared: bool) -> list[Array]:
    """Return the results of a run, whose caches are written in place where they are shared."""
    binding = session.io_binding()
    values = {name: ort.OrtValue.ortvalue_from_numpy(one) for name, one in feeds.items()}
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    in_place = {"y1": "pk", "y2": "pv"} if is_shared else {}
    for output in session.get_outputs():
        if output.name in in_place:
            binding.bind_ortvalue_output(output.name, values[in_place[output.name]])
        else:
            binding.bind_output(output.name)
    session.run_with_iobinding(binding)
    found: list[Array] = binding.copy_outputs_to_cpu()
    return found


STANDARD: dict[str, Call] = {
    "GatherND": ("GatherND", {"x": floats(2, 3, 4), "i": np.zeros((5, 1, 2), np.int64)}, 1, {}),
    "GatherND of a batch": (
        "GatherND", {"x": floats(2, 3, 4), "i": np.zeros((2, 1), np.int64)}, 1, {"batch_dims": 1},
    ),
    "Einsum": (
        "Einsum", {"x": floats(2, 3, 4), "y": floats(4, 5)}, 1, {"equation": "...j,jk->k..."}
    ),
    "GridSample": ("GridSample", {"x": floats(1, 2, 4, 4), "g": floats(1, 3, 5, 2)}, 1, {}),
    "DeformConv": (
        "DeformConv",
        {"x": floats(1, 2, 7, 6), "w": floats(4, 2, 3, 3), "o": floats(1, 18, 4, 4)},
        1, {"strides": [2, 1], "pads": [1, 0, 1, 0]},
    ),
    "MaxRoiPool": (
        "MaxRoiPool", {"x": floats(1, 2, 8, 8), "r": floats(3, 5)}, 1, {"pooled_shape": [2, 3]}
    ),
    "Det": ("Det", {"x": floats(2, 3, 3)}, 1, {}),
    "EyeLike": ("EyeLike", {"x": floats(3, 4)}, 1, {}),
    "RandomNormalLike": ("RandomNormalLike", {"x": floats(3, 4)}, 1, {}),
    "RandomUniformLike": ("RandomUniformLike", {"x": floats(3, 4)}, 1, {}),
    "RandomNormal": ("RandomNormal", {}, 1, {"shape": [2, 3]}),
    "RandomUniform": ("RandomUniform", {}, 1, {"shape": [2, 3]}),
    "Multinomial": ("Multinomial", {"x": floats(2, 3)}, 1, {"sample_size": 5}),
    "GlobalLpPool": ("GlobalLpPool", {"x": floats(2, 3, 4, 5)}, 1, {}),
    "SimplifiedLayerNormalization": (
        "SimplifiedLayerNormalization", {"x": floats(2, 3), "s": floats(3)}, 1, {}
    ),
}  # fmt: skip


Shape: TypeAlias = "tuple[int, ...]"
BY_HAND: list[tuple[str, list[Shape | None], list[Shape]]] = [
    ("MultiHeadAttention", [(2, 3, 2, 3, 4)], [(2, 3, 8)]),  # query, keys and values in one
    ("MultiHeadAttention", [(2, 3, 8), (2, 5, 2, 2, 6)], [(2, 3, 12)]),  # keys and values
    (
        "DecoderMaskedMultiHeadAttention",
        [(2, 1, 8), (2, 1, 8), (2, 1, 12), None, None, (2, 2, 4, 4), (2, 2, 4, 6)],
        [(2, 1, 12), (2, 2, 5, 4), (2, 2, 5, 6)],
    ),
]


@pytest.mark.parametrize(("op_type", "given", "made"), BY_HAND)
def test_operands_that_onnx_runtime_takes_on_a_gpu_alone(
    op_type: str, given: list[Shape | None], made: list[Shape]
) -> None:
    names = [f"x{at}" if dims is not None else "" for at, dims in enumerate(given)]
    results = [f"y{at}" for at in range(len(made))]
    node = helper.make_node(op_type, names, results, domain="com.microsoft", num_heads=2)
    rule = rule_of("com.microsoft", op_type)
    assert rule is not None
    claimed = rule(ShapeCall(node, [*map(Value, given)]))
    assert [value.dims for value in claimed[: len(made)]] == made


_CONSTANT = (np.int32, np.int64)


@needs_onnxruntime(31)
@pytest.mark.parametrize("name", [*CALLS, *STANDARD])
def test_shapes_are_those_of_a_run(name: str, tmp_path: Path) -> None:
    op_type, inputs, count, attributes = (CALLS | STANDARD)[name]
    domain = "" if name in STANDARD else "com.microsoft"
    given = {key: one for key, one in inputs.items() if one is not None}
    names = [key if one is not None else "" for key, one in inputs.items()]
    made = [f"y{at}" for at in range(count)]
    node = helper.make_node(op_type, names, made, domain=domain, **attributes)
    # Lengths, paddings and the like are taken from constants.
    constants = [
        numpy_helper.from_array(one, key) for key, one in given.items() if one.dtype in _CONSTANT
    ]
    fed = {key: one for key, one in given.items() if one.dtype not in _CONSTANT}
    infos = [
        helper.make_tensor_value_info(key, helper.np_dtype_to_tensor_dtype(one.dtype), one.shape)
        for key, one in fed.items()
    ]
    results = [onnx.ValueInfoProto(name=one) for one in made]
    graph = helper.make_graph([node], "g", infos, results, constants)
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    ran = run(session, fed, is_shared=op_type == "SparseAttention")
    for at, one in enumerate(ran):  # what is known of a value has its type
        kind = helper.np_dtype_to_tensor_dtype(one.dtype)
        graph.output[at].CopyFrom(helper.make_tensor_value_info(made[at], kind, None))
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)
    with closing(Document.open(path)) as document:
        follow_shapes(document, {key: one.shape for key, one in fed.items()})
        known = document.main.inferred
        assert [known[one].dims if one in known else None for one in made] == [
            one.shape for one in ran
        ]


@pytest.mark.parametrize("name", [*CALLS, *STANDARD])
def test_an_operand_that_is_not_known_makes_no_rule_fail_or_lie(name: str) -> None:
    op_type, inputs, count, attributes = (CALLS | STANDARD)[name]
    domain = "" if name in STANDARD else "com.microsoft"
    names = [key if one is not None else "" for key, one in inputs.items()]
    made = [f"y{at}" for at in range(count)]
    node = helper.make_node(op_type, names, made, domain=domain, **attributes)
    given = [known(one) for one in inputs.values()]
    rule = rule_of(domain, op_type)
    assert rule is not None
    whole = rule(ShapeCall(node, given))
    for at, value in enumerate(given):
        for less in less_known(value):
            claimed = rule(ShapeCall(node, [*given[:at], less, *given[at + 1 :]]))
            for claim, actual in zip(claimed, whole, strict=False):
                if actual.is_known:
                    assert fits(claim.dims, actual.dims or ()), (op_type, at, less.dims)


@pytest.mark.parametrize(
    ("domain", "operator"), [(domain, name) for domain, rules in RULES.items() for name in rules]
)
def test_each_rule_of_the_table_bears_that_nothing_is_known(domain: str, operator: str) -> None:
    """What a rule says of unknown operands holds for any shapes of which it says something."""
    rule = RULES[domain][operator]
    for count, rank in itertools.product(range(1, 9), range(5)):
        names = [f"x{at}" for at in range(count)]
        node = onnx.NodeProto(op_type=operator, domain=domain, input=names, output=["y"])
        dims = (2, 4, 8, 6)[:rank]
        try:
            shown = rule(ShapeCall(node, [Value(dims)] * count))
        except MALFORMED:
            continue  # no node has such operands
        for claim, value in zip(rule(ShapeCall(node, [NOTHING] * count)), shown, strict=False):
            if value.is_known:
                assert fits(claim.dims, value.dims or ()), (count, dims)
