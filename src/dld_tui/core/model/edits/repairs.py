"""Repairs that checks offer, and those that keep the meaning of a model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.errors import EditError
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.proto_fields import get_text
from dld_tui.core.files.wire import TENSOR, splice
from dld_tui.core.model.document.edit_registry import edit, known_edits, node_at, strings, subject
from dld_tui.core.model.document.index import record_name
from dld_tui.core.model.document.local_functions import function_of
from dld_tui.core.model.document.node import node_proto, permutation
from dld_tui.core.model.document.opset_imports import ensure_known_import
from dld_tui.core.model.document.scope import INITIALIZERS_WITHOUT_INPUTS, Scope
from dld_tui.core.model.document.scripting.arguments import check_arguments, completed
from dld_tui.core.model.document.transactions import (
    Edit,
    SetAttribute,
    SetLinks,
    SetText,
    Splice,
    Transaction,
)
from dld_tui.core.model.document.traversal import live_nodes, topological_order
from dld_tui.core.model.edits.attributes import attribute_proto, find_attribute
from dld_tui.core.model.edits.nodes import delete_from, free_node_name, remove_records
from dld_tui.core.model.edits.renaming import free_name, rename_everywhere
from dld_tui.core.text import quoted
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document

_NO_STEPS = frozenset({"repair", "restore"})


def repair_of(edits: Iterable[Edit]) -> Edit:
    """Return the edit that makes several as one step."""
    return repair(steps=[[one.name, one.arguments] for one in edits])


@edit
def repair(
    document: Document, transaction: Transaction, *, steps: Sequence[JSON], title: str = ""
) -> str:
    """Make several edits as one step; those that no longer fit are left out.

    Args:
        transaction: The transaction to make the changes in.
        steps: ``[[EDIT, ARGUMENTS], …]``.
        title: What the step is called in the history; by default how many places were repaired.
    """
    repaired, refusals = 0, []
    for step in steps:
        if not isinstance(step, (list, tuple)) or len(step) != 2 or not isinstance(step[1], dict):
            raise EditError("a step must be an edit and its arguments")
        name, arguments = str(step[0]), step[1]
        function = known_edits().get(name)
        if function is None or name in _NO_STEPS:
            raise EditError(f"there is no edit {name!r} that could be a step")
        before = len(transaction.primitives)
        check_arguments(name, function, arguments)
        try:
            function(document, transaction, **completed(function, arguments))
        except EditError as error:
            while len(transaction.primitives) > before:
                transaction.primitives.pop().undo()
            refusals.append(error)
        else:
            repaired += len(transaction.primitives) > before
    if refusals and not repaired:
        raise refusals[0]
    return title or f"repair {repaired} place{'' if repaired == 1 else 's'}"


@edit
def trim_links(
    document: Document, transaction: Transaction, *, scope: Sequence[str], node: str
) -> str:
    """Drop the inputs and outputs at the end of a node's lists that are left out.

    A call of a local function keeps as many outputs as the function has.
    """
    target = node_at(document, scope, node)
    called = function_of(target)
    least = {"output": len(called.outputs)} if called is not None else {}
    for side, names in (("input", target.inputs), ("output", target.outputs)):
        filled = next((i + 1 for i in reversed(range(len(names))) if names[i]), 0)
        filled = max(filled, least.get(side, 0))
        if filled < len(names):
            transaction.do(SetLinks(target.scope, target, side, names[:filled]))
    return f"trim the links of {quoted(node)}"


@edit
def remove_value_info(
    document: Document, transaction: Transaction, *, scope: Sequence[str], values: Sequence[str]
) -> str:
    """Remove ``value_info`` records of values; shape inference can find the types again."""
    home = document.scope_at(scope)
    wanted = strings(values, "values")
    for value in wanted:
        transaction.drop(home, "value_info", value)
    return f"remove the type of {subject(wanted, 'value')}"


@edit
def remove_repeated_initializers(
    document: Document, transaction: Transaction, *, scope: Sequence[str], names: Sequence[str]
) -> str:
    """Keep one of several initializers that have the same name and the same content."""
    home = document.scope_at(scope)
    for name in strings(names, "names"):
        first, *others = home.named("initializer").all(name) or [None]
        if others and any(_content(document, o) != _content(document, first) for o in others):
            raise EditError(f"the initializers called {quoted(name)} have different contents")
        for record in others:
            transaction.replace(home, "initializer", record)
    return "remove repeated initializers"


def _content(document: Document, tensor: onnx.TensorProto) -> bytes:
    pieces = splice(tensor.SerializeToString(), document.blobs, kind=TENSOR)
    return b"".join(piece if isinstance(piece, bytes) else piece.read() for piece in pieces)


@edit
def name_graph(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str] = (),
    name: str = "main_graph",
) -> str:
    """Give the main graph or a subgraph a name."""
    home = document.scope_at(scope)
    if home.is_function:
        raise EditError("a function is not a graph")
    if not name:
        raise EditError("a graph needs a name")
    old = get_text(home.proto, "name")
    if old != name:
        transaction.do(SetText(home, "", None, home.proto, "name", old, name))
    return f"name the graph {quoted(name)}"


@edit
def rename_shadowing(
    document: Document, transaction: Transaction, *, scope: Sequence[str], value: str
) -> str:
    """Rename a value that has the name of an outer one, uses included."""
    home = document.scope_at(scope)
    if home.definition(value) is None:
        raise EditError(f"there is no value {quoted(value)} in this scope")
    name = free_name(home, value)
    rename_everywhere(transaction, home, value, name)
    return f"rename value {quoted(value)} to {quoted(name)}"


@edit
def own_outputs(
    document: Document, transaction: Transaction, *, scope: Sequence[str], values: Sequence[str]
) -> str:
    """Let a subgraph output copies of outer values, which it must not output directly.

    A function outputs copies of its inputs.
    """
    home = document.scope_at(scope)
    if home.parent is None and not home.is_function:
        raise EditError("only a subgraph can have outer values as outputs")
    for value in strings(values, "values"):
        if home.is_function:
            is_outer = value in home.inputs and value in home.outputs
        else:
            is_outer = home.definition(value) is None and home.resolve(value) is not None
        if is_outer:
            _copy_out(transaction, home, value)
    return "copy outer values that go out"


def _copy_out(transaction: Transaction, home: Scope, value: str) -> None:
    copied = free_name(home, f"{value}_copy")
    ensure_known_import(transaction, home, "")
    proto = node_proto("Identity", [value], [copied], free_node_name(home, copied))
    transaction.append(home, "node", home.new_node(proto))
    if home.is_function:
        renamed = tuple(copied if name == value else name for name in home.outputs)
        transaction.do(SetLinks(home, None, "output", renamed))
        return
    for record in list(home.named("output").all(value)):
        transaction.do(SetText(home, "output", record, record, "name", value, copied))


@edit
def sort_nodes(document: Document, transaction: Transaction, *, scope: Sequence[str]) -> str:
    """Put the nodes of a scope into an order in which each comes after its inputs.

    The order of nodes that are placed right is kept.
    """
    home = document.scope_at(scope)
    order = topological_order(home)
    if order is None:
        raise EditError("the graph has a cycle: no order is right", hint="Break the cycle first")
    if order != home.nodes:
        transaction.do(Splice(home, "node", 0, list(home.nodes), order))
    return "sort nodes"


@edit
def remove_unused(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    nodes: bool = True,
    initializers: bool = True,
    names: Sequence[str] | None = None,
) -> str:
    """Remove nodes that no output depends on, and initializers that nothing uses.

    Args:
        scope: The path of the scope.
        nodes: Remove nodes.
        initializers: Remove initializers. One that is an input stays, as it is the value that the
            input has by default; before IR version 4, where all are inputs, the input goes, too.
        names: Only initializers with these names; None for all that are unused.
    """
    home = document.scope_at(scope)
    removed: list[str] = []
    if nodes:
        live = live_nodes(home)
        dead = [node for node in home.nodes if node not in live]
        delete_from(transaction, home, dead, reconnect=False)
        removed += [fmt.plural(len(dead), "unused node")] if dead else []
    if initializers and "initializer" in home.records:
        wanted = None if names is None else set(strings(names, "names"))
        used = home.references()
        inputs = set(home.inputs)
        version = document.model.ir_version
        count = 0
        apart = home.parent is not None or not 0 < version < INITIALIZERS_WITHOUT_INPUTS
        for list_name in ("initializer", "sparse_initializer"):
            index = home.named(list_name)
            unwanted = [
                record
                for name in index
                if name not in used and (wanted is None or name in wanted)
                for record in index.all(name)
            ]
            unused_inputs = [
                record for record in unwanted if record_name(list_name, record) in inputs
            ]
            if apart and unused_inputs:  # without its value the input would have to be fed
                unwanted = [record for record in unwanted if record not in unused_inputs]
                unused_inputs = []
            remove_records(transaction, home, list_name, unwanted)
            for record in unused_inputs:
                name = record_name(list_name, record)
                remove_records(transaction, home, "input", home.named("input").all(name))
            count += len(unwanted)
        removed += [fmt.plural(count, "unused initializer")] if count else []
    return f"remove {' and '.join(removed) or 'nothing'}"


@edit
def rename_duplicate_nodes(
    document: Document, transaction: Transaction, *, scope: Sequence[str]
) -> str:
    """Rename every node whose name an earlier node has."""
    home = document.scope_at(scope)
    seen: set[str] = set()
    for node in list(home.nodes):
        name = node.name
        if name and name in seen:
            new = free_node_name(home, name)
            old = get_text(node.proto, "name")
            transaction.do(SetText(home, "node", node, node.proto, "name", old, new))
        seen.add(name)
    return "rename nodes that share a name"


@edit
def merge_transposes(
    document: Document, transaction: Transaction, *, scope: Sequence[str], node: str
) -> str:
    """Merge a Transpose with the one before it, which stays for its other users.

    Both need the attribute ``perm``, or a known rank.
    """
    target = node_at(document, scope, node)
    before = target.scope.producer(target.inputs[0]) if target.inputs else None
    if before is None or {before.op_type, target.op_type} != {"Transpose"} or not before.inputs:
        raise EditError(f"{quoted(node)} is not a Transpose behind another one")
    inner, outer = permutation(before), permutation(target)
    if inner is None or outer is None or len(inner) != len(outer):
        raise EditError("the axes of the two are not known, or not as many")
    position, old = find_attribute(target, "perm")
    new = attribute_proto("perm", "ints", [inner[axis] for axis in outer])
    transaction.do(SetAttribute(target, position, old, new))
    transaction.do(SetLinks(target.scope, target, "input", before.inputs[:1]))
    return f"merge {quoted(before.ref)} into {quoted(node)}"
