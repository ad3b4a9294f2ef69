"""What libraries drop of a model when they convert it, put back into the result.

Nodes are matched by the first value that they make, other records by name; only what the result
lacks is put back, and only of what it still has.
"""

from __future__ import annotations

from typing import Any

import onnx

from dld_tui.core.document.document import Document
from dld_tui.core.document.primitives import Splice
from dld_tui.core.document.scope import Scope
from dld_tui.core.document.wiretext import text_of

_HEADER = ("producer_name", "producer_version", "domain", "model_version", "doc_string")
_NAMED = ("input", "output", "value_info", "initializer")


def keep(original: Document, result: Document) -> int:
    """Put back what a library has lost; the result is changed in place.

    Model and graph: documentation, metadata, name, training information, quantization annotations.
    Local functions that are still called. Nodes: name, documentation and metadata. Inputs, outputs,
    values and initializers: documentation and metadata.

    Returns:
        How many nodes got something back.
    """
    old, new = original.model, result.model
    for field in _HEADER:
        if old.HasField(field):
            setattr(new, field, getattr(old, field))
    _add_entries(old, new)
    if not len(new.training_info):
        new.training_info.extend(old.training_info)
    _functions(original, result)
    return sum(_scope(one, two) for one, two in _pairs(original.main, result.main))


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
        two.name = one.name
    if one.HasField("doc_string"):
        two.doc_string = one.doc_string
    _add_entries(one, two)
    _annotations(old, new)
    for list_name in _NAMED:
        index = new.named(list_name)
        for record in old.records[list_name]:
            twin = index.first(text_of(record.name))
            if twin is not None:
                _record(record, twin)
    return sum(_node(old, node) for node in new.nodes)


def _node(old: Scope, node: Any) -> bool:
    before = old.producer(node.outputs[0]) if node.outputs else None
    if before is None or before.op_type != node.op_type:
        return False
    changed = _record(before.proto, node.proto)
    if before.name and not node.name:
        node.scope.leave("node", node)
        node.proto.name = before.proto.name
        node.scope.enter("node", node)
        changed = True
    return changed


def _record(old: Any, new: Any) -> bool:
    changed = _add_entries(old, new)
    if old.HasField("doc_string") and not new.HasField("doc_string"):
        new.doc_string = old.doc_string
        changed = True
    return changed


def _add_entries(old: Any, new: Any) -> bool:
    """Add the metadata that is missing."""
    present = {text_of(entry.key) for entry in new.metadata_props}
    missing = [entry for entry in old.metadata_props if text_of(entry.key) not in present]
    new.metadata_props.extend(missing)
    return bool(missing)


def _annotations(old: Scope, new: Scope) -> None:
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
