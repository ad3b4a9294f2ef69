"""Setting and removing attributes."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dld_tui.core import fmt
from dld_tui.core.errors import EditError, UsageError
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.proto_fields import VALUE_FIELDS, set_text, text_of
from dld_tui.core.model.document.edit_registry import edit, node_at, nodes_at, subject
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.operator_matching import schema_of
from dld_tui.core.model.document.transactions import SetAttribute, Transaction
from dld_tui.core.model.operators.attribute_words import integer_text
from dld_tui.core.model.tensors.elements import payload_bytes
from dld_tui.core.model.tensors.sparse import sparse_value
from dld_tui.core.model.tensors.value_types import dtype_number, parse_type, type_proto_of
from dld_tui.core.text import quoted
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.operators.schema import OperatorSchema

_SCALARS: dict[str, Any] = {"int": int, "float": (int, float), "string": str}
_LISTS: dict[str, Any] = {"ints": int, "floats": (int, float), "strings": str}
SETTABLE_KINDS = (*_SCALARS, *_LISTS, "tensor")
"""Kinds of attribute that can be typed."""
_OTHERS = ("tensors", "sparse_tensor", "sparse_tensors", "type_proto", "type_protos")
"""Further ones that :func:`set_attribute` takes."""


@edit
def set_attribute(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    node: str,
    attribute: str,
    kind: str,
    value: JSON,
) -> str:
    """Give an attribute of a node a value; it is added when it is not there.

    Args:
        scope: The path of the node's scope.
        node: The node's ref.
        attribute: The attribute's name.
        kind: One of :data:`SETTABLE_KINDS`, ``tensors``, ``sparse_tensor``, ``sparse_tensors``,
            ``type_proto`` or ``type_protos``.
        value: A number (of a type such as ``to`` of Cast also its name, ``float16``), a string
            (bytes that are not UTF-8 as surrogates), a list of those, for a tensor
            ``{"dtype": "float32", "dims": [2], "raw": BASE64}``, for a sparse one ``{"dtype",
            "dims", "indices", "values"}`` as ``set_sparse`` takes them, for a type a text such as
            ``float32[N, 3]``.
    """
    if not attribute:
        raise EditError("an attribute needs a name")
    target = node_at(document, scope, node)
    position, old = find_attribute(target, attribute)
    new = onnx.AttributeProto()
    if old is not None:
        new.CopyFrom(old)
        for field in (*VALUE_FIELDS.values(), "ref_attr_name"):
            new.ClearField(field)
    else:
        set_text(new, "name", attribute)
    _set_value(new, kind, value, schema_of(target))
    if old is not None and old.SerializeToString() == new.SerializeToString():
        return "set nothing"
    transaction.do(SetAttribute(target, position, old, new))
    return f"set {quoted(attribute)} of {quoted(node)}"


@edit
def remove_attribute(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    node: str,
    attribute: str,
) -> str:
    """Remove an attribute of a node, so that the operator's default holds."""
    target = node_at(document, scope, node)
    position, old = find_attribute(target, attribute)
    if old is None:
        raise EditError(f"there is no attribute {quoted(attribute)}", where=quoted(node))
    transaction.do(SetAttribute(target, position, old, None))
    return f"remove {quoted(attribute)} of {quoted(node)}"


def find_attribute(node: Node, name: str) -> tuple[int, onnx.AttributeProto | None]:
    """Return an attribute and its place, or the place after the last one and None."""
    for position, proto in enumerate(node.proto.attribute):
        if text_of(proto.name) == name:
            return position, proto
    return len(node.proto.attribute), None


def attribute_proto(
    name: str, kind: str, value: JSON, schema: OperatorSchema | None = None
) -> onnx.AttributeProto:
    """Return the message of a new attribute; see :func:`set_attribute`.

    Raises:
        EditError: The value is not of the kind.
    """
    proto = onnx.AttributeProto()
    set_text(proto, "name", name)
    _set_value(proto, kind, value, schema)
    return proto


def _set_value(
    proto: onnx.AttributeProto, kind: str, value: JSON, schema: OperatorSchema | None
) -> None:
    number = _number_of(kind)
    field = VALUE_FIELDS[number]
    if kind == "int" and isinstance(value, str):
        text = integer_text(text_of(proto.name), value, schema)
        value = int(text) if text.isdecimal() else value
    try:
        if kind in _SCALARS:
            if isinstance(value, bool) or not isinstance(value, _SCALARS[kind]):
                raise TypeError
            setattr(proto, field, _encoded(value))
        elif kind in _LISTS:
            if not isinstance(value, list):
                raise TypeError
            wanted = _LISTS[kind]
            if any(isinstance(item, bool) or not isinstance(item, wanted) for item in value):
                raise TypeError
            getattr(proto, field).extend(_encoded(item) for item in value)
        elif kind == "tensor":
            proto.t.CopyFrom(_tensor(value))
        elif kind == "type_proto":
            proto.tp.CopyFrom(_type(value))
        elif kind == "sparse_tensor":
            proto.sparse_tensor.CopyFrom(sparse_value(value))
        elif not isinstance(value, list):
            raise TypeError
        elif kind == "sparse_tensors":
            proto.sparse_tensors.extend(map(sparse_value, value))
        elif kind == "tensors":
            proto.tensors.extend(map(_tensor, value))
        else:
            proto.type_protos.extend(map(_type, value))
    except (TypeError, ValueError, OverflowError, binascii.Error):
        raise EditError(f"{value!r:.60} is not a value of kind {kind}") from None
    proto.type = number  # type: ignore[assignment]


def _number_of(kind: str) -> int:
    if kind not in (*SETTABLE_KINDS, *_OTHERS):
        kinds = ", ".join((*SETTABLE_KINDS, *_OTHERS))
        why = f"an attribute of kind {kind!r} cannot be set by value"
        raise EditError(why, hint=f"Kinds: {kinds}")
    return int(onnx.AttributeProto.AttributeType.Value(kind.upper()))


def _encoded(value: Any) -> Any:
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value


def _tensor(value: JSON) -> onnx.TensorProto:
    if not isinstance(value, dict):
        raise TypeError
    dtype, dims, raw = value.get("dtype"), value.get("dims"), value.get("raw")
    number = dtype_number(dtype) if isinstance(dtype, str) else None
    if number is None or not isinstance(dims, list) or not isinstance(raw, str):
        raise TypeError
    proto = onnx.TensorProto(data_type=number, raw_data=base64.b64decode(raw, validate=True))
    proto.dims.extend(dims)  # type: ignore[arg-type]
    if payload_bytes(str(dtype), math.prod(proto.dims)) != len(proto.raw_data):
        raise TypeError
    return proto


def _type(value: JSON) -> onnx.TypeProto:
    try:
        known = parse_type(value) if isinstance(value, str) else None
    except UsageError:
        known = None
    proto = type_proto_of(known) if known is not None else None
    if proto is None:
        raise TypeError
    return proto


@edit
def set_attributes(
    document: Document, transaction: Transaction, *, changes: Sequence[Mapping[str, JSON]]
) -> str:
    """Give the same attributes to many nodes, others to others.

    Args:
        changes: ``[{"nodes": [[SCOPE, NODE], …], "attributes": {NAME: {"kind", "value"}}}, …]``,
            nodes as in ``delete_many``, values as in ``set_attribute``; null removes an attribute
            where it is set.
    """
    names: dict[str, None] = {}
    touched: dict[Node, None] = {}
    for change in changes if isinstance(changes, (list, tuple)) else ():
        if not isinstance(change, dict) or not isinstance(change.get("attributes"), dict):
            raise EditError("a change needs nodes and attributes")
        attributes = change["attributes"]
        for node in nodes_at(document, change.get("nodes")):
            set_on_node(document, transaction, node, attributes)
            touched[node] = None
        names.update(dict.fromkeys(attributes))
    if not names:
        raise EditError("there are no attributes to set")
    if not transaction.primitives:
        return "set nothing"
    subject_text = subject([*names], "attribute")
    return f"set {subject_text} of {fmt.plural(len(touched), 'node')}"


def set_on_node(
    document: Document, transaction: Transaction, node: Node, attributes: Mapping[str, JSON]
) -> None:
    """Give a node attributes, ``{NAME: {"kind", "value"}}``; null removes one.

    Raises:
        EditError: An attribute has no kind, or its value is not of it.
    """
    path, ref = list(node.scope.path), node.ref
    for name, about in attributes.items():
        if about is None:
            if find_attribute(node, name)[1] is not None:
                remove_attribute.run(document, transaction, scope=path, node=ref, attribute=name)
            continue
        kind, value = _kind_and_value(name, about, schema_of(node))
        set_attribute.run(
            document, transaction, scope=path, node=ref, attribute=name, kind=kind, value=value
        )


def add_attributes(
    proto: onnx.NodeProto, attributes: Mapping[str, JSON], schema: OperatorSchema | None = None
) -> None:
    """Add attributes, ``{NAME: {"kind", "value"}}``, to the message of a new node.

    Args:
        proto: The message.
        attributes: What to add.
        schema: The operator, where it is known.

    Raises:
        EditError: As of :func:`set_on_node`.
    """
    for name, about in attributes.items():
        kind, value = _kind_and_value(name, about, schema)
        proto.attribute.append(attribute_proto(name, kind, value, schema))


def _kind_and_value(name: str, about: JSON, schema: OperatorSchema | None) -> tuple[str, JSON]:
    """Return what ``{"kind", "value"}`` says, or the value alone with the kind that it has."""
    if isinstance(about, dict) and "kind" in about:
        return str(about["kind"]), about.get("value")
    known = schema.attribute(name) if schema is not None else None
    kind = known.kind if known is not None else _kind_of(about)
    if not kind:
        raise EditError(f"attribute {quoted(name)} must have a kind and a value")
    return kind, about


def _kind_of(value: JSON) -> str:
    """Return the kind of a plain value, empty where it does not tell."""
    if isinstance(value, list):
        kinds = {_kind_of(item) for item in value}
        kind = "float" if kinds == {"int", "float"} else kinds.pop() if len(kinds) == 1 else ""
        return f"{kind}s" if kind in _SCALARS else ""
    if isinstance(value, bool):
        return ""
    return next((kind for kind, types in _SCALARS.items() if isinstance(value, types)), "")
