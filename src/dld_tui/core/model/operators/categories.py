"""Categories of operators, and their colour classes."""

from __future__ import annotations

import re

CATEGORIES = (
    "layer",
    "attention",
    "activation",
    "pool",
    "normalization",
    "math",
    "reduction",
    "shape",
    "tensor",
    "transform",
    "data",
    "quantization",
    "logic",
    "control",
    "sequence",
    "image",
    "ml",
    "training",
    "custom",
)
"""All categories; `custom` is every operator that is not known here."""
VIEWS = frozenset(("Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"))
"""Operators that give the elements of their first input in the same order, in another shape."""
REARRANGING = VIEWS | {"Transpose"}
"""Those, and the one that gives them in another order."""

_ONNX = {
    "layer": """
        CausalConvWithState Conv ConvTranspose DeformConv Einsum GRU Gemm LSTM MatMul RNN
    """,
    "attention": """
        Attention FlexAttention LinearAttention RotaryEmbedding TensorScatter
    """,
    "activation": """
        Celu Clip Elu Erf Gelu HardSigmoid HardSwish Hardmax LeakyRelu LogSoftmax Mish PRelu Relu
        Selu Shrink Sigmoid Softmax Softplus Softsign SwiGLU Swish Tanh ThresholdedRelu
    """,
    "pool": """
        AveragePool GlobalAveragePool GlobalLpPool GlobalMaxPool LpPool MaxPool MaxRoiPool
        MaxUnpool RoiAlign
    """,
    "normalization": """
        BatchNormalization GroupNormalization InstanceNormalization LRN LayerNormalization
        LpNormalization MeanVarianceNormalization RMSNormalization
    """,
    "math": """
        Abs Acos Acosh Add Asin Asinh Atan Atanh Bernoulli BitShift Ceil Cos Cosh CumProd CumSum
        DFT Det Div Dropout Exp Floor Log Max Mean Min Mod Mul Neg Pow Reciprocal Round STFT Sign
        Sin Sinh Sqrt Sub Sum Tan
    """,
    "reduction": """
        ArgMax ArgMin ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin
        ReduceProd ReduceSum ReduceSumSquare
    """,
    "shape": """
        BitCast Cast CastLike Expand Flatten Identity Reshape Shape Size Squeeze Unsqueeze
    """,
    "tensor": """
        Compress Concat Gather GatherElements GatherND NonZero Pad ReverseSequence Scatter
        ScatterElements ScatterND Slice Split TfIdfVectorizer Tile TopK Trilu Unique Where
    """,
    "transform": """
        Col2Im DepthToSpace SpaceToDepth Transpose
    """,
    "data": """
        BlackmanWindow Constant ConstantOfShape EyeLike HammingWindow HannWindow MelWeightMatrix
        Multinomial OneHot RandomNormal RandomNormalLike RandomUniform RandomUniformLike Range
    """,
    "quantization": """
        ConvInteger DequantizeLinear DynamicQuantizeLinear MatMulInteger QLinearConv QLinearMatMul
        QuantizeLinear
    """,
    "logic": """
        And BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Equal Greater GreaterOrEqual IsInf IsNaN
        Less LessOrEqual Not Or Xor
    """,
    "control": "If Loop Scan",
    "sequence": """
        ConcatFromSequence Optional OptionalGetElement OptionalHasElement RegexFullMatch
        SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength
        SequenceMap SplitToSequence StringConcat StringNormalizer StringSplit
    """,
    "image": """
        AffineGrid CenterCropPad GridSample ImageDecoder NonMaxSuppression Resize Upsample
    """,
    "training": """
        Adagrad Adam Gradient Momentum NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss
    """,
}

_CONTRIB = {
    "layer": """
        AttnLSTM CausalConvWithState ConvTransposeWithDynamicPads EmbedLayerNormalization FusedConv
        FusedGemm FusedMatMul FusedMatMulActivation GatedDeltaNet GemmFastGelu GemmFloat8 MoE
        NhwcConv NhwcFusedConv SparseToDenseMatMul TorchEmbedding TransposeMatMul
        VarlenCausalConvWithState WordConvEmbedding
    """,
    "activation": """
        BiasGelu BiasSoftmax BiasSplitGelu FastGelu Gelu QuickGelu ScaledSiLU
    """,
    "pool": "MaxpoolWithMask NhwcMaxPool",
    "control": "BeamSearch GreedySearch Sampling WhisperBeamSearch",
    "image": "CropAndResize GridSample",
    "data": "Range",
    "shape": "ExpandDims",
    "tensor": "GatherND Pad Trilu UnfoldTensor Unique",
    "sequence": "Tokenizer",
}

_CONTRIB_HINTS = (
    (
        "quantization",
        ("Quant", "quant", "QLinear", "QGemm", "QMoE", "QOrdered", "QAttention", "NBits"),
    ),
    ("quantization", ("Bnb4", "FpQ4", "Integer", "QEmbed")),
    ("attention", ("Attention", "RotaryEmbedding", "PositionBias")),
    ("normalization", ("Norm",)),
    ("math", ("Add", "Bias", "Complex", "Rfft", "Irfft", "Inverse", "CDist", "Dropout")),
)
"""Parts of names that tell the category of the other contrib operators, first match first."""

SIZE_OPERATORS = frozenset({"Shape", "Size"})
"""Operators that look at the shape of their input only."""
RANDOM_OPERATORS = frozenset({
    "Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
    "RandomUniformLike",
})  # fmt: skip
"""ONNX's own operators that may make something else in each run."""
BROADCASTING = frozenset({
    "Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater",
    "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Or", "PRelu",
    "Pow", "StringConcat", "Sub", "Sum", "Where", "Xor",
})  # fmt: skip
"""ONNX's own operators that broadcast all their inputs to one shape, that of their result."""
WEIGHTED = ("Conv", "ConvTranspose", "MatMul", "Gemm")
"""ONNX's own products whose second input holds weights, and that are quantized with both inputs."""
INT8_PRODUCTS = frozenset({
    "ConvInteger", "DynamicQuantizeLSTM", "DynamicQuantizeMatMul", "MatMulInteger",
    "MatMulIntegerToFloat", "QAttention", "QGemm", "QLinearConv", "QLinearConvTranspose",
    "QLinearMatMul", "QOrderedAttention", "QOrderedLongformerAttention", "QOrderedMatMul",
})  # fmt: skip
"""Products that multiply integers of 8 bits, though some of them read floats."""
_QUANTIZED_PRODUCTS = INT8_PRODUCTS | {
    "MatMulBlockQuantizedFp4Weight", "MatMulBlockQuantizedFp8Weight", "MatMulBnb4", "MatMulFpQ4",
    "MatMulInteger16", "MatMulNBits", "MatMulNBitsMlp", "MatMulNBitsQkv", "QMoE",
}  # fmt: skip
"""Those, and products of floats and weights that are stored in few bits."""


def _table(groups: dict[str, str]) -> dict[str, str]:
    return {name: category for category, names in groups.items() for name in names.split()}


_ONNX_TABLE = _table(_ONNX)
_CONTRIB_TABLE = _table(_CONTRIB)


def onnx_operators() -> tuple[str, ...]:
    """Return the names of ONNX's own operators that have a category."""
    return tuple(_ONNX_TABLE)


def category_of(op_type: str, domain: str = "") -> str:
    """Return one of :data:`CATEGORIES` by name alone, fast enough for every row of a list."""
    if domain in ("", "ai.onnx"):
        return _ONNX_TABLE.get(op_type, "custom")
    if domain == "ai.onnx.ml":
        return "ml"
    if domain.startswith("ai.onnx.preview"):
        return _ONNX_TABLE.get(op_type, "training")
    if domain.startswith(("com.microsoft", "com.ms.")):
        return _contrib_category(op_type)
    return "custom"


def _contrib_category(op_type: str) -> str:
    category_by_name = _CONTRIB_TABLE.get(op_type)
    if category_by_name is None:
        for category, parts in _CONTRIB_HINTS:
            if any(part in op_type for part in parts):
                return category
        category_by_name = _ONNX_TABLE.get(op_type, "custom")
    return category_by_name


COLOUR_CLASSES = (
    "conv", "matmul", "norm", "act", "elem", "shape", "data", "control", "quant", "other",
)  # fmt: skip

_RANKS = {
    **dict.fromkeys(("layer", "attention"), 3),
    **dict.fromkeys(("activation", "pool", "normalization", "reduction", "image", "ml"), 2),
    **dict.fromkeys(("shape", "data"), 0),
}
_QUANTIZER = re.compile(r"(?:Dynamic)?(?:De)?[Qq]uantize\w*")


def main_rank(op_type: str) -> int:
    """Return how much an operator is the reason for a fused layer: a product is 3, a Cast is 0.

    A layer of QuantizeLinear, Conv, Add and Relu is a convolution.
    """
    if op_type in _QUANTIZED_PRODUCTS:
        return 3
    if _QUANTIZER.fullmatch(op_type):
        return 0
    return _RANKS.get(category_of(op_type, "com.microsoft"), 1)


_CLASSES = {
    "layer": "conv",
    "pool": "conv",
    "attention": "matmul",
    "normalization": "norm",
    "activation": "act",
    "math": "elem",
    "reduction": "elem",
    "logic": "elem",
    "shape": "shape",
    "tensor": "shape",
    "transform": "shape",
    "data": "data",
    "quantization": "quant",
    "control": "control",
}
_MATRIX_PRODUCTS = frozenset({"MatMul", "Gemm", "Einsum", "FusedMatMul", "FusedGemm"})


def colour_class(op_type: str, domain: str = "") -> str:
    """Return one of :data:`COLOUR_CLASSES` for an operator."""
    return colour_class_of(category_of(op_type, domain), op_type)


def colour_class_of(category: str, op_type: str) -> str:
    """Return one of :data:`COLOUR_CLASSES` for an operator whose category is known."""
    return "matmul" if op_type in _MATRIX_PRODUCTS else _CLASSES.get(category, "other")
