"""Links as a whole: terminals taken away, values cut off, what graphs take and give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import onnx

from dld_tui.core.document.edits.deletion import splice_out
from dld_tui.core.document.edits.links import require_index, with_item
from dld_tui.core.document.edits.naming import free_name, require_visible
from dld_tui.core.document.edits.registry import edit, node_at, quoted
from dld_tui.core.document.edits.terminals import add_input
from dld_tui.core.document.history import Transaction
from dld_tui.core.document.primitives import SetLinks, Splice
from dld_tui.core.document.scope import Scope
from dld_tui.core.document.values import type_proto_of
from dld_tui.core.document.wiretext import set_text
from dld_tui.core.errors import EditError

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document


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
    """Take an input or output of a node out of its list; those after it move up by one.

    This is for operators that take any number of values; ``set_input`` with ``""`` leaves an
    optional one out. An output that is used cannot be taken out.
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

    Args:
        document: The document.
        transaction: The transaction to make the change in.
        scope: The path of the node's scope.
        node: The node's ref.
        index: Which of its inputs.
        name: The new input's name; by default that of a value without a source, or one made up.
        dtype: Its element type; by default that of the value that was connected.
        dims: Its dimensions.
    """
    target = node_at(document, scope, node)
    require_index(target, "input", index)
    home = target.scope
    present = target.inputs[index] if 0 <= index < len(target.inputs) else ""
    if present and home.resolve(present) is None and name in ("", present):
        add_input(document, transaction, scope=scope, name=present, dtype=dtype, dims=dims)
        return f"make {quoted(present)} an input"
    known = home.value_type(present) if present and dtype is None else None
    if known is not None and not known.container:
        dtype, dims = known.dtype, known.dims
    made = name or free_name(home, f"{present or target.name or target.op_type}_input")
    add_input(document, transaction, scope=scope, name=made, dtype=dtype, dims=dims)
    links = with_item(target.inputs, index, made)
    transaction.do(SetLinks(home, target, "input", links))
    return f"make input {quoted(made)} for {quoted(node)}"


@edit
def replace_output(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    name: str,
    by: str,
) -> str:
    """Let a graph or function give another value in the place of one of its outputs.

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
        raise EditError(f"a subgraph gives only what it makes; {quoted(by)} is from outside")
    if home.is_function:
        renamed = tuple(by if other == name else other for other in names)
        transaction.do(SetLinks(home, None, "output", renamed))
        return f"output {quoted(by)} instead of {quoted(name)}"
    old = home.named("output").first(name)
    new = onnx.ValueInfoProto()
    set_text(new, "name", by)
    declared = home.named("value_info").first(by) or home.named("input").first(by)
    known = home.value_type(by)
    if declared is not None:
        new.type.CopyFrom(declared.type)
    elif known is not None and (inferred := type_proto_of(known)) is not None:
        new.type.CopyFrom(inferred)
    for record in list(home.named("value_info").all(by)):
        splice_out(transaction, home, "value_info", record)  # an output declares it itself
    _swap(transaction, home, "output", old, new)
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
    caller hands in or takes out.
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


def _swap(transaction: Transaction, scope: Scope, list_name: str, old: Any, new: Any) -> None:
    index = next(i for i, record in enumerate(scope.records[list_name]) if record is old)
    transaction.do(Splice(scope, list_name, index, [old], [new]))
