"""Adding and deleting nodes, on links too, and adding casts around nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dld_tui.core import fmt
from dld_tui.core.errors import EditError
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.proto_fields import get_text
from dld_tui.core.model.document.edit_registry import (
    edit,
    node_at,
    nodes_at,
    strings,
    subject,
    targets_of,
)
from dld_tui.core.model.document.metadata import PRECISIONS
from dld_tui.core.model.document.node import Node, node_proto
from dld_tui.core.model.document.operator_matching import schema_in
from dld_tui.core.model.document.opset_imports import (
    ensure_import,
    ensure_ir,
    ensure_known_import,
    imports_of,
)
from dld_tui.core.model.document.scope import Scope, unused_name
from dld_tui.core.model.document.transactions import (
    SetAttribute,
    SetLinks,
    SetText,
    Splice,
    Transaction,
)
from dld_tui.core.model.document.traversal import (
    Places,
    captures,
    depends_on,
    is_ordered,
    outer_node,
    places,
)
from dld_tui.core.model.edits.attributes import add_attributes, find_attribute, set_on_node
from dld_tui.core.model.edits.casting import Cast, CastPlan, plan_casts
from dld_tui.core.model.edits.initializers import add_initializer
from dld_tui.core.model.edits.links import (
    MOST_LINKS,
    move_behind,
    reconnect_users,
    replace_uses,
    with_item,
)
from dld_tui.core.model.edits.renaming import (
    feeds_output,
    free_name,
    rename_before_output,
    require_free,
    require_visible,
)
from dld_tui.core.model.edits.subgraphs import add_subgraph
from dld_tui.core.model.operators.registry import least_ir_version
from dld_tui.core.model.tensors.value_types import dtype_number
from dld_tui.core.text import quoted
from dld_tui.core.types import JSON, plain_domain

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document

_CASTS_BY_NUMBER = 6
"""The opset from which on Cast has the number of a type; before, its name."""


@edit
def add_node(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    op_type: str,
    domain: str = "",
    name: str = "",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    attributes: Mapping[str, JSON] | None = None,
    index: int | None = None,
) -> str:
    """Add a node.

    Args:
        scope: The path of the scope.
        domain: Its operator set, ``""`` for ai.onnx.
        name: The node's name; one is made up when it is empty.
        inputs: Values, ``""`` where one is left out.
        outputs: Names of the values that it makes; must be free. One is made up when empty.
        attributes: ``{NAME: {"kind": KIND, "value": VALUE}}`` as in ``set_attribute``.
        index: Its place in the list; by default after the last node that makes an input. Around a
            body that then uses a value that comes later, the node with the body moves behind that.
    """
    home = document.scope_at(scope)
    for value in strings(inputs, "inputs"):
        if value:
            require_visible(home, value)
    output_names = strings(outputs, "outputs") or [free_name(home, f"{op_type}_output")]
    for value in output_names:
        if value:
            require_free(home, value)
    named = [*filter(None, output_names)]
    if len(set(named)) != len(named):
        raise EditError("two outputs have the same name")
    proto = new_proto(home, op_type, domain, name, inputs, output_names)
    schema = schema_in(op_type, domain, home)
    add_attributes(proto, attributes or {}, schema)
    place = place_after(home, inputs) if index is None else index
    if not 0 <= place <= len(home.nodes):
        raise EditError(f"there is no place {place} among {len(home.nodes)} nodes")
    ensure_known_import(transaction, home, domain)
    node = home.new_node(proto)
    transaction.do(Splice(home, "node", place, [], [node]))
    for value in inputs if index is None and home.parent is not None else ():
        if value and home.definition(value) is None:
            if depends_on(node, value):
                raise EditError(
                    f"{quoted(value)} comes from a node that this body belongs to",
                    hint="Choose a value that is there before",
                )
            move_behind(transaction, [node], value)
    return f"add {quoted(op_type)}"


@edit
def insert_node(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    value: str,
    op_type: str,
    domain: str = "",
    name: str = "",
    attributes: Mapping[str, JSON] | None = None,
    users: Sequence[Sequence[JSON]] | None = None,
    opset: int | None = None,
) -> str:
    """Insert a node with one input and one output behind a value.

    Args:
        scope: The path of the scope that defines the value.
        value: The value that goes in; its users get the node's output instead.
        domain: Its operator set.
        name: The node's name; one is made up when it is empty.
        attributes: As in ``add_node``.
        users: ``[[NODE, INPUT INDEX], …]`` of the scope to give the output to; None for all users
            that there are, in subgraphs too, and for an output of the scope, which keeps its
            name.
        opset: The version to import where the operator set is not imported yet.
    """
    home = document.scope_at(scope)
    if opset is not None:
        ensure_import(transaction, home, domain, opset)
    require_visible(home, value)
    uses = [(use.node, use.index) for use in home.users(value)]
    if users is not None:
        uses = [use_at(document, scope, use, value) for use in users]
    shown = quoted(value)
    if users is None and feeds_output(home, value):
        output, value = value, rename_before_output(transaction, home, value)
    else:
        output = free_name(home, f"{value}_{op_type}")
    add_node.run(
        document, transaction, scope=scope, op_type=op_type, domain=domain, name=name,
        inputs=[value], outputs=[output], attributes=attributes,
    )  # fmt: skip
    for node, position in uses:
        links = with_item(node.inputs, position, output)
        transaction.do(SetLinks(node.scope, node, "input", links))
    return f"insert {quoted(op_type)} behind {shown}"


@edit
def cast_input(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    node: str,
    index: int,
    dtype: str,
) -> str:
    """Put a Cast before one input of a node.

    Args:
        scope: The path of the node's scope.
        index: Which of its inputs.
        dtype: The element type that it gets.
    """
    target = node_at(document, scope, node)
    number, home = dtype_number(dtype), target.scope
    source = target.inputs[index] if 0 <= index < len(target.inputs) else ""
    if number is None:
        raise EditError(f"there is no element type {quoted(dtype)}")
    if not source:
        raise EditError(f"{quoted(node)} has no value at input {index}")
    ensure_known_import(transaction, home, "")
    cast = new_cast(home, source, free_name(home, f"{source}_{dtype}"), number)
    transaction.do(Splice(home, "node", home.index_of(target), [], [cast]))
    links = with_item(target.inputs, index, cast.outputs[0])
    transaction.do(SetLinks(home, target, "input", links))
    return f"cast input {index} of {quoted(node)} to {dtype}"


@edit
def set_operator(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    nodes: Sequence[str],
    op_type: str,
    domain: str = "",
    attributes: str = "known",
    values: Mapping[str, JSON] | None = None,
) -> str:
    """Let nodes call another operator; names, inputs and outputs stay.

    Args:
        scope: The path of the scope.
        op_type: The operator.
        domain: Its operator set, ``""`` for ai.onnx.
        attributes: Which stay: those that the operator is ``known`` to have (all of one that is not
            known here), ``all`` or ``none``.
    """
    if attributes not in KEPT_ATTRIBUTES:
        words = ", ".join(KEPT_ATTRIBUTES)
        raise EditError(f"attributes is {quoted(attributes)}", hint=f"It takes {words}")
    if not op_type:
        raise EditError("a node needs an operator")
    targets = targets_of(document, scope, nodes, "change")
    home, domain = targets[0].scope, plain_domain(domain)
    ensure_known_import(transaction, home, domain)
    schema = schema_in(op_type, domain, home)
    for node in targets:
        for field, new in (("op_type", op_type), ("domain", domain)):
            old = get_text(node.proto, field)
            if (old or "") != new:
                text = SetText(home, "node", node, node.proto, field, old, new or None)
                transaction.do(text)
        for name in [attribute.name for attribute in node.attributes()]:
            is_known = schema is None or schema.attribute(name) is not None
            if attributes == "none" or (attributes == "known" and not is_known):
                position, old_attribute = find_attribute(node, name)
                transaction.do(SetAttribute(node, position, old_attribute, None))
        set_on_node(document, transaction, node, values or {})
    return f"change {subject([node.ref for node in targets], 'node')} to {quoted(op_type)}"


KEPT_ATTRIBUTES = ("known", "all", "none")
"""Which attributes nodes keep that get another operator."""


def new_proto(
    scope: Scope,
    op_type: str,
    domain: str,
    name: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
) -> onnx.NodeProto:
    """Return the message of a new node with a name that is free in a scope.

    Raises:
        EditError: The name is taken, or there is no operator.
    """
    if not op_type:
        raise EditError("a node needs an operator")
    if name and scope.nodes_named(name):
        raise EditError(f"another node is already called {quoted(name)}")
    return node_proto(op_type, inputs, outputs, name or free_node_name(scope, op_type), domain)


def free_node_name(scope: Scope, wanted: str) -> str:
    """Return a node name that is free in a scope: `wanted`, or with a number behind it."""
    return unused_name(wanted, lambda name: bool(scope.nodes_named(name)))


def new_cast(scope: Scope, source: str, target: str, to: int) -> Node:
    """Return a Cast that is not in its scope yet, with a name that is free there."""
    name = free_node_name(scope, f"{target}_cast")
    by_name = imports_of(scope).get("", _CASTS_BY_NUMBER) < _CASTS_BY_NUMBER
    kind = onnx.TensorProto.DataType.Name(to) if by_name else to
    return scope.new_node(node_proto("Cast", [source], [target], name, to=kind))


def place_after(scope: Scope, inputs: Sequence[str]) -> int:
    """Return the first place in a scope where all inputs have been made."""
    producers = [node for value in inputs for node in scope.links.producers.get(value, ())]
    return max((scope.index_of(node) + 1 for node in producers), default=0)


def file_order(scope: Scope, nodes: Sequence[Node]) -> list[Node]:
    """Return nodes of one scope in the order of the file, each once."""
    place = places(scope, list(nodes))
    return sorted(place, key=place.__getitem__)


def boundary(scope: Scope, nodes: Sequence[Node]) -> tuple[list[str], list[str]]:
    """Return the values that nodes take from outside and those that others use of theirs."""
    inside = set(nodes)
    produced = [name for node in nodes for name in node.outputs if name]
    used: dict[str, None] = {}
    for node in nodes:
        names: list[str] = list(node.inputs)
        for child in node.subgraphs():
            names += child.captured()
        used.update(dict.fromkeys(name for name in names if name))
    own = set(produced)
    inputs = [name for name in used if name not in own]
    outputs = set(scope.outputs)
    needed = [
        name
        for name in produced
        if name in outputs
        or any(outer_node(scope, use.node) not in inside for use in scope.users(name))
    ]
    return inputs, needed


def require_convex(scope: Scope, nodes: Sequence[Node], outputs: Sequence[str]) -> None:
    """Refuse a selection that a path leaves and enters again: one node would be on a cycle."""
    inside = set(nodes)
    # What comes after the last of them in a graph that is in order does not lead back to them.
    last = max(places(scope, list(nodes)).values()) if is_ordered(scope) else None
    capturers, place = captures(scope), Places(scope)

    def users(values: Sequence[str]) -> list[Node]:
        reached_users: dict[Node, None] = {}
        for value in values:
            if value:
                reached_users.update(dict.fromkeys(scope.links.consumers.get(value, ())))
                reached_users.update(dict.fromkeys(capturers.get(value, ())))
        return [node for node in reached_users if last is None or place(node) <= last]

    reached: set[Node] = set()
    waiting = users(outputs)
    while waiting:
        node = waiting.pop()
        if node in inside or node in reached:
            continue
        reached.add(node)
        following = users(node.outputs)
        if not inside.isdisjoint(following):
            raise EditError(
                f"{quoted(node.ref)} is between the nodes: it uses one and feeds another",
                hint="Select it too",
            )
        waiting += following


def use_at(document: Document, scope: Sequence[str], use: Any, value: str) -> tuple[Node, int]:
    """Return the node and the input that ``[NODE, INPUT INDEX]`` names; it must use the value.

    Raises:
        EditError: It does not.
    """
    if len(use) != 2:
        raise EditError("a use is a node and the index of an input")
    ref, position = use
    node = node_at(document, scope, str(ref))
    if not isinstance(position, int) or node.inputs[position : position + 1] != (value,):
        raise EditError(f"input {position} of {quoted(node.ref)} is not {quoted(value)}")
    return node, position


@edit
def add_operator(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    op_type: str,
    domain: str = "",
    name: str = "",
    inputs: Sequence[str] = (),
    outputs: int = 1,
    attributes: Mapping[str, JSON] | None = None,
    bodies: Sequence[str] = (),
    behind: str = "",
    users: Sequence[Sequence[JSON]] | None = None,
    opset: int | None = None,
    initializers: Sequence[Mapping[str, JSON]] = (),
) -> str:
    """Add a node with names for its outputs, with bodies, and with the users of another value.

    Args:
        scope: The path of the scope.
        domain: Its operator set, ``""`` for ai.onnx.
        name: The node's name; one is made up when it is empty.
        inputs: Values, ``""`` where one is left out.
        outputs: How many values it makes.
        attributes: As in ``add_node``.
        bodies: Graph attributes that get the body that the operator wants; see ``add_subgraph``.
        behind: A value whose users get the first output instead, in subgraphs too; those that the
            new node depends on keep it. Where it is an output of the scope, the new node makes
            that.
        users: ``[[NODE, INPUT INDEX], …]`` of the scope: only these uses of `behind` get the
            output; None for all, and for an output of the scope.
        opset: The version to import where the operator set is not imported yet.
        initializers: New initializers that it uses: ``name``, ``dtype``, ``dims`` and ``fill``, as
            in ``add_initializer``.
    """
    home = document.scope_at(scope)
    if not 0 < outputs < MOST_LINKS:
        raise EditError("outputs must be a number of values from 1")
    if behind:
        require_visible(home, behind)
    if opset is not None:
        _import(transaction, home, domain, opset)
    for about in initializers:
        _initializer(document, transaction, scope, about)
    output_names = _names(home, op_type, outputs)
    source = behind
    chosen = [] if users is None else [use_at(document, scope, use, behind) for use in users]
    if behind and users is None and feeds_output(home, behind):
        source = rename_before_output(transaction, home, behind)
        inputs = [source if name == behind else name for name in inputs]
        output_names[0] = behind
    add_node.run(
        document, transaction, scope=scope, op_type=op_type, domain=domain, name=name,
        inputs=inputs, outputs=output_names, attributes=attributes,
    )  # fmt: skip
    node = home.links.producers[output_names[0]][0]
    for attribute in strings(bodies, "bodies"):
        add_subgraph.run(document, transaction, scope=scope, node=node.ref, attribute=attribute)
    if behind and users is not None:
        for user, position in chosen:
            links = with_item(user.inputs, position, output_names[0])
            transaction.do(SetLinks(user.scope, user, "input", links))
        return f"add {quoted(op_type)} behind {quoted(behind)}"
    if behind:
        replace_uses.run(document, transaction, scope=scope, value=source, by=output_names[0])
        return f"add {quoted(op_type)} behind {quoted(behind)}"
    return f"add {quoted(op_type)}"


def _names(home: Scope, op_type: str, count: int) -> list[str]:
    """Return free, distinct names for outputs."""
    names: list[str] = []
    for number in range(count):
        tail = f"_{number}" if count > 1 else ""
        names.append(free_name(home, f"{op_type}_output{tail}"))
    return names


def _import(transaction: Transaction, home: Scope, domain: str, version: int) -> None:
    if version < 1:
        raise EditError("an opset version is a whole number from 1")
    ensure_import(transaction, home, domain, version)
    ensure_ir(transaction, home.document, least_ir_version({domain: version}))


def _initializer(
    document: Document, transaction: Transaction, scope: Sequence[str], about: Mapping[str, JSON]
) -> None:
    if not isinstance(about, dict) or set(about) != {"name", "dtype", "dims", "fill"}:
        raise EditError("an initializer needs name, dtype, dims and fill")
    arguments: Mapping[str, Any] = about
    add_initializer.run(document, transaction, scope=scope, **arguments)


def added_node(transaction: Transaction) -> Node | None:
    """Return the first node that a transaction put into a scope where there was none, or None."""
    for primitive in transaction.primitives:
        if not isinstance(primitive, Splice) or primitive.list_name != "node":
            continue
        if primitive.inserted and not primitive.removed:
            node = primitive.inserted[0]
            assert isinstance(node, Node)
            return node
    return None


@edit
def cast_nodes(
    document: Document,
    transaction: Transaction,
    *,
    nodes: Sequence[JSON],
    precision: str,
) -> str:
    """Add casts so that nodes compute in another type; other nodes see the same types.

    Weights keep their type: they are cast, too. Types have to be known where the casts are to be.
    Precisions that need a scale, such as int8 for floating point values, are refused.

    Args:
        nodes: ``[[SCOPE, NODE], …]``: the path of a scope and the ref of a node in it.
        precision: One of :data:`~dld_tui.core.model.document.metadata.PRECISIONS`.
    """
    if precision not in PRECISIONS:
        raise EditError(
            f"there is no precision {precision!r:.40}", hint=f"Known: {', '.join(PRECISIONS)}"
        )
    targets = nodes_at(document, nodes)
    plan = plan_casts(document, dict.fromkeys(targets, precision))
    if plan.refused:
        first, more = plan.refused[0], len(plan.refused) - 1
        also = f" (and {fmt.plural(more, 'more node')})" if more else ""
        reason = f"{quoted(first.node.ref)} cannot run in {precision}{also}: {first.reason}"
        raise EditError(reason)
    carry_out(plan, transaction)
    subject_text = quoted(targets[0].ref) if len(targets) == 1 else fmt.plural(len(targets), "node")
    return f"cast {subject_text} to {precision}"


def carry_out(plan: CastPlan, transaction: Transaction) -> None:
    """Make the changes of a plan for the present state of its document."""
    before: dict[Node, list[Cast]] = {}
    after: dict[Node, list[Cast]] = {}
    for cast in plan.casts:
        (after if cast.after else before).setdefault(cast.node, []).append(cast)
    for relink in plan.relinks:
        home, node = relink.node.scope, relink.node
        for side, new in (("input", relink.inputs), ("output", relink.outputs)):
            if new != (node.inputs if side == "input" else node.outputs):
                transaction.do(SetLinks(home, node, side, new))
    for node in dict.fromkeys((*before, *after)):
        home, place = node.scope, node.scope.index_of(node)
        for casts, index in ((after.get(node, []), place + 1), (before.get(node, []), place)):
            for at, cast in enumerate(casts, index):  # one by one: each takes a free name
                transaction.do(Splice(home, "node", at, [], [_cast_node(cast)]))


def _cast_node(cast: Cast) -> Node:
    number = dtype_number(cast.dtype)
    assert number is not None
    return new_cast(cast.scope, cast.source, cast.target, number)


@edit
def delete_nodes(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    nodes: list[str],
    reconnect: bool = False,
) -> str:
    """Delete nodes of one scope.

    Args:
        scope: The path of the scope.
        nodes: Refs of the nodes.
        reconnect: Give the users of a deleted node's first output its first data input instead;
            without it their inputs are left without a source.
    """
    chosen = [node_at(document, scope, ref) for ref in strings(nodes, "nodes")]
    targets = list(dict.fromkeys(chosen))
    if not targets:
        return "delete nothing"
    home = targets[0].scope
    delete_from(transaction, home, targets, reconnect=reconnect)
    refs = list(dict.fromkeys(nodes))
    return f"delete {subject(refs, 'node')}" + (" and reconnect" if reconnect else "")


def delete_from(
    transaction: Transaction, scope: Scope, nodes: Sequence[Node], *, reconnect: bool
) -> None:
    """Delete nodes of a scope; see :func:`delete_nodes`."""
    if reconnect:
        for node in nodes:
            reconnect_users(transaction, scope, node)
    if len(nodes) == 1:
        remove_node(transaction, scope, nodes[0])
        return
    names = dict.fromkeys(name for node in nodes for name in node.outputs if name)
    remove_records(transaction, scope, "node", nodes)
    kept = set(scope.outputs)
    index = scope.named("value_info")
    untold = [
        record
        for name in names
        if name in index and name not in kept and scope.definition(name) is None
        for record in index.all(name)
    ]
    remove_records(transaction, scope, "value_info", untold)


def remove_node(
    transaction: Transaction, scope: Scope, node: Node, *, keep_types: bool = False
) -> None:
    """Take a node out of its scope; the types of its values go too, unless they are kept."""
    outputs = [name for name in node.outputs if name]
    transaction.replace(scope, "node", node)
    for name in () if keep_types else outputs:
        if scope.definition(name) is not None or name in scope.outputs:
            continue
        transaction.drop(scope, "value_info", name)


def remove_records(
    transaction: Transaction, scope: Scope, list_name: str, records: Sequence[Any]
) -> None:
    """Remove many records from their list, one step for each run of adjacent ones."""
    wanted = {id(record) for record in records}
    if not wanted:
        return
    present = scope.records[list_name]
    places = [place for place, record in enumerate(present) if id(record) in wanted]
    while places:
        first = last = places.pop()
        while places and places[-1] == first - 1:
            first = places.pop()
        run = present[first : last + 1]
        transaction.do(Splice(scope, list_name, first, run, []))


@edit
def delete_many(
    document: Document,
    transaction: Transaction,
    *,
    nodes: Sequence[JSON],
    reconnect: bool = False,
) -> str:
    """Delete nodes of any scopes.

    Args:
        nodes: ``[[SCOPE, NODE], …]``: the path of a scope and a ref of a node of it.
        reconnect: As in ``delete_nodes``.
    """
    targets = dict.fromkeys(nodes_at(document, nodes))
    first = next(iter(targets)).ref
    by_scope: dict[Scope, list[Node]] = {}
    for node in targets:
        if not _is_inside(node.scope.owner, targets):  # else it goes with the node it is in
            by_scope.setdefault(node.scope, []).append(node)
    for scope, members in by_scope.items():
        delete_from(transaction, scope, members, reconnect=reconnect)
    count = sum(map(len, by_scope.values()))
    subject_text = quoted(first) if count == 1 else f"{count} nodes"
    return f"delete {subject_text}" + (" and reconnect" if reconnect else "")


def _is_inside(node: Node | None, chosen: Mapping[Node, None]) -> bool:
    """Return whether a node, or one that it is nested in, is among the chosen."""
    while node is not None:
        if node in chosen:
            return True
        node = node.scope.owner
    return False
