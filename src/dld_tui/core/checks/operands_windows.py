"""Rules about convolutions, pools and normalizations."""

from __future__ import annotations

from typing import Any

from dld_tui.core.checks.calls import Call, Dims
from dld_tui.core.checks.operand_tools import (
    VALUE,
    Said,
    axis_said,
    differ,
    dims_text,
    vector,
    wrong,
)

# --- convolutions and pools ---------------------------------------------------------------------


def convolution(data: int, weight: int, bias: int | None, *, transposed: bool = False) -> Any:
    """Return the rule for convolutions with these inputs."""

    def check(call: Call) -> Said:
        group = call.attribute("group", 1)
        if group < 1:
            yield VALUE, f"Attribute group is {group}, it must be positive"
            return
        x, w = call.dims(data), call.dims(weight)
        if w is None:
            return
        if x is not None and len(x) != len(w):
            yield wrong(
                f"The data is {dims_text(x)} and the weight {dims_text(w)}: their ranks differ"
            )
            return
        if len(w) < 3:
            yield wrong(f"The weight is {dims_text(w)}, it must have 3 dimensions or more")
            return
        kernel = call.attribute("kernel_shape")
        if kernel and (
            len(kernel) != len(w) - 2
            or any(differ(int(a), b) for a, b in zip(kernel, w[2:], strict=True))
        ):
            yield wrong(f"kernel_shape is {list(kernel)} and the weight {dims_text(w)}")
        yield from _window(call, len(w) - 2, w[2:])
        channels = x[1] if x is not None else None
        taken = w[0] if transposed else None if w[1] is None else w[1] * group
        if differ(channels, taken):
            yield wrong(f"The data has {channels} channels, the weight takes {taken}")
        made = None if w[1 if transposed else 0] is None else w[1 if transposed else 0]
        if made is not None and transposed:
            made *= group
        elif made is not None and made % group:
            yield wrong(f"{made} output channels are not a multiple of group {group}")
        if bias is not None:
            yield from vector(call, bias, "The bias", made)
        if x is not None and not transposed:
            yield from _room(call, x[2:], w[2:])

    return check


def _window(call: Call, spatial: int, kernel: Dims | None) -> Said:
    for name, count in (("strides", spatial), ("dilations", spatial), ("pads", 2 * spatial)):
        values = call.attribute(name)
        if not values:
            continue
        if len(values) != count:
            yield VALUE, f"Attribute {name} has {len(values)} values, {count} are needed"
        elif name != "pads" and any(value <= 0 for value in values):
            yield VALUE, f"Attribute {name} is {list(values)}, all must be positive"
    del kernel


def _room(call: Call, sizes: Dims, kernel: Dims) -> Said:
    """Yield where a window does not fit into the padded data."""
    if call.attribute("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        return
    count = len(sizes)
    pads = call.attribute("pads") or [0] * 2 * count
    dilations = call.attribute("dilations") or [1] * count
    if call.attribute("auto_pad", "NOTSET") == "VALID":
        pads = [0] * 2 * count
    if len(pads) != 2 * count or len(dilations) != count or len(kernel) != count:
        return
    for axis in range(count):
        size, window = sizes[axis], kernel[axis]
        if size is None or window is None:
            continue
        padded = size + pads[axis] + pads[axis + count]
        if padded < dilations[axis] * (window - 1) + 1:
            yield wrong(f"A window of {window} does not fit into {padded} padded elements")
            return


def pool(call: Call) -> Said:
    """Yield what is wrong with a pool."""
    x, kernel = call.dims(0), call.attribute("kernel_shape")
    if x is None or not kernel:
        return
    if len(kernel) != len(x) - 2:
        yield wrong(f"kernel_shape is {list(kernel)} and the data {dims_text(x)}")
        return
    yield from _window(call, len(kernel), None)
    pads = call.attribute("pads") or []
    if len(pads) == 2 * len(kernel):
        for axis, size in enumerate(kernel):
            if max(pads[axis], pads[axis + len(kernel)]) >= size:
                yield (
                    VALUE,
                    f"Attribute pads is {list(pads)}, less than the window {size} is needed",
                )
                break
    if not call.attribute("ceil_mode", 0):
        yield from _room(call, x[2:], tuple(kernel))


def global_pool(call: Call) -> Said:
    """Yield what is wrong with a pool over all."""
    x = call.dims(0)
    if x is not None and len(x) < 3:
        yield wrong(f"The data is {dims_text(x)}, it must have 3 dimensions or more")


# --- normalization ------------------------------------------------------------------------------


def batch_norm(call: Call) -> Said:
    """Yield what is wrong with BatchNormalization."""
    channels = call.dim(0, 1)
    rank = call.rank(0)
    if rank == 1:
        channels = 1
    for index, what in enumerate(("scale", "B", "mean", "var"), 1):
        yield from vector(call, index, f"Input {what}", channels)


def instance_norm(call: Call) -> Said:
    """Yield what is wrong with InstanceNormalization."""
    for index, what in ((1, "scale"), (2, "B")):
        yield from vector(call, index, f"Input {what}", call.dim(0, 1))


def layer_norm(call: Call) -> Said:
    """Yield what is wrong with LayerNormalization."""
    x = call.dims(0)
    yield from axis_said(call, None if x is None else len(x), -1)
    if x is None:
        return
    for index, what in ((1, "Scale"), (2, "Bias")):
        dims = call.dims(index)
        if dims is not None and not _broadcasts_to(dims, x):
            yield wrong(f"{what} is {dims_text(dims)} and does not fit the data {dims_text(x)}")


def _broadcasts_to(dims: Dims, wanted: Dims) -> bool:
    if len(dims) > len(wanted):
        return all(dim in (1, None) for dim in dims[: len(dims) - len(wanted)]) and _broadcasts_to(
            dims[len(dims) - len(wanted) :], wanted
        )
    tail = wanted[len(wanted) - len(dims) :]
    return all(a is None or b is None or a in (1, b) for a, b in zip(dims, tail, strict=True))
