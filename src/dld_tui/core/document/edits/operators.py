"""Adding an operator with all that it needs, as one step: import, bodies, and its users."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dld_tui.core.document.edits.imports import ensure_import, ensure_ir
from dld_tui.core.document.edits.initializers import add_initializer
from dld_tui.core.document.edits.links import MOST_LINKS, replace_uses, with_item
from dld_tui.core.document.edits.nodes import add_node, use_at
from dld_tui.core.document.edits.registry import edit, quoted, strings
from dld_tui.core.document.edits.renaming import (
    feeds_output,
    free_name,
    rename_before_output,
    require_visible,
)
from dld_tui.core.document.edits.subgraphs import add_subgraph
from dld_tui.core.document.history import Transaction
from dld_tui.core.document.node import Node
from dld_tui.core.document.primitives import SetLinks, Splice
from dld_tui.core.document.scope import Scope
from dld_tui.core.errors import EditError
from dld_tui.core.operators.registry import least_ir_version
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document


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
    attributes: dict[str, JSON] | None = None,
    bodies: Sequence[str] = (),
    behind: str = "",
    users: Sequence[Sequence[JSON]] | None = None,
    opset: int | None = None,
    initializers: Sequence[dict[str, JSON]] = (),
) -> str:
    """Add a node with names for its outputs, with bodies, and with the users of another value.

    Args:
        document: The document.
        transaction: The transaction to make the change in.
        scope: The path of the scope.
        op_type: The operator.
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
    made = _names(home, op_type, outputs)
    source = behind
    chosen = [] if users is None else [use_at(document, scope, use, behind) for use in users]
    if behind and users is None and feeds_output(home, behind):
        source = rename_before_output(transaction, home, behind)
        inputs = [source if name == behind else name for name in inputs]
        made[0] = behind
    add_node(
        document, transaction, scope=scope, op_type=op_type, domain=domain, name=name,
        inputs=inputs, outputs=made, attributes=attributes,
    )  # fmt: skip
    node = home.links.producers[made[0]][0]
    for attribute in strings(bodies, "bodies"):
        add_subgraph(document, transaction, scope=scope, node=node.ref, attribute=attribute)
    if behind and users is not None:
        for user, position in chosen:
            links = with_item(user.inputs, position, made[0])
            transaction.do(SetLinks(user.scope, user, "input", links))
        return f"add {quoted(op_type)} behind {quoted(behind)}"
    if behind:
        replace_uses(document, transaction, scope=scope, value=source, by=made[0])
        return f"add {quoted(op_type)} behind {quoted(behind)}"
    return f"add {quoted(op_type)}"


def _names(home: Scope, op_type: str, count: int) -> list[str]:
    """Return names for outputs that are free, and free of each other."""
    found: list[str] = []
    for number in range(count):
        tail = f"_{number}" if count > 1 else ""
        found.append(free_name(home, f"{op_type}_output{tail}"))
    return found


def _import(transaction: Transaction, home: Scope, domain: str, version: int) -> None:
    if version < 1:
        raise EditError("an opset version is a whole number from 1")
    ensure_import(transaction, home, domain, version)
    ensure_ir(transaction, home.document, least_ir_version({domain: version}))


def _initializer(
    document: Document, transaction: Transaction, scope: Sequence[str], about: dict[str, JSON]
) -> None:
    if not isinstance(about, dict) or set(about) != {"name", "dtype", "dims", "fill"}:
        raise EditError("an initializer needs name, dtype, dims and fill")
    arguments: dict[str, Any] = about
    add_initializer(document, transaction, scope=scope, **arguments)


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
