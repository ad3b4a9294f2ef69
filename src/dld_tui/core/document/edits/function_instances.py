"""Making a local function of nodes, and replacing its instances by the nodes of its body."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.document.edits.functions import (
    NEW_DOMAIN,
    enter_function,
    new_function,
    require_new_function,
)
from dld_tui.core.document.edits.imports import ensure_import, versions_by_domain
from dld_tui.core.document.edits.nodes import boundary, file_order, new_proto, require_convex
from dld_tui.core.document.edits.registry import edit, node_at, nodes_at, strings
from dld_tui.core.document.edits.subgraphs import (
    Names,
    all_names,
    defined_names,
    free_inner_names,
    rename_in_copy,
    whole_attribute,
    whole_function,
    whole_node,
)
from dld_tui.core.document.local_functions import (
    FunctionKey,
    call_of,
    calls_itself,
    declared_attributes,
    function_of,
    key_of,
    shown_key,
)
from dld_tui.core.document.node import Node, attribute_type, constant_node, node_proto
from dld_tui.core.document.scope import Scope, unused_name
from dld_tui.core.document.transactions import Splice, Transaction
from dld_tui.core.document.traversal import sources
from dld_tui.core.errors import EditError
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.proto_fields import set_text, set_texts, text_of
from dld_tui.core.operators.registry import same_meaning
from dld_tui.core.text import quoted
from dld_tui.core.types import JSON, plain_domain

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document


@edit
def make_function(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    nodes: Sequence[str],
    name: str,
    domain: str = NEW_DOMAIN,
    constants: bool = False,
) -> str:
    """Make a local function of nodes and put one instance of it in their place.

    Its inputs are the values that the nodes take from outside, also those that their bodies
    capture, in the order of their first use; its outputs the values that others use. Attributes
    that refer to those of an enclosing function are handed on.

    Args:
        scope: The path of the nodes' scope.
        nodes: Refs of the nodes.
        name: The operator that the function defines.
        domain: Its operator set.
        constants: Put initializers that the nodes use into the function, as Constant nodes, rather
            than making them inputs; those in external files and sparse ones stay inputs.
    """
    targets = [node_at(document, scope, ref) for ref in strings(nodes, "nodes")]
    if not targets:
        raise EditError("there are no nodes to make a function of")
    key = (plain_domain(domain), name, "")
    require_new_function(document, key, unused=True)
    home = targets[0].scope
    ordered = file_order(home, targets)
    taken, outputs = boundary(home, ordered)
    require_convex(home, ordered, outputs)
    if not outputs:
        raise EditError("no output of these nodes is used", hint="Select the nodes that use it")
    weights = [value for value in taken if constants and _can_be_constant(home, value)]
    taken = [value for value in taken if value not in weights]

    imports = _imports_used(home, ordered)
    if weights:
        imports.setdefault("", versions_by_domain(home).get("", 1))
    proto = new_function(key, imports)
    set_texts(proto, "input", taken)
    set_texts(proto, "output", outputs)
    proto.node.extend(_constant(home, value) for value in weights)
    proto.node.extend(whole_node(node) for node in ordered)
    passed = _references(ordered)
    set_texts(proto, "attribute", passed)

    call = new_proto(home, name, key[0], "", taken, outputs)
    for attribute, number in passed.items():
        entry = call.attribute.add(type=number)
        set_text(entry, "name", attribute)
        set_text(entry, "ref_attr_name", attribute)
    enter_function(document, transaction, proto, key)
    ensure_import(transaction, home, key[0], 1)
    _replace(transaction, home, ordered, home.new_node(call))
    _remove_leftovers(transaction, home, ordered, weights)
    return f"make function {quoted(shown_key(key))} of {fmt.plural(len(ordered), 'node')}"


def _can_be_constant(scope: Scope, value: str) -> bool:
    definition = scope.resolve(value)
    if definition is None or definition.kind != "initializer":
        return False
    if value in definition.scope.inputs:
        return False  # a caller of the model may give another value
    tensor = definition.scope.initializer(value)
    return tensor is not None and not tensor.is_external


def _constant(scope: Scope, value: str) -> onnx.NodeProto:
    definition = scope.resolve(value)
    assert definition is not None
    tensor = definition.scope.initializer(value)
    assert tensor is not None
    return constant_node(value, tensor.proto, f"Constant_{value}")


def _imports_used(home: Scope, nodes: Sequence[Node]) -> dict[str, int]:
    """Return the imports that the nodes and those in their bodies need."""
    imports = versions_by_domain(home)
    used = {node.domain for node in _with_bodies(nodes)}
    return {domain: version for domain, version in imports.items() if domain in used}


def _with_bodies(nodes: Sequence[Node]) -> list[Node]:
    all_nodes = []
    for node in nodes:
        all_nodes.append(node)
        for body in node.subgraphs():
            all_nodes += [inner for scope in body.walk() for inner in scope.nodes]
    return all_nodes


def _references(nodes: Sequence[Node]) -> dict[str, int]:
    """Return the attributes of the enclosing function that nodes refer to, with their types."""
    return {
        text_of(attribute.ref_attr_name): attribute_type(attribute)
        for node in _with_bodies(nodes)
        for attribute in node.proto.attribute
        if attribute.ref_attr_name
    }


def _replace(transaction: Transaction, home: Scope, nodes: list[Node], call: Node) -> None:
    """Replace nodes by a call; nodes between them that use their outputs move behind it."""
    first, last = home.index_of(nodes[0]), home.index_of(nodes[-1])
    span = home.nodes[first : last + 1]
    inside = set(nodes)
    after: dict[Node, None] = {}
    before: list[Node] = []
    for node in span:
        if node in inside:
            continue
        if any(source in inside or source in after for source in sources(home, node)):
            after[node] = None
        else:
            before.append(node)
    transaction.do(Splice(home, "node", first, span, [*before, call, *after]))


def _remove_leftovers(
    transaction: Transaction, home: Scope, nodes: Sequence[Node], weights: Sequence[str]
) -> None:
    """Remove the records of values that are now inside the function, and unused weights."""
    for value in weights:
        definition = home.resolve(value)
        if definition is None or definition.scope is not home:
            continue  # one of a scope around it stays where it is
        if not home.users(value) and value not in home.outputs:
            transaction.drop(home, "initializer", value)
    gone = [value for node in nodes for value in node.outputs] + list(weights)
    for value in gone:
        if not value or home.definition(value) is not None:
            continue
        for list_name in ("value_info", "quantization_annotation"):
            if list_name in home.records:
                transaction.drop(home, list_name, value)


def unused_key(document: Document, wanted: FunctionKey) -> FunctionKey:
    """Return the key of a function that can be made: `wanted`, or with a number at its name."""
    domain, name, overload = wanted
    number = 0
    while True:
        key = (domain, name if not number else f"{name}_{number}", overload)
        try:
            require_new_function(document, key, unused=True)
        except EditError:
            if not domain or not name:
                raise
            number += 1
        else:
            return key


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
        nodes: The instances, ``[[SCOPE, NODE], …]``: the path of a scope and a ref in it.
    """
    targets = dict.fromkeys(nodes_at(document, nodes))
    inlined, first = 0, next(iter(targets)).ref
    for node in targets:
        function = function_of(node)
        if function is None:
            raise EditError(f"{quoted(node.ref)} calls no local function")
        inlined += _inline(transaction, node, function)
    count = f"by {fmt.plural(inlined, 'node')}"
    subject_text = quoted(first) if len(targets) == 1 else fmt.plural(len(targets), "instance")
    return f"inline {subject_text} {count}"


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
    imports = versions_by_domain(function)
    for domain in {node.domain for scope in body.walk() for node in scope.nodes}:
        ensure_import(transaction, home, domain, imports.get(domain, 1))
    if copies:
        ensure_import(transaction, home, "", imports.get("", 1))
    new_nodes = [home.new_node(proto) for proto in (*protos, *copies)]
    transaction.replace(home, "node", call, *new_nodes)
    _declare_types(transaction, home, body)
    return len(new_nodes)


def _declare_types(transaction: Transaction, home: Scope, body: Scope) -> None:
    """Copy the types that the function declares for its values, where they hold here."""
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
        transaction.append(home, "value_info", *infos)


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
                raise EditError(f"the function has no value for its output {quoted(formal)}")
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
    return node_proto("Identity", [source], [target], f"pass_{target}")


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
        given = deepcopy(value)
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
        free = unused_name(
            name,
            lambda name: name in given or any(node is not call for node in home.nodes_named(name)),
        )
        given.add(free)
        if free != name:
            set_text(proto, "name", free)


def _require_same_operators(home: Scope, function: Scope) -> None:
    """Refuse a function whose operators mean something else in the opsets of the place."""
    inner, outer = versions_by_domain(function), versions_by_domain(home)
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
