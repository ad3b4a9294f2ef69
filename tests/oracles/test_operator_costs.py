"""Costs of ONNX Runtime's operators, against the tensors of real runs and hand counts."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import helper

from dld_tui.backends.onnxruntime.types import contrib_types
from dld_tui.core.model.cost.nodes import ModelCosts
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.shapes.inference import infer, store_types
from tests.support.tiers import first

ort = pytest.importorskip("onnxruntime")

Tensors = list[NDArray[Any]]
MS = "com.microsoft"
DRAW = np.random.default_rng(0)


def floats(*shape: int) -> NDArray[np.float32]:
    return DRAW.random(shape, dtype=np.float32)


def small(*shape: int) -> NDArray[np.uint8]:
    return DRAW.integers(0, 9, shape, dtype=np.uint8)


SCALE, ZERO = np.array(0.1, np.float32), np.array(1, np.uint8)


class Runner:
    """Runs single nodes, and compares what they read, write and multiply with their cost."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "m.onnx"

    def __call__(
        self,
        op_type: str,
        inputs: list[NDArray[Any] | None],
        macs: Callable[[Tensors], int],
        outputs: int = 1,
        domain: str = MS,
        **attributes: Any,
    ) -> None:
        given = {f"x{at}": array for at, array in enumerate(inputs) if array is not None}
        names = [f"x{at}" if array is not None else "" for at, array in enumerate(inputs)]
        results = [f"y{at}" for at in range(outputs)]
        node = helper.make_node(op_type, names, results, domain=domain, **attributes)
        infos = [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
            )
            for name, array in given.items()
        ]
        graph = helper.make_graph(
            [node], "g", infos, [onnx.ValueInfoProto(name=name) for name in results]
        )
        opsets = [helper.make_opsetid("", 18), helper.make_opsetid(MS, 1)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), self.path)
        options = ort.SessionOptions()
        options.log_severity_level = 4
        session = ort.InferenceSession(str(self.path), options, providers=["CPUExecutionProvider"])
        tensors = session.run(None, given)
        document = Document.open(self.path)
        store_types(document, infer(onnx.load(self.path), extra_types=contrib_types).model)
        cost = ModelCosts(document).total
        read = sum(array.nbytes for array in given.values())
        written = sum(array.nbytes for array in tensors)
        assert (cost.macs, cost.read, cost.written) == (macs(tensors), read, written)


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


@pytest.mark.parametrize("seed", first(2, range(6)))
def test_attention(run: Runner, seed: int) -> None:
    dice = random.Random(seed)
    batch, rows, past = dice.randint(1, 3), dice.randint(1, 5), dice.randint(1, 4)
    heads, groups, width = dice.choice([2, 4]), dice.choice([1, 2]), dice.choice([8, 16])
    pairs = 2 * width * heads * batch

    def grouped(rows: int, past: int) -> None:
        key, cache = (batch, rows, groups * width), (batch, groups, past, width)
        caches = [floats(*cache), floats(*cache)] if past else [None, None]
        last = past + rows
        run(
            "GroupQueryAttention",
            [floats(batch, rows, heads * width), floats(*key), floats(*key), *caches,
             np.full((batch,), last - 1, np.int32), np.array(last, np.int32)],
            lambda made: pairs * rows * made[1].shape[2], 3, num_heads=heads, kv_num_heads=groups,
        )  # fmt: skip

    grouped(rows, 0)
    grouped(1, past)
    query, cache = (batch, rows, heads * width), (batch, heads, past, width)
    other = (batch, rows + 1, heads * width)
    run(
        "MultiHeadAttention", [floats(*query), floats(*other), floats(*other)],
        lambda _: pairs * rows * (rows + 1), num_heads=heads,
    )  # fmt: skip
    run(
        "MultiHeadAttention",
        [*(floats(*query) for _ in range(3)), None, None, None, floats(*cache), floats(*cache)],
        lambda made: pairs * rows * made[1].shape[2], 3, num_heads=heads,
    )  # fmt: skip
    hidden = heads * width
    made_of = batch * rows * 12
    x, weights, bias = floats(batch, rows, 12), floats(12, 3 * hidden), floats(3 * hidden)
    run(
        "Attention", [x, weights, bias, None, floats(2, *cache)],
        lambda made: made_of * 3 * hidden + pairs * rows * made[1].shape[3], 2, num_heads=heads,
    )  # fmt: skip
    sizes = [hidden, hidden, heads * 4]
    run(
        "Attention", [x, floats(12, sum(sizes)), floats(sum(sizes))],
        lambda _: made_of * sum(sizes) + batch * heads * rows * rows * (width + 4),
        num_heads=heads, qkv_hidden_sizes=sizes,
    )  # fmt: skip


@pytest.mark.parametrize("seed", first(2, range(6)))
def test_products(run: Runner, seed: int) -> None:
    dice = random.Random(seed)
    batch, rows = dice.randint(1, 3), dice.randint(1, 5)
    inner, columns = dice.choice([32, 48, 64]), dice.randint(1, 9)
    block, bits = dice.choice([16, 32]), dice.choice([4, 8])
    blocks = -(-inner // block)
    packed = np.zeros((columns, blocks, block * bits // 8), np.uint8)
    run(
        "MatMulNBits", [floats(batch, rows, inner), packed, floats(columns * blocks)],
        lambda made: made[0].size * inner, K=inner, N=columns, bits=bits, block_size=block,
    )  # fmt: skip
    read, made_of, group = dice.choice([2, 4]), dice.choice([2, 4]), dice.choice([1, 2])
    run(
        "QLinearConv",
        [small(batch, read, 7, 6), SCALE, ZERO, small(made_of, read // group, 3, 2), SCALE, ZERO,
         SCALE, ZERO, np.zeros(made_of, np.int32)],
        lambda made: made[0].size * (read // group) * 6, domain="", group=group, strides=[2, 1],
        pads=[1, 0, 1, 1], dilations=[1, 2],
    )  # fmt: skip
    run(
        "QLinearMatMul",
        [small(batch, rows, 5), SCALE, ZERO, small(5, 4), SCALE, ZERO, SCALE, ZERO],
        lambda made: made[0].size * 5, domain="",
    )  # fmt: skip
    run(
        "QLinearAdd", [small(1, 3), SCALE, ZERO, small(rows, 1), SCALE, ZERO, SCALE, ZERO],
        lambda _: 0,
    )  # fmt: skip
    run(
        "QGemm", [small(rows, 5), SCALE, ZERO, small(4, 5), SCALE, ZERO, None, SCALE, ZERO],
        lambda made: made[0].size * 5, transB=1,
    )  # fmt: skip
    for op_type, left in (("DynamicQuantizeMatMul", floats), ("MatMulIntegerToFloat", small)):
        more = [SCALE, ZERO] if left is floats else [SCALE, SCALE]
        run(op_type, [left(batch, rows, 5), small(5, 4), *more], lambda made: made[0].size * 5)
    run(
        "FusedMatMul", [floats(batch, 5, rows), floats(batch, 4, 5)],
        lambda made: made[0].size * 5, transA=1, transB=1, alpha=0.5,
    )  # fmt: skip
    run(
        "FusedConv", [floats(batch, read, 5, 5), floats(made_of, read, 3, 3), floats(made_of)],
        lambda made: made[0].size * read * 9, activation="Relu",
    )  # fmt: skip
    x, weights = floats(batch, read, 4, 5), floats(read, made_of // group, 3, 2)
    run(
        "ConvTranspose", [x, weights], lambda _: x.size * weights[0].size, domain="",
        group=group, strides=[2, 1], output_padding=[1, 0],
    )  # fmt: skip


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize(("op_type", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
def test_recurrent_layers(run: Runner, op_type: str, gates: int, direction: str) -> None:
    ways = 2 if direction == "bidirectional" else 1
    length, batch, size, hidden = 3, 2, 5, 4
    run(
        op_type,
        [floats(length, batch, size), floats(ways, gates * hidden, size),
         floats(ways, gates * hidden, hidden)],
        lambda made: made[0].size * gates * (size + hidden), domain="", hidden_size=hidden,
        direction=direction,
    )  # fmt: skip
