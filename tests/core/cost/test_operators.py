"""What operators compute, against counters that do the work one product after the other."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from dld_tui.core.cost.counts import symbol
from dld_tui.core.cost.operators import PRODUCTS, Call, operator, work

MS = "com.microsoft"


def macs(
    op_type: str,
    inputs: Sequence[Any],
    outputs: Sequence[Any] = ((),),
    domain: str = "",
    **attributes: Any,
) -> Any:
    return work(PRODUCTS[op_type], Call(domain, op_type, inputs, outputs, attributes.get))[0]


def slow_convolution(
    x: tuple[int, ...], w: tuple[int, ...], strides: int, pad: int, groups: int
) -> tuple[int, tuple[int, ...]]:
    """Count a convolution's products, those with padding, too, and return its shape."""
    sides = [(size + 2 * pad - k) // strides + 1 for size, k in zip(x[2:], w[2:], strict=True)]
    count = 0
    for _ in range(x[0]):
        for _ in range(w[0]):
            for _ in itertools.product(*map(range, sides)):
                for _ in range(x[1] // groups):
                    for _ in itertools.product(*map(range, w[2:])):
                        count += 1
    return count, (x[0], w[0], *sides)


@pytest.mark.parametrize(
    ("x", "w", "strides", "pad", "groups"),
    [
        ((1, 3, 7, 5), (4, 3, 3, 3), 1, 1, 1),
        ((2, 4, 6, 6), (6, 2, 3, 2), 2, 0, 2),
        ((1, 4, 9), (4, 1, 3), 1, 1, 4),
        ((1, 2, 3, 3, 3), (2, 2, 2, 2, 2), 1, 0, 1),
    ],
)
def test_convolutions(
    x: tuple[int, ...], w: tuple[int, ...], strides: int, pad: int, groups: int
) -> None:
    count, made = slow_convolution(x, w, strides, pad, groups)
    assert macs("Conv", [x, w], [made]) == count
    assert macs("QLinearConv", [x, (), (), w], [made]) == count
    assert macs("FusedConv", [x, w], [made], MS) == count


def test_a_transposed_convolution_spreads_each_element_that_is_read() -> None:
    x, w = (1, 3, 4, 4), (3, 2, 3, 3)
    count = sum(1 for _ in itertools.product(*map(range, x), *map(range, w[1:])))
    assert macs("ConvTranspose", [x, w], [(1, 2, 9, 9)]) == count


@pytest.mark.parametrize(
    ("a", "b"), [((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((5, 2, 3), (5, 3, 4)), ((3,), (3, 4))]
)
def test_products(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    made = np.matmul(np.zeros(a), np.zeros(b)).shape
    count = sum(1 for _ in itertools.product(*map(range, made), range(a[-1])))
    assert macs("MatMul", [a, b], [made]) == count
    assert macs("MatMulInteger", [a, b], [made]) == count
    assert macs("QLinearMatMul", [a, (), (), b, (), ()], [made]) == count
    if len(b) == 2:
        assert macs("MatMul", [a, b], [None]) == count
        assert macs("MatMulNBits", [a, (b[1], 1, 16)], [None], MS, N=b[1], K=b[0]) == count


def test_gemm_of_transposed_operands() -> None:
    assert macs("Gemm", [(2, 3), (3, 4)]) == 24
    assert macs("Gemm", [(3, 2), (4, 3)], transA=1, transB=1) == 24
    assert macs("FusedMatMul", [(3, 2), (3, 4)], [(2, 4)], MS, transA=1) == 24


@pytest.mark.parametrize(
    "equation",
    ["ij,jk->ik", "bij,bjk->bik", "ij,jk,kl->il", "i,i->", "bhid,bhjd->bhij", "ij,jk", "i,j->ij"],
)
def test_einsum_from_left_to_right(equation: str) -> None:
    sizes = dict(zip("bdhijkl", (2, 3, 2, 4, 5, 3, 2), strict=True))
    left = equation.partition("->")[0].split(",")
    operands = [np.zeros([sizes[letter] for letter in part]) for part in left]
    about = {"equation": equation.encode()}
    call = Call("", "Einsum", [one.shape for one in operands], [], about.get)
    products, others = work(PRODUCTS["Einsum"], call)
    assert isinstance(products, int)
    assert isinstance(others, int)
    # numpy's own account of contracting in the same order; a product that is summed is two.
    path = ["einsum_path", *[(0, 1)] * (len(left) - 1)]
    told = np.einsum_path(equation, *operands, optimize=path)[1]
    flops = next(line for line in told.splitlines() if "Optimized FLOP" in line)
    assert 2 * products + others + 1 == float(flops.rpartition(":")[2])  # it adds one


@pytest.mark.parametrize("ways", [1, 2])
def test_recurrent_layers(ways: int) -> None:
    length, batch, size, hidden = 3, 2, 4, 5
    for op_type, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        count = 0
        for _ in itertools.product(range(ways), range(length), range(batch), range(gates)):
            count += hidden * size + hidden * hidden  # of the input, of the state
        found = macs(
            op_type, [(length, batch, size)], hidden_size=hidden,
            direction=b"bidirectional" if ways == 2 else b"forward",
        )  # fmt: skip
        assert found == count


def slow_attention(batch: int, heads: int, rows: int, seen: int, width: int, deep: int) -> int:
    count = 0
    for _ in itertools.product(range(batch), range(heads), range(rows), range(seen)):
        count += width + deep  # query times key; the weight times the value
    return count


def test_attention_in_all_its_spellings() -> None:
    batch, heads, rows, width, past = 2, 3, 4, 5, 6
    all_heads = (batch, rows, heads * width)
    cache = (batch, heads, past, width)
    plain = slow_attention(batch, heads, rows, rows, width, width)
    longer = slow_attention(batch, heads, rows, rows + past, width, width)
    four = (batch, heads, rows, width)
    assert macs("Attention", [four] * 3) == plain
    assert macs("Attention", [all_heads] * 3, q_num_heads=heads, kv_num_heads=heads) == plain
    assert macs("Attention", [four] * 3 + [None, cache, cache]) == longer
    assert macs("MultiHeadAttention", [all_heads] * 3, domain=MS, num_heads=heads) == plain
    packed = (batch, rows, heads, 3, width)
    assert macs("MultiHeadAttention", [packed], domain=MS, num_heads=heads) == plain
    joined = macs(
        "Attention", [(batch, rows, 7), (7, 3 * heads * width)], domain=MS, num_heads=heads
    )
    assert joined == plain + batch * rows * 7 * 3 * heads * width


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("k", [1, 2])
def test_experts_multiply_by_their_weights_packed_or_not(bits: int, k: int) -> None:
    batch, rows, hidden, inner, experts = 2, 3, 16, 24, 4
    count = 0
    for _ in range(batch * rows):
        for _ in range(k):  # experts that a token goes through
            first = np.ones(hidden) @ np.ones((hidden, 2 * inner))  # gate and value in one
            second = np.ones(inner) @ np.ones((inner, hidden))
            count += int(first.sum() + second.sum())  # each sum of ones counts its products
    x, router = (batch, rows, hidden), (batch * rows, experts)
    wide, back = (experts, 2 * inner), (experts, hidden)
    plain = [x, router, (*wide, hidden), None, (*back, inner)]
    assert macs("MoE", plain, domain=MS, k=k) == count
    packed = [
        x, router, (*wide, hidden * bits // 8), wide, None, (*back, inner * bits // 8), back,
    ]  # fmt: skip
    assert macs("QMoE", packed, domain=MS, k=k, expert_weight_bits=bits) == count
    other: dict[str, Any] = {"fc1_expert_weight_bits": bits, "fc2_expert_weight_bits": bits}
    assert macs("QMoE", packed, domain=MS, k=k, **other) == count
    if bits == 4:
        assert macs("QMoE", packed, domain=MS, k=k) == count


def test_grouped_queries_share_keys_and_values() -> None:
    batch, heads, groups, rows, width, past = 1, 4, 2, 3, 8, 5
    query, key = (batch, rows, heads * width), (batch, rows, groups * width)
    cache = (batch, groups, past, width)
    about: dict[str, Any] = {"domain": MS, "num_heads": heads, "kv_num_heads": groups}
    longer = slow_attention(batch, heads, rows, rows + past, width, width)
    assert macs("GroupQueryAttention", [query, key, key, cache, cache], **about) == longer
    packed = (batch, rows, (heads + 2 * groups) * width)
    assert macs("GroupQueryAttention", [packed, None, None, cache, cache], **about) == longer
    shared = (batch, groups, 32, width)  # a buffer for the longest sequence
    made = [query, shared, shared]
    whole = slow_attention(batch, heads, rows, 32, width, width)
    assert macs("GroupQueryAttention", [query, key, key, shared, shared], made, **about) == whole
    window = macs(
        "GroupQueryAttention", [query, key, key, shared, shared], made, **about, local_window_size=8
    )
    assert window == slow_attention(batch, heads, rows, 8, width, width)


def test_symbolic_dimensions_stay() -> None:
    n, s = symbol("N"), symbol("S")
    assert str(macs("MatMul", [(n, s, 64), (64, 256)], [(n, s, 256)])) == "16384·N·S"
    assert str(macs("Attention", [(n, 8, s, 64)] * 3)) == "1024·N·S²"


def test_what_is_malformed_or_unknown_is_not_known() -> None:
    assert macs("Conv", [(1, 3, 4, 4)], [(1, 4, 4, 4)]) is None
    assert macs("Gemm", [(1, 3, 4), (3, 4)]) is None
    assert macs("Attention", [(1, 3, 12)] * 3) is None
    assert not operator("org.example", "Conv").is_known
    assert not operator(MS, "NobodyKnowsThis").is_known
    assert operator("", "Relu").per_output == 1
