"""Casts that let nodes compute in another type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import onnx

from dld_tui.core import fmt
from dld_tui.core.document.casting import Cast, CastPlan, plan_casts
from dld_tui.core.document.edits.batch import nodes_at
from dld_tui.core.document.edits.nodes import free_node_name
from dld_tui.core.document.edits.registry import edit, quoted
from dld_tui.core.document.history import Transaction
from dld_tui.core.document.node import Node
from dld_tui.core.document.precision import PRECISIONS
from dld_tui.core.document.primitives import SetLinks, Splice
from dld_tui.core.document.values import dtype_number
from dld_tui.core.document.wiretext import set_text, set_texts
from dld_tui.core.errors import EditError
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document


@edit
def cast_nodes(
    document: Document,
    transaction: Transaction,
    *,
    nodes: Sequence[Sequence[JSON]],
    precision: str,
) -> str:
    """Add casts so that nodes compute in another type; what others see of them stays as it is.

    Weights keep their type: they are cast, too. Types have to be known where the casts are to be.
    Precisions that need a scale, such as int8 for floating point values, are refused.

    Args:
        document: The document.
        transaction: The transaction to make the change in.
        nodes: ``[[SCOPE, NODE], …]``: the path of a scope and the ref of a node in it.
        precision: One of :data:`~dld_tui.core.document.precision.PRECISIONS`.
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
    what = quoted(targets[0].ref) if len(targets) == 1 else fmt.plural(len(targets), "node")
    return f"cast {what} to {precision}"


def carry_out(plan: CastPlan, transaction: Transaction) -> None:
    """Make the changes of a plan, which was made for the document as it is."""
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
                transaction.do(Splice(home, "node", at, [], [home.new_node(_proto(cast))]))


def _proto(cast: Cast) -> onnx.NodeProto:
    proto = onnx.NodeProto(op_type="Cast")
    set_text(proto, "name", free_node_name(cast.scope, f"{cast.target}_cast"))
    set_texts(proto, "input", [cast.source])
    set_texts(proto, "output", [cast.target])
    number = dtype_number(cast.dtype)
    assert number is not None
    proto.attribute.append(onnx.helper.make_attribute("to", number))
    return proto
