"""Whether a value fits an input of a node: its type against the operator's signature."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dld_tui.core.document.values import ValueType
from dld_tui.core.operators.registry import schema_for

if TYPE_CHECKING:
    from dld_tui.core.document.node import Node
    from dld_tui.core.operators.schema import Formal, OperatorSchema

_ELEMENT = {"float32": "float", "float64": "double"}
_SHOWN = {onnx_name: name for name, onnx_name in _ELEMENT.items()}
_CONTAINERS = {
    "": "tensor({})",
    "sparse": "sparse_tensor({})",
    "sequence": "seq(tensor({}))",
    "optional": "optional(tensor({}))",
    "optional(sequence)": "optional(seq(tensor({})))",
}
_MOST_TYPES = 4


def schema_of(node: Node) -> OperatorSchema | None:
    """Return the schema of a node's operator in the version that its model imports."""
    versions = node.scope.document.opset_imports
    return schema_for(node.op_type, node.domain, versions.get(node.domain))


def mismatch(node: Node, index: int, value_type: ValueType | None) -> str | None:
    """Return why a value does not fit an input of a node; None when it does or nothing is known.

    Args:
        node: The node.
        index: Which input, from 0; it need not be there yet.
        value_type: What is known of the value's type.
    """
    schema = schema_of(node)
    if schema is None:
        return None
    formal = schema.input(index)
    if formal is None:
        most = schema.max_inputs if schema.max_inputs is not None else len(schema.inputs)
        return f"{schema.name} takes no more than {most} input{'' if most == 1 else 's'}"
    text = type_text(value_type)
    if text is None:
        return None
    if formal.types and text not in formal.types:
        return f"{formal.name} takes {_accepted(formal)}, not {_shown(text)}"
    return _conflict(node, schema, index, formal, text)


def type_text(value_type: ValueType | None) -> str | None:
    """Return a type in ONNX notation, e.g. ``tensor(float)``; None when it is not known."""
    if value_type is None or value_type.dtype is None:
        return None
    pattern = _CONTAINERS.get(value_type.container)
    element = _ELEMENT.get(value_type.dtype, value_type.dtype)
    return pattern.format(element) if pattern is not None else None


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
        found = type_text(node.scope.value_type(name))
        if found is not None and found != text:
            label = f"{other.name} {at}" if other.option == "variadic" else other.name
            return f"{_shown(text)}, but {label} is {_shown(found)}: they must be the same"
    return None


def _accepted(formal: Formal) -> str:
    names = [_shown(name) for name in formal.types]
    if len(names) <= _MOST_TYPES:
        return ", ".join(names)
    return f"{', '.join(names[:_MOST_TYPES])} and {len(names) - _MOST_TYPES} more types"


def _shown(text: str) -> str:
    """Return an ONNX type as this program writes it: ``tensor(float)`` is ``float32``."""
    head, _, rest = text.rpartition("(")
    element = rest.rstrip(")")
    element = _SHOWN.get(element, element)
    if head == "tensor":
        return element
    return f"{head.replace('(tensor', '')}({element})" if head else element
