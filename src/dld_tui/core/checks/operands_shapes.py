"""Rules about what changes, joins and multiplies shapes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from onnx import helper

from dld_tui.core import fmt
from dld_tui.core.checks.calls import Call
from dld_tui.core.checks.operand_tools import (
    VALUE,
    Said,
    axis_said,
    differ,
    dims_text,
    sizes_text,
    vector,
    wrong,
)


def reshape(call: Call) -> Said:
    """Yield where a shape does not fit the data."""
    dims, rank = call.dims(0), call.rank(1)
    if rank is not None and rank != 1:
        if dims is not None and None not in dims and call.value(1) is not None:
            return  # is worked out when the model is loaded, where any shape of it is taken
        yield wrong(f"The shape is {dims_text(call.dims(1) or ())}, it must have one dimension")
        return
    value = call.value(1) if call.version >= 5 else call.attribute("shape")
    if value is None or dims is None:
        return
    wanted = [int(size) for size in np.asarray(value).ravel()]
    keep = not call.attribute("allowzero", 0)
    if sum(size == -1 for size in wanted) > 1 or any(size < -1 for size in wanted):
        yield wrong(f"The shape {sizes_text(wanted)} is none")
        return
    if not keep and -1 in wanted and 0 in wanted:
        yield wrong(
            f"The shape {sizes_text(wanted)} has both 0 and -1, which allowzero does not allow"
        )
        return
    left, known, kept_zero = list(dims), [], False
    for axis, size in enumerate(wanted):
        if size == 0 and keep:
            if axis >= len(dims):
                yield wrong(
                    f"The shape {sizes_text(wanted)} keeps dimension {axis} of {dims_text(dims)}"
                )
                return
            kept_zero = kept_zero or dims[axis] in (0, None)
            left[axis] = 1
        elif size != -1:
            known.append(size)
    fixed = [dim for dim in left if dim is not None]
    have, need = math.prod(fixed), math.prod(known)
    free = len(fixed) < len(left)
    if kept_zero and 0 in dims:
        return  # nothing is reshaped to nothing
    zero = have == 0 or need == 0
    if -1 in wanted:
        bad = not zero and not free and have % need != 0
    else:
        bad = (have != need) if not free else (not zero and need % have != 0)
    if bad:
        yield wrong(f"{dims_text(dims)} cannot be reshaped to {sizes_text(wanted)}")


def one_dimension(*indexes: int) -> Any:
    """Return the rule that inputs are vectors."""

    def check(call: Call) -> Said:
        for index in indexes:
            dims = call.dims(index)
            if dims is not None and len(dims) != 1:
                yield wrong(f"Input {index} is {dims_text(dims)}, it must have one dimension")

    return check


def slices(call: Call) -> Said:
    """Yield what is wrong with Slice."""
    if call.version < 10:
        return
    yield from one_dimension(1, 2, 3, 4)(call)
    sizes = {call.dim(index, 0) for index in (1, 2, 3, 4) if call.rank(index) == 1} - {None}
    if len(sizes) > 1:
        yield wrong(
            f"Starts, ends, axes and steps have {sizes_text(sorted(filter(None, sizes)))} values"
        )
    steps = call.value(4)
    if steps is not None and bool((np.asarray(steps) == 0).any()):
        yield wrong("A step is 0")


def _squeeze_axes(call: Call) -> Said:
    if call.version >= 13:
        dims = call.dims(1)
        if dims is not None and len(dims) > 1:
            yield wrong(f"The axes are {dims_text(dims)}, they must have one dimension")


def _axes(call: Call) -> list[int] | None:
    """Return the axes of Squeeze and Unsqueeze; None where they are not known."""
    axes = call.attribute("axes") if call.version < 13 else call.value(1)
    return None if axes is None else [int(axis) for axis in np.asarray(axes).ravel()]


def squeeze(call: Call) -> Said:
    """Yield what is wrong with Squeeze."""
    yield from _squeeze_axes(call)
    dims, axes = call.dims(0), _axes(call)
    for axis in axes or () if dims is not None else ():
        if dims is None or not -len(dims) <= axis < len(dims):
            yield wrong(f"Axis {axis} is outside of {dims_text(dims or ())}")
        elif dims[axis] not in (1, None):
            yield wrong(f"Dimension {axis} of {dims_text(dims)} is not 1")


def unsqueeze(call: Call) -> Said:
    """Yield what is wrong with Unsqueeze."""
    yield from _squeeze_axes(call)
    rank, axes = call.rank(0), _axes(call)
    if rank is None or axes is None:
        return
    full = rank + len(axes)
    if any(not -full <= axis < full for axis in axes):
        yield wrong(f"The axes {sizes_text(axes)} are outside of {full} dimensions")
    elif len({axis % full for axis in axes}) < len(axes):
        yield wrong(f"The axes {sizes_text(axes)} name a dimension twice")


def one_axis(default: int) -> Any:
    """Return the rule that an axis is one of the data."""

    def check(call: Call) -> Said:
        yield from axis_said(call, call.rank(0), default)

    return check


def transpose(call: Call) -> Said:
    """Yield what is wrong with Transpose."""
    perm, rank = call.attribute("perm"), call.rank(0)
    if perm is None:
        return
    if sorted(perm) != list(range(len(perm))):
        yield VALUE, f"Attribute perm is {list(perm)}, which is no order of dimensions"
    elif rank is not None and len(perm) != rank:
        yield (
            VALUE,
            f"Attribute perm is {list(perm)}, the input has {fmt.plural(rank, 'dimension')}",
        )


def concat(call: Call) -> Said:
    """Yield what is wrong with Concat."""
    known = [
        dims for index in range(len(call.node.input)) if (dims := call.dims(index)) is not None
    ]
    if not known:
        return
    rank = len(known[0])
    if any(len(dims) != rank for dims in known):
        yield wrong(f"The ranks of {', '.join(dims_text(dims) for dims in known[:6])} differ")
        return
    axis = call.attribute("axis", 1)
    if not -rank <= axis < rank:
        yield VALUE, f"Attribute axis is {axis}, the inputs have {fmt.plural(rank, 'dimension')}"
        return
    for other in range(rank):
        sizes = {dims[other] for dims in known} - {None}
        if other != axis % rank and len(sizes) > 1:
            texts = ", ".join(dims_text(dims) for dims in known[:6])
            yield wrong(f"{texts} differ in dimension {other}, they are joined in {axis % rank}")
            return


def clip_limits(call: Call) -> Said:
    """Yield limits that are no scalars."""
    for index, what in ((1, "min"), (2, "max")):
        dims = call.dims(index)
        if dims not in (None, (), (1,), (None,)):
            yield wrong(f"Input {what} is {dims_text(dims or ())}, it must be a scalar")


def gather(call: Call) -> Said:
    """Yield where an index is outside."""
    rank = call.rank(0)
    yield from axis_said(call, rank, 0)
    axis = call.attribute("axis", 0)
    if rank is None or not -rank <= axis < rank:
        return
    size, indices = call.dim(0, axis), call.value(1)
    if size is not None and indices is not None and indices.dtype.kind == "i" and indices.size:
        least, most = int(indices.min()), int(indices.max())
        if least < -size or most >= size:
            worst = most if most >= size else least
            yield wrong(f"Index {worst} is outside of dimension {axis}, which has {size} elements")


def cast_type(call: Call) -> Said:
    """Yield a type that is none."""
    to = call.attribute("to")
    if isinstance(to, int):
        try:
            helper.tensor_dtype_to_np_dtype(to)
        except (KeyError, ValueError):
            yield VALUE, f"Attribute to is {to}, which is no element type"


def broadcast(call: Call) -> Said:
    """Yield where operands cannot be broadcast."""
    if call.version and call.version < 7 and not call.domain:
        return
    dims = [call.dims(index) for index in range(len(call.node.input))]
    known = [found for found in dims if found is not None]
    for axis in range(1, max((len(found) for found in known), default=0) + 1):
        sizes = {found[-axis] for found in known if len(found) >= axis} - {None, 1}
        if len(sizes) > 1:
            texts = " and ".join(dims_text(found) for found in known[:4])
            yield wrong(f"{texts} cannot be broadcast to each other")
            return


def matmul(first: int, second: int) -> Any:
    """Return the rule for a product of two inputs."""

    def check(call: Call) -> Said:
        a, b = call.dims(first), call.dims(second)
        if not a or not b:
            return
        inner = b[-2] if len(b) > 1 else b[0]
        if differ(a[-1], inner):
            yield wrong(
                f"{dims_text(a)} and {dims_text(b)} cannot be multiplied: {a[-1]} is not {inner}"
            )

    return check


def resize(call: Call) -> Said:
    """Yield what is wrong with Resize."""
    rank = call.rank(0)
    if call.version < 11 or rank is None:
        return
    axes = call.attribute("axes")
    count = len(axes) if axes else rank
    for index, what in ((2, "scales"), (3, "sizes")):
        dims = call.dims(index)
        if dims is None or dims == (0,):
            continue
        yield from vector(call, index, f"Input {what}", count)
