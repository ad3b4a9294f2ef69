"""Whether a value fits an input: its type against the operator's signature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dld_tui.core.document.value_types import ValueType, shown, type_of_value, types_text
from dld_tui.core.operators.registry import schema_for

if TYPE_CHECKING:
    from dld_tui.core.document.node import Node
    from dld_tui.core.operators.schema import Formal, OperatorSchema

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
    text = type_of_value(value_type)
    if text is None:
        return None
    if formal.types and text not in formal.types:
        return f"{formal.name} takes {_accepted(formal)}, not {shown(text)}"
    return _conflict(node, schema, index, formal, text)


def bound_types(formals: Sequence[Formal | None], types: Sequence[str | None]) -> dict[str, str]:
    """Return what the type names of a signature stand for, given the types of its inputs.

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
        bound: What the type names of the signature stand for, from the other inputs.
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
        found = type_of_value(node.scope.value_type(name))
        if found is not None and found != text:
            label = f"{other.name} {at}" if other.option == "variadic" else other.name
            return f"{shown(text)}, but {label} is {shown(found)}: they must be the same"
    return None


def _accepted(formal: Formal) -> str:
    more = len(formal.types) - _MOST_TYPES
    return types_text(formal.types, most=_MOST_TYPES) + (" types" if more > 0 else "")


def _is_variable(formal: Formal) -> bool:
    return bool(formal.types) and formal.homogeneous and formal.type_name not in formal.types
