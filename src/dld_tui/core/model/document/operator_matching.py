"""Whether a value fits an input: its type against the operator's signature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from dld_tui.core.model.document.opset_imports import imports_of
from dld_tui.core.model.operators.attribute_words import integer_word
from dld_tui.core.model.operators.categories import BROADCASTING
from dld_tui.core.model.operators.registry import schema_for
from dld_tui.core.model.tensors.value_types import (
    ValueType,
    castable,
    shown,
    type_of_value,
    types_text,
)

if TYPE_CHECKING:
    from dld_tui.core.model.document.node import Attribute, Node
    from dld_tui.core.model.document.scope import Scope
    from dld_tui.core.model.operators.schema import Formal, OperatorSchema

_MOST_TYPES = 4


def schema_in(op_type: str, domain: str, scope: Scope) -> OperatorSchema | None:
    """Return the schema of an operator in the version that holds in a scope."""
    return schema_for(op_type, domain, imports_of(scope).get(domain))


def schema_of(node: Node) -> OperatorSchema | None:
    """Return the schema of a node's operator in the version that holds in its scope."""
    return schema_in(node.op_type, node.domain, node.scope)


def mismatch(node: Node, index: int, value_type: ValueType | None) -> str | None:
    """Return why a value does not fit an input of a node; None when it does or nothing is known.

    Args:
        index: Which input, from 0; it need not be there yet.
        value_type: What is known of the value's type.
    """
    schema = schema_of(node)
    if schema is None:
        return None
    formal = schema.input(index)
    if formal is None:
        most = schema.max_inputs if schema.max_inputs is not None else len(schema.inputs)
        return f"{schema.name} takes at most {most} input{'' if most == 1 else 's'}"
    text = type_of_value(value_type)
    if text is None:
        return None
    if formal.types and text not in formal.types:
        return f"{formal.name} takes {_accepted(formal)}, not {shown(text)}"
    return _conflict(node, schema, index, formal, text)


def wanted_type(node: Node, index: int) -> str | None:
    """Return the element type that an input of a node must have, such as ``float32``.

    It follows from the signature and the types of the node's other values; None where several are
    possible.
    """
    schema = schema_of(node)
    formal = schema.input(index) if schema is not None else None
    if schema is None or formal is None:
        return None
    places = [(at, name, schema.input(at)) for at, name in enumerate(node.inputs) if at != index]
    places += [(at, name, schema.output(at)) for at, name in enumerate(node.outputs)]
    for _, name, other in places if _is_variable(formal) else ():
        if name and other is not None and other.type_name == formal.type_name:
            text = type_of_value(node.scope.value_type(name))
            if text in formal.types:
                return castable(text)
    return castable(formal.types[0]) if len(formal.types) == 1 else None


def bound_types(formals: Sequence[Formal | None], types: Sequence[str | None]) -> dict[str, str]:
    """Return the types bound to the type names of a signature, given the types of its inputs.

    Args:
        formals: The formal of each input.
        types: The type of each input in ONNX notation, None where it is not known.
    """
    bound: dict[str, str] = {}
    for formal, type_name in zip(formals, types, strict=True):
        if formal is None or type_name is None or not _is_variable(formal):
            continue
        if type_name in formal.types:
            bound.setdefault(formal.type_name, type_name)
    return bound


def formal_mismatch(
    formal: Formal | None, type_name: str | None, bound: Mapping[str, str] | None = None
) -> str | None:
    """Return why a type does not fit an input, or None when it does or when it is not known.

    Args:
        formal: The input.
        type_name: The value's type in ONNX notation.
        bound: The types bound to the type names of the signature by the other inputs.
    """
    if formal is None or type_name is None or not formal.types:
        return None
    if type_name not in formal.types:
        return f"is {shown(type_name)}; takes {types_text(formal.types)}"
    wanted = (bound or {}).get(formal.type_name) if _is_variable(formal) else None
    if wanted is not None and wanted != type_name:
        return f"is {shown(type_name)}; {formal.type_name} is {shown(wanted)}"
    return None


def is_required(node: Node, index: int) -> bool:
    """Return whether the operator needs the input at an index; False when it is not known."""
    schema = schema_of(node)
    if schema is None:
        return False
    formal = schema.input(index)
    if formal is None or formal.option == "optional":
        return False
    if formal.option == "variadic":
        return index - (len(schema.inputs) - 1) < formal.min_arity
    return True


def _conflict(
    node: Node, schema: OperatorSchema, index: int, formal: Formal, text: str
) -> str | None:
    """Return which other input has another type though both must have the same one."""
    if "(" in formal.type_name or not formal.homogeneous:
        return None
    for at, name in enumerate(node.inputs):
        other = schema.input(at)
        if at == index or not name or other is None or other.type_name != formal.type_name:
            continue
        other_type = type_of_value(node.scope.value_type(name))
        if other_type is not None and other_type != text:
            label = f"{other.name} {at}" if other.option == "variadic" else other.name
            return f"{shown(text)}, but {label} is {shown(other_type)}: they must be the same"
    return None


def _accepted(formal: Formal) -> str:
    more = len(formal.types) - _MOST_TYPES
    return types_text(formal.types, most=_MOST_TYPES) + (" types" if more > 0 else "")


def _is_variable(formal: Formal) -> bool:
    return bool(formal.types) and formal.homogeneous and formal.type_name not in formal.types


# Only what ONNX's own definitions say is used: where a size is free, such as the number of output
# channels, that of the input is offered, which keeps what follows valid.

Sizes: TypeAlias = "tuple[int | str | None, ...] | None"
"""Dimensions of an input as far as they are known; None when even the rank is not."""
Settings: TypeAlias = "Mapping[str, object]"
"""Attributes by name: numbers and lists of them."""

_CHANNEL_VECTORS = {
    "BatchNormalization": (1, 2, 3, 4), "InstanceNormalization": (1, 2),
    "GroupNormalization": (1, 2),
}  # fmt: skip
"""Inputs that have one element for each channel, axis 1 of the first input."""
_SCALARS = {
    "QuantizeLinear": (1, 2), "DequantizeLinear": (1, 2), "Clip": (1, 2), "OneHot": (1,),
    "ConstantOfShape": (), "Range": (0, 1, 2), "Dropout": (1, 2), "Pad": (2,), "TopK": (),
}  # fmt: skip
_KERNEL = 3
"""Kernel size of a convolution without ``kernel_shape``."""


def weight_dims(op_type: str, at: int, inputs: Sequence[Sizes], settings: Settings) -> Sizes:
    """Return the most likely dimensions of an input that is to be a new initializer.

    Args:
        op_type: An operator of ai.onnx.
        at: Which input.
        inputs: Dimensions of its inputs.
        settings: The attributes that are set.

    Returns:
        Numbers only; None when unknown.
    """
    first = inputs[0] if inputs else None
    channels = _size(first, 1)
    if op_type in ("Conv", "ConvTranspose"):
        return _convolution(op_type, at, inputs, settings)
    if at in _CHANNEL_VECTORS.get(op_type, ()):
        return None if channels is None else (channels,)
    if at in _SCALARS.get(op_type, ()):
        return ()
    if op_type == "MatMul":
        return _matmul(at, inputs)
    if op_type == "Gemm":
        return _gemm(at, inputs, settings)
    if op_type in ("LayerNormalization", "RMSNormalization") and at in (1, 2):
        axis = settings.get("axis", -1)
        return _numbers(first[axis:]) if first and isinstance(axis, int) else None
    if op_type == "PRelu" and at == 1 and first is not None and channels is not None:
        return (channels, *[1] * (len(first) - 2))
    if op_type == "Reshape" and at == 1:
        return (len(first),) if first is not None else None
    others = [sizes for place, sizes in enumerate(inputs) if place != at and sizes]
    if others and op_type in BROADCASTING:
        last = others[0][-1]
        return (last,) if isinstance(last, int) else (1,)
    return None


def _convolution(op_type: str, at: int, inputs: Sequence[Sizes], settings: Settings) -> Sizes:
    first = inputs[0] if inputs else None
    weight = inputs[1] if len(inputs) > 1 else None
    channels, groups = _size(first, 1), settings.get("group", 1)
    if not isinstance(groups, int) or groups < 1:
        groups = 1
    if at == 1:
        if first is None or channels is None:
            return None
        kernel = settings.get("kernel_shape")
        sizes = list(kernel) if isinstance(kernel, (list, tuple)) else [_KERNEL] * (len(first) - 2)
        whole = max(1, channels // groups)
        return (channels, whole, *(int(size) for size in sizes))
    if at == 2:  # one for each output channel
        if op_type == "ConvTranspose":
            size = _size(weight, 1)
            return None if size is None else (size * groups,)
        size = _size(weight, 0)
        return None if size is None else (size,)
    return None


def _matmul(at: int, inputs: Sequence[Sizes]) -> Sizes:
    other = inputs[1 - at] if len(inputs) > 1 - at else None
    if other is None or len(other) < 2:
        return None
    size = _size(other, len(other) - 1 if at == 1 else len(other) - 2)
    return None if size is None else (size, size)


def _gemm(at: int, inputs: Sequence[Sizes], settings: Settings) -> Sizes:
    first = inputs[0] if inputs else None
    second = inputs[1] if len(inputs) > 1 else None
    if at == 1:
        size = _size(first, 0 if settings.get("transA") else 1)
        return None if size is None else (size, size)
    if at == 2:
        size = _size(second, 0 if settings.get("transB") else 1)
        return None if size is None else (size,)
    return None


def _size(sizes: Sizes, axis: int) -> int | None:
    if sizes is None or axis >= len(sizes):
        return None
    size = sizes[axis]
    return size if isinstance(size, int) and size > 0 else None


def _numbers(sizes: Sequence[int | str | None]) -> Sizes:
    numbers = [size for size in sizes if isinstance(size, int) and size > 0]
    return tuple(numbers) if len(numbers) == len(sizes) else None


def attribute_word(attribute: Attribute) -> str | None:
    """Return what the whole number of a node's attribute means; None of all other values."""
    if attribute.kind != "int" or attribute.reference is not None:
        return None
    return integer_word(attribute.name, attribute.value, schema_of(attribute.node))
