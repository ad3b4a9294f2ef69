"""Copies of a model for trials of precisions: rounding by choice, and precisions that are set."""

from __future__ import annotations

from collections.abc import Collection

from dld_tui.core.document.calls import enclosing_function, function_of
from dld_tui.core.document.casting import FreshNames, precisions_of
from dld_tui.core.document.document import Document
from dld_tui.core.document.node import Node
from dld_tui.core.document.precision import precision_of
from dld_tui.core.document.rounding import plan_rounding
from dld_tui.core.document.switches import add_switches
from dld_tui.core.document.wiretext import text_of
from dld_tui.core.tensorrt.retyping import (
    assign,
    carry_out_casts,
    copied,
    infer_into,
    inline_marked,
    twins,
)

_SWITCH = "dld.switch"
"""The entry of ``metadata_props`` that names a node's switch."""


def switchable(document: Document, precision: str) -> tuple[Document, dict[Node, str]]:
    """Return a copy of a model whose nodes round values to a precision when inputs of it say so.

    As :func:`~dld_tui.core.tensorrt.retyping.lowered` with `rounded`, for any choice of nodes.

    Args:
        document: The model; it is not changed.
        precision: For example ``fp16``.

    Returns:
        The copy, to be closed before the document, and the input of each node of the document that
        the precision can change: a scalar, true to round.
    """
    copy = copied(document)
    try:
        names = FreshNames(copy)
        owners: dict[str, Node] = {}
        change = []
        for node, twin in twins(document, copy):
            if precision_of(node) or function_of(twin) is not None:
                continue
            change.append(twin)
            name = names.take(f"round_{len(owners)}")
            twin.proto.metadata_props.add(key=_SWITCH, value=name)  # outlives being inlined
            owners[name] = node
        assign(copy, change, precision)
        inline_marked(copy, everything=False)
        infer_into(copy, document)
        precisions = {
            node: found for node, found in precisions_of(copy).items()
            if enclosing_function(node.scope) is None
        }  # fmt: skip
        rounded = {node: name for node in precisions if (name := _switch_of(node))}
        fixed = {node: found for node, found in precisions.items() if node not in rounded}
        plan = plan_rounding(copy, fixed)
        if plan.relinks:
            carry_out_casts(copy, plan)
        switched = add_switches(copy, {node: precisions[node] for node in rounded}, rounded)
    except BaseException:
        copy.close()
        raise
    return copy, {owners[rounded[node]]: rounded[node] for node in rounded if node in switched}


def _switch_of(node: Node) -> str:
    return next(
        (text_of(entry.value) for entry in node.proto.metadata_props if entry.key == _SWITCH), ""
    )


def assigned(
    document: Document, precision: str, lower: Collection[Node], kept: Collection[Node]
) -> Document:
    """Return a copy of a model whose nodes are set to precisions, for TensorRT to follow.

    Args:
        document: The model; it is not changed, and what it sets itself holds.
        precision: Of the nodes that are lowered, for example ``fp16``.
        lower: The nodes that can be lowered.
        kept: Those of them that stay in fp32.

    Returns:
        The copy, to be closed before the document.
    """
    copy = copied(document)
    try:
        change = [(node, twin) for node, twin in twins(document, copy) if node in lower]
        assign(copy, [twin for node, twin in change if node in kept], "fp32")
        assign(copy, [twin for node, twin in change if node not in kept], precision)
    except BaseException:
        copy.close()
        raise
    return copy
