"""What kernels of products, indices, signals, texts and trees refuse."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from onnx import TensorProto

from dld_tui.core import fmt
from dld_tui.core.checks.calls import Call, Dims
from dld_tui.core.checks.kernels.shape_patterns import (
    Rule,
    axis_of,
    in_range,
)
from dld_tui.core.checks.operands import (
    VALUE,
    Said,
    axis_said,
    differ,
    dims_text,
    like,
    sizes_text,
    wrong,
)


def elements(call: Call) -> Said:
    """Yield what is wrong with GatherElements, ScatterElements and Scatter."""
    data, indices = call.dims(0), call.dims(1)
    if data is None or indices is None:
        return
    if len(data) != len(indices):
        yield wrong(f"The data is {dims_text(data)}, the indices {dims_text(indices)}")
        return
    axis = axis_of(call, len(data))
    for place, (size, taken) in enumerate(zip(data, indices, strict=True)):
        if place != axis and size is not None and taken is not None and taken > size:
            yield wrong(f"Indices of {dims_text(indices)} do not fit into {dims_text(data)}")
            return
    if axis is not None and 0 not in indices and None not in indices:
        if data[axis] == 0:
            yield wrong(f"{dims_text(data)} has nothing that indices could name")
        yield from in_range(call, 1, data[axis])


def axis_given(call: Call) -> Said:
    """Yield where an axis that is an input is outside."""
    rank = call.rank(0)
    yield from in_range(call, 1, rank)


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


def divided(call: Call) -> Said:
    """Yield a constant that has 0 and that integers are divided by."""
    value = call.value(1)
    if value is not None and value.dtype.kind in "iu" and bool((value == 0).any()):
        yield wrong("Integers are divided by 0")


def not_nothing(call: Call) -> Said:
    """Yield an axis of ArgMax and ArgMin without elements."""
    axis = axis_of(call, call.rank(0) or 0)
    if axis is not None and call.dim(0, axis) == 0 and 0 not in _without(call.dims(0), axis):
        yield wrong(f"{dims_text(call.dims(0) or ())} has nothing along axis {axis}")


def _without(dims: Dims | None, axis: int) -> Dims:
    return () if dims is None else (*dims[:axis], *dims[axis + 1 :])


def scalars(call: Call) -> Said:
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


def texts(call: Call) -> Said:
    """Yield texts of StringNormalizer that are no row of one or more."""
    dims = call.dims(0)
    if dims is not None and (len(dims) not in (1, 2) or dims[-1] == 0 or dims[0] == 0):
        yield wrong(f"The texts are {dims_text(dims)}, they must be a row")


def complex_or_real(call: Call) -> Said:
    """Yield data of DFT that are neither real nor complex."""
    if call.dim(0, -1) not in (None, 1, 2):
        yield wrong(f"The data is {dims_text(call.dims(0) or ())}, the last must be 1 or 2")


def not_empty_bool(call: Call) -> Said:
    """Yield truths of which there are none along an axis that is reduced."""
    dims, axes = call.dims(0), call.value(1) if call.has(1) else call.attribute("axes")
    if dims is None or call.input(0).dtype != TensorProto.BOOL or (call.has(1) and axes is None):
        return
    places = range(len(dims)) if axes is None else [int(axis) for axis in np.asarray(axes).ravel()]
    if any(dims[axis] == 0 for axis in places):
        yield wrong(f"{dims_text(dims)} has nothing along {sizes_text(places)}")


def kept(call: Call) -> Said:
    """Yield keepdims of another number after a Transpose, which is moved behind the reduction."""
    keep = call.attribute("keepdims", 1)
    if keep not in (0, 1) and "Transpose" in call.neighbours()[0]:
        yield VALUE, f"Attribute keepdims is {keep}, after a Transpose it takes 0 and 1"


def parts(call: Call) -> Said:
    """Yield more outputs of Split than there are elements."""
    count, axis = call.attribute("num_outputs"), axis_of(call, call.rank(0) or 0)
    size = None if axis is None else call.dim(0, axis)
    if count is not None and size is not None and count > size:
        yield VALUE, f"Attribute num_outputs is {count}, there are {size} elements"


def flattened(call: Call) -> Said:
    """Yield an axis of Flatten that is outside."""
    yield from axis_said(call, call.rank(0), 1, 1)


def batched(call: Call) -> Said:
    """Yield batch_dims of GatherND that data and indices do not share."""
    count, data, indices = call.attribute("batch_dims", 0), call.dims(0), call.dims(1)
    if data is None or indices is None:
        return
    if not 0 <= count < min(len(data), len(indices)):
        yield VALUE, f"Attribute batch_dims is {count} for {dims_text(data)} {dims_text(indices)}"
    elif None not in (*data[:count], *indices[:count]):
        have, want = (math.prod(dim or 0 for dim in part[:count]) for part in (data, indices))
        if have and want % have:
            yield wrong(f"The batches of {dims_text(indices)} are none of {dims_text(data)}")


def n_grams(call: Call) -> Said:
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
                yield VALUE, f"Elements {start} to {end} of the pool are no grams of {size}"
                return


def features(call: Call) -> Said:
    """Yield an index of ArrayFeatureExtractor that is outside."""
    yield from in_range(call, 1, call.dim(0, -1), negative=False)


def of_second(index: int, second: int) -> Rule:
    """Return the rule for scales and zero points of the second factor of a product."""

    def check(call: Call) -> Said:
        dims, b = call.dims(index), call.dims(second)
        if dims is None or b is None or None in dims or None in b or len(b) < 2:
            return
        fits = dims in ((), (1,)) or dims == (*b[:-2], 1, b[-1])
        if not fits and not (len(b) == 2 and dims == b[-1:]):
            yield wrong(f"Input {index} is {dims_text(dims)} and does not fit {dims_text(b)}")

    return check


def classes(call: Call) -> Said:
    """Yield labels of losses that are no numbers of classes, or of weights of classes."""
    labels, ignored = call.value(1), call.attribute("ignore_index")
    sizes = [size for size in (call.dim(0, 1), call.dim(2, 0)) if size is not None]
    if labels is None or not sizes:
        return
    for label in labels.ravel().tolist():
        if label != ignored and not -min(sizes) <= label < min(sizes):
            yield wrong(f"Label {label} is none of {fmt.plural(min(sizes), 'class', 'classes')}")
            return


def axes_of_data(call: Call) -> Said:
    """Yield axes that are outside of the data."""
    rank = call.rank(0)
    for axis in call.attribute("axes") or ():
        if rank is not None and not -rank <= axis < rank:
            yield VALUE, f"Axis {axis} is outside of {fmt.plural(rank, 'dimension')}"


def sequence_lengths(call: Call) -> Said:
    """Yield lengths of sequences that are outside of the data."""
    yield from like(call, 4, "Input sequence_lens", (call.dim(0, 1),))
    size = call.dim(0, 0)
    yield from in_range(call, 4, None if size is None else size + 1, negative=False)


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


def mel_bins(call: Call) -> Said:
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
