"""What changed between two versions of an operator, beyond what their schemas say.

Each function takes a node (:class:`Step`) over one version of its operator: :data:`UP` from the
version before, :data:`DOWN` back to it. What the schemas say (attributes that come and go, their
defaults, numbers of inputs, types) needs none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from dld_tui.core.document.types.value_types import dtype_number
from dld_tui.core.files.proto_fields import text_of
from dld_tui.core.shapes.size import number_of
from dld_tui.core.shapes.value import Dims, Value, of_array
from dld_tui.core.text import visible

Array: TypeAlias = "npt.NDArray[Any]"
_END = 2**63 - 1
_FLOATS = ("float32", "float16", "float64", "bfloat16")


class UnwritableError(Exception):
    """A call cannot be written in a version; the message says why, without the node."""


class Values:
    """What is known of values where a node is; :mod:`.opset` fills it."""

    def __init__(self) -> None:
        self.made: dict[str, tuple[Value, str | None]] = {}
        """Shape, elements and type of values that were added."""
        self.arrays: dict[str, Array] = {}
        """The elements of constants that were added."""
        self.enlarged: set[str] = set()
        """Results of what only enlarges."""

    def value(self, name: str) -> Value:
        """Return the shape of a value, and its elements if it is a small constant."""
        return self.made[name][0] if name in self.made else Value()

    def array(self, name: str) -> Array | None:
        """Return the elements of a constant."""
        raise NotImplementedError

    def dtype(self, name: str) -> str | None:
        """Return the type of the elements of a value."""
        raise NotImplementedError

    def is_used(self, name: str) -> bool:
        """Return whether anything reads a value."""
        raise NotImplementedError

    def new(self, like: str) -> str:
        """Return a name that nothing has."""
        raise NotImplementedError


class Step:
    """One node on its way from a version of its operator to the next one, or the one before.

    Args:
        node: The node, which is changed.
        values: What is known where it is.
        since: The version in which the two differ.
        at: The version of ai.onnx to write it in.
        target: The version that it is on the way to.
    """

    def __init__(
        self, node: onnx.NodeProto, values: Values, since: int, at: int, target: int
    ) -> None:
        self.node, self.values, self.since, self.at, self.target = node, values, since, at, target
        self.before: list[onnx.NodeProto] = []
        """Nodes to put before it, written in version `at`."""
        self.after: list[onnx.NodeProto] = []
        self.is_gone = False
        """Whether those before and after it take its place."""

    @property
    def op_type(self) -> str:
        """The operator."""
        return text_of(self.node.op_type)

    # --- attributes ------------------------------------------------------------------------------

    def _attribute(self, name: str) -> onnx.AttributeProto | None:
        found = next((a for a in self.node.attribute if text_of(a.name) == name), None)
        if found is not None and found.ref_attr_name:
            raise UnwritableError(
                f"attribute {name} of {self.op_type} is a parameter of a function"
            )
        return found

    def has(self, name: str) -> bool:
        """Return whether the call has an attribute."""
        return self._attribute(name) is not None

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of an attribute; texts as str."""
        found = self._attribute(name)
        if found is None:
            return default
        value = helper.get_attribute_value(found)
        return value.decode(errors="replace") if isinstance(value, bytes) else value

    def take(self, name: str, default: Any = None) -> Any:
        """Return the value of an attribute, and take it away."""
        value = self.get(name, default)
        found = self._attribute(name)
        if found is not None:
            self.node.attribute.remove(found)
        return value

    def put(self, name: str, value: Any) -> None:
        """Give the call an attribute."""
        self.take(name)
        self.node.attribute.append(helper.make_attribute(name, value))

    # --- inputs and outputs ----------------------------------------------------------------------

    def input(self, at: int) -> str:
        """Return the name of an input; empty where there is none."""
        return text_of(self.node.input[at]) if at < len(self.node.input) else ""

    def output(self, at: int) -> str:
        """Return the name of an output; empty where there is none."""
        return text_of(self.node.output[at]) if at < len(self.node.output) else ""

    def put_input(self, at: int, name: str) -> None:
        """Set an input; trailing ones that are left out are not named."""
        names = [text_of(one) for one in self.node.input]
        names += [""] * (at + 1 - len(names))
        names[at] = name
        while names and not names[-1]:
            names.pop()
        del self.node.input[:]
        self.node.input.extend(names)

    def dims(self, name: str) -> Dims | None:
        """Return the sizes of a value."""
        return self.values.value(name).dims

    def rank(self, at: int = 0) -> int | None:
        """Return the number of dimensions of an input."""
        dims = self.dims(self.input(at))
        return None if dims is None else len(dims)

    def need_rank(self, why: str, at: int = 0) -> int:
        """Return the number of dimensions of an input.

        Raises:
            UnwritableError: It is not known; `why` says what needs it.
        """
        rank = self.rank(at)
        if rank is None:
            raise UnwritableError(f"{why} needs the rank of {self.shown(at)}, which is not known")
        return rank

    def sizes(self, at: int = 0) -> tuple[int, ...] | None:
        """Return the sizes of an input where all are numbers."""
        dims = self.dims(self.input(at))
        numbers = [number_of(size) for size in dims or ()]
        if dims is None or any(number is None for number in numbers):
            return None
        return tuple(int(number) for number in numbers if number is not None)

    def array(self, at: int) -> Array | None:
        """Return the elements of an input that is constant."""
        name = self.input(at)
        return self.values.array(name) if name else None

    def need_array(self, at: int, what: str) -> Array:
        """Return the elements of an input that must be constant."""
        found = self.array(at)
        if found is None:
            raise UnwritableError(
                f"{what} of {self.op_type} must be constant: an attribute before opset {self.since}"
            )
        return found

    def dtype(self, at: int = 0) -> str | None:
        """Return the type of the elements of an input."""
        return self.values.dtype(self.input(at))

    def need_dtype(self, at: int = 0) -> str:
        """Return the type of the elements of an input, which must be known."""
        found = self.dtype(at)
        if found is None:
            raise UnwritableError(f"the type of {self.shown(at)} is not known")
        return found

    def shown(self, at: int) -> str:
        """Return an input for a message."""
        return visible(self.input(at)) or f"input {at}"

    # --- what is added ---------------------------------------------------------------------------

    def constant(self, array: Any, dtype: str | None = None) -> str:
        """Add a constant, and return its name."""
        array = np.asarray(array)
        name = self.values.new(f"{self.output(0) or self.op_type}_constant")
        if dtype is None:
            tensor = numpy_helper.from_array(array)
            dtype = str(array.dtype)
        else:
            number = dtype_number(dtype)
            if number is None:
                raise UnwritableError(f"constants of {dtype} are not known")
            tensor = helper.make_tensor("", number, array.shape, array.reshape(-1).tolist())
        self.before.append(helper.make_node("Constant", [], [name], value=tensor))
        self.values.made[name] = (of_array(array), dtype)
        self.values.arrays[name] = array
        return name

    def add(
        self, op_type: str, inputs: Sequence[str], dims: Dims | None = None,
        dtype: str | None = None, **attributes: Any,
    ) -> str:  # fmt: skip
        """Add a node before this one, and return the name of its result."""
        name = self.values.new(f"{self.output(0) or self.op_type}_{op_type.lower()}")
        self.before.append(helper.make_node(op_type, list(inputs), [name], **attributes))
        self.values.made[name] = (Value(dims), dtype or self.values.dtype(inputs[0]))
        return name

    def finish(self, at: int, op_type: str, more: Sequence[str] = (), **attributes: Any) -> None:
        """Let a node make an output of this one out of what this one makes now."""
        final = self.output(at)
        name = self.values.new(f"{final}_{self.op_type.lower()}")
        self.after.insert(0, helper.make_node(op_type, [name, *more], [final], **attributes))
        self.values.made[name] = (Value(), self.values.dtype(final))
        self.node.output[at] = name

    def become(self, op_type: str, inputs: Sequence[str], **attributes: Any) -> None:
        """Let a node of another operator take the place of this one."""
        self.node.op_type = op_type
        del self.node.input[:], self.node.attribute[:]
        self.node.input.extend(inputs)
        self.node.attribute.extend(helper.make_attribute(*item) for item in attributes.items())

    def refuse_value(self, name: str, values: Iterable[Any]) -> None:
        """Refuse values of an attribute that the older version has not."""
        value = self.get(name)
        if value in values:
            raise UnwritableError(f"{self.op_type} has no {name} {value} before opset {self.since}")


Rule: TypeAlias = "Callable[[Step], None]"
_SMALL = ("int32", "float32")
_WIDER = {
    "int8": _SMALL, "uint8": _SMALL, "int16": _SMALL, "uint16": _SMALL, "bool": ("int32",),
    "int32": ("int64", "float64"), "uint32": ("int64", "float64"), "float16": ("float32",),
}  # fmt: skip
"""Types that have all numbers of another one."""
_COMPARING = (
    "Max", "Min", "Less", "Greater", "Equal", "Relu", "ReduceMax", "ReduceMin", "Clip", "TopK",
)  # fmt: skip
"""Operators that compute the same in a wider type."""
_WRAPPING = ("Add", "Sub", "Mul", "Div")
"""Those whose results, cast back, are the lower bits, as theirs would be."""


def widen(step: Step, places: Mapping[str, Sequence[int]], allowed: Sequence[str]) -> bool:
    """Let a node compute in a wider type that an older version takes.

    Args:
        step: The node.
        places: The numbers of the inputs and outputs that have one type.
        allowed: The types that the older version takes there.

    Returns:
        Whether there is such a type, and it computes the same.
    """
    dtype = step.dtype(places["inputs"][0])
    if step.op_type in _WRAPPING:
        wider: Sequence[str] = ("int32",) if _WIDER.get(dtype or "") == _SMALL else ()
    else:
        wider = _WIDER.get(dtype or "", ()) if step.op_type in _COMPARING else ()
    found = next((one for one in wider if one in allowed), None)
    if found is None or dtype is None:
        return False
    for at in places["inputs"]:
        name = step.input(at)
        if name:
            number = dtype_number(found)
            step.put_input(at, step.add("Cast", [name], step.dims(name), found, to=number))
    for at in places["outputs"]:
        if step.output(at):
            step.finish(at, "Cast", to=dtype_number(dtype))
            step.values.made[step.output(at)] = (Value(), found)
    return True


def _ints(values: Iterable[Any]) -> list[int]:
    return [int(value) for value in values]


def _int64(values: Iterable[Any]) -> Array:
    return np.array(_ints(values), np.int64)


# --- attributes that became inputs ---------------------------------------------------------------


def _axes_up(step: Step) -> None:
    if step.has("axes"):
        step.put_input(1, step.constant(_int64(step.take("axes"))))


def _axes_down(step: Step) -> None:
    keeps = step.take("noop_with_empty_axes", 0)
    if not step.input(1):
        axes = None
    else:
        axes = step.need_array(1, "the axes")
        if step.op_type in ("Squeeze", "Unsqueeze"):
            keeps = 0
    del step.node.input[1:]
    if axes is not None and axes.size:
        step.put("axes", _ints(axes.ravel()))
    elif keeps:
        if step.op_type in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"):
            step.become("Identity", [step.input(0)])
            return
        raise UnwritableError(
            f"{step.op_type} that reduces nothing cannot be written before opset {step.since}"
        )


def _split_up(step: Step) -> None:
    if step.has("split"):
        step.put_input(1, step.constant(_int64(step.take("split"))))


def _split_down(step: Step) -> None:
    if step.input(1):
        sizes = step.need_array(1, "the sizes")
        del step.node.input[1:]
        step.put("split", _ints(sizes.ravel()))


def _split_parts_up(step: Step) -> None:
    if not step.input(1):
        step.put("num_outputs", len(step.node.output))


def _split_parts_down(step: Step) -> None:
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
            step.put_input(1, step.constant(_int64(sizes)))
        return
    if size is not None and number_of(size % parts) == 0:
        return
    if step.target < 13:
        raise UnwritableError(
            f"the sizes of a Split into num_outputs parts are unknown: the size of axis {axis} of "
            f"{step.shown(0)} is not known"
        )
    shape = step.add("Shape", [step.input(0)], dtype="int64")
    total = step.add("Gather", [shape, step.constant(_int64([axis]))], (1,), "int64", axis=0)
    count, one = step.constant(_int64([parts])), step.constant(_int64([1]))
    raised = step.add("Add", [total, step.constant(_int64([parts - 1]))], (1,), "int64")
    part_size = step.add("Div", [raised, count], (1,), "int64")
    others = step.add(
        "Mul", [part_size, step.add("Sub", [count, one], (1,), "int64")], (1,), "int64"
    )
    last = step.add("Sub", [total, others], (1,), "int64")
    step.put_input(1, step.add("Concat", [part_size] * (parts - 1) + [last], (parts,), axis=0))


def _pad_names_up(step: Step) -> None:
    step.put("pads", step.take("paddings", []))


def _pad_up(step: Step) -> None:
    value = step.take("value", 0.0)
    step.put_input(1, step.constant(_int64(step.take("pads"))))
    if value and step.get("mode", "constant") == "constant":
        step.put_input(2, step.constant(value, step.need_dtype()))


def _pad_down(step: Step) -> None:
    pads = step.need_array(1, "the pads")
    value = step.need_array(2, "the values") if step.input(2) else None
    del step.node.input[1:]
    step.put("pads", _ints(pads.ravel()))
    if value is not None:
        _put_float(step, "value", value)


def _put_float(step: Step, name: str, value: Array) -> None:
    number = float(value.reshape(-1)[0])
    with np.errstate(over="ignore"):
        if number == number and float(np.float32(number)) != number:
            raise UnwritableError(f"{name} {number:g} of {step.op_type} is no float32")
    step.put(name, number)


def _pad_axes_down(step: Step) -> None:
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
        places = step.constant(_int64([*at, *(axis + rank for axis in at)]))
        name = step.add("ScatterElements", [zeros, places, step.input(1)], (2 * rank,), axis=0)
    step.put_input(3, "")
    step.put_input(1, name)


def _pad_wrap_down(step: Step) -> None:
    step.refuse_value("mode", ("wrap",))


def _slice_up(step: Step) -> None:
    for at, name in enumerate(("starts", "ends", "axes"), 1):
        if step.has(name):
            step.put_input(at, step.constant(_int64(step.take(name))))


def _slice_down(step: Step) -> None:
    steps = step.array(4)
    if step.input(4) and (steps is None or (steps != 1).any()):
        raise UnwritableError("Slice with steps cannot be written before opset 10")
    found = {}
    for at, name in enumerate(("starts", "ends", "axes"), 1):
        if step.input(at):
            found[name] = _ints(step.need_array(at, f"the {name}").ravel())
    del step.node.input[1:]
    for name, values in found.items():
        step.put(name, values)


def _clip_up(step: Step) -> None:
    for at, name in enumerate(("min", "max"), 1):
        if step.has(name):
            value = step.take(name)
            if abs(value) < float(np.finfo(np.float32).max):
                step.put_input(at, step.constant(value, step.need_dtype()))


def _clip_down(step: Step) -> None:
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


def _top_k_up(step: Step) -> None:
    step.put_input(1, step.constant(_int64([step.take("k")])))


def _top_k_down(step: Step) -> None:
    k = step.need_array(1, "k")
    del step.node.input[1:]
    step.put("k", int(k.reshape(-1)[0]))


def _top_k_order_down(step: Step) -> None:
    _axis_down(step)
    step.take("sorted")  # any order is right where none is asked for
    if step.take("largest", 1):
        return
    if step.need_dtype() not in _FLOATS:
        raise UnwritableError("the smallest integers cannot be found by TopK before opset 11")
    step.put_input(0, step.add("Neg", [step.input(0)], step.dims(step.input(0))))
    if step.output(0):
        step.finish(0, "Neg")


def _reshape_up(step: Step) -> None:
    step.put_input(1, step.constant(_int64(step.take("shape", []))))


def _reshape_down(step: Step) -> None:
    shape = step.need_array(1, "the shape")
    del step.node.input[1:]
    step.put("shape", _ints(shape.ravel()))


def _allow_zero_down(step: Step) -> None:
    """Drop allowzero where the shape has no 0: computed sizes are those of real data."""
    if not step.take("allowzero", 0):
        return
    sizes = step.values.value(step.input(1)).values()
    if sizes is None or any(number_of(size) == 0 for size in sizes):
        raise UnwritableError(
            "Reshape to a size of 0 (allowzero) cannot be written before opset 14"
        )


def _upsample_scales_up(step: Step) -> None:
    height, width = step.take("height_scale", 1.0), step.take("width_scale", 1.0)
    step.put("scales", [1.0, 1.0, height, width])
    if step.get("mode", "nearest") == "bilinear":
        step.put("mode", "linear")


def _upsample_input_up(step: Step) -> None:
    scales = np.array(step.take("scales"), np.float32)
    step.put_input(1, step.constant(scales))


def _upsample_input_down(step: Step) -> None:
    scales = step.need_array(1, "the scales")
    del step.node.input[1:]
    step.put("scales", [float(scale) for scale in scales.ravel()])


def _upsample_to_resize(step: Step) -> None:
    step.values.enlarged.add(step.output(0))
    step.node.op_type = "Resize"


def _resize_to_upsample(step: Step) -> None:
    scales = step.array(1)
    if scales is None or (scales < 1).any():
        raise UnwritableError("Resize does not exist before opset 10, and Upsample only enlarges")
    step.node.op_type = "Upsample"


def _tile_up(step: Step) -> None:
    tiles, axis = step.array(1), step.array(2)
    if tiles is None or axis is None:
        raise UnwritableError("tiles and axis of Tile must be constant")
    repeats = np.ones(step.need_rank("Tile along one axis"), np.int64)
    repeats[int(axis.reshape(-1)[0])] = int(tiles.reshape(-1)[0])
    step.put_input(2, "")
    step.put_input(1, step.constant(repeats))


def _split_input_up(step: Step) -> None:
    if step.input(1):
        sizes = step.need_array(1, "the sizes")
        del step.node.input[1:]
        step.put("split", _ints(sizes.ravel()))


def _dft_up(step: Step) -> None:
    step.put_input(2, step.constant(np.array(step.take("axis", 1), np.int64)))


def _dft_down(step: Step) -> None:
    axis = -2
    if step.input(2):
        axis = int(step.need_array(2, "the axis").reshape(-1)[0])
        step.put_input(2, "")
    step.put("axis", axis)


# --- other meanings ------------------------------------------------------------------------------


def _softmax_up(step: Step) -> None:
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


def _softmax_down(step: Step) -> None:
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


def _grid_sample_up(step: Step) -> None:
    mode = step.get("mode", "bilinear")
    step.put("mode", {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode))


def _grid_sample_down(step: Step) -> None:
    mode = step.get("mode", "linear")
    rank = step.rank(0) or step.rank(1)
    if rank is None:
        step.need_rank("GridSample before opset 20, which has only images,")
    if rank != 4:
        raise UnwritableError(f"GridSample has no input of rank {rank} before opset 20")
    step.put("mode", {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode))


def _roi_align_up(step: Step) -> None:
    step.put("coordinate_transformation_mode", "output_half_pixel")


def _roi_align_down(step: Step) -> None:
    mode = step.take("coordinate_transformation_mode", "half_pixel")
    if mode != "output_half_pixel":
        raise UnwritableError(
            f"RoiAlign has no coordinate_transformation_mode {mode} before opset 16"
        )


def _resize_up(step: Step) -> None:
    """Resize of opset 10, and Upsample, place their samples in one way only."""
    step.put("coordinate_transformation_mode", "asymmetric")
    scales = step.array(1)
    step.node.input.insert(1, step.constant(np.zeros(0, np.float32)))
    if step.get("mode", "nearest") != "nearest":
        return
    if scales is None and step.output(0) in step.values.enlarged:
        step.put("nearest_mode", "floor")
        return
    if scales is None:
        raise UnwritableError(
            "the scales of Resize must be constant: where it shrinks it rounds in another way"
        )
    grows, shrinks = scales > 1, scales < 1
    if grows.any() and shrinks.any():
        roi, source = step.input(1), step.input(0)
        smaller = step.constant(np.where(shrinks, scales, 1).astype(np.float32))
        first = step.add(
            "Resize", [source, roi, smaller], mode="nearest", nearest_mode="ceil",
            coordinate_transformation_mode="asymmetric",
        )  # fmt: skip
        step.put_input(0, first)
        step.put_input(2, step.constant(np.where(grows, scales, 1).astype(np.float32)))
    step.put("nearest_mode", "floor" if grows.any() or not shrinks.any() else "ceil")


def _resize_down(step: Step) -> None:
    scales = _scales(step)
    if scales is None:
        raise UnwritableError(
            "the scales of Resize are not known: before opset 11 it takes no sizes, and rounds by "
            "whether it shrinks"
        )
    mode, coordinates = step.get("mode", "nearest"), step.get(
        "coordinate_transformation_mode", "half_pixel"
    )  # fmt: skip
    rounding = step.get("nearest_mode", "round_prefer_floor")
    is_whole = bool((scales >= 1).all() and (scales == np.round(scales)).all())
    if mode == "nearest":
        is_same = coordinates == "asymmetric" and (
            (rounding == "floor" and (scales >= 1).all())
            or (rounding == "ceil" and (scales <= 1).all())
        )
        is_same |= is_whole and coordinates == "half_pixel" and rounding.startswith("round_")
    else:
        is_same = mode == "linear" and (coordinates == "asymmetric" or bool((scales == 1).all()))
    if not is_same:
        raise UnwritableError(
            f"Resize has no mode {mode} with {coordinates}"
            f"{f' and {rounding}' if mode == 'nearest' else ''} before opset 11"
        )
    for name in (
        "coordinate_transformation_mode", "cubic_coeff_a", "exclude_outside",
        "extrapolation_value", "nearest_mode",
    ):  # fmt: skip
        step.take(name)
    source = step.input(0)
    del step.node.input[:]
    step.node.input.extend([source, step.constant(scales.astype(np.float32))])


def _scales(step: Step) -> Array | None:
    scales = step.array(2)
    if scales is not None and scales.size:
        return scales.astype(np.float64)
    sizes, shape = step.array(3), step.sizes(0)
    if sizes is None or shape is None or len(shape) != sizes.size or 0 in shape:
        return None
    scales = sizes.ravel() / np.array(shape, np.float64)
    floored = np.floor(np.float32(scales) * np.array(shape, np.float32))
    return scales if (floored == sizes.ravel()).all() else None


def _resize_inputs_up(step: Step) -> None:
    if step.get("coordinate_transformation_mode") == "tf_half_pixel_for_nn":
        if step.get("mode", "nearest") != "nearest" or step.get("nearest_mode") != "floor":
            raise UnwritableError("Resize has no tf_half_pixel_for_nn from opset 13 on")
        step.put("coordinate_transformation_mode", "half_pixel")
        step.put("nearest_mode", "round_prefer_ceil")
    for at in (1, 2):  # what was required, and empty
        array = step.array(at)
        if array is not None and not array.size:
            step.put_input(at, "")


def _resize_inputs_down(step: Step) -> None:
    for at in (1, 2):
        if not step.input(at):
            step.put_input(at, step.constant(np.zeros(0, np.float32)))


def _resize_axes_down(step: Step) -> None:
    policy = step.take("keep_aspect_ratio_policy", "stretch")
    if step.input(3) and policy != "stretch":
        raise UnwritableError(f"Resize has no keep_aspect_ratio_policy {policy} before opset 18")
    if not step.has("axes"):
        return
    rank = step.need_rank("Resize of some axes")
    axes = [axis % rank for axis in step.take("axes")]
    for at, what in ((1, "regions"), (2, "scales"), (3, "sizes")):
        if not step.input(at):
            continue
        array = step.array(at)
        if array is None:
            raise UnwritableError(
                f"the {what} of Resize must be constant: before opset 18 they are of all axes"
            )
        if not array.size:
            continue
        if what == "regions":
            full: Array = np.array([0.0] * rank + [1.0] * rank, array.dtype)
            full[[*axes, *(axis + rank for axis in axes)]] = array.ravel()
        elif what == "scales":
            full = np.ones(rank, np.float32)
            full[axes] = array.ravel()
        else:
            dims = step.dims(step.input(0)) or ()
            numbers = [number_of(size) for size in dims]
            if any(numbers[axis] is None for axis in range(rank) if axis not in axes):
                raise UnwritableError(
                    "the sizes of Resize are not known: before opset 18 they are of all axes"
                )
            full = _int64(number or 0 for number in numbers)
            full[axes] = array.ravel()
        step.put_input(at, step.constant(full))


def _resize_modes_down(step: Step) -> None:
    step.refuse_value("coordinate_transformation_mode", ("half_pixel_symmetric",))


def _test_mode_up(step: Step) -> None:
    """Before opset 7 an attribute said that nothing is learned; later ones have no other mode."""
    if step.take("is_test", 1) == 0 or (any(step.output(at) for at in range(1, 5)) and (
        step.op_type == "BatchNormalization"
    )):  # fmt: skip
        raise UnwritableError(f"{step.op_type} that trains (is_test 0) has no later form")


def _test_mode_down(step: Step) -> None:
    step.put("is_test", 1)


def _spatial_up(step: Step) -> None:
    if step.take("spatial", 1):
        return
    if any(step.output(at) for at in range(1, 5)):
        raise UnwritableError("BatchNormalization that trains each element has no later form")
    x, scale, bias, mean, variance = (step.input(at) for at in range(5))
    epsilon = step.constant(step.get("epsilon", 1e-5), step.need_dtype())
    deviation = step.add("Sqrt", [step.add("Add", [variance, epsilon])])
    normal = step.add("Div", [step.add("Sub", [x, mean]), deviation])
    step.become("Add", [step.add("Mul", [normal, scale]), bias])


def _training_up(step: Step) -> None:
    if any(step.output(at) for at in range(1, 5)):
        raise UnwritableError("BatchNormalization that trains is another one from opset 14 on")


def _training_down(step: Step) -> None:
    if step.take("training_mode", 0) or any(step.output(at) for at in range(1, 5)):
        raise UnwritableError("BatchNormalization that trains is another one before opset 14")


def _mask_up(step: Step) -> None:
    if step.output(1):
        number = dtype_number(step.need_dtype())
        step.finish(1, "Cast", to=number)


def _mask_down(step: Step) -> None:
    if step.output(1):
        step.finish(1, "Cast", to=TensorProto.BOOL)


def _without_mask(step: Step) -> None:
    """Drop a mask that nothing reads: what it is where nothing is dropped was not laid down."""
    if not step.output(1):
        return
    if step.values.is_used(step.output(1)):
        raise UnwritableError("the mask of Dropout is defined from opset 12 on only")
    del step.node.output[1:]


def _ratio_up(step: Step) -> None:
    _without_mask(step)
    step.put_input(1, step.constant(np.float32(step.take("ratio", 0.5))))


def _ratio_down(step: Step) -> None:
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


_BROADCAST = ("Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Greater", "Less")


def _broadcast_up(step: Step) -> None:
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


def _gemm_up(step: Step) -> None:
    step.take("broadcast")


def _slope_up(step: Step) -> None:
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


def _same_shapes_down(step: Step) -> None:
    shapes = [step.dims(text_of(name)) for name in step.node.input]
    if len(shapes) > 1 and (None in shapes or any(shape != shapes[0] for shape in shapes)):
        raise UnwritableError(f"{step.op_type} takes only inputs of the same shape before opset 8")


def _bias_down(step: Step) -> None:
    if not step.input(2):
        step.put_input(2, step.constant(np.zeros(1), step.need_dtype()))


def _cast_up(step: Step) -> None:
    name = str(step.take("to")).upper()
    if name not in list(TensorProto.DataType.keys()):
        raise UnwritableError(f"Cast to {visible(name)}, which is no type")
    step.put("to", TensorProto.DataType.Value(name))


def _cast_down(step: Step) -> None:
    step.put("to", TensorProto.DataType.Name(step.take("to")))


def _whole_number_up(step: Step) -> None:
    p = float(step.take("p", 2.0))
    if p != int(p):
        raise UnwritableError(f"{step.op_type} has no p {p:g} from opset 2 on")
    step.put("p", int(p))


def _direction_up(step: Step) -> None:
    if step.get("direction", "foward") == "foward":
        step.put("direction", "forward")


def _layout_down(step: Step) -> None:
    """Put the batch second, which it always was."""
    if not step.take("layout", 0):
        return
    for at, order in ((0, [1, 0, 2]), (5, [1, 0, 2]), (6, [1, 0, 2])):
        if step.input(at) and (at < 6 or step.op_type == "LSTM"):
            step.put_input(at, step.add("Transpose", [step.input(at)], perm=order))
    for at, order in ((0, [2, 0, 1, 3]), (1, [1, 0, 2]), (2, [1, 0, 2])):
        if step.output(at):
            step.finish(at, "Transpose", perm=order)


def _group_norm_up(step: Step) -> None:
    """Give each channel the scale and bias that its group had."""
    dims, groups = step.dims(step.input(0)), step.get("num_groups", 1)
    channels = number_of(dims[1]) if dims is not None and len(dims) > 1 else None
    if channels is None:
        raise UnwritableError("the channels of GroupNormalization are not known")
    each = int(channels) // groups
    for at in (1, 2):
        column = step.add("Reshape", [step.input(at), step.constant(_int64([groups, 1]))])
        wide = step.add("Expand", [column, step.constant(_int64([groups, each]))])
        step.put_input(at, step.add("Reshape", [wide, step.constant(_int64([-1]))]))


def _group_norm_down(step: Step) -> None:
    if step.get("num_groups", 1) != step.since:  # each channel may have its own
        raise UnwritableError("GroupNormalization has one scale for each group before opset 21")


def _one_scale_down(step: Step) -> None:
    """Write scales of channels by the arithmetic that they stand for."""
    axis, shape = step.take("axis", 1), step.sizes(1)
    if shape is None:
        raise UnwritableError(
            f"the shape of the scale of {step.op_type} is not known: before opset 13 it is a scalar"
        )
    if shape == ():
        return
    if shape == (1,):
        for at in (1, 2):
            if step.input(at):
                scalar = step.constant(np.zeros(0, np.int64))
                step.put_input(at, step.add("Reshape", [step.input(at), scalar], ()))
        return
    rank = step.need_rank(f"{step.op_type} with scales of an axis, written before opset 13,")
    sizes = step.constant(_int64([-1] + [1] * (rank - 1 - axis % rank)))
    as_float = TensorProto.FLOAT
    scale = step.add("Reshape", [step.input(1), sizes], dtype="float32")
    zero = step.input(2)
    zero_dtype = step.dtype(2) if zero else "uint8"
    if zero:
        zero = step.add("Cast", [zero], dtype="float32", to=as_float)
        zero = step.add("Reshape", [zero, sizes], dtype="float32")
    source = step.add("Cast", [step.input(0)], step.dims(step.input(0)), "float32", to=as_float)
    if step.op_type == "DequantizeLinear":
        if zero:
            source = step.add("Sub", [source, zero], dtype="float32")
        step.become("Mul", [source, scale])
        return
    if step.target < 11:
        raise UnwritableError("QuantizeLinear with scales of channels needs Round of opset 11")
    limits = {"uint8": (0, 255), "int8": (-128, 127)}.get(zero_dtype or "")
    if limits is None:
        raise UnwritableError(f"QuantizeLinear to {zero_dtype} cannot be written before opset 13")
    levels = step.add("Round", [step.add("Div", [source, scale], dtype="float32")], dtype="float32")
    if zero:
        levels = step.add("Add", [levels, zero], dtype="float32")
    ends = [step.constant(np.float32(limit)) for limit in limits]
    levels = step.add("Clip", [levels, *ends], dtype="float32")
    step.become("Cast", [levels], to=dtype_number(zero_dtype or "uint8"))


def _blocks_down(step: Step) -> None:
    if step.take("block_size", 0):
        raise UnwritableError(f"{step.op_type} has no blocks before opset 21")
    output = step.take("output_dtype", 0)
    if step.op_type == "DequantizeLinear" or not output:
        return
    if not step.input(2):
        shape = step.sizes(1)
        if shape is None:
            raise UnwritableError("the shape of the scale of QuantizeLinear is not known")
        dtype = next((n for n in _QUANTIZED if dtype_number(n) == output), None)
        if dtype is None:
            raise UnwritableError("QuantizeLinear has no such output_dtype before opset 21")
        step.put_input(2, step.constant(np.zeros(shape), dtype))


_QUANTIZED = ("int8", "uint8", "int16", "uint16", "float8e4m3fn", "float8e5m2")


def _precision_down(step: Step) -> None:
    """Drop what says the type of the scale once more."""
    name = "precision" if step.op_type == "QuantizeLinear" else "output_dtype"
    if step.get(name, 0) and step.get(name) == dtype_number(step.dtype(1) or ""):
        step.take(name)


def _float8_only_down(step: Step) -> None:
    """Drop what only says how numbers become float8."""
    to = step.get("to", 0) if step.op_type == "Cast" else dtype_number(step.dtype(1) or "")
    name = TensorProto.DataType.Name(to) if to else "?"
    if "FLOAT8" not in name and name != "?":
        step.take("saturate")
        step.take("round_mode")


def _shape_down(step: Step) -> None:
    """Write a part of a shape as the whole shape and a Slice of it."""
    start, end = step.take("start", 0), step.take("end")
    if start == 0 and end is None:
        return
    bounds = [step.constant(_int64([bound])) for bound in (start, _END if end is None else end)]
    step.values.made[text_of(step.node.output[0])] = (step.values.value(step.output(0)), "int64")
    step.finish(0, "Slice", bounds)


def _constant_down(step: Step) -> None:
    (attribute,) = step.node.attribute
    name = text_of(attribute.name)
    value = step.take(name)
    if name == "sparse_value":
        raise UnwritableError("Constant has no sparse_value before opset 11")
    if name == "value":
        step.put(name, value)
        return
    if "string" in name:
        tensor = numpy_helper.from_array(np.array(value, object))
    else:
        kind = np.float32 if "float" in name else np.int64
        tensor = numpy_helper.from_array(np.asarray(value, kind))
    step.put("value", tensor)


def _number_down(step: Step) -> None:
    """Cast what is no floating point number: there were no other constants before opset 9."""
    tensor = step.get("value")
    dtype = tensor.data_type
    if dtype in (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE):
        return
    try:
        numbers = numpy_helper.to_array(tensor)
        doubles = numbers.astype(np.float64)
    except (TypeError, ValueError):
        raise UnwritableError("Constant is of floating point numbers before opset 9") from None
    if doubles.size and np.abs(doubles).max() > 2**53:
        raise UnwritableError("Constant is of floating point numbers before opset 9")
    step.put("value", numpy_helper.from_array(doubles))
    step.finish(0, "Cast", to=dtype)
    step.values.made[step.output(0)] = (of_array(doubles), "float64")


def _sparse_down(step: Step) -> None:
    if step.has("sparse_value"):
        raise UnwritableError("Constant has no sparse_value before opset 11")


def _exponent_down(step: Step) -> None:
    base, exponent = step.dtype(0), step.dtype(1)
    if base != exponent and base in _FLOATS:
        number = dtype_number(base or "")
        step.put_input(1, step.add("Cast", [step.input(1)], dtype=base, to=number))
    elif base != exponent:
        raise UnwritableError("base and exponent of Pow have the same type before opset 12")


def _axis_down(step: Step) -> None:
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


def _one_hot_down(step: Step) -> None:
    _axis_down(step)
    indices = step.array(0)
    if indices is None or (indices < 0).any():
        raise UnwritableError("indices of OneHot count from the end from opset 11 on, not before")


def _dilations_down(step: Step) -> None:
    if set(step.get("dilations", ())) <= {1}:
        step.take("dilations")


def _average_pool_down(step: Step) -> None:
    _dilations_down(step)
    _average_pool(step)


def _average_pool(step: Step) -> None:
    if step.get("ceil_mode", 0) and step.get("count_include_pad", 0):
        raise UnwritableError(
            "AveragePool with ceil_mode and count_include_pad counts other elements before opset 19"
        )


def _scatter_to_elements(step: Step) -> None:
    step.node.op_type = "ScatterElements"


def _elements_to_scatter(step: Step) -> None:
    _axis_down(step)
    step.node.op_type = "Scatter"


def _reduction_down(step: Step) -> None:
    step.refuse_value("reduction", ("max", "min"))


def _mode_down(step: Step) -> None:
    step.refuse_value("mode", ("CRD",))


def _no_scan(step: Step) -> None:
    raise UnwritableError("Scan has a batch axis before opset 9, and none from it on")


_REDUCTIONS = tuple(
    f"Reduce{name}"
    for name in ("Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")
)
_SOFTMAX = ("Softmax", "LogSoftmax", "Hardmax")
_RECURRENT = ("LSTM", "GRU", "RNN")
_AXIS_11 = (
    "ArgMax", "ArgMin", "Concat", "Flatten", "Split", "Squeeze", "Unsqueeze", "ReduceSum", "Gather",
    *_REDUCTIONS, *_SOFTMAX, "Compress", "TopK", "Slice",
)  # fmt: skip


def _all(names: Iterable[str], since: int, rule: Rule) -> dict[tuple[str, int], Rule]:
    return {(name, since): rule for name in names}


UP: Mapping[tuple[str, int], Rule] = {
    ("GlobalLpPool", 2): _whole_number_up, ("LpPool", 2): _whole_number_up,
    ("Pad", 2): _pad_names_up, ("Split", 2): _split_input_up, ("GRU", 3): _direction_up,
    ("Reshape", 5): _reshape_up, ("Cast", 6): _cast_up, ("Tile", 6): _tile_up,
    **_all(_BROADCAST, 7, _broadcast_up), ("PRelu", 7): _slope_up, ("Gemm", 7): _gemm_up,
    ("BatchNormalization", 7): _test_mode_up, ("Dropout", 7): _test_mode_up,
    ("Upsample", 7): _upsample_scales_up,
    ("BatchNormalization", 9): _spatial_up, ("Upsample", 9): _upsample_input_up,
    ("Scan", 9): _no_scan,
    ("Slice", 10): _slice_up, ("TopK", 10): _top_k_up, ("Upsample", 10): _upsample_to_resize,
    ("Dropout", 10): _mask_up,
    ("Resize", 11): _resize_up, ("Pad", 11): _pad_up, ("Clip", 11): _clip_up,
    ("Scatter", 11): _scatter_to_elements, ("Dropout", 12): _ratio_up,
    **_all(("Squeeze", "Unsqueeze", "ReduceSum"), 13, _axes_up), ("Split", 13): _split_up,
    **_all(_SOFTMAX, 13, _softmax_up), ("Resize", 13): _resize_inputs_up,
    ("BatchNormalization", 14): _training_up, ("RoiAlign", 16): _roi_align_up,
    **_all(_REDUCTIONS, 18, _axes_up), ("Split", 18): _split_parts_up,
    ("AveragePool", 19): _average_pool, ("GridSample", 20): _grid_sample_up,
    ("DFT", 20): _dft_up, ("GroupNormalization", 21): _group_norm_up,
}  # fmt: skip
"""By operator and the version that a node comes to."""
DOWN: Mapping[tuple[str, int], Rule] = {
    ("BatchNormalization", 7): _test_mode_down,
    ("Upsample", 9): _upsample_input_down, ("Scan", 9): _no_scan, ("Constant", 9): _number_down,
    **_all(("Max", "Min", "Mean", "Sum"), 8, _same_shapes_down),
    ("Slice", 10): _slice_down, ("TopK", 10): _top_k_down, ("Resize", 10): _resize_to_upsample,
    ("Dropout", 10): _mask_down,
    **_all(_AXIS_11, 11, _axis_down), ("TopK", 11): _top_k_order_down, ("Gemm", 11): _bias_down,
    ("Resize", 11): _resize_down, ("Pad", 11): _pad_down, ("Clip", 11): _clip_down,
    ("OneHot", 11): _one_hot_down, ("ScatterElements", 11): _elements_to_scatter,
    ("DepthToSpace", 11): _mode_down, ("Constant", 11): _sparse_down,
    ("Dropout", 12): _ratio_down, ("Constant", 12): _constant_down, ("Pow", 12): _exponent_down,
    **_all(("Squeeze", "Unsqueeze", "ReduceSum"), 13, _axes_down), ("Split", 13): _split_down,
    **_all(_SOFTMAX, 13, _softmax_down), ("Resize", 13): _resize_inputs_down,
    **_all(("QuantizeLinear", "DequantizeLinear"), 13, _one_scale_down),
    ("BatchNormalization", 14): _training_down, ("Reshape", 14): _allow_zero_down,
    **_all(_RECURRENT, 14, _layout_down), ("Shape", 15): _shape_down,
    ("RoiAlign", 16): _roi_align_down,
    **_all(_REDUCTIONS, 18, _axes_down), ("Split", 18): _split_parts_down,
    ("Pad", 18): _pad_axes_down, ("Resize", 18): _resize_axes_down,
    **_all(("ScatterElements", "ScatterND"), 18, _reduction_down),
    ("Pad", 19): _pad_wrap_down, ("Resize", 19): _resize_modes_down,
    ("AveragePool", 19): _average_pool_down, ("MaxPool", 10): _dilations_down,
    ("LpPool", 18): _dilations_down,
    **_all(("Cast", "CastLike", "QuantizeLinear"), 19, _float8_only_down),
    **_all(("Cast", "CastLike"), 24, _float8_only_down),
    ("GridSample", 20): _grid_sample_down, ("DFT", 20): _dft_down,
    ("GroupNormalization", 21): _group_norm_down,
    **_all(("QuantizeLinear", "DequantizeLinear"), 21, _blocks_down),
    **_all(("QuantizeLinear", "DequantizeLinear"), 23, _precision_down),
}  # fmt: skip
"""By operator and the version that a node leaves."""
