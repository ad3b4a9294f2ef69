"""Other things that operators meant before, or mean since."""

from __future__ import annotations

import numpy as np
from onnx import numpy_helper

from dld_tui.core.conversion.opset_steps.step import OpsetStep, UnwritableError, int64_array
from dld_tui.core.files.proto_fields import text_of
from dld_tui.core.model.shapes.size import number_of
from dld_tui.core.types import FLOATS


def broadcast_up(step: OpsetStep) -> None:
    """Before opset 7 an attribute said where the axes of the second input are."""
    axis = step.take("axis")
    if not step.take("broadcast", 0) or axis is None:
        return
    rank = step.need_rank(f"axis of {step.op_type}")
    own = step.need_rank(f"axis of {step.op_type}", 1)
    missing = rank - (axis % rank) - own
    if missing > 0:
        axes = list(range(own, own + missing))
        step.put_input(1, step.add("Unsqueeze", [step.input(1)], axes=axes))


def gemm_up(step: OpsetStep) -> None:
    """Drop what said that C is broadcast: it always is."""
    step.take("broadcast")


def axis_up(step: OpsetStep) -> None:
    """Write the axis of Concat, which is 1 before opset 4 where nothing says it."""
    if not step.has("axis"):
        step.put("axis", 1)


def slope_up(step: OpsetStep) -> None:
    """Before opset 7 the slopes are those of channels."""
    slopes = step.sizes(1)
    if slopes is None or len(slopes) != 1:
        step.need_rank("PRelu, whose slopes are of channels before opset 7,", 1)
        return
    if slopes != (1,):
        rank = step.need_rank("PRelu, whose slopes are of channels before opset 7,")
        if rank > 2:
            axes = list(range(1, rank - 1))
            step.put_input(1, step.add("Unsqueeze", [step.input(1)], axes=axes))


def same_shapes_down(step: OpsetStep) -> None:
    """Refuse inputs that are broadcast."""
    shapes = [step.dims(text_of(name)) for name in step.node.input]
    if len(shapes) > 1 and (None in shapes or any(shape != shapes[0] for shape in shapes)):
        raise UnwritableError(f"{step.op_type} takes only inputs of the same shape before opset 8")


def bias_down(step: OpsetStep) -> None:
    """Add the C of Gemm, which was required."""
    if not step.input(2):
        step.put_input(2, step.constant(np.zeros(1), step.need_dtype()))


def direction_up(step: OpsetStep) -> None:
    """Spell the default as it was meant."""
    if step.get("direction", "foward") == "foward":
        step.put("direction", "forward")


def layout_down(step: OpsetStep) -> None:
    """Put the batch second, which it always was."""
    if not step.take("layout", 0):
        return
    for at, order in ((0, [1, 0, 2]), (5, [1, 0, 2]), (6, [1, 0, 2])):
        if step.input(at) and (at < 6 or step.op_type == "LSTM"):
            step.put_input(at, step.add("Transpose", [step.input(at)], perm=order))
    for at, order in ((0, [2, 0, 1, 3]), (1, [1, 0, 2]), (2, [1, 0, 2])):
        if step.output(at):
            step.finish(at, "Transpose", perm=order)


def axis_down(step: OpsetStep) -> None:
    """Count axes from the front: no operator counts from the end before opset 11."""
    for name in ("axis", "axes"):
        value = step.get(name)
        axes = value if isinstance(value, (list, tuple)) else [value]
        if value is None or all(axis >= 0 for axis in axes):
            continue
        rank = step.need_rank(f"{name} {value} of {step.op_type} before opset 11")
        if step.op_type == "Unsqueeze":
            rank += len(axes)
        elif step.op_type == "OneHot":
            rank += 1
        axes = [axis % rank for axis in axes]
        step.put(name, axes if isinstance(value, (list, tuple)) else axes[0])
    if step.op_type == "Slice" and step.input(3):
        chosen = step.array(3)
        if chosen is None:
            raise UnwritableError("the axes of Slice may count from the end: not before opset 11")
        if (chosen < 0).any():
            rank = step.need_rank("axes of Slice that count from the end")
            step.put_input(3, step.constant(chosen % rank))


def one_hot_down(step: OpsetStep) -> None:
    """Refuse indices that may count from the end."""
    axis_down(step)
    indices = step.array(0)
    if indices is None or (indices < 0).any():
        raise UnwritableError("indices of OneHot count from the end from opset 11 on, not before")


def scatter_to_elements(step: OpsetStep) -> None:
    """Rename it."""
    step.node.op_type = "ScatterElements"


def elements_to_scatter(step: OpsetStep) -> None:
    """Rename it."""
    axis_down(step)
    step.node.op_type = "Scatter"


def reduction_down(step: OpsetStep) -> None:
    """Refuse reductions that came later."""
    step.refuse_value("reduction", ("max", "min"))


def column_row_depth_down(step: OpsetStep) -> None:
    """Write blocks whose channels come first (CRD) by the reshapes that they stand for."""
    if step.take("mode", "DCR") == "DCR":
        return
    dims, block = step.dims(step.input(0)), step.get("blocksize")
    channels = number_of(dims[1]) if dims is not None and len(dims) == 4 else None
    if channels is None:
        raise UnwritableError(
            f"the channels of {step.shown(0)} are not known: DepthToSpace has no mode CRD before "
            f"opset {step.since}"
        )
    depth = int(channels) // block**2
    height, width = step.size(0, 2), step.size(0, 3)
    batch, fixed = step.size(0, 0), step.constant(int64_array([depth, block, block]))
    split_shape = step.add("Concat", [batch, fixed, height, width], (6,), "int64", axis=0)
    blocks = step.add("Reshape", [step.input(0), split_shape])
    blocks = step.add("Transpose", [blocks], perm=[0, 1, 4, 2, 5, 3])
    factor, channels_out = step.constant(int64_array([block])), step.constant(int64_array([depth]))
    sizes = [step.add("Mul", [size, factor], (1,), "int64") for size in (height, width)]
    shape = step.add("Concat", [batch, channels_out, *sizes], (4,), "int64", axis=0)
    step.become("Reshape", [blocks, shape])


def last_index_down(step: OpsetStep) -> None:
    """Find the last of equal elements as the first one of the elements in reverse."""
    if not step.take("select_last_index", 0):
        return
    rank = step.need_rank(f"{step.op_type} with select_last_index before opset {step.since}")
    axis, x = step.get("axis", 0) % rank, step.input(0)
    number = number_of((step.dims(x) or ())[axis])
    if number is not None:
        order = step.constant(np.arange(int(number))[::-1].astype(np.int64))
        last = step.constant(np.array(int(number) - 1, np.int64))
        step.put_input(0, step.add("Gather", [x, order], step.dims(x), axis=axis))
    else:
        one = step.constant(int64_array([1]))
        last = step.add("Sub", [step.size(0, axis), one], (1,), "int64")
        last = step.add("Reshape", [last, step.constant(np.zeros(0, np.int64))], (), "int64")
        bounds = [step.constant(int64_array([bound])) for bound in (-1, -(2**63) + 1, axis, -1)]
        step.put_input(0, step.add("Slice", [x, *bounds], step.dims(x)))
    step.finish(0, "Add", [last])
    step.finish(0, "Neg")


def mod_down(step: OpsetStep) -> None:
    """Write the remainder of integers by a division."""
    dtype, is_c = step.need_dtype(), step.take("fmod", 0)
    if dtype in FLOATS:
        raise UnwritableError("Mod of floating point numbers does not exist before opset 10")
    a, b = step.input(0), step.input(1)

    def parts(x: str) -> list[str]:
        return [x, step.add("Mul", [step.add("Div", [x, b]), b])]

    if not is_c and not dtype.startswith("uint"):  # has the sign of the divisor
        a = step.add("Add", [step.add("Sub", parts(a)), b])
    step.become("Sub", parts(a))


def equal_down(step: OpsetStep) -> None:
    """Compare floating point numbers by what is neither less, nor greater, nor no number."""
    dtype = step.need_dtype()
    if dtype not in FLOATS:
        return
    one, zero = (step.constant(np.array(number), dtype) for number in (1, 0))

    def differ(x: str, low: str, y: str) -> str:
        less, more = (
            step.add("Less", [x, low], None, "bool"),
            step.add("Greater", [x, y], None, "bool"),
        )
        return step.add("Or", [less, more], None, "bool")

    a, b = step.input(0), step.input(1)
    numbers = [differ(x, one, zero) for x in (a, b)]
    are_numbers = step.add("And", numbers, None, "bool")
    step.become("And", [are_numbers, step.add("Not", [differ(a, b, b)], None, "bool")])


def bitwise_not_down(step: OpsetStep) -> None:
    """Subtract from the number whose bits are all 1."""
    dtype = step.need_dtype()
    ones = np.iinfo(dtype).max if dtype.startswith("uint") else -1
    step.become("Sub", [step.constant(np.array(ones, dtype)), step.input(0)])


def optional_value_down(step: OpsetStep) -> None:
    """A tensor or sequence is what it has."""
    if _is_there(step):
        step.become("Identity", [step.input(0)])


def _is_there(step: OpsetStep) -> bool:
    kind = step.values.type_name(step.input(0)) if step.input(0) else None
    return kind is not None and not kind.startswith("optional")


def has_value_down(step: OpsetStep) -> None:
    """A tensor or sequence is there; what is not given is not."""
    if _is_there(step) or not step.input(0):
        value = numpy_helper.from_array(np.array(bool(step.input(0))))
        step.become("Constant", [], value=value)


def no_scan(step: OpsetStep) -> None:
    """Refuse it: batches were an axis of their own."""
    raise UnwritableError("Scan has a batch axis before opset 9, and none from it on")
