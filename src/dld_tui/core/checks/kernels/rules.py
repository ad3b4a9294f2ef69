"""What single kernels of ONNX Runtime refuse, by operator."""

from __future__ import annotations

from dld_tui.core.checks.calls import Call
from dld_tui.core.checks.kernels.attention import attention, attention_numbers, rotary, scattered
from dld_tui.core.checks.kernels.control_flow import carried, scanned
from dld_tui.core.checks.kernels.elements import (
    axes_of_data,
    axis_given,
    batched,
    classes,
    complex_or_real,
    divided,
    elements,
    features,
    flattened,
    gemm,
    kept,
    mel_bins,
    n_grams,
    not_empty_bool,
    not_nothing,
    of_second,
    parts,
    scalars,
    sequence_lengths,
    texts,
    transform,
)
from dld_tui.core.checks.kernels.images import (
    channels_norm,
    columns,
    deformed,
    grid,
    left_out,
    not_empty,
    of_filters,
    padded,
    regions,
    resized,
    response,
    sampled,
    transposed,
    unpooled,
    upsample,
)
from dld_tui.core.checks.kernels.shape_patterns import (
    Rule,
    element_type,
    needs,
    positive,
    shapes,
    single,
)
from dld_tui.core.checks.kernels.trees import classifier, regressor, tree_ensemble
from dld_tui.core.checks.operands import (
    VALUE,
    Said,
    convolution,
    one_axis,
)


def check_kernel(call: Call) -> Said:
    """Yield what the kernel of a call will refuse."""
    for name, least, most in _NUMBERS.get((call.domain, call.op_type), ()):
        value = call.attribute(name)
        if isinstance(value, int) and not least <= value <= most:
            text = "must be positive" if most == _ANY else f"takes {least} to {most}"
            yield VALUE, f"Attribute {name} is {value}, it {text}"
    for rule in _RULES.get((call.domain, call.op_type), ()):
        yield from rule(call)


_ANY = 1 << 62
_NUMBERS: dict[tuple[str, str], tuple[tuple[str, int, int], ...]] = {
    **{("", name): (("exclusive", 0, 1), ("reverse", 0, 1)) for name in ("CumSum", "CumProd")},
    ("", "LpNormalization"): (("p", 1, 2),),
    ("", "LRN"): (("size", 1, _ANY),),
    ("", "NonMaxSuppression"): (("center_point_box", 0, 1),),
    ("", "MaxPool"): (("storage_order", 0, 1),),
    ("", "TfIdfVectorizer"): (("max_skip_count", 0, _ANY),),
    ("ai.onnx.ml", "TreeEnsemble"): (("aggregate_function", 0, 3), ("post_transform", 0, 4)),
}
"""The numbers that attributes take, by operator."""
_REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
_LOSSES = ("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss")
_POOLS = ("MaxPool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
_RULES: dict[tuple[str, str], tuple[Rule, ...]] = {
    **{("", f"Reduce{name}"): (shapes("* | _"), kept) for name in _REDUCTIONS},
    **{("", name): (not_empty,) for name in _POOLS},
    **{("", name): (shapes("* | _"), kept, not_empty_bool) for name in ("ReduceMax", "ReduceMin")},
    **{("", f"{name}Window"): (single(0),) for name in ("Hann", "Hamming", "Blackman")},
    **{("", name): (needs("hidden_size"), sequence_lengths) for name in ("LSTM", "GRU", "RNN")},
    **{("", name): (elements, shapes("* | *I | *I")) for name in ("ScatterElements", "Scatter")},
    ("", "GatherElements"): (elements,),
    **{("", name): (axis_given,) for name in ("CumSum", "CumProd")},
    ("", "Gemm"): (gemm,),
    ("", "LRN"): (shapes("_ _ _ _"), response),
    ("", "GroupNormalization"): (channels_norm,),
    **{("", name): (shapes("N C *D | N *D | _"), classes) for name in _LOSSES},
    ("", "NonMaxSuppression"): (shapes("B S 4 | B _ S"), left_out),
    ("", "MaxUnpool"): (shapes("*X | *X"), unpooled),
    ("", "Loop"): (single(0, 1, ranks=1), carried),
    ("", "Scan"): (scanned,),
    ("", "Flatten"): (flattened,),
    ("", "RoiAlign"): (regions,),
    ("", "DFT"): (complex_or_real,),
    ("", "ArgMax"): (not_nothing,),
    ("", "ArgMin"): (not_nothing,),
    ("", "Range"): (scalars,),
    ("", "StringNormalizer"): (texts,),
    ("", "Pad"): (padded,),
    ("", "Div"): (divided,),
    ("", "GatherND"): (batched,),
    ("", "If"): (single(0),),
    ("", "ConvTranspose"): (transposed,),
    ("", "GridSample"): (sampled,),
    ("", "Trilu"): (single(1, ranks=1),),
    ("", "BitCast"): (element_type("to"),),
    ("ai.onnx.ml", "TreeEnsemble"): (tree_ensemble,),
    ("ai.onnx.ml", "TreeEnsembleClassifier"): (classifier,),
    ("ai.onnx.ml", "TreeEnsembleRegressor"): (regressor,),
    ("", "TensorScatter"): (scattered,),
    ("", "EyeLike"): (element_type("dtype"), shapes("_ _")),
    ("", "RegexFullMatch"): (needs("pattern"),),
    ("", "TfIdfVectorizer"): (n_grams,),
    ("", "Upsample"): (upsample,),
    ("", "Resize"): (resized,),
    ("ai.onnx.ml", "ArrayFeatureExtractor"): (features,),
    ("", "QLinearConv"): (single(1, 2, 6, 7, ranks=1), of_filters(4, 5)),
    ("", "ConvInteger"): (single(2, 3, ranks=1),),
    ("", "QLinearMatMul"): (single(1, 2, 6, 7, ranks=1), of_second(4, 3), of_second(5, 3)),
    ("", "MatMulInteger"): (single(2, ranks=1), of_second(3, 1)),
    ("", "RotaryEmbedding"): (rotary,),
    ("", "Attention"): (attention_numbers, attention),
    ("", "STFT"): (single(1, 3), positive(1, 3), transform),
    ("", "AffineGrid"): (positive(1), grid),
    ("", "Col2Im"): (columns,),
    ("", "CenterCropPad"): (shapes("* | _"), axes_of_data),
    ("", "Split"): (shapes("* | _"), parts),
    ("", "SplitToSequence"): (one_axis(0),),
    ("", "TopK"): (positive(1, least=0),),
    ("", "MelWeightMatrix"): (single(0, 1, 2, 3, 4), mel_bins),
    ("", "DeformConv"): (convolution(0, 1, 3), deformed),
}
