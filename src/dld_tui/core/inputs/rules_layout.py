"""Operators that arrange elements: what fits together, and which tables are pointed into."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dld_tui.core.inputs.known import (
    MOST_NUMBERS,
    UNKNOWN,
    Attributes,
    Dims,
    Known,
    Number,
    Rule,
    lacks,
    only,
    product,
    whole,
)

if TYPE_CHECKING:
    from dld_tui.core.inputs.propagation import Propagation


def _gather(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    data, index, axis = i[0], i[1], a.number("axis", 0)
    if data.dims is not None and data.dims:
        p.bound(index, data.dims[axis])
    listed, at = data.values(), index.values()
    numbers, source = None, None
    if listed is not None and at is not None and data.dims is not None and len(data.dims) == 1:
        if all(isinstance(one, int) for one in at):
            numbers = tuple(listed[one] for one in at)
    elif data.source is not None and axis == 0 and index.dims in ((), (1,)):
        source = data.source
    if data.dims is None or index.dims is None:
        return [Known(None, numbers, source)]
    axis %= len(data.dims)
    return [Known((*data.dims[:axis], *index.dims, *data.dims[axis + 1 :]), numbers, source)]


def _gather_elements(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    if i[0].dims is not None:
        p.bound(i[1], i[0].dims[a.number("axis", 0)])
    return [Known(i[1].dims)]


def _concat(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    axis = a.number("axis", 0)
    listed = [one.values() for one in i]
    numbers = None
    if all(one is not None for one in listed) and sum(len(one or ()) for one in listed) <= 256:
        numbers = tuple(number for one in listed for number in one or ())
    known = [one.dims for one in i if one.dims is not None]
    if len(known) < len(i) or not known:
        return [Known((len(numbers),) if numbers is not None else None, numbers)]
    rank = len(known[0])
    axis %= rank
    dims: list[Number] = list(known[0])
    for other in known[1:]:
        for at in range(rank):
            if at == axis:
                both = (dims[at], other[at])
                dims[at] = None if lacks(both) else both[0] + both[1]
            else:
                dims[at] = p.equal(dims[at], other[at])
    return [Known(tuple(dims), numbers if rank == 1 else None)]


def _squeezed(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    one = i[0]
    axes = a.numbers("axes")
    if axes is None and len(i) > 1:
        axes = whole(i[1])
    if one.dims is None or (axes is None and any(dim is None for dim in one.dims)):
        return [Known(None, one.values(), one.source, one.most)]
    if axes is None:
        dims = tuple(dim for dim in one.dims if not (isinstance(dim, int) and dim == 1))
        return [Known(dims, one.values(), one.source, one.most)]
    chosen = {axis % len(one.dims) for axis in axes}
    for axis in chosen:
        if one.dims[axis] is not None:
            p.require(one.dims[axis] == 1)
    dims = tuple(dim for at, dim in enumerate(one.dims) if at not in chosen)
    return [Known(dims, one.values(), one.source, one.most)]


def _unsqueezed(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    one = i[0]
    axes = a.numbers("axes")
    if axes is None and len(i) > 1:
        axes = whole(i[1])
    if one.dims is None or axes is None:
        return [Known(None, one.values(), one.source, one.most)]
    rank = len(one.dims) + len(axes)
    chosen, rest = {axis % rank for axis in axes}, iter(one.dims)
    dims = tuple(1 if at in chosen else next(rest) for at in range(rank))
    return [Known(dims, one.values() if rank <= 1 else None, one.source, one.most)]


def _reshape(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    one = i[0]
    target = i[1].values() if len(i) > 1 else None
    if len(i) < 2:
        listed = a.numbers("shape")
        target = None if listed is None else tuple(listed)
    if target is None:
        rank = i[1].dims[0] if len(i) > 1 and i[1].dims else None
        unknown = (None,) * rank if isinstance(rank, int) else None
        return [Known(unknown, None, one.source, one.most)]
    dims: list[Number] = []
    for at, size in enumerate(target):
        if isinstance(size, (int, float)) and size == 0 and not a.number("allowzero", 0):
            dims.append(one.dims[at] if one.dims is not None and at < len(one.dims) else None)
        else:
            dims.append(size)
    found = _filled(p, one.dims, dims)
    numbers = one.values() if len(found) <= 1 else None
    return [Known(found, numbers, one.source, one.most)]


def _filled(p: Propagation, before: Dims | None, dims: list[Number]) -> Dims:
    """Return a target shape with the size in place of -1, and demand that the elements fit."""
    total = None if before is None else product(before)
    open_at = [at for at, dim in enumerate(dims) if isinstance(dim, int) and dim == -1]
    rest = product([dim for at, dim in enumerate(dims) if at not in open_at])
    if total is None or rest is None:
        return tuple(None if at in open_at else dim for at, dim in enumerate(dims))
    if not open_at:
        p.require(total == rest)
        return tuple(dims)
    safe = np.maximum(rest, 1) if isinstance(rest, np.ndarray) else max(rest, 1)
    p.require(total % safe == 0)
    return tuple(total // safe if at in open_at else dim for at, dim in enumerate(dims))


def _transpose(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    dims = i[0].dims
    if dims is None:
        return [Known(None, None, i[0].source, i[0].most)]
    order = a.numbers("perm") or list(reversed(range(len(dims))))
    return [Known(tuple(dims[at] for at in order), None, i[0].source, i[0].most)]


def _flatten(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    dims = i[0].dims
    if dims is None:
        return [Known((None, None), None, i[0].source)]
    axis = a.number("axis", 1)
    axis = axis if axis >= 0 else axis + len(dims)
    return [Known((product(dims[:axis]), product(dims[axis:])), None, i[0].source)]


def _expand(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    target = i[1].values()
    one = i[0]
    if target is None:
        return [Known(None, None, one.source, one.most)]
    numbers = one.values()
    repeated = None
    if numbers is not None and len(numbers) == 1 and len(target) == 1:
        count = only(target)
        if isinstance(count, int) and 0 <= count <= MOST_NUMBERS:
            repeated = numbers * count
    return [Known(p.broadcast(one.dims, tuple(target)), repeated, one.source, one.most)]


def _tile(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    dims, repeats = i[0].dims, i[1].values()
    if dims is None or repeats is None or len(dims) != len(repeats):
        return [Known(None if dims is None else (None,) * len(dims), None, i[0].source)]
    found = tuple(None if lacks(pair) else pair[0] * pair[1]
                  for pair in zip(dims, repeats, strict=True))  # fmt: skip
    return [Known(found, None, i[0].source, i[0].most)]


def _slice(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    dims = i[0].dims
    if dims is None:
        return [Known(None, None, i[0].source)]
    if len(i) > 1:
        starts, ends = i[1].values(), i[2].values()
        axes = whole(i[3]) if len(i) > 3 and i[3] is not UNKNOWN else None
        steps = whole(i[4]) if len(i) > 4 and i[4] is not UNKNOWN else None
        has_axes = len(i) > 3 and i[3] is not UNKNOWN
        if has_axes and axes is None:
            return [Known((None,) * len(dims), None, i[0].source)]
    else:
        listed, last = a.numbers("starts"), a.numbers("ends")
        starts = None if listed is None else tuple(listed)
        ends = None if last is None else tuple(last)
        axes, steps = a.numbers("axes"), None
    count = len(starts or ends or ())
    chosen = [axis % len(dims) for axis in (axes if axes is not None else range(count))]
    found: list[Number] = list(dims)
    numbers = i[0].values() if len(dims) == 1 else None
    for at, axis in enumerate(chosen):
        begin = None if starts is None else starts[at]
        end = None if ends is None else ends[at]
        step = 1 if steps is None else steps[at]
        found[axis] = _sliced(dims[axis], begin, end, step)
        if numbers is not None:
            is_known = isinstance(begin, int) and isinstance(end, int)
            part = slice(_edge(begin, step), _edge(end, step), step)
            numbers = numbers[part] if is_known else None
    return [Known(tuple(found), numbers, i[0].source, i[0].most)]


def _edge(value: Number, step: int) -> int | None:
    if not isinstance(value, int) or (abs(value) > 1 << 30 and step < 0):
        return None
    return value


def _sliced(size: Number, begin: Number, end: Number, step: int) -> Number:
    if size is None or begin is None or end is None:
        return None
    begin = np.where(begin < 0, begin + size, begin)
    end = np.where(end < 0, end + size, end)
    if step > 0:
        low, high = np.clip(begin, 0, size), np.clip(end, 0, size)
        count = np.maximum(0, -((low - high) // step))
    else:
        low, high = np.clip(begin, -1, size - 1), np.clip(end, -1, size - 1)
        count = np.maximum(0, -((high - low) // -step))
    return int(count) if count.ndim == 0 else count


def _split(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    dims = i[0].dims
    if dims is None:
        return []
    axis = a.number("axis", 0) % len(dims)
    parts: list[Number] | None = a.numbers("split")
    if parts is None and len(i) > 1:
        listed = i[1].values()
        parts = None if listed is None else list(listed)
    count = a.outputs
    if parts is None:
        size = dims[axis]
        even: Number = None if size is None else size // count
        parts = [even] * count
    elif dims[axis] is not None and not lacks(parts):
        total = sum(parts)
        p.require(dims[axis] == total)
    return [Known((*dims[:axis], part, *dims[axis + 1 :])) for part in parts]


def _pad(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    dims = i[0].dims
    if dims is None:
        return []
    listed = a.numbers("pads") or a.numbers("paddings")
    pads: Sequence[Number] | None = listed
    if pads is None and len(i) > 1:
        pads = i[1].values()
    if pads is None:
        return [Known((None,) * len(dims))]
    axes = whole(i[3]) if len(i) > 3 and i[3] is not UNKNOWN else list(range(len(dims)))
    found = list(dims)
    is_reflected = a.text("mode", "constant") == "reflect"
    for at, axis in enumerate(axes or []):
        before, after = pads[at], pads[at + len(axes or [])]
        size = dims[axis]
        if size is None or before is None or after is None:
            found[axis] = None
            continue
        if is_reflected:
            p.require((size > before) & (size > after))
        found[axis] = size + before + after
        p.require(found[axis] >= 0)
    return [Known(tuple(found))]


def _top(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    dims = i[0].dims
    if dims is None:
        return []
    axis = a.number("axis", -1) % len(dims)
    values = i[1].values() if len(i) > 1 else (a.number("k", 1),)
    count = values[0] if values else None
    if count is not None and dims[axis] is not None:
        p.require(dims[axis] >= count)
    return [Known((*dims[:axis], count, *dims[axis + 1 :]))] * 2


def _one_hot(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    values = i[1].values()
    depth = values[0] if values else None
    p.bound(i[0], depth)
    if i[0].dims is None:
        return []
    axis = a.number("axis", -1)
    at = axis if axis >= 0 else axis + len(i[0].dims) + 1
    return [Known((*i[0].dims[:at], depth, *i[0].dims[at:]))]


def _space_to_depth(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    dims, block = i[0].dims, a.number("blocksize", 1)
    if dims is None or len(dims) != 4:
        return []
    for dim in dims[2:]:
        if dim is not None:
            p.require(dim % block == 0)
    count = None if dims[1] is None else dims[1] * block * block
    return [Known((dims[0], count, *(None if d is None else d // block for d in dims[2:])))]


def _depth_to_space(p: Propagation, i: list[Known], a: Attributes) -> Sequence[Known]:
    dims, block = i[0].dims, a.number("blocksize", 1)
    if dims is None or len(dims) != 4:
        return []
    count = None if dims[1] is None else dims[1] // (block * block)
    return [Known((dims[0], count, *(None if d is None else d * block for d in dims[2:])))]


LAYOUT_RULES: dict[str, Rule] = {
    "Gather": _gather, "GatherElements": _gather_elements, "Concat": _concat,
    "Squeeze": _squeezed, "Unsqueeze": _unsqueezed, "Reshape": _reshape,
    "Transpose": _transpose, "Flatten": _flatten, "Expand": _expand, "Tile": _tile,
    "Slice": _slice, "Split": _split, "Pad": _pad, "TopK": _top, "OneHot": _one_hot,
    "SpaceToDepth": _space_to_depth, "DepthToSpace": _depth_to_space,
}  # fmt: skip
"""By operator."""
