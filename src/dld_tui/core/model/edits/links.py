"""Links: connect and disconnect them, and rewire all uses of a value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.errors import EditError
from dld_tui.core.model.document.edit_registry import edit, node_at, strings, subject
from dld_tui.core.model.document.local_functions import function_of
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.operator_matching import schema_of, wanted_type
from dld_tui.core.model.document.parts.extraction import typed_record
from dld_tui.core.model.document.scope import Scope, Use
from dld_tui.core.model.document.transactions import SetLinks, Splice, Transaction
from dld_tui.core.model.document.traversal import depends_on, outer_node, places, sources, upstream
from dld_tui.core.model.edits.inputs_outputs import add_input
from dld_tui.core.model.edits.renaming import (
    free_name,
    rename_everywhere,
    require_free,
    require_visible,
)
from dld_tui.core.model.tensors.value_types import GENERATED, ValueType
from dld_tui.core.text import quoted

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document


def move_behind(transaction: Transaction, users: Sequence[Node], value: str) -> None:
    """Move nodes, and those that depend on them, behind the node that makes a value.

    Nothing moves that is there already, and only nodes between the places ever do. The value must
    mean the same for all users, and not depend on them.
    """
    definition = users[0].scope.resolve(value) if users else None
    if definition is None or definition.node is None:
        return
    home, made_by = definition.scope, definition.node
    outer = dict.fromkeys(outer_node(home, user) for user in users)
    place = places(home, [made_by, *outer])
    stop = place[made_by]
    moved = {node for node in outer if place[node] < stop}
    if not moved:
        return
    start = min(place[node] for node in moved)
    between = home.nodes[start : stop + 1]
    for node in between:
        if any(source in moved for source in sources(home, node)):
            moved.add(node)
    order = [node for node in between if node not in moved]
    order += [node for node in between if node in moved]
    transaction.do(Splice(home, "node", start, between, order))


MOST_LINKS = 1 << 16
"""More inputs or outputs than any operator without a limit takes; a larger index is a mistake."""
_FEW_USES = 16
"""Uses that are looked at one by one; for more of them all that `by` depends on is found first."""


@edit
def set_input(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    node: str,
    index: int,
    value: str,
    sort: bool = False,
) -> str:
    """Connect an input of a node to a value, or disconnect it.

    Args:
        scope: The path of the node's scope.
        node: The node's ref.
        index: Which input, from 0; inputs before it that are not there are left out (``""``).
        value: The value; ``""`` disconnects. It must be visible in the node's scope.
        sort: Move the node, and those that depend on it, behind the node that makes the value where
            they come before it.
    """
    target = node_at(document, scope, node)
    require_index(target, "input", index)
    if value:
        require_visible(target.scope, value)
        if depends_on(target, value):
            raise EditError(
                f"connecting {quoted(value)} to {quoted(node)} would make a cycle",
                hint="Choose a value that does not come from this node",
            )
    inputs = with_item(target.inputs, index, value)
    if inputs == target.inputs:
        return "connect nothing"
    transaction.do(SetLinks(target.scope, target, "input", inputs))
    if sort and value:
        move_behind(transaction, [target], value)
    verb = f"connect {quoted(value)} to" if value else "disconnect"
    return f"{verb} input {index} of {quoted(node)}"


@edit
def set_output(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    node: str,
    index: int,
    value: str,
) -> str:
    """Rename one output of a node, or leave it out with ``""``.

    Unlike ``rename_value``, users of the old name keep it, and so lose their source.
    """
    target = node_at(document, scope, node)
    require_index(target, "output", index)
    if value:
        require_free(target.scope, value)
    outputs = with_item(target.outputs, index, value)
    called = function_of(target)
    if called is not None:  # its calls have all outputs
        outputs += ("",) * (min(len(target.outputs), len(called.outputs)) - len(outputs))
    if outputs == target.outputs:
        return "set nothing"
    transaction.do(SetLinks(target.scope, target, "output", outputs))
    return f"set output {index} of {quoted(node)} to {quoted(value)}"


@edit
def replace_uses(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    value: str,
    by: str,
) -> str:
    """Replace a value by another one for all nodes that use it, also in subgraphs that capture it.

    Nodes that `by` is computed from keep the old value, because the other way would be a cycle. The
    others move behind the node that makes `by` where they come before it.
    """
    home = document.scope_at(scope)
    require_visible(home, by)
    uses = replaceable_uses(home, value, by)
    users = list(dict.fromkeys(use.node for use in uses))
    for user in users:
        if user.scope is not home and user.scope.resolve(by) != home.resolve(by):
            raise EditError(f"{quoted(by)} means another value inside {quoted(user.scope.title)}")
        inputs = tuple(by if name == value else name for name in user.inputs)
        transaction.do(SetLinks(user.scope, user, "input", inputs))
    move_behind(transaction, users, by)
    return f"use {quoted(by)} instead of {quoted(value)} in {fmt.plural(len(uses), 'place')}"


def replaceable_uses(home: Scope, value: str, by: str) -> list[Use]:
    """Return the uses of a value that another one can take without a cycle."""
    uses = home.users(value)
    if len(uses) <= _FEW_USES:
        return [use for use in uses if not depends_on(outer_node(home, use.node), by)]
    ancestors = upstream(home, by)
    return [use for use in uses if outer_node(home, use.node) not in ancestors]


@edit
def bypass_nodes(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    nodes: Sequence[str],
) -> str:
    """Give the users of each node's output the node's first data input instead; the node stays."""
    for ref in strings(nodes, "nodes"):
        node = node_at(document, scope, ref)
        reconnect_users(transaction, node.scope, node, keep=True)
    return f"bypass {subject(nodes, 'node')}"


def with_item(names: tuple[str, ...], index: int, name: str) -> tuple[str, ...]:
    """Return links with one set; names left out at the end are cut off."""
    links = [*names, *[""] * (index + 1 - len(names))]
    links[index] = name
    while links and not links[-1] and len(links) > len(names):
        links.pop()
    if index == len(links) - 1:
        while links and not links[-1]:
            links.pop()
    return tuple(links)


def require_index(node: Node, side: str, index: int) -> None:
    """Refuse an input or output that a node cannot have by the signature of its operator.

    Raises:
        EditError: There is none of that index.
    """
    present = len(node.inputs if side == "input" else node.outputs)
    if not 0 <= index < max(present, _most_links(node, side)):
        raise EditError(f"{quoted(node.op_type)} does not take {side} {index}")


def _most_links(node: Node, side: str) -> int:
    function = function_of(node)
    if function is not None:
        return len(function.inputs if side == "input" else function.outputs)
    schema = schema_of(node)
    if schema is None:
        return MOST_LINKS
    most = schema.max_inputs if side == "input" else schema.max_outputs
    return MOST_LINKS if most is None else most


@edit
def remove_terminal(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    node: str,
    side: str,
    index: int,
) -> str:
    """Remove an input or output from the list of a node; those after it move up by one.

    This is for operators that take any number of values; ``set_input`` with ``""`` leaves an
    optional one out. An output that is used cannot be removed.
    """
    target = node_at(document, scope, node)
    _require_side(side)
    names = target.inputs if side == "input" else target.outputs
    if not 0 <= index < len(names):
        raise EditError(f"{quoted(node)} has no {side} {index}")
    name = names[index]
    home = target.scope
    if side == "output" and name and (name in home.outputs or home.users(name)):
        raise EditError(
            f"{quoted(name)} is used", hint="Give its users another value first: replace all uses"
        )
    transaction.do(SetLinks(home, target, side, names[:index] + names[index + 1 :]))
    return f"remove {side} {index} of {quoted(node)}"


@edit
def disconnect_value(
    document: Document, transaction: Transaction, *, scope: Sequence[str], value: str
) -> str:
    """Disconnect every node input that uses a value, in subgraphs that capture it too."""
    home = document.scope_at(scope)
    uses = home.users(value)
    for user in dict.fromkeys(use.node for use in uses):
        links = user.inputs
        for index in [use.index for use in uses if use.node is user][::-1]:
            links = with_item(links, index, "")
        transaction.do(SetLinks(user.scope, user, "input", links))
    return f"disconnect {quoted(value)} from {len(uses)} inputs"


def exposed_type(node: Node, index: int) -> ValueType:
    """Return what is known of the type of a graph input in the place of an input of a node.

    Dimensions that inference has named are unknown ones.
    """
    present = node.inputs[index] if 0 <= index < len(node.inputs) else ""
    known = node.scope.value_type(present) if present else None
    if known is None or known.container:
        return ValueType(wanted_type(node, index), None)
    dims = known.dims and tuple(
        None if isinstance(dim, str) and GENERATED.fullmatch(dim) else dim for dim in known.dims
    )
    return ValueType(known.dtype or wanted_type(node, index), dims)


@edit
def expose_input(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    node: str,
    index: int,
    name: str = "",
    dtype: str | None = None,
    dims: Sequence[int | str | None] | None = None,
) -> str:
    """Make a new input of the graph and connect an input of a node to it.

    In a body it is one of the main graph, or of the function, around it: what runs a body gives it
    a fixed number of inputs.

    Args:
        scope: The path of the node's scope.
        node: The node's ref.
        index: Which of its inputs.
        name: The new input's name; by default that of a value without a source, or one made up.
        dtype: Its element type; by default that of the value that was connected, or the one that
            the operator takes there.
        dims: Its dimensions; by default those of the value that was connected.

    Raises:
        EditError: The type or the number of dimensions is unknown.
    """
    target = node_at(document, scope, node)
    require_index(target, "input", index)
    home = root = target.scope
    while root.parent is not None:
        root = root.parent
    place = list(root.path)
    present = target.inputs[index] if 0 <= index < len(target.inputs) else ""
    is_free = not present or home.resolve(present) is None
    if dtype is None or dims is None:
        known = exposed_type(target, index)
        if (known.dtype is None or known.dims is None) and document.ask_types is not None:
            document.ask_types()
            known = exposed_type(target, index)
        dtype = known.dtype if dtype is None else dtype
        dims = known.dims if dims is None else dims
    input_name = name or (
        present
        if present and is_free
        else free_name(root, f"{present or target.name or target.op_type}_input")
    )
    if not root.is_function and (dtype is None or dims is None):
        unknown = "type" if dtype is None else "number of dimensions"
        raise EditError(
            f"the {unknown} of the input {quoted(input_name)} is unknown",
            hint="Give dtype and dims" if dtype is None else "Give dims; null is any size",
        )
    if input_name == present:
        add_input.run(document, transaction, scope=place, name=present, dtype=dtype, dims=dims)
        return f"make {quoted(present)} an input"
    add_input.run(document, transaction, scope=place, name=input_name, dtype=dtype, dims=dims)
    links = with_item(target.inputs, index, input_name)
    transaction.do(SetLinks(home, target, "input", links))
    return f"make input {quoted(input_name)} for {quoted(node)}"


@edit
def replace_output(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    name: str,
    by: str,
) -> str:
    """Replace one output of a graph or function by another value.

    The output takes the other value's name and type.
    """
    home = document.scope_at(scope)
    names = home.outputs
    if name not in names:
        raise EditError(f"there is no output {quoted(name)}")
    if by in names:
        raise EditError(f"{quoted(by)} is an output already")
    if home.is_function or home.parent is None:
        require_visible(home, by)
    elif home.definition(by) is None:
        raise EditError(f"{quoted(by)} is from outside: a subgraph outputs only its own values")
    if home.is_function:
        renamed = tuple(by if other == name else other for other in names)
        transaction.do(SetLinks(home, None, "output", renamed))
        return f"output {quoted(by)} instead of {quoted(name)}"
    old = home.named("output").first(name)
    new = typed_record(home, by)
    transaction.drop(home, "value_info", by)  # an output declares it itself
    transaction.replace(home, "output", old, new)
    return f"output {quoted(by)} instead of {quoted(name)}"


@edit
def move_terminal(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    side: str,
    name: str,
    to: int,
) -> str:
    """Move an input or output of a graph or function to another place among them, from 0.

    For a function or subgraph, whose values are matched by their places, this changes what its
    caller passes in or gets back.
    """
    home = document.scope_at(scope)
    _require_side(side)
    names = home.inputs if side == "input" else home.outputs
    if name not in names:
        raise EditError(f"there is no {side} {quoted(name)}")
    if not 0 <= to < len(names):
        raise EditError(f"there is no place {to} among {len(names)}")
    at = names.index(name)
    if at == to:
        return "move nothing"
    if home.is_function:
        order = [*names[:at], *names[at + 1 :]]
        order.insert(to, name)
        transaction.do(SetLinks(home, None, side, tuple(order)))
    else:
        record = home.records[side][at]
        transaction.do(Splice(home, side, at, [record], []))
        transaction.do(Splice(home, side, to, [], [record]))
    return f"move {side} {quoted(name)} to place {to + 1}"


def _require_side(side: str) -> None:
    if side not in ("input", "output"):
        raise EditError("side must be input or output")


def bypass_source(node: Node) -> str | None:
    """Return the input that can replace the node's only used output, or None."""
    scope = node.scope
    if any(scope.is_used(output) for output in node.outputs[1:] if output):
        return None
    names = [name for name in node.inputs if name]
    for name in names:
        definition = scope.resolve(name)
        if definition is not None and (definition.kind != "initializer" or len(names) == 1):
            return name
    return None


def reconnect_users(
    transaction: Transaction, scope: Scope, node: Node, *, keep: bool = False
) -> None:
    """Give the users of a node's output its first data input instead.

    Args:
        scope: The node's scope.
        node: The node; with `keep` it gets another output name where it made a graph output.
        keep: True when the node is to stay.

    Raises:
        EditError: No input can replace the output.
    """
    output = node.outputs[0] if node.outputs else ""
    uses = scope.users(output) if output else []
    is_output = bool(output) and output in scope.outputs
    if not uses and not is_output:
        return
    source = bypass_source(node)
    if source is None:
        raise EditError(
            f"{quoted(node.ref)} cannot be bypassed: no data input can replace its one used output",
            hint="Delete it without reconnecting.",
        )
    for user in dict.fromkeys(use.node for use in uses):
        inputs = tuple(source if name == output else name for name in user.inputs)
        transaction.do(SetLinks(user.scope, user, "input", inputs))
    if not is_output:
        return
    definition = scope.definition(source)
    if definition is None or definition.kind != "node" or source in scope.outputs:
        raise EditError(
            f"{quoted(node.ref)} produces the graph output {quoted(output)}, which its input "
            f"{quoted(source)} cannot take over",
            hint="Delete it without reconnecting.",
        )
    # The output keeps its name and type: the value that now feeds it takes the name over.
    spare = free_name(scope, f"{output}_bypassed") if keep else ""
    transaction.do(SetLinks(scope, node, "output", (spare, *node.outputs[1:])))
    transaction.drop(scope, "value_info", source)
    rename_everywhere(transaction, scope, source, output)
