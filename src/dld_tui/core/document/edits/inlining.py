"""Replacing instances of local functions by the nodes of their bodies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import onnx

from dld_tui.core import fmt
from dld_tui.core.document.calls import (
    call_of,
    calls_itself,
    declared_attributes,
    function_of,
    key_of,
    shown_key,
)
from dld_tui.core.document.edits.batch import nodes_at
from dld_tui.core.document.edits.bodies import (
    Names,
    all_names,
    defined_names,
    free_inner_names,
    rename_in_copy,
    whole_attribute,
    whole_function,
    whole_node,
)
from dld_tui.core.document.edits.opsets import ensure_import, imports_of
from dld_tui.core.document.edits.registry import edit, quoted
from dld_tui.core.document.history import Transaction
from dld_tui.core.document.node import Node
from dld_tui.core.document.primitives import Splice
from dld_tui.core.document.scope import Scope
from dld_tui.core.document.wiretext import set_text, set_texts, text_of
from dld_tui.core.errors import EditError
from dld_tui.core.operators.compatibility import same_meaning
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document


@edit
def inline_function(
    document: Document,
    transaction: Transaction,
    *,
    nodes: Sequence[Sequence[JSON]],
) -> str:
    """Replace instances of local functions by the nodes of the functions.

    The names of values and nodes are made unique, attributes that refer to those of the function
    get the instance's value or the default. Calls of other functions in the body stay calls.

    Args:
        document: The document.
        transaction: The transaction to make the change in.
        nodes: The instances, ``[[SCOPE, NODE], …]``: the path of a scope and a ref in it.
    """
    targets = dict.fromkeys(nodes_at(document, nodes))
    made, first = 0, next(iter(targets)).ref
    for node in targets:
        function = function_of(node)
        if function is None:
            raise EditError(f"{quoted(node.ref)} calls no local function")
        made += _inline(transaction, node, function)
    count = f"by {fmt.plural(made, 'node')}"
    what = quoted(first) if len(targets) == 1 else f"{len(targets)} instances"
    return f"inline {what} {count}"


def _inline(transaction: Transaction, call: Node, function: Scope) -> int:
    """Replace one instance; return by how many nodes."""
    home = call.scope
    shown = quoted(shown_key(key_of(function)))
    if calls_itself(function):
        raise EditError(f"{shown} calls itself: inlining it would never end")
    inputs, outputs = call.inputs, call.outputs
    for side, actual, formal in (("input", inputs, function.inputs),
                                 ("output", outputs, function.outputs)):  # fmt: skip
        if len(actual) > len(formal):
            raise EditError(
                f"{quoted(call.ref)} has {fmt.plural(len(actual), side)}, {shown} only "
                f"{len(formal)}"
            )
    _require_same_operators(home, function)
    body = Scope(whole_function(function), home.document)
    copies = _fit(body, call)
    protos = [whole_node(node) for node in body.nodes]
    _give_values(protos, call, declared_attributes(function))
    _name_nodes(home, protos, call)
    imports = imports_of(function)
    for domain in {node.domain for scope in body.walk() for node in scope.nodes}:
        ensure_import(transaction, home, domain, imports.get(domain, 1))
    if copies:
        ensure_import(transaction, home, "", imports.get("", 1))
    made = [home.new_node(proto) for proto in (*protos, *copies)]
    transaction.do(Splice(home, "node", home.index_of(call), [call], made))
    _declare_types(transaction, home, body)
    return len(made)


def _declare_types(transaction: Transaction, home: Scope, body: Scope) -> None:
    """Bring what the function says of the types of its values, in so far as it holds here."""
    infos = []
    for record in body.records["value_info"]:
        name = text_of(record.name)
        if home.producer(name) is None or any(
            name in home.named(field) for field in ("value_info", "output") if field in home.records
        ):
            continue
        for dim in record.type.tensor_type.shape.dim:
            dim.ClearField("dim_param")  # the same name may be another size in another call
        infos.append(record)
    if infos:
        transaction.do(Splice(home, "value_info", len(home.records["value_info"]), [], infos))


def _fit(body: Scope, call: Node) -> list[onnx.NodeProto]:
    """Rename the values of a copied body so that it fits the place of a call.

    Returns:
        Identity nodes for outputs that are inputs, or another output, of the function.
    """
    home, inputs, outputs = call.scope, call.inputs, call.outputs
    names = Names(home, {*all_names(body), *inputs, *outputs})
    free_inner_names(body, names)
    mapping: dict[str, str] = {}
    for index, formal in enumerate(body.inputs):
        mapping[formal] = inputs[index] if index < len(inputs) else ""
    copies: list[onnx.NodeProto] = []
    for index, formal in enumerate(body.outputs):
        actual = outputs[index] if index < len(outputs) else ""
        if formal not in mapping:
            if actual and body.producer(formal) is None:
                raise EditError(f"the function makes no value for its output {quoted(formal)}")
            mapping[formal] = actual or names.take(formal)
        elif actual:
            if not mapping[formal]:
                raise EditError(f"the output {quoted(actual)} is an input that the call leaves out")
            copies.append(_identity(mapping[formal], actual))
    for formal, actual in mapping.items():
        left_out = [s for s in body.reach(formal) if s is not body and formal in s.outputs]
        if not actual and left_out:
            raise EditError(
                f"a body inside the function gives {quoted(formal)}, which the call leaves out"
            )
    for name in defined_names(body):
        if name not in mapping:
            mapping[name] = names.keep(name)
    rename_in_copy(body, mapping)
    return copies


def _identity(source: str, target: str) -> onnx.NodeProto:
    proto = onnx.NodeProto(op_type="Identity")
    set_text(proto, "name", f"pass_{target}")
    set_texts(proto, "input", [source])
    set_texts(proto, "output", [target])
    return proto


def _give_values(
    protos: Sequence[onnx.NodeProto],
    call: Node,
    declared: dict[str, onnx.AttributeProto | None],
) -> None:
    """Put the values of a call's attributes, or defaults, where the body refers to them."""
    values: dict[str, onnx.AttributeProto] = {
        name: default for name, default in declared.items() if default is not None
    }
    for attribute in call.proto.attribute:
        values[text_of(attribute.name)] = whole_attribute(call, attribute)
    for proto in protos:
        _give_to(proto, values)


def _give_to(proto: onnx.NodeProto, values: dict[str, onnx.AttributeProto]) -> None:
    kept = []
    for attribute in proto.attribute:
        for graph in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
            for inner in graph.node:
                _give_to(inner, values)
        if not attribute.ref_attr_name:
            kept.append(attribute)
            continue
        value = values.get(text_of(attribute.ref_attr_name))
        if value is None:
            continue  # left out by the call, so the operator's default holds
        given = onnx.AttributeProto()
        given.CopyFrom(value)
        set_text(given, "name", text_of(attribute.name))
        given.ClearField("doc_string")
        kept.append(given)
    copies = onnx.NodeProto()
    copies.attribute.extend(kept)
    del proto.attribute[:]
    proto.attribute.extend(copies.attribute)


def _name_nodes(home: Scope, protos: Sequence[onnx.NodeProto], call: Node) -> None:
    """Give nodes names that are free in a scope; the one that goes leaves its name free."""
    given: set[str] = set()
    for proto in protos:
        name = text_of(proto.name)
        if not name:
            continue
        free, number = name, 0
        while free in given or any(node is not call for node in home.nodes_named(free)):
            number += 1
            free = f"{name}_{number}"
        given.add(free)
        if free != name:
            set_text(proto, "name", free)


def _require_same_operators(home: Scope, function: Scope) -> None:
    """Refuse a function whose operators mean something else in the opsets of the place."""
    inner, outer = imports_of(function), imports_of(home)
    local = {key_of(other) for other in home.document.functions}
    for scope in function.walk():
        for node in scope.nodes:
            domain = node.domain
            there, here = inner.get(domain), outer.get(domain)
            if there is None or here is None or call_of(node) in local:
                continue
            if not same_meaning(node.op_type, domain, there, here):
                raise EditError(
                    f"{quoted(node.op_type)} is not the same in opset {there}, which the function "
                    f"imports, and in opset {here}",
                    hint="Convert one of them first",
                )
