"""Where nodes are drawn on the canvas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import onnx

from dld_tui.core.document.edits.registry import edit, node_at, quoted
from dld_tui.core.document.history import Transaction
from dld_tui.core.document.node import Node
from dld_tui.core.document.positions import KEY, MOST
from dld_tui.core.document.primitives import SetList, copies
from dld_tui.core.document.wiretext import text_of
from dld_tui.core.errors import EditError
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document


@edit
def set_positions(
    document: Document,
    transaction: Transaction,
    *,
    scope: Sequence[str],
    positions: Mapping[str, JSON] | None,
) -> str:
    """Set how far nodes are drawn from where they would be arranged.

    Args:
        document: The document.
        transaction: The transaction to make the change in.
        scope: The graph or function.
        positions: ``{NODE: [X, Y]}``: cells to the right and down by the ref of a node, null for a
            node that is to be arranged again; None for all nodes of the scope.
    """
    if positions is None:
        moved = [node for node in document.scope_at(scope).nodes if _entries(node)]
        for node in moved:
            _set(transaction, node, None)
        return f"arrange {len(moved)} nodes again"
    if not isinstance(positions, Mapping):
        raise EditError("positions must be places by node")
    targets = [(node_at(document, scope, ref), _text(place)) for ref, place in positions.items()]
    for node, text in targets:
        if [text_of(entry.value) for entry in _entries(node)] != ([] if text is None else [text]):
            _set(transaction, node, text)
    what = quoted(targets[0][0].ref) if len(targets) == 1 else f"{len(targets)} nodes"
    return f"move {what}"


def _text(place: JSON) -> str | None:
    if place is None:
        return None
    if isinstance(place, (list, tuple)) and len(place) == 2:
        x, y = place
        if type(x) is int and type(y) is int and max(abs(x), abs(y)) <= MOST:
            return f"{x},{y}"
    raise EditError(f"a position is two whole numbers from -{MOST} to {MOST}")


def _entries(node: Node) -> list[onnx.StringStringEntryProto]:
    return [entry for entry in node.proto.metadata_props if entry.key == KEY]


def _set(transaction: Transaction, node: Node, text: str | None) -> None:
    props = node.proto.metadata_props
    kept = [entry for entry in copies(props) if text_of(entry.key) != KEY]
    if text is not None:
        kept.append(onnx.StringStringEntryProto(key=KEY, value=text))
    transaction.do(SetList(node.scope, node, "node", node.proto, "metadata_props", kept))
