"""Casts there and back, which round values to a precision that nodes do not compute in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dld_tui.core.document.casting import (
    Cast,
    CastPlan,
    Changes,
    FreshNames,
    Refusal,
    Relink,
    changes_of,
)

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document
    from dld_tui.core.document.node import Node
    from dld_tui.core.document.scope import Scope


def plan_rounding(document: Document, precisions: Mapping[Node, str]) -> CastPlan:
    """Return casts that round values to other precisions and back: nodes compute as before.

    What nodes of a precision take and make is then what it would be in that precision, whatever
    the library computes in: for programs that would leave out the casts between two nodes.

    Args:
        document: The document; it is not changed. Types have to be known.
        precisions: The nodes that are meant, and the precision of each.
    """
    plan = CastPlan()
    names = FreshNames(document)
    rounded: dict[tuple[Scope, str, str], str] = {}
    found: dict[Node, Changes] = {}
    for node, precision in precisions.items():
        changes = changes_of(node, precision)
        if isinstance(changes, str):
            plan.refused.append(Refusal(node, precision, changes))
            continue
        found[node] = changes
        for index, _ in changes.outputs:
            rounded[node.scope, node.outputs[index], changes.dtype] = node.outputs[index]
    for node, changes in found.items():
        inputs, outputs = list(node.inputs), list(node.outputs)
        for index, before in changes.inputs:
            key = (node.scope, inputs[index], changes.dtype)
            if key not in rounded:
                rounded[key] = names.take(f"{inputs[index]}_rounded")
                plan.casts += _there_and_back(
                    names, node, inputs[index], rounded[key], before, changes.dtype, after=False
                )
            inputs[index] = rounded[key]
        for index, before in changes.outputs:
            made, outputs[index] = outputs[index], names.take(f"{outputs[index]}_exact")
            plan.casts += _there_and_back(
                names, node, outputs[index], made, before, changes.dtype, after=True
            )
        if changes.inputs or changes.outputs:
            plan.relinks.append(Relink(node, tuple(inputs), tuple(outputs)))
    return plan


def _there_and_back(
    names: FreshNames, node: Node, source: str, target: str, before: str, dtype: str, *, after: bool
) -> list[Cast]:
    middle = names.take(f"{target}_{dtype}")
    return [
        Cast(node.scope, source, middle, before, dtype, node, after, False),
        Cast(node.scope, middle, target, dtype, before, node, after, False),
    ]
