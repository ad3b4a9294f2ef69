"""Subgraphs of nodes: new bodies of control-flow operators, copies, additions, and deletions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import field
from typing import TYPE_CHECKING

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import EditError
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.proto_fields import attribute_type, set_text, set_texts
from dld_tui.core.model.document.edit_registry import edit, node_at, strings
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.opset_imports import versions_by_domain
from dld_tui.core.model.document.scope import Scope, unused_name
from dld_tui.core.model.document.serialise import filled, filled_scope
from dld_tui.core.model.document.transactions import SetAttribute, Transaction
from dld_tui.core.model.document.traversal import depends_on
from dld_tui.core.model.edits.attributes import find_attribute
from dld_tui.core.model.edits.renaming import rename_everywhere
from dld_tui.core.model.tensors.value_types import ValueType, type_proto_of
from dld_tui.core.text import quoted
from dld_tui.core.types import SCAN_SINCE

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document


def whole_node(node: Node) -> onnx.NodeProto:
    """Return a copy of a node's message, subgraphs included."""
    with filled(node):
        return deepcopy(node.proto)


def whole_attribute(node: Node, proto: onnx.AttributeProto) -> onnx.AttributeProto:
    """Return a copy of an attribute of a node, subgraphs included."""
    with filled(node):
        return deepcopy(proto)


def whole_graph(scope: Scope) -> onnx.GraphProto:
    """Return a copy of the message of a subgraph, with all that is in it."""
    assert isinstance(scope.proto, onnx.GraphProto)
    with filled_scope(scope):
        return deepcopy(scope.proto)


def whole_function(scope: Scope) -> onnx.FunctionProto:
    """Return a copy of the message of a function, with all that is in it."""
    assert isinstance(scope.proto, onnx.FunctionProto)
    with filled_scope(scope):
        return deepcopy(scope.proto)


def defined_names(scope: Scope) -> list[str]:
    """Return the values that a very scope defines, each once."""
    names = dict.fromkeys(name for name in scope.inputs if name)
    for list_name in ("initializer", "sparse_initializer"):
        names.update(dict.fromkeys(scope.named(list_name)))
    names.update(dict.fromkeys(scope.links.producers))
    return list(names)


class Names:
    """Free names for a copy that goes into a scope.

    Args:
        home: The scope that the copy goes into, or that the owner of the copy is in.
        avoid: Further names that must not be given: all that the copy uses.
    """

    def __init__(self, home: Scope, avoid: Iterable[str] = ()) -> None:
        self._home = home
        self._avoid = set(avoid)
        # Not home.walk(): it looks at every node to give the bodies in order.
        bodies = (body for node in home.control_flow for body in node.subgraphs())
        below = (scope for body in bodies for scope in body.walk())
        self._below = {
            name for scope in below for name in (*defined_names(scope), *scope.links.consumers)
        }

    def is_free(self, name: str) -> bool:
        """Return whether a name means nothing at the place yet."""
        home = self._home
        if not name or name in self._below or name in home.links.consumers:
            return False
        return home.resolve(name) is None

    def take(self, wanted: str) -> str:
        """Return a free name, `wanted` or with a number behind it, and never give it again."""
        name = unused_name(
            wanted or "value", lambda name: name in self._avoid or not self.is_free(name)
        )
        self._avoid.add(name)
        return name

    def keep(self, wanted: str) -> str:
        """Return a name that the copy has itself if it is free at the place, else another."""
        return wanted if self.is_free(wanted) else self.take(wanted)


def all_names(scope: Scope) -> set[str]:
    """Return every value name that occurs in a scope or below it."""
    names = set(scope.references())
    for below in scope.walk():
        names.update(defined_names(below))
    return names


def rename_in_copy(body: Scope, mapping: Mapping[str, str]) -> None:
    """Rename values of a copy, all at once: a new name may be another's old one.

    Args:
        body: The scope that defines the values; not in the document.
        mapping: New names by old ones; ``""`` leaves a value out.
    """
    scratch = Transaction("", {})
    changed = {old: new for old, new in mapping.items() if old != new}
    used = all_names(body)
    passing: dict[str, str] = {}
    for number, old in enumerate(changed):
        name = f"{number}"
        while name in used:
            name += "'"
        passing[old] = name
        used.add(name)
        rename_everywhere(scratch, body, old, name)
    for old, name in passing.items():
        rename_everywhere(scratch, body, name, changed[old])


def free_inner_names(body: Scope, names: Names) -> None:
    """Give values of the subgraphs inside a copy other names where theirs are taken."""
    for scope in body.walk():
        if scope is not body:
            rename_in_copy(scope, {name: names.keep(name) for name in defined_names(scope)})


_ITERATION, _CONDITION = ValueType("int64", ()), ValueType("bool", ())


@dataclass
class Template:
    """What a new body has."""

    inputs: list[tuple[str, ValueType | None]] = field(default_factory=list)
    outputs: list[tuple[str, ValueType | None, int | None]] = field(default_factory=list)
    """Name, type, and which input is passed on unchanged; None where nothing produces it yet."""


def template_for(node: Node) -> Template:
    """Return the inputs and outputs that an operator requires of its body, if it is known."""
    build = {"If": _branch, "Loop": _loop, "Scan": _scan, "SequenceMap": _sequence_map}
    return build.get(node.op_type if not node.domain else "", _empty)(node)


def plain_template(inputs: Sequence[str], outputs: Sequence[str]) -> Template:
    """Return a template with values of no declared type; an output of an input's name is it."""
    places = {name: position for position, name in enumerate(inputs)}
    return Template(
        [(name, None) for name in inputs], [(name, None, places.get(name)) for name in outputs]
    )


def new_body(node: Node, attribute: str, template: Template) -> onnx.GraphProto:
    """Return the graph of a template, with names that are free around the node."""
    names = Names(node.scope)
    graph = onnx.GraphProto()
    set_text(graph, "name", attribute)
    inputs = [names.take(name) for name, _ in template.inputs]
    for name, (_, value_type) in zip(inputs, template.inputs, strict=True):
        declare(graph.input.add(), name, value_type)
    for wanted, value_type, source in template.outputs:
        name = names.take(wanted)
        declare(graph.output.add(), name, value_type)
        if source is not None:
            copy = graph.node.add(op_type="Identity")
            set_text(copy, "name", f"pass_{name}")
            set_texts(copy, "input", [inputs[source]])
            set_texts(copy, "output", [name])
    return graph


def declare(info: onnx.ValueInfoProto, name: str, value_type: ValueType | None) -> None:
    """Fill in the record of a value; a type that is no plain tensor is left out."""
    set_text(info, "name", name)
    proto = None
    if value_type is not None and not value_type.container:
        proto = type_proto_of(value_type)
    if proto is not None:
        info.type.CopyFrom(proto)


def _type(node: Node, names: Sequence[str], index: int) -> ValueType | None:
    name = names[index] if index < len(names) else ""
    return node.scope.value_type(name) if name else None


def _empty(node: Node) -> Template:
    return Template()


def _branch(node: Node) -> Template:
    return Template(
        outputs=[
            (f"{name or 'output'}_branch", _type(node, node.outputs, index), None)
            for index, name in enumerate(node.outputs)
        ]
    )


def _loop(node: Node) -> Template:
    state = range(2, len(node.inputs))
    template = Template([("iteration", _ITERATION), ("condition", _CONDITION)])
    template.outputs.append(("condition_out", _CONDITION, 1))
    for index in state:
        value_type = _loosened(_type(node, node.inputs, index))
        template.inputs.append((f"state_{index - 2}", value_type))
        template.outputs.append((f"state_{index - 2}_out", value_type, index))
    for index in range(len(state), len(node.outputs)):
        value_type = _item(_type(node, node.outputs, index), 0)
        template.outputs.append((f"scan_{index - len(state)}_out", value_type, None))
    return template


def _scan(node: Node) -> Template:
    batched = versions_by_domain(node.scope).get("", SCAN_SINCE) < SCAN_SINCE
    inputs = node.inputs[1:] if batched else node.inputs
    scanned = node.integer("num_scan_inputs", 1)
    states = max(0, len(inputs) - scanned)
    axes = _ints(node, "scan_input_axes")
    template = Template()
    for index in range(states):
        value_type = _loosened(_type(node, inputs, index))
        value_type = _item(value_type, 0) if batched else value_type
        template.inputs.append((f"state_{index}", value_type))
        template.outputs.append((f"state_{index}_out", value_type, index))
    for index in range(states, len(inputs)):
        axis = axes[index - states] if index - states < len(axes) else 0
        value_type = _item(_type(node, inputs, index), axis)
        value_type = _item(value_type, 0) if batched else value_type
        template.inputs.append((f"scan_{index - states}", value_type))
    for index in range(states, len(node.outputs)):
        source = index if index < len(inputs) else None
        value_type = None if source is None else template.inputs[source][1]
        template.outputs.append((f"scan_{index - states}_out", value_type, source))
    return template


def _sequence_map(node: Node) -> Template:
    template = Template()
    for index in range(len(node.inputs)):
        known = _type(node, node.inputs, index)
        if known is not None and known.container == "sequence":
            known = ValueType(known.dtype, known.dims)
        template.inputs.append((f"item_{index}", known))
    for index in range(len(node.outputs)):
        source = index if index < len(node.inputs) else None
        value_type = None if source is None else template.inputs[source][1]
        template.outputs.append((f"item_{index}_out", value_type, source))
    return template


def _loosened(value_type: ValueType | None) -> ValueType | None:
    """Return the type of a state: its rank may stay, its dimensions may change as it runs."""
    if value_type is None or value_type.dims is None or value_type.container:
        return value_type
    return ValueType(value_type.dtype, tuple(None for _ in value_type.dims))


def _item(value_type: ValueType | None, axis: int) -> ValueType | None:
    """Return the type of one item of a scanned value."""
    if value_type is None or value_type.dims is None or not value_type.dims:
        return value_type
    dims = list(value_type.dims)
    if -len(dims) <= axis < len(dims):
        del dims[axis]
    return ValueType(value_type.dtype, tuple(dims), value_type.container)


def _ints(node: Node, name: str) -> list[int]:
    attribute = node.attribute(name)
    return attribute.value if attribute is not None and attribute.kind == "ints" else []


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
        scope: The path of the node's scope.
        node: The node's ref.
        attribute: The attribute that holds the body.
        inputs: Names of its inputs.
        outputs: Names of its outputs; one that is named as an input passes that on.
        many: Make a list of bodies, for an attribute that is not there yet.
        index: Its place in a list of bodies; by default the end.
        replace: Replace the body that the attribute has.
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
        scope: The path of the node's scope.
        node: The node's ref.
        attribute: The attribute that is to hold the copy.
        source: The path of the body to copy.
        many: Make a list of bodies, for an attribute that is not there yet.
        index: Its place in a list of bodies; by default the end.
        replace: Replace the body that the attribute has.
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
        new = deepcopy(old)
        _fill(new, [body], listed=False)
        transaction.do(SetAttribute(node, position, old, new, [body]))
        return
    if attribute_type(old) != _GRAPHS:
        present_text = "a body" if present else "another value"
        raise EditError(
            f"{quoted(attribute)} of {quoted(node.ref)} has {present_text} already",
            hint="Delete it first",
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
    new = deepcopy(old)
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
        captured = target.scope.resolve(name)
        if captured == definition:
            if definition is not None and depends_on(target, name):
                raise EditError(
                    f"the body uses {quoted(name)}, which is computed from {quoted(target.ref)}"
                )
            continue
        if captured is None:
            raise EditError(f"the body uses {quoted(name)}, which is not visible there")
        raise EditError(f"the body uses {quoted(name)}, which is a different value there")
