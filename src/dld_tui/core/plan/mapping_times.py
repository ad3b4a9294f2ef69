"""The time of engine layers shared over the ONNX nodes that they compute.

What a layer of several nodes took cannot be measured by node: it is shared by what the nodes cost
(:mod:`dld_tui.core.node_cost`) or by another stated rule, and labelled an estimate. Nodes that work
on weights only run when the engine is built, and get nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from dld_tui.core.node_cost import cost_shares
from dld_tui.core.plan.mapping_macs import counts_macs, node_macs
from dld_tui.core.plan.mapping_nodes import LayerNodes, NodeRef
from dld_tui.core.report.groups import NO_NODE
from dld_tui.core.report.trt_names import layer_type

if TYPE_CHECKING:
    from dld_tui.core.document.node import Node
    from dld_tui.core.plan.model import EngineLayer, EnginePlan

Rule: TypeAlias = Literal["cost", "equal", "macs"]
"""``cost``: by multiply-accumulates or bytes, as fits. ``equal``: each node the same. ``macs``: by
multiply-accumulates, so that what is fused to a convolution or a matrix product gets nothing."""

RULES: tuple[Rule, ...] = ("cost", "equal", "macs")
_DEEPEST = 32


@dataclass(frozen=True)
class NodeTime:
    """The time of one ONNX node. Foreign text."""

    name: str
    """`NodeRef.label`; `NO_NODE` for the layers that no node is known of."""
    time_ms: float
    estimate: bool
    """A layer of several nodes was shared out."""
    layers: tuple[int, ...]
    """`EngineLayer.index` of the layers that the time is of."""
    rules: tuple[str, ...] = ()
    """How it was shared: ``macs``, ``bytes``, ``equal``; several when shapes were missing in some
    layers."""
    inserted_ms: float = 0.0
    """The part of `time_ms` that copies took which TensorRT put in for the node."""
    node: NodeRef | None = None


@dataclass
class _Sum:
    time_ms: float = 0.0
    inserted_ms: float = 0.0
    layers: list[int] = field(default_factory=list)
    rules: dict[str, None] = field(default_factory=dict)


def share_times(
    plan: EnginePlan, mapping: Mapping[int, LayerNodes], rule: Rule = "cost"
) -> list[NodeTime]:
    """Return the times of the nodes, longest first; empty when the plan has no profile.

    They add up to the time of the layers: what has no node is the row `NO_NODE`.

    Args:
        plan: The engine with its times.
        mapping: From :func:`~dld_tui.core.plan.mapping.map_plan`.
        rule: How to share the time of a layer of several nodes.
    """
    sums: dict[NodeRef | None, _Sum] = {}
    for layer in plan.layers:
        if layer.time_ms is None:
            continue
        nodes = mapping.get(layer.index, LayerNodes())
        parts, used = shares_of(nodes.nodes, rule, elements_of(layer))
        owners: Sequence[tuple[NodeRef | None, float]] = parts or [(None, 1.0)]
        for ref, share in owners:
            found = sums.setdefault(ref, _Sum())
            found.time_ms += share * layer.time_ms
            found.layers.append(layer.index)
            if nodes.inserted:
                found.inserted_ms += share * layer.time_ms
            if len(parts) > 1:
                found.rules[used] = None
    times = [
        NodeTime(
            NO_NODE if ref is None else ref.label, found.time_ms, bool(found.rules),
            tuple(found.layers), tuple(found.rules), found.inserted_ms, ref,
        )
        for ref, found in sums.items()
    ]  # fmt: skip
    return sorted(times, key=lambda time: (-time.time_ms, time.name))


def shares_of(
    nodes: Sequence[NodeRef], rule: Rule = "cost", elements: int | None = None
) -> tuple[list[tuple[NodeRef, float]], str]:
    """Return the share of each node in its layer, and the rule that could be applied.

    By MACs needs the shapes of all convolutions and products of the layer; without them, and in a
    layer without any, it is shared equally.

    Args:
        nodes: Of the layer.
        rule: How to share.
        elements: How many the layer makes, for nodes whose shapes are not known.
    """
    at_run = [ref for ref in nodes if not _is_folded(ref)] or list(nodes)
    if rule == "cost":
        shares, used = cost_shares([(ref.node, operator_of(ref)) for ref in at_run], elements)
        return list(zip(at_run, shares, strict=True)), used
    counts = [_macs(ref) for ref in at_run] if rule == "macs" and len(at_run) > 1 else []
    known = [count for count in counts if count is not None]
    total = sum(known)
    if total > 0 and len(known) == len(counts):
        return [
            (ref, count / total) for ref, count in zip(at_run, known, strict=True) if count
        ], "macs"
    return [(ref, 1 / len(at_run)) for ref in at_run], "equal"


def operator_of(ref: NodeRef) -> str:
    """Return the operator of a node; without a model, what its name says of it."""
    return ref.op_type or layer_type(ref.name)


def elements_of(layer: EngineLayer) -> int | None:
    """Return how many elements a layer makes; None when its shapes are not known."""
    dims = layer.outputs[0].dims if layer.outputs else None
    known = dims is not None and all(dim >= 0 for dim in dims)
    return math.prod(dims) if dims is not None and known else None


def _macs(ref: NodeRef) -> int | None:
    return None if ref.node is None else node_macs(ref.node)


def _is_folded(ref: NodeRef) -> bool:
    return ref.node is not None and _is_constant(ref.node, _DEEPEST)


def _is_constant(node: Node, depth: int) -> bool:
    """Tell whether a node depends on weights and constants only."""
    if node.children or depth == 0 or counts_macs(node):
        return False
    for name in node.inputs:
        definition = node.scope.resolve(name) if name else None
        if not name or (definition is not None and definition.kind == "initializer"):
            continue
        if definition is None or definition.node is None:
            return False
        if not _is_constant(definition.node, depth - 1):
            return False
    return True
