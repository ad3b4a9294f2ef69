"""Pooling: dilations, sizes that are rounded up, and what counts."""

from __future__ import annotations

from math import prod

import numpy as np

from dld_tui.core.conversion.opset_steps.step import Array, OpsetStep, UnwritableError
from dld_tui.core.model.shapes.size import number_of
from dld_tui.core.types import FLOATS


def whole_number_up(step: OpsetStep) -> None:
    """Write p as the integer that it is."""
    p = float(step.take("p", 2.0))
    if p != int(p):
        raise UnwritableError(f"{step.op_type} has no p {p:g} from opset 2 on")
    step.put("p", int(p))


def average_pool(step: OpsetStep) -> None:
    """Refuse what counts otherwise."""
    if step.get("ceil_mode", 0) and step.get("count_include_pad", 0):
        raise UnwritableError(
            "AveragePool with ceil_mode and count_include_pad counts other elements before opset 19"
        )


def average_pool_down(step: OpsetStep) -> None:
    """Write dilations as a convolution by 1, divided by how many elements each window has."""
    is_padded = any(step.get("pads", ())) or step.get("auto_pad", "NOTSET").startswith("SAME")
    if not is_padded:
        step.take("count_include_pad")  # there are none, and what ceil_mode adds never counts
    average_pool(step)
    if not _has_dilations(step):
        return
    counts_pads = step.take("count_include_pad", 0)
    weights = _weights(step)
    kernel = step.get("kernel_shape")
    whole_windows_down(step)
    is_padded |= any(step.get("pads", ()))  # by ceil_mode
    x, attributes = step.input(0), _taken(step)
    dtype = step.need_dtype()
    if counts_pads or not is_padded:
        counts = step.constant(np.array(prod(kernel)), dtype)
    else:
        one = step.constant(np.ones((1,) * (len(kernel) + 2)), dtype)
        shape = step.add("Shape", [x], (len(kernel) + 2,), "int64")
        ones = step.add("Expand", [one, shape], step.dims(x), dtype)
        counts = step.add("Conv", [ones, weights], None, dtype, **attributes)
    step.become("Div", [step.add("Conv", [x, weights], None, dtype, **attributes), counts])


def lp_pool_down(step: OpsetStep) -> None:
    """Write dilations as a convolution of powers by 1, and round sizes down."""
    if not _has_dilations(step):
        whole_windows_down(step)
        return
    weights, dtype = _weights(step), step.need_dtype()
    whole_windows_down(step)
    p = step.take("p", 2)
    powers = [step.constant(np.array(power), dtype) for power in (float(p), 1 / p)]
    x = step.add("Pow", [step.add("Abs", [step.input(0)]), powers[0]], step.dims(step.input(0)))
    sums = step.add("Conv", [x, weights], None, dtype, **_taken(step))
    step.become("Pow", [sums, powers[1]])


def max_pool_down(step: OpsetStep) -> None:
    """Drop dilations that are all 1, and round sizes down."""
    if _has_dilations(step):
        raise UnwritableError("MaxPool has no dilations before opset 10")
    whole_windows_down(step)


def whole_windows_down(step: OpsetStep) -> None:
    """Pad the end so that sizes that are rounded up are those that are rounded down."""
    if not step.take("ceil_mode", 0) or step.get("auto_pad", "NOTSET").startswith("SAME"):
        return
    kernel = step.get("kernel_shape")
    count = len(kernel)
    strides = step.get("strides") or [1] * count
    dims = step.dims(step.input(0))
    sizes = [
        None if dims is None else number_of(size) for size in (dims or (None,) * count)[-count:]
    ]
    pads = list(step.get("pads") or [0] * 2 * count)
    dilations = step.get("dilations") or [1] * count
    for at, (window, stride, size) in enumerate(zip(kernel, strides, sizes, strict=True)):
        if stride == 1:
            continue
        if size is None:
            raise UnwritableError(
                f"the sizes of {step.shown(0)} are not known: {step.op_type} has no ceil_mode "
                f"before opset {step.since}"
            )
        extent = (window - 1) * dilations[at] + 1
        padded = int(size) + pads[at] + pads[at + count]
        windows = -(-(padded - extent) // stride) + 1
        if (windows - 1) * stride >= int(size) + pads[at]:
            windows -= 1  # no window begins in the pads at the end
        missing = (windows - 1) * stride + extent - padded
        if missing > 0 and step.get("count_include_pad", 0):
            raise UnwritableError(
                f"{step.op_type} has no ceil_mode before opset {step.since}, and pads count"
            )
        pads[at + count] += max(missing, 0)
        if pads[at + count] >= extent:
            raise UnwritableError(f"{step.op_type} takes no pads as large as its window")
    if step.get("auto_pad", "NOTSET") == "VALID":
        step.take("auto_pad")
    step.put("pads", pads)


def _has_dilations(step: OpsetStep) -> bool:
    if set(step.get("dilations", ())) <= {1}:
        step.take("dilations")
    return step.has("dilations")


def _weights(step: OpsetStep) -> str:
    """Add the weights of a convolution that adds up the windows of each channel."""
    dims, dtype = step.dims(step.input(0)), step.need_dtype()
    channels = number_of(dims[1]) if dims is not None and len(dims) > 2 else None
    if channels is None:
        raise UnwritableError(
            f"the channels of {step.shown(0)} are not known: {step.op_type} has no dilations "
            f"before opset {step.since}"
        )
    if dtype not in FLOATS:
        raise UnwritableError(
            f"{step.op_type} of {dtype} has no dilations before opset {step.since}"
        )
    ones: Array = np.ones((int(channels), 1, *step.get("kernel_shape")))
    step.put("group", int(channels))
    return step.constant(ones, dtype)


def _taken(step: OpsetStep) -> dict[str, object]:
    names = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
    return {name: step.get(name) for name in names if step.has(name)}
