"""What this program keeps for TensorRT in a model: layer precisions, optimization profiles."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import onnx

from dld_tui.core.document import precision as precisions
from dld_tui.core.document.edits.metadata import set_metadata
from dld_tui.core.document.edits.registry import edit, node_at, quoted
from dld_tui.core.document.history import Transaction
from dld_tui.core.document.node import Node
from dld_tui.core.document.primitives import SetList, copies
from dld_tui.core.document.profiles import (
    KEY,
    Profile,
    parse_profiles,
    profiles_json,
    profiles_of,
    validate,
)
from dld_tui.core.document.wiretext import text_of
from dld_tui.core.errors import EditError, InputError
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document


@edit
def set_precision(
    document: Document,
    transaction: Transaction,
    *,
    nodes: Sequence[Sequence[JSON]],
    precision: str | None,
) -> str:
    """Set the precision in which TensorRT is to run layers.

    Args:
        document: The document.
        transaction: The transaction to make the change in.
        nodes: ``[[SCOPE, NODE], …]``: the path of a scope and the ref of a node in it.
        precision: One of :data:`~dld_tui.core.document.precision.PRECISIONS`; None clears it.
    """
    if precision is not None and precision not in precisions.PRECISIONS:
        known = ", ".join(precisions.PRECISIONS)
        raise EditError(f"there is no precision {precision!r}", hint=f"Known: {known}")
    targets = [_node(document, place) for place in nodes]
    for node in dict.fromkeys(targets):
        if precisions.precision_of(node) != (precision or ""):
            _set(transaction, node, precision)
    what = quoted(targets[0].ref) if len(targets) == 1 else f"{len(targets)} nodes"
    return f"set precision of {what} to {precision}" if precision else f"clear precision of {what}"


def _node(document: Document, place: Sequence[JSON]) -> Node:
    if not isinstance(place, (list, tuple)) or len(place) != 2:
        raise EditError("each node must be a scope and a ref")
    scope, ref = place
    if not isinstance(scope, (list, tuple)) or not isinstance(ref, str):
        raise EditError("each node must be a scope and a ref")
    return node_at(document, [str(step) for step in scope], ref)


def _set(transaction: Transaction, node: Node, precision: str | None) -> None:
    props = node.proto.metadata_props
    kept = [entry for entry in copies(props) if text_of(entry.key) != precisions.KEY]
    if precision is not None:
        kept.append(onnx.StringStringEntryProto(key=precisions.KEY, value=precision))
    transaction.do(SetList(node.scope, node, "node", node.proto, "metadata_props", kept))


def _present(document: Document) -> list[Profile]:
    try:
        return profiles_of(document)
    except InputError:
        return []  # damaged ones are replaced


@edit
def set_profiles(
    document: Document, transaction: Transaction, *, profiles: list[JSON] | None
) -> str:
    """Set the optimization profiles of the model.

    Ranges that the model has already are kept as they are, even where they fit its inputs no more.

    Args:
        document: The document.
        transaction: The transaction to make the change in.
        profiles: ``[{INPUT: {"min": DIMS, "opt": DIMS, "max": DIMS}}, …]``; None or ``[]`` removes
            them.
    """
    if not profiles:
        set_metadata(document, transaction, key=KEY, value=None)
        return "remove optimization profiles"
    try:
        found = parse_profiles(profiles)
    except InputError as error:
        raise EditError(error.message) from None
    problems = validate(document, found, _present(document))
    if problems:
        raise EditError(problems[0])
    text = json.dumps(profiles_json(found), separators=(",", ":"), ensure_ascii=False)
    set_metadata(document, transaction, key=KEY, value=text)
    return f"set {len(found)} optimization profile{'' if len(found) == 1 else 's'}"
