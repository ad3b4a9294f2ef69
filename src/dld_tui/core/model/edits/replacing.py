"""Nodes replaced by one node, or cut off with all that is computed from them; parts kept alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.errors import EditError, UsageError
from dld_tui.core.files import protos as onnx
from dld_tui.core.model.document.edit_registry import edit, strings, subject, targets_of
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.operator_matching import schema_in
from dld_tui.core.model.document.opset_imports import ensure_known_import
from dld_tui.core.model.document.parts.extraction import is_constant
from dld_tui.core.model.document.scope import Scope
from dld_tui.core.model.document.serialise import skeleton_bytes
from dld_tui.core.model.document.transactions import Splice, Transaction
from dld_tui.core.model.document.traversal import downstream_of, live_nodes, outer_node
from dld_tui.core.model.edits.attributes import add_attributes
from dld_tui.core.model.edits.inputs_outputs import add_output, remove_output, set_value_type
from dld_tui.core.model.edits.links import move_behind
from dld_tui.core.model.edits.nodes import (
    boundary,
    delete_from,
    file_order,
    new_proto,
    place_after,
    remove_node,
    require_convex,
)
from dld_tui.core.model.edits.renaming import rename_value, require_free, require_visible
from dld_tui.core.model.edits.repairs import remove_unused
from dld_tui.core.model.tensors.value_types import parse_type
from dld_tui.core.text import quoted
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document


@edit
def replace_nodes(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    nodes: Sequence[str],
    op_type: str,
    domain: str = "",
    name: str = "",
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    types: Mapping[str, str] | None = None,
    attributes: Mapping[str, JSON] | None = None,
) -> str:
    """Replace nodes by one node, of a plugin or function.

    By default it takes the values that they took from outside, in the order of their first use, and
    makes the values that others used, under the same names.

    Args:
        scope: The path of the scope.
        nodes: Refs of the nodes.
        op_type: The operator.
        domain: Its operator set, which is imported.
        name: The name of the node; one is made up when it is empty.
        inputs: Values that it takes instead; what only the nodes used goes then.
        outputs: Values that it makes instead. What is computed from others that the nodes made
            goes; where that are graph outputs, the new values become outputs instead.
        types: Of outputs, as in ``float32[1, 100, 4]``.
        attributes: ``{NAME: {"kind": KIND, "value": VALUE}}`` as in ``set_attribute``.

    Raises:
        EditError: An input is computed from the nodes, or a name is taken.
    """
    targets = targets_of(document, scope, nodes, "replace")
    home = targets[0].scope
    ordered = file_order(home, targets)
    taken, needed = boundary(home, ordered)
    require_convex(home, ordered, needed)
    live = live_nodes(home)
    new_inputs = taken if inputs is None else strings(inputs, "inputs")
    new_outputs = needed if outputs is None else strings(outputs, "outputs")
    title = f"replace {subject([node.ref for node in ordered], 'node')} by {quoted(op_type)}"
    _require_inputs(home, ordered, new_inputs)
    named = [value for value in new_outputs if value]
    if len(set(named)) != len(named):
        raise EditError("two outputs have the same name")
    place, lost = _remove_nodes(document, transaction, ordered, needed, named)
    proto = new_proto(home, op_type, domain, name, new_inputs, new_outputs)
    schema = schema_in(op_type, domain, home)
    add_attributes(proto, attributes or {}, schema)
    _insert_node(transaction, home.new_node(proto), place)
    for value in named if lost else ():
        if value not in needed:
            add_output.run(document, transaction, scope=scope, name=value)
    _declare(document, transaction, home, types or {}, named)
    if inputs is not None:
        _remove_idle(document, transaction, home, live, set(taken) - set(new_inputs))
    return title


def _remove_nodes(
    document: Document,
    transaction: Transaction,
    nodes: Sequence[Node],
    needed: Sequence[str],
    kept: Sequence[str],
) -> tuple[int, list[str]]:
    """Remove nodes, and what is computed from values that nothing will make any more.

    Args:
        nodes: The nodes of one scope, in the order of the file.
        needed: Values of theirs that others use.
        kept: Values that a new node will make.

    Returns:
        Where the first of them was, and the outputs of the scope that are gone.

    Raises:
        EditError: Another node makes a value in `kept`.
    """
    home = nodes[0].scope
    behind = _behind(home, [value for value in needed if value not in kept])
    taken = {*nodes}  # one of them may use what another makes
    behind = [node for node in behind if node not in taken]
    gone = {value for node in (*nodes, *behind) for value in node.outputs}.difference(kept)
    lost = [value for value in home.outputs if value in gone]
    delete_from(transaction, home, behind, reconnect=False)
    place = home.index_of(nodes[-1]) - len(nodes) + 1
    former = {value for node in nodes for value in node.outputs if value}
    for node in nodes:
        remove_node(transaction, home, node, keep_types=True)
    for value in lost:
        remove_output.run(document, transaction, scope=list(home.path), name=value)
    for value in former.difference(kept):
        transaction.drop(home, "value_info", value)
    for value in kept:
        if value not in former:
            require_free(home, value)
    return place, lost


def _insert_node(transaction: Transaction, node: Node, place: int) -> None:
    """Add a node at a place, or behind what it takes; its users move behind it, then."""
    home = node.scope
    after = place_after(home, node.inputs)
    transaction.do(Splice(home, "node", max(place, after), [], [node]))
    ensure_known_import(transaction, home, node.domain)
    for value in filter(None, node.outputs) if after > place else ():
        move_behind(transaction, [use.node for use in home.users(value)], value)


def _declare(
    document: Document,
    transaction: Transaction,
    home: Scope,
    types: Mapping[str, str],
    values: Collection[str],
) -> None:
    for value, text in types.items():
        known = parse_type(text) if isinstance(text, str) else None
        if value not in values or known is None:
            raise EditError(f"{quoted(value)} is no output with a type")
        dims = None if known.dims is None else list(known.dims)
        set_value_type.run(
            document, transaction, scope=list(home.path), value=value, dtype=known.dtype, dims=dims
        )


def _require_inputs(home: Scope, nodes: Sequence[Node], inputs: Sequence[str]) -> None:
    computed = {name for node in downstream_of(nodes) for name in node.outputs if name}
    for value in filter(None, inputs):
        require_visible(home, value)
        if value in computed:
            raise EditError(f"input {quoted(value)} is computed from the nodes")


def _behind(home: Scope, values: Sequence[str]) -> list[Node]:
    """Return the nodes of a scope that are computed from values."""
    users = [outer_node(home, use.node) for value in values for use in home.users(value)]
    return [node for node in downstream_of(users) if node.scope is home]


@edit
def cut_off(
    document: Document,
    transaction: Transaction,
    *,
    nodes: Sequence[str],
    outputs: Mapping[str, str] | None = None,
) -> str:
    """Delete nodes of the main graph with all that is computed from them.

    What they took becomes outputs of the graph instead; what nothing uses any more goes, too.

    Args:
        nodes: Refs of the nodes.
        outputs: Names of the new outputs by the values that become them; all that were taken by
            default, under their own names.

    Raises:
        EditError: No output would be left, or a value is not one that they take.
    """
    document.need_types()
    home = document.main
    targets = targets_of(document, [], nodes, "cut off")
    gone = file_order(home, [node for node in downstream_of(targets) if node.scope is home])
    free, live = cut_values(home, targets), live_nodes(home)
    chosen = {name: name for name in free} if outputs is None else dict(outputs)
    for name in chosen:
        if name not in free:
            listed = ", ".join(map(quoted, free[:8])) or "none"
            raise EditError(f"{quoted(name)} is not what they take", hint=f"That is {listed}")
    title = f"cut off {subject([node.ref for node in targets], 'node')}"
    if len(gone) > len(targets):
        title += f", {fmt.plural(len(gone), 'node')} in all"
    idle = {name for node in gone for name in _used(node)}
    lost = {name for node in gone for name in node.outputs if name}
    if not chosen and lost.issuperset(home.outputs):
        raise EditError("no output would be left", hint="Choose nodes behind computed tensors")
    for name in [name for name in home.outputs if name in lost]:
        remove_output.run(document, transaction, scope=[], name=name)
    delete_from(transaction, home, gone, reconnect=False)
    for name, new in chosen.items():
        add_output.run(document, transaction, scope=[], name=name)
        if new != name:
            rename_value.run(document, transaction, scope=[], value=name, name=new)
    _remove_idle(document, transaction, home, live, idle)
    return title


def cut_values(home: Scope, nodes: Sequence[Node]) -> list[str]:
    """Return what becomes outputs when nodes and all behind them are cut off a graph."""
    gone = [node for node in downstream_of(nodes) if node.scope is home]
    values = []
    for name in boundary(home, file_order(home, gone))[0]:
        source = home.producer(name)
        if source is not None and not is_constant(source) and name not in home.outputs:
            values.append(name)
    return values


def _used(node: Node) -> list[str]:
    return [*node.inputs, *(name for body in node.subgraphs() for name in body.captured())]


def _remove_idle(
    document: Document,
    transaction: Transaction,
    home: Scope,
    live: Collection[Node],
    values: set[str],
) -> None:
    """Remove nodes that had a use before, and those initializers of `values` without one now."""
    still = live_nodes(home)
    idle = [node for node in home.nodes if node in live and node not in still]
    values = values.union(*map(_used, idle))
    delete_from(transaction, home, idle, reconnect=False)
    remove_unused.run(
        document,
        transaction,
        scope=list(home.path),
        nodes=False,
        names=sorted(filter(None, values)),
    )


@edit
def extract(
    document: Document,
    transaction: Transaction,
    *,
    inputs: Sequence[str] | Mapping[str, str] = (),
    outputs: Sequence[str] | Mapping[str, str] = (),
    nodes: Sequence[str] = (),
    scope: Sequence[str] = (),
) -> str:
    """Keep what computes some tensors from others, or some nodes: the model becomes that part.

    Args:
        inputs: Tensors to start at, perhaps with new names: ``{VALUE: NAME}``. Others that are
            needed become inputs, too.
        outputs: Tensors to end at, in the same way; by default the outputs of the scope.
        nodes: Refs of nodes, instead of tensors.
        scope: The path of the scope that has them.

    Raises:
        EditError: There is no such tensor or node, or nothing is between them.
    """
    from dld_tui.core.model.document.parts.extraction import extract_part
    from dld_tui.core.model.edits import renaming
    from dld_tui.core.model.edits.model_swap import SwapModel

    if not (inputs or outputs or nodes) or (nodes and (inputs or outputs)):
        raise EditError("extract takes nodes, or inputs and outputs")
    document.need_types()
    try:
        part = extract_part(
            document, scope=scope, nodes=nodes, inputs=[*inputs], outputs=[*outputs]
        )
    except UsageError as error:
        raise EditError(error.message, where=error.where, hint=error.hint) from None
    with closing(part.document):
        for names in (inputs, outputs):
            for name, new in names.items() if isinstance(names, Mapping) else ():
                if new != name:
                    part.document.apply(renaming.rename_value(scope=[], value=name, name=new))
        model = onnx.ModelProto.FromString(skeleton_bytes(part.document))
    count = len(model.graph.node)
    transaction.do(SwapModel(document, model))
    return f"extract {fmt.plural(count, 'node')}"
