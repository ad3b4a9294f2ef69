"""Which ONNX nodes the layers of an engine compute, and the time of the layers by node.

What a layer of several nodes took cannot be measured by node: it is shared by what the nodes cost
(:mod:`dld_tui.core.cost.sharing`) or by another stated rule, and labelled an estimate. Nodes that
work on weights only run when the engine is built, and get nothing.

::

    mapping = map_plan(plan, document)      # document may be None: names only, as text
    mapping[layer.index].nodes              # tuple[NodeRef]
    share_times(plan, mapping, "macs")      # list[NodeTime], longest first

The ``Metadata`` of a layer names its nodes exactly. Without it the layer's name is taken apart;
what a range ``{ForeignNode[FIRST...LAST]}`` contains is found in the graph, which needs the
document.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from dld_tui.core import fmt
from dld_tui.core.cost.sharing import cost_shares, counts_macs, node_macs
from dld_tui.core.plan.mapping_names import (
    Found,
    How,
    LayerNodes,
    NodeRef,
    Piece,
    Sureness,
    TextNames,
    bare_name,
    ends_of,
    is_myelin,
    listed_names,
    names_of,
    ranges_of,
    read_metadata,
    split_name,
)
from dld_tui.core.report.groups import NO_NODE, layer_type

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document
    from dld_tui.core.document.node import Node
    from dld_tui.core.plan.mapping_model import ModelNames
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


NOTHING = LayerNodes()


def map_plan(plan: EnginePlan, document: Document | None = None) -> dict[int, LayerNodes]:
    """Return the nodes of every layer of a plan, folded ones included, by `EngineLayer.index`.

    Args:
        plan: The engine.
        document: The model that it was built from; without it names are but text.
    """
    names = names_of(document)
    layers = {layer.index: layer for layer in (*plan.all_layers, *plan.layers)}
    found: dict[int, LayerNodes] = {}
    ranges: list[EngineLayer] = []
    for index, layer in layers.items():
        told = _by_metadata(layer, names)
        if told is not None:
            found[index] = told
        elif "{ForeignNode[" in layer.name:
            ranges.append(layer)
            found[index] = NOTHING  # keeps the order
        else:
            found[index] = _by_name(layer.name, names)
    claimed = {
        ref
        for nodes in found.values()
        if nodes.confidence == "exact" and not nodes.inserted
        for ref in nodes.nodes
    }
    for layer in ranges:
        found[layer.index] = _by_range(layer.name, names, claimed)
    return found


def _by_metadata(layer: EngineLayer, names: TextNames | ModelNames) -> LayerNodes | None:
    told = read_metadata(layer.metadata)
    if not told.entries:
        return None
    found = [(entry.name, names.told(entry)) for entry in told.entries]
    missing = tuple(name for name, one in found if not one.explained)
    nodes = _together(one for _, one in found)
    sure = all(one.sure for _, one in found) and not told.truncated and not missing
    confidence: Sureness = "exact" if sure else "likely"
    inserted = layer.type == "Reformat" and bare_name(layer.name, names.known).inserted
    return LayerNodes(
        nodes, "metadata", confidence if nodes else "none", inserted, told.truncated, missing
    )


def _by_name(name: str, names: TextNames | ModelNames) -> LayerNodes:
    bare = bare_name(name, names.known)
    if bare.of_binding:
        nodes = names.binding(bare.text).nodes
        return LayerNodes(nodes, "name", "likely" if nodes else "none", inserted=True)
    known = names.known if names.document is not None else None
    listed = listed_names(bare.text, known)
    if listed is not None:
        pieces = [Piece(name, names.known(name)) for name in listed]
    else:
        pieces = split_name(bare.text, known, names.longest)
    found = [(piece, names.find(piece.text)) for piece in pieces]
    parts = [one for _, one in found]
    nodes = _together(parts)
    missing = tuple(piece.text for piece, one in found if not one.explained)
    inserted = bare.inserted or (bool(nodes) and all(one.aside for one in parts if one.nodes))
    if not nodes:
        how: How = "myelin" if is_myelin(bare.text) else "none"
        return LayerNodes((), how, "none", inserted, missing=missing)
    how = "name" if len(pieces) == 1 else "join"
    doubtful = any(piece.doubtful for piece in pieces)
    confidence = _confidence(parts, names, doubtful or bool(missing))
    return LayerNodes(nodes, how, confidence, inserted, missing=missing)


def _confidence(parts: list[Found], names: TextNames | ModelNames, doubtful: bool) -> Sureness:
    if names.document is None:
        return "likely" if len(parts) == 1 else "guess"
    if any(len(one.nodes) > 1 and not one.sure for one in parts):
        return "guess"
    return "exact" if all(one.sure for one in parts) and not doubtful else "likely"


def _by_range(name: str, names: TextNames | ModelNames, claimed: set[NodeRef]) -> LayerNodes:
    """Return the nodes of the ranges in a name, without those that other layers are named after."""
    bare = bare_name(name, names.known)
    ranges, rest = ranges_of(bare.text)
    others = _by_name(rest, names)
    nodes: dict[NodeRef, None] = dict.fromkeys(others.nodes)
    missing: list[str] = []
    on_path = True
    for inner in ranges:
        part, is_path = _of_range(inner, names)
        on_path &= is_path
        free = [ref for ref in part if ref not in claimed]
        nodes.update(dict.fromkeys(free or part))
        if not part:
            missing.append(inner)
    confidence: Sureness = "none"
    if nodes:
        confidence = "likely" if on_path and not missing else "guess"
    return LayerNodes(tuple(nodes), "range", confidence, bare.inserted, missing=tuple(missing))


def _of_range(inner: str, names: TextNames | ModelNames) -> tuple[tuple[NodeRef, ...], bool]:
    if names.known(inner):
        return names.find(inner).nodes, True
    ends = ends_of(inner)
    if not ends:  # one layer is a range of its own
        alone = _by_name(inner, names)
        return alone.nodes, alone.confidence in ("exact", "likely")
    # A name may contain dots, too: the split whose ends are in the model counts.
    ways = [(first, last) for first, last in ends if names.known(first) and names.known(last)]
    return names.between(*(ways or ends)[0])


def _together(found: Iterable[Found]) -> tuple[NodeRef, ...]:
    nodes: dict[NodeRef, None] = {}
    for one in found:
        nodes.update(dict.fromkeys(one.nodes))
    return tuple(nodes)


def mapping_notes(mapping: Mapping[int, LayerNodes]) -> list[str]:
    """Return what is to be said of a mapping as a whole, one sentence each."""
    kinds = list(mapping.values())
    said = []
    cut = sum(nodes.truncated for nodes in kinds)
    if cut:
        said.append(
            f"The metadata of {fmt.plural(cut, 'layer')} was cut at 4,000 bytes: nodes are missing"
        )
    absent = sum(bool(nodes.missing) for nodes in kinds)
    if absent:
        said.append(f"{fmt.plural(absent, 'layer')} name nodes that the model does not have")
    guessed = sum(nodes.confidence == "guess" for nodes in kinds)
    if guessed:
        said.append(f"The nodes of {fmt.plural(guessed, 'layer')} are guessed from names")
    none = sum(not nodes.nodes for nodes in kinds)
    if none:
        said.append(f"No ONNX node is known for {fmt.plural(none, 'layer')}")
    return said


def node_times(plan: EnginePlan, document: Document, rule: Rule = "cost") -> dict[Node, float]:
    """Return the milliseconds of the nodes of a model, for the overlay of its graph."""
    found: dict[Node, float] = {}
    for time in share_times(plan, map_plan(plan, document), rule):
        if time.node is not None and time.node.node is not None:
            node = time.node.node
            found[node] = found.get(node, 0.0) + time.time_ms
    return found


__all__ = [
    "RULES",
    "LayerNodes",
    "NodeRef",
    "NodeTime",
    "Rule",
    "map_plan",
    "mapping_notes",
    "node_times",
    "share_times",
]
