"""Rules about what single kernels of ONNX Runtime refuse, most of them as patterns of shapes.

A pattern says what the dimensions of each input must be: a number, a name, whose dimensions must
all be the same, or ``_`` for any; ``*NAME`` at the end stands for all that follow, ``*`` for
any. An empty part allows everything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TypeAlias

import numpy as np
from onnx import TensorProto

from dld_tui.core import fmt
from dld_tui.core.checks.calls import Call, Dims
from dld_tui.core.checks.operands import VALUE, Said, differ, dims_text, sizes_text, wrong

Rule: TypeAlias = Callable[[Call], Said]


def check_kernel(call: Call) -> Said:
    """Yield what the kernel of a call will refuse."""
    for name, least, most in _NUMBERS.get((call.domain, call.op_type), ()):
        value = call.attribute(name)
        if most != _ANY and isinstance(value, int):
            value = (value + (1 << 31)) % (1 << 32) - (1 << 31)  # only 32 bits are looked at
        if isinstance(value, int) and not least <= value <= most:
            text = "must be positive" if most == _ANY else f"takes {least} to {most}"
            yield VALUE, f"Attribute {name} is {value}, it {text}"
    for rule in _RULES.get((call.domain, call.op_type), ()):
        yield from rule(call)


def shapes(pattern: str) -> Rule:
    """Return the rule that the inputs of a call have these dimensions."""
    wanted = [part.split() for part in pattern.split("|")]

    def check(call: Call) -> Said:
        yield from _compared([call.dims(index) for index in range(len(wanted))], wanted, {})

    return check


def _compared(
    found: Iterable[Dims | None], wanted: list[list[str]], known: dict[str, int | Dims]
) -> Said:
    for index, (dims, tokens) in enumerate(zip(found, wanted, strict=True)):
        if dims is None or not tokens:
            continue
        rest = tokens[-1] if tokens[-1].startswith("*") else None
        names = tokens[:-1] if rest is not None else tokens
        fits = len(dims) == len(names) or (rest is not None and len(dims) > len(names))
        for name, dim in zip(names, dims, strict=False):
            size = int(name) if name.isdecimal() else known.get(name)
            if name != "_" and size is None and dim is not None:
                known[name] = dim
            fits = fits and not (isinstance(size, int) and differ(size, dim))
        if fits and rest not in (None, "*"):
            tail, before = dims[len(names) :], known.setdefault(str(rest), dims[len(names) :])
            assert isinstance(before, tuple)
            fits = len(tail) == len(before) and not any(map(differ, tail, before))
        if not fits:
            yield wrong(f"Input {index} is {dims_text(dims)}, it must be {_text(tokens, known)}")
            return


def _text(tokens: list[str], known: dict[str, int | Dims]) -> str:
    parts: list[str] = []
    for token in tokens:
        value = known.get(token, token)
        if isinstance(value, tuple):
            parts += ["?" if dim is None else str(dim) for dim in value]
        else:
            parts.append("?" if value == "_" else "…" if str(value) == "*" else str(value))
    return f"[{', '.join(parts)}]"


def single(*indexes: int, ranks: int = 64) -> Rule:
    """Return the rule that inputs have one element, and a rank of `ranks` at most."""

    def check(call: Call) -> Said:
        for index in indexes:
            dims = call.dims(index)
            if dims is None or None in dims:
                continue
            if math.prod(dim or 0 for dim in dims) != 1 or len(dims) > ranks:
                yield wrong(f"Input {index} is {dims_text(dims)}, it must have one element")

    return check


def positive(*indexes: int, least: int = 1) -> Rule:
    """Return the rule that the elements of inputs are above 0, or 0 and above."""

    def check(call: Call) -> Said:
        for index in indexes:
            value = call.value(index)
            found = min(value.ravel().tolist(), default=1) if value is not None else 1
            if isinstance(found, int | float) and (found < 0 or (found == 0 and least > 0)):
                yield wrong(f"Input {index} has {found}, all must be positive")

    return check


def _axis(call: Call, rank: int, default: int = 0) -> int | None:
    axis = call.attribute("axis", default)
    return axis % rank if isinstance(axis, int) and -rank <= axis < rank else None


def elements(call: Call) -> Said:
    """Yield what is wrong with GatherElements, ScatterElements and Scatter."""
    data, indices = call.dims(0), call.dims(1)
    if data is None or indices is None:
        return
    if len(data) != len(indices):
        yield wrong(f"The data is {dims_text(data)}, the indices {dims_text(indices)}")
        return
    axis = _axis(call, len(data))
    for place, (size, taken) in enumerate(zip(data, indices, strict=True)):
        if place != axis and size is not None and taken is not None and taken > size:
            yield wrong(f"Indices of {dims_text(indices)} do not fit into {dims_text(data)}")
            return
    if axis is not None and 0 not in indices and None not in indices:
        if data[axis] == 0:
            yield wrong(f"{dims_text(data)} has nothing that indices could name")
        yield from _in_range(call, 1, data[axis])


def _in_range(call: Call, index: int, size: int | None, *, negative: bool = True) -> Said:
    """Yield where the elements of an input are no indices of so many elements."""
    value = call.value(index)
    if size is None or value is None or value.dtype.kind not in "iu" or not value.size:
        return
    least, most = int(value.min()), int(value.max())
    if most >= size or least < (-size if negative else 0):
        yield wrong(f"Index {most if most >= size else least} is outside of {size} elements")


def axis_given(call: Call) -> Said:
    """Yield where an axis that is an input is outside."""
    rank = call.rank(0)
    yield from _in_range(call, 1, rank)


def gemm(call: Call) -> Said:
    """Yield what is wrong with Gemm."""
    a, b, c = call.dims(0), call.dims(1), call.dims(2)
    for index, dims in enumerate((a, b)):
        if dims is not None and len(dims) != 2:
            yield wrong(f"Input {index} is {dims_text(dims)}, it must have 2 dimensions")
            return
    if a is None or b is None:
        return
    rows, inner = a[::-1] if call.attribute("transA", 0) else a
    other, columns = b[::-1] if call.attribute("transB", 0) else b
    if differ(inner, other):
        yield wrong(
            f"{dims_text(a)} and {dims_text(b)} cannot be multiplied: {inner} is not {other}"
        )
    elif c is not None and (call.version >= 7 or call.attribute("broadcast", 0)):
        full = (rows, columns)[2 - len(c) :]
        fits = len(c) <= 2 and all(
            have == 1 or not differ(have, want) for have, want in zip(c, full, strict=True)
        )
        if not fits:
            yield wrong(f"Input C is {dims_text(c)} and does not fit {dims_text((rows, columns))}")


def channels_norm(call: Call) -> Said:
    """Yield what is wrong with GroupNormalization."""
    groups = call.attribute("num_groups")
    data = call.dims(0)
    channels = call.dim(0, 1)
    if isinstance(groups, int) and channels is not None and (groups < 1 or channels % groups):
        yield wrong(f"{channels} channels cannot be put into {groups} groups")
        return
    size = groups if call.version < 21 else data[1] if data and len(data) > 1 else None
    for index in (1, 2):
        dims = call.dims(index)
        if dims is None or None in dims or not isinstance(size, int):
            continue
        if math.prod(dim or 0 for dim in dims) != size:
            yield wrong(f"Input {index} is {dims_text(dims)}, it must be [{size}]")


def needs(name: str) -> Rule:
    """Return the rule that an attribute is there, which ONNX leaves open."""

    def check(call: Call) -> Said:
        if call.attribute(name) is None:
            yield VALUE, f"Attribute {name} is needed"

    return check


def not_empty(call: Call) -> Said:
    """Yield data of a pool that are empty otherwise than by their batch."""
    dims = call.dims(0)
    if dims and 0 in dims[1:] and dims[0]:
        yield wrong(f"The data is {dims_text(dims)}, only the batch may be 0")


def element_type(call: Call) -> Said:
    """Yield a dtype that is none."""
    if call.attribute("dtype") == TensorProto.UNDEFINED:
        yield VALUE, "Attribute dtype is 0, which is no element type"


def n_grams(call: Call) -> Said:
    """Yield what is wrong with the lengths of TfIdfVectorizer."""
    least, most = call.attribute("min_gram_length"), call.attribute("max_gram_length")
    counts = call.attribute("ngram_counts")
    if isinstance(least, int) and isinstance(most, int) and not 0 < least <= most:
        yield VALUE, f"min_gram_length is {least} and max_gram_length {most}"
    elif isinstance(most, int) and counts is not None and len(counts) < most:
        yield VALUE, f"ngram_counts has {len(counts)} values, max_gram_length is {most}"


def upsample(call: Call) -> Said:
    """Yield scales of Upsample that are not one for each dimension."""
    rank, dims = call.rank(0), call.dims(1)
    if call.version < 9:
        count: int | None = len(call.attribute("scales") or ())
    else:
        count = None if dims is None or None in dims else math.prod(dim or 0 for dim in dims)
    if rank is not None and count is not None and count != rank:
        yield wrong(f"{fmt.plural(count, 'scale')} for {fmt.plural(rank, 'dimension')}")


def resized(call: Call) -> Said:
    """Yield sizes and scales of Resize that leave nothing."""
    dims = call.dims(0)
    if call.version < 11 or dims is None or None in dims or 0 in dims:
        return
    yield from positive(2, 3)(call)


def features(call: Call) -> Said:
    """Yield an index of ArrayFeatureExtractor that is outside."""
    yield from _in_range(call, 1, call.dim(0, -1), negative=False)


def _of_second(index: int, second: int) -> Rule:
    """Return the rule for scales and zero points of the second factor of a product."""

    def check(call: Call) -> Said:
        dims, b = call.dims(index), call.dims(second)
        if dims is None or b is None or None in dims or None in b or len(b) < 2:
            return
        fits = dims in ((), (1,)) or dims == (*b[:-2], 1, b[-1])
        if not fits and not (len(b) == 2 and dims == b[-1:]):
            yield wrong(f"Input {index} is {dims_text(dims)} and does not fit {dims_text(b)}")

    return check


def _of_filters(*indexes: int) -> Rule:
    """Return the rule for scales and zero points of filters."""

    def check(call: Call) -> Said:
        count = call.dim(3, 0)
        for index in indexes:
            dims = call.dims(index)
            if dims is None or None in dims or dims in ((), (1,)):
                continue
            if len(dims) != 1 or differ(dims[0], count):
                yield wrong(f"Input {index} is {dims_text(dims)}, needed: one element or [{count}]")

    return check


def rotary(call: Call) -> Said:
    """Yield what is wrong with RotaryEmbedding."""
    x, heads = call.dims(0), call.attribute("num_heads", 0)
    dim = call.attribute("rotary_embedding_dim", 0)
    if x is None or len(x) not in (3, 4):
        if x is not None:
            yield wrong(f"The data is {dims_text(x)}, it must have 3 or 4 dimensions")
        return
    if len(x) == 3 and heads <= 0:
        yield VALUE, "Attribute num_heads must be positive for data of 3 dimensions"
        return
    hidden = x[-1] if len(x) == 4 or x[-1] is None else x[-1] // heads
    if len(x) == 3 and x[-1] is not None and x[-1] % heads:
        yield wrong(f"{x[-1]} elements cannot be shared by {heads} heads")
        return
    if dim > 0 and hidden is not None and dim > hidden:
        yield VALUE, f"Attribute rotary_embedding_dim is {dim}, a head has {hidden} elements"
        return
    half = dim // 2 if dim > 0 else None if hidden is None else hidden // 2
    known: dict[str, int | Dims] = {} if half is None else {"half": half}
    for name, size in (("batch", x[0]), ("length", x[-2] if len(x) == 4 else x[1])):
        if size is not None:
            known[name] = size
    cache = ["n", "half"] if call.has(3) else ["batch", "length", "half"]
    patterns = [[], cache, cache, ["batch", "length"] if call.has(3) else []]
    yield from _compared([call.dims(index) for index in range(4)], patterns, known)


def attention(call: Call) -> Said:
    """Yield what is wrong with Attention."""
    q, k, v = (call.dims(index) for index in range(3))
    if q is None or k is None or v is None:
        return
    heads, kv_heads = call.attribute("q_num_heads", 0), call.attribute("kv_num_heads", 0)
    if len(q) == 4:
        pattern = [["B", "H", "Q", "D"], ["B", "G", "L", "D"], ["B", "G", "L", "E"]]
        heads, kv_heads = heads or q[1], kv_heads or k[1]
        width, value_width = q[3], v[3]
        known: dict[str, int | Dims] = {
            name: size for name, size in (("H", heads), ("G", kv_heads)) if size is not None
        }
    elif len(q) == 3:
        if heads < 1 or kv_heads < 1:
            yield VALUE, "q_num_heads and kv_num_heads are needed for data of 3 dimensions"
            return
        pattern = [["B", "Q", "_"], ["B", "L", "_"], ["B", "_", "_"]]
        known = {"H": heads, "G": kv_heads}
        for what, size, count in (("Q", q[2], heads), ("V", v[2], kv_heads)):
            if size is not None and size % count:
                yield wrong(f"{what} has {size} elements for {count} heads")
                return
        width = None if q[2] is None else q[2] // heads
        value_width = None if v[2] is None else v[2] // kv_heads
    else:
        yield wrong(f"Input 0 is {dims_text(q)}, it must have 3 or 4 dimensions")
        return
    if heads is not None and kv_heads and heads % kv_heads:
        yield wrong(f"{heads} heads of queries cannot share {kv_heads} heads of keys")
        return
    if width is not None:
        known["D"] = width
    if value_width is not None:
        known["E"] = value_width
    past = [["B", "G", "P", "D"], ["B", "G", "P", "E"]]
    found = [q, k, v, None, call.dims(4), call.dims(5)]
    problem = next(_compared(found, [*pattern, [], *past], known), None)
    if problem is not None:
        yield problem
        return
    mask, length = call.dims(3), known.get("L")
    counts = call.value(6)
    if call.rank(6) not in (None, 1):
        yield wrong(f"Input 6 is {dims_text(call.dims(6) or ())}, it must have one dimension")
    if counts is not None and counts.size and isinstance(length, int):
        yield from _in_range(call, 6, length + 1, negative=False)
    if mask is None or not isinstance(length, int):
        return
    before = known.get("P", None if call.has(4) else 0)
    total = length + before if isinstance(before, int) else None
    queries = known.get("Q")
    fits = 2 <= len(mask) <= 4 and not differ(
        mask[-2], queries if isinstance(queries, int) else None
    )
    if not fits or (call.version < 24 and differ(mask[-1], total)):
        yield wrong(f"The mask is {dims_text(mask)}, needed: [{queries}, {total or '?'}]")


def scattered(call: Call) -> Said:
    """Yield what is wrong with TensorScatter."""
    cache, update = call.dims(0), call.dims(1)
    if not cache or not update or len(cache) != len(update):
        return
    axis = _axis(call, len(cache), -2)
    size = None if axis is None else cache[axis]
    taken = None if axis is None else update[axis]
    places = call.value(2)
    if call.attribute("mode", "linear") != "linear" or places is None or not places.size:
        return
    if size is not None and taken is not None and int(places.max()) + taken > size:
        yield wrong(f"{taken} elements from {places.max()} on do not fit into {size}")


def transform(call: Call) -> Said:
    """Yield what is wrong with STFT."""
    dims, window = call.dims(0), call.dim(2, 0)
    frame = call.value(3)
    if not call.has(2) and not call.has(3):
        yield wrong("It needs a window or a frame length")
        return
    length = window if window is not None else int(frame.ravel()[0]) if frame is not None else None
    if dims is None:
        return
    if len(dims) not in (2, 3) or (len(dims) == 3 and dims[2] not in (1, 2, None)):
        yield wrong(f"The signal is {dims_text(dims)}, it must be [batch, length, 1 or 2]")
    elif length is not None and dims[1] is not None and length > dims[1]:
        yield wrong(f"A frame of {length} does not fit into a signal of {dims[1]}")


def grid(call: Call) -> Said:
    """Yield matrices of AffineGrid that do not fit the size."""
    size, theta = call.value(1), call.dims(0)
    count = call.dim(1, 0) if size is None else size.size
    if theta is None or count not in (4, 5):
        return
    batch = None if size is None else int(size.ravel()[0])
    wanted = (batch, count - 2, count - 1)
    if len(theta) != 3 or any(map(differ, theta, wanted)):
        yield wrong(f"Input theta is {dims_text(theta)}, it must be {dims_text(wanted)}")


def columns(call: Call) -> Said:
    """Yield blocks of Col2Im that are larger than the padded image."""
    image, block = call.value(1), call.value(2)
    if image is None or block is None or image.shape != block.shape:
        return
    for name in ("strides", "dilations"):
        if any(step <= 0 for step in call.attribute(name) or ()):
            yield VALUE, f"Attribute {name} is {list(call.attribute(name))}, all must be positive"
            return
    count = image.size
    pads = np.asarray(call.attribute("pads") or [0] * 2 * count)
    steps = np.asarray(call.attribute("dilations") or [1] * count)
    if pads.size != 2 * count or steps.size != count:
        return
    room = image + pads[:count] + pads[count:]
    spare = room - steps * (block - 1) - 1
    if bool((spare < 0).any()):
        yield wrong(f"A block of {sizes_text(block.tolist())} does not fit into the padded image")
        return
    strides = np.asarray(call.attribute("strides") or [1] * count)
    blocks, given = int(np.prod(spare // strides + 1)), call.dim(0, -1)
    if differ(given, blocks):
        yield wrong(f"The data has {given} blocks, the image has room for {blocks}")


def mel_bins(call: Call) -> Said:
    """Yield edges of MelWeightMatrix above the frequencies that there are."""
    values = [call.value(index) for index in (1, 2, 4)]
    if any(value is None or value.size != 1 for value in values):
        return
    length, rate, edge = (float(value.item()) for value in values if value is not None)
    if rate <= 0 or length < 0 or (length + 1) * edge / rate >= length // 2 + 1:
        yield wrong(
            f"The highest edge is {edge:g} Hz, at {rate:g} samples and length {length:g} there is"
            " no such frequency"
        )


_ANY = 1 << 62
_NUMBERS: dict[tuple[str, str], tuple[tuple[str, int, int], ...]] = {
    ("", "CumSum"): (("exclusive", 0, 1), ("reverse", 0, 1)),
    ("", "LRN"): (("size", 1, _ANY),),
    ("", "Attention"): (("qk_matmul_output_mode", 0, 3),),
    ("ai.onnx.ml", "TreeEnsemble"): (("aggregate_function", 0, 3), ("post_transform", 0, 4)),
}
"""The numbers that attributes take, by operator."""
_REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
_POOLS = ("MaxPool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
_RULES: dict[tuple[str, str], tuple[Rule, ...]] = {
    **{("", f"Reduce{name}"): (shapes("* | _"),) for name in _REDUCTIONS},
    **{("", name): (not_empty,) for name in _POOLS},
    **{("", f"{name}Window"): (single(0),) for name in ("Hann", "Hamming", "Blackman")},
    **{("", name): (needs("hidden_size"),) for name in ("LSTM", "GRU", "RNN")},
    **{("", name): (elements, shapes("* | *I | *I")) for name in ("ScatterElements", "Scatter")},
    ("", "GatherElements"): (elements,),
    ("", "CumSum"): (axis_given,),
    ("", "Gemm"): (gemm,),
    ("", "LRN"): (shapes("_ _ _ _"), lambda call: _odd(call, "size")),
    ("", "GroupNormalization"): (channels_norm,),
    ("", "SoftmaxCrossEntropyLoss"): (shapes("N C *D | N *D | C"),),
    ("", "NegativeLogLikelihoodLoss"): (shapes("N C *D | N *D | C"),),
    ("", "NonMaxSuppression"): (shapes("B S 4 | B _ S"),),
    ("", "MaxUnpool"): (shapes("*X | *X"),),
    ("", "TensorScatter"): (scattered,),
    ("", "EyeLike"): (element_type, shapes("_ _")),
    ("", "RegexFullMatch"): (needs("pattern"),),
    ("", "TfIdfVectorizer"): (n_grams,),
    ("", "Upsample"): (upsample,),
    ("", "Resize"): (resized,),
    ("ai.onnx.ml", "ArrayFeatureExtractor"): (features,),
    ("", "QLinearConv"): (single(1, 2, 6, 7, ranks=1), _of_filters(4, 5)),
    ("", "ConvInteger"): (single(2, 3, ranks=1),),
    ("", "QLinearMatMul"): (single(1, 2, 6, 7, ranks=1), _of_second(4, 3), _of_second(5, 3)),
    ("", "MatMulInteger"): (single(2, ranks=1), _of_second(3, 1)),
    ("", "RotaryEmbedding"): (rotary,),
    ("", "Attention"): (attention,),
    ("", "STFT"): (single(1, 3), positive(1, 3), transform),
    ("", "AffineGrid"): (grid,),
    ("", "Col2Im"): (columns,),
    ("", "CenterCropPad"): (shapes("* | _"),),
    ("", "Split"): (shapes("* | _"),),
    ("", "TopK"): (positive(1, least=0),),
    ("", "MelWeightMatrix"): (single(0, 1, 2, 3, 4), mel_bins),
}


def _odd(call: Call, name: str) -> Said:
    value = call.attribute(name)
    if isinstance(value, int) and value > 0 and value % 2 == 0:
        yield VALUE, f"Attribute {name} is {value}, it must be odd"
