"""Bodies of nodes: subgraphs added, copied from another node, moved in a list, deleted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import onnx

from dld_tui.core.document.edits.attributes import find_attribute
from dld_tui.core.document.edits.bodies import (
    Names,
    all_names,
    defined_names,
    free_inner_names,
    rename_in_copy,
    whole_graph,
)
from dld_tui.core.document.edits.body_templates import new_body, plain_template, template_for
from dld_tui.core.document.edits.registry import edit, node_at, quoted, strings
from dld_tui.core.document.history import Transaction
from dld_tui.core.document.node import Node, attribute_type
from dld_tui.core.document.primitives import SetAttribute
from dld_tui.core.document.scope import Scope
from dld_tui.core.document.traverse import depends_on
from dld_tui.core.document.wiretext import set_text
from dld_tui.core.errors import EditError

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document

_GRAPH, _GRAPHS = onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS


@edit
def add_subgraph(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    node: str,
    attribute: str,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    many: bool = False,
    index: int | None = None,
    replace: bool = False,
) -> str:
    """Give a node a new body.

    Without `inputs` and `outputs` it gets what the operator wants: a Loop's body the iteration,
    the condition and the state, each passed on as it is, a Scan's its states and items, a branch
    of an If the outputs of the If, which nothing makes yet.

    Args:
        document: The document.
        transaction: The transaction to make the change in.
        scope: The path of the node's scope.
        node: The node's ref.
        attribute: The attribute that holds the body.
        inputs: Names of its inputs.
        outputs: Names of its outputs; one that is named as an input passes that on.
        many: Make a list of bodies, for an attribute that is not there yet.
        index: Its place in a list of bodies; by default the end.
        replace: Put it in the place of the body that the attribute has.
    """
    target = node_at(document, scope, node)
    if inputs is None and outputs is None:
        template = template_for(target)
    else:
        template = plain_template(
            strings(inputs or [], "inputs"), strings(outputs or [], "outputs")
        )
    graph = new_body(target, attribute, template)
    _put(
        transaction,
        target,
        attribute,
        Scope(graph, document),
        many=many,
        index=index,
        replace=replace,
    )
    return f"add body {quoted(attribute)} to {quoted(node)}"


@edit
def copy_subgraph(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    node: str,
    attribute: str,
    source: Sequence[str],
    many: bool = False,
    index: int | None = None,
    replace: bool = False,
) -> str:
    """Give a node a copy of another node's body.

    Outer values that the body uses must mean the same at the new place. Names that are taken there
    are made unique.

    Args:
        document: The document.
        transaction: The transaction to make the change in.
        scope: The path of the node's scope.
        node: The node's ref.
        attribute: The attribute that is to hold the copy.
        source: The path of the body to copy.
        many: Make a list of bodies, for an attribute that is not there yet.
        index: Its place in a list of bodies; by default the end.
        replace: Put it in the place of the body that the attribute has.
    """
    target = node_at(document, scope, node)
    original = document.scope_at(source)
    if original.owner is None:
        raise EditError("that is not the body of a node", where=" › ".join(source) or "main")
    _require_same_captures(original, target)
    body = Scope(whole_graph(original), document, owner=target, attribute=attribute)
    names = Names(target.scope, all_names(body))
    free_inner_names(body, names)
    rename_in_copy(body, {name: names.keep(name) for name in defined_names(body)})
    _put(transaction, target, attribute, body, many=many, index=index, replace=replace)
    return f"copy body {quoted(original.title)} to {quoted(attribute)} of {quoted(node)}"


@edit
def delete_subgraph(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    node: str,
    attribute: str,
    index: int | None = None,
) -> str:
    """Take a body away from a node, with all that is in it.

    Args:
        document: The document.
        transaction: The transaction to make the change in.
        scope: The path of the node's scope.
        node: The node's ref.
        attribute: The attribute that holds the body.
        index: Its place in a list of bodies; None for the only one, or for the whole list.
    """
    target = node_at(document, scope, node)
    position, old = _graph_attribute(target, attribute)
    bodies = target.children.get(attribute, [])
    if index is not None:
        _require_list(old, attribute)
        _require_place(index, len(bodies))
        kept = [body for place, body in enumerate(bodies) if place != index]
        _set_bodies(transaction, target, position, old, kept)
        return f"delete body {quoted(f'{attribute}[{index}]')} of {quoted(node)}"
    transaction.do(SetAttribute(target, position, old, None))
    return f"delete body {quoted(attribute)} of {quoted(node)}"


@edit
def move_subgraph(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    node: str,
    attribute: str,
    index: int,
    to: int,
) -> str:
    """Move a body to another place in a list of bodies.

    Args:
        document: The document.
        transaction: The transaction to make the change in.
        scope: The path of the node's scope.
        node: The node's ref.
        attribute: The attribute that holds the list.
        index: Where the body is.
        to: Where it is to be.
    """
    target = node_at(document, scope, node)
    position, old = _graph_attribute(target, attribute)
    _require_list(old, attribute)
    bodies = list(target.children.get(attribute, []))
    for place in (index, to):
        _require_place(place, len(bodies))
    if index == to:
        return "move nothing"
    bodies.insert(to, bodies.pop(index))
    _set_bodies(transaction, target, position, old, bodies)
    return f"move body {quoted(f'{attribute}[{index}]')} to place {to}"


def _put(
    transaction: Transaction,
    node: Node,
    attribute: str,
    body: Scope,
    *,
    many: bool,
    index: int | None,
    replace: bool,
) -> None:
    """Make a scope that is not in the document yet a body of a node."""
    if not attribute:
        raise EditError("a body needs an attribute to be in")
    body.owner, body.attribute, body.position = node, attribute, None
    position, old = find_attribute(node, attribute)
    present = node.children.get(attribute, [])
    if old is None:
        if index not in (None, 0) or (index == 0 and not many):
            raise EditError(f"{quoted(attribute)} is not a list with a place {index}")
        new = onnx.AttributeProto(type=_GRAPHS if many else _GRAPH)
        set_text(new, "name", attribute)
        _fill(new, [body], listed=many)
        transaction.do(SetAttribute(node, position, None, new, [body]))
        return
    if attribute_type(old) == _GRAPH and present and replace and index is None:
        new = onnx.AttributeProto()
        new.CopyFrom(old)
        _fill(new, [body], listed=False)
        transaction.do(SetAttribute(node, position, old, new, [body]))
        return
    if attribute_type(old) != _GRAPHS:
        what = "a body" if present else "another value"
        raise EditError(
            f"{quoted(attribute)} of {quoted(node.ref)} has {what} already", hint="Delete it first"
        )
    place = len(present) if index is None else index
    _require_place(place, len(present) + 1)
    _set_bodies(transaction, node, position, old, [*present[:place], body, *present[place:]])


def _set_bodies(
    transaction: Transaction,
    node: Node,
    position: int,
    old: onnx.AttributeProto,
    bodies: list[Scope],
) -> None:
    new = onnx.AttributeProto()
    new.CopyFrom(old)
    new.ClearField("graphs")
    _fill(new, bodies, listed=True)
    transaction.do(SetAttribute(node, position, old, new, bodies))


def _fill(proto: onnx.AttributeProto, bodies: list[Scope], *, listed: bool) -> None:
    """Put the headers of scopes into an attribute; the scopes hold all else."""
    for body in bodies:
        assert isinstance(body.proto, onnx.GraphProto)
        if listed:
            proto.graphs.add().CopyFrom(body.proto)
        else:
            proto.g.CopyFrom(body.proto)
            proto.g.SetInParent()


def _graph_attribute(node: Node, attribute: str) -> tuple[int, onnx.AttributeProto]:
    position, old = find_attribute(node, attribute)
    if old is None or attribute not in node.children:
        raise EditError(f"there is no body {quoted(attribute)}", where=quoted(node.ref))
    return position, old


def _require_list(proto: onnx.AttributeProto, attribute: str) -> None:
    if attribute_type(proto) != _GRAPHS:
        raise EditError(f"{quoted(attribute)} is not a list of bodies")


def _require_place(index: object, count: int) -> None:
    if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < count:
        raise EditError(f"there is no place {index} in a list of {count}")


def _require_same_captures(body: Scope, target: Node) -> None:
    """Refuse a place where the outer values that a body uses are not the same ones."""
    for name, definition in body.captured().items():
        found = target.scope.resolve(name)
        if found == definition:
            if definition is not None and depends_on(target, name):
                raise EditError(
                    f"the body uses {quoted(name)}, which is computed from {quoted(target.ref)}"
                )
            continue
        if found is None:
            raise EditError(f"the body uses {quoted(name)}, which is not visible there")
        raise EditError(f"the body uses {quoted(name)}, which is another value there")
