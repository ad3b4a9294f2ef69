"""The texts that attributes of operators may have, which their schemas do not tell."""

from __future__ import annotations

_AUTO_PAD = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
_DIRECTION = ("forward", "reverse", "bidirectional")
_REDUCTION = ("none", "mean", "sum")
_SCATTER = ("none", "add", "mul", "min", "max")
_TRANSFORM = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
_TREE = {"post_transform": _TRANSFORM, "aggregate_function": ("SUM", "AVERAGE", "MIN", "MAX")}
_COORDINATES = (
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
    "tf_crop_and_resize", "tf_half_pixel_for_nn",
)  # fmt: skip
_ROUNDING = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
_WORDS: dict[tuple[str, str], dict[str, tuple[str, ...]]] = {
    **{
        ("", name): {"auto_pad": _AUTO_PAD}
        for name in ("Conv", "ConvTranspose", "ConvInteger", "QLinearConv")
    },
    **{("", name): {"auto_pad": _AUTO_PAD} for name in ("MaxPool", "AveragePool", "LpPool")},
    **{("", name): {"direction": _DIRECTION} for name in ("LSTM", "GRU", "RNN")},
    ("com.microsoft", "DynamicQuantizeLSTM"): {"direction": _DIRECTION},
    ("", "Pad"): {"mode": ("constant", "reflect", "edge", "wrap")},
    ("", "Resize"): {
        "mode": ("nearest", "linear", "cubic"),
        "coordinate_transformation_mode": _COORDINATES,
        "nearest_mode": _ROUNDING,
        "keep_aspect_ratio_policy": ("stretch", "not_larger", "not_smaller"),
    },
    ("", "Upsample"): {"mode": ("nearest", "linear", "bilinear")},
    ("", "DepthToSpace"): {"mode": ("DCR", "CRD")},
    ("", "Gelu"): {"approximate": ("none", "tanh")},
    ("", "ScatterND"): {"reduction": _SCATTER},
    ("", "ScatterElements"): {"reduction": _SCATTER},
    ("", "GridSample"): {
        "mode": ("linear", "cubic", "nearest", "bilinear", "bicubic"),
        "padding_mode": ("zeros", "border", "reflection"),
    },
    ("", "RoiAlign"): {
        "mode": ("avg", "max"),
        "coordinate_transformation_mode": ("half_pixel", "output_half_pixel"),
    },
    ("", "BitShift"): {"direction": ("LEFT", "RIGHT")},
    ("", "NegativeLogLikelihoodLoss"): {"reduction": _REDUCTION},
    ("", "SoftmaxCrossEntropyLoss"): {"reduction": _REDUCTION},
    ("", "TensorScatter"): {"mode": ("linear", "circular")},
    ("", "TfIdfVectorizer"): {"mode": ("TF", "IDF", "TFIDF")},
    ("", "StringNormalizer"): {"case_change_action": ("LOWER", "UPPER", "NONE")},
    ("ai.onnx.ml", "Normalizer"): {"norm": ("MAX", "L1", "L2")},
    ("ai.onnx.ml", "LinearClassifier"): {"post_transform": _TRANSFORM},
    ("ai.onnx.ml", "LinearRegressor"): {"post_transform": _TRANSFORM},
    ("ai.onnx.ml", "SVMClassifier"): {"post_transform": _TRANSFORM},
    ("ai.onnx.ml", "SVMRegressor"): {"post_transform": _TRANSFORM},
    ("ai.onnx.ml", "TreeEnsembleClassifier"): {"post_transform": _TRANSFORM},
    ("ai.onnx.ml", "TreeEnsembleRegressor"): _TREE,
}
"""The texts that attributes may have, by operator."""


def attribute_words(op_type: str, domain: str, attribute: str) -> tuple[str, ...]:
    """Return the texts that an attribute may have; none where any text will do."""
    return _WORDS.get((domain, op_type), {}).get(attribute, ())


def is_default_word(attribute: str, text: str) -> bool:
    """Return whether readers take a text that is none of the words for the default."""
    return attribute == "reduction" or (attribute in ("auto_pad", "nearest_mode") and not text)
