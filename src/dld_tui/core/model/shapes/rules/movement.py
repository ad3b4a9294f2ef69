"""Operators that move elements: shapes of other sizes, parts, joins, paddings."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dld_tui.core.model.shapes.call import Call
from dld_tui.core.model.shapes.rules.elementwise import copied, of_sizes
from dld_tui.core.model.shapes.size import (
    UNKNOWN,
    Size,
    at_least,
    chosen,
    equal,
    maximum,
    minimum,
    number_of,
    plain,
    product,
)
from dld_tui.core.model.shapes.value import MOST_ELEMENTS, NOTHING, Dims, Elements, Value

_SOME_ELEMENTS = "as many elements go in as come out"


def _moved(value: Value, dims: Dims | None, elements: Elements | None = None) -> Value:
    """Return a value that has all or some of the elements of another."""
    listed = None if elements is None else tuple(elements.reshape(-1))
    return Value(dims, listed, value.source, value.upper_bound)


def _reordered(value: Value, dims: Dims | None) -> Value:
    """Return a value with the elements of another in the same order."""
    return Value(dims, value.values(), value.source, value.upper_bound)


def _axes(c: Call, at: int = 1) -> list[int] | None:
    """Return the axes of an attribute, or of an input; None where they are not known or given."""
    axes = c.numbers("axes")
    return c.whole(at) if axes is None and c.has(at) else axes


def _squeezed(c: Call) -> Sequence[Value]:
    value, axes = c.input(0), _axes(c)
    dims = value.dims
    if dims is None or (axes is None and c.has(1)):
        return [_reordered(value, None)]
    if not axes:  # all of 1; so does ONNX Runtime with an empty list
        if any(equal(size, 1) is None for size in dims):
            return [_reordered(value, None)]
        kept = tuple(size for size in dims if not (isinstance(size, int) and size == 1))
        return [_reordered(value, kept)]
    gone = {axis % len(dims) for axis in axes}
    for axis in gone:
        c.demands.require(equal(dims[axis], 1), "a dimension that is taken away is 1", dims[axis])
    return [_reordered(value, tuple(size for at, size in enumerate(dims) if at not in gone))]


def _unsqueezed(c: Call) -> Sequence[Value]:
    value, axes = c.input(0), _axes(c)
    if value.dims is None or axes is None:
        added = None if value.dims is None else c.values(1) or of_sizes(c, 1)
        if added is None or value.dims is None:
            return [_reordered(value, None)]
        return [_reordered(value, (UNKNOWN,) * (len(value.dims) + len(added)))]
    rank = len(value.dims) + len(axes)
    new, rest = {axis % rank for axis in axes}, iter(value.dims)
    if len(new) < len(axes):
        raise ValueError("an axis comes twice")
    return [_reordered(value, tuple(1 if at in new else next(rest) for at in range(rank)))]


def _expanded_dims(c: Call) -> Sequence[Value]:
    """ExpandDims of com.microsoft: one axis, an input."""
    dims, axis = c.dims(), number_of(c.element(1))
    if dims is None or axis is None:
        return [Value(None if dims is None else (UNKNOWN,) * (len(dims) + 1))]
    at = int(axis) if axis >= 0 else int(axis) + len(dims) + 1
    return [Value((*dims[:at], 1, *dims[at:]))]


def _reshape(c: Call) -> Sequence[Value]:
    value = c.input(0)
    listed = c.numbers("shape")
    target = tuple(listed) if listed is not None and not c.has(1) else of_sizes(c, 1)
    if target is None:
        return [_reordered(value, None)]
    kept = {
        at for at, size in enumerate(target)
        if isinstance(size, int) and size == 0 and not c.number("allowzero", 0)
    }  # fmt: skip
    return [_reordered(value, _filled(c, value.dims, target, kept))]


def _filled(c: Call, before: Dims | None, target: Dims, kept: set[int]) -> Dims:
    """Return a target shape with the size in place of -1, and demand that the elements fit.

    Args:
        c: The call.
        before: The shape of the data.
        target: The shape that is asked for.
        kept: The axes that stay as they are: 0 in the target.
    """
    dims = [UNKNOWN if isinstance(size, int) and size < 0 else size for size in target]
    for at in kept:
        dims[at] = before[at] if before is not None and at < len(before) else UNKNOWN
    if before is None:
        return tuple(dims)
    if any(at >= len(before) for at in kept):
        c.demands.require(False, "a size that is kept is one of the data", *before)
        return tuple(dims)
    open_at = [at for at, size in enumerate(dims) if size is UNKNOWN and at not in kept]
    total = product(size for at, size in enumerate(before) if at not in kept)
    wanted = product(size for at, size in enumerate(dims) if at not in kept and at not in open_at)
    if total is UNKNOWN or wanted is UNKNOWN:
        return tuple(dims)
    if not open_at:
        c.demands.require(equal(total, wanted), _SOME_ELEMENTS, total, wanted)
    elif len(open_at) == 1:
        if isinstance(wanted, np.ndarray):
            wanted = np.maximum(wanted, 1)
        elif wanted == 0:
            return tuple(dims)
        c.demands.divides(total, wanted, _SOME_ELEMENTS)
        dims[open_at[0]] = plain(total // wanted)
    return tuple(dims)


def _transpose(c: Call) -> Sequence[Value]:
    value, order = c.input(0), c.numbers("perm")
    if value.dims is None:
        return [_moved(value, (UNKNOWN,) * len(order) if order else None)]
    order = order or list(reversed(range(len(value.dims))))
    array = value.array()
    turned = None if array is None else array.transpose(order)
    return [_moved(value, tuple(value.dims[at] for at in order), turned)]


def _flatten(c: Call) -> Sequence[Value]:
    value = c.input(0)
    if value.dims is None:
        return [_reordered(value, (UNKNOWN, UNKNOWN))]
    axis = c.number("axis", 1)
    axis = axis if axis >= 0 else axis + len(value.dims)
    return [_reordered(value, (product(value.dims[:axis]), product(value.dims[axis:])))]


def _expand(c: Call) -> Sequence[Value]:
    value, target = c.input(0), of_sizes(c, 1)
    if target is None:
        return [_moved(value, None)]
    if value.dims is None:  # it may have more dimensions than the target
        return [_moved(value, None)]
    dims = c.demands.broadcast(value.dims, target)
    array = value.array()
    count = None if dims is None else number_of(product(dims))
    if array is None or count is None or count > MOST_ELEMENTS or dims is None:
        return [_moved(value, dims)]
    return [_moved(value, dims, np.broadcast_to(array, dims))]


def _tile(c: Call) -> Sequence[Value]:
    value = c.input(0)
    dims = value.dims
    if c.version < 6 and c.has(2):  # how often, along which axis
        times, axis = c.element(1), number_of(c.element(2))
        if dims is None or axis is None:
            return [_moved(value, None if dims is None else (UNKNOWN,) * len(dims))]
        tiled = list(dims)
        tiled[int(axis)] = tiled[int(axis)] * times
        return [_moved(value, tuple(tiled))]
    repeats = of_sizes(c, 1)
    if dims is None or repeats is None or len(dims) != len(repeats):
        rank = len(dims) if dims is not None else len(repeats) if repeats is not None else None
        return [_moved(value, None if rank is None else (UNKNOWN,) * rank)]
    tiled_dims = tuple(size * times for size, times in zip(dims, repeats, strict=True))
    array, count = value.array(), number_of(product(tiled_dims))
    if array is None or count is None or count > MOST_ELEMENTS or c.whole(1) is None:
        return [_moved(value, tiled_dims)]
    return [_moved(value, tiled_dims, np.tile(array, c.whole(1) or ()))]


def _concat(c: Call) -> Sequence[Value]:
    given = c.inputs
    known = [value.dims for value in given if value.dims is not None]
    axis = c.number("axis", 1 if c.version < 4 else 0)
    if len(known) < len(given):
        if known:
            rank = len(known[0])
            dims = [UNKNOWN] * rank
            for other in known:
                for at, size in enumerate(other):
                    if at != axis % rank:
                        dims[at] = c.demands.equal(dims[at], size, _LINED_UP)
            return [Value(tuple(dims))]
        return [NOTHING]
    rank = len(known[0])
    axis %= rank
    sizes: list[Size] = list(known[0])
    for other in known[1:]:
        for at in range(rank):
            if at == axis:
                sizes[at] = sizes[at] + other[at]
            else:
                sizes[at] = c.demands.equal(sizes[at], other[at], _LINED_UP)
    if all(value.elements is None and value.tensor is None for value in given):
        return [Value(tuple(sizes))]
    if rank == 1:  # what is known of a list stays known beside what is not
        listed = [of_sizes(c, at) for at in range(len(given))]
        if any(row is None for row in listed) or sum(map(len, filter(None, listed))) > (
            MOST_ELEMENTS
        ):
            return [Value(tuple(sizes))]
        return [Value(tuple(sizes), tuple(number for row in listed for number in row or ()))]
    rows = [value.values() for value in given]
    if any(row is None for row in rows) or sum(len(row or ()) for row in rows) > MOST_ELEMENTS:
        return [Value(tuple(sizes))]
    arrays = [value.array() for value in given]
    if any(array is None for array in arrays):
        return [Value(tuple(sizes))]
    joined = np.concatenate([array for array in arrays if array is not None], axis)
    return [Value(tuple(sizes), tuple(joined.reshape(-1)))]


_LINED_UP = "what is joined has the same sizes along the other axes"


def _quantized_concat(c: Call) -> Sequence[Value]:
    """QLinearConcat: scale and zero point of the result, then parts with theirs."""
    return _concat(Call(c.proto, c.inputs[2::3], c.demands, c.version))


def _gather(c: Call) -> Sequence[Value]:
    return [_gathered(c, c.number("axis", 0))]


def _gathered(c: Call, axis: int) -> Value:
    data, index = c.input(0), c.input(1)
    if data.dims is not None and data.dims:
        c.demands.bound(index, data.dims[axis])
    is_one = index.dims is not None and number_of(product(index.dims)) == 1
    source = data.source if axis == 0 and is_one else None
    if data.dims is None or index.dims is None:
        return Value(None, None, source)
    axis %= len(data.dims)
    dims = (*data.dims[:axis], *index.dims, *data.dims[axis + 1 :])
    listed = data.values()
    places = None if listed is None else c.array_of(1)
    if listed is None or places is None:
        return Value(dims, None, source)
    if len(data.dims) == 1:
        return Value(dims, tuple(listed[int(place)] for place in places.reshape(-1)), source)
    array = data.array()
    taken = None if array is None else np.take(array, places.astype(np.int64), axis)
    if taken is None or taken.size > MOST_ELEMENTS:
        return Value(dims, None, source)
    return Value(dims, tuple(np.asarray(taken, object).reshape(-1)), source)


def _gather_elements(c: Call) -> Sequence[Value]:
    dims = c.dims()
    if dims is not None:
        c.demands.bound(c.input(1), dims[c.number("axis", 0)])
    return [Value(c.dims(1))]


def _gather_nd(c: Call) -> Sequence[Value]:
    data, index, shared = c.dims(0), c.dims(1), c.number("batch_dims", 0)
    if data is None or not index or not isinstance(index[-1], int):
        return [NOTHING]
    return [Value((*index[:-1], *data[shared + index[-1] :]))]


def _scatter_nd(c: Call) -> Sequence[Value]:
    dims = c.dims()
    array, places, updates = c.input(0).array(), c.array_of(1), c.input(2).array()
    is_plain = c.text("reduction", "none") == "none"
    if array is None or places is None or updates is None or not is_plain:
        return [Value(dims)]
    changed = array.copy()
    rows = places.reshape(-1, places.shape[-1]).astype(np.int64)
    parts = updates.reshape(len(rows), *updates.shape[places.ndim - 1 :])
    for row, part in zip(rows, parts, strict=True):
        changed[tuple(row)] = part[()] if isinstance(part, np.ndarray) and not part.ndim else part
    return [Value(dims, tuple(changed.reshape(-1)))]


def _scatter_elements(c: Call) -> Sequence[Value]:
    dims = c.dims()
    array, places, updates = c.input(0).array(), c.array_of(1), c.input(2).array()
    if array is None or places is None or updates is None or (
        c.text("reduction", "none") != "none"
    ):  # fmt: skip
        return [Value(dims)]
    changed, axis = array.copy(), c.number("axis", 0)
    for at in np.ndindex(*places.shape):
        to = list(at)
        to[axis] = int(places[at])
        changed[tuple(to)] = updates[at]
    return [Value(dims, tuple(changed.reshape(-1)))]


def _slice(c: Call) -> Sequence[Value]:
    value = c.input(0)
    dims = value.dims
    steps: list[int] | None = None
    if c.has(1) or c.has(2):
        starts, ends = of_sizes(c, 1), of_sizes(c, 2)
        axes = c.whole(3) if c.has(3) else None
        steps = c.whole(4) if c.has(4) else None
        if dims is not None and ((c.has(3) and axes is None) or (c.has(4) and steps is None)):
            return [_moved(value, (UNKNOWN,) * len(dims))]
    else:
        listed, last = c.numbers("starts"), c.numbers("ends")
        starts = None if listed is None else tuple(listed)
        ends = None if last is None else tuple(last)
        axes = c.numbers("axes")
    if dims is None:
        return [_moved(value, None)]
    if starts is None or ends is None:
        if axes is None:
            return [_moved(value, (UNKNOWN,) * len(dims))]
        starts = ends = (UNKNOWN,) * len(axes)
    places = [axis % len(dims) for axis in (range(len(starts)) if axes is None else axes)]
    sizes: list[Size] = list(dims)
    array = value.array()
    for at, axis in enumerate(places):
        begin, end, step = starts[at], ends[at], 1 if steps is None else steps[at]
        sizes[axis] = sliced(dims[axis], begin, end, step)
        if array is not None:
            if isinstance(begin, int) and isinstance(end, int):
                part = slice(_edge(begin, step), _edge(end, step), step)
                array = array[(slice(None),) * axis + (part,)]
            else:
                array = None
    return [_moved(value, tuple(sizes), array)]


def _edge(value: int, step: int) -> int | None:
    return None if abs(value) > 1 << 30 and step < 0 else value


def sliced(size: Size, begin: Size, end: Size, step: int) -> Size:
    """Return how many elements a slice takes.

    Raises:
        ZeroDivisionError: The step is 0.
    """
    begin, end = plain(begin), plain(end)
    if step > 0:
        if isinstance(begin, int) and begin < 0 and isinstance(end, int) and end >= _END:
            return _counted(minimum(size, -begin), step)  # the last ones
        first = maximum(_from_start(begin, size), 0)
        last = minimum(end, size) if at_least(end, 0) is True else (
            _from_start(end, size) if at_least(end, 0) is False
            else minimum(_from_start(end, size), size)
        )  # fmt: skip
        return _counted(maximum(last - first, 0), step)
    first = minimum(_from_start(begin, size), size - 1)
    is_whole = isinstance(end, int) and end <= -_END
    last = -1 if is_whole else maximum(_from_start(end, size), -1)
    return _counted(maximum(first - last, 0), -step)


_END = 2**31 - 1


def _from_start(place: Size, size: Size) -> Size:
    """Return a place counted from the start, where a negative one counts from the end."""
    if isinstance(place, int):
        return place if place >= 0 else place + size
    return chosen(at_least(place, 0), place, place + size)


def _counted(length: Size, step: int) -> Size:
    return length if step == 1 else -(-length // step)


def _split(c: Call) -> Sequence[Value]:
    dims = c.dims()
    parts: Sequence[Size] | None = c.numbers("split")
    is_given = parts is not None or c.has(1)
    if parts is None and c.has(1):
        parts = of_sizes(c, 1)
    if dims is None:
        return [NOTHING] * c.outputs
    axis = c.number("axis", 0) % len(dims)
    size, count = dims[axis], c.outputs
    if parts is None:
        parts = [UNKNOWN] * count
        if not is_given:
            even = size // count if c.version < 18 else -(-size // count)
            if c.version < 18:
                c.demands.divides(size, count, "the axis can be split into equal parts")
                parts = [even] * count
            else:
                parts = [*[even] * (count - 1), size - even * (count - 1)]
    elif UNKNOWN not in parts:
        total = sum(parts)
        c.demands.require(equal(size, total), "the parts are as long as the axis", size, total)
    array = c.input(0).array() if len(dims) == 1 else None
    results, begin = [], 0
    for part in parts:
        elements = None
        if array is not None and isinstance(part, int):
            elements = tuple(array[begin : begin + part])
            begin += part
        results.append(Value((*dims[:axis], part, *dims[axis + 1 :]), elements))
    return results


def _pad(c: Call) -> Sequence[Value]:
    dims = c.dims()
    if dims is None:
        return [NOTHING]
    pads: Sequence[Size] | None = c.numbers("pads") or c.numbers("paddings")
    if pads is None and c.has(1):
        pads = of_sizes(c, 1)
    axes = c.whole(3) if c.has(3) else list(range(len(dims)))
    if pads is None or axes is None:
        return [Value((UNKNOWN,) * len(dims))]
    padded = list(dims)
    is_reflected = c.text("mode", "constant") == "reflect"
    for at, axis in enumerate(axes):
        before, after, size = pads[at], pads[at + len(axes)], dims[axis]
        if is_reflected:
            c.demands.at_least(size, before + 1, "a reflected edge is shorter than the data")
            c.demands.at_least(size, after + 1, "a reflected edge is shorter than the data")
        padded[axis] = size + before + after
        c.demands.at_least(padded[axis], 0, "what is cut off is no more than there is")
    return [Value(tuple(padded))]


def _crop_pad(c: Call) -> Sequence[Value]:
    """CenterCropPad: the wanted sizes of some axes."""
    dims, wanted = c.dims(), of_sizes(c, 1)
    axes = c.numbers("axes")
    if dims is None:
        return [Value(wanted if axes is None else None)]
    sizes = list(dims)
    chosen_axes = axes or list(range(len(dims)))
    for at, axis in enumerate(chosen_axes):
        sizes[axis] = UNKNOWN if wanted is None else wanted[at]
    return [Value(tuple(sizes))]


def _crop(c: Call) -> Sequence[Value]:
    """Crop, an old operator: the border, or a border and a size."""
    dims, border, scale = c.dims(), c.numbers("border") or [0, 0, 0, 0], c.numbers("scale")
    if dims is None or len(dims) != 4:
        return [NOTHING]
    left, top, right, bottom = border
    if scale:
        return [Value((*dims[:2], *scale))]
    return [Value((*dims[:2], dims[2] - top - bottom, dims[3] - left - right))]


def _space_to_depth(c: Call) -> Sequence[Value]:
    dims, block = c.dims(), c.number("blocksize", 1)
    if dims is None or len(dims) != 4:
        return [NOTHING]
    for size in dims[2:]:
        c.demands.divides(size, block, "height and width are multiples of the block")
    return [Value((dims[0], dims[1] * (block * block), *(size // block for size in dims[2:])))]


def _depth_to_space(c: Call) -> Sequence[Value]:
    dims, block = c.dims(), c.number("blocksize", 1)
    if dims is None or len(dims) != 4:
        return [NOTHING]
    c.demands.divides(dims[1], block * block, "the channels are a multiple of the block")
    return [Value((dims[0], dims[1] // (block * block), *(size * block for size in dims[2:])))]


def _cache_scattered(c: Call) -> Sequence[Value]:
    """TensorScatter: a cache, what is written into it, where that begins."""
    cache, new = c.dims(0), c.dims(1)
    if cache is not None and new is not None and len(cache) == len(new):
        axis = c.number("axis", -2)
        for at, (room, size) in enumerate(zip(cache, new, strict=True)):
            if at != axis % len(cache):
                c.demands.equal(room, size, "what is written has the sizes of the cache")
            else:
                c.demands.at_least(room, size, "what is written fits into the cache")
    return [Value(cache)]


def _random(c: Call) -> Sequence[Value]:
    shape = c.numbers("shape")
    return [Value(None if shape is None else tuple(shape))]


STANDARD: dict[str, Callable[[Call], Sequence[Value]]] = {
    "Squeeze": _squeezed, "Unsqueeze": _unsqueezed, "Reshape": _reshape, "Transpose": _transpose,
    "Flatten": _flatten, "Expand": _expand, "Tile": _tile, "Concat": _concat, "Gather": _gather,
    "GatherElements": _gather_elements, "GatherND": _gather_nd, "ScatterND": _scatter_nd,
    "ScatterElements": _scatter_elements, "Scatter": _scatter_elements,
    "Slice": _slice, "DynamicSlice": _slice, "Split": _split, "Pad": _pad,
    "CenterCropPad": _crop_pad, "Crop": _crop, "SpaceToDepth": _space_to_depth,
    "DepthToSpace": _depth_to_space, "TensorScatter": _cache_scattered,
    "RandomNormal": _random, "RandomUniform": _random, "Optional": copied,
}  # fmt: skip
"""By operator of ai.onnx."""


def _gather_quantized(c: Call) -> Sequence[Value]:
    """GatherBlockQuantized of 4 bits in bytes: the last axis holds two elements a byte."""
    data, scales = c.dims(0), c.dims(2)
    gathered = _gathered(c, c.number("gather_axis", 0)).dims
    if data is None or scales is None or gathered is None:
        return [NOTHING]
    bits, axis = c.number("bits", 4), c.number("gather_axis", 0) % len(data)
    if axis == len(data) - 1 or gathered[-1] is UNKNOWN or scales[-1] is UNKNOWN:
        return [NOTHING]
    block = c.number("block_size", 128)
    is_packed = bits == 4 and bool(np.all(at_least(scales[-1] * block, data[-1] * 2)))
    return [Value((*gathered[:-1], gathered[-1] * (2 if is_packed else 1)))]


def _unfolded(c: Call) -> Sequence[Value]:
    """UnfoldTensor: windows along one axis, and their elements as a new last one."""
    dims = c.dims()
    if dims is None:
        return [NOTHING]
    axis, wide = c.number("dim", -1) % len(dims), c.number("size", 1)
    count = (dims[axis] - wide) // c.number("step", 1) + 1
    return [Value((*dims[:axis], count, *dims[axis + 1 :], wide))]


CONTRIB: dict[str, Callable[[Call], Sequence[Value]]] = {
    "ExpandDims": _expanded_dims, "Pad": _pad, "QLinearConcat": _quantized_concat,
    "GatherND": _gather_nd, "GatherBlockQuantized": _gather_quantized,
    "UnfoldTensor": _unfolded,
}  # fmt: skip
"""By operator of com.microsoft."""
