"""Rules about the operands of single operators that shape inference does not have.

What they refuse, ONNX Runtime refuses when it creates a kernel or runs it: attribute values that no
runtime takes, channels, ranks and lengths that do not fit each other. Unknown dimensions fit.
"""

from __future__ import annotations

from collections.abc import Callable

from onnx import AttributeProto

from dld_tui.core.checks import operands_learned, operands_shapes, operands_windows
from dld_tui.core.checks.calls import Call
from dld_tui.core.checks.operand_tools import VALUE, Said, wrong
from dld_tui.core.document.proto_text import text_of
from dld_tui.core.document.value_types import shown, tensor_type
from dld_tui.core.text import clip, visible

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
        for name in ("Conv", "ConvTranspose", "ConvInteger", "QLinearConv", "DeformConv")
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
    ("", "TfIdfVectorizer"): {"mode": ("TF", "IDF", "TFIDF")},
    ("", "StringNormalizer"): {"case_change_action": ("LOWER", "UPPER", "NONE")},
    ("ai.onnx.ml", "Normalizer"): {"norm": ("MAX", "L1", "L2")},
    ("ai.onnx.ml", "LinearClassifier"): {"post_transform": _TRANSFORM},
    ("ai.onnx.ml", "LinearRegressor"): {"post_transform": _TRANSFORM},
    ("ai.onnx.ml", "SVMClassifier"): {"post_transform": _TRANSFORM},
    ("ai.onnx.ml", "SVMRegressor"): {"post_transform": _TRANSFORM},
    ("ai.onnx.ml", "TreeEnsembleClassifier"): _TREE,
    ("ai.onnx.ml", "TreeEnsembleRegressor"): _TREE,
}
"""The texts that attributes may have, by operator."""


def attribute_words(op_type: str, domain: str, attribute: str) -> tuple[str, ...]:
    """Return the texts that an attribute may have; none where any text will do."""
    return _WORDS.get((domain, op_type), {}).get(attribute, ())


def check_operands(call: Call) -> Said:
    """Yield what is wrong with the attributes and operands of a call."""
    key = (call.domain, call.op_type)
    for name, words in _WORDS.get(key, {}).items():
        text = call.attribute(name)
        if isinstance(text, str) and text not in words:
            shown = clip(visible(text), 40)
            yield VALUE, f"Attribute {name} is {shown!r}, it takes {', '.join(words)}"
    rule = _RULES.get(key)
    if rule is not None:
        yield from rule(call)


def has_right_types(call: Call) -> bool:
    """Return whether the attributes of a call are of the types that its operator takes."""
    from dld_tui.core.operators.registry import schema_for

    schema = schema_for(call.op_type, call.domain, call.version) if call.version else None
    if schema is None:
        return False
    kinds = {attribute.name: attribute.kind.upper() for attribute in schema.attributes}
    return all(
        proto.ref_attr_name
        or AttributeProto.AttributeType.Name(proto.type) == kinds.get(text_of(proto.name))
        for proto in call.node.attribute
    )


def check_signature(call: Call) -> Said:
    """Yield where the operands of a call are not what its operator takes, by inferred types."""
    from dld_tui.core.operators.registry import schema_for

    schema = schema_for(call.op_type, call.domain, call.version) if call.version else None
    if schema is None:
        return
    bound: dict[str, str] = {}
    variables = {constraint.name for constraint in schema.type_constraints}
    for index, name in enumerate(call.node.input):
        if not schema.inputs:
            return
        formal = schema.inputs[min(index, len(schema.inputs) - 1)]
        if index >= len(schema.inputs) and formal.option != "variadic":
            return
        if not name:
            if formal.option == "single":
                yield "missing-input", f"Input {index} ({formal.name}) is left out"
            continue
        operand = call.input(index)
        known = tensor_type(operand.dtype) if operand.kind == "tensor_type" else None
        if known is None:
            continue
        if known not in formal.types:
            yield "input-type", f"Input {index} is {shown(known)}, it does not take that"
        elif formal.type_name in variables and formal.homogeneous:
            first = bound.setdefault(formal.type_name, known)
            if first != known:
                yield "type-conflict", f"Input {index} is {shown(known)}, another {shown(first)}"


def _needs_input(call: Call) -> Said:
    for index, name in enumerate(call.node.input):
        if not name:
            yield wrong(f"Input {index} is left out")
            return


def _joined(*rules: Callable[[Call], Said]) -> Callable[[Call], Said]:
    def check(call: Call) -> Said:
        for rule in rules:
            yield from rule(call)

    return check


_BROADCAST = [
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Pow",
    "Mod",
    "And",
    "Or",
    "Xor",
    "Equal",
    "Less",
    "Greater",
    "LessOrEqual",
    "GreaterOrEqual",
    "BitwiseAnd",
    "BitwiseOr",
    "BitwiseXor",
    "BitShift",
    "PRelu",
    "Where",
]
_MANY = ("Sum", "Max", "Min", "Mean")
_MS = "com.microsoft"
_RULES: dict[tuple[str, str], Callable[[Call], Said]] = {
    **{("", name): operands_shapes.broadcast for name in _BROADCAST},
    **{("", name): _joined(_needs_input, operands_shapes.broadcast) for name in _MANY},
    ("", "Conv"): operands_windows.convolution(0, 1, 2),
    ("", "ConvInteger"): operands_windows.convolution(0, 1, None),
    ("", "QLinearConv"): operands_windows.convolution(0, 3, 8),
    ("", "ConvTranspose"): operands_windows.convolution(0, 1, 2, transposed=True),
    (_MS, "FusedConv"): operands_windows.convolution(0, 1, 2),
    ("", "MaxPool"): operands_windows.pool,
    ("", "AveragePool"): operands_windows.pool,
    ("", "LpPool"): operands_windows.pool,
    ("", "GlobalAveragePool"): operands_windows.global_pool,
    ("", "GlobalMaxPool"): operands_windows.global_pool,
    ("", "BatchNormalization"): operands_windows.batch_norm,
    ("", "InstanceNormalization"): operands_windows.instance_norm,
    ("", "LayerNormalization"): operands_windows.layer_norm,
    ("", "Reshape"): operands_shapes.reshape,
    ("", "Expand"): operands_shapes.one_dimension(1),
    ("", "Tile"): operands_shapes.one_dimension(1),
    ("", "ConstantOfShape"): operands_shapes.one_dimension(0),
    ("", "Slice"): operands_shapes.slices,
    ("", "Squeeze"): operands_shapes.squeeze,
    ("", "Unsqueeze"): operands_shapes.unsqueeze,
    ("", "ArgMax"): operands_shapes.one_axis(0),
    ("", "ArgMin"): operands_shapes.one_axis(0),
    ("", "GatherElements"): operands_shapes.one_axis(0),
    ("", "ScatterElements"): operands_shapes.one_axis(0),
    ("", "Split"): operands_shapes.one_axis(0),
    ("", "Transpose"): operands_shapes.transpose,
    ("", "Concat"): _joined(_needs_input, operands_shapes.concat),
    ("", "Clip"): operands_shapes.clip_limits,
    ("", "Gather"): operands_shapes.gather,
    ("", "Cast"): operands_shapes.cast_type,
    ("", "MatMul"): operands_shapes.matmul(0, 1),
    ("", "MatMulInteger"): operands_shapes.matmul(0, 1),
    ("", "QLinearMatMul"): operands_shapes.matmul(0, 3),
    (_MS, "MatMulIntegerToFloat"): operands_shapes.matmul(0, 1),
    ("", "Resize"): operands_shapes.resize,
    ("", "LSTM"): operands_learned.recurrent(4),
    ("", "GRU"): operands_learned.recurrent(3),
    ("", "RNN"): operands_learned.recurrent(1),
    (_MS, "DynamicQuantizeLSTM"): operands_learned.recurrent(4, quantized=True),
    ("ai.onnx.ml", "Scaler"): operands_learned.scaler,
    ("ai.onnx.ml", "LinearClassifier"): operands_learned.linear_classifier,
    ("ai.onnx.ml", "TreeEnsembleClassifier"): operands_learned.tree("class"),
    ("ai.onnx.ml", "TreeEnsembleRegressor"): operands_learned.tree("target"),
    ("ai.onnx.ml", "ZipMap"): operands_learned.zip_map,
}
