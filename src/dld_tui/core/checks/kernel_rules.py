"""Rules on what single kernels of ONNX Runtime refuse, by operator (`_RULES`, at the end).

Rules that many kernels share come first, most of them as patterns of shapes. A pattern says what
the dimensions of each input must be: a number, a name, whose dimensions must all be the same, or
``_`` for any; ``*NAME`` at the end stands for all that follow, ``*`` for any. An empty part allows
everything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from onnx import TensorProto

from dld_tui.core import fmt
from dld_tui.core.checks.calls import Call, Dims, operand_of
from dld_tui.core.checks.operands import (
    VALUE,
    Problems,
    axis_attribute,
    convolution,
    differ,
    dims_text,
    like,
    one_axis,
    sizes_text,
    wrong,
)
from dld_tui.core.text import clip, visible

# --- rules that many kernels share ----------------------------------------------------------------

Rule: TypeAlias = Callable[[Call], Problems]


def shapes(pattern: str) -> Rule:
    """Return the rule that the inputs of a call have these dimensions."""
    wanted = [part.split() for part in pattern.split("|")]

    def check(call: Call) -> Problems:
        yield from compare_shapes([call.dims(index) for index in range(len(wanted))], wanted, {})

    return check


def compare_shapes(
    dims_of_inputs: Iterable[Dims | None], wanted: list[list[str]], known: dict[str, int | Dims]
) -> Problems:
    """Yield the first dimensions that differ from the pattern; add sizes of names to `known`."""
    for index, (dims, tokens) in enumerate(zip(dims_of_inputs, wanted, strict=True)):
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

    def check(call: Call) -> Problems:
        for index in indexes:
            dims = call.dims(index)
            if dims is None or None in dims:
                continue
            if math.prod(dim or 0 for dim in dims) != 1 or len(dims) > ranks:
                yield wrong(f"Input {index} is {dims_text(dims)}, it must have one element")

    return check


def positive(*indexes: int, least: int = 1) -> Rule:
    """Return the rule that the elements of inputs are above 0, or 0 and above."""

    def check(call: Call) -> Problems:
        for index in indexes:
            value = call.value(index)
            least_value = min(value.ravel().tolist(), default=1) if value is not None else 1
            if isinstance(least_value, int | float) and (
                least_value < 0 or (least_value == 0 and least > 0)
            ):
                yield wrong(f"Input {index} has {least_value}, all must be positive")

    return check


def axis_of(call: Call, rank: int, default: int = 0) -> int | None:
    """Return the attribute axis, counted from 0; None where it is outside of the rank."""
    axis = call.attribute("axis", default)
    return axis % rank if isinstance(axis, int) and -rank <= axis < rank else None


def in_range(call: Call, index: int, size: int | None, *, negative: bool = True) -> Problems:
    """Yield a problem where elements of an input are not valid indices for a size."""
    value = call.value(index)
    if size is None or value is None or value.dtype.kind not in "iu" or not value.size:
        return
    least, most = int(value.min()), int(value.max())
    if most >= size or least < (-size if negative else 0):
        yield wrong(f"Index {most if most >= size else least} is outside of {size} elements")


def indices(index: int, axis: int) -> Rule:
    """Return the rule that an input has indices, from 0, of elements along an axis of the data."""
    return lambda call: in_range(call, index, call.dim(0, axis), negative=False)


def needs(name: str) -> Rule:
    """Return the rule that an attribute is there, which ONNX leaves open."""

    def check(call: Call) -> Problems:
        if call.attribute(name) is None:
            yield VALUE, f"Attribute {name} is needed"

    return check


def element_type(name: str) -> Rule:
    """Return the rule that an attribute is an element type; only 32 bits are looked at."""

    def check(call: Call) -> Problems:
        kind = call.attribute(name)
        if isinstance(kind, int) and kind % (1 << 32) == TensorProto.UNDEFINED:
            yield VALUE, f"Attribute {name} is {kind}, which is not an element type"

    return check


# --- attention and its caches ---------------------------------------------------------------------


def rotary_embedding(call: Call) -> Problems:
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
    yield from compare_shapes([call.dims(index) for index in range(4)], patterns, known)


def attention(call: Call) -> Problems:
    """Yield what is wrong with Attention."""
    q, k, v = (call.dims(index) for index in range(3))
    if q is None or k is None or v is None:
        return
    if not len(q) == len(k) == len(v) or 0 in (*q, *k, *v):
        yield wrong(f"{dims_text(q)}, {dims_text(k)} and {dims_text(v)} do not fit each other")
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
        pattern = [["B", "Q", "_"], ["B", "L", "_"], ["B", "L", "_"]]
        known = {"H": heads, "G": kv_heads}
        for label, size, count in (("Q", q[2], heads), ("V", v[2], kv_heads)):
            if size is not None and size % count:
                yield wrong(f"{label} has {size} elements for {count} heads")
                return
        width = None if q[2] is None else q[2] // heads
        value_width = None if v[2] is None else v[2] // kv_heads
        if width is not None and differ(k[2], width * kv_heads):
            yield wrong(f"K has {k[2]} elements, {kv_heads} heads of {width} are needed")
            return
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
    inputs = [q, k, v, None, call.dims(4), call.dims(5)]
    problem = next(compare_shapes(inputs, [*pattern, [], *past], known), None)
    if problem is not None:
        yield problem
        return
    mask, length = call.dims(3), known.get("L")
    counts = call.value(6)
    if call.rank(6) not in (None, 1):
        yield wrong(f"Input 6 is {dims_text(call.dims(6) or ())}, it must have one dimension")
    if counts is not None and counts.size and isinstance(length, int):
        yield from in_range(call, 6, length + 1, negative=False)
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


def attention_numbers(call: Call) -> Problems:
    """Yield numbers that Attention does not take."""
    scale, mode = call.attribute("scale"), call.attribute("qk_matmul_output_mode", 0)
    if isinstance(scale, float) and scale <= 0:
        yield VALUE, f"Attribute scale is {scale:g}, it must be positive"
    mode = (mode + (1 << 31)) % (1 << 32) - (1 << 31)  # only 32 bits are looked at
    if not -1 <= mode <= 3 and any(call.node.output[3:]):
        yield VALUE, f"Attribute qk_matmul_output_mode is {mode}, it takes 0 to 3"


def tensor_scatter(call: Call) -> Problems:
    """Yield what is wrong with TensorScatter."""
    cache, update = call.dims(0), call.dims(1)
    if not cache or not update or len(cache) != len(update):
        return
    axis = axis_of(call, len(cache), -2)
    size = None if axis is None else cache[axis]
    update_size = None if axis is None else update[axis]
    places = call.value(2)
    if size is not None and update_size is not None and update_size > size:
        yield wrong(f"An update of {update_size} does not fit into a cache of {size}")
        return
    if places is None or not places.size:
        return
    if places.min() < 0:
        yield wrong(f"An update is written to {places.min()}")
    elif (
        call.attribute("mode", "linear") == "linear"
        and size is not None
        and update_size is not None
        and int(places.max()) + update_size > size
    ):
        yield wrong(f"{update_size} elements from {places.max()} on do not fit into {size}")


# --- Loop and Scan --------------------------------------------------------------------------------


def loop_inputs(call: Call) -> Problems:
    """Yield inputs of a Loop that are left out, and a condition that its body has otherwise."""
    for index in range(2, len(call.node.input)):
        if not call.has(index):
            yield wrong(f"Input {index} is left out, the loop carries it")
    body, dims = call.attribute("body"), call.dims(1)
    declared = operand_of(body.input[1].type).dims if body and len(body.input) > 1 else None
    if dims is not None and declared is not None and len(dims) != len(declared):
        yield wrong(f"The condition is {dims_text(dims)}, in the body {dims_text(declared)}")


def scan_inputs(call: Call) -> Problems:
    """Yield inputs of the body of a Scan that differ from their declaration."""
    body, before = call.attribute("body"), 1 if call.version < 9 else 0
    if body is None:
        return
    states = len(call.node.input) - before - call.attribute("num_scan_inputs", 0)
    axes = call.attribute("scan_input_axes") or [0] * len(call.node.input)
    for index, info in enumerate(body.input):
        dims, declared = call.dims(index + before), operand_of(info.type).dims
        if dims is not None and before:
            dims = dims[1:]  # the batch
        if dims is not None and 0 <= index - states < len(axes):
            axis = axes[index - states]
            if not -len(dims) <= axis < len(dims):
                yield wrong(f"Axis {axis} of {dims_text(dims)} is scanned")
                return
            if dims[axis] == 0:
                yield wrong(f"Axis {axis} of {dims_text(dims)} has nothing to scan")
            dims = dims[: axis % len(dims)] + dims[axis % len(dims) + 1 :]
        if dims is None or declared is None:
            continue
        if len(dims) != len(declared) or any(map(differ, dims, declared)):
            yield wrong(
                f"Input {index} is {dims_text(dims)} in the body, where {dims_text(declared)} is"
                " declared"
            )


# --- products, indices, signals and texts ---------------------------------------------------------


def gather_elements(call: Call) -> Problems:
    """Yield what is wrong with GatherElements, ScatterElements and Scatter."""
    data, indices = call.dims(0), call.dims(1)
    if data is None or indices is None:
        return
    if len(data) != len(indices):
        yield wrong(f"The data is {dims_text(data)}, the indices {dims_text(indices)}")
        return
    axis = axis_of(call, len(data))
    for place, (size, index_size) in enumerate(zip(data, indices, strict=True)):
        if place != axis and size is not None and index_size is not None and index_size > size:
            yield wrong(f"Indices of {dims_text(indices)} do not fit into {dims_text(data)}")
            return
    if axis is not None and 0 not in indices and None not in indices:
        if data[axis] == 0:
            yield wrong(f"{dims_text(data)} has no elements to index")
        yield from in_range(call, 1, data[axis])


def axis_input(call: Call) -> Problems:
    """Yield where an axis that is an input is outside."""
    rank = call.rank(0)
    yield from in_range(call, 1, rank)


def gemm(call: Call) -> Problems:
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


def division_by_zero(call: Call) -> Problems:
    """Yield a constant that has 0 and that integers are divided by."""
    value = call.value(1)
    if value is not None and value.dtype.kind in "iu" and bool((value == 0).any()):
        yield wrong("Integers are divided by 0")


def arg_reduction(call: Call) -> Problems:
    """Yield an axis of ArgMax and ArgMin without elements."""
    axis = axis_of(call, call.rank(0) or 0)
    if axis is not None and call.dim(0, axis) == 0 and 0 not in _without(call.dims(0), axis):
        yield wrong(f"{dims_text(call.dims(0) or ())} has nothing along axis {axis}")


def _without(dims: Dims | None, axis: int) -> Dims:
    return () if dims is None else (*dims[:axis], *dims[axis + 1 :])


def range_scalars(call: Call) -> Problems:
    """Yield constants of Range that are no scalars: inference refuses them."""
    graph = call.names.graph
    if graph is None or call.version < 11:
        return
    constants = {tensor.name for tensor in graph.initializer}
    constants.update(node.output[0] for node in graph.node if node.op_type == "Constant")
    if not all(name in constants for name in call.node.input):
        return
    for index in range(3):
        if call.rank(index) not in (None, 0):
            yield wrong(f"Input {index} is {dims_text(call.dims(index) or ())}, needed: a scalar")


def string_normalizer(call: Call) -> Problems:
    """Yield texts of StringNormalizer that are no row of one or more."""
    dims = call.dims(0)
    if dims is not None and (len(dims) not in (1, 2) or dims[-1] == 0 or dims[0] == 0):
        yield wrong(f"The texts are {dims_text(dims)}, they must be a row")


def dft_data(call: Call) -> Problems:
    """Yield data of DFT that are neither real nor complex."""
    if call.dim(0, -1) not in (None, 1, 2):
        yield wrong(f"The data is {dims_text(call.dims(0) or ())}, the last must be 1 or 2")


def bool_reduction(call: Call) -> Problems:
    """Yield truths of which there are none along an axis that is reduced."""
    dims, axes = call.dims(0), call.value(1) if call.has(1) else call.attribute("axes")
    if dims is None or call.input(0).dtype != TensorProto.BOOL or (call.has(1) and axes is None):
        return
    places = range(len(dims)) if axes is None else [int(axis) for axis in np.asarray(axes).ravel()]
    if any(dims[axis] == 0 for axis in places):
        yield wrong(f"{dims_text(dims)} has nothing along {sizes_text(places)}")


def keepdims_number(call: Call) -> Problems:
    """Yield keepdims of another number after a Transpose, which is moved behind the reduction."""
    keep = call.attribute("keepdims", 1)
    if keep not in (0, 1) and "Transpose" in call.neighbours()[0]:
        yield VALUE, f"Attribute keepdims is {keep}, after a Transpose it takes 0 and 1"


def split_count(call: Call) -> Problems:
    """Yield more outputs of Split than there are elements."""
    count, axis = call.attribute("num_outputs"), axis_of(call, call.rank(0) or 0)
    size = None if axis is None else call.dim(0, axis)
    if count is not None and size is not None and count > size:
        yield VALUE, f"Attribute num_outputs is {count}, there are {size} elements"


def flatten_axis(call: Call) -> Problems:
    """Yield an axis of Flatten that is outside."""
    yield from axis_attribute(call, call.rank(0), 1, 1)


def gather_nd_batches(call: Call) -> Problems:
    """Yield batch_dims of GatherND that data and indices do not share."""
    count, data, indices = call.attribute("batch_dims", 0), call.dims(0), call.dims(1)
    if data is None or indices is None:
        return
    if not 0 <= count < min(len(data), len(indices)):
        yield VALUE, f"Attribute batch_dims is {count} for {dims_text(data)} {dims_text(indices)}"
    elif None not in (*data[:count], *indices[:count]):
        have, want = (math.prod(dim or 0 for dim in part[:count]) for part in (data, indices))
        if have and want % have:
            yield wrong(f"The batches of {dims_text(indices)} do not fit {dims_text(data)}")


def n_grams(call: Call) -> Problems:
    """Yield what is wrong with the lengths of TfIdfVectorizer."""
    least, most = call.attribute("min_gram_length"), call.attribute("max_gram_length")
    counts = call.attribute("ngram_counts")
    if isinstance(least, int) and isinstance(most, int) and not 0 < least <= most:
        yield VALUE, f"min_gram_length is {least} and max_gram_length {most}"
    elif isinstance(most, int) and counts is not None and len(counts) < most:
        yield VALUE, f"ngram_counts has {len(counts)} values, max_gram_length is {most}"
    elif counts is not None:
        total = len(call.attribute("pool_int64s") or call.attribute("pool_strings") or ())
        for size, (start, end) in enumerate(pairwise((*counts, total)), 1):
            if not 0 <= start <= end <= total or (end - start) % size:
                yield VALUE, f"Elements {start} to {end} of the pool are not grams of {size}"
                return


def second_factor_scales(index: int, second: int) -> Rule:
    """Return the rule for scales and zero points of the second factor of a product."""

    def check(call: Call) -> Problems:
        dims, b = call.dims(index), call.dims(second)
        if dims is None or b is None or None in dims or None in b or len(b) < 2:
            return
        fits = dims in ((), (1,)) or dims == (*b[:-2], 1, b[-1])
        if not fits and not (len(b) == 2 and dims == b[-1:]):
            yield wrong(f"Input {index} is {dims_text(dims)} and does not fit {dims_text(b)}")

    return check


def loss_labels(call: Call) -> Problems:
    """Yield labels of losses that are no numbers of classes, or of weights of classes."""
    labels, ignored = call.value(1), call.attribute("ignore_index")
    sizes = [size for size in (call.dim(0, 1), call.dim(2, 0)) if size is not None]
    if labels is None or not sizes:
        return
    for label in labels.ravel().tolist():
        if label != ignored and not -min(sizes) <= label < min(sizes):
            yield wrong(f"Label {label} is not one of {fmt.plural(min(sizes), 'class', 'classes')}")
            return


def crop_axes(call: Call) -> Problems:
    """Yield axes that are outside of the data."""
    rank = call.rank(0)
    for axis in call.attribute("axes") or ():
        if rank is not None and not -rank <= axis < rank:
            yield VALUE, f"Axis {axis} is outside of {fmt.plural(rank, 'dimension')}"


def sequence_lengths(call: Call) -> Problems:
    """Yield lengths of sequences that are outside of the data."""
    yield from like(call, 4, "Input sequence_lens", (call.dim(0, 1),))
    size = call.dim(0, 0)
    yield from in_range(call, 4, None if size is None else size + 1, negative=False)


def stft(call: Call) -> Problems:
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


def mel_bins(call: Call) -> Problems:
    """Yield edges of MelWeightMatrix where there are no frequencies."""
    values = [call.value(index) for index in range(5)]
    if any(value is not None and value.size != 1 for value in values):
        return
    bins, length, rate, *edges = (None if value is None else value.item() for value in values)
    if bins is not None and bins < 0:
        yield wrong(f"The number of bins is {bins}")
    if length is None or rate is None:
        return
    count = int(length / 2) + 1  # as in C++, which divides towards 0
    if count < 1:
        yield wrong(f"A length of {length:g} has no frequencies")
        return
    for name, edge in zip(("lowest", "highest"), edges, strict=True):
        if edge is not None and not (rate and 0 <= (length + 1) * edge // rate < count):
            yield wrong(
                f"The {name} edge is {edge:g} Hz, at {rate:g} samples and length {length:g} there"
                " is no such frequency"
            )


# --- convolutions, pools, resizing and detection --------------------------------------------------

_MOST_ELEMENTS = 1 << 40
"""Elements that no memory holds."""


def group_norm(call: Call) -> Problems:
    """Yield what is wrong with GroupNormalization."""
    groups = call.attribute("num_groups")
    data = call.dims(0)
    channels = call.dim(0, 1)
    if isinstance(groups, int) and channels is not None and (groups < 1 or channels % groups):
        yield wrong(f"{channels} channels cannot be put into {groups} groups")
        return
    if data is not None and 0 in data:
        yield wrong(f"The data is {dims_text(data)}, which has no elements")
        return
    size = groups if call.version < 21 else data[1] if data and len(data) > 1 else None
    for index in (1, 2):
        dims = call.dims(index)
        if dims is None or None in dims or not isinstance(size, int):
            continue
        if math.prod(dim or 0 for dim in dims) not in (1, size):
            yield wrong(f"Input {index} is {dims_text(dims)}, it must be [{size}]")


def pool_data(call: Call) -> Problems:
    """Yield data of a pool that are empty otherwise than by their batch."""
    dims = call.dims(0)
    if dims and 0 in dims[1:] and dims[0]:
        yield wrong(f"The data is {dims_text(dims)}, only the batch may be 0")


def max_unpool(call: Call) -> Problems:
    """Yield windows of MaxUnpool that are not positive, and an output that is too small."""
    for name in ("strides", "kernel_shape"):
        if any(size < 1 for size in call.attribute(name) or ()):
            yield VALUE, f"Attribute {name} is {list(call.attribute(name))}, all must be positive"
            return
    x, wanted, windows = call.dims(0), call.value(2), call.attribute("kernel_shape") or ()
    strides = call.attribute("strides") or [1] * len(windows)
    pads = call.attribute("pads") or [0] * 2 * len(windows)
    count = len(windows)
    if x is None or wanted is None or not (wanted.size == len(x) == count + 2):
        return
    if len(strides) != count or len(pads) != 2 * count:
        return
    sizes = wanted.ravel().tolist()
    if any(map(differ, sizes[:2], x[:2])) or math.prod(sizes) > _MOST_ELEMENTS:
        yield wrong(f"{sizes_text(sizes)} cannot be made of {dims_text(x)}")
        return
    for axis, window in enumerate(windows):
        size = x[2 + axis]
        before, after = pads[axis], pads[axis + len(windows)]
        if size is not None:
            least = (size - 1) * strides[axis] - before - after + window
            if sizes[2 + axis] < least:
                yield wrong(f"{sizes_text(sizes)} is too small, {least} needed")
                return


def pad_amounts(call: Call) -> Problems:
    """Yield pads that leave nothing, or want more than there is to repeat."""
    dims, mode = call.dims(0), call.attribute("mode", "constant")
    pads = call.value(1) if call.version >= 11 else np.asarray(call.attribute("pads") or ())
    axes = call.value(3) if call.has(3) else np.arange(len(dims or ()))
    if call.rank(3) not in (None, 1):
        yield wrong(f"The axes are {dims_text(call.dims(3) or ())}, they must be a vector")
        return
    if dims is None or pads is None or axes is None or pads.size != 2 * axes.size:
        return
    amounts = pads.ravel().tolist()
    for place, axis in enumerate(axes.ravel().tolist()):
        size = dims[axis] if -len(dims) <= axis < len(dims) else None
        ends = amounts[place], amounts[place + axes.size]
        if size is None or not any(ends):
            continue
        remaining = size + sum(min(end, 0) for end in ends)
        least = 0 if mode == "constant" else 2 if mode == "reflect" and max(ends) > 0 else 1
        if (
            size + sum(ends) < 0
            or remaining < least
            or (mode == "reflect" and max(ends) >= remaining)
        ):
            yield wrong(f"Pads of {ends[0]} and {ends[1]} do not go with {size} elements")
            return


def lrn_numbers(call: Call) -> Problems:
    """Yield numbers that LRN does not take."""
    size = call.attribute("size")
    if isinstance(size, int) and size > 0 and (size % 2 == 0 or size >= 1 << 31):
        yield VALUE, f"Attribute size is {size}, it must be odd"
    for name in ("alpha", "beta"):
        value = call.attribute(name, 1.0)
        if isinstance(value, float) and not value > 0:
            yield VALUE, f"Attribute {name} is {value:g}, it must be positive"


def upsample(call: Call) -> Problems:
    """Yield scales of Upsample that are not one for each dimension."""
    rank, dims = call.rank(0), call.dims(1)
    if call.version < 9:
        count: int | None = len(call.attribute("scales") or ())
    else:
        count = None if dims is None or None in dims else math.prod(dim or 0 for dim in dims)
    if rank is not None and count is not None and count != rank:
        yield wrong(f"{fmt.plural(count, 'scale')} for {fmt.plural(rank, 'dimension')}")


def resize_sizes(call: Call) -> Problems:
    """Yield sizes and scales of Resize that leave nothing."""
    dims = call.dims(0)
    if call.version >= 11 and not call.has(3) and (not call.has(2) or call.dims(2) == (0,)):
        yield wrong("It has neither scales nor sizes")
    if call.version < 11 or dims is None or None in dims:
        return
    wanted, axes = call.value(3), call.attribute("axes") or range(len(dims))
    sizes = [] if wanted is None else wanted.ravel().tolist()
    if any(dims[axis] == 0 < size for axis, size in zip(axes, sizes, strict=False)):
        yield wrong(f"{dims_text(dims)} cannot be made {sizes_text(sizes)}")
    if 0 in dims:
        return
    yield from positive(2, 3)(call)
    value = call.value(3) if call.has(3) else call.value(2)
    if call.attribute("mode") != "cubic" or value is None or not (value.size == 4 == len(dims)):
        return
    given = value.ravel().tolist()
    scales = [a / (b or 1) for a, b in zip(given, dims, strict=True)] if call.has(3) else given
    if scales[0] != 1 or (scales[1] != 1 and scales[3] != 1):
        yield wrong(f"Scales of {sizes_text(scales)}: in mode cubic the first two must be 1")


def filter_scales(*indexes: int) -> Rule:
    """Return the rule for scales and zero points of filters."""

    def check(call: Call) -> Problems:
        count = call.dim(3, 0)
        for index in indexes:
            dims = call.dims(index)
            if dims is None or None in dims or dims in ((), (1,)):
                continue
            if len(dims) != 1 or differ(dims[0], count):
                yield wrong(f"Input {index} is {dims_text(dims)}, needed: one element or [{count}]")

    return check


def nms_thresholds(call: Call) -> Problems:
    """Yield thresholds of NonMaxSuppression that are not there or out of range."""
    if call.dims(3) == (0,):
        yield wrong("Input 3 is empty")
    threshold = call.value(3)
    if threshold is not None and threshold.size and not 0 <= float(threshold.ravel()[0]) <= 1:
        yield wrong(f"The IoU threshold is {threshold.ravel()[0]}, it must be between 0 and 1")


def conv_transpose(call: Call) -> Problems:
    """Yield paddings and an output_shape that ConvTranspose does not take."""
    x, weight, wanted = call.dims(0), call.dims(1), call.attribute("output_shape")
    if x is None or weight is None or len(x) != len(weight) or len(x) < 3:
        return
    count = len(x) - 2
    ones, none = [1] * count, [0] * count
    strides, steps = call.attribute("strides") or ones, call.attribute("dilations") or ones
    more, pads = call.attribute("output_padding") or none, call.attribute("pads") or 2 * none
    if {len(strides), len(steps), len(more), len(pads) // 2} != {count}:
        return
    is_padded = call.attribute("auto_pad", "NOTSET") == "NOTSET" and not wanted
    for axis in range(count):
        given, window = x[2 + axis], weight[2 + axis]
        if not 0 <= more[axis] < max(strides[axis], steps[axis]):
            yield VALUE, f"Attribute output_padding is {list(more)}, less than a stride is needed"
            return
        if given is None or window is None:
            continue
        least = (given - 1) * strides[axis] + more[axis] + (window - 1) * steps[axis] + 1
        if is_padded and given > 0 and least - pads[axis] - pads[axis + count] <= 0:
            yield wrong(f"{list(pads)} pads leave none of {least} elements")
            return
        size = wanted[axis - count] if wanted and len(wanted) >= count else least
        if size < 1 or size >= least + strides[axis]:
            yield wrong(f"{given} elements do not make {size}, {least} and a stride at most")
            return


def grid_sample(call: Call) -> Problems:
    """Yield data of GridSample that have nothing to sample."""
    dims = call.dims(0)
    if dims and 0 in dims[2:] and 0 not in dims[:2]:
        yield wrong(f"The data is {dims_text(dims)}, there is nothing to sample")


def affine_grid(call: Call) -> Problems:
    """Yield matrices of AffineGrid that do not fit the size."""
    size, theta = call.value(1), call.dims(0)
    count = call.dim(1, 0) if size is None else size.size
    if theta is None or count not in (4, 5):
        return
    batch = None if size is None else int(size.ravel()[0])
    wanted = (batch, count - 2, count - 1)
    if len(theta) != 3 or any(map(differ, theta, wanted)):
        yield wrong(f"Input theta is {dims_text(theta)}, it must be {dims_text(wanted)}")


def col2im(call: Call) -> Problems:
    """Yield blocks of Col2Im that are larger than the padded image."""
    image, block = call.value(1), call.value(2)
    if image is None or block is None or image.shape != block.shape:
        return
    size, actual = math.prod(block.ravel().tolist()), call.dim(0, 1)
    if actual is not None and (size < 1 or actual < 1 or actual % size):
        yield wrong(f"{actual} channels are not blocks of {sizes_text(block.tolist())}")
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
    if strides.size != count:
        return
    blocks, actual = int(np.prod(spare // strides + 1)), call.dim(0, -1)
    if differ(actual, blocks):
        yield wrong(f"The data has {actual} blocks, the image has room for {blocks}")


def deform_conv(call: Call) -> Problems:
    """Yield what is wrong with offsets and masks of DeformConv."""
    x, weight = call.dims(0), call.dims(1)
    for index in (0, 1, 2, 4):
        if call.rank(index) not in (None, 4):
            yield wrong(f"Input {index} is {dims_text(call.dims(index) or ())}, it must have 4"
                        " dimensions")  # fmt: skip
            return
    groups = call.attribute("offset_group", 1)
    pads = call.attribute("pads") or (0, 0, 0, 0)
    strides, steps = call.attribute("strides") or (1, 1), call.attribute("dilations") or (1, 1)
    if groups < 1 or (x is not None and x[1] is not None and x[1] % groups):
        yield wrong(f"{x[1] if x else '?'} channels cannot be put into {groups} offset groups")
        return
    if len(pads) != 4 or len(strides) != 2 or len(steps) != 2:
        yield VALUE, "It takes 4 pads, 2 strides and 2 dilations"
        return
    if min(pads) < 0:
        yield VALUE, f"Attribute pads is {list(pads)}, none may be negative"
    if x is None or weight is None or min(*strides, *steps) < 1:
        return
    if 0 in weight or x[1] == 0:
        yield wrong(f"The data is {dims_text(x)}, the weight {dims_text(weight)}: one is empty")
        return
    output_sizes: list[int | None] = [None, None]
    for axis in (0, 1):
        size, window = x[2 + axis], weight[2 + axis]
        if size is not None and window is not None:
            spare = size + pads[axis] + pads[axis + 2] - steps[axis] * (window - 1) - 1
            output_sizes[axis] = spare // strides[axis] + 1
    height, width = weight[2:]
    points = None if height is None or width is None else height * width * groups
    twice = None if points is None else 2 * points
    yield from like(call, 2, "The offset", (x[0], twice, *output_sizes))
    yield from like(call, 4, "The mask", (x[0], points, *output_sizes))


# --- trees ----------------------------------------------------------------------------------------

_MODES = frozenset(f"BRANCH_{name}" for name in ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ", "MEMBER"))


def tree_classifier(call: Call) -> Problems:
    """Yield what is wrong with TreeEnsembleClassifier."""
    labels = call.attribute("classlabels_int64s") or call.attribute("classlabels_strings") or ()
    yield from _ensemble(call, "class", len(labels))


def tree_regressor(call: Call) -> Problems:
    """Yield what is wrong with TreeEnsembleRegressor."""
    yield from _ensemble(call, "target", call.attribute("n_targets", 0))


def _ensemble(call: Call, leaves: str, targets: int) -> Problems:
    nodes = {
        name: call.attribute(f"nodes_{name}") or ()
        for name in ("treeids", "nodeids", "modes", "truenodeids", "falsenodeids", "featureids")
    }
    lengths = {*map(len, nodes.values()), *_length(call, "nodes_values")}
    if len(lengths) > 1:
        yield VALUE, f"The nodes_ attributes have {sizes_text(sorted(lengths))} values"
        return
    weights = [call.attribute(f"{leaves}_{name}") or () for name in ("treeids", "nodeids", "ids")]
    lengths = {*map(len, weights), *_length(call, f"{leaves}_weights")}
    if len(lengths) > 1:
        yield VALUE, f"The {leaves}_ attributes have {sizes_text(sorted(lengths))} values"
        return
    if targets < 1:
        yield VALUE, f"There are {targets} targets or classes, there must be one or more"
        return
    for target in weights[2]:
        if not 0 <= target < targets:
            yield VALUE, f"A leaf is for target or class {target}, there are {targets}"
            return
    trees, ids = ([_int32(value) for value in nodes[name]] for name in ("treeids", "nodeids"))
    modes = [mode.decode("utf-8", "replace") for mode in nodes["modes"]]
    places = {pair: place for place, pair in enumerate(zip(trees, ids, strict=True))}
    if len(places) != len(ids):
        yield VALUE, "Two nodes of a tree have the same number"
        return
    sides = [[_int32(value) for value in nodes[f"{side}nodeids"]] for side in ("true", "false")]
    problem = next(_misplaced(places, trees, modes, sides), None)
    if problem is not None:
        yield problem
        return
    for tree, node in zip(weights[0], weights[1], strict=True):
        if (tree, node) not in places:
            yield VALUE, f"Node {node} of tree {tree} has a weight but does not exist"
            return
    size = call.dim(0, -1)
    used = [f for f, mode in zip(nodes["featureids"], modes, strict=True) if mode != "LEAF"]
    if call.rank(0) not in (None, 1, 2):
        yield wrong(f"The data is {dims_text(call.dims(0) or ())}, it must have 2 dimensions")
    elif size is not None and used and (max(used) >= size or min(used) < 0):
        yield wrong(f"A tree uses feature {max(used)} of {size}")


def _length(call: Call, name: str) -> tuple[int, ...]:
    """Return the length of an attribute, unless it is given as a tensor."""
    if call.attribute(f"{name}_as_tensor") is not None:
        return ()
    return (len(call.attribute(name) or ()),)


def _int32(value: int) -> int:
    """Return a number truncated to 32 bits, as ONNX Runtime does."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def _misplaced(
    places: Mapping[tuple[int, int], int],
    trees: Sequence[int],
    modes: Sequence[str],
    sides: Sequence[Sequence[int]],
) -> Problems:
    """Yield what keeps nodes from the order in which ONNX Runtime lays them out.

    The branch that is taken when the condition is false comes directly after its node (``AddNodes``
    in ``tree_ensemble_common.h``); the other may lead to a node that is there already.
    """
    children: list[tuple[int, int]] = []
    for node, mode in enumerate(modes):
        if mode == "LEAF":
            children.append((node, node))
            continue
        if mode not in _MODES:
            yield VALUE, f"Attribute nodes_modes has {clip(visible(mode), 40)!r}"
            return
        ends = [places.get((trees[node], side[node])) for side in sides]
        for side, end in zip(sides, ends, strict=True):
            if end is None or end == node or not 0 <= side[node] < len(modes):
                yield (
                    VALUE,
                    f"A node of tree {trees[node]} leads to missing node {side[node]}",
                )
                return
        children.append((ends[0] or 0, ends[1] or 0))
    laid: dict[int, int] = {}
    count = 0
    for root, tree in enumerate(trees):
        if root and tree == trees[root - 1]:
            continue
        waiting: list[tuple[int, int | None]] = [(root, None)]
        while waiting:
            node, wanted = waiting.pop()
            place = laid.get(node, 0)  # 0 stands for a new one, the very first root included
            if not place:
                place = laid[node] = count
                count += 1
                if modes[node] != "LEAF":
                    waiting += [(children[node][0], None), (children[node][1], place + 1)]
            if (wanted is not None and place != wanted) or count > len(modes):
                yield VALUE, f"Two nodes of tree {tree} lead to one"
                return


def tree_ensemble(call: Call) -> Problems:
    """Yield what is wrong with TreeEnsemble."""
    features, roots = call.attribute("nodes_featureids") or (), call.attribute("tree_roots") or ()
    sides = [
        (call.attribute(f"nodes_{side}nodeids") or (), call.attribute(f"nodes_{side}leafs") or ())
        for side in ("true", "false")
    ]
    targets, leaves = call.attribute("n_targets", 0), call.attribute("leaf_targetids") or ()
    if targets < 1:
        yield VALUE, f"Attribute n_targets is {targets}, it must be positive"
    elif leaves and not 0 <= min(leaves) <= max(leaves) < targets:
        yield VALUE, f"A leaf is for target {max(leaves)}, there are {targets}"
    if any(len(part) != len(features) for side in sides for part in side):
        return  # inference tells
    used: set[int] = set()
    for root in roots:
        seen: set[int] = set()
        waiting = [] if _is_leaf(root, sides) else [root]
        while waiting:
            node = waiting.pop()
            if not 0 <= node < len(features) or node in seen:
                yield VALUE, f"A tree leads to node {node} twice, or it does not exist"
                return
            seen.add(node)
            for places, ends in sides:
                if not ends[node]:
                    waiting.append(places[node])
                elif not 0 <= places[node] < len(leaves):
                    yield VALUE, f"A tree leads to leaf {places[node]} of {len(leaves)}"
                    return
        used |= {features[node] for node in seen}
    size = call.dim(0, 1)
    if used and (min(used) < 0 or (size is not None and max(used) >= size)):
        yield wrong(f"A tree uses feature {max(used)} of {size}")


def _is_leaf(root: int, sides: list[tuple[Sequence[int], Sequence[int]]]) -> bool:
    """Return whether a tree is a leaf alone: both ways lead to the same one."""
    (yes, is_yes), (no, is_no) = sides
    return 0 <= root < len(yes) and bool(yes[root] == no[root] and is_yes[root] and is_no[root])


# --- the rules by operator ------------------------------------------------------------------------


def check_kernel(call: Call) -> Problems:
    """Yield the problems for which the kernel of a call will refuse it."""
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
    **{("", f"Reduce{name}"): (shapes("* | _"), keepdims_number) for name in _REDUCTIONS},
    **{("", name): (pool_data,) for name in _POOLS},
    **{
        ("", name): (shapes("* | _"), keepdims_number, bool_reduction)
        for name in ("ReduceMax", "ReduceMin")
    },
    **{("", f"{name}Window"): (single(0),) for name in ("Hann", "Hamming", "Blackman")},
    **{("", name): (needs("hidden_size"), sequence_lengths) for name in ("LSTM", "GRU", "RNN")},
    **{
        ("", name): (gather_elements, shapes("* | *I | *I"))
        for name in ("ScatterElements", "Scatter")
    },
    ("", "GatherElements"): (gather_elements,),
    **{("", name): (axis_input,) for name in ("CumSum", "CumProd")},
    ("", "Gemm"): (gemm,),
    ("", "LRN"): (shapes("_ _ _ _"), lrn_numbers),
    ("", "GroupNormalization"): (group_norm,),
    **{("", name): (shapes("N C *D | N *D | _"), loss_labels) for name in _LOSSES},
    ("", "NonMaxSuppression"): (shapes("B S 4 | B _ S"), nms_thresholds),
    ("", "MaxUnpool"): (shapes("*X | *X"), max_unpool),
    ("", "Loop"): (single(0, 1, ranks=1), loop_inputs),
    ("", "Scan"): (scan_inputs,),
    ("", "Flatten"): (flatten_axis,),
    ("", "RoiAlign"): (indices(2, 0),),
    ("", "DFT"): (dft_data,),
    ("", "ArgMax"): (arg_reduction,),
    ("", "ArgMin"): (arg_reduction,),
    ("", "Range"): (range_scalars,),
    ("", "StringNormalizer"): (string_normalizer,),
    ("", "Pad"): (pad_amounts,),
    ("", "Div"): (division_by_zero,),
    ("", "GatherND"): (gather_nd_batches,),
    ("", "If"): (single(0),),
    ("", "ConvTranspose"): (conv_transpose,),
    ("", "GridSample"): (grid_sample,),
    ("", "Trilu"): (single(1, ranks=1),),
    ("", "BitCast"): (element_type("to"),),
    ("ai.onnx.ml", "TreeEnsemble"): (tree_ensemble,),
    ("ai.onnx.ml", "TreeEnsembleClassifier"): (tree_classifier,),
    ("ai.onnx.ml", "TreeEnsembleRegressor"): (tree_regressor,),
    ("", "TensorScatter"): (tensor_scatter,),
    ("", "EyeLike"): (element_type("dtype"), shapes("_ _")),
    ("", "RegexFullMatch"): (needs("pattern"),),
    ("", "TfIdfVectorizer"): (n_grams,),
    ("", "Upsample"): (upsample,),
    ("", "Resize"): (resize_sizes,),
    ("ai.onnx.ml", "ArrayFeatureExtractor"): (indices(1, -1),),
    ("", "QLinearConv"): (single(1, 2, 6, 7, ranks=1), filter_scales(4, 5)),
    ("", "ConvInteger"): (single(2, 3, ranks=1),),
    ("", "QLinearMatMul"): (
        single(1, 2, 6, 7, ranks=1),
        second_factor_scales(4, 3),
        second_factor_scales(5, 3),
    ),
    ("", "MatMulInteger"): (single(2, ranks=1), second_factor_scales(3, 1)),
    ("", "RotaryEmbedding"): (rotary_embedding,),
    ("", "Attention"): (attention_numbers, attention),
    ("", "STFT"): (single(1, 3), positive(1, 3), stft),
    ("", "AffineGrid"): (positive(1), affine_grid),
    ("", "Col2Im"): (col2im,),
    ("", "CenterCropPad"): (shapes("* | _"), crop_axes),
    ("", "Split"): (shapes("* | _"), split_count),
    ("", "SplitToSequence"): (one_axis(0),),
    ("", "TopK"): (positive(1, least=0),),
    ("", "MelWeightMatrix"): (single(0, 1, 2, 3, 4), mel_bins),
    ("", "DeformConv"): (convolution(0, 1, 3), deform_conv),
}
