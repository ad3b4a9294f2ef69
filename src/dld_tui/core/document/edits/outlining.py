"""Making a local function of nodes, which one instance of it then replaces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import onnx

from dld_tui.core import fmt
from dld_tui.core.document.calls import FunctionKey, shown_key
from dld_tui.core.document.edits.bodies import whole_node
from dld_tui.core.document.edits.deletion import splice_out
from dld_tui.core.document.edits.functions import (
    NEW_DOMAIN,
    enter_function,
    new_function,
    require_new_function,
)
from dld_tui.core.document.edits.nodes import boundary, in_order, new_proto, require_convex
from dld_tui.core.document.edits.opsets import ensure_import, imports_of
from dld_tui.core.document.edits.registry import edit, node_at, quoted, strings
from dld_tui.core.document.history import Transaction
from dld_tui.core.document.node import Node, attribute_type
from dld_tui.core.document.primitives import Splice
from dld_tui.core.document.scope import Scope
from dld_tui.core.document.traverse import sources
from dld_tui.core.document.wiretext import set_text, set_texts, text_of
from dld_tui.core.domains import plain_domain
from dld_tui.core.errors import EditError

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
        document: The document.
        transaction: The transaction to make the change in.
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
    ordered = in_order(home, targets)
    taken, made = boundary(home, ordered)
    require_convex(home, ordered, made)
    if not made:
        raise EditError("nothing uses what these nodes make", hint="Select the nodes that use it")
    weights = [value for value in taken if constants and _can_be_constant(home, value)]
    taken = [value for value in taken if value not in weights]

    imports = _imports_used(home, ordered)
    if weights:
        imports.setdefault("", imports_of(home).get("", 1))
    proto = new_function(key, imports)
    set_texts(proto, "input", taken)
    set_texts(proto, "output", made)
    proto.node.extend(_constant(home, value) for value in weights)
    proto.node.extend(whole_node(node) for node in ordered)
    passed = _references(ordered)
    set_texts(proto, "attribute", passed)

    call = new_proto(home, name, key[0], "", taken, made)
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
    node = onnx.NodeProto(op_type="Constant")
    set_text(node, "name", f"Constant_{value}")
    set_texts(node, "output", [value])
    attribute = node.attribute.add(name="value", type=onnx.AttributeProto.TENSOR)
    attribute.t.CopyFrom(tensor.proto)
    attribute.t.ClearField("name")
    return node


def _imports_used(home: Scope, nodes: Sequence[Node]) -> dict[str, int]:
    """Return the imports that the nodes and those in their bodies need."""
    imports = imports_of(home)
    used = {node.domain for node in _with_bodies(nodes)}
    return {domain: version for domain, version in imports.items() if domain in used}


def _with_bodies(nodes: Sequence[Node]) -> list[Node]:
    found = []
    for node in nodes:
        found.append(node)
        for body in node.subgraphs():
            found += [inner for scope in body.walk() for inner in scope.nodes]
    return found


def _references(nodes: Sequence[Node]) -> dict[str, int]:
    """Return the attributes of the enclosing function that nodes refer to, with their types."""
    return {
        text_of(attribute.ref_attr_name): attribute_type(attribute)
        for node in _with_bodies(nodes)
        for attribute in node.proto.attribute
        if attribute.ref_attr_name
    }


def _replace(transaction: Transaction, home: Scope, nodes: list[Node], call: Node) -> None:
    """Put a call in the place of nodes; nodes between them that use theirs come after it."""
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
    """Take out what was said of values that are now inside the function, and unused weights."""
    for value in weights:
        definition = home.resolve(value)
        if definition is None or definition.scope is not home:
            continue  # one of a scope around it stays where it is
        if not home.users(value) and value not in home.outputs:
            for record in list(home.named("initializer").all(value)):
                splice_out(transaction, home, "initializer", record)
    gone = [value for node in nodes for value in node.outputs] + list(weights)
    for value in gone:
        if not value or home.definition(value) is not None:
            continue
        for list_name in ("value_info", "quantization_annotation"):
            if list_name in home.records:
                for record in list(home.named(list_name).all(value)):
                    splice_out(transaction, home, list_name, record)


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
