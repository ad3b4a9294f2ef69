"""Attributes of local functions: declared, with and without defaults, and referred to inside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import onnx

from dld_tui.core import fmt
from dld_tui.core.document.calls import declared_attributes, enclosing_function, references
from dld_tui.core.document.edits.attributes import attribute_proto, find_attribute
from dld_tui.core.document.edits.functions import function_at
from dld_tui.core.document.edits.opsets import DEFAULTS_IR, ensure_ir
from dld_tui.core.document.edits.registry import edit, node_at, quoted
from dld_tui.core.document.history import Transaction
from dld_tui.core.document.node import VALUE_FIELDS, Node, attribute_type
from dld_tui.core.document.primitives import SetAttribute, SetList, copies
from dld_tui.core.document.scope import Scope
from dld_tui.core.document.wiretext import set_text, text_of, texts_of
from dld_tui.core.errors import EditError
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document


@edit
def set_function_attribute(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    attribute: str,
    kind: str | None = None,
    value: JSON = None,
) -> str:
    """Declare an attribute of a local function, with a default or without one.

    Args:
        document: The document.
        transaction: The transaction to make the change in.
        scope: The path of the function.
        attribute: The attribute's name.
        kind: The kind of the default as in ``set_attribute``; None for no default.
        value: The default.
    """
    function = function_at(document, scope)
    if not attribute:
        raise EditError("an attribute needs a name")
    declared = declared_attributes(function)
    if kind is None:
        if attribute in declared and declared[attribute] is None:
            return "declare nothing"
        if attribute in declared:
            _set_defaults(transaction, function, _defaults_without(function, attribute))
        _set_names(transaction, function, [*_names(function), attribute])
        return f"declare attribute {quoted(attribute)}"
    default = attribute_proto(attribute, kind, value)
    _require_fitting(references(function).get(attribute, []), attribute, default.type)
    old = declared.get(attribute)
    if old is not None and old.SerializeToString() == default.SerializeToString():
        return "declare nothing"
    if attribute in _names(function):
        names = [name for name in _names(function) if name != attribute]
        _set_names(transaction, function, names)
    defaults = copies(_proto(function).attribute_proto)
    places = [i for i, item in enumerate(defaults) if text_of(item.name) == attribute]
    if places:
        defaults[places[-1]] = default
    else:
        defaults.append(default)
    _set_defaults(transaction, function, defaults)
    ensure_ir(transaction, document, DEFAULTS_IR)
    return f"declare attribute {quoted(attribute)} with a default"


@edit
def remove_function_attribute(
    document: Document, transaction: Transaction, *, scope: Sequence[str], attribute: str
) -> str:
    """Take away an attribute of a local function that nothing inside refers to."""
    function = function_at(document, scope)
    if attribute not in declared_attributes(function):
        raise EditError(f"the function declares no attribute {quoted(attribute)}")
    users = references(function).get(attribute, [])
    if users:
        raise EditError(
            f"{fmt.plural(len(users), 'attribute')} inside refer to {quoted(attribute)}, "
            f"one of {quoted(users[0][0].ref)}",
            hint="Give them values first",
        )
    if attribute in _names(function):
        names = [name for name in _names(function) if name != attribute]
        _set_names(transaction, function, names)
    defaults = _defaults_without(function, attribute)
    if len(defaults) != len(_proto(function).attribute_proto):
        _set_defaults(transaction, function, defaults)
    return f"remove attribute {quoted(attribute)} of the function"


@edit
def set_attribute_reference(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    node: str,
    attribute: str,
    reference: str,
    kind: str | None = None,
) -> str:
    """Let an attribute inside a local function take its value from one of the function's own.

    ``set_attribute`` gives it a value again.

    Args:
        document: The document.
        transaction: The transaction to make the change in.
        scope: The path of the node's scope.
        node: The node's ref.
        attribute: The attribute of the node.
        reference: The attribute of the function.
        kind: The kind of the attribute, where neither its present value nor a default tells.
    """
    target = node_at(document, scope, node)
    function = enclosing_function(target.scope)
    if function is None:
        raise EditError("only inside a function can an attribute refer to one of the function")
    declared = declared_attributes(function)
    if reference not in declared:
        raise EditError(
            f"the function declares no attribute {quoted(reference)}", hint="Declare it first"
        )
    if not attribute:
        raise EditError("an attribute needs a name")
    position, old = find_attribute(target, attribute)
    number = _reference_type(old, declared[reference], kind)
    others = [
        (user, proto)
        for user, proto in references(function).get(reference, [])
        if user is not target or text_of(proto.name) != attribute
    ]
    _require_fitting(others, reference, number, declared[reference])
    new = onnx.AttributeProto()
    if old is not None:
        new.CopyFrom(old)
        for field in VALUE_FIELDS.values():
            new.ClearField(field)
    else:
        set_text(new, "name", attribute)
    set_text(new, "ref_attr_name", reference)
    new.type = number  # type: ignore[assignment]
    if old is not None and old.SerializeToString() == new.SerializeToString():
        return "set nothing"
    transaction.do(SetAttribute(target, position, old, new))
    return f"let {quoted(attribute)} of {quoted(node)} be {quoted(reference)} of the function"


def _reference_type(
    old: onnx.AttributeProto | None, default: onnx.AttributeProto | None, kind: str | None
) -> int:
    if kind is not None:
        names = {name.lower(): n for name, n in onnx.AttributeProto.AttributeType.items() if n}
        if kind not in names:
            raise EditError(f"there is no kind of attribute {kind!r}")
        return names[kind]
    if default is not None:
        return attribute_type(default)
    if old is not None and attribute_type(old):
        return attribute_type(old)
    raise EditError("nothing tells the kind of the attribute", hint="Say which kind it is")


def _require_fitting(
    users: list[tuple[Node, onnx.AttributeProto]],
    attribute: str,
    number: int,
    default: onnx.AttributeProto | None = None,
) -> None:
    """Refuse a type that the default or another reference contradicts."""
    for proto in (*([default] if default is not None else []), *(proto for _, proto in users)):
        known = attribute_type(proto)
        if known and known != number:
            name = onnx.AttributeProto.AttributeType.Name(known).lower()
            raise EditError(f"{quoted(attribute)} is of kind {name} inside the function")


def _proto(function: Scope) -> onnx.FunctionProto:
    assert isinstance(function.proto, onnx.FunctionProto)
    return function.proto


def _names(function: Scope) -> list[str]:
    return list(texts_of(_proto(function).attribute))


def _defaults_without(function: Scope, attribute: str) -> list[onnx.AttributeProto]:
    defaults = copies(_proto(function).attribute_proto)
    return [item for item in defaults if text_of(item.name) != attribute]


def _set_names(transaction: Transaction, function: Scope, names: list[str]) -> None:
    transaction.do(SetList(function, None, "", function.proto, "attribute", names))


def _set_defaults(
    transaction: Transaction, function: Scope, defaults: list[onnx.AttributeProto]
) -> None:
    transaction.do(SetList(function, None, "", function.proto, "attribute_proto", defaults))
