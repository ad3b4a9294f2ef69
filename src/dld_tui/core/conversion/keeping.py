"""What libraries drop of a model when they convert it, put back into the result.

Nodes are matched by the first value that they make, other records by name, or by the one that
quantization gives them; only what the result lacks is put back, and only of what it still has.
"""

from __future__ import annotations

from typing import Any

import onnx
from google.protobuf.unknown_fields import UnknownFieldSet

from dld_tui.core.document.document import Document
from dld_tui.core.document.node import Node
from dld_tui.core.document.primitives import Splice
from dld_tui.core.document.scope import Scope
from dld_tui.core.document.wiretext import set_text, text_of

_HEADER = ("producer_name", "producer_version", "domain", "model_version", "doc_string")
_NAMED = ("input", "output", "value_info", "initializer")
_QUANTIZED, _QUANT = "_quantized", "_quant"
"""What ONNX Runtime appends to the names of weights and of nodes."""


def keep(original: Document, result: Document) -> int:
    """Put back what a library has lost; the result is changed in place.

    Model and graph: documentation, metadata, name, training information, quantization annotations.
    Local functions that are still called. Nodes: name, documentation and metadata. Inputs, outputs,
    values and initializers: documentation, metadata and what dimensions denote. All of them, and
    functions: fields of newer versions of the format.

    Returns:
        How many nodes got something back.
    """
    old, new = original.model, result.model
    for field in _HEADER:
        if old.HasField(field):
            value = getattr(old, field)
            set_text(new, field, value if isinstance(value, int) else text_of(value))
    _record(old, new)
    if not len(new.training_info):
        new.training_info.extend(old.training_info)
    pairs = _pairs(original.main, result.main)
    theirs = {_key(function): function for function in result.functions}
    for function in original.functions:
        twin = theirs.get(_key(function))
        pairs += [] if twin is None else _pairs(function, twin)
    _functions(original, result)
    return sum(_scope(one, two) for one, two in pairs)


def _key(function: Scope) -> tuple[str, ...]:
    proto: Any = function.proto
    return text_of(proto.domain), text_of(proto.name), text_of(proto.overload)


def _pairs(one: Scope, two: Scope) -> list[tuple[Scope, Scope]]:
    """Return graphs and those that they have become, by the nodes that hold them."""
    found = [(one, two)]
    for node in one.holders:
        twin = two.producer(node.outputs[0]) if node.outputs else None
        for name, scopes in node.children.items():
            theirs = [] if twin is None else twin.children.get(name, [])
            for mine, other in zip(scopes, theirs, strict=False):
                found += _pairs(mine, other)
    return found


def _scope(old: Scope, new: Scope) -> int:
    one: Any = old.proto
    two: Any = new.proto
    if one.HasField("name"):
        set_text(two, "name", text_of(one.name))
    if one.HasField("doc_string"):
        set_text(two, "doc_string", text_of(one.doc_string))
    _add_entries(one, two)
    _unknown(one, two)
    _annotations(old, new)
    for list_name in _NAMED:
        if list_name not in old.records:
            continue
        index = new.named(list_name)
        for record in old.records[list_name]:
            name = text_of(record.name)
            twin = index.first(name) or index.first(f"{name}{_QUANTIZED}")
            if twin is not None:
                _record(record, twin)
    return sum(_node(old, node) for node in new.nodes)


def _node(old: Scope, node: Node) -> bool:
    before = old.producer(node.outputs[0]) if node.outputs else None
    if before is None or before.op_type != node.op_type:
        return _quantized_node(old, node)
    changed = _record(before.proto, node.proto)
    if before.name and not node.name:
        node.scope.leave("node", node)
        set_text(node.proto, "name", before.name)
        node.scope.enter("node", node)
        changed = True
    return changed


def _quantized_node(old: Scope, node: Node) -> bool:
    """Put back what was said of a node that another operator has taken the place of."""
    if not node.name.endswith(_QUANT):
        return False
    before = old.nodes_named(node.name.removesuffix(_QUANT))
    return len(before) == 1 and _record(before[0].proto, node.proto)


def _record(old: Any, new: Any) -> bool:
    changed = _add_entries(old, new)
    changed |= _unknown(old, new)
    if isinstance(old, onnx.ValueInfoProto):
        changed |= _denotations(old.type, new.type)
    if old.HasField("doc_string") and not new.HasField("doc_string"):
        set_text(new, "doc_string", text_of(old.doc_string))
        changed = True
    return changed


def _denotations(old: onnx.TypeProto, new: onnx.TypeProto) -> bool:
    """Put back what a value, and each of its dimensions, stands for."""
    parts: list[tuple[Any, Any]] = [(old, new)]
    shapes = old.tensor_type.shape.dim, new.tensor_type.shape.dim
    if len(shapes[0]) == len(shapes[1]):
        parts += zip(*shapes, strict=True)
    lost = [pair for pair in parts if pair[0].denotation and not pair[1].denotation]
    for one, two in lost:
        set_text(two, "denotation", text_of(one.denotation))
    return bool(lost)


def _unknown(old: Any, new: Any) -> bool:
    """Put back fields that this version of the format does not have."""
    if not len(UnknownFieldSet(old)) or len(UnknownFieldSet(new)):
        return False
    rest = type(old)()
    rest.CopyFrom(old)
    for field, _ in old.ListFields():
        rest.ClearField(field.name)
    new.MergeFromString(rest.SerializeToString())
    return True


def _add_entries(old: Any, new: Any) -> bool:
    """Add the metadata that is missing."""
    present = {text_of(entry.key) for entry in new.metadata_props}
    missing = [entry for entry in old.metadata_props if text_of(entry.key) not in present]
    new.metadata_props.extend(missing)
    return bool(missing)


def _annotations(old: Scope, new: Scope) -> None:
    if "quantization_annotation" not in old.records:  # in a function
        return
    known = {text_of(one.tensor_name) for one in new.records["quantization_annotation"]}
    missing = []
    for annotation in old.records["quantization_annotation"]:
        name = text_of(annotation.tensor_name)
        if name not in known and new.definition(name) is not None:
            copied = onnx.TensorAnnotation()
            copied.CopyFrom(annotation)
            missing.append(copied)
    if missing:
        end = len(new.records["quantization_annotation"])
        Splice(new, "quantization_annotation", end, [], missing).do()


def _functions(original: Document, result: Document) -> None:
    """Put back local functions that the result calls and does not have."""
    called = {
        (node.proto.domain, node.op_type) for scope in result.scopes() for node in scope.nodes
    }
    known = {(f.proto.domain, f.proto.name) for f in result.functions}  # type: ignore[union-attr]
    from dld_tui.core.document.serialise import filled_scope

    for function in original.functions:
        proto = function.proto
        assert isinstance(proto, onnx.FunctionProto)
        if (proto.domain, proto.name) in called - known:
            with filled_scope(function):
                copied = onnx.FunctionProto()
                copied.CopyFrom(proto)
            result.functions.append(Scope(copied, result))
