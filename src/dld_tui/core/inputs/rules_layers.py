"""Layers: convolutions, products, normalisations, recurrences and attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dld_tui.core.inputs.known import UNKNOWN, Attributes, Dims, Known, Number, Rule, lacks

if TYPE_CHECKING:
    from dld_tui.core.inputs.propagation import Propagation


def _same(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    return [Known(i[0].dims)] * a.outputs


def _window(
    p: Propagation, dims: Dims, kernel: Sequence[Number], a: Attributes, *, ceil: bool = False
) -> list[Number]:
    """Return the spatial sizes after a convolution or a pooling."""
    rank = len(kernel)
    strides = a.numbers("strides") or [1] * rank
    dilations = a.numbers("dilations") or [1] * rank
    pads = a.numbers("pads") or [0] * (2 * rank)
    how = a.text("auto_pad", "NOTSET")
    found: list[Number] = []
    for at, size in enumerate(dims):
        if size is None or kernel[at] is None:
            found.append(None)
            continue
        reach = (kernel[at] - 1) * dilations[at] + 1
        if how.startswith("SAME"):
            found.append(-(-size // strides[at]))
            continue
        padding = 0 if how == "VALID" else pads[at] + pads[at + rank]
        room = size + padding - reach
        p.require(room >= 0)
        found.append(-(-room // strides[at]) + 1 if ceil else room // strides[at] + 1)
    return found


def _conv(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    weight = i[3] if a.node.op_type == "QLinearConv" else i[1]
    dims, shape = i[0].dims, weight.dims
    if dims is None or shape is None:
        return [Known(None if shape is None else (None,) * len(shape))]
    channels = None if shape[1] is None else shape[1] * a.number("group", 1)
    p.equal(dims[1], channels)
    return [Known((dims[0], shape[0], *_window(p, dims[2:], shape[2:], a)))]


def _conv_transpose(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    dims, shape = i[0].dims, i[1].dims
    if dims is None or shape is None:
        return []
    p.equal(dims[1], shape[0])
    rank = len(shape) - 2
    strides = a.numbers("strides") or [1] * rank
    dilations = a.numbers("dilations") or [1] * rank
    pads = a.numbers("pads") or [0] * (2 * rank)
    extra = a.numbers("output_padding") or [0] * rank
    fixed = a.numbers("output_shape")
    how = a.text("auto_pad", "NOTSET")
    found: list[Number] = []
    for at, size in enumerate(dims[2:]):
        if fixed:
            found.append(fixed[at] if len(fixed) == rank else fixed[at + 2])
        elif size is None or shape[at + 2] is None:
            found.append(None)
        elif how.startswith("SAME"):
            found.append(size * strides[at])
        else:
            reach = (shape[at + 2] - 1) * dilations[at] + 1
            padding = 0 if how == "VALID" else pads[at] + pads[at + rank]
            found.append(strides[at] * (size - 1) + extra[at] + reach - padding)
    channels = None if shape[1] is None else shape[1] * a.number("group", 1)
    return [Known((dims[0], channels, *found))]


def _pool(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    dims, kernel = i[0].dims, a.numbers("kernel_shape")
    if dims is None or kernel is None:
        return []
    ceil = bool(a.number("ceil_mode", 0))
    return [Known((*dims[:2], *_window(p, dims[2:], kernel, a, ceil=ceil)))] * a.outputs


def _global_pool(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    dims = i[0].dims
    return [Known(None if dims is None else (*dims[:2], *(1 for _ in dims[2:])))]


def _resize(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    dims = i[0].dims
    if dims is None:
        return []
    axes = [axis % len(dims) for axis in a.numbers("axes") or range(len(dims))]
    sizes = i[3].values() if len(i) > 3 else None
    scales_at = 1 if len(i) == 2 else 2
    scales = i[scales_at].values() if len(i) > scales_at else None
    if not scales:
        proto = a.proto("scales")
        scales = tuple(proto.floats) if proto is not None else None
    found = list(dims)
    for at, axis in enumerate(axes):
        if sizes:
            found[axis] = sizes[at]
        elif scales and dims[axis] is not None and scales[at] is not None:
            scaled = np.floor(dims[axis] * np.float64(scales[at]) + 1e-6)
            found[axis] = scaled.astype(np.int64) if scaled.ndim else int(scaled)
        else:
            found[axis] = None
        if found[axis] is not None:
            p.require(found[axis] >= 1)
    return [Known(tuple(found))]


def _matmul(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    other = i[3] if a.node.op_type == "QLinearMatMul" else i[1]
    one, two = i[0].dims, other.dims
    if not one or not two:
        return []
    p.equal(one[-1], two[-2] if len(two) > 1 else two[0])
    head = p.broadcast(one[:-2], two[:-2]) or ()
    left = one[-2:-1]
    right = two[-1:] if len(two) > 1 else ()
    return [Known((*head, *left, *right))]


def _gemm(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    one, two = i[0].dims, i[1].dims
    if one is None or two is None or len(one) != 2 or len(two) != 2:
        return []
    one = one[::-1] if a.number("transA", 0) else one
    two = two[::-1] if a.number("transB", 0) else two
    p.equal(one[1], two[0])
    return [Known((one[0], two[1]))]


def _matmul_bits(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    dims = i[0].dims
    if not dims:
        return []
    p.equal(dims[-1], a.number("K", 0) or None)
    return [Known((*dims[:-1], a.number("N", 0) or None))]


def _normalised(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    dims = i[0].dims
    axis = a.number("axis", -1)
    if dims and len(i) > 1 and i[1].dims and len(i[1].dims) == 1 and axis in (-1, len(dims) - 1):
        p.equal(dims[-1], i[1].dims[0])
    return [Known(dims)]


def _skip_normalised(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    dims = p.broadcast(i[0].dims, i[1].dims)
    return [Known(dims), UNKNOWN, UNKNOWN, Known(dims)]


def _channel_normalised(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    dims = i[0].dims
    if dims is not None and len(dims) > 1 and len(i) > 1 and i[1].dims:
        p.equal(dims[1], i[1].dims[0])
    return [Known(dims)]


def _recurrent(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    dims, weights, recurrence = i[0].dims, i[1].dims, i[2].dims
    if dims is None or weights is None or recurrence is None:
        return []
    is_quantised = a.node.op_type.startswith("DynamicQuantize")
    p.equal(dims[2], weights[1 if is_quantised else 2])
    directions, hidden = weights[0], recurrence[1 if is_quantised else 2]
    batch_first = a.number("layout", 0)
    length, batch = (dims[1], dims[0]) if batch_first else (dims[0], dims[1])
    state: Dims = (batch, directions, hidden) if batch_first else (directions, batch, hidden)
    for at in (5, 6):
        given = i[at].dims if len(i) > at else None
        if given is not None and len(given) == 3:
            for one, other in zip(given, state, strict=True):
                p.equal(one, other)
    whole: Dims = ((batch, length, directions, hidden) if batch_first
                   else (length, directions, batch, hidden))  # fmt: skip
    return [Known(whole), Known(state), Known(state)]


def _region_align(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    data, rois = i[0].dims, i[1].dims
    if data is None or rois is None:
        return []
    p.bound(i[2], data[0])
    if i[2].dims:
        p.equal(rois[0], i[2].dims[0])
    size = (a.number("output_height", 1), a.number("output_width", 1))
    return [Known((rois[0], data[1], *size))]


def _embedded(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    """EmbedLayerNormalization: ids, segments, then the tables of words, positions, segments."""
    ids, words = i[0].dims, i[2].dims
    for index, table in ((0, 2), (1, 4), (8, 3)):
        if len(i) > max(index, table) and i[table].dims:
            p.bound(i[index], i[table].dims[0])  # type: ignore[index]
    if ids is None or words is None or len(ids) != 2:
        return []
    if i[3].dims and ids[1] is not None and i[3].dims[0] is not None:
        p.require(ids[1] <= i[3].dims[0])
    return [Known((*ids, words[1])), Known((ids[0],))]


def _grouped_attention(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    """GroupQueryAttention: query, key, value, past key and value, lengths, total, cos and sin."""
    query = i[0].dims
    past = i[3].dims if len(i) > 3 else None
    values = i[6].values() if len(i) > 6 else None
    total = values[0] if values else None
    length = query[1] if query is not None and len(query) == 3 else None
    if past is not None and len(past) == 4:
        if not lacks((total, length, past[2])):
            p.require(total == length + past[2])
        if query is not None:
            p.equal(query[0], past[0])
    rows = i[7].dims[0] if len(i) > 7 and i[7].dims else None
    if rows is not None and total is not None:
        p.require(total <= rows)
    present = None if past is None or len(past) != 4 else (*past[:2], total, past[3])
    width = None
    if query is not None and i[1].dims is not None and i[1] is not UNKNOWN:
        width = query[2] if len(query) == 3 else None
    out = None if query is None else (*query[:2], width)
    return [Known(out), Known(present), Known(present)]


def _attention(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    """Attention of ai.onnx: query, key, value, mask, past key and value; 3 or 4 dimensions."""
    if a.node.domain:
        return []
    query, key, value = (one.dims for one in i[:3])
    if query is None or key is None or value is None:
        return []
    at = 1 if len(query) == 3 else 2
    p.equal(query[0], key[0])
    p.equal(key[at], value[at])
    total = key[at]
    past = i[4].dims if len(i) > 4 else None
    if past is not None and len(past) == 4:
        p.equal(query[0], past[0])
        both = (total, past[2])
        total = None if lacks(both) else both[0] + both[1]
    mask = i[3].dims if len(i) > 3 else None
    if mask:
        p.joined(mask[-1], total)
        if len(mask) > 1:
            p.joined(mask[-2], query[at])
    heads, own = a.number("q_num_heads", 0), a.number("kv_num_heads", 0)
    width = value[-1]
    if len(query) == 3 and width is not None and own:
        width = heads * (width // own)
    present = None if past is None else (*past[:2], total, past[3])
    return [Known((*query[:-1], width)), Known(present), Known(present)]


def _rotary(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    index, table = (i[1], i[2]) if a.node.domain else (i[3] if len(i) > 3 else UNKNOWN, i[1])
    if table.dims and len(table.dims) == 2:
        p.bound(index, table.dims[0])
    return [Known(i[0].dims)]


def _dynamic_quantize(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    return [Known(i[0].dims), Known(()), Known(())]


_ONE_TO_ONE = (
    "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitwiseNot", "CastLike", "Celu", "Clip",
    "Cos", "Cosh", "DequantizeLinear", "Dropout", "Elu", "Erf", "Exp", "FastGelu", "Gelu",
    "GroupNormalization", "HardSigmoid", "HardSwish", "Hardmax", "IsInf", "IsNaN", "LRN",
    "LeakyRelu", "Log", "LogSoftmax", "LpNormalization", "MeanVarianceNormalization", "Mish",
    "QuantizeLinear", "QuickGelu", "Reciprocal", "Relu", "ReverseSequence", "Scatter",
    "ScatterElements", "ScatterND", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh",
    "Softmax", "Softplus", "Softsign", "Swish", "Tan", "Tanh", "ThresholdedRelu", "Trilu",
)  # fmt: skip
"""Operators whose results have the shape of the first input."""

LAYER_RULES: dict[str, Rule] = {
    "Conv": _conv, "ConvInteger": _conv, "QLinearConv": _conv, "FusedConv": _conv,
    "ConvTranspose": _conv_transpose, "MaxPool": _pool, "AveragePool": _pool, "LpPool": _pool,
    "Resize": _resize, "Upsample": _resize, "MatMul": _matmul, "MatMulInteger": _matmul,
    "QLinearMatMul": _matmul, "DynamicQuantizeMatMul": _matmul, "Gemm": _gemm,
    "MatMulNBits": _matmul_bits, "LSTM": _recurrent, "GRU": _recurrent, "RNN": _recurrent,
    "DynamicQuantizeLSTM": _recurrent, "RoiAlign": _region_align,
    "LayerNormalization": _normalised, "RMSNormalization": _normalised,
    "SimplifiedLayerNormalization": _normalised, "SkipLayerNormalization": _skip_normalised,
    "SkipSimplifiedLayerNormalization": _skip_normalised,
    "BatchNormalization": _channel_normalised, "InstanceNormalization": _channel_normalised,
    "EmbedLayerNormalization": _embedded, "GroupQueryAttention": _grouped_attention,
    "Attention": _attention, "RotaryEmbedding": _rotary,
    "DynamicQuantizeLinear": _dynamic_quantize,
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"), _global_pool),
    **dict.fromkeys(_ONE_TO_ONE, _same),
}  # fmt: skip
"""By operator, whatever its domain is."""
