"""The work of one call of an operator, from its shapes and attributes.

Multiply-accumulates are those of convolutions, matrix products, attention and recurrent layers.
Everything else is counted in operations: an addition, a comparison, a square root and an ``exp``
are one each, and moving data is none. So FLOPs are twice the multiply-accumulates plus the
operations. Attention counts all pairs of its positions, whether a mask excludes some or not, as
is usual.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

from dld_tui.core.dataclass import dataclass
from dld_tui.core.files import protos as onnx
from dld_tui.core.model.cost.attention import (
    SOFTMAX,
    attention,
    decoder_attention,
    flexible_attention,
    grouped_query_attention,
    linear_attention,
    multi_head_attention,
    packed_attention,
    packed_multi_head_attention,
)
from dld_tui.core.model.cost.call_shapes import (
    Shape,
    UnknownShape,
    Work,
    elements,
    shape_in,
    shape_out,
    whole,
)
from dld_tui.core.model.operators.categories import VIEWS
from dld_tui.core.model.operators.einsum import einsum_labels
from dld_tui.core.model.shapes.call import Call
from dld_tui.core.model.shapes.size import Count, number_of


def _integer(call: Call, at: int) -> int:
    """Return an input that is one constant integer.

    Raises:
        UnknownShape: It is not known before a run.
    """
    number = number_of(call.element(at))
    if number is None:
        raise UnknownShape
    return int(number)


def _activation(call: Call) -> int:
    """Return the operations per element of the activation that is fused into a node."""
    name = call.text("activation", "")
    return _FUSED.get(name.lower(), 0) or _PER_OUTPUT.get(name, 0)


def _convolution(weights: int, *added: int) -> Callable[[Call], Work]:
    """Return the rule of convolutions.

    Args:
        weights: The index of that input.
        added: Those of the bias and of a fused residual.
    """

    def rule(call: Call) -> Work:
        count = elements(shape_out(call))
        macs = count * elements(shape_in(call, weights)[1:])
        return macs, count * (sum(map(call.has, added)) + _activation(call))

    return rule


def _transposed(bias: int, weights: int = 1) -> Callable[[Call], Work]:
    def rule(call: Call) -> Work:
        macs = elements(shape_in(call, 0)) * elements(shape_in(call, weights)[1:])
        return macs, elements(shape_out(call)) if call.has(bias) else 0

    return rule


_LINEAR_2D = 7
"""Operations of an interpolation between four values: four products, three sums."""


def _deformed(call: Call) -> Work:
    output, weights = shape_out(call), shape_in(call, 1)
    macs = elements(output) * elements(weights[1:])
    # Each channel is interpolated at each position of the kernel, and masked.
    samples = output[0] * elements(output[2:]) * shape_in(call, 0)[1] * elements(weights[2:])
    bias = elements(output) if call.has(3) else 0
    return macs, samples * (_LINEAR_2D + (1 if call.has(4) else 0)) + bias


def _scaled(call: Call) -> int:
    """Return the operations per result of a factor ``alpha`` and a fused activation."""
    alpha = call.attribute("alpha")
    return (alpha is not None and alpha.f != 1) + _activation(call)


def _product(
    first: int, second: int, per_result: Callable[[Call], int] = _scaled
) -> Callable[[Call], Work]:
    """Return the rule of matrix products.

    Args:
        first: The index of the left factor.
        second: That of the right one.
        per_result: Returns the further operations per element of the result.
    """

    def rule(call: Call) -> Work:
        left = shape_in(call, first)
        turned = call.number("transA", 0) and len(left) > 1
        # With transBatchA, the batch dimension is between the two dimensions of the product.
        at = (0 if call.number("transBatchA", 0) else len(left) - 2) if turned else len(left) - 1
        inner = left[at]
        if call.results and call.results[0].is_known:
            results = elements(shape_out(call))
            return results * inner, results * per_result(call)
        other = shape_in(call, second)
        if len(other) > 2:
            raise UnknownShape
        columns = 1 if len(other) < 2 else other[-2 if call.number("transB", 0) else -1]
        results = elements((*left[:at], *left[at + 1 :])) * columns
        return results * inner, results * per_result(call)

    return rule


def _gemm(first: int, second: int, bias: int) -> Callable[[Call], Work]:
    def rule(call: Call) -> Work:
        rows, inner = shape_in(call, first)[:: -1 if call.number("transA", 0) else 1]
        columns = shape_in(call, second)[0 if call.number("transB", 0) else 1]
        results = rows * columns
        return results * inner, results * (call.has(bias) + _scaled(call))

    return rule


def _by_columns(columns: Mapping[str, int]) -> Callable[[Call], Work]:
    """Return the rule of products whose weights are packed.

    Args:
        columns: The index of the bias by the name of the attribute that is its length.
    """

    def rule(call: Call) -> Work:
        data = shape_in(call, 0)
        biases = sum(call.number(name, 0) for name, bias in columns.items() if call.has(bias))
        results = sum(call.number(name, 0) for name in columns)
        return elements(data) * results, elements(data[:-1]) * biases

    return rule


def _packed_attention_input(call: Call) -> Work:
    """Return the work of MatMulNBitsQkv: a normalisation, and three products."""
    data, query, other = shape_in(call, 0), call.number("Nq", 0), call.number("Nkv", 0)
    biases = query * call.has(5) + other * (call.has(8) + call.has(11))
    operations = elements(data) * _normalised(call) + elements(data[:-1]) * biases
    return elements(data) * (query + 2 * other), operations


def _packed_gate(call: Call) -> Work:
    """Return the work of MatMulNBitsMlp: a normalisation, two products, ``silu(gate) * up``."""
    data, columns = shape_in(call, 0), call.number("N", 0)
    per_column = call.has(5) + call.has(8) + _activation(call) + 1
    operations = elements(data) * _normalised(call) + elements(data[:-1]) * (columns * per_column)
    return elements(data) * 2 * columns, operations


def _normalised(call: Call) -> int:
    """Return the operations per element of a residual and an RMS normalisation before a product."""
    return call.has(1) + 4 * call.has(2)


def _by_output(call: Call) -> Work:
    """Return the work of a product with packed weights, from its output."""
    return elements(shape_out(call)) * shape_in(call, 0)[-1], 0


def _sampling_grid(call: Call) -> Work:
    return elements(shape_out(call)) * shape_in(call, 0)[-1], 0


def _distances(call: Call) -> Work:
    rows, width = shape_in(call, 0)
    return rows * shape_in(call, 1)[0] * width, 0


def _linear_model(call: Call) -> Work:
    """Return the work of a linear model, whose weights are an attribute."""
    rows = elements(shape_in(call, 0)[:-1])
    weights, biases = call.attribute("coefficients"), call.attribute("intercepts")
    if weights is None:
        raise UnknownShape
    return rows * len(weights.floats), rows * (0 if biases is None else len(biases.floats))


def _cubed(numerator: int, denominator: int) -> Callable[[Call], Work]:
    """Return the rule of an elimination in square matrices, such as a determinant."""

    def rule(call: Call) -> Work:
        shape = shape_in(call, 0)
        return 0, elements(shape[:-2]) * round(numerator * whole(shape[-1]) ** 3 / denominator)

    return rule


def _einsum_sizes(call: Call) -> tuple[list[list[str]], list[str], dict[str, Count]]:
    """Return the labels of an Einsum's inputs and of its output, and their sizes.

    Raises:
        UnknownShape: That of an input is not known.
        ValueError: The equation does not fit.
    """
    shapes = [shape_in(call, at) for at in range(len(call.inputs))]
    inputs, output = einsum_labels(call.text("equation", ""), [*map(len, shapes)])
    sizes: dict[str, Count] = {}
    for labels, shape in zip(inputs, shapes, strict=True):
        for label, size in zip(labels, shape, strict=True):
            if sizes.get(label, 1) == 1:
                sizes[label] = size
    return inputs, output, sizes


def _einsum(call: Call) -> Work:
    """Return the work of contracting from left to right, as ONNX Runtime does.

    It sums over a dimension that only one operand has before it multiplies.
    """
    terms, output, sizes = _einsum_sizes(call)
    kept = set(output) | {label for label in sizes if label.endswith(".")}
    macs: Count = 0
    operations: Count = 0

    def summed(at: int, needed: set[str]) -> tuple[set[str], Count]:
        """Return the labels of an operand that are left, and the additions."""
        own = dict(zip(terms[at], shape_in(call, at), strict=True))
        left = own.keys() & needed
        return left, 0 if left == own.keys() else math.prod(own.values())

    current, additions = summed(0, kept.union(*terms[1:]))
    operations += additions
    for at in range(1, len(terms)):
        later = kept.union(*terms[at + 1 :])
        other, additions = summed(at, later | current)
        operations += additions
        joined = current | other
        products = math.prod(sizes[label] for label in joined)
        if joined <= later:
            operations += products
        else:
            macs += products
        current = joined & later
    return macs, operations


def _mixture(call: Call) -> Work:
    tokens = elements(shape_in(call, 0)[:-1]) * call.number("k", 1)
    products = [elements(shape_in(call, at)[1:]) for at in (2, 4, 6) if call.has(at)]
    return tokens * sum(products), 0


def _packed_mixture(call: Call) -> Work:
    """Return the same of QMoE: of each expert the weights of a row stand together in bytes."""
    tokens = elements(shape_in(call, 0)[:-1]) * call.number("k", 1)
    bits = call.number("expert_weight_bits", 4) or 4
    products = [
        elements(shape_in(call, at)[1:])
        * (8 // (call.number(f"fc{layer}_expert_weight_bits", 0) or bits))
        for layer, at in ((1, 2), (2, 5), (3, 8))
        if call.has(at)
    ]
    return tokens * sum(products), 0


def _recurrent(gates: int, per_cell: int) -> Callable[[Call], Work]:
    """Return the rule of a recurrent layer.

    Args:
        gates: Products per step, of the input and of the state.
        per_cell: Operations per element of the state, besides the bias and peepholes.
    """

    def rule(call: Call) -> Work:
        data = shape_in(call, 0)
        ways = 2 if call.text("direction", "forward") == "bidirectional" else 1
        hidden = call.number("hidden_size", 0)
        if not hidden:
            raise UnknownShape
        cells = data[0] * data[1] * (ways * hidden)
        biases, peepholes = gates * call.has(3), 6 * call.has(7)
        return cells * (gates * (data[2] + hidden)), cells * (per_cell + biases + peepholes)

    return rule


def _pooled(per_element: int) -> Callable[[Call], Work]:
    def rule(call: Call) -> Work:
        window = math.prod(call.numbers("kernel_shape") or ())
        return 0, elements(shape_out(call)) * (window * per_element)

    return rule


def _local_response(call: Call) -> Work:
    """Return the work of LRN: a square, the sum of a window, and four operations more."""
    return 0, elements(shape_in(call, 0)) * (call.number("size", 0) + 4)


def _per_result(count: Callable[[Call], int]) -> Callable[[Call], Work]:
    """Return the rule of operators whose operations per output element depend on the node."""
    return lambda call: (0, elements(shape_out(call)) * count(call))


def _per_element(count: Callable[[Call], int]) -> Callable[[Call], Work]:
    """Return the same per element of the first input."""
    return lambda call: (0, elements(shape_in(call, 0)) * count(call))


_CLIP_BY_INPUTS = 11
"""The version of Clip since which its bounds are optional inputs."""


def _clipped(call: Call) -> int:
    if 0 < call.version < _CLIP_BY_INPUTS:
        return sum(call.attribute(name) is not None for name in ("min", "max"))
    return call.has(1) + call.has(2)


def _rotated(call: Call) -> Work:
    """Return the work of RotaryEmbedding, which may turn only the first part of each head."""
    shape = shape_out(call)
    turned = call.number("rotary_embedding_dim", 0)
    if not turned:
        return 0, elements(shape) * 3
    hidden = whole(shape[-1])
    heads = 1 if len(shape) == 4 else call.number("num_heads", 0)
    if not heads or hidden < heads * turned:
        raise UnknownShape
    return 0, elements(shape[:-1]) * (heads * turned * 3)


def _gelu(call: Call) -> int:
    return 8 if call.text("approximate", "none") == "tanh" else 5


def _swish(call: Call) -> int:
    alpha = call.attribute("alpha")
    return 5 if alpha is None or alpha.f == 1 else 6


_AXIS_IS_INPUT = 20
"""The version of DFT since which its axis is an input."""


def _fourier(call: Call) -> Work:
    shape = shape_in(call, 0)
    if call.has(2):
        axis = _integer(call, 2)
    elif call.version >= _AXIS_IS_INPUT:
        axis = -2
    else:
        axis = call.number("axis", 1)
    length = _integer(call, 1) if call.has(1) else whole(shape[axis])
    # The last dimension holds real and imaginary parts.
    signals = math.prod((*shape[:axis], *shape[axis + 1 : -1]))
    return 0, signals * round(5 * length * math.log2(max(length, 2)))


def _short_fourier(call: Call) -> Work:
    batch, frames, bins, _ = shape_out(call)
    if call.has(2):
        length = whole(shape_in(call, 2)[0])
    elif call.has(3):
        length = _integer(call, 3)
    elif call.number("onesided", 1) == 0:
        length = whole(bins)
    else:
        raise UnknownShape
    transform = round(5 * length * math.log2(max(length, 2)))
    return 0, batch * frames * (transform + length * call.has(2))


def _interpolation(mode: str, axes: int) -> int:
    """Return the operations of interpolating one value along several axes."""
    if mode == "nearest" or not axes:
        return 0
    # Products with weights and their sums: of 2 neighbours an axis at once, of 4 axis by axis.
    return 7 * sum(4**axis for axis in range(axes)) if "cubic" in mode else (2 << axes) - 1


def _resized(call: Call) -> Work:
    output = shape_out(call)
    mode = call.text("mode", "nearest")
    try:
        axes = sum(a != b for a, b in zip(shape_in(call, 0), output, strict=True))
    except UnknownShape:
        axes = 2
    if call.number("antialias", 0) and mode != "nearest" and _shrinks(call):
        raise UnknownShape  # the filter is wider, depending on the scale
    return 0, elements(output) * _interpolation(mode, axes)


def _shrinks(call: Call) -> bool:
    """Return whether an output may be smaller than its input along an axis."""
    return any(
        not (isinstance(size, int) and isinstance(result, int) and result >= size)
        for size, result in zip(shape_in(call, 0), shape_out(call), strict=True)
        if size != result
    )


def _sampled(call: Call) -> Work:
    output = shape_out(call)
    axes = len(output) - 2
    mode = call.text("mode", "linear")
    # The place of a sample is scaled and moved along each axis.
    return 0, elements(output) * (_interpolation(mode, axes) + 2 * axes)


def _combined(divisions: int) -> Callable[[Call], Work]:
    """Return the rule of operators with any number of inputs: one operation for each but one."""

    def rule(call: Call) -> Work:
        return 0, elements(shape_out(call)) * (len(call.inputs) - 1 + divisions)

    return rule


def _region(call: Call) -> Work:
    samples = call.number("sampling_ratio", 0) ** 2
    if not samples:
        raise UnknownShape  # the values of the regions decide
    return 0, elements(shape_out(call)) * (8 * samples)


Rule: TypeAlias = "Callable[[Call], Work]"

_CONV, _CONV_FROM_3 = _convolution(1, 2, 3), _convolution(3, 8)
_MATMUL = _product(0, 1)
_FAST_GELU = 8


def _dynamically_quantized(call: Call) -> Work:
    """Return the work of DynamicQuantizeMatMul, which quantizes its left factor first."""
    macs, operations = _product(0, 1, lambda call: 1 + call.has(4))(call)
    return macs, operations + elements(shape_in(call, 0)) * _PER_INPUT["DynamicQuantizeLinear"]


PRODUCTS: dict[str, Rule] = {
    "Conv": _CONV,
    "ConvInteger": _convolution(1),
    "QLinearConv": _CONV_FROM_3,
    "FusedConv": _CONV,
    "NhwcConv": _CONV,
    "NhwcFusedConv": _CONV,
    "ConvTranspose": _transposed(2),
    "ConvTransposeWithDynamicPads": _transposed(3),
    "QLinearConvTranspose": _transposed(8, weights=3),
    "CausalConvWithState": _CONV,
    "DeformConv": _deformed,
    "MatMul": _MATMUL,
    "MatMulInteger": _MATMUL,
    "MatMulIntegerToFloat": _product(0, 1, lambda call: 1 + call.has(6)),  # the scale; the bias
    "DynamicQuantizeMatMul": _dynamically_quantized,
    "FusedMatMul": _MATMUL,
    "FusedMatMulActivation": _MATMUL,
    "TransposeMatMul": _MATMUL,
    "QLinearMatMul": _product(0, 3),
    "Gemm": _gemm(0, 1, 2),
    "FusedGemm": _gemm(0, 1, 2),
    "GemmFloat8": _gemm(0, 1, 2),
    "QGemm": _gemm(0, 3, 6),
    "MatMulNBits": _by_columns({"N": 5}),
    "MatMulNBitsQkv": _packed_attention_input,
    "MatMulNBitsMlp": _packed_gate,
    "MatMulBnb4": _by_columns({"N": 99}),
    "MatMulFpQ4": _by_output,
    "MatMulBlockQuantizedFp4Weight": _by_output,
    "MatMulBlockQuantizedFp8Weight": _by_output,
    "MatMulInteger16": _MATMUL,
    "QOrderedMatMul": _product(0, 2),
    "GemmFastGelu": _product(0, 1, lambda call: _FAST_GELU + call.has(2)),
    "AffineGrid": _sampling_grid,
    "CDist": _distances,
    "LinearClassifier": _linear_model,
    "LinearRegressor": _linear_model,
    "Einsum": _einsum,
    "MoE": _mixture,
    "QMoE": _packed_mixture,
    "Attention": attention,
    "FlexAttention": flexible_attention,
    "QAttention": lambda call: attention(_without_scales(call)),
    "MultiHeadAttention": multi_head_attention,
    "DecoderMaskedMultiHeadAttention": decoder_attention,
    "DecoderMaskedSelfAttention": attention,
    "PackedAttention": packed_attention,
    "PackedMultiHeadAttention": packed_multi_head_attention,
    "LinearAttention": linear_attention,
    "GroupQueryAttention": grouped_query_attention,
    "LSTM": _recurrent(4, 18),
    "DynamicQuantizeLSTM": _recurrent(4, 18),
    "GRU": _recurrent(3, 14),
    "RNN": _recurrent(1, 1),
}
"""The operators that are counted in multiply-accumulates."""


def _without_scales(call: Call) -> Call:
    """Return a call of QAttention with the inputs of Attention."""
    places = (0, 1, 2, 5, 8)
    node = onnx.NodeProto()
    node.CopyFrom(call.proto)
    names = [*node.input, *[""] * 9]
    del node.input[:]
    node.input.extend(names[at] for at in places)
    return Call(node, [call.input(at) for at in places], version=call.version, results=call.results)


_RULES: dict[str, Rule] = {
    **dict.fromkeys(
        (
            "MaxPool",
            "NhwcMaxPool",
            "MaxpoolWithMask",
            "AveragePool",
            "QLinearAveragePool",
        ),
        _pooled(1),
    ),
    "LpPool": _pooled(2),  # a power and a sum
    "LRN": _local_response,
    "NegativeLogLikelihoodLoss": lambda call: (
        0,
        elements(shape_in(call, 1)) * (2 + 2 * call.has(2)),
    ),
    "Clip": _per_result(_clipped),
    "Gelu": _per_result(_gelu),
    "RotaryEmbedding": _rotated,
    # In training, the mean and the variance, too.
    "BatchNormalization": _per_result(lambda call: 6 if call.number("training_mode", 0) else 2),
    "Swish": _per_result(_swish),
    "FastGelu": _per_result(lambda call: _FAST_GELU + call.has(1)),
    "DequantizeLinear": _per_result(lambda call: 1 + call.has(2)),
    "QuantizeLinear": _per_result(lambda call: 1 + call.has(2)),
    "LayerNormalization": _per_element(lambda call: 6 + call.has(2)),
    "SkipLayerNormalization": _per_element(lambda call: 7 + call.has(3) + call.has(4)),
    "SkipSimplifiedLayerNormalization": _per_element(lambda call: 5 + call.has(3)),
    "GroupNorm": _per_element(lambda call: 7 + 5 * (call.number("activation", 0) == 1)),
    "SkipGroupNorm": _per_element(
        lambda call: 8 + call.has(4) + 5 * (call.number("activation", 0) == 1)
    ),
    "EmbedLayerNormalization": _per_result(lambda call: 8 + call.has(1)),
    "Det": _cubed(2, 3),
    "Inverse": _cubed(2, 1),
    "GridSample": _sampled,
    "DFT": _fourier,
    "STFT": _short_fourier,
    **dict.fromkeys(("Resize", "Upsample"), _resized),
    **dict.fromkeys(("Sum", "Max", "Min"), _combined(0)),
    "Mean": _combined(1),
    "RoiAlign": _region,
}


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


MOVES_NOTHING = VIEWS | _names(
    "Constant Shape Size Dropout Optional OptionalGetElement OptionalHasElement SequenceAt"
    " SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength If Loop Scan"
    " SequenceMap"
)
"""Neither compute nor move anything themselves: runtimes hand the same bytes on, or run a body."""
SELECTS = _names("Gather GatherElements GatherND Slice Compress DynamicSlice")
"""Operators that read only as much of their first input as they write."""
_MOVES = _names(
    "Transpose Concat Split SplitToSequence ConcatFromSequence Expand Tile Pad Cast CastLike Where"
    " BitCast DepthToSpace SpaceToDepth ScatterElements ScatterND Scatter ConstantOfShape Range"
    " OneHot Trilu NonZero Unique ReverseSequence EyeLike CenterCropPad TensorScatter QLinearConcat"
    " QLinearWhere ReorderInput ReorderOutput MemcpyToHost MemcpyFromHost"
    " ExpandDims"
)
_PER_OUTPUT = {
    "BiasAdd": 1, "BiasGelu": 6, "BiasSplitGelu": 6, "BlackmanWindow": 9,
    "Celu": 6, "Elu": 4, "GatherBlockQuantized": 2, "HammingWindow": 5, "HannWindow": 5,
    "HardSigmoid": 4, "HardSwish": 5, "LeakyRelu": 2, "Mish": 5,
    "PRelu": 2, "QEmbedLayerNormalization": 9, "QLinearAdd": 7, "QLinearLeakyRelu": 1,
    "QLinearMul": 7, "QLinearSigmoid": 1, "QuickGelu": 6, "Selu": 5,
    "Shrink": 3, "Sigmoid": 4, "Softplus": 3, "Softsign": 3, "SwiGLU": 6,
    **dict.fromkeys(
        _names(
            "Abs Acos Acosh Add And Asin Asinh Atan Atanh Bernoulli BitShift BitwiseAnd BitwiseNot"
            " BitwiseOr BitwiseXor Ceil Cos Cosh Div Equal Erf Exp Floor Greater GreaterOrEqual"
            " IsInf IsNaN Less LessOrEqual Log MelWeightMatrix Mod Mul Multinomial Neg Not Or Pow"
            " RandomNormal RandomNormalLike RandomUniform RandomUniformLike Reciprocal Relu Round"
            " Sign Sin Sinh Sqrt Sub Tan Tanh ThresholdedRelu Xor"
        ),
        1,
    ),
}  # fmt: skip
_FUSED = {"relu": 1, "silu": 5, "swish": 5, "gelu": 5, "tanh": 1, "sigmoid": 4}
"""Operations of fused activations, by their names in lower case; others have those of operators."""
_PER_INPUT = {
    "DynamicQuantizeLinear": 4, "GlobalLpPool": 2, "GroupNormalization": 7,
    "InstanceNormalization": 7, "LogSoftmax": 5, "LpNormalization": 3,
    "MeanVarianceNormalization": 5, "QLinearSoftmax": 5, "ReduceL1": 2, "ReduceL2": 2,
    "ReduceLogSumExp": 2, "ReduceSumSquare": 2, "RMSNormalization": 4,
    "SimplifiedLayerNormalization": 4, "Softmax": SOFTMAX, "BiasSoftmax": SOFTMAX + 1,
    "SoftmaxCrossEntropyLoss": SOFTMAX,
}  # fmt: skip
_ONCE_PER_INPUT = _names(
    "ArgMax ArgMin BitonicSort Col2Im CumProd CumSum GlobalAveragePool GlobalMaxPool"
    " Hardmax MaxUnpool QLinearGlobalAveragePool QLinearReduceMean"
    " ReduceLogSum ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumInteger"
    " TopK"
)
_UNCOUNTED = _names(
    "ImageDecoder MaxRoiPool NonMaxSuppression RegexFullMatch StringConcat StringNormalizer"
    " StringSplit TfIdfVectorizer"
)
"""Operators whose work is not arithmetic, or depends on their input values. None multiplies."""
_ML = "ai.onnx.ml"
_ML_KNOWN = {
    "LinearClassifier": 0, "LinearRegressor": 0, "Binarizer": 1, "Imputer": 1, "Normalizer": 3,
    "Scaler": 2,
}  # fmt: skip
"""The operators of ai.onnx.ml that are counted, with their operations an element read."""
_ML_UNCOUNTED = _names(
    "ArrayFeatureExtractor CastMap CategoryMapper DictVectorizer FeatureVectorizer LabelEncoder"
    " OneHotEncoder TreeEnsemble TreeEnsembleClassifier TreeEnsembleRegressor ZipMap"
)
_PREVIEW = "ai.onnx.preview"
_DOMAINS = frozenset(
    {"", _ML, _PREVIEW, "com.microsoft", "com.microsoft.nchwc", "com.ms.internal.nhwc"}
)


@dataclass(frozen=True, slots=True)
class Operator:
    """How the work of an operator is counted."""

    rule: Rule | None = None
    per_output: int = 0
    """Operations per element of the first output, where there is no rule."""
    per_input: int = 0
    """Operations an element of the first input."""
    is_known: bool = True
    has_macs: bool = False
    """Whether it has, or may have, multiply-accumulates."""
    is_view: bool = False
    """It neither computes nor moves anything."""
    selects: bool = False
    """Whether it reads only as much of its first input as it writes."""
    by_elements: bool = False
    """Whether its rule needs elements of inputs."""


def operator(domain: str, op_type: str) -> Operator:
    """Return how the work of an operator is counted."""
    if domain not in _DOMAINS or (domain == _PREVIEW and op_type != "FlexAttention"):
        return Operator(is_known=False, has_macs=True)
    product = PRODUCTS.get(op_type)
    if domain == _ML:
        per_input = _ML_KNOWN.get(op_type)
        is_known, has_macs = per_input is not None, op_type not in _ML_UNCOUNTED
        return Operator(product, per_input=per_input or 0, is_known=is_known, has_macs=has_macs)
    if op_type in _UNCOUNTED:
        return Operator(is_known=False)
    if op_type in MOVES_NOTHING:
        return Operator(is_view=True)
    if op_type in SELECTS or op_type in _MOVES:
        return Operator(selects=op_type in SELECTS)
    rule = product or _RULES.get(op_type)
    per_input = 1 if op_type in _ONCE_PER_INPUT else _PER_INPUT.get(op_type, 0)
    if rule is not None or per_input:
        by_elements = op_type in ("DFT", "STFT")
        return Operator(
            rule, per_input=per_input, has_macs=product is not None, by_elements=by_elements
        )
    per_output = _PER_OUTPUT.get(op_type, 0)
    return Operator(per_output=per_output, is_known=per_output > 0, has_macs=not per_output)


def work(rule: Rule, call: Call) -> tuple[Count | None, Count | None]:
    """Return the work of a call; None where a needed shape is unknown."""
    try:
        return rule(call)
    except (UnknownShape, IndexError, KeyError, TypeError, ValueError, ZeroDivisionError):
        return None, None  # a malformed node, too, says nothing


def parts_read(call: Call) -> Mapping[int, tuple[Count, int]]:
    """Return the inputs of which only some rows are read: the rows read, the rows in all, by index.

    Embedding tables, and weights of experts that may get no token. The bytes moved are unknown for
    a call with unknown shapes.
    """
    try:
        return _PARTS[call.operator](call) if call.operator in _PARTS else {}
    except (UnknownShape, IndexError, TypeError, ValueError):
        return {}


def _gathered_blocks(call: Call) -> Mapping[int, tuple[Count, int]]:
    rows, axis = elements(shape_in(call, 1)), call.number("gather_axis", 0)
    return {
        at: (rows, size)
        for at in (0, 2, 3)
        if call.has(at) and isinstance(size := shape_in(call, at)[axis], int) and size
    }


def _embedded(call: Call) -> Mapping[int, tuple[Count, int]]:
    tokens = elements(shape_in(call, 0))
    tables = (2, 3, 4) if call.has(1) else (2, 3)
    parts: dict[int, tuple[Count, int]] = {}
    for at in tables:
        rows = shape_in(call, at)[0]
        if isinstance(rows, int) and isinstance(tokens, int) and tokens < rows:
            parts[at] = tokens, rows
    return parts


def _chosen_experts(*inputs: int) -> Callable[[Call], Mapping[int, tuple[Count, int]]]:
    def rule(call: Call) -> Mapping[int, tuple[Count, int]]:
        experts = shape_in(call, 2)[0]
        chosen = elements(shape_in(call, 0)[:-1]) * call.number("k", 1)
        if not isinstance(experts, int) or not isinstance(chosen, int) or chosen >= experts:
            return {}
        return {at: (chosen, experts) for at in inputs if call.has(at)}

    return rule


_PARTS: dict[str, Callable[[Call], Mapping[int, tuple[Count, int]]]] = {
    "GatherBlockQuantized": _gathered_blocks,
    "EmbedLayerNormalization": _embedded,
    "QEmbedLayerNormalization": _embedded,
    "MoE": _chosen_experts(*range(2, 8)),
    "QMoE": _chosen_experts(*range(2, 14)),
}


def grown_cache(call: Call) -> Mapping[int, Shape]:
    """Return the shapes of the present keys and values of GroupQueryAttention, by index.

    The past with the new positions, unless the file declares a number: a cache in a buffer for the
    longest sequence stays as long.
    """
    shapes: dict[int, Shape] = {}
    try:
        query = shape_in(call, 0)
        for at in range(1, min(len(call.results), 3)):
            declared = call.results[at]
            if declared.is_known and isinstance(shape_out(call, at)[2], int):
                continue
            if not call.has(at + 2):
                groups, heads = call.number("kv_num_heads", 0), call.number("num_heads", 1)
                packed = heads if call.has(1) else heads + 2 * groups
                shapes[at] = (query[0], groups, query[1], whole(query[2]) // packed)
                continue
            past = shape_in(call, at + 2)
            length = past[2] if call.number("sliding_window_cache", 0) else past[2] + query[1]
            if not declared.is_known or isinstance(length, int):
                shapes[at] = (*past[:2], length, past[3])
    except (UnknownShape, IndexError):
        return {}
    return shapes
