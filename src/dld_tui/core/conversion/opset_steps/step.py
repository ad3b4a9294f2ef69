"""One node on its way between versions of its operator, and what is known around it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

from dld_tui.core.files.proto_fields import text_of
from dld_tui.core.model.shapes.size import number_of
from dld_tui.core.model.shapes.value import Dims, Value, of_array
from dld_tui.core.model.tensors.value_types import dtype_number
from dld_tui.core.text import visible

Array: TypeAlias = "npt.NDArray[Any]"


class UnwritableError(Exception):
    """A call cannot be written in a version; the message says why, without the node."""


class Values(ABC):
    """What is known of values where a node is; :mod:`..opset` fills it."""

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

    @abstractmethod
    def array(self, name: str) -> Array | None:
        """Return the elements of a constant."""

    @abstractmethod
    def dtype(self, name: str) -> str | None:
        """Return the type of the elements of a value."""

    @abstractmethod
    def type_name(self, name: str) -> str | None:
        """Return the type of a value as schemas write it."""

    @abstractmethod
    def is_used(self, name: str) -> bool:
        """Return whether anything reads a value."""

    @abstractmethod
    def new(self, like: str) -> str:
        """Return a name that nothing has."""


class OpsetStep:
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

    @property
    def op_type(self) -> str:
        """The operator."""
        return text_of(self.node.op_type)

    def _attribute(self, name: str) -> onnx.AttributeProto | None:
        attribute = next((a for a in self.node.attribute if text_of(a.name) == name), None)
        if attribute is not None and attribute.ref_attr_name:
            raise UnwritableError(
                f"attribute {name} of {self.op_type} is a parameter of a function"
            )
        return attribute

    def has(self, name: str) -> bool:
        """Return whether the call has an attribute."""
        return self._attribute(name) is not None

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of an attribute; texts as str."""
        attribute = self._attribute(name)
        if attribute is None:
            return default
        value = helper.get_attribute_value(attribute)
        return value.decode(errors="replace") if isinstance(value, bytes) else value

    def take(self, name: str, default: Any = None) -> Any:
        """Return the value of an attribute, and take it away."""
        value = self.get(name, default)
        attribute = self._attribute(name)
        if attribute is not None:
            self.node.attribute.remove(attribute)
        return value

    def put(self, name: str, value: Any) -> None:
        """Give the call an attribute."""
        self.take(name)
        self.node.attribute.append(helper.make_attribute(name, value))

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

    def size(self, at: int, axis: int) -> str:
        """Return the name of the size of an axis of an input, as a list of one; axis from 0."""
        dims = self.dims(self.input(at))
        number = None if dims is None or axis >= len(dims) else number_of(dims[axis])
        if number is not None:
            return self.constant(int64_array([number]))
        shape = self.add("Shape", [self.input(at)], dtype="int64")
        return self.add(
            "Gather", [shape, self.constant(int64_array([axis]))], (1,), "int64", axis=0
        )

    def array(self, at: int) -> Array | None:
        """Return the elements of an input that is constant."""
        name = self.input(at)
        return self.values.array(name) if name else None

    def need_array(self, at: int, what: str) -> Array:
        """Return the elements of an input that must be constant."""
        array = self.array(at)
        if array is None:
            raise UnwritableError(
                f"{what} of {self.op_type} must be constant: an attribute before opset {self.since}"
            )
        return array

    def dtype(self, at: int = 0) -> str | None:
        """Return the type of the elements of an input."""
        return self.values.dtype(self.input(at))

    def need_dtype(self, at: int = 0) -> str:
        """Return the type of the elements of an input, which must be known."""
        dtype = self.dtype(at)
        if dtype is None:
            raise UnwritableError(f"the type of {self.shown(at)} is not known")
        return dtype

    def shown(self, at: int) -> str:
        """Return an input for a message."""
        return visible(self.input(at)) or f"input {at}"

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


Rule: TypeAlias = "Callable[[OpsetStep], None]"


_SMALL = ("int32", "float32")


_WIDER = {
    "int8": _SMALL, "uint8": _SMALL, "int16": _SMALL, "uint16": _SMALL, "bool": ("int32",),
    "int32": ("int64", "float64"), "uint32": ("int64", "float64"), "float16": ("float32",),
}  # fmt: skip
"""Types that have all numbers of another one."""


_COMPARING = (
    "Max", "Min", "Less", "Greater", "Equal", "Relu", "ReduceMax", "ReduceMin", "Clip", "TopK",
    "MaxPool",
)  # fmt: skip
"""Operators that compute the same in a wider type."""


_WRAPPING = ("Add", "Sub", "Mul", "Div")
"""Those whose results, cast back, are the lower bits, as theirs would be."""


def widen(step: OpsetStep, places: Mapping[str, Sequence[int]], allowed: Sequence[str]) -> bool:
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
    wide = next((one for one in wider if one in allowed), None)
    if wide is None or dtype is None:
        return False
    for at in places["inputs"]:
        name = step.input(at)
        if name:
            number = dtype_number(wide)
            step.put_input(at, step.add("Cast", [name], step.dims(name), wide, to=number))
    for at in places["outputs"]:
        if step.output(at):
            step.finish(at, "Cast", to=dtype_number(dtype))
            step.values.made[step.output(at)] = (Value(), wide)
    return True


def ints(values: Iterable[Any]) -> list[int]:
    """Return whole numbers."""
    return [int(value) for value in values]


def int64_array(values: Iterable[Any]) -> Array:
    """Return whole numbers as a tensor has them."""
    return np.array(ints(values), np.int64)
