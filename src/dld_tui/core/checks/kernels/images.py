"""What kernels of convolutions, pools, resizing and detection refuse."""

from __future__ import annotations

import math

import numpy as np

from dld_tui.core import fmt
from dld_tui.core.checks.calls import Call
from dld_tui.core.checks.kernels.shape_patterns import (
    Rule,
    in_range,
    positive,
)
from dld_tui.core.checks.operands import (
    VALUE,
    Said,
    differ,
    dims_text,
    like,
    sizes_text,
    wrong,
)

_MOST_ELEMENTS = 1 << 40
"""Elements that no memory holds."""


def channels_norm(call: Call) -> Said:
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


def not_empty(call: Call) -> Said:
    """Yield data of a pool that are empty otherwise than by their batch."""
    dims = call.dims(0)
    if dims and 0 in dims[1:] and dims[0]:
        yield wrong(f"The data is {dims_text(dims)}, only the batch may be 0")


def unpooled(call: Call) -> Said:
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


def padded(call: Call) -> Said:
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
        left = size + sum(min(end, 0) for end in ends)
        least = 0 if mode == "constant" else 2 if mode == "reflect" and max(ends) > 0 else 1
        if size + sum(ends) < 0 or left < least or (mode == "reflect" and max(ends) >= left):
            yield wrong(f"Pads of {ends[0]} and {ends[1]} do not go with {size} elements")
            return


def regions(call: Call) -> Said:
    """Yield regions of RoiAlign that are of no image."""
    yield from in_range(call, 2, call.dim(0, 0), negative=False)


def response(call: Call) -> Said:
    """Yield numbers that LRN does not take."""
    size = call.attribute("size")
    if isinstance(size, int) and size > 0 and (size % 2 == 0 or size >= 1 << 31):
        yield VALUE, f"Attribute size is {size}, it must be odd"
    for name in ("alpha", "beta"):
        value = call.attribute(name, 1.0)
        if isinstance(value, float) and not value > 0:
            yield VALUE, f"Attribute {name} is {value:g}, it must be positive"


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


def of_filters(*indexes: int) -> Rule:
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


def left_out(call: Call) -> Said:
    """Yield thresholds of NonMaxSuppression that are not there or out of range."""
    if call.dims(3) == (0,):
        yield wrong("Input 3 is empty")
    threshold = call.value(3)
    if threshold is not None and threshold.size and not 0 <= float(threshold.ravel()[0]) <= 1:
        yield wrong(f"The IoU threshold is {threshold.ravel()[0]}, it must be between 0 and 1")


def transposed(call: Call) -> Said:
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
            yield wrong(f"{list(pads)} pads leave nothing of {least} elements")
            return
        size = wanted[axis - count] if wanted and len(wanted) >= count else least
        if size < 1 or size >= least + strides[axis]:
            yield wrong(f"{given} elements do not make {size}, {least} and a stride at most")
            return


def sampled(call: Call) -> Said:
    """Yield data of GridSample that have nothing to sample."""
    dims = call.dims(0)
    if dims and 0 in dims[2:] and 0 not in dims[:2]:
        yield wrong(f"The data is {dims_text(dims)}, there is nothing to sample")


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
    size, given = math.prod(block.ravel().tolist()), call.dim(0, 1)
    if given is not None and (size < 1 or given < 1 or given % size):
        yield wrong(f"{given} channels are no blocks of {sizes_text(block.tolist())}")
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
    blocks, given = int(np.prod(spare // strides + 1)), call.dim(0, -1)
    if differ(given, blocks):
        yield wrong(f"The data has {given} blocks, the image has room for {blocks}")


def deformed(call: Call) -> Said:
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
    made: list[int | None] = [None, None]
    for axis in (0, 1):
        size, window = x[2 + axis], weight[2 + axis]
        if size is not None and window is not None:
            spare = size + pads[axis] + pads[axis + 2] - steps[axis] * (window - 1) - 1
            made[axis] = spare // strides[axis] + 1
    height, width = weight[2:]
    points = None if height is None or width is None else height * width * groups
    twice = None if points is None else 2 * points
    yield from like(call, 2, "The offset", (x[0], twice, *made))
    yield from like(call, 4, "The mask", (x[0], points, *made))
