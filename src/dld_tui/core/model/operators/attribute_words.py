"""The texts that attributes of operators may have, and what their whole numbers mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dld_tui.core.model.tensors.value_types import dtype_name, dtype_number, dtype_of

if TYPE_CHECKING:
    from dld_tui.core.model.operators.schema import OperatorSchema

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


_VERSIONS: dict[tuple[str, str], dict[str, tuple[int, int | None]]] = {
    ("GridSample", "mode"): {
        "linear": (20, None), "cubic": (20, None), "bilinear": (16, 19), "bicubic": (16, 19),
    },
    ("Pad", "mode"): {"wrap": (19, None)},
    ("Resize", "mode"): {"cubic": (11, None)},
    ("Resize", "coordinate_transformation_mode"): {
        "half_pixel_symmetric": (19, None), "tf_half_pixel_for_nn": (11, 12),
    },
    ("ScatterElements", "reduction"): {"min": (18, None), "max": (18, None)},
    ("ScatterND", "reduction"): {"min": (18, None), "max": (18, None)},
    ("Upsample", "mode"): {"linear": (7, None), "bilinear": (1, 6)},
}  # fmt: skip
"""The first and the last opset with a text, of operators of ai.onnx, where not all have it."""


def attribute_words(
    op_type: str, domain: str, attribute: str, version: int | None = None
) -> tuple[str, ...]:
    """Return the texts that an attribute may have; none where any text will do.

    Args:
        op_type: The operator.
        domain: Its operator set, ``""`` for ai.onnx.
        attribute: The attribute.
        version: Only those of this opset; None for those of any.
    """
    words = _WORDS.get((domain, op_type), {}).get(attribute, ())
    limits = {} if domain else _VERSIONS.get((op_type, attribute), {})
    return tuple(word for word in words if _is_in(version, *limits.get(word, (0, None))))


def _is_in(version: int | None, first: int, last: int | None) -> bool:
    return version is None or (first <= version and (last is None or version <= last))


_OUTPUT_TYPES = frozenset({"to", "dtype", "output_datatype", "output_dtype"})
_INNER_TYPES = frozenset({"stash_type", "softmax_precision", "precision"})
_INNER = ("float32", "float16", "bfloat16", "float64")
_SWIGLU = ("not fused", "interleaved", "not interleaved")
_ORDERS = ("COL", "ROW", "COL32", "COL4_4R2_8C", "COL32_2R_4R4")
_INTEGER_WORDS: dict[tuple[str, str], tuple[str, ...]] = {
    ("MaxPool", "storage_order"): ("row major", "column major"),
    ("MatMulNBits", "accuracy_level"): ("unset", "float32", "float16", "bfloat16", "int8"),
    ("MatMulBnb4", "quant_type"): ("FP4", "NF4"),
    ("GroupNorm", "activation"): ("None", "SiLU"),
    ("SkipGroupNorm", "activation"): ("None", "SiLU"),
    ("MoE", "swiglu_fusion"): _SWIGLU,
    ("QMoE", "swiglu_fusion"): _SWIGLU,
    **{("QuantizeWithOrder", name): _ORDERS for name in ("order_input", "order_output")},
}
"""What whole numbers from 0 on mean, in the words of the schemas' texts."""


def _type_words(attribute: str, schema: OperatorSchema) -> tuple[str, ...]:
    """Return the element types that an attribute can mean; none where it means no type."""
    if attribute in _INNER_TYPES:
        return _INNER
    if attribute not in _OUTPUT_TYPES:
        return ()
    names = [name for formal in schema.outputs[:1] for name in formal.types]
    words = [dtype_of(name.removeprefix("seq(").removesuffix("))") + ")"
                      if name.startswith("seq(") else name) for name in names]  # fmt: skip
    return tuple(word for word in dict.fromkeys(words) if word is not None)


def integer_words(attribute: str, schema: OperatorSchema | None) -> dict[str, int]:
    """Return what whole numbers in an attribute mean, by their words; none if they are counts.

    Args:
        attribute: The attribute, of kind ``int``.
        schema: Its operator, which tells the types of outputs; None where it is not known.
    """
    if schema is None or (known := schema.attribute(attribute)) is None or known.kind != "int":
        return {}
    types = _type_words(attribute, schema)
    if types:
        numbers = {word: dtype_number(word) for word in types}
        return {word: number for word, number in numbers.items() if number is not None}
    words = _INTEGER_WORDS.get((schema.name, attribute), ())
    return {word: number for number, word in enumerate(words)}


def integer_word(attribute: str, number: int, schema: OperatorSchema | None) -> str | None:
    """Return what a whole number in an attribute means, such as ``float32``; None of a count."""
    words = integer_words(attribute, schema)
    if not words or schema is None:
        return None
    if _type_words(attribute, schema):
        name = dtype_name(number)
        return name if number and dtype_number(name) else None
    return next((word for word, meant in words.items() if meant == number), None)


def integer_text(attribute: str, text: str, schema: OperatorSchema | None) -> str:
    """Return what was typed as a number where it is a word for one, else as it is."""
    words = integer_words(attribute, schema)
    if not words or schema is None:
        return text
    plain = text.strip().strip("'\"")
    number = next((n for word, n in words.items() if word.lower() == plain.lower()), None)
    if number is None and _type_words(attribute, schema):
        number = dtype_number(plain)
    return text if number is None else str(number)


class Coded(int):
    """A whole number of an attribute that stands for a word, which it equals, too."""

    word: str
    _text: Callable[[str], str]

    @classmethod
    def of(cls, attribute: str, number: int, schema: OperatorSchema | None) -> int:
        """Return a number with its word; the plain number where it has none."""
        word = integer_word(attribute, number, schema)
        if word is None:
            return number
        coded = cls(number)
        coded.word = word
        coded._text = lambda text: integer_text(attribute, text, schema)
        return coded

    def means(self, text: str) -> bool:
        """Return whether a text is a word for this number."""
        return self._text(text) == str(int(self))


def is_default_word(attribute: str, text: str) -> bool:
    """Return whether readers take a text that is none of the words for the default."""
    return attribute == "reduction" or (attribute in ("auto_pad", "nearest_mode") and not text)
