"""Sequences and optionals, texts, and what learns from tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dld_tui.core.model.shapes.call import Call
from dld_tui.core.model.shapes.rules.elementwise import copied, of_sizes
from dld_tui.core.model.shapes.size import UNKNOWN, Size, number_of
from dld_tui.core.model.shapes.value import NOTHING, Value, in_common, scalar, sequence

_MANY = 64
"""Items of a sequence that are followed one by one."""


def _constructed(c: Call) -> Sequence[Value]:
    return [sequence([Value(value.dims, value.values()) for value in c.inputs])]


def _empty(c: Call) -> Sequence[Value]:
    return [sequence(())]


def _place(c: Call, at: int, count: int) -> int | None:
    """Return the place that an input names, counted from the start."""
    if not c.has(at):
        return None
    place = number_of(c.element(at))
    return None if place is None else int(place) % (count or 1) if place < 0 else int(place)


def _inserted(c: Call) -> Sequence[Value]:
    before, new = c.input(0), Value(c.dims(1), c.values(1))
    if before.items is None:
        known = in_common([Value(before.dims), Value(new.dims)])
        return [Value(known.dims if before.is_sequence else None, is_sequence=True)]
    items = list(before.items)
    if c.has(2):
        place = number_of(c.element(2))
        if place is None:
            return [Value(sequence([*items, new]).dims, is_sequence=True)]
        at = int(place) + (len(items) if place < 0 else 0)
    else:
        at = len(items)
    items.insert(at, new)
    return [sequence(items)]


def _erased(c: Call) -> Sequence[Value]:
    before = c.input(0)
    if before.items is None or (c.has(1) and number_of(c.element(1)) is None):
        return [Value(before.dims, is_sequence=True)]
    items = list(before.items)
    del items[_place(c, 1, len(items)) if c.has(1) else -1]  # type: ignore[arg-type]
    return [sequence(items)]


def _at(c: Call) -> Sequence[Value]:
    before = c.input(0)
    if before.items is None or number_of(c.element(1)) is None:
        return [Value(before.dims)]
    return [before.items[_place(c, 1, len(before.items)) or 0]]


def _length(c: Call) -> Sequence[Value]:
    items = c.input(0).items
    return [scalar(UNKNOWN if items is None else len(items))]


def _split_to(c: Call) -> Sequence[Value]:
    """SplitToSequence: in ones, in parts of one size, or in parts of given sizes."""
    dims = c.dims()
    if dims is None:
        return [Value(is_sequence=True)]
    axis = c.number("axis", 0) % len(dims)
    size = number_of(dims[axis])
    keep, given = bool(c.number("keepdims", 1)), c.dims(1)

    def part(of: Size) -> Value:
        if not c.has(1) and not keep:
            return Value((*dims[:axis], *dims[axis + 1 :]))
        return Value((*dims[:axis], of, *dims[axis + 1 :]))

    if not c.has(1):
        parts: list[Size] | None = None if size is None or size > _MANY else [1] * int(size)
    elif given == ():
        wide = number_of(c.element(1))
        parts = None
        if wide and size is not None and size <= _MANY * wide:
            parts = [min(wide, size - begin) for begin in range(0, int(size), int(wide))]
    else:
        sizes = of_sizes(c, 1)
        parts = None if sizes is None or len(sizes) > _MANY else list(sizes)
    if parts is None:
        return [Value(part(UNKNOWN if c.has(1) else 1).dims, is_sequence=True)]
    return [sequence([part(of) for of in parts])]


def _joined(c: Call) -> Sequence[Value]:
    """ConcatFromSequence: along an axis, or a new one."""
    before, axis, is_new = c.input(0), c.number("axis", 0), bool(c.number("new_axis", 0))
    dims, items = before.dims, before.items
    if dims is None:
        return [NOTHING]
    if is_new:
        at = axis % (len(dims) + 1)
        return [Value((*dims[:at], UNKNOWN if items is None else len(items), *dims[at:]))]
    at = axis % len(dims)
    total: Size = UNKNOWN
    if items is not None and all(item.dims is not None for item in items):
        total = sum(item.dims[at] for item in items if item.dims is not None)
    return [Value((*dims[:at], total, *dims[at + 1 :]))]


def _has_element(c: Call) -> Sequence[Value]:
    return [Value(())]


def _split_text(c: Call) -> Sequence[Value]:
    dims = c.dims()
    return [Value(None if dims is None else (*dims, UNKNOWN)), Value(dims)]


def _normalised_text(c: Call) -> Sequence[Value]:
    """StringNormalizer: without stop words nothing is taken away."""
    dims = c.dims()
    proto = c.attribute("stopwords")
    if dims is None or proto is None or not proto.strings:
        return [Value(dims)]
    return [Value((*dims[:-1], UNKNOWN))]


def _counted_text(c: Call) -> Sequence[Value]:
    """TfIdfVectorizer: one weight for each n-gram of the pool."""
    dims, indexes = c.dims(), c.numbers("ngram_indexes")
    if not dims or not indexes:
        return [NOTHING]
    return [Value((*dims[:-1], max(indexes) + 1))]


def _tokens(c: Call) -> Sequence[Value]:
    return _split_text(c)[:1]


STANDARD: dict[str, Callable[[Call], Sequence[Value]]] = {
    "SequenceConstruct": _constructed, "SequenceEmpty": _empty, "SequenceInsert": _inserted,
    "SequenceErase": _erased, "SequenceAt": _at, "SequenceLength": _length,
    "SplitToSequence": _split_to, "ConcatFromSequence": _joined,
    "Optional": copied, "OptionalGetElement": copied, "OptionalHasElement": _has_element,
    "StringSplit": _split_text, "StringNormalizer": _normalised_text,
    "TfIdfVectorizer": _counted_text,
}  # fmt: skip
"""By operator of ai.onnx."""


def _hashed(c: Call) -> Sequence[Value]:
    """NGramHashMapping: so many hashes for each token, and the tokens that the next call needs."""
    dims, past = c.dims(0), c.number("max_ngram_size", 2) - 1
    if not dims:
        return [NOTHING, NOTHING]
    result_dims = (*dims, past * c.number("n_head_per_ngram", 1))
    batch = c.dims(3)
    rows = dims[0]
    if c.operator.startswith("Varlen"):
        rows = UNKNOWN if not batch else batch[0] - 1
    return [Value(result_dims), Value((rows, past)), NOTHING, NOTHING]


def _unrepeated(c: Call) -> Sequence[Value]:
    return [Value(c.dims(1))]


CONTRIB: dict[str, Callable[[Call], Sequence[Value]]] = {
    "Tokenizer": _tokens, "NGramHashMapping": _hashed, "VarlenNGramHashMapping": _hashed,
    "NGramRepeatBlock": _unrepeated,
}  # fmt: skip
"""By operator of com.microsoft."""


def _same(c: Call) -> Sequence[Value]:
    return [Value(c.dims())]


def _rows(c: Call) -> Size:
    dims = c.dims()
    if not dims:
        return UNKNOWN
    return dims[0] if len(dims) > 1 else 1


def _classified(c: Call) -> Sequence[Value]:
    """Classifiers: a label and the scores of each row."""
    labels = 0
    for name in ("classlabels_ints", "classlabels_strings", "classlabels_int64s"):
        proto = c.attribute(name)
        labels = max(labels, 0 if proto is None else len(proto.ints) or len(proto.strings))
    rows = _rows(c)
    return [Value((rows,)), Value((rows, labels if labels > 1 else UNKNOWN))]


def _regressed(c: Call) -> Sequence[Value]:
    targets = c.number("n_targets", 0) or c.number("targets", 0)
    return [Value((_rows(c), targets or (1 if c.operator != "TreeEnsemble" else UNKNOWN)))]


def _one_hot_encoded(c: Call) -> Sequence[Value]:
    dims = c.dims()
    protos = [c.attribute(name) for name in ("cats_int64s", "cats_strings")]
    count = max(len(p.ints) or len(p.strings) for p in protos if p is not None)
    return [Value(None if dims is None else (*dims, count))]


def _extracted(c: Call) -> Sequence[Value]:
    """ArrayFeatureExtractor: some of the last axis."""
    dims, index = c.dims(0), c.dims(1)
    if not dims or index is None:
        return [NOTHING]
    count: Size = index[-1] if index else 1
    return [Value((*(dims[:-1] if len(dims) > 1 else (1,)), count))]


def _joined_features(c: Call) -> Sequence[Value]:
    sizes = c.numbers("inputdimensions")
    return [Value((_rows(c), UNKNOWN if sizes is None else sum(sizes)))]


def _trained(c: Call) -> Sequence[Value]:
    """Adam and the like: rate and step, then weights, gradients, and what is kept of each."""
    kept = 3 if c.operator == "Adam" else 2
    count = c.outputs // kept
    before = [*c.inputs[2 : 2 + count], *c.inputs[2 + 2 * count :]]
    return [Value(value.dims) for value in before]


def _gradient(c: Call) -> Sequence[Value]:
    return [Value(c.dims(at)) for at in range(c.outputs)]


TRAINING: dict[str, Callable[[Call], Sequence[Value]]] = {
    **dict.fromkeys(("Adagrad", "Adam", "Momentum"), _trained), "Gradient": _gradient,
}  # fmt: skip
"""By operator of ai.onnx.preview.training."""

MACHINE_LEARNING: dict[str, Callable[[Call], Sequence[Value]]] = {
    **dict.fromkeys(("Binarizer", "Imputer", "LabelEncoder", "Normalizer", "Scaler",
                     "CategoryMapper"), _same),
    **dict.fromkeys(("LinearClassifier", "SVMClassifier", "TreeEnsembleClassifier"), _classified),
    **dict.fromkeys(("LinearRegressor", "SVMRegressor", "TreeEnsembleRegressor", "TreeEnsemble"),
                    _regressed),
    "OneHotEncoder": _one_hot_encoded, "ArrayFeatureExtractor": _extracted,
    "FeatureVectorizer": _joined_features,
}  # fmt: skip
"""By operator of ai.onnx.ml."""
