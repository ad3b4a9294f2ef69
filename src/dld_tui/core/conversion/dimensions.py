"""Dimensions that are asked for: axes of inputs, and what they are to become."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import onnx

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UsageError
from dld_tui.core.model.document.locations import weight_names
from dld_tui.core.text import visible

_LENGTHS = ("seq", "time", "len", "frame", "step", "token", "sample", "word", "position")
"""What names of axes begin with along which items depend on each other."""


@dataclass(frozen=True)
class Dimension:
    """A dimension of some inputs, as it is declared, and what it is to become."""

    key: str
    """As it was asked for."""
    axes: Mapping[str, int]
    """The axis of each input."""
    size: int | None
    """None when it is dynamic."""
    name: str
    """Empty when it has none."""
    to: int | str

    @property
    def is_batch(self) -> bool:
        """Whether it is the first axis of the first input: items do not depend on each other.

        An axis with the name of a length is none.
        """
        names = (self.name, self.to if isinstance(self.to, str) else "")
        is_length = any(name.lower().startswith(_LENGTHS) or name == "T" for name in names)
        return next(iter(self.axes.values())) == 0 and not is_length


def find_dimensions(graph: onnx.GraphProto, texts: Sequence[str]) -> list[Dimension]:
    """Return what is asked for; axes that have one size and get another together are one.

    Raises:
        UsageError: There is no such dimension, or it gets two sizes.
    """
    joined: dict[tuple[int | None, str, int | str], Dimension] = {}
    texts_by_axis: dict[tuple[str, int], str] = {}
    for text in texts:
        dimension = find_dimension(graph, text)
        for axis in dimension.axes.items():
            if axis in texts_by_axis:
                raise UsageError(f"{text} names the same axis as {texts_by_axis[axis]}")
            texts_by_axis[axis] = text
        key = (dimension.size, dimension.name, dimension.to)
        other = joined.get(key)
        if other is not None and not set(other.axes) & set(dimension.axes):
            dimension = replace(other, axes={**other.axes, **dimension.axes})
        elif other is not None:
            key = (dimension.size, text, dimension.to)
        joined[key] = dimension
    return [*joined.values()]


def find_dimension(graph: onnx.GraphProto, text: str) -> Dimension:
    """Return what ``NAME=VALUE`` or ``INPUT:AXIS=VALUE`` means in a model.

    ``batch`` is the first axis of the first input, and of those where it is declared the same, if
    no dimension has that name.

    Raises:
        UsageError: There is no such dimension, or no such size.
    """
    key, sign, value = text.rpartition("=")
    key, value = key.strip(), value.strip()
    if not sign or not key or not value:
        raise UsageError(f"dimension {text!r} is not NAME=VALUE", hint="batch=N or images:2=640")
    if value.lstrip("+-").isdecimal() and int(value) < 1:
        raise UsageError(f"dimension {text}: a size is 1 or more; a name makes it dynamic")
    if any("\ud800" <= char <= "\udfff" for char in value):  # bytes that are not UTF-8
        raise UsageError(f"dimension {text!r}: a name is text that UTF-8 can write")
    to: int | str = int(value) if value.isdecimal() else value
    weights = weight_names(graph)
    inputs = {
        info.name: info.type.tensor_type.shape.dim
        for info in graph.input
        if info.name not in weights and info.type.tensor_type.HasField("shape")
    }
    axes = {
        name: axis
        for name, dims in inputs.items()
        for axis, dim in reversed([*enumerate(dims)])
        if dim.dim_param == key
    }
    name, colon, axis_text = key.rpartition(":")
    if not axes and colon and name in inputs and axis_text.lstrip("-").isdecimal():
        rank, axis = len(inputs[name]), int(axis_text)
        if not -rank <= axis < rank:
            raise UsageError(f"dimension {text}: {visible(name)} has {rank} axes")
        axes = {name: axis % rank}
    if not axes and key == "batch":
        first = next((dims[0] for dims in inputs.values() if dims), None)
        axes = {name: 0 for name, dims in inputs.items() if dims and dims[0] == first}
    if not axes:
        names = {dim.dim_param for dims in inputs.values() for dim in dims if dim.dim_param}
        places = [f"{name}:{axis}" for name, dims in inputs.items() for axis in range(len(dims))]
        known = ", ".join(visible(known_name) for known_name in (*sorted(names), *places)[:12])
        hint = f"There are {known}" if known else "No input has any"
        raise UsageError(f"dimension {text}: there is no {key!r}", hint=hint)
    chosen = next(iter(axes))
    dim = inputs[chosen][axes[chosen]]
    size = dim.dim_value if dim.HasField("dim_value") and dim.dim_value > 0 else None
    return Dimension(key, axes, size, dim.dim_param, to)


def set_dimension(
    model: onnx.ModelProto, axes: Mapping[str, int], name: str, to: int | str
) -> None:
    """Give a dynamic dimension a size or another name, in every declared shape that has its name.

    Args:
        model: The model, which is changed.
        axes: The axis of each input.
        name: The name of the dimension; empty when it has none.
        to: Its size, or its new name.
    """
    field = "dim_value" if isinstance(to, int) else "dim_param"
    graph = model.graph
    for info in graph.input:
        if info.name in axes:
            setattr(info.type.tensor_type.shape.dim[axes[info.name]], field, to)
    for info in (*graph.input, *graph.output, *_all_value_info(graph)):
        for dim in inner_type(info.type)[0].shape.dim:
            if name and dim.dim_param == name:
                setattr(dim, field, to)


def _all_value_info(graph: onnx.GraphProto) -> Iterator[onnx.ValueInfoProto]:
    yield from graph.value_info
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _all_value_info(attribute.g)
                yield from attribute.g.output


def inner_type(proto: onnx.TypeProto) -> tuple[Any, tuple[str, ...]]:
    """Return the tensor type in sequences and optionals, and these, the outermost first."""
    wraps: list[str] = []
    while (kind := proto.WhichOneof("value")) in ("sequence_type", "optional_type"):
        wraps.append(str(kind).removesuffix("_type"))
        proto = getattr(proto, str(kind)).elem_type
    return proto.tensor_type, tuple(wraps)
