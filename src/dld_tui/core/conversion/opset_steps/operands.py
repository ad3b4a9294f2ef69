"""Attributes that became inputs, and inputs that came later: axes, sizes, pads, limits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dld_tui.core.conversion.opset_steps.semantics import axis_down
from dld_tui.core.conversion.opset_steps.step import (
    Array,
    OpsetStep,
    UnwritableError,
    int64_array,
    ints,
)
from dld_tui.core.files.proto_fields import text_of
from dld_tui.core.model.shapes.size import number_of
from dld_tui.core.types import FLOATS

_END = 2**63 - 1


def axes_up(step: OpsetStep) -> None:
    """Make the axes an input."""
    if step.has("axes"):
        step.put_input(1, step.constant(int64_array(step.take("axes"))))


def axes_down(step: OpsetStep) -> None:
    """Make the axes an attribute."""
    keeps = step.take("noop_with_empty_axes", 0)
    if not step.input(1):
        axes = None
    else:
        axes = step.need_array(1, "the axes")
        if step.op_type in ("Squeeze", "Unsqueeze"):
            keeps = 0
    del step.node.input[1:]
    if axes is not None and axes.size:
        step.put("axes", ints(axes.ravel()))
    elif keeps:
        if step.op_type in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"):
            step.become("Identity", [step.input(0)])
            return
        raise UnwritableError(
            f"{step.op_type} that reduces nothing cannot be written before opset {step.since}"
        )


def split_up(step: OpsetStep) -> None:
    """Make the sizes an input."""
    if step.has("split"):
        step.put_input(1, step.constant(int64_array(step.take("split"))))


def split_down(step: OpsetStep) -> None:
    """Make the sizes an attribute."""
    if step.input(1):
        sizes = step.need_array(1, "the sizes")
        del step.node.input[1:]
        step.put("split", ints(sizes.ravel()))


def split_parts_up(step: OpsetStep) -> None:
    """Say how many parts there are."""
    if not step.input(1):
        step.put("num_outputs", len(step.node.output))


def split_parts_down(step: OpsetStep) -> None:
    """Split into parts whose number is given: all equal, but for the last one."""
    parts = step.take("num_outputs")
    if parts is None:
        return
    if parts != len(step.node.output):
        raise UnwritableError(f"Split makes {parts} parts, and has {len(step.node.output)} outputs")
    axis, dims = step.get("axis", 0), step.dims(step.input(0))
    size = None if dims is None or not -len(dims) <= axis < len(dims) else dims[axis]
    number = None if size is None else number_of(size)
    if number is not None:
        part = -(-int(number) // parts)
        if part * parts != number:
            sizes = [part] * (parts - 1) + [int(number) - part * (parts - 1)]
            step.put_input(1, step.constant(int64_array(sizes)))
        return
    if size is not None and number_of(size % parts) == 0:
        return
    if step.target < 13:
        raise UnwritableError(
            f"the sizes of a Split into num_outputs parts are unknown: the size of axis {axis} of "
            f"{step.shown(0)} is not known"
        )
    shape = step.add("Shape", [step.input(0)], dtype="int64")
    total = step.add("Gather", [shape, step.constant(int64_array([axis]))], (1,), "int64", axis=0)
    count, one = step.constant(int64_array([parts])), step.constant(int64_array([1]))
    raised = step.add("Add", [total, step.constant(int64_array([parts - 1]))], (1,), "int64")
    part_size = step.add("Div", [raised, count], (1,), "int64")
    others = step.add(
        "Mul", [part_size, step.add("Sub", [count, one], (1,), "int64")], (1,), "int64"
    )
    last = step.add("Sub", [total, others], (1,), "int64")
    step.put_input(1, step.add("Concat", [part_size] * (parts - 1) + [last], (parts,), axis=0))


def pad_names_up(step: OpsetStep) -> None:
    """Rename an attribute."""
    step.put("pads", step.take("paddings", []))


def pad_up(step: OpsetStep) -> None:
    """Make pads and value inputs."""
    value = step.take("value", 0.0)
    step.put_input(1, step.constant(int64_array(step.take("pads"))))
    if value:
        step.put_input(2, step.constant(value, step.need_dtype()))


def pad_down(step: OpsetStep) -> None:
    """Make pads and value attributes."""
    pads = step.need_array(1, "the pads")
    value = step.need_array(2, "the values") if step.input(2) else None
    del step.node.input[1:]
    step.put("pads", ints(pads.ravel()))
    if value is not None:
        _put_float(step, "value", value)


def _put_float(step: OpsetStep, name: str, value: Array) -> None:
    number = float(value.reshape(-1)[0])
    with np.errstate(over="ignore"):
        if number == number and float(np.float32(number)) != number:
            raise UnwritableError(f"{name} {number:g} of {step.op_type} is no float32")
    step.put(name, number)


def pad_axes_down(step: OpsetStep) -> None:
    """Write the pads of some axes as those of all."""
    if not step.input(3):
        return
    axes = step.array(3)
    rank = step.need_rank("Pad of some axes")
    if axes is None:
        raise UnwritableError(
            f"the axes of Pad must be constant: before opset {step.since} all axes are padded"
        )
    at = [int(axis) % rank for axis in axes.ravel()]
    pads = step.array(1)
    if pads is not None:
        full = np.zeros(2 * rank, np.int64)
        full[[*at, *(axis + rank for axis in at)]] = pads.ravel()
        name = step.constant(full)
    else:
        zeros = step.constant(np.zeros(2 * rank, np.int64))
        places = step.constant(int64_array([*at, *(axis + rank for axis in at)]))
        name = step.add("ScatterElements", [zeros, places, step.input(1)], (2 * rank,), axis=0)
    step.put_input(3, "")
    step.put_input(1, name)


def pad_wrap_down(step: OpsetStep) -> None:
    """Refuse a mode that came later."""
    step.refuse_value("mode", ("wrap",))


def slice_up(step: OpsetStep) -> None:
    """Make starts, ends and axes inputs."""
    for at, name in enumerate(("starts", "ends", "axes"), 1):
        if step.has(name):
            step.put_input(at, step.constant(int64_array(step.take(name))))


def slice_down(step: OpsetStep) -> None:
    """Make starts, ends and axes attributes; with steps, take elements by their places."""
    steps = step.array(4)
    if step.input(4) and steps is None:
        raise UnwritableError("the steps of Slice must be constant before opset 10")
    if steps is not None and (steps != 1).any():
        _take_places(step, ints(steps.ravel()))
        return
    operands = {}
    for at, name in enumerate(("starts", "ends", "axes"), 1):
        if step.input(at):
            operands[name] = ints(step.need_array(at, f"the {name}").ravel())
    del step.node.input[1:]
    for name, values in operands.items():
        step.put(name, values)


def _take_places(step: OpsetStep, steps: Sequence[int]) -> None:
    starts, ends = (
        ints(step.need_array(at, f"the {name}").ravel())
        for at, name in ((1, "starts"), (2, "ends"))
    )
    given = step.need_array(3, "the axes").ravel() if step.input(3) else np.arange(len(steps))
    sizes, result = step.dims(step.input(0)), step.input(0)
    for number, axis in enumerate(ints(given)):
        size = None if sizes is None else number_of(sizes[axis])
        if size is None:
            raise UnwritableError(
                f"Slice with steps needs the sizes of {step.shown(0)} before opset 10, which are"
                " not known"
            )
        # As ONNX clamps them; an end of -1 after that is before the first one.
        by, low, high = steps[number], 0 if steps[number] > 0 else -1, size - (steps[number] < 0)
        first, end = (
            min(max(one + size if one < 0 else one, least), high)
            for one, least in ((starts[number], 0), (ends[number], low))
        )
        places = step.constant(int64_array(range(first, end, by)))
        if number == len(steps) - 1:
            step.become("Gather", [result, places], axis=axis % len(sizes or ()))
        else:
            result = step.add("Gather", [result, places], axis=axis % len(sizes or ()))


def trilu_down(step: OpsetStep) -> None:
    """Choose by a constant of the places that stay."""
    sizes = [number_of(size) for size in (step.dims(step.input(0)) or ())[-2:]]
    diagonal = step.array(1) if step.input(1) else np.array(0)
    if len(sizes) < 2 or None in sizes or diagonal is None:
        raise UnwritableError(
            f"Trilu before opset 14 needs the sizes of {step.shown(0)} and a constant diagonal"
        )
    rows, columns, k = *(int(size or 0) for size in sizes), int(diagonal.ravel()[0])
    if step.take("upper", 1):
        stays = np.tri(rows, columns, k - 1) == 0
    else:
        stays = np.tri(rows, columns, k) != 0
    mask, dtype = step.constant(stays), step.need_dtype()
    if dtype == "bool":
        step.become("And", [mask, step.input(0)])
    else:
        step.become("Where", [mask, step.input(0), step.constant(np.zeros(()), dtype)])


def clip_up(step: OpsetStep) -> None:
    """Make the limits inputs."""
    for at, name in enumerate(("min", "max"), 1):
        if step.has(name):
            value = step.take(name)
            if abs(value) < float(np.finfo(np.float32).max):
                step.put_input(at, step.constant(value, step.need_dtype()))


def clip_down(step: OpsetStep) -> None:
    """Make the limits attributes, or write Max and Min."""
    limits = [(name, at) for at, name in enumerate(("min", "max"), 1) if step.input(at)]
    values = {name: step.array(at) for name, at in limits}
    if any(value is None for value in values.values()):
        if step.target < 8:
            raise UnwritableError("the limits of Clip must be constant before opset 11")
        names = {name: step.input(at) for name, at in limits}
        if len(names) == 1:
            (kind,) = names
            step.become("Max" if kind == "min" else "Min", [step.input(0), names[kind]])
            return
        least = step.add("Max", [step.input(0), names["min"]], step.dims(step.input(0)))
        step.become("Min", [least, names["max"]])
        return
    del step.node.input[1:]
    for name, value in values.items():
        if value is not None:
            _put_float(step, name, value)


def top_k_up(step: OpsetStep) -> None:
    """Make k an input."""
    step.put_input(1, step.constant(int64_array([step.take("k")])))


def top_k_down(step: OpsetStep) -> None:
    """Make k an attribute."""
    k = step.need_array(1, "k")
    del step.node.input[1:]
    step.put("k", int(k.reshape(-1)[0]))


def top_k_order_down(step: OpsetStep) -> None:
    """Write the smallest by negation."""
    axis_down(step)
    step.take("sorted")  # any order is right where none is asked for
    if step.take("largest", 1):
        return
    if step.need_dtype() not in FLOATS:
        raise UnwritableError("the smallest integers cannot be found by TopK before opset 11")
    step.put_input(0, step.add("Neg", [step.input(0)], step.dims(step.input(0))))
    if step.output(0):
        step.finish(0, "Neg")


def reshape_up(step: OpsetStep) -> None:
    """Make the shape an input."""
    step.put_input(1, step.constant(int64_array(step.take("shape", []))))


def allow_zero_down(step: OpsetStep) -> None:
    """Drop allowzero where the shape has no 0: computed sizes are those of real data."""
    if not step.take("allowzero", 0):
        return
    sizes = step.values.value(step.input(1)).values()
    if sizes is None or any(number_of(size) == 0 for size in sizes):
        raise UnwritableError(
            "Reshape to a size of 0 (allowzero) cannot be written before opset 14"
        )


def tile_up(step: OpsetStep) -> None:
    """Write tiles along one axis as repeats of all."""
    tiles, axis = step.array(1), step.array(2)
    if tiles is None or axis is None:
        raise UnwritableError("tiles and axis of Tile must be constant")
    repeats = np.ones(step.need_rank("Tile along one axis"), np.int64)
    repeats[int(axis.reshape(-1)[0])] = int(tiles.reshape(-1)[0])
    step.put_input(2, "")
    step.put_input(1, step.constant(repeats))


def split_input_up(step: OpsetStep) -> None:
    """Make the sizes an attribute."""
    if step.input(1):
        sizes = step.need_array(1, "the sizes")
        del step.node.input[1:]
        step.put("split", ints(sizes.ravel()))


def dft_up(step: OpsetStep) -> None:
    """Make the axis an input."""
    step.put_input(2, step.constant(np.array(step.take("axis", 1), np.int64)))


def dft_down(step: OpsetStep) -> None:
    """Make the axis an attribute."""
    axis = -2
    if step.input(2):
        axis = int(step.need_array(2, "the axis").reshape(-1)[0])
        step.put_input(2, "")
    step.put("axis", axis)


def shape_down(step: OpsetStep) -> None:
    """Write a part of a shape as the whole shape and a Slice of it."""
    start, end = step.take("start", 0), step.take("end")
    if start == 0 and end is None:
        return
    bounds = [
        step.constant(int64_array([bound])) for bound in (start, _END if end is None else end)
    ]
    step.values.made[text_of(step.node.output[0])] = (step.values.value(step.output(0)), "int64")
    step.finish(0, "Slice", bounds)
