"""Normalization, Dropout and Softmax: training, statistics, groups and axes."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from dld_tui.core.conversion.opset_steps.step import OpsetStep, UnwritableError, int64_array
from dld_tui.core.model.shapes.size import number_of
from dld_tui.core.model.shapes.value import Value
from dld_tui.core.model.tensors.value_types import dtype_number


def softmax_up(step: OpsetStep) -> None:
    """Write what works on a matrix of all axes before and from an axis on."""
    axis, dims = step.get("axis", 1), step.dims(step.input(0))
    if dims is not None:
        axis %= max(len(dims), 1)
        if all(number_of(size) == 1 for size in dims[axis + 1 :]):
            step.put("axis", axis)
            return
    source = step.input(0)
    shape = step.add("Shape", [source], dtype="int64")
    step.put_input(0, step.add("Flatten", [source], axis=axis))
    step.put("axis", -1)
    step.finish(0, "Reshape", [shape])


def softmax_down(step: OpsetStep) -> None:
    """Move the axis to the end, where the matrix of older versions has it, too."""
    axis, dims = step.get("axis", -1), step.dims(step.input(0))
    if dims is None:
        if axis != -1:
            step.need_rank(f"{step.op_type} along axis {axis}, written before opset 13,")
        step.put("axis", -1)
        return
    rank = len(dims)
    axis %= max(rank, 1)
    if all(number_of(size) == 1 for size in dims[axis + 1 :]):
        step.put("axis", axis)
        return
    order = list(range(rank))
    order[axis], order[-1] = order[-1], order[axis]
    moved = tuple(dims[at] for at in order)
    step.put_input(0, step.add("Transpose", [step.input(0)], moved, perm=order))
    step.put("axis", rank - 1)
    step.finish(0, "Transpose", perm=order)


def test_mode_up(step: OpsetStep) -> None:
    """Before opset 7 an attribute said that nothing is learned; later ones have no other mode."""
    if step.take("is_test", 1) == 0 or (any(step.output(at) for at in range(1, 5)) and (
        step.op_type == "BatchNormalization"
    )):  # fmt: skip
        raise UnwritableError(f"{step.op_type} that trains (is_test 0) has no later form")


def test_mode_down(step: OpsetStep) -> None:
    """Say that nothing is learned."""
    step.put("is_test", 1)


def spatial_up(step: OpsetStep) -> None:
    """Write statistics of each element by arithmetic."""
    if step.take("spatial", 1):
        return
    if any(step.output(at) for at in range(1, 5)):
        raise UnwritableError("BatchNormalization that trains each element has no later form")
    x, scale, bias, mean, variance = (step.input(at) for at in range(5))
    epsilon = step.constant(step.get("epsilon", 1e-5), step.need_dtype())
    deviation = step.add("Sqrt", [step.add("Add", [variance, epsilon])])
    normal = step.add("Div", [step.add("Sub", [x, mean]), deviation])
    step.become("Add", [step.add("Mul", [normal, scale]), bias])


def training_up(step: OpsetStep) -> None:
    """Refuse training."""
    if any(step.output(at) for at in range(1, 5)):
        raise UnwritableError("BatchNormalization that trains is another one from opset 14 on")


def training_down(step: OpsetStep) -> None:
    """Refuse training."""
    if step.take("training_mode", 0) or any(step.output(at) for at in range(1, 5)):
        raise UnwritableError("BatchNormalization that trains is another one before opset 14")


def mask_up(step: OpsetStep) -> None:
    """Cast the mask, which was a number; drop one that nothing reads."""
    if step.output(1) and not step.values.is_used(step.output(1)):
        del step.node.output[1:]
    elif step.output(1):
        number = dtype_number(step.need_dtype())
        step.finish(1, "Cast", to=number)


def mask_down(step: OpsetStep) -> None:
    """Cast the mask, which was a number."""
    if step.output(1):
        step.finish(1, "Cast", to=TensorProto.BOOL)
        step.values.made[step.output(1)] = (Value(), step.dtype())


def _without_mask(step: OpsetStep) -> None:
    """Drop a mask that nothing reads: what it is where nothing is dropped was not laid down."""
    if not step.output(1):
        return
    if step.values.is_used(step.output(1)):
        raise UnwritableError("the mask of Dropout is defined from opset 12 on only")
    del step.node.output[1:]


def ratio_up(step: OpsetStep) -> None:
    """Make the ratio an input."""
    _without_mask(step)
    step.put_input(1, step.constant(np.float32(step.take("ratio", 0.5))))


def ratio_down(step: OpsetStep) -> None:
    """Make the ratio an attribute; refuse training."""
    _without_mask(step)
    training, ratio = step.array(2), step.array(1)
    if step.input(2) and (training is None or training.any()):
        raise UnwritableError(
            "Dropout that may train (training_mode) cannot be written before opset 12"
        )
    step.take("seed")
    del step.node.input[1:]
    if ratio is not None:  # it says nothing where nothing is trained
        step.put("ratio", float(ratio.reshape(-1)[0]))


def group_norm_up(step: OpsetStep) -> None:
    """Give each channel the scale and bias that its group had."""
    dims, groups = step.dims(step.input(0)), step.get("num_groups", 1)
    channels = number_of(dims[1]) if dims is not None and len(dims) > 1 else None
    if channels is None:
        raise UnwritableError("the channels of GroupNormalization are not known")
    for at in (1, 2):
        given = step.dims(step.input(at))
        if given is not None and number_of(given[0]) not in (None, groups):
            raise UnwritableError("GroupNormalization has not one scale for each group")
    each = int(channels) // groups
    for at in (1, 2):
        column = step.add("Reshape", [step.input(at), step.constant(int64_array([groups, 1]))])
        wide = step.add("Expand", [column, step.constant(int64_array([groups, each]))])
        step.put_input(at, step.add("Reshape", [wide, step.constant(int64_array([-1]))]))


def group_norm_down(step: OpsetStep) -> None:
    """Leave it where each channel is a group; else the definition has the scales of channels."""
    dims = step.dims(step.input(0))
    channels = number_of(dims[1]) if dims is not None and len(dims) > 1 else None
    if channels is None or int(channels) != step.get("num_groups", 1):
        raise UnwritableError("GroupNormalization has one scale for each group before opset 21")
