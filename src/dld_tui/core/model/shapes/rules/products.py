"""Matrix products, normalisations and recurrent layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dld_tui.core.model.operators.einsum import einsum_labels
from dld_tui.core.model.shapes.call import Call
from dld_tui.core.model.shapes.rules.elementwise import of_sizes
from dld_tui.core.model.shapes.size import UNKNOWN, Size
from dld_tui.core.model.shapes.value import NOTHING, Dims, Value

_INNER = "the inner dimensions of a product are equal"
_STATE = "the first state has directions, batch and hidden size"
_SECOND = {"QLinearMatMul": 3, "QGemm": 3}
"""The place of the second factor, after a scale and a zero point."""


def _matmul(c: Call) -> Sequence[Value]:
    return [Value(_product(c, c.dims(0), c.dims(_SECOND.get(c.operator, 1))))]


def _product(c: Call, left: Dims | None, right: Dims | None) -> Dims | None:
    if not left or not right:
        return None
    c.demands.equal(left[-1], right[-2] if len(right) > 1 else right[0], _INNER)
    head = c.demands.broadcast(left[:-2], right[:-2]) or ()
    return (*head, *left[-2:-1], *(right[-1:] if len(right) > 1 else ()))


def _fused_matmul(c: Call) -> Sequence[Value]:
    """FusedMatMul: a product of matrices that may be transposed, with or without the batches."""
    left, right = (
        _turned(c.dims(at), c.number(f"trans{which}", 0), c.number(f"transBatch{which}", 0))
        for at, which in enumerate("AB")
    )
    return [Value(_product(c, left, right))]


def _turned(dims: Dims | None, matrix: int, batches: int) -> Dims | None:
    if dims is None or len(dims) < 2:
        return dims
    if batches:  # the batches are behind the first dimension of the matrix
        dims = (*dims[1:-1], dims[0], dims[-1])
    return (*dims[:-2], dims[-1], dims[-2]) if matrix else dims


def _gemm(c: Call) -> Sequence[Value]:
    left, right = c.dims(0), c.dims(_SECOND.get(c.operator, 1))
    rows: Size = UNKNOWN
    columns: Size = UNKNOWN
    inner: list[Size] = []
    if left is not None and len(left) == 2:
        rows, across = left[::-1] if c.number("transA", 0) else left
        inner.append(across)
    if right is not None and len(right) == 2:
        down, columns = right[::-1] if c.number("transB", 0) else right
        inner.append(down)
    if len(inner) == 2:
        c.demands.equal(inner[0], inner[1], _INNER)
    return [Value((rows, columns))]


def _matmul_bits(c: Call) -> Sequence[Value]:
    """Products with packed weights, whose sizes are the attributes K and N."""
    dims = c.dims()
    if not dims:
        return [NOTHING]
    c.demands.equal(dims[-1], c.number("K", 0) or UNKNOWN, _INNER)
    return [Value((*dims[:-1], c.number("N", 0) or UNKNOWN))]


def _matmul_shaped(c: Call) -> Sequence[Value]:
    """MatMulFpQ4: the shape of the packed factor is an input."""
    return [Value(_product(c, c.dims(0), of_sizes(c, 2)))]


def _distances(c: Call) -> Sequence[Value]:
    left, right = c.dims(0), c.dims(1)
    rows = left[0] if left and len(left) == 2 else UNKNOWN
    return [Value((rows, right[0] if right and len(right) == 2 else UNKNOWN))]


def _einsum(c: Call) -> Sequence[Value]:
    shapes = [known.dims for known in c.inputs if known.dims is not None]
    if len(shapes) < len(c.inputs):
        return [NOTHING]
    terms, output = einsum_labels(c.text("equation", ""), [*map(len, shapes)])
    sizes: dict[str, Size] = {}
    for labels, dims in zip(terms, shapes, strict=True):
        for label, size in zip(labels, dims, strict=True):
            sizes[label] = c.demands.joined(sizes.get(label, 1), size)
    return [Value(tuple(sizes[label] for label in output))]


def _matrices(c: Call) -> Sequence[Value]:
    dims = c.dims()
    return [Value(None if dims is None else dims[:-2])]


def _layer_norm(c: Call) -> Sequence[Value]:
    dims, scale, axis = c.dims(0), c.dims(1), c.number("axis", -1)
    if dims is None:
        return [NOTHING] * c.outputs
    at = axis % len(dims) if dims else 0
    if scale and len(scale) == 1 and at == len(dims) - 1:
        c.demands.equal(dims[-1], scale[0], "the scale is as long as the axis")
    reduced = Value((*dims[:at], *(1,) * (len(dims) - at)))
    return [Value(dims), *[reduced] * (c.outputs - 1)]


def _skip_layer_norm(c: Call) -> Sequence[Value]:
    dims, skip = c.dims(0), c.dims(1)
    if dims is not None and skip is not None:
        c.demands.broadcast(dims, skip)
    return [Value(dims), NOTHING, NOTHING, Value(dims)]


def _channel_norm(c: Call) -> Sequence[Value]:
    dims, scale = c.dims(0), c.dims(1)
    if dims is not None and len(dims) > 1 and scale:
        c.demands.equal(dims[1], scale[0], "there is one scale for each channel")
    return [Value(dims), *[Value(scale)] * (c.outputs - 1)]


_SCALE_OF_CHANNEL = 21
"""The opset from which on GroupNormalization has scales of channels; before, of groups."""


def _group_norm(c: Call) -> Sequence[Value]:
    dims, scale = c.dims(0), c.dims(1)
    if dims is not None and len(dims) > 1 and scale and c.version:
        groups = c.number("num_groups", 1)
        if c.version >= _SCALE_OF_CHANNEL:
            c.demands.equal(dims[1], scale[0], "there is one scale for each channel")
        else:
            c.demands.equal(groups, scale[0], "before opset 21 there is one scale for each group")
    return [Value(dims)]


def _embedded(c: Call) -> Sequence[Value]:
    """EmbedLayerNormalization: ids, segments, then the tables of words, positions, segments."""
    ids, words, places = c.dims(0), c.dims(2), c.dims(3)
    is_plain = c.operator == "EmbedLayerNormalization"
    for index, table in ((0, 2), (1, 4), (8, 3)) if is_plain else ((0, 2),):
        rows = c.dims(table)
        if rows:
            c.demands.bound(c.input(index), rows[0])
    if ids is None or len(ids) != 2:
        return [NOTHING, NOTHING, NOTHING]
    if places:
        c.demands.at_least(places[0], ids[1], "there is a position for each token")
    whole = Value((*ids, words[1] if words is not None and len(words) == 2 else UNKNOWN))
    return [whole, Value((ids[0],)), whole]


def _recurrent(c: Call) -> Sequence[Value]:
    dims, weights, recurrence = c.dims(0), c.dims(1), c.dims(2)
    is_quantised = c.operator.startswith("DynamicQuantize")
    at = 1 if is_quantised else 2
    directions: Size = 2 if c.text("direction", "forward") == "bidirectional" else 1
    hidden: Size = c.number("hidden_size", 0) or UNKNOWN
    if recurrence is not None and len(recurrence) == 3:
        hidden = recurrence[at] if hidden is UNKNOWN else hidden
        c.demands.equal(hidden, recurrence[at], "the recurrence weights have the hidden size")
    length: Size = UNKNOWN
    batch: Size = UNKNOWN
    batch_first = c.number("layout", 0)
    if dims is not None and len(dims) == 3:
        length, batch = (dims[1], dims[0]) if batch_first else (dims[0], dims[1])
        if weights is not None and len(weights) == 3:
            c.demands.equal(dims[2], weights[at], "the weights have the features of the data")
    state: Dims = (batch, directions, hidden) if batch_first else (directions, batch, hidden)
    states = (5, 6) if "LSTM" in c.operator or c.operator == "" else (5,)
    for place in states:
        given = c.dims(place)
        if given is not None and len(given) == 3:
            for size, wanted in zip(given, state, strict=True):
                c.demands.equal(size, wanted, _STATE)
    whole: Dims = ((batch, length, directions, hidden) if batch_first
                   else (length, directions, batch, hidden))  # fmt: skip
    return [Value(whole), Value(state), Value(state)]


STANDARD: dict[str, Callable[[Call], Sequence[Value]]] = {
    **dict.fromkeys(("MatMul", "MatMulInteger", "QLinearMatMul"), _matmul),
    "Gemm": _gemm, "Einsum": _einsum, "Det": _matrices,
    **dict.fromkeys(("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization"),
                    _layer_norm),
    "GroupNormalization": _group_norm,
    "BatchNormalization": _channel_norm, "InstanceNormalization": _channel_norm,
    **dict.fromkeys(("LSTM", "GRU", "RNN"), _recurrent),
}  # fmt: skip
"""By operator of ai.onnx."""


def _mixed(c: Call) -> Sequence[Value]:
    """HyperConnectionPreMix: streams become one, whether they stand in an axis or in one row."""
    dims, branches = c.dims(), c.number("num_branches", 0)
    if not dims:
        return [NOTHING]
    if branches > 1 and not np.array_equal(dims[-2] if len(dims) > 1 else 0, branches):
        return [Value((*dims[:-1], dims[-1] // branches))]
    return [NOTHING if branches > 1 else Value((*dims[:-2], dims[-1]))]


CONTRIB: dict[str, Callable[[Call], Sequence[Value]]] = {
    **dict.fromkeys(("DynamicQuantizeMatMul", "MatMulIntegerToFloat", "MatMulInteger16",
                     "SparseToDenseMatMul"), _matmul),
    "FusedMatMul": _fused_matmul, "TransposeMatMul": _fused_matmul,
    "FusedGemm": _gemm, "QGemm": _gemm, "MatMulNBits": _matmul_bits, "MatMulBnb4": _matmul_bits,
    "MatMulFpQ4": _matmul_shaped, "CDist": _distances,
    **dict.fromkeys(("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"),
                    _skip_layer_norm),
    "EmbedLayerNormalization": _embedded, "QEmbedLayerNormalization": _embedded,
    "DynamicQuantizeLSTM": _recurrent, "AttnLSTM": _recurrent,
    "HyperConnectionPreMix": _mixed,
}  # fmt: skip
"""By operator of com.microsoft."""
